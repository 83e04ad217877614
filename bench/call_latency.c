// SPDX-License-Identifier: MIT
/*
 * What a call costs that is waited for, to a target that polls, sleeps or computes.
 */
#include "bench/experiments.h"
#include "bench/peer.h"
#include "bench/waited.h"

#include <stddef.h>

/* A waited_row for every peer and mode, for as long as the program runs. */
#define MOST_PEERS 32

static void add_scenario(struct bench_experiment *experiment, const char *name, const char *title,
			 enum waited_mode mode, unsigned ability)
{
	static struct waited_row waited[3][MOST_PEERS];
	struct bench_scenario *scenario =
		bench_add_scenario(experiment, name, title, &bench_ns_per_call, 2);
	unsigned n = 0;

	for (const struct peer *peer = bench_peers; peer->name && n < MOST_PEERS; peer++) {
		if (!(peer->abilities & ability))
			continue;
		waited[mode][n] = (struct waited_row){ .transport = peer->transport, .mode = mode };
		bench_add_row(experiment, scenario,
			      &(struct bench_row){
				      .name = peer->name,
				      .kind = peer->kind,
				      .run = bench_waited,
				      .what = &waited[mode][n++],
				      .why_not = (char *)peer->why_not,
			      });
	}
}

static void describe(struct bench_experiment *experiment, const struct bench_machine *machine)
{
	(void)machine;
	add_scenario(experiment, "polling", "a call to a CPU that polls, waited for",
		     WAITED_POLLING, PEER_POLLS);
	add_scenario(experiment, "idle", "a call to a CPU that sleeps, waited for", WAITED_IDLE,
		     PEER_SLEEPS);
	add_scenario(experiment, "interrupted", "a call that interrupts a CPU, waited for",
		     WAITED_INTERRUPTED, PEER_INTERRUPTS);
}

const struct bench_experiment bench_call_latency = {
	.name = "call-latency",
	.origin = "O1",
	.title = "what a call costs that is waited for",
	.describe = describe,
};
