// SPDX-License-Identifier: MIT
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <hotline/call.h>
#include <hotline/cpu.h>

#include "../tools/poller.h"
#include "../tools/refuse.h"

static void note_cpu(void *info)
{
	*(int *)info = hl_cpu_id();
}

/* ---- One CPU ---- */

static void a_waited_call_has_run_on_its_cpu(void **state)
{
	struct poller poller;
	int ran_on = -1;

	(void)state;
	start(&poller);
	assert_int_equal(hl_smp_call_function_single(poller.id, note_cpu, &ran_on, true), 0);
	assert_int_equal(ran_on, poller.id);
	stop(&poller);
}

static void a_target_that_is_not_there_is_an_error(void **state)
{
	struct poller poller;
	struct hl_cpumask mask;
	struct hl_csd csd;
	atomic_int ran = 0;

	(void)state;
	start(&poller);
	stop(&poller);
	hl_csd_init(&csd, count, &ran);
	for (int wait = 0; wait < 2; wait++) {
		assert_int_equal(hl_smp_call_function_single(-1, count, &ran, wait), -EINVAL);
		assert_int_equal(hl_smp_call_function_single(HL_NR_CPUS, count, &ran, wait),
				 -EINVAL);
		assert_int_equal(hl_smp_call_function_single(HL_NR_CPUS - 1, count, &ran, wait),
				 -ENXIO);
		assert_int_equal(hl_smp_call_function_single(poller.id, count, &ran, wait), -ENXIO);
		assert_int_equal(hl_smp_call_function_single(0, NULL, NULL, wait), -EINVAL);
	}
	assert_int_equal(hl_smp_call_function_single_async(poller.id, &csd), -ENXIO);
	assert_false(hl_csd_in_flight(&csd));
	hl_cpumask_clear(&mask);
	assert_int_equal(hl_smp_call_function_any(&mask, count, &ran, true), -ENXIO);
	assert_int_equal(hl_smp_call_function_many(&mask, count, &ran, true), 0);
	assert_int_equal(ran, 0);
}

static void a_call_to_oneself_runs_at_once_if_waited_for(void **state)
{
	atomic_int ran = 0;

	(void)state;
	assert_int_equal(hl_smp_call_function_single(0, count, &ran, true), 0);
	assert_int_equal(ran, 1);
	assert_int_equal(hl_smp_call_function_single(0, count, &ran, false), 0);
	assert_int_equal(ran, 1);
	assert_int_equal(hl_cpu_poll(), 1);
	assert_int_equal(ran, 2);
}

struct chain {
	struct hl_csd csd;
	int left;
	char *deepest;
};

static void send_again(void *info)
{
	struct chain *chain = info;
	/* Not that of a variable: AddressSanitizer has them elsewhere. */
	char *here = __builtin_frame_address(0);

	if (!chain->deepest)
		chain->deepest = here;
	assert_true(labs((long)(chain->deepest - here)) < 4096);
	if (--chain->left)
		assert_int_equal(hl_smp_call_function_single_async(0, &chain->csd), 0);
}

static void a_million_calls_that_send_themselves_again_need_no_stack(void **state)
{
	struct chain chain = { .left = 1000000 };

	(void)state;
	hl_csd_init(&chain.csd, send_again, &chain);
	assert_int_equal(hl_smp_call_function_single_async(0, &chain.csd), 0);
	while (chain.left)
		assert_true(hl_cpu_poll() > 0);
}

static void a_csd_in_flight_is_busy(void **state)
{
	struct poller poller;
	struct hl_csd csd;
	atomic_int ran = 0;

	(void)state;
	start(&poller);
	atomic_store(&poller.hold, true);
	hl_csd_init(&csd, count, &ran);
	/* The poll that goes on while it is told to hold may run the first. */
	while (hl_smp_call_function_single_async(poller.id, &csd) != -EBUSY)
		;
	assert_true(hl_csd_in_flight(&csd));
	atomic_store(&poller.hold, false);
	while (hl_csd_in_flight(&csd))
		;
	stop(&poller);
	assert_true(ran >= 1);
}

static void free_it(void *info)
{
	free(info);
}

static void a_csd_may_be_freed_by_its_function(void **state)
{
	struct poller poller;

	(void)state;
	start(&poller);
	for (int i = 0; i < 20000; i++) {
		struct hl_csd *csd = aligned_alloc(_Alignof(struct hl_csd), sizeof(*csd));

		assert_non_null(csd);
		hl_csd_init(csd, free_it, csd);
		assert_int_equal(hl_smp_call_function_single_async(poller.id, csd), 0);
	}
	stop(&poller);
}

