// SPDX-License-Identifier: MIT
/*
 * O4: reading pages that are in memory, at random, the first word of each.
 */
#include "bench/experiments.h"
#include "bench/pages.h"

#include <stddef.h>

#include "bench_config.h"

#define PAGES 1024u

static const struct pages_row rows[] = {
	{ &pages_hotline, PAGES_RANDOM, PAGES_ON_DISK, PAGES, 2 * PAGES, BENCH_PAGES_AT_ONCE },
	{ &pages_hotline_optimistic, PAGES_RANDOM, PAGES_ON_DISK, PAGES, 2 * PAGES,
	  BENCH_PAGES_AT_ONCE },
	{ &pages_pool, PAGES_RANDOM, PAGES_ON_DISK, PAGES, 2 * PAGES, BENCH_PAGES_AT_ONCE },
#if HL_BENCH_LMDB
	{ &pages_lmdb, PAGES_RANDOM, PAGES_ON_DISK, PAGES, 2 * PAGES, BENCH_PAGES_AT_ONCE },
#endif
	{ &pages_mmap, PAGES_RANDOM, PAGES_ON_DISK, PAGES, 2 * PAGES, BENCH_PAGES_AT_ONCE },
};

static void add_scenario(struct bench_experiment *experiment, const char *name, const char *title,
			 unsigned threads)
{
	struct bench_scenario *scenario =
		bench_add_scenario(experiment, name, title, &bench_pages_per_second, threads);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		bench_add_row(experiment, scenario,
			      &(struct bench_row){
				      .name = rows[i].peer->name,
				      .kind = rows[i].peer->kind,
				      .run = bench_read_pages,
				      .what = &rows[i],
			      });
#if !HL_BENCH_LMDB
	bench_add_row(experiment, scenario,
		      &(struct bench_row){
			      .name = "lmdb",
			      .kind = BENCH_PEER,
			      .why_not = (char *)BENCH_INSTALL("liblmdb-dev", "lmdb-devel") });
#endif
}

static void describe(struct bench_experiment *experiment, const struct bench_machine *machine)
{
	(void)machine;
	add_scenario(experiment, "one-thread", "one thread reads pages that are in memory", 1);
	add_scenario(experiment, "two-threads", "two threads read the same pages", 2);
}

const struct bench_experiment bench_pagecache_hit = {
	.name = "pagecache-hit",
	.origin = "O4",
	.title = "pages that are in memory",
	.describe = describe,
};
