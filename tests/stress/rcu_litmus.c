// SPDX-License-Identifier: MIT
/*
 * Litmus tests of RCU: two threads (four in one) begin together, each does two or three things,
 * and what they see together must not be what no order allows. Each shape in every
 * way of reading and of waiting.
 *
 * What is looked for happens only if a store is seen later than the loads behind it, so the
 * threads are put on two processors and their stores behind others that miss the cache
 * (tools/pair.h). tests/mutants.py shows that it is found: it takes the fences out of the room one
 * at a time.
 *
 *	stress-rcu_litmus [MILLISECONDS a combination]
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include <cmocka.h>

#include <hotline/cpu.h>
#include <hotline/rcu.h>

#include "../tools/pair.h"
#include "../tools/refuse.h"

/* A combination ends after so many rounds, or when its time is over. */
#define ROUNDS 20000
/* How long a section waits for what must not come while it lasts. */
#define PATIENCE 100

enum reading {
	SECTION,
	NESTED, /* reads on when the inner section has ended */
	AGAIN, /* begins just behind the end of another */
	PARKED, /* has not read for some grace periods */
	BEGINS, /* the same, and has begun a grace period itself */
	QUIESCENT,
	RESUMED, /* was offline */
	READINGS
};

enum waiting { SYNCHRONIZE, EXPEDITED, POLL, CONDITION, CALL, WAITINGS };

static const char *const reading_names[] = { "section", "nested",    "again",  "parked",
					     "begins",	"quiescent", "resumed" };
static const char *const waiting_names[] = { "synchronize", "expedited", "poll", "cond", "call" };

static struct {
	atomic_int value HL_CACHELINE_ALIGNED;
} x, y, over;
static struct {
	int *pointer HL_CACHELINE_ALIGNED;
} published;
static int message;
static int seen[4];

static enum reading reading;
static enum waiting waiting;
static struct pair pair;
static struct pair_jam jam[2];
static atomic_bool last;
static unsigned milliseconds = 40;
static cpu_set_t allowed;
static __thread uint32_t chance;

static int get(atomic_int *value)
{
	return atomic_load_explicit(value, memory_order_relaxed);
}

static void set(atomic_int *value, int to)
{
	atomic_store_explicit(value, to, memory_order_relaxed);
}

/* ---- Reading ---- */

static bool reads_by_quiescent_states(void)
{
	return reading == QUIESCENT || reading == RESUMED;
}

/* Before the two meet. */
static void prepare_to_read(void)
{
	if (reading == RESUMED) {
		hl_rcu_thread_offline();
	} else if (reading < PARKED) {
		hl_rcu_read_lock(); /* awake, of the newest grace period */
		hl_rcu_read_unlock();
	}
}

static void begin_to_read(void)
{
	switch (reading) {
	case AGAIN:
		hl_rcu_read_lock();
		hl_rcu_read_unlock();
		hl_rcu_read_lock();
		break;
	case NESTED:
		hl_rcu_read_lock();
		hl_rcu_read_lock();
		break;
	case BEGINS:
		hl_start_poll_synchronize_rcu();
		hl_rcu_read_lock();
		break;
	case QUIESCENT:
		hl_rcu_quiescent_state();
		hl_rcu_read_lock_qs();
		break;
	case RESUMED:
		hl_rcu_thread_online();
		hl_rcu_read_lock_qs();
		break;
	default:
		hl_rcu_read_lock();
	}
}

/* In the middle: what must not come gets time to. */
static void read_on(void)
{
	pair_dawdle(&chance, 600);
	if (reading == NESTED)
		hl_rcu_read_unlock();
}

static void end_reading(void)
{
	if (!reads_by_quiescent_states()) {
		hl_rcu_read_unlock();
		return;
	}
	hl_rcu_read_unlock_qs();
	hl_rcu_quiescent_state();
}

/* ---- Waiting ---- */

static void is_called(void *info)
{
	atomic_store_explicit((atomic_int *)info, 1, memory_order_release);
}

