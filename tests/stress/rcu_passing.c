// SPDX-License-Identifier: MIT
/*
 * What is handed from one thread to another through RCU, with nothing else between them: plain
 * memory, written on one side and read or written on the other. Values are checked;
 * ThreadSanitizer sees what a missing acquire or release leaves unordered, also on
 * processors that would keep the order anyway. tests/mutants.py takes them out one at a time.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <hotline/cpu.h>
#include <hotline/rcu.h>

#include "../tools/pair.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define ROUNDS 300
#define CALLS 20000
#else
#define ROUNDS 3000
#define CALLS 100000
#endif

static struct pair pair;
static int old_value; /* plain: what is handed over */
static atomic_bool quiescent;
static atomic_int wrong;

/* Tells the other thread something and orders nothing. */
static void tell(atomic_ullong *word, uint64_t value)
{
	atomic_store_explicit(word, value, memory_order_relaxed);
}

static uint64_t is_told(atomic_ullong *word)
{
	uint64_t value;

	while (!(value = atomic_load_explicit(word, memory_order_relaxed))) {
		hl_rcu_quiescent_state();
		sched_yield();
	}
	return value;
}

static void check(bool condition)
{
	if (!condition)
		atomic_fetch_add(&wrong, 1);
}

static void in_a_thread(void *(*function)(void *), pthread_t *thread)
{
	assert_int_equal(pthread_create(thread, NULL, function, NULL), 0);
}

/* ---- From a section to who waited for it ---- */

static atomic_ullong in_section, its_mark, is_over, begun;

static void *read_the_old(void *arg)
{
	if (quiescent)
		hl_rcu_set_quiescent(true);
	for (int round = 1; round <= ROUNDS; round++) {
		pair_meet(&pair, 1, 2 * round - 1, hl_rcu_quiescent_state);
		if (!quiescent)
			hl_rcu_read_lock();
		tell(&in_section, 1);
		check(old_value == 1);
		if (!quiescent)
			hl_rcu_read_unlock();
		hl_rcu_quiescent_state();
		pair_meet(&pair, 1, 2 * round, hl_rcu_quiescent_state);
	}
	return arg;
}

static void rounds_of(void *(*reader)(void *), void (*writer)(void))
{
	pthread_t thread;

	for (int by_quiescent_states = 0; by_quiescent_states < 2; by_quiescent_states++) {
		quiescent = by_quiescent_states;
		pair = (struct pair){ 0 };
		in_a_thread(reader, &thread);
		for (int round = 1; round <= ROUNDS; round++) {
			old_value = 1;
			in_section = its_mark = is_over = begun = 0;
			pair_meet(&pair, 0, 2 * round - 1, NULL);
			writer();
			pair_meet(&pair, 0, 2 * round, NULL);
		}
		pthread_join(thread, NULL);
	}
	assert_int_equal(wrong, 0);
}

static void wait_and_write(void)
{
	is_told(&in_section);
	hl_synchronize_rcu();
	old_value = 2;
}

static void what_a_section_read_may_be_written_after_it(void **state)
{
	(void)state;
	rounds_of(read_the_old, wait_and_write);
}

/* ---- The same, when another thread found that the grace period is over ---- */

static void *read_and_find_it_over(void *arg)
{
	if (quiescent)
		hl_rcu_set_quiescent(true);
	for (int round = 1; round <= ROUNDS; round++) {
		uint64_t mark;

		pair_meet(&pair, 1, 2 * round - 1, hl_rcu_quiescent_state);
		if (!quiescent)
			hl_rcu_read_lock();
		tell(&in_section, 1);
		check(old_value == 1);
		if (!quiescent)
			hl_rcu_read_unlock();
		mark = is_told(&its_mark);
		while (!hl_poll_state_synchronize_rcu(mark - 1))
			hl_rcu_quiescent_state();
		tell(&is_over, 1);
		pair_meet(&pair, 1, 2 * round, hl_rcu_quiescent_state);
	}
	return arg;
}

static void be_told_and_write(void)
{
	uint64_t mark;

	is_told(&in_section);
	mark = hl_get_state_synchronize_rcu();
	tell(&its_mark, mark + 1); /* 0 is none */
	is_told(&is_over);
	check(!hl_cond_synchronize_rcu(mark)); /* which only looks */
	old_value = 2;
}

