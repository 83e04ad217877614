// SPDX-License-Identifier: MIT
/* CPUs that sleep, in every way there is, while several others call them: nobody is left
 * asleep, no call is lost, no signal reaches a thread that has left. */
#include <dlfcn.h>
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
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include <hotline/call.h>
#include <hotline/cpu.h>

static void count(void *info)
{
	atomic_fetch_add((atomic_int *)info, 1);
}

/* ---- Everyone sleeps and sends ---- */

#define SLEEPERS 4
#define SENDS 3000

static atomic_int received[SLEEPERS], finished;
static int ids[SLEEPERS];
static pthread_barrier_t barrier;

static void sleep_once(int self)
{
	struct pollfd fd = { .fd = self % 2 ? hl_cpu_eventfd() : -1, .events = POLLIN };

	if (fd.fd < 0) {
		hl_cpu_idle(-1);
		return;
	}
	if (!hl_cpu_eventfd_arm())
		poll(&fd, 1, -1);
	hl_cpu_poll();
}

static void note_finish(void *info)
{
	(void)info;
}

static void *sleep_and_send(void *arg)
{
	int self = (int)(intptr_t)arg, sent = 0;

	ids[self] = hl_cpu_online(0);
	pthread_barrier_wait(&barrier);
	while (sent < SENDS) {
		for (int to = 0; to < SLEEPERS; to++)
			if (to != self)
				hl_smp_call_function_single(ids[to], count, &received[to],
							    sent % 4 == 0);
		sent++;
		if (sent % 2 == 0 && received[self] < SENDS * (SLEEPERS - 1))
			hl_cpu_poll();
	}
	/* From here on only the calls of others wake it. */
	while (received[self] < SENDS * (SLEEPERS - 1))
		sleep_once(self);
	/* Others may wait for room or answers still: all leave together. */
	atomic_fetch_add(&finished, 1);
	hl_on_each_cpu(note_finish, NULL, false);
	while (finished < SLEEPERS)
		hl_cpu_poll();
	hl_cpu_offline();
	return NULL;
}

static void nobody_is_left_asleep(void **state)
{
	pthread_t thread[SLEEPERS];

	(void)state;
	pthread_barrier_init(&barrier, NULL, SLEEPERS);
	for (intptr_t i = 0; i < SLEEPERS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, sleep_and_send, (void *)i), 0);
	for (int i = 0; i < SLEEPERS; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < SLEEPERS; i++)
		assert_int_equal(received[i], SENDS * (SLEEPERS - 1));
}

/* ---- Many senders, one target that sleeps whenever it can ---- */

#define SENDERS 32
#define EACH 300

struct target {
	pthread_t thread;
	atomic_int id, tid;
	atomic_bool stop;
	unsigned flags;
	bool sleeps;
};

static void nothing(void *info)
{
	(void)info;
}

static void *be_target(void *arg)
{
	struct target *target = arg;

	atomic_store(&target->tid, (int)syscall(SYS_gettid));
	atomic_store(&target->id, hl_cpu_online(target->flags));
	while (!atomic_load(&target->stop))
		if (target->sleeps)
			hl_cpu_idle(-1);
		else
			hl_cpu_poll();
	hl_cpu_offline();
	return NULL;
}

static void start(struct target *target, bool sleeps)
{
	*target = (struct target){ .id = -1, .sleeps = sleeps };
	assert_int_equal(pthread_create(&target->thread, NULL, be_target, target), 0);
	while (atomic_load(&target->id) < 0)
		sched_yield();
}

static void stop(struct target *target)
{
	atomic_store(&target->stop, true);
	hl_smp_call_function_single(target->id, nothing, NULL, false);
	pthread_join(target->thread, NULL);
}

static struct target one_target;
static atomic_int from_all;

static void *send_to_one(void *arg)
{
	bool online = (intptr_t)arg % 2;
	long failed = 0;

	if (online)
		hl_cpu_online(0);
	for (int i = 0; i < EACH; i++)
		failed |= hl_smp_call_function_single(one_target.id, count, &from_all, i % 8 == 0);
	if (online)
		hl_cpu_offline();
	return (void *)failed;
}

static void many_senders_wake_one_target_every_time(void **state)
{
	pthread_t thread[SENDERS];
	void *failed;

	(void)state;
	start(&one_target, true);
	for (intptr_t i = 0; i < SENDERS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, send_to_one, (void *)i), 0);
	for (int i = 0; i < SENDERS; i++) {
		pthread_join(thread[i], &failed);
		assert_null(failed);
	}
	stop(&one_target);
	assert_int_equal(from_all, SENDERS * EACH);
}

/* ---- CPUs that a broadcast skips ---- */

#define PARKED 12

static long voluntary_switches(int tid)
{
	char path[64], line[128];
	long n = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
	file = fopen(path, "r");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "voluntary_ctxt_switches: %ld", &n) == 1)
			break;
	fclose(file);
	return n;
}

/* Until it has slept for some turns of this thread. */
static long switches_at_rest(int tid)
{
	long n = voluntary_switches(tid);

	for (int same = 0; same < 100; same++) {
		long now = voluntary_switches(tid);

		if (now != n)
			same = 0;
		n = now;
		sched_yield();
	}
	return n;
}

