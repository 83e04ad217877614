/* SPDX-License-Identifier: MIT */
/*
 * Experiments with System V IPC: the same loops with the kernel's functions, ours, and ours with
 * the layout as it was.
 */
#ifndef HL_BENCH_IPC_H
#define HL_BENCH_IPC_H

#include <stdatomic.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <time.h>

#include <hotline/cacheline.h>

#include "bench/harness.h"

struct ipc_calls {
	int (*semget)(key_t key, int nsems, int flags);
	int (*semop)(int id, struct sembuf *ops, size_t n);
	int (*semtimedop)(int id, struct sembuf *ops, size_t n, const struct timespec *timeout);
	int (*semctl)(int id, int number, int command, ...);
	int (*msgget)(key_t key, int flags);
	int (*msgsnd)(int id, const void *message, size_t size, int flags);
	ssize_t (*msgrcv)(int id, void *message, size_t size, long type, int flags);
	int (*msgctl)(int id, int command, struct msqid_ds *stat);
};

extern const struct ipc_calls ipc_kernel;
extern const struct ipc_calls ipc_hotline;
/* The lock of each object beside what is read without it. */
extern const struct ipc_calls ipc_packed;

/* NULL if the implementation is there, else why not. Never freed. */
const char *ipc_why_not(const struct ipc_calls *calls);

/* What semctl takes behind the command. */
union ipc_semun {
	int val;
	unsigned short *array;
};

/*
 * What the processes of a run share. Each measures the time of its own loops; the run's is the
 * longest.
 */
struct ipc_shared {
	/* Written by each process as it becomes ready, and by one that fails. */
	_Atomic(unsigned) ready;
	_Atomic(int) error;
	/* The workload's own. */
	_Atomic(int) word[2][HL_CACHE_LINE] HL_CACHELINE_PAIR_ALIGNED;
	struct {
		_Atomic(uint64_t) ns;
	} side[64] HL_CACHELINE_PAIR_ALIGNED;
};

/* One side of a run: does `loops` of them after warming up; 0 or a negative errno value. */
typedef int (*ipc_side_fn)(void *arg, unsigned side, uint64_t loops);

/*
 * ipc_sides - runs the sides, each in a process of its own on a processor of its own
 *
 * All begin to warm up and then to time their loops together. Sets run->ns.
 */
int ipc_sides(struct bench_run *run, unsigned sides, ipc_side_fn side, void *arg);

/* A row that runs the same for the three implementations; NULL: that one has none. */
void ipc_add_rows(struct bench_experiment *experiment, struct bench_scenario *scenario,
		  bench_fn run, bool packed, bool kernel);

#endif
