// SPDX-License-Identifier: MIT
#include "layout/chunks.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define MAX_THREADS	8

/* Scratch memories of two threads share no line, nor a pair of lines. */
#define APART		256

struct run {
	const struct hl_chunks *chunks;

	/* Locking: the mutex holds all below. */
	pthread_mutex_t lock;
	pthread_cond_t turned;
	uint32_t next_made;	/* first of what no thread has begun */
	uint32_t next_taken;	/* first of what is not taken yet */
	int failure;
};

struct worker {
	struct run *run;
	void *scratch;
	pthread_t thread;
};

/* Makes and takes one chunk after the other until there are no more.  The lock
 * is held, but while making and taking. */
static void work(struct run *run, void *scratch)
{
	const struct hl_chunks *chunks = run->chunks;

	while (!run->failure && run->next_made < chunks->n) {
		uint32_t first = run->next_made, left = chunks->n - first;
		uint32_t n = left < chunks->chunk ? left : chunks->chunk;

		run->next_made += n;
		pthread_mutex_unlock(&run->lock);
		int status = chunks->make(chunks->arg, scratch, first, n);

		pthread_mutex_lock(&run->lock);
		while (!run->failure && run->next_taken != first)
			pthread_cond_wait(&run->turned, &run->lock);
		if (!run->failure && !status) {
			/* It is this thread's turn until next_taken moves on. */
			pthread_mutex_unlock(&run->lock);
			status = chunks->take(chunks->arg, scratch);
			pthread_mutex_lock(&run->lock);
		}
		if (!run->failure)
			run->failure = status;
		run->next_taken += n;
		pthread_cond_broadcast(&run->turned);
	}
}

static void *worker_main(void *arg)
{
	struct worker *worker = arg;

	pthread_mutex_lock(&worker->run->lock);
	work(worker->run, worker->scratch);
	pthread_mutex_unlock(&worker->run->lock);
	return NULL;
}

unsigned hl_chunks_threads(unsigned asked)
{
	cpu_set_t set;

	if (!asked)
		asked = sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);
	return asked < MAX_THREADS ? asked : MAX_THREADS;
}

int hl_chunks_run(const struct hl_chunks *chunks)
{
	struct run run = {
		.chunks = chunks,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.turned = PTHREAD_COND_INITIALIZER,
	};
	struct worker worker[MAX_THREADS];
	size_t room = (chunks->scratch_size + APART - 1) & ~(size_t)(APART - 1);
	uint32_t n_chunks = chunks->n / chunks->chunk + (chunks->n % chunks->chunk != 0);
	unsigned wanted = chunks->threads < MAX_THREADS ? chunks->threads : MAX_THREADS;
	unsigned n = 1;
	char *scratch;

	if (wanted > n_chunks)
		wanted = n_chunks;
	if (!wanted)
		return 0;
	scratch = aligned_alloc(APART, room * wanted);
	if (!scratch)
		return -ENOMEM;
	memset(scratch, 0, room * wanted);

	/* The calling thread is the first worker; one that cannot be had is done without. */
	for (; n < wanted; n++) {
		worker[n] = (struct worker){ .run = &run, .scratch = scratch + n * room };
		if (pthread_create(&worker[n].thread, NULL, worker_main, &worker[n]))
			break;
	}
	pthread_mutex_lock(&run.lock);
	work(&run, scratch);
	pthread_mutex_unlock(&run.lock);
	for (unsigned i = 1; i < n; i++)
		pthread_join(worker[i].thread, NULL);

	if (chunks->drop) {
		for (unsigned i = 0; i < n; i++)
			chunks->drop(scratch + i * room);
	}
	free(scratch);
	return run.failure;
}
