// SPDX-License-Identifier: MIT
/* Calls in states that are rare: in forks, in threads that end, 64 functions deep, at the
 * end of what ids and times there can be. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <hotline/call.h>
#include <hotline/cpu.h>

#include "../tools/poller.h"

/* ---- As deep as it goes ---- */

static void each_deeper(void *info)
{
	int rc = hl_on_each_cpu(each_deeper, info, true);

	if (rc < 0)
		*(int *)info = rc;
}

static void a_broadcast_too_deep_is_an_error(void **state)
{
	int rc = 0;

	(void)state;
	assert_int_equal(hl_on_each_cpu(each_deeper, &rc, true), 1);
	assert_int_equal(rc, -EDEADLK);
}

struct depths {
	int left, rc;
	atomic_int ran;
};

static void fill_own_queue_at_the_bottom(void *info)
{
	struct depths *depths = info;

	if (--depths->left)
		hl_smp_call_function_single(hl_cpu_id(), fill_own_queue_at_the_bottom, depths,
					    true);
	else
		for (int i = 0; i <= HL_CALL_QUEUE && !depths->rc; i++)
			depths->rc = hl_smp_call_function_single(hl_cpu_id(), count, &depths->ran,
								 false);
}

static void a_full_queue_that_cannot_be_served_is_an_error(void **state)
{
	struct depths depths = { .left = 64 };

	(void)state;
	hl_smp_call_function_single(0, fill_own_queue_at_the_bottom, &depths, true);
	assert_int_equal(depths.left, 0);
	assert_int_equal(depths.rc, -EDEADLK);
	while (hl_cpu_poll())
		;
	assert_int_equal(depths.ran, HL_CALL_QUEUE);
}

static void send_one_more_to_oneself(void *info)
{
	assert_int_equal(hl_smp_call_function_single(hl_cpu_id(), count, info, false), 0);
}

static atomic_bool full, other_rang;

/* Has a full queue to itself and a message of another, both heard of by one bell. */
static void *hear_of_two_at_once(void *arg)
{
	int self = hl_cpu_online(0);

	for (int i = 0; i < HL_CALL_QUEUE; i++)
		hl_smp_call_function_single(self, count, arg, false);
	atomic_store(&full, true);
	while (!atomic_load(&other_rang))
		sched_yield();
	while (hl_cpu_poll())
		;
	hl_cpu_offline();
	return NULL;
}

static void who_waits_serves_also_those_that_rang_before(void **state)
{
	atomic_int ran = 0;
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, hear_of_two_at_once, &ran), 0);
	while (!atomic_load(&full))
		sched_yield();
	assert_int_equal(hl_smp_call_function_single(1, send_one_more_to_oneself, &ran, false), 0);
	atomic_store(&other_rang, true);
	pthread_join(thread, NULL);
	assert_int_equal(ran, HL_CALL_QUEUE + 1);
}

/* Takes it offline with all that was sent still there. */
static void *leave_without_a_poll(void *arg)
{
	struct poller *poller = arg;

	atomic_store(&poller->id, hl_cpu_online(0));
	while (!atomic_load(&poller->stop))
		sched_yield();
	hl_cpu_offline();
	return NULL;
}

static void poll_inside(void *info)
{
	(void)info;
	hl_cpu_poll();
}

static void send_poll_inside(void *info)
{
	struct poller *poller = info;

	assert_int_equal(hl_smp_call_function_single(poller->id, poll_inside, NULL, false), 0);
}

static void functions_that_poll_while_their_cpu_leaves_change_nothing_for_the_next(void **state)
{
	struct poller leaver = { .id = -1 }, other, next;
	atomic_int ran = 0;

	(void)state;
	assert_int_equal(pthread_create(&leaver.thread, NULL, leave_without_a_poll, &leaver), 0);
	while (atomic_load(&leaver.id) < 0)
		sched_yield();
	start(&other);
	assert_int_equal(hl_smp_call_function_single(leaver.id, count, &ran, false), 0);
	assert_int_equal(hl_smp_call_function_single(other.id, send_poll_inside, &leaver, true), 0);
	stop(&leaver);
	assert_int_equal(ran, 1);
	start(&next);
	assert_int_equal(next.id, leaver.id);
	for (int i = 0; i < 3; i++)
		assert_int_equal(hl_smp_call_function_single(next.id, count, &ran, true), 0);
	assert_int_equal(ran, 4);
	stop(&next);
	stop(&other);
}

/* ---- Threads that end ---- */