static void wait_for_readers(void)
{
	atomic_int called = 0;
	uint64_t mark;

	switch (waiting) {
	case SYNCHRONIZE:
		hl_synchronize_rcu();
		break;
	case EXPEDITED:
		hl_synchronize_rcu_expedited();
		break;
	case POLL:
		mark = hl_get_state_synchronize_rcu();
		do {
			pair_dawdle(&chance, 1000); /* another may be there first */
			hl_rcu_quiescent_state();
		} while (!hl_poll_state_synchronize_rcu(mark));
		break;
	case CONDITION:
		mark = hl_get_state_synchronize_rcu();
		pair_dawdle(&chance, 2000);
		hl_cond_synchronize_rcu(mark);
		break;
	default:
		hl_call_rcu_ptr(&called, is_called);
		while (!atomic_load_explicit(&called, memory_order_acquire)) {
			hl_rcu_quiescent_state();
			sched_yield();
		}
	}
}

/* ---- Two that meet, round after round ---- */

struct litmus {
	void (*reader)(void);
	void (*writer)(void);
	bool (*is_wrong)(void);
};

static const struct litmus *litmus;

static void hold_nothing(void)
{
	hl_rcu_quiescent_state();
}

/* Both go on together, the one now a little before the other, now after it; what they store first
 * is seen late, in one round of two. */
static void meet_and_go(int me, int place)
{
	bool late;

	pair_flush(&jam[me]);
	pair_meet(&pair, me, place, me ? hold_nothing : NULL);
	pair_dawdle(&chance, 600);
	late = chance >> 31;
	if (late)
		pair_jam(&jam[me]);
}

static void *read_rounds(void *arg)
{
	pair_pin(&allowed, 1);
	chance = 1;
	if (reads_by_quiescent_states())
		hl_rcu_set_quiescent(true);
	for (int place = 1;; place += 2) {
		prepare_to_read();
		meet_and_go(1, place);
		if (atomic_load_explicit(&last, memory_order_relaxed))
			break;
		litmus->reader();
		pair_meet(&pair, 1, place + 1, hold_nothing);
	}
	return arg;
}

static bool is_time(const struct timespec *end)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec > end->tv_sec ||
	       (now.tv_sec == end->tv_sec && now.tv_nsec >= end->tv_nsec);
}

static struct timespec time_from_now(unsigned ms)
{
	struct timespec end;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_nsec += ms % 1000 * 1000000L;
	end.tv_sec += ms / 1000 + end.tv_nsec / 1000000000;
	end.tv_nsec %= 1000000000;
	return end;
}

/* How many rounds of one combination were wrong. */
static int run_combination(void)
{
	struct timespec end = time_from_now(milliseconds);
	pthread_t reader;
	int wrong = 0, rounds = 0;

	pair = (struct pair){ 0 };
	last = false;
	assert_int_equal(pthread_create(&reader, NULL, read_rounds, NULL), 0);
	for (int place = 1; !last; place += 2) {
		set(&x.value, 0);
		set(&y.value, 0);
		set(&over.value, 0);
		for (int i = 0; (reading == PARKED || reading == BEGINS) && i < 3; i++)
			hl_synchronize_rcu();
		last = rounds == ROUNDS || is_time(&end);
		meet_and_go(0, place);
		if (last)
			break;
		litmus->writer();
		pair_meet(&pair, 0, place + 1, NULL);
		wrong += litmus->is_wrong();
		rounds++;
	}
	pthread_join(reader, NULL);
	if (wrong)
		print_message("# %s, %s: %d of %d rounds wrong\n", reading_names[reading],
			      waiting_names[waiting], wrong, rounds);
	return wrong;
}

static void run(const struct litmus *test)
{
	cpu_set_t before;
	int wrong = 0;

	litmus = test;
	sched_getaffinity(0, sizeof(before), &before);
	pair_pin(&allowed, 0);
	for (reading = SECTION; reading < READINGS; reading++)
		for (waiting = SYNCHRONIZE; waiting < WAITINGS; waiting++)
			wrong += run_combination();
	sched_setaffinity(0, sizeof(before), &before);
	assert_int_equal(wrong, 0);
}

/* ---- A section that is not waited for: store buffering of its beginning ---- */

