/* SPDX-License-Identifier: MIT */
/*
 * A queue of messages under a mutex, for peers that only wake.
 */
#ifndef HL_BENCH_LOCKED_QUEUE_H
#define HL_BENCH_LOCKED_QUEUE_H

#include <pthread.h>

#include "bench/peer.h"

struct locked_queue {
	pthread_mutex_t lock;
	/* Under the lock. */
	uint64_t head, tail;
	struct message slot[BENCH_QUEUE];
};

/* Puts in as many of n as there is room for. The lock is held. */
unsigned locked_queue_put(struct locked_queue *queue, const struct message *message, unsigned n);
/* Takes out n at most. The lock is held. */
unsigned locked_queue_take(struct locked_queue *queue, struct message *message, unsigned n);
/* Takes the lock, takes all there is and runs it without the lock. */
unsigned locked_queue_run(struct locked_queue *queue);

#endif
