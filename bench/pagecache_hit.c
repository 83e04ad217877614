// SPDX-License-Identifier: MIT
/*
 * O4: reading pages that are in memory, at random, the first word of each.
 */
#include "bench/experiments.h"

#include <stddef.h>

#include "bench/pages.h"

#define PAGES 1024u
#define HIT(peer) \
	{ \
		&peer, PAGES_RANDOM, PAGES_ON_DISK, PAGES, 2 * PAGES, BENCH_PAGES_AT_ONCE, NULL \
	}

static void describe(struct bench_experiment *experiment, const struct bench_machine *machine)
{
	static const struct pages_row rows[] = {
		HIT(pages_hotline), HIT(pages_hotline_optimistic), HIT(pages_pool), HIT(pages_lmdb),
		HIT(pages_mmap),
	};

	const struct pages_rows all = { bench_read_pages, rows, sizeof(rows) / sizeof(rows[0]),
					UINT64_C(1) << 20, UINT64_C(1) << 18 };

	(void)machine;
	bench_add_pages(experiment,
			bench_add_scenario(experiment, "one-thread",
					   "one thread reads pages that are in memory",
					   &bench_pages_per_second, 1),
			&all);
	bench_add_pages(experiment,
			bench_add_scenario(experiment, "two-threads",
					   "two threads read the same pages",
					   &bench_pages_per_second, 2),
			&all);
}

const struct bench_experiment bench_pagecache_hit = {
	.name = "pagecache-hit",
	.origin = "O4",
	.title = "pages that are in memory",
	.describe = describe,
};