static void end_the_thread(void *info)
{
	(void)info;
	pthread_exit(NULL);
}

static void *call_end_from_outside(void *arg)
{
	struct poller *poller = arg;

	return (void *)(intptr_t)hl_smp_call_function_single(poller->id, end_the_thread, NULL,
							     true);
}

static void a_function_that_ends_the_thread_answers_threads_that_are_not_online(void **state)
{
	struct poller poller;
	pthread_t caller;
	void *rc;

	(void)state;
	start(&poller);
	assert_int_equal(pthread_create(&caller, NULL, call_end_from_outside, &poller), 0);
	pthread_join(caller, &rc);
	assert_int_equal((intptr_t)rc, 0);
	pthread_join(poller.thread, NULL);
	assert_false(hl_cpu_is_online(poller.id));
}

/* Waits on CPU 0 for the function that ends its thread, so that its id and its queue
 * to CPU 0 get a new owner while the first call is still running there. */
struct succession {
	int hops;
	struct poller *poller;
};

static void call_and_be_ended(void *info)
{
	struct succession *succession = info;

	hl_smp_call_function_single(succession->poller->id, end_the_thread, NULL, true);
	pthread_join(succession->poller->thread, NULL);
	start(succession->poller);
	succession->hops++;
}

static void call_zero(void *info)
{
	hl_smp_call_function_single(0, call_and_be_ended, info, true);
}

static void count_through_zero(void *info)
{
	hl_smp_call_function_single(0, count, info, true);
}

static void the_next_owner_of_an_id_gets_its_own_answers(void **state)
{
	struct poller poller;
	struct succession succession = { .poller = &poller };
	atomic_int ran = 0;

	(void)state;
	start(&poller);
	for (int i = 0; i < 50; i++) {
		assert_int_equal(
			hl_smp_call_function_single(poller.id, call_zero, &succession, true), 0);
		while (succession.hops <= i)
			hl_cpu_poll();
		assert_int_equal(
			hl_smp_call_function_single(poller.id, count_through_zero, &ran, true), 0);
	}
	assert_int_equal(ran, 50);
	stop(&poller);
}

/* ---- Forks ---- */

/* In the child: a whole life as a CPU. */
static bool child_works(void)
{
	atomic_int ran = 0;
	int id = hl_cpu_online(0);

	if (id < 0 || hl_smp_call_function_single(id, count, &ran, false))
		return false;
	if (hl_cpu_poll() != 1 || hl_on_each_cpu(count, &ran, true) != 1 || ran != 2)
		return false;
	return !hl_cpu_offline() && hl_num_online_cpus() == 0;
}

struct forked {
	bool in_child;
	int status;
};

static void fork_here(void *info)
{
	struct forked *forked = info;
	pid_t pid = fork();

	forked->in_child = !pid;
	if (pid > 0)
		waitpid(pid, &forked->status, 0);
}

static void fork_and_live(void *info)
{
	struct forked *forked = info;

	fork_here(info);
	if (forked->in_child && !child_works())
		_exit(2);
}

/* The child returns into what its parent was in the middle of, and then ends. */
static void end_child(const struct forked *forked, bool well)
{
	if (forked->in_child)
		_exit(well && hl_cpu_id() == -ENXIO && child_works() ? 0 : 1);
	assert_int_equal(forked->status, 0);
}

static void a_fork_in_a_function_of_ones_own(void **state)
{
	struct forked forked = { .status = -1 };

	(void)state;
	hl_smp_call_function_single(0, fork_here, &forked, true);
	end_child(&forked, true);
	hl_smp_call_function_single(0, fork_and_live, &forked, true);
	end_child(&forked, true);
}

static void a_fork_in_a_function_that_is_polled(void **state)
{
	struct forked forked = { .status = -1 };
	atomic_int ran = 0;

	(void)state;
	hl_smp_call_function_single(0, fork_and_live, &forked, false);
	hl_smp_call_function_single(0, count, &ran, false);
	hl_cpu_poll();
	end_child(&forked, ran == 0);
	assert_int_equal(ran, 1);
}

static void send_fork_back(void *info)
{
	hl_smp_call_function_single(0, fork_and_live, info, true);
}

static void a_fork_in_a_wait_lets_the_child_out_of_it(void **state)
{
	struct forked forked = { .status = -1 };
	struct poller poller;
	int rc;

	(void)state;
	start(&poller);
	rc = hl_smp_call_function_single(poller.id, send_fork_back, &forked, true);
	end_child(&forked, rc == -ENXIO);
	assert_int_equal(rc, 0);
	stop(&poller);
}

