// SPDX-License-Identifier: MIT
/*
 * Lookups in a hash table, by one thread, while another one on another processor exchanges
 * entries for new ones all the time; and alone.
 */
#include "bench/experiments.h"
#include "bench/table.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include <hotline/cacheline.h>
#include <hotline/cpu.h>

#include "bench/clock.h"

#define MOST_TABLES 16u
/* The part of the lookups that goes before, untimed. */
#define WARM_UP 8
/* Exchanged between looks at whether to stop. */
#define UPDATES 16u
#define LARGE (1u << 16)

struct shape {
	const char *name, *title;
	uint64_t entries;
	bool updates;
};

struct hash_row {
	const struct shape *shape;
	const struct table *table;
};

/* The caches hold a small one; a large one, with its entries, is some 20 MiB. */
static const struct shape shapes[] = {
	{ "small", "lookups in 4096 entries, nobody updates", 1 << 12, false },
	{ "small-updates", "lookups in 4096 entries, another processor exchanges entries", 1 << 12,
	  true },
	{ "large", "lookups in 262 144 entries, nobody updates", 1 << 18, false },
	{ "large-updates", "lookups in 262 144 entries, another processor exchanges entries",
	  1 << 18, true },
};

#define N_SHAPES (sizeof(shapes) / sizeof(shapes[0]))

struct updater {
	const struct hash_row *what;
	int processor;
	/* Written once each: by the thread, by who stops it. */
	_Atomic(bool) ready HL_CACHELINE_PAIR_ALIGNED;
	_Atomic(bool) stopped HL_CACHELINE_PAIR_ALIGNED;
	_Atomic(int) failed;
} HL_CACHELINE_PAIR_ALIGNED;

/* Fills the table, so that a table for one writer has that one from the start; and goes on
 * to update it where that is wanted. */
static void *updater_thread(void *arg)
{
	struct updater *updater = arg;
	const struct hash_row *what = updater->what;
	uint64_t entries = what->shape->entries;
	int rc = hl_cpu_pin(updater->processor);
	bool joined;

	if (!rc)
		rc = what->table->join();
	joined = !rc;
	if (!rc)
		rc = what->table->fill(entries);
	atomic_store_explicit(&updater->failed, rc, memory_order_relaxed);
	/* UPDATER_READY, pairs with start(): the table is filled. */
	atomic_store_explicit(&updater->ready, true, memory_order_release);
	/* Relaxed: the flag guards nothing, it only ends the loop. */
	while (!rc && what->shape->updates &&
	       !atomic_load_explicit(&updater->stopped, memory_order_relaxed))
		rc = what->table->update(entries, UPDATES);
	if (joined)
		what->table->leave();
	return NULL;
}

static int start(struct updater *updater)
{
	pthread_t thread;
	int rc = pthread_create(&thread, NULL, updater_thread, updater);

	if (rc)
		return -rc;
	/* UPDATER_READY, pairs with updater_thread() */
	while (!atomic_load_explicit(&updater->ready, memory_order_acquire))
		sched_yield();
	if (!updater->what->shape->updates)
		pthread_join(thread, NULL);
	return atomic_load_explicit(&updater->failed, memory_order_relaxed);
}

static int lookups(struct bench_run *run, const struct bench_row *row)
{
	static struct updater updater;
	const struct hash_row *what = row->what;
	uint64_t entries = what->shape->entries, begun, found;
	int rc = what->table->open(entries);

	updater = (struct updater){
		.what = what,
		.processor = run->processor[run->threads - 1],
	};
	if (!rc)
		rc = start(&updater);
	if (!rc)
		rc = hl_cpu_pin(run->processor[0]);
	if (!rc)
		rc = what->table->join();
	if (rc)
		return rc;
	what->table->look_up(entries, run->loops / WARM_UP);
	begun = bench_now();
	found = what->table->look_up(entries, run->loops);
	run->ns = bench_now() - begun;
	run->done = run->loops;
	atomic_store_explicit(&updater.stopped, true, memory_order_relaxed);
	/* All that are in the table, and none of the others. */
	return found == run->loops - (run->loops + 7) / 8 ? 0 : -EPROTO;
}

static void describe(struct bench_experiment *experiment, const struct bench_machine *machine)
{
	static struct hash_row what[N_SHAPES][MOST_TABLES];

	(void)machine;
	for (unsigned i = 0; i < N_SHAPES; i++) {
		struct bench_scenario *scenario =
			bench_add_scenario(experiment, shapes[i].name, shapes[i].title,
					   &bench_lookups_per_second, shapes[i].updates ? 2 : 1);
		struct hash_row *next = what[i];

		/* Filling a large one takes longer than the lookups. */
		if (scenario && shapes[i].entries > LARGE) {
			scenario->loops = 1 << 17;
			scenario->quick_loops = 1 << 15;
		}

		for (const struct table_peer *peer = bench_table_peers; peer->name; peer++) {
			*next = (struct hash_row){ .shape = &shapes[i], .table = peer->table };
			bench_add_row(experiment, scenario,
				      &(struct bench_row){
					      .name = peer->name,
					      .kind = peer->kind,
					      .run = lookups,
					      .what = next++,
					      .why_not = (char *)peer->why_not,
				      });
		}
	}
}

const struct bench_experiment bench_rcu_hash = {
	.name = "rcu-hash",
	.origin = "O5",
	.title = "lookups in a hash table, with updates in the background",
	.describe = describe,
};
