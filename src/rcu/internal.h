/* SPDX-License-Identifier: MIT */
/*
 * Inside the room: threads, their queues of calls, grace periods.
 */
#ifndef HL_RCU_INTERNAL_H
#define HL_RCU_INTERNAL_H

#include <stdatomic.h>

#include <hotline/cacheline.h>
#include <hotline/rcu.h>

#include "cpu/internal.h"

/* The first number of grace periods and the first position of queues. Tests begin where they
 * are about to wrap. */
#ifndef HL_RCU_START
#define HL_RCU_START UINT64_C(0)
#endif

/* ---- Batches ---- */

/* Calls of the same function, one after the other: from `first` to where the next run begins. */
struct hl_rcu_run {
	uint64_t word; /* the function, perhaps with the flag */
	uint64_t first; /* position */
};

/* The pointers are of a struct hl_rcu_head each, and the function takes one. */
#define HL_CALL_HEAD ((uint64_t)1 << 63)

/* Written in order by the thread, then read in order by who invokes: what the functions are
 * called with from the front, the runs from the back. It is full where they meet. */
struct hl_rcu_batch {
	struct hl_rcu_batch *_Atomic next; /* of the same queue, or of the pool */
	uint64_t base; /* the position of the first call */
	uint64_t bytes;
	_Atomic(uint64_t) n_runs;
	uintptr_t pointer[] HL_CACHELINE_ALIGNED;
};

/* The memory of a batch: of a thread that gives little, and of one that gives much. */
#define HL_BATCH_SMALL ((size_t)4096)
#define HL_BATCH_LARGE ((size_t)32768)
/* Pointers for which there is room in so many bytes, and in that of a run. */
#define HL_BATCH_SLOTS(bytes) (((bytes) - sizeof(struct hl_rcu_batch)) / sizeof(uintptr_t))
#define HL_RUN_SLOTS (sizeof(struct hl_rcu_run) / sizeof(uintptr_t))

static inline struct hl_rcu_run *hl_batch_run(struct hl_rcu_batch *batch, uint64_t i)
{
	return (struct hl_rcu_run *)((char *)batch + batch->bytes) - 1 - i;
}

/* ---- Queues ---- */

struct hl_rcu_queue {
	/* Written by the thread that gives; .given is read by who invokes. */
	HL_CACHELINE_GROUP_BEGIN(giver) HL_CACHELINE_ALIGNED;
	_Atomic(uint64_t) given; /* position of the next call */
	uint64_t limit; /* where the open batch is full */
	uint64_t word; /* of its last run */
	uintptr_t origin; /* where the pointer of position 0 would be */
	struct hl_rcu_batch *open;
	volatile uint32_t busy; /* it may be interrupted by a function that gives, too */
	HL_CACHELINE_GROUP_END(giver);

	/* Written by both, seldom; read by the giver with each call. */
	HL_CACHELINE_GROUP_BEGIN(rarely) HL_CACHELINE_ALIGNED;
	_Atomic(uint32_t) notify; /* nobody looks: the giver has to ring */
	_Atomic(uint32_t) by; /* HL_RCU_BY_: who invokes now */
	struct hl_rcu_batch *_Atomic spare; /* empty, for the giver's next */
	_Atomic(uint64_t) linked; /* heads that were linked */
	struct hl_rcu_head *_Atomic links; /* the heads, last first */
	_Atomic(uint32_t) rung; /* it is in the helper's letter box */
	struct hl_rcu_queue *next_rung;
	HL_CACHELINE_GROUP_END(rarely);

	/* Of who invokes, one at a time: who has taken .lock. */
	HL_CACHELINE_GROUP_BEGIN(taker) HL_CACHELINE_ALIGNED;
	_Atomic(uint32_t) lock;
	bool waiting; /* calls up to .mark, for the grace period .state */
	uint64_t mark;
	uint64_t state;
	uint64_t ready; /* calls up to here may run */
	struct hl_rcu_batch *first; /* the batch with the position .taken */
	uint64_t run; /* in it, that of .taken or one before */
	struct hl_rcu_head *links_waiting, *links_ready; /* first first */
	HL_CACHELINE_GROUP_END(taker);

	/* Written by who invokes, with each call; read by who waits for it, now and then. */
	HL_CACHELINE_GROUP_BEGIN(progress) HL_CACHELINE_ALIGNED;
	_Atomic(uint64_t) taken; /* calls that were begun */
	_Atomic(uint64_t) runs; /* 1: the last of them runs still */
	_Atomic(uint64_t) links_done;
	HL_CACHELINE_GROUP_END(progress);

	/* Written by who waits; read by who invokes, when it has run some. */
	HL_CACHELINE_GROUP_BEGIN(waiters) HL_CACHELINE_ALIGNED;
	_Atomic(uint32_t) waiters; /* those who sleep until some have run */
	_Atomic(uint32_t) some_ran; /* a futex */
	HL_CACHELINE_GROUP_END(waiters);

