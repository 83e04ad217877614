// SPDX-License-Identifier: MIT
/*
 * Litmus tests of RCU: two threads begin together, each does two things, and what both see
 * together must not be what no order allows. Message passing, and store buffering and message
 * passing around a grace period, for each scheme of reading and each way of waiting.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <hotline/cpu.h>
#include <hotline/rcu.h>

#include "../tools/refuse.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ROUNDS 5000
#else
#define ROUNDS 15000
#endif

/* Written in one round and read in it, each on a line of its own. */
static struct {
	_Atomic(int) value HL_CACHELINE_ALIGNED;
} x, y;
static struct {
	int *pointer HL_CACHELINE_ALIGNED;
} published;
static int message;
static int seen[4];

enum scheme { GENERAL, QUIESCENT };
enum way { SYNCHRONIZE, EXPEDITED, POLL, CALL };

static enum scheme scheme;
static enum way way;
static atomic_int called;

static int get(_Atomic(int) *value)
{
	return atomic_load_explicit(value, memory_order_relaxed);
}

static void set(_Atomic(int) *value, int to)
{
	atomic_store_explicit(value, to, memory_order_relaxed);
}

static void lock(void)
{
	if (scheme == GENERAL)
		hl_rcu_read_lock();
	else
		hl_rcu_read_lock_qs();
}

static void unlock(void)
{
	if (scheme == GENERAL)
		hl_rcu_read_unlock();
	else
		hl_rcu_read_unlock_qs();
}

static void is_called(void *info)
{
	(void)info;
	atomic_store_explicit(&called, 1, memory_order_release);
}

static void wait_for_readers(void)
{
	uint64_t mark;

	switch (way) {
	case SYNCHRONIZE:
		hl_synchronize_rcu();
		break;
	case EXPEDITED:
		hl_synchronize_rcu_expedited();
		break;
	case POLL:
		mark = hl_get_state_synchronize_rcu();
		while (!hl_poll_state_synchronize_rcu(mark))
			;
		break;
	case CALL:
		atomic_store(&called, 0);
		hl_call_rcu_ptr(NULL, is_called);
		while (!atomic_load_explicit(&called, memory_order_acquire))
			sched_yield();
	}
}

/* ---- Store buffering: who reads stores first, who waits stores before ---- */

static void buffering_reader(void)
{
	lock();
	set(&x.value, 1);
	seen[0] = get(&y.value);
	unlock();
}

static void buffering_writer(void)
{
	set(&y.value, 1);
	wait_for_readers();
	seen[1] = get(&x.value);
}

static bool buffering_is_wrong(void)
{
	return !seen[0] && !seen[1];
}

/* ---- Message passing around a grace period ---- */

static void passing_reader(void)
{
	lock();
	seen[0] = get(&y.value);
	seen[1] = get(&x.value);
	unlock();
}

static void passing_writer(void)
{
	set(&x.value, 1);
	wait_for_readers();
	set(&y.value, 1);
}

static bool passing_is_wrong(void)
{
	return seen[0] && !seen[1];
}

/* ---- Message passing by a pointer ---- */

static void pointer_reader(void)
{
	const int *pointer;

	lock();
	pointer = hl_rcu_dereference(published.pointer);
	seen[0] = pointer ? *pointer : 1;
	unlock();
}

static void pointer_writer(void)
{
	message = 1;
	hl_rcu_assign_pointer(published.pointer, &message);
	/* The message is taken back when nobody reads it. */
	hl_rcu_assign_pointer(published.pointer, NULL);
	wait_for_readers();
	message = 0;
}

static bool pointer_is_wrong(void)
{
	return seen[0] != 1;
}

/* ---- Running them ---- */

struct litmus {
	void (*reader)(void);
	void (*writer)(void);
	bool (*is_wrong)(void);
};

static const struct litmus *litmus;
static int rounds;
static atomic_int at[2]; /* the round that each has finished */

/* Both go on together, the one now a little before the other, now after it. */
static void meet(int me, int place)
{
	static __thread uint32_t random = 1;

	atomic_store(&at[me], place);
	for (int spins = 0; atomic_load(&at[1 - me]) < place; spins++) {
		if (spins > 1000)
			sched_yield();
		hl_rcu_quiescent_state();
	}
	random = random * 1664525 + 1013904223;
	for (volatile uint32_t i = random >> 25; i; i--)
		;
}

static void *read_rounds(void *arg)
{
	if (scheme == QUIESCENT)
		hl_rcu_set_quiescent(true);
	for (int i = 1; i <= rounds; i++) {
		meet(1, 2 * i - 1);
		litmus->reader();
		hl_rcu_quiescent_state();
		meet(1, 2 * i);
	}
	return arg;
}

static void run(const struct litmus *test)
{
	int wrong = 0;

	litmus = test;
	for (scheme = GENERAL; scheme <= QUIESCENT; scheme++) {
		for (way = SYNCHRONIZE; way <= CALL; way++) {
			pthread_t reader;

			/* A call waits for another thread to run it. */
			rounds = way == CALL ? ROUNDS / 50 : ROUNDS;
			at[0] = at[1] = 0;
			assert_int_equal(pthread_create(&reader, NULL, read_rounds, NULL), 0);
			for (int i = 1; i <= rounds; i++) {
				x.value = y.value = 0;
				meet(0, 2 * i - 1);
				test->writer();
				meet(0, 2 * i);
				wrong += test->is_wrong();
			}
			pthread_join(reader, NULL);
			assert_int_equal(wrong, 0);
		}
	}
}

static void stores_before_a_grace_period_and_in_a_section_meet(void **state)
{
	static const struct litmus test = { buffering_reader, buffering_writer,
					    buffering_is_wrong };

	(void)state;
	run(&test);
}

static void no_section_sees_both_sides_of_a_grace_period(void **state)
{
	static const struct litmus test = { passing_reader, passing_writer, passing_is_wrong };

	(void)state;
	run(&test);
}

static void what_a_pointer_leads_to_is_complete_and_stays(void **state)
{
	static const struct litmus test = { pointer_reader, pointer_writer, pointer_is_wrong };

	(void)state;
	run(&test);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stores_before_a_grace_period_and_in_a_section_meet),
		cmocka_unit_test(no_section_sees_both_sides_of_a_grace_period),
		cmocka_unit_test(what_a_pointer_leads_to_is_complete_and_stays),
	};

	return cmocka_run_group_tests(tests, refuse_membarrier, NULL);
}
