/* SPDX-License-Identifier: MIT */
/*
 * Grace periods: a number that everybody reads, and who has not seen it yet.
 *
 * Grace periods are numbered. The number that the last one to begin has is on a line that
 * readers read and that is written once a grace period; the number that the last one to end has
 * is on another, for those who wait.
 *
 * Nobody runs grace periods: whoever waits for one does, a step at a time, what can be done
 * without waiting. A step begins one if it is needed and none is under way, and walks along
 * the threads as far as they have passed: each either holds nothing or began what it holds after
 * the grace period began. The walk stops at the first that has not, and the next step
 * goes on from there, so a grace period costs one look at each thread and a few more at
 * those that let it wait. `lock` is held for a step and never while anybody waits.
 *
 * Readers tag their sections with the number, so there is one phase, and one membarrier
 * at most, however they nest or begin anew. There is none while no reader is awake: a
 * reader that has begun no section since the grace period before the last is parked, and
 * fences itself when it comes back.
 *
 * A broadcast costs who executes it and interrupts everybody else. So the calls that wait, which
 * nobody waits for, get one only when so much time has passed since the last that all of them
 * take a tenth of the time, or half of it above the first mark of the backlog.
 *
 * Memory ordering (see thread.c and rcu.h for the readers' ends)
 *
 * RCU_NUMBER: the number is stored with release and loaded with acquire, by those who begin
 *	a section or announce a quiescent state: they see what was before the grace period. Without
 *	it a section that counts as new holds what is old.
 * RCU_OVER: .ended is stored with release, after the looks at readers, and loaded with acquire
 *	by those who wait. Without it they free what is being read.
 * RCU_READER: a reader stores its word, then reads; a grace period stores the number, has
 *	every thread fence, then looks at the word. Either it sees the section, or the
 *	section sees what was before. Without the fence both look too early.
 * RCU_END: a section ends with a store with release; the look is with acquire. Without it
 *	what was read is freed while the read is on its way.
 * RCU_STATE: who asks for a grace period fences between its own stores and its look at the
 *	number. Without it the grace period that it waits for begins before its stores
 *	are seen, and a reader that does not hold it back finds the old pointer.
 * RCU_NOBODY: who waits fences, then looks at everybody. A reader that is not seen fences after the
 *	look's fence and before it reads (RCU_PARKED, RCU_RESUME, or each section where there is no
 *	membarrier): it sees what was before. Readers that are awake do not fence, and are counted.
 * RCU_PARK: a grace period marks a reader as parked, has every thread fence, then looks at the
 *	reader's word; the reader stores its word, then looks whether it is parked. Either the
 *	reader sees the mark and fences, or it is taken off again. In between:
 *
 *		grace period			reader
 *						stores its word
 *		marks it as parked
 *						looks: not parked (or not yet)
 *		membarrier
 *		sees the word: takes the mark off
 */
#include "internal.h"

#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000
#define NS_PER_MS 1000000
/* From one broadcast for calls to the next: times what the last one took. */
#define PACE 10
#define PACE_HURRY 2
#define WORD_OF(number) ((number) << HL_NUMBER_SHIFT | 1)

struct hl_rcu_number hl_priv_rcu_number = { .word = WORD_OF(HL_RCU_START) };

static struct {
	/* Of who has taken .lock. */
	HL_CACHELINE_GROUP_BEGIN(steps) HL_CACHELINE_ALIGNED;
	_Atomic(uint32_t) lock;
	bool crowd_passed;
	struct hl_rcu_thread *next; /* the first that has not passed */
	/* of the last that was found stalled: which, since when, how often it was reported */
	uint64_t watched;
	int64_t watched_ns, reports;
	int64_t broadcast_at, broadcast_ns; /* the last: when it was over, how long it took */
	HL_CACHELINE_GROUP_END(steps);

