// SPDX-License-Identifier: MIT
/*
 * Calls to many as ours does them: a message for each target.
 */
#include <hotline/call.h>
#include <hotline/cpu.h>

#include "bench/storm.h"

static __thread struct hl_cpumask all;

static int join(unsigned self)
{
	int cpu = hl_cpu_online(0);

	(void)self;
	return cpu < 0 ? cpu : 0;
}

static void meet(unsigned threads)
{
	(void)threads;
	hl_cpu_online_mask(&all);
}

static void poll(void)
{
	hl_cpu_poll();
}

static void call(void (*func)(void *info), void *info)
{
	hl_smp_call_function_many(&all, func, info, true);
}

const struct broadcast broadcast_hotline = {
	.join = join,
	.meet = meet,
	.poll = poll,
	.call = call,
};
