// SPDX-License-Identifier: MIT
#include "bench/experiments.h"

#include <stddef.h>

const struct bench_experiment *const bench_experiments[] = {
	&bench_csd_align,
	&bench_call_many,
	&bench_call_latency,
	&bench_call_throughput,
	&bench_cpu_poll,
	&bench_rcu_prefetch,
	&bench_rcu_callbacks,
	&bench_rcu_read,
	&bench_rcu_synchronize,
	&bench_close_flood,
	&bench_rcu_hash,
	&bench_pagevec_size,
	&bench_pagecache_hit,
	&bench_pagecache_miss,
	&bench_reclaim_batch,
	&bench_scan_resistance,
	&bench_swap_w_seq_mt,
	&bench_ipc_perm,
	&bench_ipc_latency,
	&bench_ipc_scale,
	NULL,
};
