// SPDX-License-Identifier: MIT
#include "bench/ipc_sembench.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench/clock.h"

/* Semaphores of a set; a call may change 500. */
#define SET_SEMS 256u
#define STACK (64 * 1024)

struct worker {
	struct field *field;
	unsigned i;
	pthread_t thread;
	/* Written by who wakes it and by the thread itself. */
	_Atomic(unsigned) futex HL_CACHELINE_ALIGNED;
} HL_CACHELINE_ALIGNED;

struct field {
	const struct ipc_calls *calls;
	struct worker *worker;
	int *set;
	unsigned threads, batch;
	_Atomic(int) error;
	/* Those that are asleep or are about to be: their numbers, behind a lock. */
	pthread_mutex_t lock HL_CACHELINE_ALIGNED;
	unsigned *line, waiting;
	_Atomic(bool) stop;
};

static int sleep_once(struct worker *w)
{
	struct field *field = w->field;
	struct sembuf down = { (unsigned short)(w->i % SET_SEMS), -1, 0 };

	if (field->calls)
		return field->calls->semop(field->set[w->i / SET_SEMS], &down, 1) ? -errno : 0;
	/* Acquire: what the one that woke it wrote before. */
	while (!atomic_exchange_explicit(&w->futex, 0, memory_order_acquire))
		syscall(SYS_futex, &w->futex, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	return 0;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct field *field = w->field;

	for (;;) {
		int rc;

		pthread_mutex_lock(&field->lock);
		field->line[field->waiting++] = w->i;
		pthread_mutex_unlock(&field->lock);
		rc = sleep_once(w);
		if (rc)
			atomic_store_explicit(&field->error, rc, memory_order_relaxed);
		if (rc || atomic_load_explicit(&field->stop, memory_order_relaxed))
			return NULL;
	}
}

/* Takes a batch out of the line, once it is long enough. */
static void take(struct field *field, unsigned *batch)
{
	for (;;) {
		pthread_mutex_lock(&field->lock);
		if (field->waiting >= field->batch)
			break;
		pthread_mutex_unlock(&field->lock);
		sched_yield();
	}
	field->waiting -= field->batch;
	for (unsigned i = 0; i < field->batch; i++)
		batch[i] = field->line[field->waiting + i];
	pthread_mutex_unlock(&field->lock);
}

static int wake_by_sets(struct field *field, const unsigned *batch)
{
	unsigned sets = (field->threads + SET_SEMS - 1) / SET_SEMS;
	struct sembuf ops[SET_SEMS];

	for (unsigned set = 0; set < sets; set++) {
		unsigned n = 0;

		for (unsigned i = 0; i < field->batch; i++) {
			if (batch[i] / SET_SEMS == set)
				ops[n++] = (struct sembuf){ (unsigned short)(batch[i] % SET_SEMS),
							    1, 0 };
		}
		if (n && field->calls->semop(field->set[set], ops, n))
			return -errno;
	}
	return 0;
}

static int wake_each(struct field *field, const unsigned *batch)
{
	for (unsigned i = 0; i < field->batch; i++) {
		struct worker *w = &field->worker[batch[i]];

		atomic_store_explicit(&w->futex, 1, memory_order_release);
		syscall(SYS_futex, &w->futex, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	}
	return 0;
}

static int wake(struct field *field, const unsigned *batch)
{
	int error = atomic_load_explicit(&field->error, memory_order_relaxed);

	if (error)
		return error;
	return field->calls ? wake_by_sets(field, batch) : wake_each(field, batch);
}

static int make_sets(struct field *field)
{
	for (unsigned set = 0; field->calls && set * SET_SEMS < field->threads; set++) {
		field->set[set] = field->calls->semget(IPC_PRIVATE, SET_SEMS, 0600);
		if (field->set[set] < 0)
			return -errno;
	}
	return 0;
}

static void remove_sets(struct field *field)
{
	for (unsigned set = 0; field->calls && set * SET_SEMS < field->threads; set++)
		field->calls->semctl(field->set[set], 0, IPC_RMID);
}

static int start(struct field *field)
{
	pthread_attr_t attr;
	int rc = make_sets(field);

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	for (unsigned i = 0; i < field->threads && !rc; i++) {
		struct worker *w = &field->worker[i];

		w->field = field;
		w->i = i;
		rc = -pthread_create(&w->thread, &attr, work, w);
	}
	return rc;
}

int bench_sembench_of(struct bench_run *run, const struct ipc_calls *calls, unsigned threads,
		      unsigned batch)
{
	struct field field = { .calls = calls,
			       .threads = threads,
			       .batch = batch,
			       .lock = PTHREAD_MUTEX_INITIALIZER };
	unsigned *taken = calloc(batch, sizeof(*taken));
	uint64_t begun, rounds = (run->loops + batch - 1) / batch;
	int rc;

	field.line = calloc(threads, sizeof(*field.line));
	field.set = calloc(threads / SET_SEMS + 1, sizeof(*field.set));
	field.worker = aligned_alloc(HL_CACHE_LINE, threads * sizeof(*field.worker));
	if (!taken || !field.line || !field.set || !field.worker)
		return -ENOMEM;
	for (unsigned i = 0; i < threads; i++)
		field.worker[i] = (struct worker){ 0 };
	rc = start(&field);
	/* Once each, untimed. */
	for (unsigned i = 0; i < 2 * threads / batch && !rc; i++) {
		take(&field, taken);
		rc = wake(&field, taken);
	}
	begun = bench_now();
	for (uint64_t i = 0; i < rounds && !rc; i++) {
		take(&field, taken);
		rc = wake(&field, taken);
	}
	run->ns = bench_now() - begun;
	run->done = rounds * batch;
	remove_sets(&field);
	/* The threads end with the process. */
	return rc;
}

int bench_sembench(struct bench_run *run, const struct ipc_calls *calls)
{
	return bench_sembench_of(run, calls, SEMBENCH_THREADS, SEMBENCH_BATCH);
}
