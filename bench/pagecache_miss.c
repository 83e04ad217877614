// SPDX-License-Identifier: MIT
/*
 * O4: reading a file four times as large as the memory it may take, on the device, and in
 * memory, where the device does not hide what the software costs. What the kernel keeps is
 * held to the same memory by a cgroup. In memory it takes nothing back; there a mapping is
 * compared of which no more is mapped than the limit.
 */
#include "bench/experiments.h"

#include <stddef.h>

#include "bench/pages.h"

#define LIMIT 1024u
#define MISS(peer, order, place, at_once) \
	{ \
		&peer, order, place, 4 * LIMIT, LIMIT, at_once, NULL \
	}
#define ONE_BY_ONE(order) \
	{ \
		&pages_uring, order, PAGES_ON_DISK, 4 * LIMIT, LIMIT, 1, "io_uring-one-by-one" \
	}
#define ON_DISK(order) \
	{ \
		MISS(pages_hotline_batch, order, PAGES_ON_DISK, BENCH_PAGES_AT_ONCE), \
			MISS(pages_hotline_one_by_one, order, PAGES_ON_DISK, 1), \
			MISS(pages_uring, order, PAGES_ON_DISK, BENCH_PAGES_AT_ONCE), \
			ONE_BY_ONE(order), MISS(pages_mapped_pread, order, PAGES_ON_DISK, 1), \
			MISS(pages_pool, order, PAGES_ON_DISK, 1), \
			MISS(pages_pread, order, PAGES_ON_DISK, 1), \
			MISS(pages_mmap, order, PAGES_ON_DISK, 1), \
			MISS(pages_lmdb, order, PAGES_ON_DISK, 1), \
	}

static void add(struct bench_experiment *experiment, const char *name, const char *title,
		unsigned threads, const struct pages_row *rows, unsigned n)
{
	bool on_disk = rows->place == PAGES_ON_DISK;

	bench_add_pages(experiment,
			bench_add_scenario(experiment, name, title, &bench_pages_per_second,
					   threads),
			&(struct pages_rows){ bench_read_pages, rows, n, on_disk ? 8192 : 32768,
					      on_disk ? 1024 : 4096 });
}

static void describe(struct bench_experiment *experiment, const struct bench_machine *machine)
{
	static const struct pages_row random[] = ON_DISK(PAGES_RANDOM);
	static const struct pages_row zipf[] = ON_DISK(PAGES_ZIPF);
	static const struct pages_row ram[] = {
		MISS(pages_hotline_batch, PAGES_RANDOM, PAGES_IN_RAM, BENCH_PAGES_AT_ONCE),
		MISS(pages_hotline_one_by_one, PAGES_RANDOM, PAGES_IN_RAM, 1),
		MISS(pages_uring, PAGES_RANDOM, PAGES_IN_RAM, BENCH_PAGES_AT_ONCE),
		MISS(pages_mapped_file, PAGES_RANDOM, PAGES_IN_RAM, 1),
		MISS(pages_mapped_pread, PAGES_RANDOM, PAGES_IN_RAM, 1),
		MISS(pages_pool, PAGES_RANDOM, PAGES_IN_RAM, 1),
	};
	static const struct pages_row in_a_row[] = {
		MISS(pages_hotline, PAGES_IN_A_ROW, PAGES_ON_DISK, 1),
		MISS(pages_blocks, PAGES_IN_A_ROW, PAGES_ON_DISK, 1),
	};
	const unsigned n = sizeof(random) / sizeof(random[0]);

	(void)machine;
	add(experiment, "random-1", "at random, one thread", 1, random, n);
	add(experiment, "random-2", "at random, two threads", 2, random, n);
	add(experiment, "zipf-2", "some pages more often than others, two threads", 2, zipf, n);
	add(experiment, "in-a-row", "from the beginning to the end, one thread", 1, in_a_row,
	    sizeof(in_a_row) / sizeof(in_a_row[0]));
	add(experiment, "ram-1", "at random, the file in memory, one thread", 1, ram,
	    sizeof(ram) / sizeof(ram[0]));
	add(experiment, "ram-2", "at random, the file in memory, two threads", 2, ram,
	    sizeof(ram) / sizeof(ram[0]));
}

const struct bench_experiment bench_pagecache_miss = {
	.name = "pagecache-miss",
	.origin = "O4",
	.title = "a file four times as large as memory",
	.describe = describe,
};