	/* Readers that are not parked; written by them, seldom. */
	HL_CACHELINE_GROUP_BEGIN(readers) HL_CACHELINE_ALIGNED;
	_Atomic(uint64_t) awake;
	HL_CACHELINE_GROUP_END(readers);

	/* Written when one ends, read by all who wait; and of who sleeps until then. */
	HL_CACHELINE_GROUP_BEGIN(ends) HL_CACHELINE_ALIGNED;
	_Atomic(uint64_t) ended; /* the number of the last that is over */
	_Atomic(uint32_t) ends; /* a futex */
	_Atomic(uint32_t) sleepers;
	HL_CACHELINE_GROUP_END(ends);
} gp = { .ended = HL_RCU_START & HL_NUMBER_MASK };

void hl_gp_reader_wakes(void)
{
	atomic_fetch_add_explicit(&gp.awake, 1, memory_order_seq_cst);
}

void hl_gp_reader_parks(void)
{
	atomic_fetch_sub_explicit(&gp.awake, 1, memory_order_seq_cst);
}

/* ---- Numbers ---- */

static uint64_t begun_now(void)
{
	/* RCU_NUMBER, pairs with begin() */
	return __atomic_load_n(&hl_priv_rcu_number.word, __ATOMIC_ACQUIRE) >> HL_NUMBER_SHIFT;
}

/* Whether number a is b or behind it. */
static bool has_reached(uint64_t a, uint64_t b)
{
	return (int64_t)((a - b) << HL_NUMBER_SHIFT) >= 0;
}

uint64_t hl_gp_state(void)
{
	hl_fence(); /* RCU_STATE, pairs with begin() */
	/* The end of the one under way is not enough: it may have begun too early. */
	return (begun_now() + 1) & HL_NUMBER_MASK;
}

bool hl_gp_done(uint64_t state)
{
	/* RCU_OVER, pairs with end() */
	return has_reached(atomic_load_explicit(&gp.ended, memory_order_acquire), state);
}

bool hl_gp_nobody_reads(const struct hl_rcu_thread *but)
{
	hl_fence(); /* RCU_NOBODY */
	if (atomic_load_explicit(&gp.awake, memory_order_relaxed) || hl_rcu_crowd_reads())
		return false;
	HL_FOR_EACH_RCU_THREAD(t)
	{
		/* RCU_END, pairs with hl_rcu_read_unlock(); RCU_QUIET, with hl_rcu_rest() */
		if (__atomic_load_n(&t->reader.word, __ATOMIC_ACQUIRE) & HL_PRIV_RCU_NEST)
			return false;
		if (t != but && __atomic_load_n(&t->reader.quiescent, __ATOMIC_ACQUIRE))
			return false;
	}
	return true;
}

/* ---- Steps ---- */

static bool trylock(void)
{
	return !atomic_load_explicit(&gp.lock, memory_order_relaxed) &&
	       !atomic_exchange_explicit(&gp.lock, 1, memory_order_acquire);
}

static void unlock(void)
{
	atomic_store_explicit(&gp.lock, 0, memory_order_release);
}

/* Whether what the thread reads began after the number `word` was there. */
static bool is_behind(uint64_t tag, uint64_t word)
{
	return (int64_t)((tag | HL_PRIV_RCU_NEST) - (word | HL_PRIV_RCU_NEST)) >= 0;
}

static bool passed(const struct hl_rcu_reader *reader, uint64_t number)
{
	/* RCU_END, pairs with hl_rcu_read_unlock(); RCU_QUIET, with hl_rcu_announce() */
	uint64_t word = __atomic_load_n(&reader->word, __ATOMIC_ACQUIRE);
	uint64_t quiescent = __atomic_load_n(&reader->quiescent, __ATOMIC_ACQUIRE);

	return (!(word & HL_PRIV_RCU_NEST) || is_behind(word, number)) &&
	       (!quiescent || is_behind(quiescent, number));
}

