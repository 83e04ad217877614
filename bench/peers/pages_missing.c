// SPDX-License-Identifier: MIT
/*
 * In place of peers whose library was not there.
 */
#include <stddef.h>

#include "bench/pages.h"

#include "bench_config.h"

#if !HL_BENCH_LMDB
const struct pages_peer pages_lmdb = {
	.name = "lmdb",
	.kind = BENCH_PEER,
	.why_not = BENCH_INSTALL("liblmdb-dev", "lmdb-devel"),
};
#endif
#if !HL_BENCH_URING
const struct pages_peer pages_uring = {
	.name = "io_uring",
	.kind = BENCH_LIMIT,
	.why_not = BENCH_INSTALL("liburing-dev", "liburing-devel"),
};
#endif
