// SPDX-License-Identifier: MIT
/* As many CPUs as there can be: every id works, and memory is taken for what is used. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include <hotline/call.h>
#include <hotline/cpu.h>

#include "call/ring.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#else
#define SANITIZED false
#endif
/* Sanitizers take megabytes and milliseconds for each thread. */
#define MOST_THREADS (SANITIZED ? 200 : HL_NR_CPUS - 1)

static pthread_t thread[HL_NR_CPUS];
static atomic_int online, ran;
static int n_threads;

static void count(void *info)
{
	atomic_fetch_add((atomic_int *)info, 1);
}

static void nothing(void *info)
{
	(void)info;
}

static atomic_bool stop;

static void *sleep_until_stopped(void *arg)
{
	(void)arg;
	if (hl_cpu_online(0) < 0)
		return NULL;
	atomic_fetch_add(&online, 1);
	while (!atomic_load(&stop))
		hl_cpu_idle(-1);
	return NULL;
}

static long resident_kb(void)
{
	long total, resident = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%ld %ld", &total, &resident), 2);
	fclose(file);
	return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Stacks that are no larger than they must be. */
static int start_threads(int n)
{
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 2 * PTHREAD_STACK_MIN + 65536);
	while (n_threads < n) {
		if (pthread_create(&thread[n_threads], &attr, sleep_until_stopped, NULL))
			break;
		n_threads++;
	}
	pthread_attr_destroy(&attr);
	while (atomic_load(&online) < n_threads)
		sched_yield();
	return n_threads;
}

/* What a CPU costs before it talks: its struct, its inbox, and what the system needs for
 * a thread (a page or two of stack, which are not ours but are counted here). */
#define KB_A_CPU 40
/* What a pair costs that talks: a queue, and at most a page each of two tables. */
#define KB_A_PAIR 12

static void every_id_works_and_costs_what_is_used(void **state)
{
	long before = resident_kb(), silent, talked;
	struct hl_cpumask mask;
	int n;

	(void)state;
	assert_int_equal(hl_cpu_online(0), 0);
	n = start_threads(MOST_THREADS);
	if (n < MOST_THREADS)
		print_message("# the system allows %d threads\n", n);
	assert_int_equal(hl_num_online_cpus(), n + 1);
	assert_int_equal(hl_nr_cpu_ids(), n + 1);
	silent = resident_kb();
	assert_int_equal(hl_smp_call_function_single(n, count, &ran, true), 0);
	hl_cpu_online_mask(&mask);
	assert_int_equal(hl_cpumask_weight(&mask), n + 1);
	assert_int_equal(hl_on_each_cpu(count, &ran, true), n + 1);
	assert_int_equal(ran, n + 2);
	talked = resident_kb();
	print_message("# %d CPUs: %ld KB a CPU, %ld KB a pair that talks\n", n + 1,
		      (silent - before) / n, (talked - silent) / n);
	if (!SANITIZED) {
		assert_true((silent - before) / n < KB_A_CPU);
		assert_true((talked - silent) / n < KB_A_PAIR);
	}
}

static void the_last_id_is_the_last(void **state)
{
	pthread_t one_more;
	int before = online;

	(void)state;
	if (n_threads < HL_NR_CPUS - 1)
		skip();
	assert_int_equal(pthread_create(&one_more, NULL, sleep_until_stopped, NULL), 0);
	pthread_join(one_more, NULL);
	assert_int_equal(online, before);
}

static int stop_all(void **state)
{
	(void)state;
	atomic_store(&stop, true);
	hl_on_each_cpu(nothing, NULL, false);
	for (int i = 0; i < n_threads; i++)
		pthread_join(thread[i], NULL);
	return hl_cpu_offline() || hl_num_online_cpus();
}

static void the_sizes_are_those_of_the_documentation(void **state)
{
	(void)state;
#if __SIZEOF_POINTER__ == 8 && HL_CACHE_LINE == 64
	assert_int_equal(sizeof(struct hl_csd), 32);
	assert_int_equal(sizeof(struct hl_slot), 16);
	assert_int_equal(sizeof(struct hl_ring), 4416);
	assert_int_equal(sizeof(struct hl_cpu), 512);
	assert_in_range(sizeof(struct hl_inbox), 2300, 2400);
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_sizes_are_those_of_the_documentation),
		cmocka_unit_test(every_id_works_and_costs_what_is_used),
		cmocka_unit_test(the_last_id_is_the_last),
	};

	return cmocka_run_group_tests(tests, NULL, stop_all);
}
