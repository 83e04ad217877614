// SPDX-License-Identifier: MIT
/*
 * O4: taking the memory of clean pages back, in batches, while another processor is busy in the
 * same process. Mapped: the pages of a batch lie scattered in a mapping of the file, and are
 * unmapped by one call, which has every processor flush what it knows of them. Fixed: they leave
 * frames that never move, and no processor need be told.
 */
#include "bench/experiments.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <hotline/cpu.h>

#include "bench/clock.h"
#include "bench/pages.h"
#include "pagecache/table.h"

#define PAGES 4096u
/* Coprime to the number of pages. */
#define STRIDE 1237u
#define MOST_BATCH 512u

struct reclaim_row {
	unsigned batch;
	int (*open)(const char *path);
	/* Has all pages in memory. */
	int (*fill)(void);
	/* Takes back the memory of n pages, from the i-th of the scattered order on. */
	int (*reclaim)(unsigned i, unsigned n);
};

static unsigned scattered(unsigned i)
{
	return i * STRIDE % PAGES;
}

/* ---- Mapped ---- */

static char *map;
static int self;

static int open_map(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	self = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (fd < 0 || self < 0)
		return -errno;
	map = mmap(NULL, (size_t)PAGES * BENCH_PAGE, PROT_READ, MAP_SHARED, fd, 0);
	return map == MAP_FAILED ? -errno : 0;
}

static int fill_map(void)
{
	return madvise(map, (size_t)PAGES * BENCH_PAGE, MADV_POPULATE_READ) ? -errno : 0;
}

static int reclaim_map(unsigned i, unsigned n)
{
	struct iovec iov[MOST_BATCH];

	for (unsigned k = 0; k < n; k++)
		iov[k] = (struct iovec){ map + (size_t)scattered(i + k) * BENCH_PAGE, BENCH_PAGE };
	return syscall(SYS_process_madvise, self, iov, (size_t)n, MADV_DONTNEED, 0) ==
			       (long)n * BENCH_PAGE
		       ? 0
		       : -errno;
}

/* ---- Fixed frames ---- */

static struct hl_pagecache *cache;

static int open_cache(const char *path)
{
	const struct hl_pagecache_options options = { .limit = (size_t)PAGES * BENCH_PAGE,
						      .flags = HL_PAGECACHE_READ_ONLY };

	return hl_pagecache_open(&cache, path, &options);
}

static int fill_cache(void)
{
	for (uint64_t page = 0; page < PAGES; page++) {
		void *data;
		int rc = hl_page_fix(cache, page, HL_PAGE_SHARED, &data);

		if (rc)
			return rc;
		hl_page_unfix(cache, data);
	}
	return 0;
}

static int reclaim_frames(unsigned i, unsigned n)
{
	void *frame[MOST_BATCH];

	for (unsigned k = 0; k < n; k++) {
		frame[k] = hl_table_find(cache, scattered(i + k));
		if (!frame[k] || !hl_evict(cache, frame[k]))
			return -EBUSY;
	}
	hl_frames_put(cache, hl_local_get(cache), frame, n);
	return 0;
}

/* ---- The run ---- */

static atomic_bool stop;

/* Reads memory of the process, as a program does. */
static void *be_busy(void *processor)
{
	static char memory[1 << 16];
	unsigned sum = 0;

	hl_cpu_pin(*(const int *)processor);
	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		for (size_t i = 0; i < sizeof(memory); i += 64)
			sum += *(volatile char *)&memory[i];
	}
	return (void *)(uintptr_t)sum;
}

static int reclaim_all(struct bench_run *run, const struct reclaim_row *what)
{
	int rc = what->fill();
	uint64_t begun = bench_now();

	for (unsigned i = 0; i + what->batch <= PAGES && !rc; i += what->batch) {
		rc = what->reclaim(i, what->batch);
		run->done += what->batch;
	}
	run->ns += bench_now() - begun;
	return rc;
}

static int run_reclaim(struct bench_run *run, const struct bench_row *row)
{
	const struct reclaim_row *what = row->what;
	const char *path = bench_pages_file(PAGES_IN_RAM, PAGES);
	pthread_t busy;
	int rc = path ? what->open(path) : -errno;

	if (!rc)
		rc = hl_cpu_pin(run->processor[0]);
	if (!rc)
		rc = -pthread_create(&busy, NULL, be_busy, (void *)&run->processor[1]);
	if (rc)
		return rc;
	while (run->done < run->loops && !rc)
		rc = reclaim_all(run, what);
	atomic_store_explicit(&stop, true, memory_order_relaxed);
	pthread_join(busy, NULL);
	return rc;
}

static double ns_per_page(uint64_t ns, uint64_t done)
{
	return (double)ns / (double)done;
}

static const struct bench_metric bench_ns_per_page = {
	.name = "ns_per_page",
	.unit = "ns a page",
	.least_loops = PAGES,
	.value = ns_per_page,
};

static void describe(struct bench_experiment *experiment, const struct bench_machine *machine)
{
	static const unsigned sizes[] = { 1, 15, 31, 64, 512 };
	static struct reclaim_row rows[sizeof(sizes) / sizeof(sizes[0])][2];

	(void)machine;
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct bench_scenario *scenario;
		char name[32];

		rows[i][0] =
			(struct reclaim_row){ sizes[i], open_cache, fill_cache, reclaim_frames };
		rows[i][1] = (struct reclaim_row){ sizes[i], open_map, fill_map, reclaim_map };
		snprintf(name, sizeof(name), "batches-of-%u", sizes[i]);
		scenario = bench_add_scenario(experiment, name, "clean pages, another CPU busy",
					      &bench_ns_per_page, 2);
		bench_add_row(experiment, scenario,
			      &(struct bench_row){ .name = "hotline",
						   .kind = BENCH_OURS,
						   .run = run_reclaim,
						   .what = &rows[i][0] });
		bench_add_row(experiment, scenario,
			      &(struct bench_row){ .name = "mapped",
						   .kind = BENCH_PEER,
						   .run = run_reclaim,
						   .what = &rows[i][1] });
	}
}

const struct bench_experiment bench_reclaim_batch = {
	.name = "reclaim-batch",
	.origin = "O4",
	.title = "taking memory back, mapped or in fixed frames",
	.describe = describe,
};
