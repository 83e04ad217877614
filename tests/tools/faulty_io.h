/* SPDX-License-Identifier: MIT */
/*
 * I/O for the page cache in which things go wrong on demand.
 */
#ifndef FAULTY_IO_H
#define FAULTY_IO_H

#include <stdatomic.h>
#include <stdbool.h>

#include "pagecache/io.h"

/* Negative errno values to fail with; 0: does not. */
extern _Atomic(int) faulty_read, faulty_write, faulty_sync;
/* Only what touches this page of 4096 bytes fails; -1: all. */
extern _Atomic(long) faulty_page;
/* Requests do this many bytes at most; 0: all. */
extern _Atomic(unsigned) faulty_short;
/* One in so many requests fails, at random; 0: none. Then faulty_random_error(). */
extern _Atomic(unsigned) faulty_one_in;
/* The n-th I/O from when it is set, syncs counted, and `faulty_times` in all go wrong; 0: none.
 * How: a negative errno value, or so many bytes are done (FAULTY_SHORT + 0, and more). */
#define FAULTY_SHORT 1
extern _Atomic(long) faulty_at, faulty_times;
extern _Atomic(int) faulty_how;
/* Syncs say yes and do nothing, for tests that do very many. */
extern _Atomic(bool) faulty_no_sync;
/* One in so many I/Os is slow: others run meanwhile; 0: none. */
extern _Atomic(unsigned) faulty_slow_one_in;
/* Called before each request; may be NULL. */
extern void (*_Atomic faulty_before)(const struct hl_io_request *request);
/* What was done; a run is a submission of more than one request. */
extern _Atomic(unsigned long) faulty_runs, faulty_reads, faulty_writes, faulty_syncs, faulty_faults,
	faulty_ios;

/* As it was in the beginning. */
void faulty_reset(void);
void faulty_seed(unsigned seed);

extern const struct hl_io faulty_io;

#endif
