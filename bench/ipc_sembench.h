/* SPDX-License-Identifier: MIT */
/*
 * The pattern of sembench: many threads that sleep, each on a semaphore of its own, and one that
 * wakes as many of them by a call as it can. Who is woken lines up again and sleeps.
 */
#ifndef HL_BENCH_IPC_SEMBENCH_H
#define HL_BENCH_IPC_SEMBENCH_H

#include "bench/ipc.h"

#define SEMBENCH_THREADS 1024u
#define SEMBENCH_BATCH 512u

/* Wakes run->loops threads; calls: NULL: each sleeps in a futex of its own and takes a call. */
int bench_sembench(struct bench_run *run, const struct ipc_calls *calls);

/* The same with so many threads, woken so many at a time. */
int bench_sembench_of(struct bench_run *run, const struct ipc_calls *calls, unsigned threads,
		      unsigned batch);

#endif
