/* SPDX-License-Identifier: MIT */
/*
 * Many things made by several threads, and taken in their order: the result is
 * the same for any number of threads, and no more is in memory than a chunk a
 * thread.
 */
#ifndef HL_LAYOUT_CHUNKS_H
#define HL_LAYOUT_CHUNKS_H

#include <stddef.h>
#include <stdint.h>

struct hl_chunks {
	uint32_t n;		/* how many things there are */
	uint32_t chunk;		/* how many are made at a time */
	unsigned threads;	/* how many threads may work, at least 1 */
	size_t scratch_size;	/* each thread has that much memory of its own, zero at first */
	void *arg;

	/* Makes the things from first on, in scratch.  Several run at once. */
	int (*make)(void *arg, void *scratch, uint32_t first, uint32_t n);
	/* Takes what was made last in scratch.  One at a time, in the order. */
	int (*take)(void *arg, void *scratch);
	/* Frees what scratch holds at the end; may be NULL. */
	void (*drop)(void *scratch);
};

/* Runs it all.  0, or the first failure of make or take, whereupon it stops; -ENOMEM. */
int hl_chunks_run(const struct hl_chunks *chunks);

/* As many threads as are asked for, or where 0 is asked for, as many as there
 * are processors to run on, 8 at most. */
unsigned hl_chunks_threads(unsigned asked);

#endif
