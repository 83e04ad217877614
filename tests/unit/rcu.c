// SPDX-License-Identifier: MIT
/*
 * RCU by its interface: what readers may rely on, what becomes of what is given away, and the
 * states in which other libraries hang, leak or free too early.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <hotline/call.h>
#include <hotline/cpu.h>
#include <hotline/rcu.h>

#include "../tools/refuse.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MANY 2000
#define SANITIZED 1
#else
#define MANY 20000
#define SANITIZED 0
#endif

struct object {
	struct hl_rcu_head head;
	int number;
};

static atomic_int ran;
static atomic_int ran_on; /* the thread */

static void count(void *info)
{
	(void)info;
	atomic_store(&ran_on, (int)syscall(SYS_gettid));
	atomic_fetch_add(&ran, 1);
}

static void count_head(struct hl_rcu_head *head)
{
	count(head);
}

static void wait_until(atomic_int *word, int value)
{
	while (atomic_load(word) != value)
		sched_yield();
}

static struct hl_rcu_stats stats_now(void)
{
	struct hl_rcu_stats stats;

	hl_rcu_get_stats(&stats);
	return stats;
}

/* ---- A thread that reads, a step at a time ---- */

enum step { NONE, LOCK, UNLOCK, QUIESCENT, OFFLINE, ONLINE, POLL, IDLE, ARM, END };

struct actor {
	pthread_t thread;
	atomic_int step, done, tid;
	bool cpu, quiescent, blocks_signals;
};

static void take_step(struct actor *actor, int step)
{
	switch (step) {
	case LOCK:
		hl_rcu_read_lock();
		break;
	case UNLOCK:
		hl_rcu_read_unlock();
		break;
	case QUIESCENT:
		hl_rcu_quiescent_state();
		break;
	case OFFLINE:
		hl_rcu_thread_offline();
		break;
	case ONLINE:
		hl_rcu_thread_online();
		break;
	case POLL:
		hl_cpu_poll();
		break;
	case IDLE:
		atomic_store(&actor->done, 1);
		hl_cpu_idle(-1);
		break;
	case ARM:
		assert_int_equal(hl_cpu_eventfd_arm(), 0);
		break;
	}
}

static void *act(void *arg)
{
	struct actor *actor = arg;
	sigset_t all;
	int step;

	atomic_store(&actor->tid, (int)syscall(SYS_gettid));
	if (actor->blocks_signals) {
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, NULL);
	}
	if (actor->cpu)
		hl_cpu_online(0);
	if (actor->quiescent)
		hl_rcu_set_quiescent(true);
	do {
		while ((step = atomic_exchange(&actor->step, NONE)) == NONE)
			sched_yield();
		take_step(actor, step);
		atomic_store(&actor->done, 1);
	} while (step != END);
	return NULL;
}

static void start(struct actor *actor)
{
	assert_int_equal(pthread_create(&actor->thread, NULL, act, actor), 0);
}

static void begin_step(struct actor *actor, enum step step)
{
	atomic_store(&actor->done, 0);
	atomic_store(&actor->step, step);
}

static void do_step(struct actor *actor, enum step step)
{
	begin_step(actor, step);
	wait_until(&actor->done, 1);
}

static void end(struct actor *actor)
{
	do_step(actor, END);
	pthread_join(actor->thread, NULL);
}

/* Whether a grace period passes that begins now: asks for it often. */
static bool passes(uint64_t state)
{
	for (int i = 0; i < 200; i++) {
		if (hl_poll_state_synchronize_rcu(state))
			return true;
		sched_yield();
	}
	return false;
}

/* ---- The general scheme ---- */

static void a_grace_period_waits_for_a_section_that_was_open(void **state)
{
	struct actor reader = { 0 };
	uint64_t mark;

	(void)state;
	start(&reader);
	do_step(&reader, LOCK);
	mark = hl_start_poll_synchronize_rcu();
	assert_false(passes(mark));
	do_step(&reader, UNLOCK);
	assert_true(passes(mark));
	end(&reader);
}

static void a_grace_period_does_not_wait_for_a_section_that_begins_later(void **state)
{
	struct actor old = { 0 }, later = { 0 };
	uint64_t mark;

	(void)state;
	start(&old);
	start(&later);
	do_step(&old, LOCK);
	mark = hl_start_poll_synchronize_rcu();
	assert_false(passes(mark));
	do_step(&later, LOCK);
	do_step(&old, UNLOCK);
	assert_true(passes(mark));
	/* The next one does. */
	assert_false(passes(hl_start_poll_synchronize_rcu()));
	end(&old);
	end(&later);
}

static void the_end_of_an_inner_section_ends_nothing(void **state)
{
	struct actor reader = { 0 };
	uint64_t mark;

	(void)state;
	start(&reader);
	do_step(&reader, LOCK);
	do_step(&reader, LOCK);
	do_step(&reader, UNLOCK);
	mark = hl_start_poll_synchronize_rcu();
	assert_false(passes(mark));
	do_step(&reader, UNLOCK);
	assert_int_equal(hl_cond_synchronize_rcu(mark), 0);
	end(&reader);
}

