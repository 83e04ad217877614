/* SPDX-License-Identifier: MIT */
/*
 * What the experiments on RCU compare: ways to have readers, to wait for them and to have
 * functions run after them. One file each in peers/, ours among them.
 *
 * The loops that are timed are compiled into each of those files, out of
 * peers/rcu_loops.h: a read section may cost less than a call.
 */
#ifndef HL_BENCH_RCU_H
#define HL_BENCH_RCU_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "bench/harness.h"

/* A table of what the threads of a process have open. */
struct descriptors {
	_Atomic(void *) *file;
	unsigned n;
};

/* Of what is open: about that of the kernel's struct file. */
#define DESCRIPTOR_BYTES 256u

struct rcu_scheme {
	/* Of an object: what the scheme keeps in it, and behind that a word. */
	size_t least_bytes;
	/* Where the word is, which the callbacks add one to. */
	size_t word;

	/* Once, before threads are pinned: helpers run where the system lets them. 0 or a
	 * negative errno value. */
	int (*open)(void);
	/* A thread that will read, call and wait; and when it ends. */
	int (*join)(void);
	void (*leave)(void);
	/* It is about to sleep for long, and has slept. */
	void (*sleep)(void);
	void (*wake)(void);

	/* Reads the word in so many sections, one after the other. */
	void (*read)(const uint64_t *word, uint64_t sections);
	/* Outside of sections, now and then. */
	void (*quiescent)(void);

	void (*synchronize)(void);
	/* The same in a hurry; NULL: there is none. */
	void (*expedited)(void);

	/* Has each object's word incremented, or the object freed, after a grace period. */
	void (*call)(void *const *object, uint64_t n, bool frees);
	/* The same; does now and then what is the caller's part of it. */
	void (*call_and_poll)(void *const *object, uint64_t n, bool frees);
	/* Returns when all that was called has run. */
	void (*barrier)(void);

	/* Closes what is open and opens another, at random, so often. 0 or -ENOMEM. */
	int (*reopen)(struct descriptors *descriptors, uint64_t times);
	/* Looks up descriptors at random, so many, each in a section. */
	void (*look_up)(struct descriptors *descriptors, uint64_t times);
};

/* What a scheme can be asked to do. */
enum rcu_ability {
	RCU_READS = 1 << 0,
	RCU_SYNCHRONIZES = 1 << 1,
	RCU_CALLS = 1 << 2, /* all at once, and waits */
	RCU_POLLS = 1 << 3, /* the same with the caller's part in between */
	RCU_HELPS = 1 << 4, /* a thread of its own runs what was called */
};

struct rcu_peer {
	const char *name;
	enum bench_kind kind;
	unsigned abilities;
	const struct rcu_scheme *scheme; /* NULL: its library was not there */
	const char *why_not; /* and how to get it */
};

/* All there are; the list ends in one without a name. */
extern const struct rcu_peer bench_rcu_peers[];

/* Adds the row of a peer; what: for run(), kept by the caller. */
void bench_add_rcu_row(struct bench_experiment *experiment, struct bench_scenario *scenario,
		       const struct rcu_peer *peer, bench_fn run, const void *what);

/* Rows for all of bench_rcu_peers in a scenario. */
#define MOST_RCU_PEERS 16

/* ---- Threads that read (rcu_readers.c) ---- */

struct rcu_readers {
	const struct rcu_scheme *scheme;
	/* What each does until it is stopped; NULL: it sleeps. */
	void (*some)(const struct rcu_scheme *scheme, void *arg);
	void *arg;
	/* Written once by who stops them. */
	_Atomic(bool) stopped;
	/* Written by each when it is there. */
	_Atomic(unsigned) ready, failed;
};

/* Starts n threads on the processors of a run but the first; on the first where there is
 * no other. Returns when all have joined: 0 or a negative errno value. */
int bench_start_readers(struct rcu_readers *readers, const struct bench_run *run, unsigned n);
/* Sections that read one word. */
void bench_read_some(const struct rcu_scheme *scheme, void *arg);
void bench_stop_readers(struct rcu_readers *readers);

#endif
