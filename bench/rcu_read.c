// SPDX-License-Identifier: MIT
/*
 * What a read section costs that reads one word: entering, reading, leaving.
 */
#include "bench/experiments.h"
#include "bench/rcu.h"

#include <hotline/cacheline.h>
#include <hotline/cpu.h>

#include "bench/clock.h"

/* So many sections, then a quiescent state, for those that have them. */
#define SECTIONS 1024u
/* The part of the sections that goes before, untimed. */
#define WARM_UP 8

static uint64_t read_all(const struct rcu_scheme *scheme, uint64_t sections)
{
	static uint64_t word HL_CACHELINE_PAIR_ALIGNED;
	uint64_t begun = bench_now();

	for (uint64_t i = 0; i < sections; i += SECTIONS) {
		scheme->read(&word, SECTIONS);
		scheme->quiescent();
	}
	return bench_now() - begun;
}

static int sections(struct bench_run *run, const struct bench_row *row)
{
	const struct rcu_scheme *scheme = row->what;
	int rc = scheme->open();

	if (!rc)
		rc = hl_cpu_pin(run->processor[0]);
	if (!rc)
		rc = scheme->join();
	if (rc)
		return rc;
	read_all(scheme, run->loops / WARM_UP);
	run->ns = read_all(scheme, run->loops);
	run->done = (run->loops + SECTIONS - 1) / SECTIONS * SECTIONS;
	return 0;
}

static void describe(struct bench_experiment *experiment, const struct bench_machine *machine)
{
	struct bench_scenario *scenario = bench_add_scenario(
		experiment, "section", "a section that reads one word", &bench_ns_per_section, 1);

	(void)machine;
	for (const struct rcu_peer *peer = bench_rcu_peers; peer->name; peer++) {
		if (peer->abilities & RCU_READS)
			bench_add_rcu_row(experiment, scenario, peer, sections, peer->scheme);
	}
}

const struct bench_experiment bench_rcu_read = {
	.name = "rcu-read",
	.origin = "O5",
	.title = "what a read section costs",
	.describe = describe,
};