	/* The helper's alone. */
	HL_CACHELINE_GROUP_BEGIN(helper) HL_CACHELINE_ALIGNED;
	struct hl_rcu_queue *next_active;
	int64_t empty_since;
	bool active;
	HL_CACHELINE_GROUP_END(helper);
};
HL_CACHELINE_ASSERT_ALIGNED(struct hl_rcu_queue, giver);
HL_CACHELINE_ASSERT_ALIGNED(struct hl_rcu_queue, rarely);
HL_CACHELINE_ASSERT_ALIGNED(struct hl_rcu_queue, taker);
HL_CACHELINE_ASSERT_ALIGNED(struct hl_rcu_queue, progress);
HL_CACHELINE_ASSERT_ALIGNED(struct hl_rcu_queue, waiters);
HL_CACHELINE_ASSERT_APART(struct hl_rcu_queue, busy, notify);
HL_CACHELINE_ASSERT_APART(struct hl_rcu_queue, lock, taken);

/* ---- Threads ---- */

/* .by of a thread that chose nothing. */
#define HL_BY_AT_FIRST (HL_RCU_BY_HELPER | HL_RCU_BY_BARRIER)

/* .heed of a reader */
#define HL_HEED_PARKED 0x1u /* no grace period fences for it: say that you are here */
#define HL_HEED_FENCE 0x2u /* there is no membarrier here: fence */

/* One a thread, never freed while the library is there; the next thread takes over what the
 * last has left, calls that wait included. */
struct hl_rcu_thread {
	struct hl_rcu_reader reader;

	/* Written when the thread comes, under the registry's lock; the rest the thread's own. */
	HL_CACHELINE_GROUP_BEGIN(own) HL_CACHELINE_ALIGNED;
	struct hl_rcu_thread *next; /* of all threads, written once */
	struct hl_rcu_thread *next_free;
	uint32_t by; /* HL_RCU_BY_: as it chose */
	bool quiescent; /* it reads by quiescent states */
	bool offline; /* and said that it does not for now */
	bool is_chunk; /* the first of those whose memory was asked for together */
	HL_CACHELINE_GROUP_END(own);

	/* The second is for functions that interrupt the thread while it gives to the first. */
	struct hl_rcu_queue queue[2];
};
HL_CACHELINE_ASSERT_APART(struct hl_rcu_thread, reader, next);

#define HL_FOR_EACH_RCU_THREAD(t) for (struct hl_rcu_thread *t = hl_rcu_threads(); t; t = t->next)
#define HL_FOR_EACH_RCU_QUEUE(t, q) \
	HL_FOR_EACH_RCU_THREAD(t) \
	for (struct hl_rcu_queue *q = t->queue; q < t->queue + 2; q++)

/* thread.c */

struct hl_rcu_thread *hl_rcu_threads(void);
/* The calling thread's, registered if it is not; NULL: no memory. */
struct hl_rcu_thread *hl_rcu_self(void);

/* The same, NULL if it is not registered. */
static inline struct hl_rcu_thread *hl_rcu_self_if_any(void)
{
	return (struct hl_rcu_thread *)hl_priv_rcu_self;
}

/* Whether the calling thread is in a section of the general scheme. */
bool hl_rcu_in_section(void);
/* Threads that read without being registered, for want of memory. */
bool hl_rcu_crowd_reads(void);
/* Whether a thread other than the calling one is registered. */
bool hl_rcu_others(void);
void hl_rcu_threads_lock(void);
void hl_rcu_threads_unlock(void);
void hl_rcu_threads_forked(void);
void hl_rcu_threads_unload(void);

/* Quiescent states of the calling thread: holds nothing from now on; may hold again. */
void hl_rcu_rest(struct hl_rcu_thread *self);
void hl_rcu_resume(struct hl_rcu_thread *self);
void hl_rcu_announce(struct hl_rcu_thread *self);

/* gp.c: numbers have 48 bits and may wrap. */

#define HL_NUMBER_SHIFT 16
#define HL_NUMBER_MASK (UINT64_MAX >> HL_NUMBER_SHIFT)

/* The number of the next grace period to begin: when it is over, one has passed. */
uint64_t hl_gp_state(void);
bool hl_gp_done(uint64_t state);
/* Whether nobody but one reads now: a grace period has passed, then, that has no number and costs
 * a look at each thread. */
bool hl_gp_nobody_reads(const struct hl_rcu_thread *but);
/* Does what can be done without waiting so that hl_gp_done(state) becomes true. */
void hl_gp_step(uint64_t state);
/* The same for calls, which may wait until it is time for another broadcast: how long is left
 * then, in nanoseconds; 0: nothing is in the way but readers. */
