// SPDX-License-Identifier: MIT
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <hotline/call.h>
#include <hotline/cpu.h>

#include "../tools/refuse.h"

static void masks_hold_every_id_there_can_be(void **state)
{
	static const int ids[] = { 0, 63, 64, 1023, 1024, HL_NR_CPUS - 1 };
	struct hl_cpumask mask, other;
	unsigned n = 0;
	int cpu;

	(void)state;
	hl_cpumask_clear(&mask);
	assert_true(hl_cpumask_empty(&mask));
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		hl_cpumask_set_cpu(ids[i], &mask);
	assert_int_equal(hl_cpumask_weight(&mask), 6);
	HL_FOR_EACH_CPU(cpu, &mask)
		assert_int_equal(cpu, ids[n++]);
	assert_int_equal(n, 6);
	hl_cpumask_setall(&other);
	assert_int_equal(hl_cpumask_weight(&other), HL_NR_CPUS);
	hl_cpumask_andnot(&other, &other, &mask);
	assert_false(hl_cpumask_test_cpu(1024, &other));
	hl_cpumask_or(&other, &other, &mask);
	hl_cpumask_and(&other, &other, &mask);
	assert_true(hl_cpumask_equal(&other, &mask));
	hl_cpumask_clear_cpu(0, &mask);
	assert_int_equal(hl_cpumask_first(&mask), 63);
}

static void masks_ignore_ids_that_cannot_be(void **state)
{
	struct hl_cpumask mask;

	(void)state;
	hl_cpumask_clear(&mask);
	hl_cpumask_set_cpu(-1, &mask);
	hl_cpumask_set_cpu(HL_NR_CPUS, &mask);
	assert_true(hl_cpumask_empty(&mask));
	assert_false(hl_cpumask_test_cpu(-1, &mask));
	assert_false(hl_cpumask_test_cpu(HL_NR_CPUS, &mask));
}

static void a_thread_that_is_not_online_is_told_so(void **state)
{
	(void)state;
	assert_int_equal(hl_cpu_id(), -ENXIO);
	assert_int_equal(hl_cpu_poll(), -ENXIO);
	assert_int_equal(hl_cpu_idle(0), -ENXIO);
	assert_int_equal(hl_cpu_offline(), -ENXIO);
	assert_int_equal(hl_cpu_eventfd(), -ENXIO);
	assert_int_equal(hl_cpu_eventfd_arm(), -ENXIO);
	assert_int_equal(hl_cpu_set_interruptible(true), -ENXIO);
	assert_false(hl_cpu_is_online(-1));
	assert_false(hl_cpu_is_online(HL_NR_CPUS));
	hl_local_irq_disable();
	hl_local_irq_enable();
}

static void online_once_with_the_lowest_id(void **state)
{
	(void)state;
	assert_int_equal(hl_cpu_online(~0u), -EINVAL);
	assert_int_equal(hl_cpu_online(0), 0);
	assert_int_equal(hl_cpu_online(0), -EBUSY);
	assert_int_equal(hl_cpu_id(), 0);
	assert_int_equal(hl_num_online_cpus(), 1);
	assert_true(hl_cpu_is_online(0));
	assert_int_equal(hl_cpu_offline(), 0);
	assert_false(hl_cpu_is_online(0));
	assert_int_equal(hl_num_online_cpus(), 0);
	assert_int_equal(hl_cpu_online(0), 0);
	assert_int_equal(hl_cpu_offline(), 0);
}

static void *come_online_and_end(void *arg)
{
	*(int *)arg = hl_cpu_online(0);
	return NULL;
}

static void a_thread_that_ends_goes_offline(void **state)
{
	(void)state;
	for (int i = 0; i < 100; i++) {
		pthread_t thread;
		int id = -1;

		assert_int_equal(pthread_create(&thread, NULL, come_online_and_end, &id), 0);
		pthread_join(thread, NULL);
		assert_int_equal(id, 0);
		assert_int_equal(hl_num_online_cpus(), 0);
	}
}

static void per_cpu_objects_share_no_line_and_keep_what_they_hold(void **state)
{
	static const int ids[] = { 0, 1, 1023, 1024, HL_NR_CPUS - 1 };
	char *percpu = hl_percpu_alloc(5, 1);

	(void)state;
	assert_non_null(percpu);
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		char *object = hl_per_cpu_ptr(percpu, ids[i]);

		assert_memory_equal(object, "\0\0\0\0", 5);
		assert_int_equal((uintptr_t)object % HL_CACHE_LINE_PAIR, 0);
		memset(object, ids[i] & 0x7f, 5);
	}
	assert_int_equal(*(char *)hl_per_cpu_ptr(percpu, 1024), 1024 & 0x7f);
	assert_null(hl_this_cpu_ptr(percpu));
	assert_int_equal(hl_cpu_online(0), 0);
	assert_ptr_equal(hl_this_cpu_ptr(percpu), hl_per_cpu_ptr(percpu, 0));
	assert_int_equal(hl_cpu_offline(), 0);
	hl_percpu_free(percpu);
	hl_percpu_free(NULL);
}

