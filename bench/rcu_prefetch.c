// SPDX-License-Identifier: MIT
/*
 * O5: the question of 2006, which of two changes made callbacks faster. The kernel's loop
 * of that time in all four combinations of the next head prefetched or not, and the rest
 * of the list stored in each turn or once; beside our batches of pointers.
 *
 * The time is that of the invocation alone, for what a grace period has let go. Ours has
 * the end of a grace period in it: what is in its batches cannot be run otherwise.
 */
#include "bench/experiments.h"
#include "bench/objects.h"
#include "bench/workloads/rcu_batch.h"

#include <errno.h>

#include <hotline/cpu.h>

#include "bench/clock.h"

#define BYTES 64u
/* Warm objects: they fit the second-level cache of most machines, with room to spare. */
#define WARM 2048u
/* Cold ones in a quick run, in place of OBJECTS_MOST. */
#define QUICK (OBJECTS_MOST / 8)

struct prefetch_row {
	const struct batch *batch;
	bool cold;
};

static const struct {
	const char *name;
	enum bench_kind kind;
	const struct batch *batch;
} rows[] = {
	{ "hotline", BENCH_OURS, &batch_hotline },   { "neither", BENCH_AS_IT_WAS, &batch_neither },
	{ "prefetch", BENCH_PEER, &batch_prefetch }, { "hoisted", BENCH_PEER, &batch_hoisted },
	{ "both", BENCH_PEER, &batch_both },	     { "array", BENCH_LIMIT, &batch_array },
};

#define N_ROWS (sizeof(rows) / sizeof(rows[0]))

static int one_batch(const struct batch *batch, const struct objects *objects, bool cold,
		     struct bench_run *run)
{
	uint64_t before = objects_sum(objects, batch->word), begun;

	batch->begin();
	for (uint64_t i = 0; i < objects->n; i++)
		batch->add(objects->at[i]);
	/* Adding to a list has just touched them. */
	if (cold)
		objects_evict();
	begun = bench_now();
	batch->run();
	run->ns += bench_now() - begun;
	run->done += objects->n;
	return objects_sum(objects, batch->word) - before == objects_summed(objects) ? 0 : -EPROTO;
}

/* Each batch of other objects; one goes before, untimed. */
static int run_cold(const struct batch *batch, struct bench_run *run)
{
	uint64_t n = run->loops < OBJECTS_MOST ? QUICK : OBJECTS_MOST;
	struct bench_run warm_up = { 0 };
	struct objects objects;
	int rc = 0;

	do {
		struct bench_run *to = warm_up.done ? run : &warm_up;

		rc = objects_take(&objects, n, n == QUICK ? 4 * n : 2 * n, BYTES, true);
		if (!rc)
			rc = one_batch(batch, &objects, true, to);
		objects_forget(&objects);
	} while (!rc && run->done < run->loops);
	return rc;
}

/* The same objects again and again. */
static int run_warm(const struct batch *batch, struct bench_run *run)
{
	struct objects objects;
	int rc = objects_take(&objects, WARM, 2 * WARM, BYTES, true);

	for (unsigned i = 0; !rc && i < 2; i++)
		rc = one_batch(batch, &objects, false, run);
	run->ns = run->done = 0;
	while (!rc && run->done < run->loops)
		rc = one_batch(batch, &objects, false, run);
	return rc;
}

static int invoke(struct bench_run *run, const struct bench_row *row)
{
	const struct prefetch_row *what = row->what;
	const struct batch *batch = what->batch;
	int rc = batch->open ? batch->open() : 0;

	if (!rc)
		rc = hl_cpu_pin(run->processor[0]);
	run->ns = run->done = 0;
	if (!rc)
		rc = what->cold ? run_cold(batch, run) : run_warm(batch, run);
	return rc;
}

static void add_scenario(struct bench_experiment *experiment, const char *name, const char *title,
			 bool cold, struct prefetch_row *what)
{
	struct bench_scenario *scenario =
		bench_add_scenario(experiment, name, title, &bench_ns_per_callback, 1);

	if (scenario && cold) {
		scenario->loops = OBJECTS_MOST;
		scenario->quick_loops = QUICK;
	}
	for (unsigned i = 0; i < N_ROWS; i++) {
		what[i] = (struct prefetch_row){ .batch = rows[i].batch, .cold = cold };
		bench_add_row(experiment, scenario,
			      &(struct bench_row){ .name = rows[i].name,
						   .kind = rows[i].kind,
						   .run = invoke,
						   .what = &what[i] });
	}
}

static void describe(struct bench_experiment *experiment, const struct bench_machine *machine)
{
	static struct prefetch_row what[2][N_ROWS];

	(void)machine;
	if (objects_reserve()) {
		experiment->no_memory = true;
		return;
	}
	add_scenario(experiment, "cold",
		     "callbacks of cold objects, 2 million of 64 bytes in random order", true,
		     what[0]);
	add_scenario(experiment, "warm", "callbacks of warm objects, 2048 of 64 bytes", false,
		     what[1]);
}

const struct bench_experiment bench_rcu_prefetch = {
	.name = "rcu-prefetch",
	.origin = "O5",
	.title = "callbacks on a list, prefetched or not, or in batches",
	.describe = describe,
	.end = objects_release,
};