static uint64_t last_seen;

static void see(void *info)
{
	uint64_t number = (uintptr_t)info;

	assert_int_equal(number, last_seen + 1);
	last_seen = number;
}

static void every_call_runs_once_and_in_order(void **state)
{
	struct poller poller;

	(void)state;
	last_seen = 0;
	start(&poller);
	for (uintptr_t i = 1; i <= 200000; i++)
		assert_int_equal(hl_smp_call_function_single(poller.id, see, (void *)i, false), 0);
	stop(&poller);
	assert_int_equal(last_seen, 200000);
}

static void what_was_sent_before_it_leaves_has_run(void **state)
{
	(void)state;
	for (int i = 0; i < 200; i++) {
		struct poller poller;
		atomic_int ran = 0;

		start(&poller);
		for (int k = 0; k < 10; k++)
			assert_int_equal(hl_smp_call_function_single(poller.id, count, &ran, false),
					 0);
		stop(&poller);
		assert_int_equal(ran, 10);
	}
}

/* Only the task that runs when the call is sent ends before it runs. Counted, so that it holds on a machine that is busy, too. */
static atomic_int tasks_ended, ended_before_it_ran;
static atomic_bool no_more_tasks;

static void note_tasks(void *info)
{
	(void)info;
	atomic_store(&ended_before_it_ran, tasks_ended);
}

static void *work_through_tasks(void *arg)
{
	atomic_store((atomic_int *)arg, hl_cpu_online(0));
	while (!atomic_load(&no_more_tasks)) {
		for (volatile int i = 0; i < 20000; i++)
			;
		atomic_fetch_add(&tasks_ended, 1);
		hl_cpu_poll();
	}
	hl_cpu_offline();
	return NULL;
}

static void a_call_waits_for_one_task_and_not_for_all(void **state)
{
	atomic_int id = -1;
	pthread_t worker;

	(void)state;
	atomic_store(&no_more_tasks, false);
	assert_int_equal(pthread_create(&worker, NULL, work_through_tasks, &id), 0);
	while (id < 0)
		sched_yield();
	for (int i = 0; i < 300; i++) {
		int ended_when_sent;

		atomic_store(&ended_before_it_ran, -1);
		assert_int_equal(hl_smp_call_function_single(id, note_tasks, NULL, false), 0);
		/* Not read before the message is there. */
		ended_when_sent = atomic_fetch_add(&tasks_ended, 0);
		while (ended_before_it_ran < 0)
			;
		assert_true(ended_before_it_ran <= ended_when_sent + 1);
	}
	atomic_store(&no_more_tasks, true);
	pthread_join(worker, NULL);
}

/* ---- Waiting inside waiting ---- */

struct ring {
	int first, cpus, hops;
	atomic_int ran;
};

static void next_hop(void *info)
{
	struct ring *ring = info;
	int next = ring->first + (hl_cpu_id() - ring->first + 1) % ring->cpus;

	if (atomic_fetch_add(&ring->ran, 1) + 1 < ring->hops)
		assert_int_equal(hl_smp_call_function_single(next, next_hop, ring, true), 0);
}

static void waiting_cpus_serve_each_other_in_a_ring(void **state)
{
	struct poller poller[3];
	/* Three CPUs, deeper than a queue has places for answers. */
	struct ring ring = { .cpus = 3, .hops = 40 };

	(void)state;
	for (int i = 0; i < 3; i++)
		start(&poller[i]);
	ring.first = poller[0].id;
	assert_int_equal(hl_smp_call_function_single(poller[0].id, next_hop, &ring, true), 0);
	assert_int_equal(ring.ran, 40);
	for (int i = 0; i < 3; i++)
		stop(&poller[i]);
}

static void call_back(void *info)
{
	assert_int_equal(hl_smp_call_function_single(0, count, info, true), 0);
}

static void two_cpus_that_call_each_other_do_not_deadlock(void **state)
{
	struct poller poller;
	atomic_int ran = 0;

	(void)state;
	start(&poller);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(hl_smp_call_function_single(poller.id, call_back, &ran, true), 0);
	assert_int_equal(ran, 1000);
	stop(&poller);
}

static void go_deeper(void *info)
{
	int rc = hl_smp_call_function_single(0, go_deeper, info, true);

	if (rc)
		*(int *)info = rc;
}