static void per_cpu_memory_refuses_what_cannot_be(void **state)
{
	(void)state;
	errno = 0;
	assert_null(hl_percpu_alloc(0, 1));
	assert_int_equal(errno, EINVAL);
	assert_null(hl_percpu_alloc(8, 3));
	assert_null(hl_percpu_alloc(8, 1 << 20));
	assert_null(hl_percpu_alloc(SIZE_MAX / 2, 8));
}

static void idle_ends_when_its_time_is_up(void **state)
{
	(void)state;
	assert_int_equal(hl_cpu_online(0), 0);
	assert_int_equal(hl_cpu_idle(0), 0);
	assert_int_equal(hl_cpu_idle(1000), 0);
	assert_int_equal(hl_cpu_offline(), 0);
}

static void count(void *info)
{
	atomic_fetch_add((atomic_int *)info, 1);
}

struct caller {
	atomic_int ran;
	int target, rc;
};

static void *call_once(void *arg)
{
	struct caller *caller = arg;

	caller->rc = hl_smp_call_function_single(caller->target, count, &caller->ran, true);
	return NULL;
}

static void a_call_wakes_a_cpu_that_idles(void **state)
{
	struct caller caller = { .target = 0 };
	pthread_t thread;
	int n = 0;

	(void)state;
	assert_int_equal(hl_cpu_online(0), 0);
	assert_int_equal(pthread_create(&thread, NULL, call_once, &caller), 0);
	while (!n)
		n = hl_cpu_idle(-1);
	pthread_join(thread, NULL);
	assert_int_equal(n, 1);
	assert_int_equal(caller.rc, 0);
	assert_int_equal(caller.ran, 1);
	assert_int_equal(hl_cpu_offline(), 0);
}

static void a_call_makes_the_eventfd_readable(void **state)
{
	struct caller caller = { .target = 0 };
	struct pollfd fd = { .events = POLLIN };
	pthread_t thread;

	(void)state;
	assert_int_equal(hl_cpu_online(0), 0);
	fd.fd = hl_cpu_eventfd();
	assert_true(fd.fd >= 0);
	assert_int_equal(hl_cpu_eventfd(), fd.fd);
	assert_int_equal(hl_cpu_eventfd_arm(), 0);
	assert_int_equal(pthread_create(&thread, NULL, call_once, &caller), 0);
	assert_int_equal(poll(&fd, 1, -1), 1);
	assert_int_equal(hl_cpu_poll(), 1);
	pthread_join(thread, NULL);
	assert_int_equal(poll(&fd, 1, 0), 0);
	assert_int_equal(hl_cpu_offline(), 0);
}

static void a_call_interrupts_a_cpu_that_computes(void **state)
{
	struct caller caller = { .target = 0 };
	pthread_t thread;

	(void)state;
	assert_int_equal(hl_cpu_online(HL_CPU_INTERRUPTIBLE), 0);
	errno = EDOM;
	assert_int_equal(pthread_create(&thread, NULL, call_once, &caller), 0);
	while (!atomic_load(&caller.ran))
		;
	pthread_join(thread, NULL);
	assert_int_equal(errno, EDOM);
	assert_int_equal(caller.rc, 0);
	assert_int_equal(hl_cpu_offline(), 0);
}

static void disabled_interrupts_wait_for_the_enable(void **state)
{
	struct hl_csd csd;
	atomic_int ran = 0;

	(void)state;
	assert_int_equal(hl_cpu_online(HL_CPU_INTERRUPTIBLE), 0);
	hl_csd_init(&csd, count, &ran);
	hl_local_irq_disable();
	hl_local_irq_disable();
	assert_int_equal(hl_smp_call_function_single_async(0, &csd), 0);
	hl_local_irq_enable();
	assert_int_equal(ran, 0);
	hl_local_irq_enable();
	assert_int_equal(ran, 1);
	assert_int_equal(hl_cpu_offline(), 0);
}

static void a_child_of_fork_can_come_online_again(void **state)
{
	pid_t pid;
	int status;

	(void)state;
	assert_int_equal(hl_cpu_online(0), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		int bad = hl_cpu_id() != -ENXIO || hl_num_online_cpus() != 0 ||
			  hl_cpu_online(0) != 0 || hl_cpu_offline() != 0;

		_exit(bad);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(hl_cpu_id(), 0);
	assert_int_equal(hl_cpu_offline(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(masks_hold_every_id_there_can_be),
		cmocka_unit_test(masks_ignore_ids_that_cannot_be),
		cmocka_unit_test(a_thread_that_is_not_online_is_told_so),
		cmocka_unit_test(online_once_with_the_lowest_id),
		cmocka_unit_test(a_thread_that_ends_goes_offline),
		cmocka_unit_test(per_cpu_objects_share_no_line_and_keep_what_they_hold),
		cmocka_unit_test(per_cpu_memory_refuses_what_cannot_be),
		cmocka_unit_test(idle_ends_when_its_time_is_up),
		cmocka_unit_test(a_call_wakes_a_cpu_that_idles),
		cmocka_unit_test(a_call_makes_the_eventfd_readable),
		cmocka_unit_test(a_call_interrupts_a_cpu_that_computes),
		cmocka_unit_test(disabled_interrupts_wait_for_the_enable),
		cmocka_unit_test(a_child_of_fork_can_come_online_again),
	};

	return cmocka_run_group_tests(tests, refuse_membarrier, NULL);
}
