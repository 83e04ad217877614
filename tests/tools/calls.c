// SPDX-License-Identifier: MIT
/*
 * Calls for others to watch: calls-probe HOW N.
 *
 *	polling		N calls to a CPU that polls
 *	slept-once	the same to one that slept before, armed-once: on its eventfd
 *	idle		N waited calls to a CPU that sleeps between them
 *	oscillate	64 CPUs that sleep and are woken N times
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hotline/call.h>
#include <hotline/cpu.h>

#define MANY 64

enum how { POLLING, SLEPT_ONCE, ARMED_ONCE, IDLE, OSCILLATE, HOWS };
static const char *const names[HOWS] = { "polling", "slept-once", "armed-once", "idle",
					 "oscillate" };

static enum how how;
static atomic_int ready;
static atomic_bool stop;
static atomic_ulong ran;

static void count(void *info)
{
	(void)info;
	atomic_fetch_add_explicit(&ran, 1, memory_order_relaxed);
}

static void end(void *info)
{
	(void)info;
	atomic_store(&stop, true);
}

static void begin(void)
{
	hl_cpu_online(0);
	if (how == SLEPT_ONCE)
		hl_cpu_idle(1);
	if (how == ARMED_ONCE)
		hl_cpu_eventfd_arm();
	atomic_fetch_add(&ready, 1);
}

static void *target(void *arg)
{
	begin();
	while (!atomic_load_explicit(&stop, memory_order_relaxed))
		if (how == IDLE || how == OSCILLATE)
			hl_cpu_idle(-1);
		else
			hl_cpu_poll();
	hl_cpu_offline();
	return arg;
}

static int failed(int n, int targets, unsigned long calls)
{
	if (n == targets && ran == calls)
		return 0;
	fprintf(stderr, "%d of %d CPUs, %lu of %lu calls\n", n, targets, (unsigned long)ran, calls);
	return 1;
}

int main(int argc, char **argv)
{
	unsigned long n = argc == 3 ? strtoul(argv[2], NULL, 0) : 0;
	pthread_t thread[MANY];
	int targets, last = 0;

	while (argc == 3 && how < HOWS && strcmp(argv[1], names[how]))
		how++;
	if (argc != 3 || how == HOWS)
		return 2;
	targets = how == OSCILLATE ? MANY : 1;
	for (int i = 0; i < targets; i++)
		if (pthread_create(&thread[i], NULL, target, NULL))
			return 1;
	while (ready < targets)
		sched_yield();
	hl_cpu_online(0);
	for (unsigned long i = 0; i < n; i++)
		if (how == OSCILLATE)
			last = hl_on_each_cpu(count, NULL, true) - 1;
		else
			last = !hl_smp_call_function_single(0, count, NULL, how == IDLE);
	hl_on_each_cpu(end, NULL, true);
	for (int i = 0; i < targets; i++)
		pthread_join(thread[i], NULL);
	hl_cpu_offline();
	return failed(last, targets, how == OSCILLATE ? n * (MANY + 1) : n);
}