static void waiting_that_cannot_end_is_an_error(void **state)
{
	int rc = 0;

	(void)state;
	assert_int_equal(hl_smp_call_function_single(0, go_deeper, &rc, true), 0);
	assert_int_equal(rc, -EDEADLK);
}

static void try_to_leave(void *info)
{
	*(int *)info = hl_cpu_offline();
}

static void a_function_that_was_sent_cannot_take_its_cpu_offline(void **state)
{
	int rc = 0;

	(void)state;
	assert_int_equal(hl_smp_call_function_single(0, try_to_leave, &rc, true), 0);
	assert_int_equal(rc, -EBUSY);
	assert_int_equal(hl_cpu_id(), 0);
}

static void end_the_thread(void *info)
{
	(void)info;
	pthread_exit(NULL);
}

static void a_thread_that_ends_in_a_call_answers_it(void **state)
{
	struct poller poller;

	(void)state;
	start(&poller);
	assert_int_equal(hl_smp_call_function_single(poller.id, end_the_thread, NULL, true), 0);
	pthread_join(poller.thread, NULL);
	assert_false(hl_cpu_is_online(poller.id));
}

/* ---- Many ---- */

static bool is_even(int cpu, void *info)
{
	(void)info;
	return cpu % 2 == 0;
}

static void many_any_and_each(void **state)
{
	struct poller poller[3];
	struct hl_cpumask mask;
	atomic_int ran = 0;
	int ran_on = -1;

	(void)state;
	for (int i = 0; i < 3; i++)
		start(&poller[i]);
	assert_int_equal(hl_on_each_cpu(count, &ran, true), 4);
	assert_int_equal(ran, 4);
	hl_cpumask_setall(&mask);
	assert_int_equal(hl_smp_call_function_many(&mask, count, &ran, true), 3);
	assert_int_equal(ran, 7);
	assert_int_equal(hl_on_each_cpu_cond(is_even, count, &ran, true), 2);
	assert_int_equal(ran, 9);
	assert_int_equal(hl_smp_call_function_any(&mask, note_cpu, &ran_on, true), 0);
	assert_int_equal(ran_on, 0);
	hl_cpumask_clear_cpu(0, &mask);
	assert_int_equal(hl_smp_call_function_any(&mask, note_cpu, &ran_on, true), 0);
	assert_int_equal(ran_on, poller[0].id);
	assert_int_equal(hl_smp_call_function_many(&mask, NULL, NULL, true), -EINVAL);
	for (int i = 0; i < 3; i++)
		stop(&poller[i]);
}

static void broadcast(void *info)
{
	hl_on_each_cpu(count, info, true);
}

static void broadcasts_inside_broadcasts_end(void **state)
{
	struct poller poller[2];
	atomic_int ran = 0;

	(void)state;
	for (int i = 0; i < 2; i++)
		start(&poller[i]);
	for (int i = 0; i < 50; i++)
		assert_int_equal(hl_on_each_cpu(broadcast, &ran, true), 3);
	assert_int_equal(ran, 50 * 9);
	for (int i = 0; i < 2; i++)
		stop(&poller[i]);
}

/* ---- Threads that are not online, children of fork ---- */

static void *call_from_outside(void *arg)
{
	struct poller *poller = arg;
	atomic_int ran = 0;
	long rc = 0;

	for (int i = 0; i < 1000 && !rc; i++)
		rc = hl_smp_call_function_single(poller->id, count, &ran, i % 2);
	return (void *)(rc || hl_on_each_cpu(count, &ran, true) != 2 ? 1L : 0L);
}

static void threads_that_are_not_online_may_call(void **state)
{
	struct poller poller;
	pthread_t thread[4];

	(void)state;
	start(&poller);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, call_from_outside, &poller), 0);
	for (int i = 0; i < 4; i++) {
		void *failed = NULL;

		while (pthread_tryjoin_np(thread[i], &failed))
			hl_cpu_poll();
		assert_null(failed);
	}
	stop(&poller);
}