static bool is_not_parked(int cpu, void *info)
{
	const struct target *parked = info;

	for (int i = 0; i < PARKED; i++)
		if (parked[i].id == cpu)
			return false;
	return true;
}

static void a_broadcast_does_not_wake_whom_it_skips(void **state)
{
	struct target parked[PARKED], polling;
	long before[PARKED];

	(void)state;
	for (int i = 0; i < PARKED; i++)
		start(&parked[i], true);
	start(&polling, false);
	for (int i = 0; i < PARKED; i++)
		before[i] = switches_at_rest(parked[i].tid);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(hl_on_each_cpu_cond(is_not_parked, nothing, parked, true), 1);
	for (int i = 0; i < PARKED; i++)
		assert_int_equal(voluntary_switches(parked[i].tid), before[i]);
	stop(&polling);
	for (int i = 0; i < PARKED; i++)
		stop(&parked[i]);
}

/* ---- Threads that come and go ---- */

static void *live_once(void *arg)
{
	struct target *target = arg;

	atomic_store(&target->id, hl_cpu_online(target->flags));
	while (!atomic_load(&target->stop))
		hl_cpu_poll();
	return NULL; /* its destructor takes it offline */
}

static void set_stop(void *info)
{
	atomic_store(&((struct target *)info)->stop, true);
}

static int lives(void)
{
	const char *n = getenv("LIVES");

	return n ? atoi(n) : 1000;
}

/* Called before its first poll, stopped by that call. */
static void a_call_before_the_first_poll_runs(void **state)
{
	(void)state;
	for (int i = 0; i < lives(); i++) {
		struct target target = { .id = -1 };
		int rc;

		assert_int_equal(pthread_create(&target.thread, NULL, live_once, &target), 0);
		while ((rc = hl_smp_call_function_single(0, set_stop, &target, false)) == -ENXIO)
			sched_yield();
		assert_int_equal(rc, 0);
		pthread_join(target.thread, NULL);
		assert_true(target.stop);
	}
}

/* ---- Signals to threads that have left ---- */

/* The thread that has left last, and lives on: nobody may signal it any more. */
static atomic_int left_tid, astray, signals;

static long (*next_syscall)(long, ...);

__attribute__((constructor)) static void find_syscall(void)
{
	*(void **)&next_syscall = dlsym(RTLD_NEXT, "syscall");
}

/* The library's system calls come by here. A sender that is about to signal is slow: it is
 * given up for a while between what it read of its target and the signal. */
long syscall(long number, ...)
{
	long argument[6];
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		argument[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_tgkill) {
		for (int i = 0; i < 20; i++)
			sched_yield();
		atomic_fetch_add(&signals, 1);
		if ((int)argument[1] == atomic_load(&left_tid))
			atomic_fetch_add(&astray, 1);
	}
	return next_syscall(number, argument[0], argument[1], argument[2], argument[3], argument[4],
			    argument[5]);
}

static atomic_int senders_left;

static void *leave_and_stay(void *arg)
{
	struct target *target = arg;

	atomic_store(&target->tid, (int)syscall(SYS_gettid));
	atomic_store(&target->id, hl_cpu_online(HL_CPU_INTERRUPTIBLE));
	while (!atomic_load(&target->stop))
		;
	hl_cpu_offline();
	atomic_store(&left_tid, target->tid);
	/* Its number is nobody else's until all have noticed. */
	while (atomic_load(&senders_left))
		sched_yield();
	return NULL;
}

/* Until it has left. */
static void *send_until_it_left(void *arg)
{
	struct target *target = arg;
	atomic_int ran = 0;
	int sent = 0;

	while (!hl_smp_call_function_single(target->id, count, &ran, false))
		if (++sent == 20)
			atomic_store(&target->stop, true);
	/* What was accepted has run or runs in hl_cpu_offline(). */
	while (ran < sent)
		sched_yield();
	atomic_fetch_sub(&senders_left, 1);
	return NULL;
}

#define SIGNALLERS 3

static void no_signal_reaches_a_thread_that_is_not_its_cpu(void **state)
{
	(void)state;
	for (int i = 0; i < lives() / 10; i++) {
		struct target target = { .id = -1 };
		pthread_t sender[SIGNALLERS];
		atomic_int ran = 0;

		atomic_store(&left_tid, 0);
		atomic_store(&senders_left, SIGNALLERS);
		assert_int_equal(pthread_create(&target.thread, NULL, leave_and_stay, &target), 0);
		while (atomic_load(&target.id) < 0)
			sched_yield();
		for (int k = 0; k < SIGNALLERS; k++)
			assert_int_equal(
				pthread_create(&sender[k], NULL, send_until_it_left, &target), 0);
		for (int k = 0; k < SIGNALLERS; k++)
			pthread_join(sender[k], NULL);
		pthread_join(target.thread, NULL);
		assert_int_equal(hl_smp_call_function_single(target.id, count, &ran, true), -ENXIO);
	}
	assert_true(signals > 0);
	assert_int_equal(astray, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_is_left_asleep),
		cmocka_unit_test(many_senders_wake_one_target_every_time),
		cmocka_unit_test(a_broadcast_does_not_wake_whom_it_skips),
		cmocka_unit_test(a_call_before_the_first_poll_runs),
		cmocka_unit_test(no_signal_reaches_a_thread_that_is_not_its_cpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
