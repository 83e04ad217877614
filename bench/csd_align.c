// SPDX-License-Identifier: MIT
/*
 * O1: messages that never lie across two lines, and the same source compiled with
 * messages that do: aligned to a word only, and beginning a word before the end of a line,
 * so that one in four lies across two.
 */
#include "bench/experiments.h"
#include "bench/peer.h"
#include "bench/stream.h"
#include "bench/waited.h"

#include <stddef.h>

static const struct waited_row waited_aligned = { .transport = &transport_hotline };
static const struct waited_row waited_straddling = { .transport = &transport_straddling };
static const struct stream_row async_aligned = { .transport = &transport_hotline, .burst = 1 };
static const struct stream_row async_straddling = {
	.transport = &transport_straddling,
	.burst = 1,
};

static void add_rows(struct bench_experiment *experiment, struct bench_scenario *scenario,
		     bench_fn run, const void *aligned, const void *straddling)
{
	bench_add_row(experiment, scenario,
		      &(struct bench_row){
			      .name = "hotline", .kind = BENCH_OURS, .run = run, .what = aligned });
	bench_add_row(experiment, scenario,
		      &(struct bench_row){ .name = "straddling",
					   .kind = BENCH_AS_IT_WAS,
					   .run = run,
					   .what = straddling });
}

static void describe(struct bench_experiment *experiment, const struct bench_machine *machine)
{
	(void)machine;
	add_rows(experiment,
		 bench_add_scenario(experiment, "waited", "a call that is waited for",
				    &bench_ns_per_call, 2),
		 bench_waited, &waited_aligned, &waited_straddling);
	add_rows(experiment,
		 bench_add_scenario(experiment, "async", "calls that nobody waits for",
				    &bench_messages_per_second, 2),
		 bench_stream, &async_aligned, &async_straddling);
}

const struct bench_experiment bench_csd_align = {
	.name = "csd-align",
	.origin = "O1",
	.title = "messages on one line each, or across two",
	.describe = describe,
};
