// SPDX-License-Identifier: MIT
/*
 * Threads that read, or sleep, beside the one that is measured.
 */
#include "bench/rcu.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include <hotline/cpu.h>

#define SECTIONS 16u

struct reader {
	struct rcu_readers *readers;
	int processor;
};

void bench_read_some(const struct rcu_scheme *scheme, void *arg)
{
	scheme->read(arg, SECTIONS);
	scheme->quiescent();
}

static void *reader_thread(void *arg)
{
	struct reader *reader = arg;
	struct rcu_readers *readers = reader->readers;
	const struct rcu_scheme *scheme = readers->scheme;
	int rc = hl_cpu_pin(reader->processor);

	if (!rc)
		rc = scheme->join();
	if (!rc && !readers->some)
		scheme->sleep();
	if (rc)
		atomic_store_explicit(&readers->failed, 1, memory_order_relaxed);
	/* READERS_READY, pairs with bench_start_readers(): it has joined, or failed. */
	atomic_fetch_add_explicit(&readers->ready, 1, memory_order_release);
	if (rc)
		return NULL;
	/* A sleeper sleeps until the process ends. */
	while (!readers->some)
		pause();
	/* Relaxed: the flag guards nothing, it only ends the loop. */
	while (!atomic_load_explicit(&readers->stopped, memory_order_relaxed))
		readers->some(scheme, readers->arg);
	scheme->leave();
	return NULL;
}

int bench_start_readers(struct rcu_readers *readers, const struct bench_run *run, unsigned n)
{
	struct reader *reader = calloc(n, sizeof(*reader));

	if (!reader)
		return -ENOMEM;
	for (unsigned i = 0; i < n; i++) {
		unsigned others = run->threads - 1;
		pthread_t thread;
		int rc;

		reader[i] = (struct reader){
			.readers = readers,
			.processor = run->processor[others ? 1 + i % others : 0],
		};
		rc = pthread_create(&thread, NULL, reader_thread, &reader[i]);
		if (rc)
			return -rc;
	}
	/* READERS_READY, pairs with reader_thread() */
	while (atomic_load_explicit(&readers->ready, memory_order_acquire) < n)
		sched_yield();
	return atomic_load_explicit(&readers->failed, memory_order_relaxed) ? -ENOMEM : 0;
}

void bench_stop_readers(struct rcu_readers *readers)
{
	atomic_store_explicit(&readers->stopped, true, memory_order_relaxed);
}
