// SPDX-License-Identifier: MIT
/*
 * Calls to many as the kernel did them before 2013: the caller fills in one record with
 * the function, a mask of targets and a count of them, and puts it on a list that all
 * share. Every target finds the record there, runs the function, takes its bit out of the
 * mask and itself off the count; the last one takes the record off the list, under a
 * lock, and lets the caller go on. So each record's line is read and written several
 * times by every target.
 *
 * What the interrupt is there is here a word for each thread, on a line of its own.
 *
 * Memory ordering
 *
 * SHARED_CALL: the caller fills the record, then sets the target's bit of .mask with release;
 *	the target loads it with acquire and reads the function only when it is set.
 * SHARED_LIST: the record is linked, then the bell is stored with release; the target takes
 *	the bell with acquire and then walks.
 * SHARED_DONE: each target counts itself off with release and acquire; the last one, behind
 *	all of them, stores .busy with release; the caller loads it with acquire.
 *
 * A target that is still on its way through the list when a record leaves it goes on from
 * there: .next stays. When the record comes back meanwhile, it comes to the front, so the
 * target looks at some of them twice and misses none.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <hotline/cacheline.h>
#include <hotline/cpumask.h>

#include "bench/clock.h"
#include "bench/storm.h"

#define MASK_WORDS (HL_NR_CPUS / 64)

struct record {
	struct record *_Atomic next;
	void (*func)(void *info);
	void *info;
	_Atomic(uint32_t) busy; /* on the list */
	_Atomic(uint32_t) left; /* targets that have not run it */
	_Atomic(uint64_t) mask[MASK_WORDS];
} HL_CACHELINE_PAIR_ALIGNED;

struct bell {
	_Atomic(uint32_t) rang;
} HL_CACHELINE_PAIR_ALIGNED;

/* The list; the lock is for those who change it. */
static struct {
	_Atomic(uint32_t) lock;
	struct record *_Atomic first;
} shared HL_CACHELINE_PAIR_ALIGNED;

static struct bell bell[HL_NR_CPUS];
static __thread struct record *own;
static __thread unsigned self, threads;

static void lock(void)
{
	while (atomic_exchange_explicit(&shared.lock, 1, memory_order_acquire))
		bench_relax();
}

static void unlock(void)
{
	atomic_store_explicit(&shared.lock, 0, memory_order_release);
}

static int join(unsigned number)
{
	self = number;
	own = aligned_alloc(_Alignof(struct record), sizeof(*own));
	if (!own)
		return -ENOMEM;
	*own = (struct record){ .func = NULL };
	return 0;
}

static void meet(unsigned n)
{
	threads = n;
}

static void take_off(struct record *record)
{
	struct record *_Atomic *link = &shared.first;
	struct record *at;

	lock();
	/* Relaxed: only who holds the lock writes here. */
	while ((at = atomic_load_explicit(link, memory_order_relaxed)) != record)
		link = &at->next;
	atomic_store_explicit(link, atomic_load_explicit(&record->next, memory_order_relaxed),
			      memory_order_release);
	unlock();
	/* SHARED_DONE, pairs with call() */
	atomic_store_explicit(&record->busy, 0, memory_order_release);
}

static void look_at(struct record *record)
{
	_Atomic(uint64_t) *word = &record->mask[self / 64];
	uint64_t bit = UINT64_C(1) << self % 64;

	/* SHARED_CALL, pairs with call() */
	if (!(atomic_load_explicit(word, memory_order_acquire) & bit))
		return;
	record->func(record->info);
	atomic_fetch_and_explicit(word, ~bit, memory_order_relaxed);
	/* SHARED_DONE */
	if (atomic_fetch_sub_explicit(&record->left, 1, memory_order_acq_rel) == 1)
		take_off(record);
}

static void poll(void)
{
	if (!atomic_load_explicit(&bell[self].rang, memory_order_relaxed))
		return;
	/* SHARED_LIST, pairs with call() */
	atomic_exchange_explicit(&bell[self].rang, 0, memory_order_acq_rel);
	for (struct record *at = atomic_load_explicit(&shared.first, memory_order_acquire); at;
	     at = atomic_load_explicit(&at->next, memory_order_acquire))
		look_at(at);
}

static void put_on(struct record *record)
{
	lock();
	atomic_store_explicit(&record->next,
			      atomic_load_explicit(&shared.first, memory_order_relaxed),
			      memory_order_relaxed);
	atomic_store_explicit(&shared.first, record, memory_order_release);
	unlock();
}

static void call(void (*func)(void *info), void *info)
{
	own->func = func;
	own->info = info;
	atomic_store_explicit(&own->busy, 1, memory_order_relaxed);
	atomic_store_explicit(&own->left, threads - 1, memory_order_relaxed);
	for (unsigned word = 0; word * 64 < threads; word++) {
		unsigned n = threads - word * 64 < 64 ? threads - word * 64 : 64;
		uint64_t bits = n < 64 ? (UINT64_C(1) << n) - 1 : ~UINT64_C(0);

		if (self / 64 == word)
			bits &= ~(UINT64_C(1) << self % 64);
		/* SHARED_CALL, pairs with look_at() */
		atomic_store_explicit(&own->mask[word], bits, memory_order_release);
	}
	put_on(own);
	for (unsigned i = 0; i < threads; i++) {
		if (i != self)
			/* SHARED_LIST, pairs with poll() */
			atomic_store_explicit(&bell[i].rang, 1, memory_order_release);
	}
	/* SHARED_DONE, pairs with take_off() */
	while (atomic_load_explicit(&own->busy, memory_order_acquire)) {
		poll();
		bench_relax();
	}
}

const struct broadcast broadcast_shared = {
	.join = join,
	.meet = meet,
	.poll = poll,
	.call = call,
};