static void sections_nest_forty_thousand_deep(void **state)
{
	struct actor other = { 0 };

	(void)state;
	assert_false(hl_rcu_read_lock_held());
	for (int i = 0; i < 40000; i++)
		hl_rcu_read_lock();
	for (int i = 0; i < 39999; i++)
		hl_rcu_read_unlock();
	assert_true(hl_rcu_read_lock_held());
	assert_false(passes(hl_start_poll_synchronize_rcu()));
	hl_rcu_read_unlock();
	assert_false(hl_rcu_read_lock_held());
	start(&other);
	end(&other);
	assert_int_equal(hl_synchronize_rcu(), 0);
}

static void a_reader_that_blocks_every_signal_is_waited_for_and_no_longer(void **state)
{
	struct actor reader = { .blocks_signals = true };
	uint64_t mark;

	(void)state;
	start(&reader);
	do_step(&reader, LOCK);
	mark = hl_start_poll_synchronize_rcu();
	assert_false(passes(mark));
	do_step(&reader, UNLOCK);
	assert_int_equal(hl_synchronize_rcu(), 0);
	assert_true(hl_poll_state_synchronize_rcu(mark));
	end(&reader);
}

static void a_thread_that_ends_in_a_section_ends_the_section(void **state)
{
	struct actor reader = { 0 };

	(void)state;
	start(&reader);
	do_step(&reader, LOCK);
	do_step(&reader, LOCK);
	end(&reader);
	assert_int_equal(hl_synchronize_rcu(), 0);
}

static void *synchronize(void *arg)
{
	hl_synchronize_rcu();
	atomic_store((atomic_int *)arg, 1);
	return NULL;
}

static void a_reader_may_wait_for_a_thread_that_ends(void **state)
{
	struct actor other = { 0 };
	atomic_int over = 0;
	pthread_t writer;

	(void)state;
	start(&other);
	do_step(&other, LOCK);
	do_step(&other, UNLOCK);
	hl_rcu_read_lock();
	assert_int_equal(pthread_create(&writer, NULL, synchronize, &over), 0);
	end(&other); /* it unregisters while the writer waits for this thread */
	assert_int_equal(atomic_load(&over), 0);
	hl_rcu_read_unlock();
	pthread_join(writer, NULL);
	assert_int_equal(atomic_load(&over), 1);
}

static void what_cannot_end_is_refused(void **state)
{
	(void)state;
	hl_rcu_read_lock();
	assert_int_equal(hl_synchronize_rcu(), -EDEADLK);
	assert_int_equal(hl_synchronize_rcu_expedited(), -EDEADLK);
	assert_int_equal(hl_cond_synchronize_rcu(hl_get_state_synchronize_rcu()), -EDEADLK);
	assert_int_equal(hl_rcu_barrier(), -EDEADLK);
	hl_rcu_read_unlock();
	assert_int_equal(hl_call_rcu(&(struct hl_rcu_head){ 0 }, NULL), -EINVAL);
	assert_int_equal(hl_call_rcu_ptr(NULL, NULL), -EINVAL);
	assert_int_equal(hl_free_rcu(NULL), 0);
	assert_int_equal(hl_rcu_invoke_by(0), -EINVAL);
	assert_int_equal(hl_rcu_invoke_by(4), -EINVAL);
	assert_int_equal(hl_rcu_invoke_by(HL_RCU_BY_POLL), -ENXIO);
	hl_rcu_quiescent_state();
	hl_rcu_thread_offline();
	hl_rcu_thread_online();
}

static atomic_int reading, may_end;

static void *read_as_the_first_thing(void *arg)
{
	(void)arg;
	hl_rcu_read_lock();
	atomic_store(&reading, 1);
	wait_until(&may_end, 1);
	hl_rcu_read_unlock();
	return NULL;
}

static void a_thread_that_never_registered_is_protected(void **state)
{
	pthread_t thread;
	uint64_t mark;

	(void)state;
	atomic_store(&reading, 0);
	atomic_store(&may_end, 0);
	assert_int_equal(pthread_create(&thread, NULL, read_as_the_first_thing, NULL), 0);
	wait_until(&reading, 1);
	mark = hl_start_poll_synchronize_rcu();
	assert_false(passes(mark));
	atomic_store(&may_end, 1);
	pthread_join(thread, NULL);
	assert_true(passes(mark));
}

static void *read_shortly(void *arg)
{
	hl_rcu_read_lock();
	hl_rcu_read_unlock();
	return arg;
}

static void nobody_is_interrupted_while_nobody_reads(void **state)
{
	struct actor idle = { 0 };
	uint64_t before;
	pthread_t thread;

	(void)state;
	start(&idle);
	do_step(&idle, LOCK);
	do_step(&idle, UNLOCK);
	assert_int_equal(pthread_create(&thread, NULL, read_shortly, NULL), 0);
	pthread_join(thread, NULL);
	for (int i = 0; i < 4; i++)
		hl_synchronize_rcu();
	before = stats_now().broadcasts;
	for (int i = 0; i < 1000; i++)
		hl_synchronize_rcu();
	assert_int_equal(stats_now().broadcasts, before);
	/* Who was parked is seen again. */
	do_step(&idle, LOCK);
	assert_false(passes(hl_start_poll_synchronize_rcu()));
	do_step(&idle, UNLOCK);
	end(&idle);
}

