// SPDX-License-Identifier: MIT
/*
 * Callbacks from call to done: a round of objects is handed over, one after the other, and
 * the time runs until the last callback has returned.
 *
 * Cold objects: a round takes at most half of the places that there are, and the round before,
 * untimed, took others; then the caches are filled with something else. In
 * random order that is 1 048 576 out of 2 097 152 of 64 bytes, in 128 MiB; when quick, 131 072
 * out of 524 288, since the first touch of a page costs each run some microseconds.
 */
#include "bench/experiments.h"
#include "bench/objects.h"
#include "bench/rcu.h"

#include <errno.h>
#include <time.h>

#include <hotline/cacheline.h>
#include <hotline/cpu.h>

#include "bench/clock.h"

/* Handed over at a time where the calls alone are timed: fewer than any peer's own limit,
 * so that it need not run callbacks meanwhile. */
#define ENQUEUE_ROUND 16384u

struct callbacks {
	const char *name, *title;
	size_t bytes;
	bool random, reader, frees, enqueue, polls;
	uint64_t round, quick_round;
};

struct callbacks_row {
	const struct callbacks *like;
	const struct rcu_scheme *scheme;
};

/* Of a round; and of a quick one. */
#define MOST OBJECTS_MOST
#define QUICK (MOST / 8)
#define SOME (MOST / 4)
#define QUICK_SOME (SOME / 4)

static const struct callbacks scenarios[] = {
	{ .name = "random",
	  .title = "cold objects of 64 bytes in random order, all handed over, then waited for",
	  .bytes = 64,
	  .random = true,
	  .round = MOST,
	  .quick_round = QUICK },
	{ .name = "allocation",
	  .title = "the same in the order of their addresses",
	  .bytes = 64,
	  .round = MOST,
	  .quick_round = QUICK },
	{ .name = "random-reader",
	  .title = "in random order, while another processor reads",
	  .bytes = 64,
	  .random = true,
	  .reader = true,
	  .round = MOST,
	  .quick_round = QUICK },
	{ .name = "allocation-reader",
	  .title = "in the order of their addresses, while another processor reads",
	  .bytes = 64,
	  .reader = true,
	  .round = MOST,
	  .quick_round = QUICK },
	{ .name = "random-polled",
	  .title = "in random order, the caller polls after 64 each: some run while still warm",
	  .bytes = 64,
	  .random = true,
	  .polls = true,
	  .round = SOME,
	  .quick_round = QUICK_SOME },
	{ .name = "random-polled-reader",
	  .title = "the same, while another processor reads",
	  .bytes = 64,
	  .random = true,
	  .polls = true,
	  .reader = true,
	  .round = SOME,
	  .quick_round = QUICK_SOME },
	{ .name = "random-8",
	  .title = "cold objects of 8 bytes, or as few as a peer can have, in random order",
	  .bytes = 8,
	  .random = true,
	  .round = SOME,
	  .quick_round = QUICK_SOME },
	{ .name = "random-512",
	  .title = "cold objects of 512 bytes in random order",
	  .bytes = 512,
	  .random = true,
	  .round = SOME,
	  .quick_round = SOME / 8 },
	{ .name = "random-4096",
	  .title = "cold objects of 4096 bytes in random order: all in the same set of a cache",
	  .bytes = 4096,
	  .random = true,
	  .round = SOME / 8,
	  .quick_round = SOME / 64 },
	{ .name = "random-free",
	  .title = "callbacks that call free(), 64 bytes from malloc() in random order, cold",
	  .bytes = 64,
	  .random = true,
	  .frees = true,
	  .round = SOME,
	  .quick_round = QUICK_SOME },
	{ .name = "allocation-free",
	  .title = "callbacks that call free(), 64 bytes in the order of malloc(), cold",
	  .bytes = 64,
	  .frees = true,
	  .round = SOME,
	  .quick_round = QUICK_SOME },
	{ .name = "enqueue",
	  .title = "the call alone, 16 384 cold objects at a time, in random order",
	  .bytes = 64,
	  .random = true,
	  .enqueue = true,
	  .round = SOME,
	  .quick_round = QUICK_SOME },
	{ .name = "enqueue-allocation",
	  .title = "the call alone, 16 384 cold objects at a time, in the order of their addresses",
	  .bytes = 64,
	  .enqueue = true,
	  .round = SOME,
	  .quick_round = QUICK_SOME },
};

#define N_SCENARIOS (sizeof(scenarios) / sizeof(scenarios[0]))

static int take(struct objects *objects, const struct callbacks_row *what, uint64_t n)
{
	const struct callbacks *like = what->like;
	size_t bytes = like->bytes > what->scheme->least_bytes ? like->bytes
							       : what->scheme->least_bytes;

	if (like->frees)
		return objects_allocate(objects, n, bytes, like->random);
	return objects_take(objects, n, n * (n == QUICK && like->random ? 4 : 2), bytes,
			    like->random);
}

static uint64_t call_and_wait(const struct callbacks_row *what, const struct objects *objects)
{
	const struct rcu_scheme *scheme = what->scheme;
	uint64_t begun = bench_now();

	if (what->like->polls)
		scheme->call_and_poll(objects->at, objects->n, what->like->frees);
	else
		scheme->call(objects->at, objects->n, what->like->frees);
	scheme->barrier();
	return bench_now() - begun;
}

