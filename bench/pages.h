/* SPDX-License-Identifier: MIT */
/*
 * What the experiments about pages compare: ways to read and write a file by pages that does
 * not fit the memory it may take. One file each in peers/, ours among them.
 *
 * Each run makes a file of its own, whose pages begin with their numbers, and opens it.
 */
#ifndef HL_BENCH_PAGES_H
#define HL_BENCH_PAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/harness.h"

#define BENCH_PAGE 4096u
/* Pages that are asked for at once. */
#define BENCH_PAGES_AT_ONCE 32u

struct pages_setup {
	const char *path;
	uint64_t pages;
	uint64_t limit; /* pages that may be in memory */
	unsigned at_once; /* 1 or BENCH_PAGES_AT_ONCE: for peers that can */
};

struct pages_peer {
	const char *name;
	enum bench_kind kind;
	const char *why_not;
	/* The kernel keeps the pages: the run has to be put under a limit of memory. */
	bool kernel;
	/* Opens the file; 0 or a negative errno value. Closed by the end of the process. */
	int (*open)(const struct pages_setup *setup);
	/* Reads the first word of n pages; 0 or a negative errno value. By any thread. */
	int (*read)(const uint64_t *page, unsigned n, uint64_t *sum);
	/* Fills n pages in a row with a value, whatever they held; NULL: it cannot. */
	int (*write)(uint64_t first, unsigned n, uint64_t value);
	/* Whether a page is in memory; it is used by this if it is. NULL: nobody can tell. */
	bool (*hits)(uint64_t page);
	/* Undoes what the end of the process does not; NULL: nothing. */
	void (*close)(const struct pages_setup *setup);
};

extern const struct pages_peer pages_hotline;
extern const struct pages_peer pages_hotline_optimistic;
/* Several pages at once. */
extern const struct pages_peer pages_hotline_batch;
extern const struct pages_peer pages_hotline_one_by_one;
extern const struct pages_peer pages_pool;
extern const struct pages_peer pages_mmap;
/* No more mapped than the limit. */
extern const struct pages_peer pages_mapped_file;
extern const struct pages_peer pages_mapped_pread;
extern const struct pages_peer pages_pread;
extern const struct pages_peer pages_lmdb;
extern const struct pages_peer pages_uring;
extern const struct pages_peer pages_blocks;
extern const struct pages_peer pages_swap;

enum pages_order { PAGES_RANDOM, PAGES_ZIPF, PAGES_IN_A_ROW };
enum pages_place { PAGES_ON_DISK, PAGES_IN_RAM };

struct pages_row {
	const struct pages_peer *peer;
	enum pages_order order;
	enum pages_place place;
	uint64_t pages, limit;
	unsigned at_once;
	const char *name; /* NULL: the peer's */
};

/* Pages that a thread writes at once. */
#define BENCH_PAGES_WRITTEN 256u

/* Those below are bench_fn whose row has a struct pages_row. */

/* Reads pages. */
int bench_read_pages(struct bench_run *run, const struct bench_row *row);
/* Writes pages: each thread a part of the file from its beginning to its end, again and again. */
int bench_write_pages(struct bench_run *run, const struct bench_row *row);
/* The same, and the time is that of the processors. */
int bench_write_pages_cpu(struct bench_run *run, const struct bench_row *row);
/* Reads a hot set while it scans the rest once; .done is 10 000 times the part of hits. */
int bench_scan_pages(struct bench_run *run, const struct bench_row *row);

struct pages_rows {
	bench_fn run;
	const struct pages_row *row;
	unsigned n;
	/* Pages of a run, and of a quick one: making and filling the file takes longer than most
	 * runs, so there are none to find out how long they are. */
	uint64_t loops, quick_loops;
};

/* Adds rows for pages; why_not as of the peer. */
void bench_add_pages(struct bench_experiment *experiment, struct bench_scenario *scenario,
		     const struct pages_rows *rows);

/* ---- pages_file.c ---- */

/* Makes a file of pages below a directory of its kind, on the device and in nobody's cache;
 * its path, or NULL with errno. It has no name any more when the process ends. */
const char *bench_pages_file(enum pages_place place, uint64_t pages);

/* ---- cgroup.c ---- */

/* NULL: processes can be put under a limit of memory here; otherwise why not. */
const char *bench_no_limit(void);
/* Puts the process under one: 0 or a negative errno value. */
int bench_limit_memory(uint64_t bytes);
/* Takes it out again. */
void bench_unlimit_memory(void);

#endif