/* ---- Grace periods ---- */

static void a_mark_is_reached_by_others_grace_periods(void **state)
{
	uint64_t mark = hl_get_state_synchronize_rcu();

	(void)state;
	hl_synchronize_rcu();
	assert_true(hl_poll_state_synchronize_rcu(mark));
	assert_int_equal(hl_cond_synchronize_rcu(mark), 0);
	mark = hl_get_state_synchronize_rcu();
	hl_synchronize_rcu_expedited();
	assert_true(hl_poll_state_synchronize_rcu(mark));
}

static void *poll_marks(void *arg)
{
	(void)arg;
	for (int i = 0; i < MANY / 20; i++) {
		uint64_t mark = hl_start_poll_synchronize_rcu();

		while (!hl_poll_state_synchronize_rcu(mark))
			sched_yield();
	}
	return NULL;
}

static void four_threads_poll_the_same_grace_periods(void **state)
{
	pthread_t thread[4];
	uint64_t before = stats_now().grace_periods;

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, poll_marks, NULL), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	assert_true(stats_now().grace_periods - before <= 4u * (MANY / 20));
	assert_true(stats_now().grace_periods > before);
}

static void many_waiters_share_a_grace_period(void **state)
{
	struct actor reader = { 0 };
	pthread_t thread[16];
	atomic_int over = 0;
	uint64_t before;

	(void)state;
	start(&reader);
	do_step(&reader, LOCK);
	before = stats_now().grace_periods;
	for (int i = 0; i < 16; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, synchronize, &over), 0);
	for (int i = 0; i < 1000; i++)
		sched_yield();
	do_step(&reader, UNLOCK);
	for (int i = 0; i < 16; i++)
		pthread_join(thread[i], NULL);
	/* One for those who came before it began, one for the others; the rest came late. */
	assert_true(stats_now().grace_periods - before <= 16);
	end(&reader);
}

static void a_call_runs_after_two_grace_periods_at_most(void **state)
{
	uint64_t before;

	(void)state;
	hl_rcu_barrier();
	atomic_store(&ran, 0);
	before = stats_now().grace_periods;
	assert_int_equal(hl_call_rcu_ptr(NULL, count), 0);
	wait_until(&ran, 1);
	assert_true(stats_now().grace_periods - before <= 2);
}

/* ---- Quiescent states ---- */

static void a_thread_holds_grace_periods_back_until_it_is_quiescent(void **state)
{
	struct actor reader = { .quiescent = true };
	uint64_t mark;

	(void)state;
	start(&reader);
	do_step(&reader, NONE + QUIESCENT);
	mark = hl_start_poll_synchronize_rcu();
	assert_false(passes(mark));
	do_step(&reader, QUIESCENT);
	assert_true(passes(mark));
	/* Both schemes in one thread. */
	do_step(&reader, LOCK);
	mark = hl_start_poll_synchronize_rcu();
	do_step(&reader, QUIESCENT);
	assert_false(passes(mark));
	do_step(&reader, UNLOCK);
	assert_true(passes(mark));
	end(&reader);
	assert_true(passes(hl_start_poll_synchronize_rcu()));
}

static void a_thread_that_is_offline_holds_nothing_back(void **state)
{
	struct actor reader = { .quiescent = true };
	uint64_t mark;

	(void)state;
	start(&reader);
	do_step(&reader, QUIESCENT);
	do_step(&reader, OFFLINE);
	assert_true(passes(hl_start_poll_synchronize_rcu()));
	do_step(&reader, QUIESCENT); /* changes nothing */
	assert_true(passes(hl_start_poll_synchronize_rcu()));
	do_step(&reader, ONLINE);
	mark = hl_start_poll_synchronize_rcu();
	assert_false(passes(mark));
	end(&reader);
	assert_true(passes(mark));
}

static void a_cpu_is_quiescent_by_polling(void **state)
{
	struct actor reader = { .quiescent = true, .cpu = true };
	uint64_t mark;

	(void)state;
	start(&reader);
	do_step(&reader, POLL);
	for (int i = 0; i < 10; i++) {
		mark = hl_start_poll_synchronize_rcu();
		assert_false(passes(mark));
		do_step(&reader, POLL);
		assert_true(passes(mark));
	}
	end(&reader);
}

static void poll_here(void *info)
{
	(void)info;
	hl_cpu_poll();
}

static void a_poll_inside_a_function_that_was_sent_is_not_quiescent(void **state)
{
	uint64_t mark;
	int cpu = hl_cpu_online(0);

	(void)state;
	assert_true(cpu >= 0);
	assert_int_equal(hl_rcu_set_quiescent(true), 0);
	assert_true(hl_rcu_read_lock_held());
	mark = hl_start_poll_synchronize_rcu();
	assert_int_equal(hl_smp_call_function_single(cpu, poll_here, NULL, true), 0);
	assert_false(hl_poll_state_synchronize_rcu(mark));
	hl_cpu_poll();
	assert_true(hl_poll_state_synchronize_rcu(mark));
	/* Waiting is quiescent. */
	assert_int_equal(hl_synchronize_rcu(), 0);
	assert_int_equal(hl_rcu_barrier(), 0);
	assert_int_equal(hl_cpu_offline(), 0);
	assert_false(hl_rcu_read_lock_held());
	assert_int_equal(hl_synchronize_rcu(), 0);
}

