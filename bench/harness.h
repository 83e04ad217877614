/* SPDX-License-Identifier: MIT */
/*
 * The harness of `hotline bench`: what an experiment is, how it is measured, what comes
 * of it.
 *
 * An experiment has scenarios; a scenario compares rows, one of which is ours. The rows
 * of a scenario run in turn, A B A B, so that what happens to the machine meanwhile
 * happens to all of them; run i of one is compared with run i of the other.
 *
 * Each run is a process of its own. One that hangs or crashes costs its time limit and
 * is reported as failed, and no run sees what another has left in the library's memory.
 */
#ifndef HL_BENCH_HARNESS_H
#define HL_BENCH_HARNESS_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/machine.h"

/* Why a peer whose library was not there cannot be measured. */
#define BENCH_INSTALL(debian, fedora) \
	"not built in: install " debian " (Debian, Ubuntu) or " fedora " (Fedora), then build anew"

enum bench_kind {
	BENCH_OURS,
	BENCH_AS_IT_WAS, /* the layout or the design before the change of the kernel */
	BENCH_PEER, /* what a user would take instead */
	BENCH_LIMIT, /* what the machine allows */
};

/* What a row's figure is. */
struct bench_metric {
	const char *name; /* for scripts: ns_per_call */
	const char *unit; /* for people */
	bool higher_is_better;
	uint64_t least_loops; /* of a run */
	/* The figure of a run that took ns for `done` operations. */
	double (*value)(uint64_t ns, uint64_t done);
};

extern const struct bench_metric bench_ns_per_call;
extern const struct bench_metric bench_ns_per_callback;
extern const struct bench_metric bench_ns_per_section;
extern const struct bench_metric bench_ns_per_grace_period;
extern const struct bench_metric bench_messages_per_second;
extern const struct bench_metric bench_operations_per_second;
extern const struct bench_metric bench_lookups_per_second;
extern const struct bench_metric bench_pages_per_second;

struct bench_row;

/* One run, in its own process. */
struct bench_run {
	uint64_t loops; /* how many operations to time, after some to warm up */
	const int *processor; /* where the threads go, one each */
	unsigned threads; /* how many: scenario.threads */
	uint64_t ns, done; /* the result: how long, for how many operations */
};

/* Does a run and fills in the result; 0 or a negative errno value. */
typedef int (*bench_fn)(struct bench_run *run, const struct bench_row *row);

struct bench_row {
	const char *name;
	enum bench_kind kind;
	bench_fn run;
	const void *what; /* for run() */
	char *why_not; /* it cannot be measured, and why; NULL: it can */
	bool failed; /* it could have been, but failed; why_not has the reason */
	uint64_t loops; /* in each run */
	double *value; /* a figure for each run */
	unsigned runs;
};

struct bench_scenario {
	char *name;
	const char *title;
	const struct bench_metric *metric;
	unsigned threads; /* each on a processor of its own */
	/* Where runs are not sized by their time: the loops of each, and of a quick one. */
	uint64_t loops, quick_loops;
	struct bench_row *row;
	unsigned n_rows;
};

struct bench_experiment {
	const char *name;
	const char *origin; /* the change of the kernel that it is about */
	const char *title;
	/* Adds the scenarios that this machine can have. */
	void (*describe)(struct bench_experiment *experiment, const struct bench_machine *machine);
	/* Whether the scenario is to be there; NULL: all are. */
	bool (*wants)(const void *arg, const char *experiment, const char *scenario);
	const void *wants_arg;
	/* Gives back what describe() took beside; NULL: nothing. */
	void (*end)(void);
	struct bench_scenario *scenario;
	unsigned n_scenarios;
	bool no_memory; /* not all of it is there */
};

struct bench_options {
	unsigned runs; /* of each row */
	unsigned long_runs; /* the same where the scenario says how many loops a run has */
	uint64_t run_ns; /* about how long each takes, elsewhere */
	bool quick;
	unsigned limit_ms; /* after this a run has failed */
	/* Told before each run; may be NULL. */
	void (*progress)(void *arg, const struct bench_experiment *experiment,
			 const struct bench_scenario *scenario, const struct bench_row *row,
			 unsigned run, unsigned runs);
	void *progress_arg;
};

/* What the harness itself costs. */
struct bench_overhead {
	double clock_ns; /* reading the clock */
	double loop_ns; /* a call through the interface of the peers that does nothing */
};

/* ---- Describing (plan.c) ---- */

/* NULL when it is not wanted, or memory ran out, which the experiment remembers; adding rows
 * to NULL does nothing. */
struct bench_scenario *bench_add_scenario(struct bench_experiment *experiment, const char *name,
					  const char *title, const struct bench_metric *metric,
					  unsigned threads);
void bench_add_row(struct bench_experiment *experiment, struct bench_scenario *scenario,
		   const struct bench_row *row);
/* Frees what describe() and the measuring have added. */
void bench_free(struct bench_experiment *experiment);

/* ---- Measuring (measure.c) ---- */

/* Measures all rows; 0 or -ENOMEM. What failed is marked as such. */
int bench_measure(struct bench_experiment *experiment, const struct bench_machine *machine,
		  const struct bench_options *options);
int bench_measure_overhead(struct bench_overhead *overhead, const struct bench_machine *machine,
			   const struct bench_options *options);

/* ---- One run (run.c) ---- */

/* In a process of its own; 0, or -1 with *why, to be freed (NULL: no memory). */
int bench_run_row(struct bench_run *run, const struct bench_row *row, unsigned limit_ms,
		  char **why);

#endif