static void holding_reader(void)
{
	begin_to_read();
	seen[0] = get(&y.value);
	read_on();
	seen[1] = 0;
	for (int i = 0; i < PATIENCE && !seen[1]; i++)
		seen[1] = get(&over.value);
	end_reading();
}

static void holding_writer(void)
{
	set(&y.value, 1);
	wait_for_readers();
	set(&over.value, 1);
}

/* It saw what was before the grace period, and the end of it. */
static bool holding_is_wrong(void)
{
	return !seen[0] && seen[1];
}

static void a_section_that_saw_the_old_is_waited_for(void **state)
{
	static const struct litmus test = { holding_reader, holding_writer, holding_is_wrong };

	(void)state;
	run(&test);
}

/* ---- A mark that the reader takes in its own section ---- */

static void marking_reader(void)
{
	uint64_t mark;

	begin_to_read();
	mark = hl_get_state_synchronize_rcu();
	read_on();
	seen[0] = 0;
	for (int i = 0; i < PATIENCE && !seen[0]; i++)
		seen[0] = hl_poll_state_synchronize_rcu(mark);
	end_reading();
}

static void marking_writer(void)
{
	for (int i = 0; i < 4; i++)
		hl_start_poll_synchronize_rcu();
}

static bool marking_is_wrong(void)
{
	return seen[0];
}

static void a_mark_in_a_section_is_not_reached_in_it(void **state)
{
	static const struct litmus test = { marking_reader, marking_writer, marking_is_wrong };

	(void)state;
	run(&test);
}

/* ---- Store buffering: both store, then look ---- */