static void nothing_that_was_sent_runs_in_a_child(void **state)
{
	atomic_int ran = 0;
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(hl_smp_call_function_single(0, count, &ran, false), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		int bad = hl_cpu_online(0) != 0 || hl_cpu_poll() != 0 || ran ||
			  hl_smp_call_function_single(0, count, &ran, false) ||
			  hl_cpu_poll() != 1 || ran != 1;

		_exit(bad);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(hl_cpu_poll(), 1);
	assert_int_equal(ran, 1);
}

/* ---- Stalls ---- */

static struct hl_call_stall stall_seen;
static struct poller *stalled;

static void end_the_stall(const struct hl_call_stall *stall)
{
	stall_seen = *stall;
	atomic_store(&stalled->hold, false);
}

static void a_cpu_that_does_not_answer_is_named(void **state)
{
	struct poller poller;
	atomic_int ran = 0;

	(void)state;
	start(&poller);
	stalled = &poller;
	stall_seen = (struct hl_call_stall){ .cpu = -1 };
	hl_call_stall_ms(1, end_the_stall);
	while (stall_seen.cpu < 0) {
		atomic_store(&poller.hold, true);
		assert_int_equal(hl_smp_call_function_single(poller.id, count, &ran, true), 0);
	}
	hl_call_stall_ms(0, NULL);
	assert_int_equal(stall_seen.cpu, poller.id);
	assert_true(stall_seen.tid > 0);
	assert_true(stall_seen.sent == count);
	assert_true(stall_seen.waited_ms >= 1);
	stop(&poller);
}

static void fill(struct poller *poller, atomic_int *ran)
{
	for (int i = 0; i <= HL_CALL_QUEUE; i++)
		assert_int_equal(hl_smp_call_function_single(poller->id, count, ran, false), 0);
}

static void a_cpu_that_makes_no_room_is_named(void **state)
{
	struct poller poller;
	atomic_int ran = 0;
	int rounds = 0;

	(void)state;
	start(&poller);
	stalled = &poller;
	stall_seen = (struct hl_call_stall){ .cpu = -1 };
	hl_call_stall_ms(1, end_the_stall);
	for (; stall_seen.cpu < 0; rounds++) {
		atomic_store(&poller.hold, true);
		fill(&poller, &ran);
	}
	hl_call_stall_ms(0, NULL);
	assert_int_equal(stall_seen.cpu, poller.id);
	assert_true(stall_seen.sent == count);
	stop(&poller);
	assert_int_equal(ran, rounds * (HL_CALL_QUEUE + 1));
}

static atomic_bool holding, reported;
static void (*_Atomic running_seen)(void *);

static void note_what_runs(const struct hl_call_stall *stall)
{
	if (!atomic_load(&holding))
		return;
	atomic_store(&running_seen, stall->running);
	atomic_store(&reported, true);
}

static void hold_until_reported(void *info)
{
	(void)info;
	atomic_store(&holding, true);
	while (!atomic_load(&reported))
		sched_yield();
}

static void *hold_from_outside(void *arg)
{
	return (void *)(intptr_t)hl_smp_call_function_single(*(int *)arg, hold_until_reported, NULL,
							     true);
}

static void the_function_that_keeps_a_cpu_is_named(void **state)
{
	struct poller poller;
	pthread_t outside;
	void *rc;
	int id;

	(void)state;
	start(&poller);
	id = poller.id;
	hl_call_stall_ms(1, note_what_runs);
	/* Not what wraps it for callers that are not online. */
	assert_int_equal(pthread_create(&outside, NULL, hold_from_outside, &id), 0);
	pthread_join(outside, &rc);
	hl_call_stall_ms(0, NULL);
	assert_null(rc);
	assert_true(running_seen == hold_until_reported);
	stop(&poller);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, come_online, go_offline)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_waited_call_has_run_on_its_cpu),
		TEST(a_target_that_is_not_there_is_an_error),
		TEST(a_call_to_oneself_runs_at_once_if_waited_for),
		TEST(a_million_calls_that_send_themselves_again_need_no_stack),
		TEST(a_csd_in_flight_is_busy),
		TEST(a_csd_may_be_freed_by_its_function),
		TEST(every_call_runs_once_and_in_order),
		TEST(what_was_sent_before_it_leaves_has_run),
		TEST(a_call_waits_for_one_task_and_not_for_all),
		TEST(waiting_cpus_serve_each_other_in_a_ring),
		TEST(two_cpus_that_call_each_other_do_not_deadlock),
		TEST(waiting_that_cannot_end_is_an_error),
		TEST(a_function_that_was_sent_cannot_take_its_cpu_offline),
		TEST(a_thread_that_ends_in_a_call_answers_it),
		TEST(many_any_and_each),
		TEST(broadcasts_inside_broadcasts_end),
		TEST(threads_that_are_not_online_may_call),
		TEST(nothing_that_was_sent_runs_in_a_child),
		TEST(a_cpu_that_does_not_answer_is_named),
		TEST(a_cpu_that_makes_no_room_is_named),
		TEST(the_function_that_keeps_a_cpu_is_named),
	};

	return cmocka_run_group_tests(tests, refuse_membarrier, NULL);
}
