/* SPDX-License-Identifier: MIT */
/* What the tests of calls begin with: a CPU that polls until it is told to stop. Behind
 * cmocka.h, whose assertions it uses. */
#ifndef HL_TESTS_POLLER_H
#define HL_TESTS_POLLER_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <hotline/cpu.h>

struct poller {
	pthread_t thread;
	atomic_int id;
	atomic_bool stop;
	atomic_bool hold; /* it does not poll meanwhile */
	unsigned flags;
};

static void *poll_until_stopped(void *arg)
{
	struct poller *poller = arg;
	int id = hl_cpu_online(poller->flags);

	atomic_store(&poller->id, id);
	while (!atomic_load(&poller->stop))
		if (atomic_load(&poller->hold) || !hl_cpu_poll())
			sched_yield(); /* there may be one processor */
	hl_cpu_offline();
	return NULL;
}

static void start(struct poller *poller)
{
	*poller = (struct poller){ .id = -1 };
	assert_int_equal(pthread_create(&poller->thread, NULL, poll_until_stopped, poller), 0);
	while (atomic_load(&poller->id) < 0)
		sched_yield();
}

static void stop(struct poller *poller)
{
	atomic_store(&poller->stop, true);
	pthread_join(poller->thread, NULL);
}

static int come_online(void **state)
{
	(void)state;
	return hl_cpu_online(0) < 0;
}

static int go_offline(void **state)
{
	(void)state;
	return hl_cpu_offline();
}

static void count(void *info)
{
	atomic_fetch_add((atomic_int *)info, 1);
}

#endif
