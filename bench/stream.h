/* SPDX-License-Identifier: MIT */
/*
 * Runs of messages that nobody waits for, from one thread or several to one.
 */
#ifndef HL_BENCH_STREAM_H
#define HL_BENCH_STREAM_H

#include "bench/peer.h"

/* bench_row.what */
struct stream_row {
	const struct transport *transport;
	bool to_itself; /* the target is a sender, too */
	unsigned burst; /* messages that a sender hands over at once */
};

/* Thread 0 is the target, all others send. */
int bench_stream(struct bench_run *run, const struct bench_row *row);

#endif
