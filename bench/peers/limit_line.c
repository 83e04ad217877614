// SPDX-License-Identifier: MIT
/*
 * The limit of a waited call: one line that goes to the other processor and back, with
 * nothing in it but a number.
 */
#include <stdatomic.h>

#include <hotline/cacheline.h>

#include "bench/peers/transports.h"
#include "bench/clock.h"

static struct line {
	/* Written by the caller, and by the target in answer: one round is two steps. */
	_Atomic(uint64_t) step;
} HL_CACHELINE_PAIR_ALIGNED line;

static void *open_line(unsigned senders)
{
	(void)senders;
	atomic_store_explicit(&line.step, 0, memory_order_relaxed);
	return &line;
}

static unsigned poll_line(void *receiver)
{
	struct line *l = receiver;
	uint64_t step = atomic_load_explicit(&l->step, memory_order_acquire);

	if (step % 2 == 0)
		return 0;
	/* Release and acquire on both sides, as a call needs them. */
	atomic_store_explicit(&l->step, step + 1, memory_order_release);
	return 1;
}

static void *join(void *receiver, unsigned sender)
{
	(void)sender;
	return receiver;
}

static void call(void *link, void (*func)(void *info), void *info)
{
	struct line *l = link;
	uint64_t step = atomic_load_explicit(&l->step, memory_order_relaxed);

	(void)func;
	(void)info;
	atomic_store_explicit(&l->step, step + 1, memory_order_release);
	while (atomic_load_explicit(&l->step, memory_order_acquire) != step + 2)
		bench_relax();
}

const struct transport transport_line = {
	.bare = true,
	.open = open_line,
	.poll = poll_line,
	.join = join,
	.call = call,
};