static void nothing(void *info)
{
	(void)info;
}

static void a_cpu_that_sleeps_holds_nothing_back(void **state)
{
	struct actor sleeper = { .quiescent = true, .cpu = true };
	uint64_t mark;

	(void)state;
	start(&sleeper);
	do_step(&sleeper, POLL);
	do_step(&sleeper, IDLE);
	for (int i = 0; i < 100; i++)
		assert_int_equal(hl_synchronize_rcu(), 0);
	atomic_store(&sleeper.done, 0);
	assert_int_equal(hl_smp_call_function_single(0, nothing, NULL, true), 0);
	wait_until(&sleeper.done, 1);
	mark = hl_start_poll_synchronize_rcu();
	assert_false(passes(mark)); /* it is awake */
	do_step(&sleeper, ARM);
	assert_int_equal(hl_synchronize_rcu(), 0);
	do_step(&sleeper, POLL);
	mark = hl_start_poll_synchronize_rcu();
	assert_false(passes(mark));
	end(&sleeper);
}

/* ---- Giving away ---- */

static void every_call_runs_once_and_in_order(void **state)
{
	struct object *objects = calloc(MANY, sizeof(*objects));

	(void)state;
	atomic_store(&ran, 0);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(hl_call_rcu(&objects[i].head, count_head), 0);
	assert_int_equal(hl_rcu_barrier(), 0);
	assert_int_equal(atomic_load(&ran), MANY);
	assert_int_equal(stats_now().backlog, 0);
	for (int i = 0; i < MANY; i++)
		hl_free_rcu(malloc(40));
	assert_int_equal(hl_rcu_barrier(), 0);
	free(objects);
}

static int next_number;
static atomic_int out_of_order;

static void check_number(struct hl_rcu_head *head)
{
	struct object *object = (struct object *)head;

	if (object->number != next_number++)
		atomic_store(&out_of_order, 1);
	free(object);
}

static void calls_of_a_thread_run_in_order(void **state)
{
	(void)state;
	hl_rcu_barrier();
	next_number = 0;
	for (int i = 0; i < MANY; i++) {
		struct object *object = malloc(sizeof(*object));

		object->number = i;
		hl_call_rcu(&object->head, check_number);
	}
	hl_rcu_barrier();
	assert_int_equal(next_number, MANY);
	assert_int_equal(atomic_load(&out_of_order), 0);
}

static void a_call_waits_for_a_section_that_was_open(void **state)
{
	struct actor reader = { 0 };

	(void)state;
	start(&reader);
	do_step(&reader, LOCK);
	atomic_store(&ran, 0);
	hl_call_rcu_ptr(NULL, count);
	assert_false(passes(hl_start_poll_synchronize_rcu()));
	assert_int_equal(atomic_load(&ran), 0);
	do_step(&reader, UNLOCK);
	wait_until(&ran, 1);
	end(&reader);
}

static atomic_int left;
static atomic_int inner_barrier;

static void give_again(void *info)
{
	if (atomic_fetch_sub(&left, 1) > 1)
		hl_call_rcu_ptr(info, give_again);
}

static void wait_inside(void *info)
{
	(void)info;
	hl_synchronize_rcu();
	atomic_store(&inner_barrier, hl_rcu_barrier());
	atomic_fetch_add(&ran, 1);
}

static void calls_may_give_read_and_wait_but_not_for_all_calls(void **state)
{
	(void)state;
	atomic_store(&left, 100);
	hl_call_rcu_ptr(NULL, give_again);
	while (atomic_load(&left))
		hl_rcu_barrier();
	atomic_store(&ran, 0);
	hl_call_rcu_ptr(NULL, wait_inside);
	hl_rcu_barrier();
	assert_int_equal(atomic_load(&ran), 1);
	assert_int_equal(atomic_load(&inner_barrier), -EDEADLK);
}

static void *give_and_end(void *arg)
{
	hl_rcu_read_lock();
	hl_call_rcu_ptr(arg, count);
	hl_rcu_read_unlock();
	return NULL;
}

static void threads_come_and_go_with_calls_on_their_way(void **state)
{
	uint64_t batches;

	(void)state;
	atomic_store(&ran, 0);
	for (int i = 0; i < MANY / 10; i++) {
		pthread_t thread[2];

		for (int j = 0; j < 2; j++)
			assert_int_equal(pthread_create(&thread[j], NULL, give_and_end, NULL), 0);
		for (int j = 0; j < 2; j++)
			pthread_join(thread[j], NULL);
	}
	hl_rcu_barrier();
	assert_int_equal(atomic_load(&ran), 2 * (MANY / 10));
	/* The next thread takes over what the last has left. */
	batches = stats_now().batches;
	assert_true(batches < 64);
}

