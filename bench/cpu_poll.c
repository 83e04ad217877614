// SPDX-License-Identifier: MIT
/*
 * What a poll costs that finds nothing, as the number of CPUs grows that it looks out for. They
 * have each sent once and stay online, asleep.
 */
#include "bench/experiments.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include <hotline/call.h>
#include <hotline/cpu.h>

#include "bench/clock.h"

/* The part of the loops that goes before, untimed. */
#define WARM_UP 8

static int target;
static _Atomic(bool) stopped;
static _Atomic(unsigned) sent, failed;

static void nothing(void *info)
{
	(void)info;
}

static void *send_once(void *arg)
{
	(void)arg;
	if (hl_cpu_online(0) < 0 || hl_smp_call_function_single(target, nothing, NULL, true))
		atomic_store_explicit(&failed, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&sent, 1, memory_order_relaxed);
	/* Relaxed: the flag guards nothing; the call that follows it wakes. */
	while (!atomic_load_explicit(&stopped, memory_order_relaxed))
		hl_cpu_idle(-1);
	return NULL;
}

static uint64_t poll_often(uint64_t loops)
{
	uint64_t begun = bench_now();

	for (uint64_t i = 0; i < loops; i++)
		hl_cpu_poll();
	return bench_now() - begun;
}

static int run_polls(struct bench_run *run, const struct bench_row *row)
{
	const unsigned *senders = row->what;
	int rc = hl_cpu_pin(run->processor[0]);

	if (rc)
		return rc;
	target = hl_cpu_online(0);
	if (target < 0)
		return target;
	for (unsigned i = 0; i < *senders; i++) {
		pthread_t thread;

		rc = pthread_create(&thread, NULL, send_once, NULL);
		if (rc)
			return -rc;
	}
	while (atomic_load_explicit(&sent, memory_order_relaxed) < *senders)
		hl_cpu_poll();
	if (atomic_load_explicit(&failed, memory_order_relaxed))
		return -EPROTO;
	poll_often(run->loops / WARM_UP + 1);
	run->ns = poll_often(run->loops);
	run->done = run->loops;
	/* The senders end at the latest with the process. */
	atomic_store_explicit(&stopped, true, memory_order_relaxed);
	hl_on_each_cpu(nothing, NULL, false);
	return 0;
}

static void describe(struct bench_experiment *experiment, const struct bench_machine *machine)
{
	static const unsigned senders[] = { 0, 1, 2, 4, 8, 64 };

	(void)machine;
	for (unsigned i = 0; i < sizeof(senders) / sizeof(senders[0]); i++) {
		struct bench_scenario *scenario;
		char name[16];

		snprintf(name, sizeof(name), "senders-%u", senders[i]);
		scenario = bench_add_scenario(experiment, name, "a poll that finds nothing",
					      &bench_ns_per_call, 1);
		bench_add_row(experiment, scenario,
			      &(struct bench_row){
				      .name = "hotline",
				      .kind = BENCH_OURS,
				      .run = run_polls,
				      .what = &senders[i],
			      });
	}
}

const struct bench_experiment bench_cpu_poll = {
	.name = "cpu-poll",
	.origin = "O1",
	.title = "what a poll costs that finds nothing, with so many senders online",
	.describe = describe,
};
