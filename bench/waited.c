// SPDX-License-Identifier: MIT
#include "bench/waited.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <hotline/cacheline.h>
#include <hotline/cpu.h>

#include "bench/clock.h"

/* The part of the loops that goes before, untimed. */
#define WARM_UP 8
/* Between the moment when the target counts as asleep and the call: its processor has
 * gone idle by then. */
#define SETTLE_NS 20000

enum state { STARTING, READY, FAILED };

struct target {
	const struct transport *transport;
	enum waited_mode mode;
	int processor;
	void *receiver;
	int error;
	int stat_fd; /* the thread's line in /proc */
	/* Written once each: by the target, by the caller. */
	_Atomic(enum state) state HL_CACHELINE_PAIR_ALIGNED;
	_Atomic(bool) stopped;
	/* Written by the functions that are called. */
	uint64_t ran HL_CACHELINE_PAIR_ALIGNED;
} HL_CACHELINE_PAIR_ALIGNED;

static void count(void *info)
{
	++*(uint64_t *)info;
}

static int open_stat(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%ld/stat", syscall(SYS_gettid));
	return open(path, O_RDONLY | O_CLOEXEC);
}

static int prepare(struct target *target)
{
	int rc = hl_cpu_pin(target->processor);

	if (rc)
		return rc;
	target->stat_fd = open_stat();
	if (target->stat_fd < 0)
		return -errno;
	target->receiver = target->transport->open(1);
	if (!target->receiver)
		return -ENOMEM;
	return target->mode == WAITED_INTERRUPTED
		       ? target->transport->interruptible(target->receiver)
		       : 0;
}

static void serve(struct target *target)
{
	const struct transport *transport = target->transport;

	/* Relaxed: the flag guards nothing, it only ends the loop. */
	while (!atomic_load_explicit(&target->stopped, memory_order_relaxed)) {
		if (target->mode == WAITED_POLLING)
			transport->poll(target->receiver);
		else if (target->mode == WAITED_IDLE)
			transport->idle(target->receiver);
		else
			bench_relax();
	}
}

static void *target_thread(void *arg)
{
	struct target *target = arg;

	target->error = prepare(target);
	/* Release: what open() made comes before, for who sees READY. */
	atomic_store_explicit(&target->state, target->error ? FAILED : READY, memory_order_release);
	if (!target->error)
		serve(target);
	return NULL;
}

/* Waits until the target's thread sleeps in the kernel, then some more. */
static void wait_until_asleep(const struct target *target)
{
	uint64_t end;

	for (;;) {
		char line[256];
		ssize_t n = pread(target->stat_fd, line, sizeof(line) - 1, 0);
		const char *state;

		if (n <= 0)
			return;
		line[n] = '\0';
		state = strrchr(line, ')');
		if (state && state[1] && state[2] == 'S')
			break;
	}
	for (end = bench_now() + SETTLE_NS; bench_now() < end;)
		bench_relax();
}

static uint64_t call_all(struct target *target, void *link, uint64_t loops)
{
	const struct transport *transport = target->transport;
	uint64_t begun = bench_now();

	for (uint64_t i = 0; i < loops; i++)
		transport->call(link, count, &target->ran);
	return bench_now() - begun;
}

/* Each call timed alone, since what lies between them is no part of it. */
static uint64_t call_sleeper(struct target *target, void *link, uint64_t loops)
{
	const struct transport *transport = target->transport;
	uint64_t ns = 0;

	for (uint64_t i = 0; i < loops; i++) {
		uint64_t begun;

		wait_until_asleep(target);
		begun = bench_now();
		transport->call(link, count, &target->ran);
		ns += bench_now() - begun;
	}
	return ns;
}

static int drive(struct target *target, struct bench_run *run)
{
	uint64_t (*calls)(struct target *, void *, uint64_t) =
		target->mode == WAITED_IDLE ? call_sleeper : call_all;
	uint64_t warm_up = run->loops / WARM_UP + 1;
	void *link = target->transport->join(target->receiver, 0);

	if (!link)
		return -ENOMEM;
	calls(target, link, warm_up);
	run->ns = calls(target, link, run->loops);
	run->done = run->loops;
	atomic_store_explicit(&target->stopped, true, memory_order_relaxed);
	if (target->transport->wake)
		target->transport->wake(link);
	/* Each ran, once. */
	return target->transport->bare || target->ran == warm_up + run->loops ? 0 : -EPROTO;
}

int bench_waited(struct bench_run *run, const struct bench_row *row)
{
	const struct waited_row *what = row->what;
	/* Used by the thread for as long as there is one. */
	static struct target target;
	enum state state;
	pthread_t thread;
	int rc = hl_cpu_pin(run->processor[0]);

	target = (struct target){
		.transport = what->transport,
		.mode = what->mode,
		.processor = run->processor[1],
	};
	if (!rc)
		rc = -pthread_create(&thread, NULL, target_thread, &target);
	if (rc)
		return rc;
	do
		state = atomic_load_explicit(&target.state, memory_order_acquire);
	while (state == STARTING);
	rc = state == READY ? drive(&target, run) : target.error;
	/* The target ends, at the latest with the process. */
	return rc;
}