static void memory_of_batches_returns_to_where_it_is_asked_for(void **state)
{
	uint64_t before = 0;

	(void)state;
	for (int round = 0; round < 50; round++) {
		pthread_t thread;

		assert_int_equal(hl_cpu_pin(0), 0);
		for (int i = 0; i < MANY / 10; i++)
			hl_free_rcu(malloc(16));
		hl_rcu_barrier();
		assert_int_equal(pthread_create(&thread, NULL, give_and_end, NULL), 0);
		pthread_join(thread, NULL);
		hl_rcu_barrier();
		if (round == 10)
			before = stats_now().batch_bytes;
	}
	assert_true(stats_now().batch_bytes <= before + 4 * 65536);
}

static void a_barrier_on_one_processor_ends_a_thousand_times(void **state)
{
	struct actor reader = { 0 };
	cpu_set_t before;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	assert_int_equal(hl_cpu_pin(0), 0);
	start(&reader); /* on the same processor */
	do_step(&reader, LOCK);
	do_step(&reader, UNLOCK);
	for (int i = 0; i < 1000; i++) {
		hl_call_rcu_ptr(NULL, count);
		assert_int_equal(hl_rcu_barrier(), 0);
	}
	end(&reader);
	sched_setaffinity(0, sizeof(before), &before);
}

static void a_flood_is_bounded(void **state)
{
	struct hl_rcu_stats stats;
	uint64_t most = 0;

	(void)state;
	hl_rcu_set_marks(2000, 10000);
	for (int i = 0; i < 20 * MANY; i++) {
		hl_free_rcu(malloc(48));
		if (i % 1000 == 0) {
			stats = stats_now();
			if (stats.backlog > most)
				most = stats.backlog;
		}
	}
	hl_rcu_barrier();
	hl_rcu_set_marks(20000, 200000);
	/* The mark, what one batch takes, and what one batch takes that is open. */
	assert_true(most <= 10000 + 2 * 4096);
}

/* ---- Who runs it ---- */

static void the_helper_runs_calls_though_its_starter_is_kept_on_one_processor(void **state)
{
	(void)state;
	atomic_store(&ran, 0);
	hl_call_rcu_ptr(NULL, count);
	wait_until(&ran, 1);
	assert_int_not_equal(atomic_load(&ran_on), syscall(SYS_gettid));
}

static void a_cpu_runs_its_calls_when_it_polls(void **state)
{
	(void)state;
	assert_true(hl_cpu_online(0) >= 0);
	assert_int_equal(hl_rcu_invoke_by(HL_RCU_BY_POLL), 0);
	atomic_store(&ran, 0);
	for (int i = 0; i < 1000; i++)
		hl_call_rcu_ptr(NULL, count);
	while (atomic_load(&ran) < 1000) {
		hl_cpu_poll();
		assert_int_equal(atomic_load(&ran) ? atomic_load(&ran_on) : syscall(SYS_gettid),
				 syscall(SYS_gettid));
	}
	/* A barrier does not wait for polls of the caller. */
	hl_call_rcu_ptr(NULL, count);
	assert_int_equal(hl_rcu_barrier(), 0);
	assert_int_equal(atomic_load(&ran), 1001);
	/* While it sleeps the helper does it. */
	hl_call_rcu_ptr(NULL, count);
	while (atomic_load(&ran) < 1002)
		hl_cpu_idle(1000000);
	assert_int_equal(hl_rcu_invoke_by(HL_RCU_BY_POLL | HL_RCU_BY_HELPER), 0);
	hl_call_rcu_ptr(NULL, count);
	wait_until(&ran, 1003); /* without a poll */
	/* What waits when it leaves is run. */
	assert_int_equal(hl_rcu_invoke_by(HL_RCU_BY_POLL), 0);
	hl_call_rcu_ptr(NULL, count);
	assert_int_equal(hl_cpu_offline(), 0);
	wait_until(&ran, 1004);
}

/* How often the helper went to sleep. */
static long switches_of_helper(void)
{
	char path[64], line[128];
	long switches = -1;
	FILE *status;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", atomic_load(&ran_on));
	status = fopen(path, "r");
	assert_non_null(status);
	while (fgets(line, sizeof(line), status))
		sscanf(line, "voluntary_ctxt_switches: %ld", &switches);
	fclose(status);
	return switches;
}

static void with_nothing_to_do_nothing_wakes(void **state)
{
	struct timespec while_nothing_happens = { .tv_nsec = 400000000 };
	struct timespec lingers = { .tv_nsec = 50000000 };
	long before;

	(void)state;
	atomic_store(&ran, 0);
	hl_call_rcu_ptr(NULL, count);
	wait_until(&ran, 1);
	do { /* it looks once more after it has found nothing */
		before = switches_of_helper();
		nanosleep(&lingers, NULL);
	} while (switches_of_helper() != before);
	nanosleep(&while_nothing_happens, NULL);
	assert_int_equal(switches_of_helper(), before);
}

/* ---- Interrupts ---- */