static bool in_section(const struct hl_rcu_reader *reader)
{
	return __atomic_load_n(&reader->word, __ATOMIC_RELAXED) & HL_PRIV_RCU_NEST;
}

/* Marks readers as parked that have not read for a while; whether there was one. */
static bool park_readers(uint64_t number)
{
	uint64_t before = number - (UINT64_C(1) << HL_NUMBER_SHIFT);
	bool any = false;

	HL_FOR_EACH_RCU_THREAD(t)
	{
		struct hl_rcu_reader *reader = &t->reader;

		if (__atomic_load_n(&reader->heed, __ATOMIC_RELAXED) || in_section(reader) ||
		    is_behind(__atomic_load_n(&reader->word, __ATOMIC_RELAXED), before))
			continue;
		if (__atomic_exchange_n(&reader->heed, HL_HEED_PARKED, __ATOMIC_SEQ_CST) == 0)
			hl_gp_reader_parks();
		any = true;
	}
	return any;
}

/* Takes the mark off those who came in between. */
static void unpark_readers(void)
{
	HL_FOR_EACH_RCU_THREAD(t)
	{
		struct hl_rcu_reader *reader = &t->reader;

		/* RCU_PARK, pairs with hl_rcu_read_lock() */
		if (in_section(reader) &&
		    __atomic_load_n(&reader->heed, __ATOMIC_RELAXED) == HL_HEED_PARKED &&
		    __atomic_exchange_n(&reader->heed, 0, __ATOMIC_SEQ_CST) == HL_HEED_PARKED)
			hl_gp_reader_wakes();
	}
}

static void broadcast(void)
{
	int64_t begun = hl_now_ns();

	hl_barrier_all(); /* RCU_READER, pairs with hl_rcu_read_lock(); RCU_PARK */
	hl_count(&hl_rcu_counters.broadcasts);
	gp.broadcast_at = hl_now_ns();
	gp.broadcast_ns = gp.broadcast_at - begun;
}

/* How long it is until a broadcast is in time for calls; 0: now, or there need be none. */
static int64_t pace_left(void)
{
	int64_t pace = hl_backlog_above_hurry() ? PACE_HURRY : PACE, left;

	if (!atomic_load_explicit(&gp.awake, memory_order_relaxed) || hl_rcu_barrier_waits())
		return 0;
	left = gp.broadcast_at + pace * gp.broadcast_ns - hl_now_ns();
	return left > 0 ? left : 0;
}

static void begin(uint64_t number)
{
	bool any;

	/* RCU_NUMBER, pairs with begun_now() and with readers */
	__atomic_store_n(&hl_priv_rcu_number.word, WORD_OF(number), __ATOMIC_RELEASE);
	HL_DELAY(begin);
	hl_fence(); /* RCU_STATE, RCU_PARKED, RCU_RESUME */
	if (atomic_load_explicit(&gp.awake, memory_order_relaxed)) {
		any = park_readers(WORD_OF(number));
		HL_DELAY(park);
		broadcast();
		HL_DELAY(barrier);
		if (any)
			unpark_readers();
	}
	gp.crowd_passed = false;
	gp.next = hl_rcu_threads();
}

/* Goes on with the walk; whether it is over. */
static bool walk(uint64_t number)
{
	if (!gp.crowd_passed && hl_rcu_crowd_reads())
		return false;
	gp.crowd_passed = true;
	while (gp.next && passed(&gp.next->reader, WORD_OF(number)))
		gp.next = gp.next->next;
	return !gp.next;
}

