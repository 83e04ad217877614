// SPDX-License-Identifier: MIT
/*
 * Sizing the runs, and running the rows of a scenario in turn.
 */
#include "bench/harness.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/clock.h"
#include "bench/peer.h"
#include "bench/waited.h"

/* A dry run is long enough when it takes this part of a run. */
#define DRY_PART 8
#define DRY_GROWTH 8
#define DRY_RUNS 3

static struct bench_run run_of(const struct bench_scenario *scenario,
			       const struct bench_machine *machine, uint64_t loops)
{
	return (struct bench_run){
		.loops = loops,
		.processor = machine->processor,
		.threads = scenario->threads,
	};
}

static void fail(struct bench_row *row, char *why)
{
	row->failed = true;
	row->why_not = why;
}

/* The shortest of some dry runs, 0: one failed. On a machine that does other things as
 * well a single one can be many times too long. */
static uint64_t dry_run(const struct bench_scenario *scenario, struct bench_row *row,
			const struct bench_machine *machine, const struct bench_options *options,
			uint64_t loops)
{
	uint64_t ns = 0;
	char *why;

	for (unsigned i = 0; i < DRY_RUNS && (!i || ns >= options->run_ns / DRY_PART); i++) {
		struct bench_run run = run_of(scenario, machine, loops);

		if (bench_run_row(&run, row, options->limit_ms, &why)) {
			fail(row, why);
			return 0;
		}
		if (!i || run.ns < ns)
			ns = run.ns;
	}
	return ns;
}

static unsigned runs_of(const struct bench_scenario *scenario, const struct bench_options *options)
{
	return scenario->loops ? options->long_runs : options->runs;
}

/* Finds how many loops take as long as a run shall. */
static void size(const struct bench_scenario *scenario, struct bench_row *row,
		 const struct bench_machine *machine, const struct bench_options *options)
{
	const uint64_t least = scenario->metric->least_loops;
	uint64_t loops = least, ns;
	double wanted;

	if (scenario->loops) {
		row->loops = options->quick ? scenario->quick_loops : scenario->loops;
		return;
	}
	while ((ns = dry_run(scenario, row, machine, options, loops)) != 0 &&
	       ns < options->run_ns / DRY_PART)
		loops *= DRY_GROWTH;
	if (!ns)
		return;
	wanted = (double)loops * (double)options->run_ns / (double)ns;
	row->loops = wanted > (double)least ? (uint64_t)wanted : least;
}

static void run_once(const struct bench_scenario *scenario, struct bench_row *row,
		     const struct bench_machine *machine, const struct bench_options *options)
{
	struct bench_run run = run_of(scenario, machine, row->loops);
	char *why;

	if (bench_run_row(&run, row, options->limit_ms, &why))
		fail(row, why);
	else
		row->value[row->runs++] = scenario->metric->value(run.ns, run.done);
}

static bool can_be_measured(const struct bench_row *row)
{
	return !row->why_not && !row->failed;
}

static void show_progress(const struct bench_experiment *experiment,
			  const struct bench_scenario *scenario, const struct bench_row *row,
			  unsigned run, const struct bench_options *options)
{
	if (options->progress)
		options->progress(options->progress_arg, experiment, scenario, row, run,
				  runs_of(scenario, options));
}

static int prepare(const struct bench_experiment *experiment, struct bench_scenario *scenario,
		   const struct bench_machine *machine, const struct bench_options *options)
{
	for (unsigned i = 0; i < scenario->n_rows; i++) {
		struct bench_row *row = &scenario->row[i];

		if (!can_be_measured(row))
			continue;
		if (scenario->threads > machine->cpus) {
			/* Threads that share a processor measure the scheduler. */
			if (asprintf(&row->why_not, "takes %u processors, there %s %u",
				     scenario->threads, machine->cpus == 1 ? "is" : "are",
				     machine->cpus) < 0) {
				row->why_not = NULL;
				return -ENOMEM;
			}
			continue;
		}
		row->value = calloc(runs_of(scenario, options), sizeof(*row->value));
		if (!row->value)
			return -ENOMEM;
		show_progress(experiment, scenario, row, 0, options);
		size(scenario, row, machine, options);
	}
	return 0;
}

int bench_measure(struct bench_experiment *experiment, const struct bench_machine *machine,
		  const struct bench_options *options)
{
	for (unsigned i = 0; i < experiment->n_scenarios; i++) {
		struct bench_scenario *scenario = &experiment->scenario[i];
		int rc = prepare(experiment, scenario, machine, options);

		if (rc)
			return rc;
		for (unsigned run = 0; run < runs_of(scenario, options); run++) {
			for (unsigned k = 0; k < scenario->n_rows; k++) {
				struct bench_row *row = &scenario->row[k];

				if (!can_be_measured(row))
					continue;
				show_progress(experiment, scenario, row, run + 1, options);
				run_once(scenario, row, machine, options);
			}
		}
	}
	return 0;
}

/* ---- What the harness costs ---- */

static int read_clock(struct bench_run *run, const struct bench_row *row)
{
	uint64_t begun = bench_now(), now = begun;

	(void)row;
	for (uint64_t i = 0; i < run->loops; i++)
		now = bench_now();
	run->ns = now - begun;
	run->done = run->loops;
	return 0;
}

static int measure_one(double *ns, struct bench_row *row, unsigned threads,
		       const struct bench_machine *machine, const struct bench_options *options)
{
	struct bench_scenario scenario = { .metric = &bench_ns_per_call, .threads = threads };
	bool measured;

	*ns = 0;
	if (threads > machine->cpus)
		return 0;
	row->value = ns;
	size(&scenario, row, machine, options);
	if (!row->failed)
		run_once(&scenario, row, machine, options);
	measured = !row->failed;
	free(row->why_not);
	return measured ? 0 : -EIO;
}

int bench_measure_overhead(struct bench_overhead *overhead, const struct bench_machine *machine,
			   const struct bench_options *options)
{
	const struct waited_row nothing = { .transport = &transport_nothing };
	struct bench_row clock = { .name = "clock", .run = read_clock };
	struct bench_row loop = { .name = "loop", .run = bench_waited, .what = &nothing };
	int rc = measure_one(&overhead->clock_ns, &clock, 1, machine, options);

	return rc ? rc : measure_one(&overhead->loop_ns, &loop, 2, machine, options);
}
