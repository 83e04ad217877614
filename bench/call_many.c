// SPDX-License-Identifier: MIT
/*
 * O2: a message to each target, or one shared record that all of them read and write, as
 * before 2013. From one CPU to 1, 2, 4 and so on up to all others of the machine, and
 * from all CPUs to all others at the same time.
 */
#include "bench/experiments.h"
#include "bench/storm.h"

#include <stddef.h>
#include <stdio.h>

static void add_scenario(struct bench_experiment *experiment, unsigned threads, bool from_all)
{
	static const struct storm_row ours[] = {
		{ .broadcast = &broadcast_hotline },
		{ .broadcast = &broadcast_hotline, .from_all = true },
	};
	static const struct storm_row shared[] = {
		{ .broadcast = &broadcast_shared },
		{ .broadcast = &broadcast_shared, .from_all = true },
	};
	struct bench_scenario *scenario;
	char name[48];

	snprintf(name, sizeof(name), "from-%s-to-%u", from_all ? "all" : "one", threads - 1);
	scenario = bench_add_scenario(experiment, name,
				      from_all ? "all CPUs call all others at the same time"
					       : "one CPU calls others, and waits for all of them",
				      &bench_ns_per_call, threads);
	bench_add_row(experiment, scenario,
		      &(struct bench_row){ .name = "hotline",
					   .kind = BENCH_OURS,
					   .run = bench_storm,
					   .what = &ours[from_all] });
	bench_add_row(experiment, scenario,
		      &(struct bench_row){ .name = "shared",
					   .kind = BENCH_AS_IT_WAS,
					   .run = bench_storm,
					   .what = &shared[from_all] });
}

static void describe(struct bench_experiment *experiment, const struct bench_machine *machine)
{
	unsigned all = machine->cpus > 2 ? machine->cpus : 2;

	for (unsigned targets = 1; targets < all - 1; targets *= 2)
		add_scenario(experiment, targets + 1, false);
	add_scenario(experiment, all, false);
	add_scenario(experiment, all, true);
}

const struct bench_experiment bench_call_many = {
	.name = "call-many",
	.origin = "O2",
	.title = "a message to each target, or one record for all",
	.describe = describe,
};