#if !defined(__SANITIZE_THREAD__)
static atomic_int given;

static void give_from_an_interrupt(void *info)
{
	(void)info;
	hl_rcu_read_lock();
	hl_call_rcu_ptr(NULL, count);
	atomic_fetch_add(&given, 1);
	hl_rcu_read_unlock();
}

static atomic_int interrupt;

static void *send_interrupts(void *arg)
{
	while (atomic_load(&interrupt))
		hl_smp_call_function_single(*(int *)arg, give_from_an_interrupt, NULL, true);
	return NULL;
}

static void a_function_that_interrupts_may_read_and_give(void **state)
{
	int cpu = hl_cpu_online(0), mine = 0;
	pthread_t sender;

	(void)state;
	assert_true(cpu >= 0);
	hl_rcu_barrier();
	atomic_store(&ran, 0);
	atomic_store(&given, 0);
	hl_call_rcu_ptr(NULL, count);
	hl_rcu_barrier();
	mine++;
	assert_int_equal(hl_cpu_set_interruptible(true), 0);
	atomic_store(&interrupt, 1);
	assert_int_equal(pthread_create(&sender, NULL, send_interrupts, &cpu), 0);
	while (atomic_load(&given) < 30) {
		hl_rcu_read_lock();
		hl_call_rcu_ptr(NULL, count);
		hl_rcu_read_unlock();
		mine++;
		if (mine % 1000 == 0)
			hl_synchronize_rcu();
	}
	atomic_store(&interrupt, 0);
	while (pthread_tryjoin_np(sender, NULL))
		hl_cpu_poll();
	hl_cpu_set_interruptible(false);
	hl_rcu_barrier();
	assert_int_equal(atomic_load(&ran), mine + atomic_load(&given));
	assert_int_equal(hl_cpu_offline(), 0);
}
#endif

/* ---- Stalls ---- */

static atomic_int stalls, stall_tid, stall_quiescent;
static char stall_name[16];

static void note_stall(const struct hl_rcu_stall *stall)
{
	if (atomic_fetch_add(&stalls, 1))
		return;
	memcpy(stall_name, stall->name, sizeof(stall_name));
	atomic_store(&stall_quiescent, stall->quiescent_state);
	atomic_store(&stall_tid, stall->tid);
}

static void a_stall_names_the_thread(void **state)
{
	(void)state;
	for (int quiescent = 0; quiescent < 2; quiescent++) {
		struct actor reader = { .quiescent = quiescent };
		atomic_int over = 0;
		pthread_t writer;

		atomic_store(&stalls, 0);
		atomic_store(&stall_tid, 0);
		start(&reader);
		do_step(&reader, quiescent ? QUIESCENT : LOCK);
		pthread_setname_np(reader.thread, "slow reader");
		hl_rcu_stall_ms(5, note_stall);
		assert_int_equal(pthread_create(&writer, NULL, synchronize, &over), 0);
		while (!atomic_load(&stall_tid) || atomic_load(&stalls) < 3)
			sched_yield();
		end(&reader);
		pthread_join(writer, NULL);
		hl_rcu_stall_ms(0, NULL);
		assert_int_equal(atomic_load(&stall_tid), atomic_load(&reader.tid));
		assert_int_equal(atomic_load(&stall_quiescent), quiescent);
		assert_string_equal(stall_name, "slow reader");
	}
}

/* ---- No memory ---- */

