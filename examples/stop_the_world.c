// SPDX-License-Identifier: MIT
/*
 * Stopping the world: all other CPUs wait in a function that was sent to them while one
 * changes what they all read without a lock, and then they go on.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

#include <hotline/call.h>
#include <hotline/cpu.h>

#define WORKERS 3
#define CHANGES 50

/* What everybody reads: two fields that must agree. Plain data, since who changes them does
 * so while nobody else runs. */
static struct {
	unsigned long version, copy;
} config;

static atomic_bool done;
static atomic_int online;

struct stop {
	atomic_int stopped;
	atomic_bool go_on;
};

static void stand_still(void *info)
{
	struct stop *stop = info;

	atomic_fetch_add(&stop->stopped, 1);
	while (!atomic_load(&stop->go_on))
		sched_yield();
	/* The last access to *stop: who stopped the world waits for it. */
	atomic_fetch_sub(&stop->stopped, 1);
}

static void stop_the_world(void (*change)(void))
{
	struct stop stop = { 0 };
	struct hl_cpumask all;
	int n;

	hl_cpumask_setall(&all);
	n = hl_smp_call_function_many(&all, stand_still, &stop, false);
	while (atomic_load(&stop.stopped) < n)
		sched_yield();
	change();
	atomic_store(&stop.go_on, true);
	while (atomic_load(&stop.stopped))
		sched_yield();
}

static void new_version(void)
{
	config.version++;
	config.copy = config.version;
}

static void *work(void *arg)
{
	long torn = 0;

	(void)arg;
	if (hl_cpu_online(0) < 0)
		return (void *)1;
	atomic_fetch_add(&online, 1);
	while (!atomic_load(&done)) {
		torn += config.version != config.copy;
		hl_cpu_poll();
	}
	hl_cpu_offline();
	return (void *)torn;
}

int main(void)
{
	pthread_t worker[WORKERS];
	long torn = 0;

	if (hl_cpu_online(0) < 0)
		return 1;
	for (int i = 0; i < WORKERS; i++)
		if (pthread_create(&worker[i], NULL, work, NULL))
			return 1;
	while (online < WORKERS)
		sched_yield();
	for (int i = 0; i < CHANGES; i++)
		stop_the_world(new_version);
	atomic_store(&done, true);
	for (int i = 0; i < WORKERS; i++) {
		void *found;

		pthread_join(worker[i], &found);
		torn += (long)found;
	}
	printf("%lu changes, %ld seen in the middle\n", config.version, torn);
	hl_cpu_offline();
	return torn || config.version != CHANGES;
}
