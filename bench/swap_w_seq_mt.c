// SPDX-License-Identifier: MIT
/*
 * O1, O2, O4: threads write memory of their own from its beginning to its end, four times as
 * much as there is.
 */
#include "bench/experiments.h"

#include <stddef.h>

#include "bench/pages.h"

#define LIMIT 2048u
#define WRITE(peer) \
	{ \
		&peer, PAGES_RANDOM, PAGES_ON_DISK, 4 * LIMIT, LIMIT, 1, NULL \
	}

static double megabytes(uint64_t ns, uint64_t done)
{
	return (double)done * BENCH_PAGE * 1e3 / (double)ns;
}

static double seconds_per_gigabyte(uint64_t ns, uint64_t done)
{
	return (double)ns / ((double)done * BENCH_PAGE);
}

static const struct bench_metric megabytes_per_second = {
	.name = "megabytes_per_second",
	.unit = "MB a second",
	.higher_is_better = true,
	.least_loops = 4 * LIMIT,
	.value = megabytes,
};
static const struct bench_metric cpu_seconds_per_gigabyte = {
	.name = "cpu_seconds_per_gigabyte",
	.unit = "seconds of processor a GB",
	.least_loops = 4 * LIMIT,
	.value = seconds_per_gigabyte,
};

static void describe(struct bench_experiment *experiment, const struct bench_machine *machine)
{
	static const struct pages_row rows[] = { WRITE(pages_hotline), WRITE(pages_swap),
						 WRITE(pages_mmap), WRITE(pages_uring) };
	const struct pages_rows all = { bench_write_pages, rows, sizeof(rows) / sizeof(rows[0]),
					8 * LIMIT, 4 * LIMIT };
	struct pages_rows cpu = all;

	(void)machine;
	cpu.run = bench_write_pages_cpu;
	bench_add_pages(experiment,
			bench_add_scenario(experiment, "one-thread", "one thread writes",
					   &megabytes_per_second, 1),
			&all);
	bench_add_pages(experiment,
			bench_add_scenario(experiment, "two-threads", "two threads write",
					   &megabytes_per_second, 2),
			&all);
	bench_add_pages(experiment,
			bench_add_scenario(experiment, "two-threads-cpu",
					   "two threads write; what it costs the processors",
					   &cpu_seconds_per_gigabyte, 2),
			&cpu);
}

const struct bench_experiment bench_swap_w_seq_mt = {
	.name = "swap-w-seq-mt",
	.origin = "O1",
	.title = "writers of four times as much memory as there is",
	.describe = describe,
};