static int refuse_memory(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

#define CHECK(condition) \
	do { \
		if (!(condition)) \
			return (void *)(intptr_t)__LINE__; \
	} while (0)

static int exit_code_of(pid_t child)
{
	int status = 0;

	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* A sanitizer needs memory itself; and not every system lets calls be filtered. */
static void skip_unless_memory_can_be_refused(void)
{
	pid_t child;

	if (SANITIZED)
		skip();
	child = fork();
	if (!child)
		_exit(refuse_memory());
	if (exit_code_of(child))
		skip();
}

static struct actor holds_all_back;

#define MOST_HEADS 400000
static int with_heads; /* calls that were given */
static uint64_t linked_before;

/* Of a thread that gets no memory from the system. */
static void *give_without_memory(void *arg)
{
	struct object *objects = arg;

	hl_call_rcu_ptr(NULL, count);
	CHECK(!refuse_memory());
	/* What others left empty is used up first. */
	for (; stats_now().linked == linked_before && with_heads < MOST_HEADS; with_heads++)
		CHECK(!hl_call_rcu(&objects[with_heads].head, count_head));
	hl_rcu_read_lock();
	CHECK(hl_call_rcu_ptr(NULL, count) == -EDEADLK);
	hl_rcu_read_unlock();
	begin_step(&holds_all_back, UNLOCK);
	CHECK(!hl_call_rcu_ptr(NULL, count));
	return NULL;
}

static void *read_without_memory(void *arg)
{
	CHECK(!refuse_memory());
	hl_rcu_read_lock();
	hl_rcu_read_lock();
	CHECK(hl_rcu_read_lock_held());
	CHECK(hl_synchronize_rcu() == -EDEADLK);
	CHECK(!hl_poll_state_synchronize_rcu(hl_start_poll_synchronize_rcu()));
	hl_rcu_read_unlock();
	hl_rcu_read_unlock();
	CHECK(!hl_rcu_read_lock_held());
	CHECK(!hl_call_rcu(arg, count_head));
	CHECK(!hl_call_rcu_ptr(NULL, count));
	CHECK(!hl_synchronize_rcu());
	return NULL;
}

static void *run_thread(void *(*function)(void *), void *arg)
{
	pthread_t thread;
	void *result;

	assert_int_equal(pthread_create(&thread, NULL, function, arg), 0);
	pthread_join(thread, &result);
	return result;
}

static void without_memory_nothing_fails_and_nothing_is_lost(void **state)
{
	struct object *objects;
	void *line;

	(void)state;
	skip_unless_memory_can_be_refused();
	objects = calloc(MOST_HEADS, sizeof(*objects));
	linked_before = stats_now().linked;
	start(&holds_all_back);
	do_step(&holds_all_back, LOCK); /* no batch becomes empty */
	atomic_store(&ran, 0);
	line = run_thread(give_without_memory, objects);
	assert_int_equal((intptr_t)line, 0);
	hl_rcu_barrier();
	assert_int_equal(atomic_load(&ran), with_heads + 2);
	assert_true(stats_now().linked > linked_before);
	wait_until(&holds_all_back.done, 1);
	end(&holds_all_back);
	free(objects);
}

static void without_memory_for_a_thread_it_reads_and_gives(void **state)
{
	struct actor holds[64] = { 0 };
	struct object object;

	(void)state;
	skip_unless_memory_can_be_refused();
	/* There is none left that somebody else had. */
	for (int i = 0; i < 64; i++) {
		start(&holds[i]);
		do_step(&holds[i], LOCK);
		do_step(&holds[i], UNLOCK);
	}
	atomic_store(&ran, 0);
	assert_int_equal((intptr_t)run_thread(read_without_memory, &object), 0);
	hl_rcu_barrier();
	assert_int_equal(atomic_load(&ran), 2);
	for (int i = 0; i < 64; i++)
		end(&holds[i]);
}

/* ---- Fork ---- */

#if !defined(__SANITIZE_THREAD__) /* which starts no threads in the child of a process with some */
/* In the child of a fork: what ran in the parent's threads is not there, all else works. */
static int all_works(void)
{
	pthread_t thread;
	int before;

	if (hl_rcu_barrier() || hl_synchronize_rcu())
		return 1;
	before = atomic_load(&ran);
	if (hl_call_rcu_ptr(NULL, count) || hl_rcu_barrier() || atomic_load(&ran) != before + 1)
		return 2;
	if (pthread_create(&thread, NULL, give_and_end, NULL) || pthread_join(thread, NULL))
		return 3;
	return hl_rcu_barrier() || atomic_load(&ran) != before + 2 ? 4 : 0;
}

static void the_child_goes_on_in_its_section_and_not_in_others(void **state)
{
	struct actor reader = { 0 };
	pid_t child;

	(void)state;
	start(&reader);
	do_step(&reader, LOCK);
	hl_rcu_read_lock();
	child = fork();
	if (!child) {
		uint64_t mark = hl_start_poll_synchronize_rcu();
		int code = passes(mark) ? 5 : 0;

		hl_rcu_read_unlock();
		_exit(code ? code : all_works());
	}
	hl_rcu_read_unlock();
	assert_int_equal(exit_code_of(child), 0);
	assert_false(passes(hl_start_poll_synchronize_rcu()));
	do_step(&reader, UNLOCK);
	end(&reader);
	hl_synchronize_rcu();
}

static void what_waits_in_the_parent_runs_in_both(void **state)
{
	struct actor reader = { 0 };
	pid_t child;

	(void)state;
	hl_rcu_barrier();
	atomic_store(&ran, 0);
	start(&reader);
	do_step(&reader, LOCK); /* nothing runs */
	for (int i = 0; i < MANY; i++)
		hl_call_rcu_ptr(NULL, count);
	run_thread(give_and_end, NULL); /* left by a thread that is not there any more */
	child = fork();
	if (!child) {
		if (hl_rcu_barrier() || atomic_load(&ran) != MANY + 1)
			_exit(6);
		_exit(all_works());
	}
	assert_int_equal(exit_code_of(child), 0);
	assert_int_equal(atomic_load(&ran), 0);
	do_step(&reader, UNLOCK);
	hl_rcu_barrier();
	assert_int_equal(atomic_load(&ran), MANY + 1);
	end(&reader);
}

static atomic_int forked_child;

static void fork_here(void *info)
{
	pid_t child = fork();

	(void)info;
	if (!child)
		_exit(0);
	atomic_store(&forked_child, child);
}

static void a_call_may_fork(void **state)
{
	(void)state;
	hl_call_rcu_ptr(NULL, fork_here);
	hl_rcu_barrier();
	assert_int_equal(exit_code_of(atomic_load(&forked_child)), 0);
}

static atomic_int go_on_giving;

/* No child has to run more than some hundred calls. */
static void *give_and_read(void *arg)
{
	for (unsigned i = 1; atomic_load(&go_on_giving); i++) {
		hl_rcu_read_lock();
		hl_call_rcu_ptr(arg, count);
		hl_rcu_read_unlock();
		hl_synchronize_rcu();
		if (i % 128 == 0)
			hl_rcu_barrier();
	}
	return NULL;
}

static void fork_in_every_state(void **state)
{
	pthread_t thread[3];

	(void)state;
	if (SANITIZED)
		skip(); /* whose own locks may be held for ever in the child */
	atomic_store(&go_on_giving, 1);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, give_and_read, NULL), 0);
	for (int i = 0; i < 40; i++) {
		pid_t child = fork();

		if (!child)
			_exit(all_works());
		assert_int_equal(exit_code_of(child), 0);
	}
	atomic_store(&go_on_giving, 0);
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	hl_rcu_barrier();
}