static uint64_t enqueue(const struct callbacks_row *what, const struct objects *objects)
{
	const struct rcu_scheme *scheme = what->scheme;
	uint64_t ns = 0;

	for (uint64_t i = 0, n; i < objects->n; i += n) {
		uint64_t begun = bench_now();

		n = objects->n - i < ENQUEUE_ROUND ? objects->n - i : ENQUEUE_ROUND;
		scheme->call(&objects->at[i], n, false);
		ns += bench_now() - begun;
		scheme->barrier();
	}
	return ns;
}

/* How many callbacks of some of the objects ran. */
static uint64_t ran(const struct callbacks_row *what, const struct objects *objects)
{
	return what->like->frees ? objects_freed() : objects_sum(objects, what->scheme->word);
}

/* A round with other objects than the last; each callback must have run once. */
static int one_round(const struct callbacks_row *what, struct bench_run *run, uint64_t n)
{
	struct objects objects;
	uint64_t before, expected;
	int rc = take(&objects, what, n);

	if (rc)
		return rc;
	before = ran(what, &objects);
	run->ns += what->like->enqueue ? enqueue(what, &objects) : call_and_wait(what, &objects);
	run->done += objects.n;
	expected = what->like->frees ? objects.n : objects_summed(&objects);
	rc = ran(what, &objects) - before == expected ? 0 : -EPROTO;
	objects_forget(&objects);
	return rc;
}

static int callbacks(struct bench_run *run, const struct bench_row *row)
{
	static struct rcu_readers readers;
	static uint64_t word HL_CACHELINE_PAIR_ALIGNED;
	const struct callbacks_row *what = row->what;
	const struct callbacks *like = what->like;
	uint64_t n = run->loops < like->round ? like->quick_round : like->round;
	struct bench_run warm_up = { 0 };
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
	if (!rc && like->reader)
		rc = bench_start_readers(&readers, run, 1);
	if (!rc)
		rc = one_round(what, &warm_up, n);
	run->ns = run->done = 0;
	while (!rc && run->done < run->loops)
		rc = one_round(what, run, n);
	bench_stop_readers(&readers);
	return rc;
}

static void add_scenario(struct bench_experiment *experiment, const struct callbacks *like,
			 struct callbacks_row *what)
{
	struct bench_scenario *scenario = bench_add_scenario(
		experiment, like->name, like->title, &bench_ns_per_callback, like->reader ? 2 : 1);

	if (scenario) {
		scenario->loops = like->round;
		scenario->quick_loops = like->quick_round;
	}
	for (const struct rcu_peer *peer = bench_rcu_peers; peer->name; peer++) {
		if (!(peer->abilities & (like->polls ? RCU_POLLS : RCU_CALLS)))
			continue;
		*what = (struct callbacks_row){ .like = like, .scheme = peer->scheme };
		bench_add_rcu_row(experiment, scenario, peer, callbacks, what++);
	}
}

/* ---- One callback, while nothing else happens ---- */

/* Helpers that look for more have gone to sleep by then. */
#define IDLE_NS 3000000

static uint64_t one_callback(const struct rcu_scheme *scheme, void *object)
{
	const volatile uint64_t *word = (void *)((char *)object + scheme->word);
	struct timespec idle = { .tv_nsec = IDLE_NS };
	uint64_t before = *word, begun;

	scheme->sleep();
	nanosleep(&idle, NULL);
	scheme->wake();
	begun = bench_now();
	scheme->call(&object, 1, false);
	while (*word == before)
		scheme->quiescent();
	return bench_now() - begun;
}

static int idle_callbacks(struct bench_run *run, const struct bench_row *row)
{
	static uint64_t object[64] HL_CACHELINE_PAIR_ALIGNED;
	const struct rcu_scheme *scheme = row->what;
	int rc = scheme->open();

	if (!rc)
		rc = hl_cpu_pin(run->processor[0]);
	if (!rc)
		rc = scheme->join();
	if (rc)
		return rc;
	one_callback(scheme, object);
	for (run->ns = run->done = 0; run->done < run->loops; run->done++) {
		run->ns += one_callback(scheme, object);
		scheme->barrier();
	}
	return 0;
}

static void add_idle_scenario(struct bench_experiment *experiment)
{
	struct bench_scenario *scenario = bench_add_scenario(
		experiment, "idle-callback", "one callback, 3 ms after the last, with a helper",
		&bench_ns_per_callback, 1);

	if (scenario) {
		scenario->loops = 200;
		scenario->quick_loops = 20;
	}
	for (const struct rcu_peer *peer = bench_rcu_peers; peer->name; peer++)
		if (peer->abilities & RCU_HELPS)
			bench_add_rcu_row(experiment, scenario, peer, idle_callbacks, peer->scheme);
}

static void describe(struct bench_experiment *experiment, const struct bench_machine *machine)
{
	static struct callbacks_row what[N_SCENARIOS][MOST_RCU_PEERS];

	(void)machine;
	if (objects_reserve()) {
		experiment->no_memory = true;
		return;
	}
	for (unsigned i = 0; i < N_SCENARIOS; i++)
		add_scenario(experiment, &scenarios[i], what[i]);
	add_idle_scenario(experiment);
}

const struct bench_experiment bench_rcu_callbacks = {
	.name = "rcu-callbacks",
	.origin = "O5",
	.title = "callbacks after a grace period, from call to done",
	.describe = describe,
	.end = objects_release,
};
