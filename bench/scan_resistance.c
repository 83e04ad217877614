// SPDX-License-Identifier: MIT
/*
 * O4: how many reads of a hot set, half as large as the memory, find it there while the rest
 * of the file, ten times as large as the memory, is read once; a page of the one after a page
 * of the other.
 */
#include "bench/experiments.h"

#include <stddef.h>

#include "bench/pages.h"

#define LIMIT 1024u
#define SCAN(peer) \
	{ \
		&peer, PAGES_RANDOM, PAGES_ON_DISK, 11 * LIMIT, LIMIT, 1, NULL \
	}

static double percent(uint64_t ns, uint64_t done)
{
	(void)ns;
	return (double)done / 100;
}

static const struct bench_metric percent_of_hits = {
	.name = "percent_of_hits",
	.unit = "percent of hits",
	.higher_is_better = true,
	.least_loops = 10 * LIMIT,
	.value = percent,
};

static void describe(struct bench_experiment *experiment, const struct bench_machine *machine)
{
	static const struct pages_row rows[] = { SCAN(pages_hotline), SCAN(pages_pool),
						 SCAN(pages_pread) };

	(void)machine;
	bench_add_pages(experiment,
			bench_add_scenario(experiment, "hot-set",
					   "a hot set in half of the memory, and a scan",
					   &percent_of_hits, 1),
			&(struct pages_rows){ bench_scan_pages, rows,
					      sizeof(rows) / sizeof(rows[0]), 10 * LIMIT,
					      10 * LIMIT });
}

const struct bench_experiment bench_scan_resistance = {
	.name = "scan-resistance",
	.origin = "O4",
	.title = "what is left of a hot set by a scan",
	.describe = describe,
};
