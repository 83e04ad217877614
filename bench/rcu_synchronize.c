// SPDX-License-Identifier: MIT
/*
 * How long a thread waits for a grace period: while nobody reads, while one other thread
 * or many do, and beside threads that sleep.
 */
#include "bench/experiments.h"
#include "bench/rcu.h"

#include <hotline/cacheline.h>
#include <hotline/cpu.h>

#include "bench/clock.h"

/* The part of the grace periods that goes before, untimed. */
#define WARM_UP 8
#define MANY 8u
#define SLEEPERS 64u

enum who { NO_READER, ONE_READER, MANY_READERS, IDLE_THREADS };

struct synchronize_row {
	const struct rcu_scheme *scheme;
	void (*synchronize)(void);
	enum who who;
};

static int start(struct rcu_readers *readers, const struct bench_run *run, enum who who)
{
	switch (who) {
	case ONE_READER:
		return bench_start_readers(readers, run, 1);
	case MANY_READERS:
		return bench_start_readers(readers, run, MANY);
	case IDLE_THREADS:
		readers->some = NULL;
		return bench_start_readers(readers, run, SLEEPERS);
	default:
		return 0;
	}
}

static uint64_t wait_for(void (*synchronize)(void), uint64_t times)
{
	uint64_t begun = bench_now();

	for (uint64_t i = 0; i < times; i++)
		synchronize();
	return bench_now() - begun;
}

static int grace_periods(struct bench_run *run, const struct bench_row *row)
{
	static struct rcu_readers readers;
	static uint64_t word HL_CACHELINE_PAIR_ALIGNED;
	const struct synchronize_row *what = row->what;
	int rc = what->scheme->open();

	if (!rc)
		rc = hl_cpu_pin(run->processor[0]);
	if (!rc)
		rc = what->scheme->join();
	readers = (struct rcu_readers){
		.scheme = what->scheme,
		.some = bench_read_some,
		.arg = &word,
	};
	if (!rc)
		rc = start(&readers, run, what->who);
	if (rc)
		return rc;
	wait_for(what->synchronize, run->loops / WARM_UP + 1);
	run->ns = wait_for(what->synchronize, run->loops);
	run->done = run->loops;
	bench_stop_readers(&readers);
	return 0;
}

static void add_row(struct bench_experiment *experiment, struct bench_scenario *scenario,
		    const struct rcu_peer *peer, struct synchronize_row *what, enum who who)
{
	*what = (struct synchronize_row){ .scheme = peer->scheme, .who = who };
	if (peer->scheme)
		what->synchronize = peer->scheme->synchronize;
	bench_add_rcu_row(experiment, scenario, peer, grace_periods, what);
}

static void add_scenario(struct bench_experiment *experiment, const char *name, const char *title,
			 enum who who)
{
	static struct synchronize_row what[IDLE_THREADS + 1][2 * MOST_RCU_PEERS];
	bool readers = who == ONE_READER || who == MANY_READERS;
	struct bench_scenario *scenario = bench_add_scenario(
		experiment, name, title, &bench_ns_per_grace_period, readers ? 2 : 1);
	struct synchronize_row *next = what[who];

	/* The scheduler's turns are most of it: tens of milliseconds each. */
	if (scenario && who == MANY_READERS) {
		scenario->loops = 16;
		scenario->quick_loops = 4;
	}
	for (const struct rcu_peer *peer = bench_rcu_peers; peer->name; peer++) {
		if (!(peer->abilities & RCU_SYNCHRONIZES))
			continue;
		add_row(experiment, scenario, peer, next++, who);
		if (!peer->scheme || !peer->scheme->expedited)
			continue;
		*next = next[-1];
		next->synchronize = peer->scheme->expedited;
		bench_add_row(experiment, scenario,
			      &(struct bench_row){ .name = "hotline-expedited",
						   .kind = BENCH_OURS,
						   .run = grace_periods,
						   .what = next });
		next++;
	}
}

static void describe(struct bench_experiment *experiment, const struct bench_machine *machine)
{
	(void)machine;
	add_scenario(experiment, "no-reader", "while nobody reads", NO_READER);
	add_scenario(experiment, "one-reader",
		     "while a thread on another processor reads, section after section",
		     ONE_READER);
	add_scenario(experiment, "many-readers",
		     "while 8 threads read that share the other processors", MANY_READERS);
	add_scenario(experiment, "idle-threads", "beside 64 threads that have joined and sleep",
		     IDLE_THREADS);
}

const struct bench_experiment bench_rcu_synchronize = {
	.name = "rcu-synchronize",
	.origin = "O5",
	.title = "how long a thread waits for a grace period",
	.describe = describe,
};