static void a_cpu_that_forks_is_a_thread_in_the_child(void **state)
{
	pid_t child;

	(void)state;
	assert_true(hl_cpu_online(0) >= 0);
	assert_int_equal(hl_rcu_set_quiescent(true), 0);
	assert_int_equal(hl_rcu_invoke_by(HL_RCU_BY_POLL), 0);
	hl_call_rcu_ptr(NULL, count);
	child = fork();
	if (!child) {
		int code = hl_rcu_read_lock_held() || hl_cpu_poll() != -ENXIO ? 7 : all_works();

		if (!code && (hl_cpu_online(0) < 0 || hl_rcu_set_quiescent(true)))
			code = 8;
		_exit(code ? code : all_works());
	}
	assert_int_equal(exit_code_of(child), 0);
	assert_int_equal(hl_rcu_barrier(), 0);
	assert_int_equal(hl_cpu_offline(), 0);
}
#endif

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(a_grace_period_waits_for_a_section_that_was_open),
	cmocka_unit_test(a_grace_period_does_not_wait_for_a_section_that_begins_later),
	cmocka_unit_test(the_end_of_an_inner_section_ends_nothing),
	cmocka_unit_test(sections_nest_forty_thousand_deep),
	cmocka_unit_test(a_reader_that_blocks_every_signal_is_waited_for_and_no_longer),
	cmocka_unit_test(a_thread_that_ends_in_a_section_ends_the_section),
	cmocka_unit_test(a_reader_may_wait_for_a_thread_that_ends),
	cmocka_unit_test(what_cannot_end_is_refused),
	cmocka_unit_test(a_thread_that_never_registered_is_protected),
	cmocka_unit_test(nobody_is_interrupted_while_nobody_reads),
	cmocka_unit_test(a_mark_is_reached_by_others_grace_periods),
	cmocka_unit_test(four_threads_poll_the_same_grace_periods),
	cmocka_unit_test(many_waiters_share_a_grace_period),
	cmocka_unit_test(a_call_runs_after_two_grace_periods_at_most),
	cmocka_unit_test(a_thread_holds_grace_periods_back_until_it_is_quiescent),
	cmocka_unit_test(a_thread_that_is_offline_holds_nothing_back),
	cmocka_unit_test(a_cpu_is_quiescent_by_polling),
	cmocka_unit_test(a_poll_inside_a_function_that_was_sent_is_not_quiescent),
	cmocka_unit_test(a_cpu_that_sleeps_holds_nothing_back),
	cmocka_unit_test(every_call_runs_once_and_in_order),
	cmocka_unit_test(calls_of_a_thread_run_in_order),
	cmocka_unit_test(a_call_waits_for_a_section_that_was_open),
	cmocka_unit_test(calls_may_give_read_and_wait_but_not_for_all_calls),
	cmocka_unit_test(threads_come_and_go_with_calls_on_their_way),
	cmocka_unit_test(memory_of_batches_returns_to_where_it_is_asked_for),
	cmocka_unit_test(a_barrier_on_one_processor_ends_a_thousand_times),
	cmocka_unit_test(a_flood_is_bounded),
	cmocka_unit_test(the_helper_runs_calls_though_its_starter_is_kept_on_one_processor),
	cmocka_unit_test(a_cpu_runs_its_calls_when_it_polls),
	cmocka_unit_test(with_nothing_to_do_nothing_wakes),
#if !defined(__SANITIZE_THREAD__)
	cmocka_unit_test(a_function_that_interrupts_may_read_and_give),
#endif
	cmocka_unit_test(a_stall_names_the_thread),
	cmocka_unit_test(without_memory_nothing_fails_and_nothing_is_lost),
	cmocka_unit_test(without_memory_for_a_thread_it_reads_and_gives),
#if !defined(__SANITIZE_THREAD__)
	cmocka_unit_test(the_child_goes_on_in_its_section_and_not_in_others),
	cmocka_unit_test(what_waits_in_the_parent_runs_in_both),
	cmocka_unit_test(a_call_may_fork),
	cmocka_unit_test(fork_in_every_state),
	cmocka_unit_test(a_cpu_that_forks_is_a_thread_in_the_child),
#endif
};

int main(void)
{
	return cmocka_run_group_tests(tests, refuse_membarrier, NULL);
}
