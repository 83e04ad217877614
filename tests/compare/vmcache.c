// SPDX-License-Identifier: MIT
/*
 * Ours for tests/compare/vmcache.py: reads pages of a file at random through a cache.
 *
 *	vmcache FILE PAGES LIMIT THREADS AT_ONCE SECONDS
 *
 * Prints how many pages were read a second, and how many of them from the file.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <hotline/pagecache.h>

#define BYTES_READ 120

static struct hl_pagecache *cache;
static uint64_t pages;
static unsigned at_once;
static double seconds;
static _Atomic(uint64_t) total, sum;

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void use(const void *data)
{
	const unsigned char *byte = data;
	uint64_t local = 0;

	for (unsigned i = 0; i < BYTES_READ; i++)
		local += byte[i];
	atomic_fetch_add_explicit(&sum, local, memory_order_relaxed);
}

static void read_some(uint64_t *random)
{
	uint64_t page[HL_PAGES_AT_ONCE];
	void *data[HL_PAGES_AT_ONCE];

	for (unsigned i = 0; i < at_once; i++) {
		*random = *random * 6364136223846793005u + 1442695040888963407u;
		page[i] = (uint64_t)(((unsigned __int128)*random * pages) >> 64);
	}
	if (at_once == 1 ? hl_page_fix(cache, page[0], HL_PAGE_SHARED, &data[0])
			 : hl_page_fix_many(cache, page, at_once, HL_PAGE_SHARED, data))
		exit(2);
	for (unsigned i = 0; i < at_once; i++) {
		use(data[i]);
		hl_page_unfix(cache, data[i]);
	}
}

static void *work(void *arg)
{
	uint64_t random = (uintptr_t)arg, n = 0;
	double until = now() + seconds;

	while (now() < until) {
		for (unsigned i = 0; i < 64; i++, n += at_once)
			read_some(&random);
	}
	atomic_fetch_add(&total, n);
	return NULL;
}

static void run(unsigned threads)
{
	static uintptr_t seed; /* other pages each time */
	pthread_t thread[64];

	total = 0;
	for (unsigned i = 0; i < threads; i++) {
		seed += 0x9e3779b97f4a7c15;
		if (pthread_create(&thread[i], NULL, work, (void *)seed))
			exit(3);
	}
	for (unsigned i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
}

int main(int argc, char **argv)
{
	struct hl_pagecache_options options = { .limit = 0 };
	struct hl_pagecache_stats before, after;
	unsigned threads;
	double begin;

	if (argc != 7)
		return 1;
	pages = strtoull(argv[2], NULL, 0);
	options.limit = strtoull(argv[3], NULL, 0);
	options.pages = pages;
	threads = (unsigned)strtoul(argv[4], NULL, 0);
	at_once = (unsigned)strtoul(argv[5], NULL, 0);
	if (!threads || threads > 64 || !at_once || at_once > HL_PAGES_AT_ONCE ||
	    hl_pagecache_open(&cache, argv[1], &options))
		return 1;
	/* Until all memory is in use. */
	seconds = 0.5;
	do {
		run(threads);
		hl_pagecache_get_stats(cache, &before);
	} while (before.free > before.total / 100);
	seconds = strtod(argv[6], NULL);
	begin = now();
	run(threads);
	seconds = now() - begin;
	hl_pagecache_get_stats(cache, &after);
	printf("%.0f %.0f\n", (double)total / seconds,
	       (double)(after.pages_read - before.pages_read) / seconds);
	return hl_pagecache_close(cache) != 0;
}
