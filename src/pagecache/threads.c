// SPDX-License-Identifier: MIT
/*
 * I/O by threads, where io_uring is forbidden: a few for the whole process, made when they
 * are first needed, that do one request each at a time. The caller does some itself.
 *
 * Locking: `lock`, for the list of jobs and what of them is done.
 */
#include "pagecache/internal.h"

#include <errno.h>
#include <signal.h>

#define MOST_THREADS 16u

/* A caller's requests; it waits until all are done. */
struct job {
	int fd;
	struct hl_io_request *request;
	unsigned n, next, done;
	struct job *after;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER, finished = PTHREAD_COND_INITIALIZER;
static struct job *jobs; /* with requests that nobody does yet */
static unsigned n_threads, n_idle;
static uint64_t generation;

/* Does the next request of a job; lock is held. */
static void do_one(struct job *job)
{
	struct hl_io_request *request = &job->request[job->next++];

	if (job->next == job->n) {
		struct job **link = &jobs;

		while (*link != job)
			link = &(*link)->after;
		*link = job->after;
	}
	pthread_mutex_unlock(&lock);
	hl_io_one(job->fd, request);
	pthread_mutex_lock(&lock);
	if (++job->done == job->n)
		pthread_cond_broadcast(&finished);
}

static void *serve(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&lock);
	for (;;) {
		while (!jobs) {
			n_idle++;
			pthread_cond_wait(&work, &lock);
			n_idle--;
		}
		do_one(jobs);
	}
	return NULL;
}

/* With all signals blocked: they are for the program's own threads. */
static void add_thread(void)
{
	sigset_t all, before;
	pthread_t thread;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (!pthread_create(&thread, NULL, serve, NULL)) {
		pthread_detach(thread);
		n_threads++;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* In a child of fork none of the threads is there. */
static void forget_parent(void)
{
	uint64_t now = atomic_load_explicit(&hl_pc_generation, memory_order_relaxed);

	if (generation != now) {
		generation = now;
		n_threads = n_idle = 0;
		jobs = NULL;
	}
}

static void run(int fd, struct hl_io_request *request, unsigned n)
{
	struct job job = { .fd = fd, .request = request, .n = n };
	int state;

	if (n == 1) {
		hl_io_one(fd, request);
		return;
	}
	state = hl_no_cancel();
	pthread_mutex_lock(&lock);
	forget_parent();
	job.after = jobs;
	jobs = &job;
	for (unsigned i = n_idle; i + 1 < n && n_threads < MOST_THREADS; i++)
		add_thread();
	pthread_cond_broadcast(&work);
	while (job.next < job.n)
		do_one(&job);
	while (job.done < job.n)
		pthread_cond_wait(&finished, &lock);
	pthread_mutex_unlock(&lock);
	hl_cancel_as_before(state);
}

/* ---- Around fork ---- */

void hl_io_threads_lock(void)
{
	pthread_mutex_lock(&lock);
}

void hl_io_threads_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void hl_io_threads_forked(void)
{
	pthread_cond_init(&work, NULL);
	pthread_cond_init(&finished, NULL);
	pthread_mutex_unlock(&lock);
}

const struct hl_io hl_io_threads = { .run = run, .sync = hl_io_sync };
