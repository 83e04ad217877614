// SPDX-License-Identifier: MIT
/*
 * O5's workload: descriptors that are closed and opened as fast as one thread can, each
 * freed after a grace period, while another thread looks descriptors up.
 *
 * An operation allocates a file of 256 bytes, puts it in the table in place of another one,
 * at random, and has that freed.
 */
#include "bench/experiments.h"
#include "bench/rcu.h"

#include <errno.h>
#include <stdlib.h>

#include <hotline/cpu.h>

#include "bench/clock.h"
#include "bench/objects.h"

#define DESCRIPTORS 65536u
#define LOOKUPS 64u

struct flood_row {
	const struct rcu_scheme *scheme;
	bool reader;
};

static void look_up_some(const struct rcu_scheme *scheme, void *arg)
{
	scheme->look_up(arg, LOOKUPS);
	scheme->quiescent();
}

static int flood(struct bench_run *run, const struct bench_row *row)
{
	static struct descriptors descriptors;
	static struct rcu_readers readers;
	const struct flood_row *what = row->what;
	const struct rcu_scheme *scheme = what->scheme;
	uint64_t begun, before;
	int rc = scheme->open();

	if (!rc)
		rc = hl_cpu_pin(run->processor[0]);
	if (!rc)
		rc = scheme->join();
	descriptors.n = DESCRIPTORS;
	descriptors.file = calloc(DESCRIPTORS, sizeof(*descriptors.file));
	readers = (struct rcu_readers){
		.scheme = scheme,
		.some = look_up_some,
		.arg = &descriptors,
	};
	if (!rc && !descriptors.file)
		rc = -ENOMEM;
	/* Most are open then; and what is handed over from here on is being freed. */
	if (!rc)
		rc = scheme->reopen(&descriptors, 2 * DESCRIPTORS);
	if (!rc && what->reader)
		rc = bench_start_readers(&readers, run, 1);
	if (rc)
		return rc;
	scheme->barrier();
	before = objects_freed();
	begun = bench_now();
	rc = scheme->reopen(&descriptors, run->loops);
	scheme->barrier();
	run->ns = bench_now() - begun;
	run->done = run->loops;
	bench_stop_readers(&readers);
	/* The few that were not open before. */
	if (!rc && objects_freed() - before + DESCRIPTORS / 4 < run->loops)
		rc = -EPROTO;
	return rc;
}

static void add_scenario(struct bench_experiment *experiment, const char *name, const char *title,
			 bool reader)
{
	static struct flood_row what[2][MOST_RCU_PEERS];
	struct flood_row *next = what[reader];
	struct bench_scenario *scenario = bench_add_scenario(
		experiment, name, title, &bench_operations_per_second, reader ? 2 : 1);

	if (scenario) {
		scenario->loops = DESCRIPTORS * 4;
		scenario->quick_loops = DESCRIPTORS;
	}
	for (const struct rcu_peer *peer = bench_rcu_peers; peer->name; peer++) {
		if (!(peer->abilities & RCU_POLLS) || peer->kind == BENCH_LIMIT)
			continue;
		*next = (struct flood_row){ .scheme = peer->scheme, .reader = reader };
		bench_add_rcu_row(experiment, scenario, peer, flood, next++);
	}
}

static void describe(struct bench_experiment *experiment, const struct bench_machine *machine)
{
	(void)machine;
	add_scenario(experiment, "alone", "closing and opening, nobody reads", false);
	add_scenario(experiment, "looked-up",
		     "closing and opening, another processor looks descriptors up", true);
}

const struct bench_experiment bench_close_flood = {
	.name = "close-flood",
	.origin = "O5",
	.title = "descriptors closed and opened, freed by RCU",
	.describe = describe,
};
