/* SPDX-License-Identifier: MIT */
/*
 * Runs of calls to all other threads at once, from one thread or from all.
 */
#ifndef HL_BENCH_STORM_H
#define HL_BENCH_STORM_H

#include "bench/harness.h"

/* A way to do such calls; see workloads/. */
struct broadcast {
	/* Each thread of its own: becomes number `self` of them. 0 or a negative errno value. */
	int (*join)(unsigned self);
	/* The same when all have joined. */
	void (*meet)(unsigned threads);
	/* Runs what was sent to the calling thread. */
	void (*poll)(void);
	/* Has func(info) run by all other threads and waits until it has. */
	void (*call)(void (*func)(void *info), void *info);
};

extern const struct broadcast broadcast_hotline, broadcast_shared;

/* bench_row.what */
struct storm_row {
	const struct broadcast *broadcast;
	bool from_all; /* all threads call, and serve meanwhile; or the first alone */
};

int bench_storm(struct bench_run *run, const struct bench_row *row);

#endif
