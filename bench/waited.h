/* SPDX-License-Identifier: MIT */
/*
 * Runs of calls that are waited for, between two threads.
 */
#ifndef HL_BENCH_WAITED_H
#define HL_BENCH_WAITED_H

#include "bench/peer.h"

enum waited_mode {
	WAITED_POLLING,
	WAITED_IDLE, /* the target is asleep when the call comes */
	WAITED_INTERRUPTED, /* it computes and looks for nothing */
};

/* bench_row.what */
struct waited_row {
	const struct transport *transport;
	enum waited_mode mode;
};

int bench_waited(struct bench_run *run, const struct bench_row *row);

#endif
