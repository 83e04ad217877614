// SPDX-License-Identifier: MIT
/*
 * Whether the barrier that CPUs rely on when they change how they hear of work orders what
 * it says: the litmus test of store buffering, with the one thread as a sender does it (a store
 * and a load, and nothing between them but the compiler's order) and the other as a CPU
 * that goes to sleep does it. Both reading 0 is what the barrier forbids; without it this
 * happens, which is shown first.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "cpu/internal.h"

#include "../tools/refuse.h"

#define ROUNDS_WITHOUT 100000
/* Where membarrier fails, each takes a millisecond. */
#if defined(REFUSE_MEMBARRIER_LATER)
#define ROUNDS_WITH 500
#else
#define ROUNDS_WITH 20000
#endif

static struct {
	HL_CACHELINE_GROUP_BEGIN(x) HL_CACHELINE_ALIGNED;
	atomic_int x;
	HL_CACHELINE_GROUP_END(x);
	HL_CACHELINE_GROUP_BEGIN(y) HL_CACHELINE_ALIGNED;
	atomic_int y;
	HL_CACHELINE_GROUP_END(y);
	/* The round that has begun, and the one that the other thread has finished. */
	HL_CACHELINE_GROUP_BEGIN(round) HL_CACHELINE_ALIGNED;
	atomic_int begun;
	HL_CACHELINE_GROUP_END(round);
	HL_CACHELINE_GROUP_BEGIN(finished) HL_CACHELINE_ALIGNED;
	atomic_int finished;
	int y_seen;
	HL_CACHELINE_GROUP_END(finished);
} shared;

static void pass_time(unsigned *random, unsigned most)
{
	*random = *random * 1103515245u + 12345u;
	for (volatile unsigned i = (*random >> 16) % most; i; i--)
		;
}

static int store_then_load(atomic_int *mine, atomic_int *other, void (*between)(void))
{
	atomic_store_explicit(mine, 1, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	if (between)
		between();
	return atomic_load_explicit(other, memory_order_relaxed);
}

/* Looks for the next round a while before it gives the processor away. */
static void wait_for(atomic_int *round, int value)
{
	for (unsigned spins = 1; atomic_load_explicit(round, memory_order_acquire) != value;
	     spins++)
		if (spins % 1024 == 0)
			sched_yield();
}

static void *be_the_sender(void *arg)
{
	int rounds = *(int *)arg;
	unsigned random = 1;

	for (int round = 1; round <= rounds; round++) {
		wait_for(&shared.begun, round);
		pass_time(&random, 32);
		shared.y_seen = store_then_load(&shared.x, &shared.y, NULL);
		atomic_store_explicit(&shared.finished, round, memory_order_release);
	}
	return NULL;
}

/* How often neither saw the other. */
static int forbidden_outcomes(int rounds, void (*between)(void))
{
	unsigned random = 2;
	pthread_t sender;
	int n = 0;

	shared.begun = shared.finished = 0;
	assert_int_equal(pthread_create(&sender, NULL, be_the_sender, &rounds), 0);
	for (int round = 1; round <= rounds; round++) {
		int x_seen;

		atomic_store(&shared.x, 0);
		atomic_store(&shared.y, 0);
		atomic_store(&shared.begun, round);
		pass_time(&random, 512); /* until the other has heard of it, more or less */
		x_seen = store_then_load(&shared.y, &shared.x, between);
		wait_for(&shared.finished, round);
		n += !x_seen && !shared.y_seen;
	}
	pthread_join(sender, NULL);
	return n;
}

static void the_barrier_forbids_what_happens_without_it(void **state)
{
	int without, with;

	(void)state;
	if (!hl_barrier_usable()) {
		print_message("# there is no membarrier here: senders fence themselves\n");
		skip();
	}
	without = forbidden_outcomes(ROUNDS_WITHOUT, NULL);
	with = forbidden_outcomes(ROUNDS_WITH, hl_barrier_all);
	print_message("# forbidden outcomes: %d of %d without, %d of %d with\n", without,
		      ROUNDS_WITHOUT, with, ROUNDS_WITH);
	assert_int_equal(with, 0);
	if (!without) {
		print_message("# one processor, or one that keeps the order: nothing is shown\n");
		skip();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_barrier_forbids_what_happens_without_it),
	};

	return cmocka_run_group_tests(tests, refuse_membarrier, NULL);
}