static void who_finds_a_grace_period_over_may_write(void **state)
{
	(void)state;
	rounds_of(read_and_find_it_over, be_told_and_write);
}

/* ---- From before a grace period to a section that begins in it ---- */

static void *read_the_new(void *arg)
{
	if (quiescent)
		hl_rcu_set_quiescent(true);
	for (int round = 1; round <= ROUNDS; round++) {
		pair_meet(&pair, 1, 2 * round - 1, NULL);
		while (!atomic_load_explicit(&begun, memory_order_relaxed))
			sched_yield();
		if (quiescent)
			hl_rcu_quiescent_state();
		else
			hl_rcu_read_lock();
		check(old_value == 3);
		if (!quiescent)
			hl_rcu_read_unlock();
		pair_meet(&pair, 1, 2 * round, NULL);
	}
	return arg;
}

static void write_and_begin(void)
{
	old_value = 3;
	hl_start_poll_synchronize_rcu();
	tell(&begun, 1);
}

static void a_section_that_begins_later_sees_what_was_before(void **state)
{
	(void)state;
	rounds_of(read_the_new, write_and_begin);
}

/* ---- From who gives to the call, from the call to who waits for it ---- */

static int numbers[CALLS], next_number; /* plain */

static void take_number(void *number)
{
	check(*(int *)number == next_number);
	*(int *)number = -1;
	next_number++;
}

static void give_numbers(void)
{
	for (int i = 0; i < CALLS; i++) {
		numbers[i] = i;
		check(!hl_call_rcu_ptr(&numbers[i], take_number));
	}
}

static void check_numbers(void)
{
	check(!hl_rcu_barrier());
	check(next_number == CALLS);
	for (int i = 0; i < CALLS; i++)
		check(numbers[i] == -1);
	next_number = 0;
	assert_int_equal(wrong, 0);
}

static void a_call_sees_what_was_before_it_and_is_seen_by_a_barrier(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		give_numbers();
		check_numbers();
	}
}

/* The calling thread and the helper take turns at running one queue. */
static void who_runs_a_queue_next_goes_on_where_the_last_one_was(void **state)
{
	(void)state;
	assert_true(hl_cpu_online(0) >= 0);
	assert_int_equal(hl_rcu_invoke_by(HL_RCU_BY_POLL | HL_RCU_BY_HELPER), 0);
	for (int i = 0; i < CALLS; i++) {
		numbers[i] = i;
		check(!hl_call_rcu_ptr(&numbers[i], take_number));
		if (i % 16 == 0)
			hl_cpu_poll();
	}
	check_numbers();
	assert_int_equal(hl_rcu_invoke_by(HL_RCU_BY_HELPER), 0);
	assert_int_equal(hl_cpu_offline(), 0);
}

/* ---- New threads, while grace periods walk along the threads that there are ---- */

#define NEW_THREADS 40
static atomic_int ready, readers;

static void *read_with_the_others(void *arg)
{
	hl_rcu_read_lock();
	hl_rcu_read_unlock();
	atomic_fetch_add_explicit(&ready, 1, memory_order_relaxed);
	while (atomic_load_explicit(&ready, memory_order_relaxed) < readers)
		sched_yield();
	return arg;
}

static void *be_waiting(void *arg)
{
	while (atomic_load_explicit(&ready, memory_order_relaxed) < readers)
		hl_synchronize_rcu();
	return arg;
}

static void a_thread_that_comes_is_complete_when_it_is_found(void **state)
{
	pthread_t thread[NEW_THREADS], waiter;

	(void)state;
	readers = NEW_THREADS;
	in_a_thread(be_waiting, &waiter);
	for (int i = 0; i < NEW_THREADS; i++)
		in_a_thread(read_with_the_others, &thread[i]);
	for (int i = 0; i < NEW_THREADS; i++)
		pthread_join(thread[i], NULL);
	pthread_join(waiter, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_section_read_may_be_written_after_it),
		cmocka_unit_test(who_finds_a_grace_period_over_may_write),
		cmocka_unit_test(a_section_that_begins_later_sees_what_was_before),
		cmocka_unit_test(a_call_sees_what_was_before_it_and_is_seen_by_a_barrier),
		cmocka_unit_test(who_runs_a_queue_next_goes_on_where_the_last_one_was),
		cmocka_unit_test(a_thread_that_comes_is_complete_when_it_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