static void end(uint64_t number)
{
	/* RCU_OVER, pairs with hl_gp_done() */
	atomic_store_explicit(&gp.ended, number, memory_order_release);
	hl_fence(); /* RCU_SLEEP, pairs with hl_gp_sleep() */
	if (atomic_load_explicit(&gp.sleepers, memory_order_relaxed)) {
		atomic_fetch_add_explicit(&gp.ends, 1, memory_order_release);
		syscall(SYS_futex, &gp.ends, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
	}
}

/* With the lock held. */
static bool is_under_way(uint64_t number)
{
	return atomic_load_explicit(&gp.ended, memory_order_relaxed) != number;
}

static int64_t step(uint64_t state, bool in_time)
{
	uint64_t number = begun_now();
	int64_t left;

	if (is_under_way(number) && walk(number))
		end(number);
	if (is_under_way(number) || has_reached(number, state))
		return 0;
	left = in_time ? pace_left() : 0;
	if (left)
		return left;
	number = (number + 1) & HL_NUMBER_MASK;
	begin(number);
	if (walk(number))
		end(number);
	return 0;
}

static int64_t step_if_free(uint64_t state, bool in_time)
{
	int64_t left = 0;

	hl_local_irq_disable(); /* a function that interrupts this one may wait, too */
	if (trylock()) {
		left = step(state, in_time);
		unlock();
	}
	hl_local_irq_enable();
	return left;
}

void hl_gp_step(uint64_t state)
{
	step_if_free(state, false);
}

int64_t hl_gp_step_in_time(uint64_t state)
{
	return step_if_free(state, true);
}

void hl_gp_sleep(uint64_t state, int64_t ns)
{
	struct timespec timeout = { ns / NS_PER_S, ns % NS_PER_S };
	uint32_t ends;
	int saved = errno;

	/* RCU_SLEEP: counted, then looks at the number; end() stores it, then looks at the count.
	 * Without either fence the sleep lasts longer than the grace period. */
	atomic_fetch_add_explicit(&gp.sleepers, 1, memory_order_seq_cst);
	ends = atomic_load_explicit(&gp.ends, memory_order_acquire);
	hl_fence();
	if (!hl_gp_done(state))
		syscall(SYS_futex, &gp.ends, FUTEX_WAIT_PRIVATE, ends, &timeout, NULL, 0);
	atomic_fetch_sub_explicit(&gp.sleepers, 1, memory_order_relaxed);
	errno = saved;
}

/* ---- Questions, fork ---- */

/* With the lock held: whether it is time. */
static bool is_due(uint64_t number, int64_t every_ns, int64_t *waited)
{
	int64_t now = hl_now_ns();

	if (gp.watched != number || !gp.watched_ns) {
		gp.watched = number;
		gp.watched_ns = now;
		gp.reports = 0;
	}
	*waited = now - gp.watched_ns;
	if (*waited / every_ns <= gp.reports)
		return false;
	gp.reports = *waited / every_ns;
	return true;
}

bool hl_gp_stalls(int64_t every_ns, struct hl_rcu_stall *stall)
{
	bool stalls = false;
	int64_t waited = 0;

	hl_local_irq_disable();
	if (trylock()) {
		uint64_t number = begun_now();

		stalls = is_under_way(number) && !walk(number) && is_due(number, every_ns, &waited);
		stall->waited_ms = (uint64_t)(waited / NS_PER_MS);
		if (stalls && gp.next) {
			const struct hl_rcu_reader *reader = &gp.next->reader;

			stall->tid = __atomic_load_n(&reader->tid, __ATOMIC_RELAXED);
			stall->quiescent_state = !in_section(reader);
		}
		unlock();
	}
	hl_local_irq_enable();
	return stalls;
}

uint64_t hl_gp_count(void)
{
	return (atomic_load_explicit(&gp.ended, memory_order_relaxed) - HL_RCU_START) &
	       HL_NUMBER_MASK;
}

void hl_gp_lock(void)
{
	hl_local_irq_disable();
	while (!trylock())
		hl_relax();
}

void hl_gp_unlock(void)
{
	unlock();
	hl_local_irq_enable();
}

/* Nobody sleeps; what is under way begins its walk anew. */
void hl_gp_forked(void)
{
	gp.next = hl_rcu_threads();
	gp.crowd_passed = false;
	atomic_store_explicit(&gp.sleepers, 0, memory_order_relaxed);
}