int64_t hl_gp_step_in_time(uint64_t state);
/* Sleeps until a grace period ends, ns nanoseconds at most, unless state is done. */
void hl_gp_sleep(uint64_t state, int64_t ns);
/* Readers that grace periods have to reach by membarrier: one more, one less. */
void hl_gp_reader_wakes(void);
void hl_gp_reader_parks(void);
/* Whether the grace period under way is to be reported: every so many nanoseconds that somebody
 * asks, from when somebody did first. Fills in who holds it back, and since when. */
bool hl_gp_stalls(int64_t every_ns, struct hl_rcu_stall *stall);
/* Grace periods there were. */
uint64_t hl_gp_count(void);
void hl_gp_lock(void);
void hl_gp_unlock(void);
void hl_gp_forked(void);

/* wait.c */

/* Waits until hl_gp_done(state), in the calling thread's state as it is. */
void hl_gp_wait(uint64_t state, bool hurry);

/* batch.c */

/* Room for calls; NULL: no memory. Gives one back. large: for a thread that gives much */
struct hl_rcu_batch *hl_batch_get(bool large);
void hl_batch_put(struct hl_rcu_batch *batch);
/* Gives all but a little of what is empty back to the system. */
void hl_batch_trim(void);
void hl_batch_lock(void);
void hl_batch_unlock(void);
/* Frees the batches of a queue, and all that are empty. */
void hl_batch_unload_queue(struct hl_rcu_queue *queue);
void hl_batch_unload(void);
uint64_t hl_batch_count(uint64_t *bytes);

/* queue.c */

void hl_queue_init(struct hl_rcu_queue *queue);
/* Has somebody look at what is in the queue; .notify was set. */
void hl_queue_ring(struct hl_rcu_queue *queue);
/* Whether there is something in it. */
bool hl_queue_pending(struct hl_rcu_queue *queue);
/* How many calls are in its batches. */
uint64_t hl_queue_waits(struct hl_rcu_queue *queue);
/* Up to which position calls have returned. */
uint64_t hl_queue_done(struct hl_rcu_queue *queue);
/* Calls that wait, in full batches. */
bool hl_backlog_above_hurry(void);
/* The mark above which givers are slowed. */
size_t hl_backlog_most(void);
void hl_backlog_sub(uint64_t n);
/* Where heads go when there is no memory for a thread either. */
struct hl_rcu_queue *hl_queue_of_all(void);
void hl_queue_forked(void);

/* invoke.c */

bool hl_queue_trylock(struct hl_rcu_queue *queue);
void hl_queue_unlock(struct hl_rcu_queue *queue);
/* With the lock held: notes what is to wait for the next grace period, and what has waited
 * long enough. */
void hl_queue_collect(struct hl_rcu_queue *queue);
/* With the lock held: runs what is ready, most calls at most; how many it was. */
unsigned hl_queue_run(struct hl_rcu_queue *queue, unsigned most);
/* Sleeps until some have run, ns nanoseconds at most, unless all before a position have, and as
 * many heads that were linked. */
void hl_queue_sleep(struct hl_rcu_queue *queue, uint64_t given, uint64_t linked, int64_t ns);
bool hl_queue_reached(struct hl_rcu_queue *queue, uint64_t given, uint64_t linked);
/* The queue that the calling thread runs; NULL: none. */
extern __thread struct hl_rcu_queue *hl_rcu_running;

/* helper.c */

/* Has the helper look at a queue; starts it if need be. false: there can be none. */
bool hl_helper_ring(struct hl_rcu_queue *queue);
void hl_helper_lock(void);
void hl_helper_unlock(void);
void hl_helper_forked(void);
/* In the child: the helper, when there is one, finds the queue in its box if it is not empty. */
void hl_helper_queue_forked(struct hl_rcu_queue *queue);
/* Ends the helper; false: it runs a call that does not return. */
bool hl_helper_stop(void);

/* cpu.c */

/* Who runs a queue of the calling thread from now on. */
void hl_rcu_run_by(struct hl_rcu_queue *queue, uint32_t who);
/* The calling thread polls no more. */
void hl_rcu_poll_ends(void);

/* barrier.c */

/* Whether somebody is in hl_rcu_barrier(). */
bool hl_rcu_barrier_waits(void);
void hl_rcu_barrier_forked(void);

/* fork.c */

/* false: no memory */
bool hl_rcu_watch_fork(void);

/* stats.c */

/* Counted seldom, by whoever it happens to. */
struct hl_rcu_counters {
	_Atomic(uint64_t) broadcasts, wakeups, hurried, slowed;
} HL_CACHELINE_ALIGNED;
extern struct hl_rcu_counters hl_rcu_counters;

static inline void hl_count(_Atomic(uint64_t) *counter)
{
	atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

#endif