static void buffering_reader(void)
{
	begin_to_read();
	set(&x.value, 1);
	seen[0] = get(&y.value);
	read_on();
	end_reading();
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

static void stores_before_a_grace_period_and_in_a_section_meet(void **state)
{
	static const struct litmus test = { buffering_reader, buffering_writer,
					    buffering_is_wrong };

	(void)state;
	run(&test);
}

/* ---- Message passing around a grace period, read in either order ---- */

static void passing_reader(void)
{
	bool later_first = chance >> 30 & 1;

	begin_to_read();
	if (later_first)
		seen[0] = get(&y.value);
	seen[1] = get(&x.value);
	read_on();
	if (!later_first)
		seen[0] = get(&y.value);
	end_reading();
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

static void no_section_sees_both_sides_of_a_grace_period(void **state)
{
	static const struct litmus test = { passing_reader, passing_writer, passing_is_wrong };

	(void)state;
	run(&test);
}

/* ---- Load buffering: what a section has read, and what is stored when it is over ---- */

static void loading_reader(void)
{
	begin_to_read();
	seen[0] = get(&x.value);
	read_on();
	end_reading();
	set(&y.value, 1);
}

static void loading_writer(void)
{
	seen[1] = get(&y.value);
	wait_for_readers();
	set(&x.value, 1);
}

/* The section ended before the grace period began, and read what was stored behind it. */
static bool loading_is_wrong(void)
{
	return seen[0] && seen[1];
}

static void what_is_stored_behind_a_grace_period_is_not_read_before_it(void **state)
{
	static const struct litmus test = { loading_reader, loading_writer, loading_is_wrong };

	(void)state;
	run(&test);
}

/* ---- Two that wait: a grace period is a full fence for who waits ---- */

static void waiting_reader(void)
{
	set(&x.value, 1);
	wait_for_readers();
	seen[0] = get(&y.value);
}

static void who_waits_sees_the_stores_of_the_other_or_is_seen(void **state)
{
	static const struct litmus test = { waiting_reader, buffering_writer, buffering_is_wrong };

	(void)state;
	run(&test);
}

/* ---- Message passing by a pointer ---- */

static void pointer_reader(void)
{
	const int *pointer;

	begin_to_read();
	pointer = hl_rcu_dereference(published.pointer);
	read_on();
	seen[0] = pointer ? *pointer : 1;
	end_reading();
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

static void what_a_pointer_leads_to_is_complete_and_stays(void **state)
{
	static const struct litmus test = { pointer_reader, pointer_writer, pointer_is_wrong };

	(void)state;
	run(&test);
}

/* ---- Two who store, two who look at both in different order ---- */

static struct {
	atomic_int place HL_CACHELINE_ALIGNED;
} four[4];

static void four_meet(int me, int place)
{
	atomic_store(&four[me].place, place);
	for (int i = 0; i < 4; i++)
		while (atomic_load(&four[i].place) < place)
			sched_yield();
}

static void *be_one_of_four(void *arg)
{
	int me = (int)(intptr_t)arg;
	atomic_int *mine = me & 1 ? &y.value : &x.value, *other = me & 1 ? &x.value : &y.value;

	chance = (uint32_t)me;
	pair_pin(&allowed, me);
	for (int place = 1;; place += 2) {
		four_meet(me, place);
		if (last)
			break;
		pair_dawdle(&chance, 2000);
		if (me < 2) {
			set(mine, 1);
		} else {
			seen[me] = get(mine);
			hl_synchronize_rcu();
			seen[me - 2] = get(other);
		}
		four_meet(me, place + 1);
	}
	return NULL;
}

static void two_that_wait_agree_which_store_was_first(void **state)
{
	struct timespec end = time_from_now(5 * milliseconds);
	pthread_t thread[3];
	int wrong = 0;

	(void)state;
	last = false;
	for (int i = 0; i < 4; i++)
		set(&four[i].place, 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, be_one_of_four,
						(void *)(intptr_t)(i + 1)),
				 0);
	for (int place = 1; !last; place += 2) {
		set(&x.value, 0);
		set(&y.value, 0);
		last = is_time(&end);
		four_meet(0, place);
		if (last)
			break;
		set(&x.value, 1);
		four_meet(0, place + 1);
		/* One saw x and not yet y, the other y and not yet x. */
		wrong += seen[2] && !seen[0] && seen[3] && !seen[1];
	}
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(wrong, 0);
}

/* ---- A call that is given while the helper goes to sleep ---- */

/* It finds the queue empty as soon as the call has run, and looks again a millisecond later. */
static void pause_for_a_while(void)
{
	struct timespec gap = { 0 };

	pair_dawdle(&chance, 32768);
	gap.tv_nsec = 950000 + (chance >> 8) % 200000;
	if (chance >> 31)
		nanosleep(&gap, NULL);
}

static void a_call_runs_though_the_helper_goes_to_sleep(void **state)
{
	struct timespec end = time_from_now(40 * milliseconds);
	int given = 0, lost = 0;

	(void)state;
	pair_pin(&allowed, 0);
	prctl(PR_SET_TIMERSLACK, 1);
	while (!lost && !is_time(&end)) {
		struct timespec patience = time_from_now(2000);
		static atomic_int called;

		set(&called, 0);
		pair_flush(&jam[0]);
		pause_for_a_while();
		pair_jam(&jam[0]);
		hl_call_rcu_ptr(&called, is_called);
		while (!get(&called) && !lost) {
			sched_yield();
			lost = is_time(&patience);
		}
		given++;
	}
	prctl(PR_SET_TIMERSLACK, 0);
	sched_setaffinity(0, sizeof(allowed), &allowed);
	if (lost)
		print_message("# call %d did not run in 2 s\n", given);
	assert_int_equal(lost, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_section_that_saw_the_old_is_waited_for),
		cmocka_unit_test(a_mark_in_a_section_is_not_reached_in_it),
		cmocka_unit_test(stores_before_a_grace_period_and_in_a_section_meet),
		cmocka_unit_test(no_section_sees_both_sides_of_a_grace_period),
		cmocka_unit_test(what_is_stored_behind_a_grace_period_is_not_read_before_it),
		cmocka_unit_test(who_waits_sees_the_stores_of_the_other_or_is_seen),
		cmocka_unit_test(what_a_pointer_leads_to_is_complete_and_stays),
		cmocka_unit_test(two_that_wait_agree_which_store_was_first),
		cmocka_unit_test(a_call_runs_though_the_helper_goes_to_sleep),
	};

	if (argc > 1)
		milliseconds = (unsigned)strtoul(argv[1], NULL, 0);
	sched_getaffinity(0, sizeof(allowed), &allowed);
	return cmocka_run_group_tests(tests, refuse_membarrier, NULL);
}
