/* SPDX-License-Identifier: MIT */
/*
 * What the experiments compare: ways to have a function run by a thread that polls or
 * sleeps. One file each in peers/, ours among them.
 *
 * The thread that receives is the target. Messages are handed over by value: a copy is
 * made of them before send() returns.
 */
#ifndef HL_BENCH_PEER_H
#define HL_BENCH_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/harness.h"

/* Messages that a peer with a burst call is handed at once. */
#define BENCH_BURST 32u
/* Messages that a peer's queue holds, where that can be chosen. */
#define BENCH_QUEUE 256u

struct message {
	void (*func)(void *info);
	void *info;
};

struct transport {
	/* It only shows what the machine allows: call() runs no function. */
	bool bare;
	/* The target's thread: makes what it receives by. NULL: it could not be made. All
	 * that is made here lasts until the process of the run ends. */
	void *(*open)(unsigned senders);
	/* The target: runs what is there; how much it was. What can only wait waits. */
	unsigned (*poll)(void *receiver);
	/* The target: sleeps until something is there and runs it. NULL: it cannot. */
	unsigned (*idle)(void *receiver);

	/* A sender's thread, which may be the target's. NULL: it could not be made. sender: 0
	 * to senders - 1. */
	void *(*join)(void *receiver, unsigned sender);
	/* Sends up to BENCH_BURST messages; how many went out, 0: there is no room now. NULL:
	 * for calls that are waited for only. */
	unsigned (*send)(void *link, const struct message *message, unsigned n);
	/* Has func(info) run by the target and waits until it has. */
	void (*call)(void *link, void (*func)(void *info), void *info);
	/* Has the target come out of poll() or idle() though it got no message. NULL: it
	 * never stays there. */
	void (*wake)(void *link);
	/* The target can be interrupted: made so by its own thread. NULL: it cannot. */
	int (*interruptible)(void *receiver);
};

/* For transports without a call of their own: sends and waits for a flag. */
void bench_call_by_flag(const struct transport *transport, void *link, void (*func)(void *info),
			void *info);

/* What a peer can be asked to do. */
enum peer_ability {
	PEER_POLLS = 1 << 0,
	PEER_SLEEPS = 1 << 1,
	PEER_INTERRUPTS = 1 << 2,
	PEER_SENDS = 1 << 3, /* without waiting */
	PEER_MANY_SENDERS = 1 << 4,
};

struct peer {
	const char *name;
	enum bench_kind kind;
	unsigned abilities;
	const struct transport *transport; /* NULL: its library was not there */
	const char *why_not; /* and how to get it */
};

/* All there are; the list ends in a peer without a name. */
extern const struct peer bench_peers[];

/* The harness's own cost: runs the function at once. */
extern const struct transport transport_nothing;
extern const struct transport transport_hotline;
/* The same source with messages that lie across lines. */
extern const struct transport transport_straddling;

#endif
