// SPDX-License-Identifier: MIT
/*
 * O4: batches of 15 pages and two short counters, in two lines, and as they were before
 * 2004: 16 pages and two words.
 *
 * The lines are counted over an array of batches, where those as they were begin at every
 * place in a line that their alignment allows. Warm: the few batches that a CPU keeps
 * for itself. Cold: so many that each has left the caches before it is used again.
 */
#include "bench/experiments.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <hotline/cacheline.h>
#include <hotline/cpu.h>

#include "bench/batches.h"
#include "bench/clock.h"

#define WARM_BATCHES 8u
#define COLD_BYTES (UINT64_C(128) << 20)
/* Pages of a run with cold batches, and of a quick one. */
#define COLD_LOOPS (UINT64_C(1) << 22)
#define COLD_QUICK_LOOPS (UINT64_C(1) << 20)
#define LARGE_PAGE ((size_t)2 << 20)
#define PAGES 256u

static double per_batch(uint64_t lines, uint64_t done)
{
	return (double)lines / (double)done;
}

static const struct bench_metric lines_per_batch = {
	.name = "lines_per_batch",
	.unit = "lines a batch",
	.least_loops = 4096,
	.value = per_batch,
};
static const struct bench_metric ns_per_page = {
	.name = "ns_per_page",
	.unit = "ns a page",
	.least_loops = 4096,
	.value = per_batch,
};

struct batches_row {
	const struct batches *batches;
	bool cold;
};

static void *array_of(size_t n, size_t bytes)
{
	size_t all = n * bytes;
	void *array;

	if (posix_memalign(&array, all > LARGE_PAGE ? LARGE_PAGE : HL_CACHE_LINE, all))
		return NULL;
	/* What is measured is the lines, and no faults before it. */
	if (all > LARGE_PAGE)
		madvise(array, all, MADV_HUGEPAGE);
	memset(array, 0, all);
	return array;
}

/* "Nanoseconds" are lines here. */
static int count_lines(struct bench_run *run, const struct bench_row *row)
{
	const struct batches *batches = ((const struct batches_row *)row->what)->batches;
	const size_t n = 1024;
	void *array = array_of(n, batches->bytes);

	if (!array)
		return -ENOMEM;
	for (uint64_t i = 0; i < run->loops; i++)
		run->ns += batches->lines(array, i % n);
	run->done = run->loops;
	return 0;
}

static int drain(struct bench_run *run, const struct bench_row *row)
{
	const struct batches_row *what = row->what;
	const struct batches *batches = what->batches;
	size_t n = what->cold ? COLD_BYTES / batches->bytes : WARM_BATCHES;
	uint64_t loops = run->loops / batches->pages + 1, begun;
	static uint64_t page[PAGES];
	void *array = array_of(n, batches->bytes);
	int rc = hl_cpu_pin(run->processor[0]);

	if (rc || !array)
		return rc ? rc : -ENOMEM;
	batches->fill_and_drain(array, n, page, PAGES, loops / 8 + 1);
	begun = bench_now();
	run->done = batches->fill_and_drain(array, n, page, PAGES, loops);
	run->ns = bench_now() - begun;
	return run->done == loops * batches->pages ? 0 : -EIO;
}

static void add_scenario(struct bench_experiment *experiment, const char *name, const char *title,
			 const struct bench_metric *metric, bench_fn run,
			 const struct batches_row *row)
{
	struct bench_scenario *scenario = bench_add_scenario(experiment, name, title, metric, 1);

	if (scenario && row->cold) {
		scenario->loops = COLD_LOOPS;
		scenario->quick_loops = COLD_QUICK_LOOPS;
	}
	bench_add_row(experiment, scenario,
		      &(struct bench_row){
			      .name = "hotline", .kind = BENCH_OURS, .run = run, .what = &row[0] });
	bench_add_row(experiment, scenario,
		      &(struct bench_row){ .name = "16-and-words",
					   .kind = BENCH_AS_IT_WAS,
					   .run = run,
					   .what = &row[1] });
}

static void describe(struct bench_experiment *experiment, const struct bench_machine *machine)
{
	static const struct batches_row warm[] = { { &batches_hotline, false },
						   { &batches_as_it_was, false } };
	static const struct batches_row cold[] = { { &batches_hotline, true },
						   { &batches_as_it_was, true } };

	(void)machine;
	add_scenario(experiment, "lines", "lines that a full batch lies on", &lines_per_batch,
		     count_lines, warm);
	add_scenario(experiment, "warm", "filled and drained, the batch in the cache", &ns_per_page,
		     drain, warm);
	add_scenario(experiment, "cold", "filled and drained, the batch in memory", &ns_per_page,
		     drain, cold);
}

const struct bench_experiment bench_pagevec_size = {
	.name = "pagevec-size",
	.origin = "O4",
	.title = "batches of 15 pages in two lines, or of 16 in three",
	.describe = describe,
};
