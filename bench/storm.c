// SPDX-License-Identifier: MIT
#include "bench/storm.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <hotline/cacheline.h>
#include <hotline/cpu.h>

#include "bench/clock.h"

/* The part of the calls that goes before, untimed. */
#define WARM_UP 8

struct storm {
	const struct broadcast *broadcast;
	uint64_t loops;
	unsigned threads;
	bool from_all;
	/* Written by each thread as it goes from one part to the next. */
	_Atomic(unsigned) arrived HL_CACHELINE_PAIR_ALIGNED;
	_Atomic(bool) failed;
} HL_CACHELINE_PAIR_ALIGNED;

struct member {
	struct storm *storm;
	unsigned number;
	int processor;
	uint64_t ns;
	uint64_t ran; /* functions that ran in this thread */
} HL_CACHELINE_PAIR_ALIGNED;

static __thread uint64_t ran_here;

static void count(void *info)
{
	(void)info;
	ran_here++;
}

/* Waits until all threads are at the end of part `part`, and serves meanwhile. */
static void meet(struct storm *storm, unsigned part, void (*serve)(void))
{
	/* MEET: what each did before comes before what any does behind. */
	atomic_fetch_add_explicit(&storm->arrived, 1, memory_order_acq_rel);
	while (atomic_load_explicit(&storm->arrived, memory_order_acquire) <
	       part * storm->threads) {
		if (serve)
			serve();
		else
			bench_relax();
	}
}

static void storm_on(struct storm *storm, const struct member *member, uint64_t loops)
{
	if (member->number && !storm->from_all)
		return;
	for (uint64_t i = 0; i < loops; i++)
		storm->broadcast->call(count, NULL);
}

static void live(struct storm *storm, struct member *member)
{
	const struct broadcast *broadcast = storm->broadcast;
	uint64_t begun;

	broadcast->meet(storm->threads);
	meet(storm, 2, broadcast->poll);
	storm_on(storm, member, storm->loops / WARM_UP + 1);
	meet(storm, 3, broadcast->poll);
	begun = bench_now();
	storm_on(storm, member, storm->loops);
	meet(storm, 4, broadcast->poll);
	member->ns = bench_now() - begun;
	member->ran = ran_here;
	meet(storm, 5, NULL);
}

static void *member_thread(void *arg)
{
	struct member *member = arg;
	struct storm *storm = member->storm;
	int rc = hl_cpu_pin(member->processor);

	if (!rc)
		rc = storm->broadcast->join(member->number);
	if (rc)
		atomic_store_explicit(&storm->failed, true, memory_order_relaxed);
	meet(storm, 1, NULL);
	if (!atomic_load_explicit(&storm->failed, memory_order_relaxed))
		live(storm, member);
	return NULL;
}

static int start(struct storm *storm, struct member *member, const struct bench_run *run)
{
	for (unsigned i = 0; i < run->threads; i++) {
		pthread_t thread;
		int rc;

		member[i] = (struct member){
			.storm = storm,
			.number = i,
			.processor = run->processor[i],
		};
		/* The first is this thread. */
		rc = i ? pthread_create(&thread, NULL, member_thread, &member[i]) : 0;
		if (rc)
			return -rc;
	}
	member_thread(&member[0]);
	return atomic_load_explicit(&storm->failed, memory_order_relaxed) ? -ENOMEM : 0;
}

int bench_storm(struct bench_run *run, const struct bench_row *row)
{
	/* Used by the threads for as long as there are some. */
	static struct storm storm;
	const struct storm_row *what = row->what;
	struct member *member =
		aligned_alloc(_Alignof(struct member), run->threads * sizeof(*member));
	uint64_t ran = 0, callers = what->from_all ? run->threads : 1;
	int rc;

	if (!member)
		return -ENOMEM;
	storm = (struct storm){
		.broadcast = what->broadcast,
		.loops = run->loops,
		.threads = run->threads,
		.from_all = what->from_all,
	};
	rc = start(&storm, member, run);
	if (rc)
		return rc;
	for (unsigned i = 0; i < run->threads; i++)
		ran += member[i].ran;
	run->ns = member[0].ns;
	run->done = run->loops;
	/* Each call ran on each of the others, once. */
	return ran == callers * (run->threads - 1) * (run->loops + run->loops / WARM_UP + 1)
		       ? 0
		       : -EPROTO;
}
