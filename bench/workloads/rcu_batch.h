/* SPDX-License-Identifier: MIT */
/*
 * What waits for a grace period and is then run: ways to keep it.
 */
#ifndef HL_BENCH_RCU_BATCH_H
#define HL_BENCH_RCU_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct batch {
	/* Once; NULL: nothing to do. 0 or a negative errno value. */
	int (*open)(void);
	void (*begin)(void);
	void (*add)(void *object);
	/* Runs all that was added: each adds one to the word of its object. */
	void (*run)(void);
	size_t word; /* where it is */
};

extern const struct batch batch_neither, batch_prefetch, batch_hoisted, batch_both;
/* Ours: the library's own path from its batches to the callbacks. */
extern const struct batch batch_hotline;
/* An array of pointers, prefetched ahead. */
extern const struct batch batch_array;

#endif