static void a_fork_with_interrupts_off(void **state)
{
	struct forked forked;

	(void)state;
	hl_local_irq_disable();
	fork_and_live(&forked);
	hl_local_irq_enable();
	end_child(&forked, true);
}

static void *fork_and_end(void *arg)
{
	struct forked *forked = arg;

	hl_cpu_online(0);
	fork_here(forked);
	return NULL;
}

/* Left by the child's thread when it ends: the last one of the process. */
static pid_t parent;

static void check_nobody_is_online(void)
{
	if (getpid() != parent)
		_exit(hl_num_online_cpus() ? 3 : 0);
}

static void the_end_of_a_childs_thread_takes_nobody_offline(void **state)
{
	struct forked forked = { .status = -1 };
	pthread_t thread;

	(void)state;
#if defined(__SANITIZE_THREAD__)
	skip(); /* ThreadSanitizer itself does not survive the end of that thread */
#endif
	parent = getpid();
	assert_int_equal(atexit(check_nobody_is_online), 0);
	assert_int_equal(pthread_create(&thread, NULL, fork_and_end, &forked), 0);
	pthread_join(thread, NULL);
	assert_int_equal(forked.status, 0);
}

/* ---- The ends of things ---- */

static void *call_once(void *arg)
{
	hl_smp_call_function_single(0, count, arg, true);
	return NULL;
}

static void a_timeout_can_be_as_long_as_it_likes(void **state)
{
	atomic_int ran = 0;
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, call_once, &ran), 0);
	while (!ran)
		hl_cpu_idle(INT64_MAX);
	pthread_join(thread, NULL);
}

static void sleep_on(struct pollfd *fd)
{
	if (!hl_cpu_eventfd_arm())
		poll(fd, 1, -1);
	hl_cpu_poll();
}

static void an_eventfd_that_was_read_is_unreadable_whatever_came_between(void **state)
{
	struct pollfd fd = { .events = POLLIN };
	atomic_int ran = 0;
	int sent = 0;

	(void)state;
	fd.fd = hl_cpu_eventfd();
	for (int i = 0; i < 2000; i++) {
		pthread_t thread;
		bool sleeps = !hl_cpu_eventfd_arm();

		assert_int_equal(pthread_create(&thread, NULL, call_once, &ran), 0);
		sent++;
		if (sleeps && i % 2)
			assert_int_equal(poll(&fd, 1, -1), 1);
		while (ran < sent)
			sleep_on(&fd);
		pthread_join(thread, NULL);
		hl_cpu_poll();
		assert_int_equal(poll(&fd, 1, 0), 0);
	}
}

static void *per_cpu;

static void touch_own(void *info)
{
	(void)info;
	++*(int *)hl_this_cpu_ptr(per_cpu);
}

static void what_is_per_cpu_is_looked_up_where_the_function_runs(void **state)
{
	int id = -1;

	(void)state;
	per_cpu = hl_percpu_alloc(sizeof(int), sizeof(int));
	for (int i = 0; i < 100; i++) {
		struct poller poller;

		start(&poller);
		id = poller.id;
		assert_int_equal(hl_smp_call_function_single(id, touch_own, NULL, false), 0);
		stop(&poller);
	}
	assert_int_equal(*(int *)hl_per_cpu_ptr(per_cpu, id), 100);
	hl_percpu_free(per_cpu);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, come_online, go_offline)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_broadcast_too_deep_is_an_error),
		TEST(a_full_queue_that_cannot_be_served_is_an_error),
		TEST(who_waits_serves_also_those_that_rang_before),
		TEST(functions_that_poll_while_their_cpu_leaves_change_nothing_for_the_next),
		TEST(a_function_that_ends_the_thread_answers_threads_that_are_not_online),
		TEST(the_next_owner_of_an_id_gets_its_own_answers),
		TEST(a_fork_in_a_function_of_ones_own),
		TEST(a_fork_in_a_function_that_is_polled),
		TEST(a_fork_in_a_wait_lets_the_child_out_of_it),
		TEST(a_fork_with_interrupts_off),
		cmocka_unit_test(the_end_of_a_childs_thread_takes_nobody_offline),
		TEST(a_timeout_can_be_as_long_as_it_likes),
		TEST(an_eventfd_that_was_read_is_unreadable_whatever_came_between),
		TEST(what_is_per_cpu_is_looked_up_where_the_function_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
