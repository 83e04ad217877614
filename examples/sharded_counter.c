// SPDX-License-Identifier: MIT
/*
 * A counter that costs nothing to count on: each CPU has its own, on a line of its own, and
 * who wants the sum asks all of them. The sum is exact: each CPU adds what it has itself,
 * between two of its own increments, so no increment is torn or missed.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include <hotline/call.h>
#include <hotline/cpu.h>

#define WORKERS 3
#define EVENTS 200000ul

static void *counters; /* an unsigned long a CPU */
static atomic_int working = WORKERS;

static void count_event(void)
{
	++*(unsigned long *)hl_this_cpu_ptr(counters);
}

static void add_mine(void *sum)
{
	atomic_fetch_add((atomic_ulong *)sum, *(unsigned long *)hl_this_cpu_ptr(counters));
}

static void *work(void *arg)
{
	if (hl_cpu_online(0) < 0)
		return arg;
	for (unsigned long i = 0; i < EVENTS; i++) {
		count_event();
		if (i % 100 == 0)
			hl_cpu_poll();
	}
	atomic_fetch_sub(&working, 1);
	/* Still there for whoever asks. */
	while (working >= 0)
		hl_cpu_idle(1000000);
	hl_cpu_offline();
	return NULL;
}

static unsigned long sum_now(void)
{
	atomic_ulong sum = 0;

	hl_on_each_cpu(add_mine, &sum, true);
	return sum;
}

int main(void)
{
	pthread_t worker[WORKERS];
	unsigned long sum = 0;
	void *failed;

	counters = hl_percpu_alloc(sizeof(unsigned long), sizeof(unsigned long));
	if (!counters || hl_cpu_online(0) < 0)
		return 1;
	for (int i = 0; i < WORKERS; i++)
		if (pthread_create(&worker[i], NULL, work, counters))
			return 1;
	while (working > 0)
		sum = sum_now(); /* never above what was counted, never falling */
	sum = sum_now();
	atomic_store(&working, -1);
	for (int i = 0; i < WORKERS; i++)
		if (pthread_join(worker[i], &failed) || failed)
			return 1;
	printf("%lu events\n", sum);
	hl_cpu_offline();
	hl_percpu_free(counters);
	return sum == WORKERS * EVENTS ? 0 : 1;
}
