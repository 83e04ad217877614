/* SPDX-License-Identifier: MIT */
/*
 * Inside the page cache.
 *
 * Memory is an array of frames, of page_size bytes each, that never moves and whose mapping
 * never changes while pages come and go. To each belongs a struct hl_frame, whose word says
 * all about it, and to each page in memory a slot of the table (table.c), which says in
 * which frame it is.
 *
 * Locking
 *
 * hl_frame.word	its HL_FRAME_EXCL bit and its count are the lock of the frame's data
 *			and, with EXCL, of the frame's other fields; with threads' pins. See lock.c
 *			and pins.c.
 * stripe		who puts a page into the table or takes it out holds the stripe of that
 *			page. Nobody waits for anything meanwhile.
 * free_lock		the free frames
 * hl_local.lock	a thread's own free frames; others take it to steal
 * sync_lock		held while the device is synced, one at a time
 * written_lock		the pages that were written and not synced, and those that were lost; the
 *			orders between pages
 * hl_pc_registry	which threads use which caches
 *
 * Those of background.c, flush.c and threads.c are for the library's own threads.
 *
 * Nesting: sync_lock, then written_lock; registry, then hl_local.lock, then free_lock.
 * No lock is held while a frame is waited for.
 */
#ifndef HL_PAGECACHE_INTERNAL_H
#define HL_PAGECACHE_INTERNAL_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <hotline/cacheline.h>
#include <hotline/pagecache.h>
#include <hotline/pagevec.h>

#include "pagecache/futex.h"
#include "pagecache/io.h"
#include "pagecache/pageset.h"

/* ---- Frames ---- */

/* hl_frame.word */
#define HL_FRAME_COUNT UINT64_C(0xfff) /* shared fixes */
#define HL_FRAME_EXCL (UINT64_C(1) << 12) /* fixed exclusively, being read or evicted */
#define HL_FRAME_RESIDENT (UINT64_C(1) << 13) /* the data are the page's */
#define HL_FRAME_DIRTY (UINT64_C(1) << 14) /* the file has not got them */
#define HL_FRAME_WRITING \
	(UINT64_C(1) << 15) /* and is getting them; who writes counts as one share */
#define HL_FRAME_REF (UINT64_C(1) << 16) /* used since the hand came by */
#define HL_FRAME_ACTIVE (UINT64_C(1) << 17) /* used again and again: passed over */
#define HL_FRAME_WAITERS (UINT64_C(1) << 18) /* somebody sleeps on the word */
#define HL_FRAME_WANT (UINT64_C(1) << 19) /* and wants it exclusively: no new shares */
#define HL_FRAME_EVICTING (UINT64_C(1) << 20) /* EXCL is the evictor's */
#define HL_FRAME_OFF (UINT64_C(1) << 21) /* beyond the limit: used for nothing */
#define HL_FRAME_FRESH (UINT64_C(1) << 22) /* read ahead of its first use */
#define HL_FRAME_SPREAD (UINT64_C(1) << 23) /* shared fixes are also in threads' pins */
/* Goes up whenever the data may have changed or have become another page's. */
#define HL_FRAME_VERSION (UINT64_C(1) << 24)
/* What has to stay as it is for data that were read to be right. */
#define HL_FRAME_VALID (~(HL_FRAME_VERSION - 1) | HL_FRAME_EXCL | HL_FRAME_RESIDENT)

#define HL_NO_PAGE UINT64_MAX

/* A line each: what threads do with one page must not disturb those that use another. */
struct hl_frame {
	/* Written by whoever fixes and unfixes, and by the hand. */
	HL_CACHELINE_GROUP_BEGIN(fixed) HL_CACHELINE_ALIGNED;
	_Atomic(uint64_t) word;
	/* Written by who holds it exclusively, read by whoever looks for a page. */
	_Atomic(uint64_t) page;
	_Atomic(uint64_t) dirtied_ms; /* when it became dirty */
	/* Written by who counts a share in the word; see pins.c. */
	_Atomic(uint32_t) last; /* the hl_local.number that did so last */
	_Atomic(uint32_t) paid; /* what counting has cost, in HL_PAID_... */
	HL_CACHELINE_GROUP_END(fixed);
};
HL_CACHELINE_ASSERT_ALIGNED(struct hl_frame, fixed);
HL_CACHELINE_ASSERT_FITS(struct hl_frame);

/* ---- The table ---- */

#define HL_BUCKET_SLOTS 7

/* Where pages are: a line of slots. A slot is a frame's number and one, and above it 32 bits
 * of the page's hash; 0: free. */
struct hl_bucket {
	/* Written with a stripe held, read by all without. */
	HL_CACHELINE_GROUP_BEGIN(slots) HL_CACHELINE_ALIGNED;
	_Atomic(uint64_t) slot[HL_BUCKET_SLOTS];
	_Atomic(uint32_t) passed; /* pages that had their home here or before, and are behind */
	HL_CACHELINE_GROUP_END(slots);
};
HL_CACHELINE_ASSERT_ALIGNED(struct hl_bucket, slots);
#if HL_CACHE_LINE == 64
HL_CACHELINE_ASSERT_FITS(struct hl_bucket);
#endif

#define HL_STRIPES 64

struct hl_stripe {
	pthread_mutex_t lock;
} HL_CACHELINE_ALIGNED;

/* ---- Threads ---- */

/* What a thread counts for itself. */
enum hl_count {
	HL_HITS,
	HL_MISSES,
	HL_PAGES_READ,
	HL_PAGES_WRITTEN,
	HL_READS,
	HL_WRITES,
	HL_EVICTED,
	HL_RECLAIMS,
	HL_ERRORS,
	HL_LEAKED,
	HL_DIRTIED, /* clean pages that became dirty, and the other way round: by anyone */
	HL_CLEANED,
	HL_N_COUNTS
};

#define HL_HELD_INLINE 24

/* Pages that a thread can have fixed without a word of their frames: a line of them. */
#define HL_PINS 16

/* What a thread keeps for itself of a cache. Kept when it ends, for the next that comes. */
struct hl_local {
	/* Written by the thread, read by who asks for statistics or holders. */
	HL_CACHELINE_GROUP_BEGIN(own) HL_CACHELINE_ALIGNED;
	struct hl_pagecache *cache;
	struct hl_frame *last; /* used last */
	uint64_t next_page; /* if it is read next, pages are read in a row */
	uint32_t ahead; /* and so many at once */
	_Atomic(uint32_t) n_held; /* entries of held[] in use, some perhaps 0 */
	uint32_t most_held;
	uint32_t number; /* of the cache's locals, from 1 */
	_Atomic(uint32_t) n_pins; /* entries of pin[] in use, some perhaps 0 */
	_Atomic(uint32_t) *held; /* frames' numbers and one; others may clear an entry */
	_Atomic(uint64_t) count[HL_N_COUNTS];
	_Atomic(uint32_t) held_inline[HL_HELD_INLINE];
	HL_CACHELINE_GROUP_END(own);

	/* Written by the thread, read by who wants one of the pages for itself: see pins.c. */
	HL_CACHELINE_GROUP_BEGIN(pins) HL_CACHELINE_ALIGNED;
	_Atomic(uint32_t) pin[HL_PINS]; /* frames' numbers and one */
	HL_CACHELINE_GROUP_END(pins);

	/* Under hl_pc_registry. */
	HL_CACHELINE_GROUP_BEGIN(lists) HL_CACHELINE_ALIGNED;
	struct hl_local *next_of_cache;
	struct hl_local *next_of_thread;
	struct hl_thread *thread; /* NULL: it has ended */
	int tid;
	bool told; /* of the pages that it had fixed when it ended */
	HL_CACHELINE_GROUP_END(lists);

	/* Written by the thread, seldom by others. */
	HL_CACHELINE_GROUP_BEGIN(frames) HL_CACHELINE_ALIGNED;
	pthread_mutex_t lock;
	HL_CACHELINE_GROUP_END(frames);
	struct hl_pagevec free; /* frames for this thread's next misses */
};
HL_CACHELINE_ASSERT_ALIGNED(struct hl_local, own);
HL_CACHELINE_ASSERT_ALIGNED(struct hl_local, pins);
HL_CACHELINE_ASSERT_APART(struct hl_local, held_inline, pin);
HL_CACHELINE_ASSERT_APART(struct hl_local, pin, next_of_cache);
HL_CACHELINE_ASSERT_ALIGNED(struct hl_local, lists);
HL_CACHELINE_ASSERT_ALIGNED(struct hl_local, frames);

/* ---- Orders between pages, see order.c ---- */

struct hl_order_page;

struct hl_orders {
	struct hl_order_page **bucket;
	size_t room, n_pages;
	size_t n; /* orders that have not ended */
	uint64_t searches;
	uint64_t synced; /* the last sync that succeeded */
};

/* ---- The cache ---- */

struct hl_pagecache {
	/* Written when it is opened; some of it by resize and grow. */
	HL_CACHELINE_GROUP_BEGIN(read_mostly) HL_CACHELINE_ALIGNED;
	uint64_t id; /* of no other cache, ever */
	uint64_t generation; /* hl_pc_generation when it was opened */
	struct hl_frame *frame;
	char *data;
	struct hl_bucket *bucket;
	unsigned page_shift;
	unsigned bucket_shift; /* the hash's upper bits are the bucket */
	uint32_t n_buckets;
	_Atomic(uint32_t) starving; /* threads that wait for any frame */
	uint32_t most_frames;
	_Atomic(uint32_t) n_frames; /* within the limit: numbers below */
	_Atomic(uint32_t) n_ever; /* the most that it ever was: no frame above was used */
	_Atomic(uint64_t) pages;
	_Atomic(uint64_t) file_bytes;
	/* Grows at its head under hl_pc_registry and never shrinks: read without. */
	_Atomic(struct hl_local *) locals;
	_Atomic(uint32_t) n_locals;
	int fd;
	unsigned flags;
	const struct hl_io *io;
	bool direct;
	unsigned wait_ms;
	void (*leaked)(struct hl_pagecache *cache, uint64_t page, void *data, void *arg);
	void *leaked_arg;
	int (*before_write)(struct hl_pagecache *cache, uint64_t page, const void *data, void *arg);
	void *before_write_arg;
	uint64_t write_after_ms;
	unsigned dirty_percent;
	bool is_flushed;
	HL_CACHELINE_GROUP_END(read_mostly);

	/* Written by whoever makes room. */
	HL_CACHELINE_GROUP_BEGIN(reclaim) HL_CACHELINE_ALIGNED;
	_Atomic(uint64_t) hand; /* where the next who makes room looks, without end */
	_Atomic(int64_t) n_active;
	_Atomic(uint32_t) released; /* goes up when somebody starves and a frame is unfixed */
	HL_CACHELINE_GROUP_END(reclaim);

	/* Under free_lock. */
	HL_CACHELINE_GROUP_BEGIN(free) HL_CACHELINE_ALIGNED;
	pthread_mutex_t free_lock;
	uint32_t *free; /* frames' numbers */
	uint32_t n_free;
	HL_CACHELINE_GROUP_END(free);

	/* Under sync_lock; all but that lock itself and resize_lock under written_lock. */
	HL_CACHELINE_GROUP_BEGIN(sync) HL_CACHELINE_ALIGNED;
	pthread_mutex_t sync_lock;
	pthread_mutex_t written_lock;
	struct hl_pageset written; /* since the device was synced */
	struct hl_pageset lost; /* whose way to the device failed */
	int lost_error;
	uint64_t failed_syncs;
	uint64_t syncs; /* that were begun */
	bool syncing; /* and the last is not done */
	struct hl_orders orders;
	pthread_mutex_t resize_lock;
	HL_CACHELINE_GROUP_END(sync);

	/* Under the lock of flush.c. */
	struct hl_pagecache *next_flushed HL_CACHELINE_ALIGNED;
	uint64_t flush_round;
	/* The flushing thread's. */
	uint64_t flush_from;
	_Atomic(uint64_t) no_flush_before;
	struct hl_stripe stripe[HL_STRIPES];
};
HL_CACHELINE_ASSERT_ALIGNED(struct hl_pagecache, read_mostly);
HL_CACHELINE_ASSERT_APART(struct hl_pagecache, is_flushed, hand);
HL_CACHELINE_ASSERT_APART(struct hl_pagecache, released, free_lock);
HL_CACHELINE_ASSERT_APART(struct hl_pagecache, n_free, sync_lock);

static inline uint32_t hl_frame_number(const struct hl_pagecache *cache,
				       const struct hl_frame *frame)
{
	return (uint32_t)(frame - cache->frame);
}

static inline void *hl_frame_data(const struct hl_pagecache *cache, const struct hl_frame *frame)
{
	return cache->data + ((size_t)hl_frame_number(cache, frame) << cache->page_shift);
}

static inline uint64_t hl_frame_page(const struct hl_frame *frame)
{
	return atomic_load_explicit(&frame->page, memory_order_relaxed);
}

/* With hl_pc_registry held. */
static inline struct hl_local *hl_locals_of(const struct hl_pagecache *cache)
{
	return atomic_load_explicit(&cache->locals, memory_order_relaxed);
}

static inline size_t hl_page_bytes(const struct hl_pagecache *cache)
{
	return (size_t)1 << cache->page_shift;
}

/* All frames that may hold a page. */
static inline uint32_t hl_frames_ever(const struct hl_pagecache *cache)
{
	return atomic_load_explicit(&cache->n_ever, memory_order_relaxed);
}

/* ---- Cancellation ---- */

/* A thread that was cancelled in the middle would leave frames that nobody can have: no function
 * of the library is a cancellation point. */
static inline int hl_no_cancel(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	return state;
}

static inline void hl_cancel_as_before(int state)
{
	pthread_setcancelstate(state, NULL);
}

/* ---- table.c; searching is in table.h ---- */

/* Makes the frame the page's; -EEXIST: the page has one. The caller has it exclusively. */
int hl_table_insert(struct hl_pagecache *cache, struct hl_frame *frame, uint64_t page);
/* Whether the page has a frame, also one into which it is only going to be read: who inserts it
 * after this reads after this. */
bool hl_table_has(struct hl_pagecache *cache, uint64_t page);
/* The page has no frame any more. The caller has the frame exclusively. */
void hl_table_remove(struct hl_pagecache *cache, struct hl_frame *frame);

/* ---- lock.c ---- */

/* 0; -EAGAIN: not now; -ESTALE: the frame does not hold the page. how: HL_PAGE_EXCLUSIVE or
 * not; mark: HL_FRAME_REF or 0. */
static inline int hl_frame_try(struct hl_frame *frame, uint64_t page, unsigned how, uint64_t mark);
/* The same, and waits; local: of the thread, which may hold it already. */
int hl_frame_lock(struct hl_pagecache *cache, struct hl_local *local, struct hl_frame *frame,
		  uint64_t page, unsigned how, uint64_t mark);
/* Ends a share or an exclusive hold; the bits are taken out of the word as well. */
void hl_frame_unshare(struct hl_pagecache *cache, struct hl_frame *frame, uint64_t less);
void hl_frame_unlock(struct hl_pagecache *cache, struct hl_frame *frame, uint64_t less,
		     uint64_t more);
/* The frame has got its page, and stays exclusively the caller's. */
void hl_frame_fill(struct hl_frame *frame);
/* Sleeps until the word has changed from what it was, or others may have it. */
void hl_frame_wait(struct hl_frame *frame, uint64_t word, uint64_t mark);
/* A share is gone that was not in the word: wakes who waits for it, or for any frame. */
static inline void hl_frame_released(struct hl_pagecache *cache, struct hl_frame *frame);
/* Wakes who sleeps on the word. */
void hl_frame_wake(struct hl_frame *frame);
/* Wakes who waits for any frame. */
void hl_frame_wake_starving(struct hl_pagecache *cache);

/* The word of a page that is used: what it was read for does not count. */
static inline uint64_t hl_frame_used(uint64_t word, uint64_t mark)
{
	return __builtin_expect(word & HL_FRAME_FRESH, 0) ? word & ~HL_FRAME_FRESH : word | mark;
}

/* The same for a word that is not written otherwise. */
static inline void hl_frame_note_use(struct hl_frame *frame, uint64_t word, uint64_t mark)
{
	if (word & HL_FRAME_FRESH)
		atomic_fetch_and_explicit(&frame->word, ~HL_FRAME_FRESH, memory_order_relaxed);
	else
		atomic_fetch_or_explicit(&frame->word, mark, memory_order_relaxed);
}

/* Fixed, by others than who writes it; pins are not in the word. */
static inline bool hl_frame_is_fixed(uint64_t word)
{
	return word & HL_FRAME_EXCL || (word & HL_FRAME_COUNT) > !!(word & HL_FRAME_WRITING);
}

/* FRAME_LOCK, see lock.c */
static inline int hl_frame_try(struct hl_frame *frame, uint64_t page, unsigned how, uint64_t mark)
{
	uint64_t word = atomic_load_explicit(&frame->word, memory_order_acquire), next;

	do {
		if (hl_frame_page(frame) != page)
			return -ESTALE;
		if ((word & (HL_FRAME_RESIDENT | HL_FRAME_EXCL | HL_FRAME_WANT)) !=
		    HL_FRAME_RESIDENT)
			return -EAGAIN;
		if (how & HL_PAGE_EXCLUSIVE) {
			if (word & (HL_FRAME_COUNT | HL_FRAME_SPREAD))
				return -EAGAIN;
			next = hl_frame_used(word, mark) | HL_FRAME_EXCL;
		} else {
			if ((word & HL_FRAME_COUNT) == HL_FRAME_COUNT)
				return -EAGAIN;
			next = hl_frame_used(word, mark) + 1;
		}
	} while (!atomic_compare_exchange_weak_explicit(
		&frame->word, &word, next, memory_order_acquire, memory_order_acquire));
	/* FRAME_VALID, see lock.c */
	if (how & HL_PAGE_EXCLUSIVE)
		hl_pc_fence(memory_order_release);
	return 0;
}

static inline void hl_frame_released(struct hl_pagecache *cache, struct hl_frame *frame)
{
	/* FRAME_PIN_WAIT, pairs with hl_pins_wait() */
	if (__builtin_expect(
		    atomic_load_explicit(&frame->word, memory_order_seq_cst) & HL_FRAME_WAITERS, 0))
		hl_frame_wake(frame);
	/* FRAME_STARVE, pairs with wait_for_any() in frames.c */
	if (__builtin_expect(atomic_load_explicit(&cache->starving, memory_order_seq_cst), 0))
		hl_frame_wake_starving(cache);
}

/* ---- fix.c ---- */

/* The calling thread has the page fixed by a share that there is already. One more cannot be waited
 * for: who wants the page exclusively goes first, and waits for this one. */
int hl_page_take_share(struct hl_pagecache *cache, struct hl_frame *frame, void **data);

/* ---- pins.c ---- */

/* Whether some thread has the frame pinned; a frame whose word has no SPREAD is not. */
bool hl_pins_have(const struct hl_pagecache *cache, const struct hl_frame *frame);
/* Whether this one has. */
bool hl_pin_has(const struct hl_local *local, uint32_t frame);
/* Takes one out; false: it is not pinned by this thread, or not by any. */
bool hl_pin_remove(struct hl_local *local, uint32_t frame);
bool hl_pin_remove_any(struct hl_pagecache *cache, uint32_t frame);
/* Ends what a thread has pinned, and wakes who waits for it. */
void hl_unpin(struct hl_pagecache *cache, struct hl_local *local, struct hl_frame *frame);
/* Has those who share a frame do so by their pins. The caller has a share in the word. */
void hl_frame_spread(struct hl_frame *frame);
/* Who has set EXCL and EVICTING in a word with SPREAD waits for nobody: true: no pins, and SPREAD
 * is gone; false: there are, and EXCL and EVICTING are gone. */
bool hl_frame_gather(struct hl_pagecache *cache, struct hl_frame *frame);
/* Takes a frame with SPREAD exclusively; as hl_frame_try(). */
int hl_frame_try_spread(struct hl_pagecache *cache, struct hl_frame *frame, uint64_t page,
			uint64_t mark);
/* Sleeps until some pin of the frame is gone, or the word is not this one any more. */
void hl_pins_wait(struct hl_pagecache *cache, struct hl_frame *frame, uint64_t word);

/* What it costs: a line that comes from another thread; a share in the word, more than a pin. */
#define HL_PAID_LINE 8u
#define HL_PAID_SHARE 1u

/* The thread has a share that is in the word. */
static inline void hl_frame_shared(struct hl_pagecache *cache, struct hl_local *local,
				   struct hl_frame *frame)
{
	bool again = atomic_load_explicit(&frame->last, memory_order_relaxed) == local->number;
	/* Of those who share it at the same time one may count for all. */
	uint32_t paid = atomic_load_explicit(&frame->paid, memory_order_relaxed) +
			(again ? HL_PAID_SHARE : HL_PAID_LINE);

	if (!again)
		atomic_store_explicit(&frame->last, local->number, memory_order_relaxed);
	atomic_store_explicit(&frame->paid, paid, memory_order_relaxed);
	if (paid > HL_PAID_LINE * atomic_load_explicit(&cache->n_locals, memory_order_relaxed))
		hl_frame_spread(frame);
}

/* Entries at the end that are free, by whom nobody is beside. */
static inline void hl_pins_trim(struct hl_local *local, uint32_t n)
{
	while (n && !atomic_load_explicit(&local->pin[n - 1], memory_order_relaxed))
		n--;
	atomic_store_explicit(&local->n_pins, n, memory_order_relaxed);
}

static inline bool hl_pin_clear(struct hl_local *local, uint32_t i, uint32_t frame)
{
	uint32_t pinned = frame + 1;

	/* FRAME_PIN, pairs with hl_frame_gather(); FRAME_PIN_WAIT, with hl_pins_wait() */
	return atomic_load_explicit(&local->pin[i], memory_order_relaxed) == pinned &&
	       atomic_compare_exchange_strong_explicit(&local->pin[i], &pinned, 0,
						       memory_order_seq_cst, memory_order_relaxed);
}

/* hl_pin_remove() of what was pinned last. */
static inline bool hl_pin_remove_last(struct hl_local *local, uint32_t frame)
{
	uint32_t n = atomic_load_explicit(&local->n_pins, memory_order_relaxed);

	if (!n || !hl_pin_clear(local, n - 1, frame))
		return false;
	hl_pins_trim(local, n - 1);
	return true;
}

/* Shares a frame by the thread's own line, if its word allows it; false: by the word then. */
static inline bool hl_pin(struct hl_pagecache *cache, struct hl_local *local,
			  struct hl_frame *frame, uint64_t page, uint64_t mark)
{
	uint32_t n = atomic_load_explicit(&local->n_pins, memory_order_relaxed);
	uint64_t word;

	if (n == HL_PINS)
		return false;
	atomic_store_explicit(&local->n_pins, n + 1, memory_order_relaxed);
	/* FRAME_PIN, pairs with hl_frame_gather() */
	atomic_exchange_explicit(&local->pin[n], (uint32_t)(frame - cache->frame) + 1,
				 memory_order_seq_cst);
	/* FRAME_PIN and FRAME_LOCK, pairs with hl_frame_unlock() too */
	word = atomic_load_explicit(&frame->word, memory_order_seq_cst);
	if (__builtin_expect((word & (HL_FRAME_RESIDENT | HL_FRAME_SPREAD | HL_FRAME_EXCL |
				      HL_FRAME_WANT)) != (HL_FRAME_RESIDENT | HL_FRAME_SPREAD) ||
				     hl_frame_page(frame) != page,
			     0)) {
		hl_unpin(cache, local, frame);
		return false;
	}
	if (__builtin_expect(hl_frame_used(word, mark) != word, 0))
		hl_frame_note_use(frame, word, mark);
	return true;
}

/* ---- local.c ---- */

/* A thread, for all caches. */
struct hl_thread {
	struct hl_local *locals; /* under hl_pc_registry */
	void *ring; /* of uring.c */
	bool no_ring;
	uint64_t generation;
};

extern pthread_mutex_t hl_pc_registry;
/* Goes up in a child of fork. */
extern _Atomic(uint64_t) hl_pc_generation;

/* The calling thread's; NULL: no memory. */
struct hl_thread *hl_thread_get(void);

#define HL_LOCAL_WAYS 4
struct hl_local_way {
	uint64_t id;
	struct hl_local *local;
};
extern __thread struct hl_local_way hl_local_way[HL_LOCAL_WAYS]
	__attribute__((tls_model("initial-exec")));

struct hl_local *hl_local_find(struct hl_pagecache *cache);

/* What the calling thread keeps of the cache; NULL: no memory. */
static inline struct hl_local *hl_local_get(struct hl_pagecache *cache)
{
	const struct hl_local_way *way = &hl_local_way[cache->id % HL_LOCAL_WAYS];

	return __builtin_expect(way->id == cache->id, 1) ? way->local : hl_local_find(cache);
}

static inline void hl_count_add(struct hl_local *local, enum hl_count which, uint64_t n)
{
	/* Only this thread writes it. */
	atomic_store_explicit(&local->count[which],
			      atomic_load_explicit(&local->count[which], memory_order_relaxed) + n,
			      memory_order_relaxed);
}

/* Pages that were read for a fix that then counts as a hit. */
static inline void hl_count_read(struct hl_local *local, uint64_t n)
{
	hl_count_add(local, HL_MISSES, n);
	hl_count_add(local, HL_HITS, (uint64_t)0 - n);
}

/* Room for one more; 0 or -ENOMEM. */
int hl_held_grow(struct hl_local *local);
static inline int hl_held_reserve(struct hl_local *local)
{
	uint32_t n = atomic_load_explicit(&local->n_held, memory_order_relaxed);

	return __builtin_expect(n < local->most_held, 1) ? 0 : hl_held_grow(local);
}
static inline void hl_held_add(struct hl_local *local, uint32_t frame)
{
	uint32_t n = atomic_load_explicit(&local->n_held, memory_order_relaxed);

	atomic_store_explicit(&local->held[n], frame + 1, memory_order_relaxed);
	atomic_store_explicit(&local->n_held, n + 1, memory_order_relaxed);
}
bool hl_held_has(const struct hl_local *local, uint32_t frame);
/* Takes one out; false: the thread does not hold it. */
bool hl_held_remove(struct hl_local *local, uint32_t frame);
/* Takes it out of whichever thread holds it; false: none does. */
bool hl_held_remove_any(struct hl_pagecache *cache, uint32_t frame);
/* The cache is going: no thread has anything of it any more. */
void hl_locals_free(struct hl_pagecache *cache);

/* Whether the cache is this process's. */
static inline bool hl_cache_is_ours(const struct hl_pagecache *cache)
{
	return cache->generation == atomic_load_explicit(&hl_pc_generation, memory_order_relaxed);
}

/* 0, or why the caller cannot change the file. */
static inline int hl_cache_may_change(const struct hl_pagecache *cache)
{
	if (!hl_cache_is_ours(cache))
		return -ECHILD;
	return cache->flags & HL_PAGECACHE_READ_ONLY ? -EROFS : 0;
}

/* ---- frames.c ---- */

int hl_frames_map(struct hl_pagecache *cache, size_t limit, size_t most);
void hl_frames_unmap(struct hl_pagecache *cache);
/* Says to the system how many frames are in use, so that it gives them large pages. */
void hl_frames_use(struct hl_pagecache *cache, uint32_t n);
/* A free frame, held exclusively; NULL with *error: -ENOBUFS, or why none could be freed. The
 * first waits as long as the cache's owner wants when all are fixed, the second does not. */
struct hl_frame *hl_frame_get(struct hl_pagecache *cache, struct hl_local *local, int *error);
struct hl_frame *hl_frame_get_now(struct hl_pagecache *cache, struct hl_local *local, int *error);
/* Gives back what holds no page, by a thread that holds it exclusively. */
void hl_frame_put(struct hl_pagecache *cache, struct hl_frame *frame);
/* Gives back frames that hl_evict() gave. */
void hl_frames_put(struct hl_pagecache *cache, struct hl_local *local, void **frame, unsigned n);
/* Puts together the free frames that threads keep. */
void hl_frames_drain(struct hl_pagecache *cache);
/* A frame of the free ones, of whichever thread; NULL: there is none. */
struct hl_frame *hl_frame_steal(struct hl_pagecache *cache);

/* ---- memory.c ---- */

/* Half of what is free of memory, in bytes. */
size_t hl_default_limit(void);
/* What is free in the cgroups that are listed in a file (/proc/self/cgroup) and are mounted there;
 * UINT64_MAX: they have no limit. */
uint64_t hl_free_of_cgroups(const char *own, const char *mount);

/* ---- reclaim.c ---- */

/* Pages whose memory is looked at, or that are written, together. */
#define HL_BATCH 256u

/* Frees frames, one of them for the caller; NULL with *error: -ENOBUFS, or why none could be
 * written. */
struct hl_frame *hl_reclaim(struct hl_pagecache *cache, struct hl_local *local, int *error);
/* Waits for one of the frames into which a page is being read, perhaps ahead of its first use, so
 * that it may be free then; false: there is none. Not by a thread that reads. */
bool hl_wait_for_reader(struct hl_pagecache *cache);
/* Evicts a page that is clean and unfixed; false: it is not. The frame is the caller's,
 * exclusively. */
bool hl_evict(struct hl_pagecache *cache, struct hl_frame *frame);

/* ---- writeback.c ---- */

/* Marks a dirty frame as being written; false: not now. */
bool hl_write_claim(struct hl_frame *frame);
/* Writes claimed frames, HL_BATCH at most, and lets go of them; before them, what has to go before
 * them. 0 or the first error; -EBUSY with *busy: what has to go first is fixed exclusively. */
int hl_write_claimed(struct hl_pagecache *cache, struct hl_local *local, struct hl_frame **frame,
		     unsigned n, struct hl_frame **busy);
/* The same for frames before which nothing has to go. */
int hl_write_unordered(struct hl_pagecache *cache, struct hl_local *local, struct hl_frame **frame,
		       unsigned n);
/* Has the device keep what was written; 0 or its error. */
int hl_sync_written(struct hl_pagecache *cache, struct hl_local *local);
/* How often syncing the device has failed. */
uint64_t hl_failed_syncs(struct hl_pagecache *cache);
/* Notes pages that were written for the next sync; false: a sync has failed since then, so that
 * they have to be written once more. claimed: nobody has changed them since. */
bool hl_note_written(struct hl_pagecache *cache, uint64_t failed_before, const uint64_t *page,
		     unsigned n, bool claimed);
uint64_t hl_now_coarse_ms(void);
/* The frame, which nobody else may write, has to be written. */
void hl_mark_dirty(struct hl_local *local, struct hl_frame *frame);

/* ---- order.c ---- */

/* Puts claimed frames that nothing has to go before to the beginning; how many. */
unsigned hl_orders_split(struct hl_pagecache *cache, struct hl_frame **frame, unsigned n);
/* Writes what goes before claimed frames, as far as it can be written at once. */
void hl_orders_prepare(struct hl_pagecache *cache, struct hl_local *local, struct hl_frame **frame,
		       unsigned n);
/* Has all that goes before a page reach the device. The caller has the page claimed or fixed
 * exclusively, and no other claimed. 0 or an error; -EBUSY with *busy as hl_write_claimed(). */
int hl_orders_settle(struct hl_pagecache *cache, struct hl_local *local, uint64_t page,
		     struct hl_frame **busy);
/* Claims a frame if it has this page and that is dirty, when who writes it has done so: 1; 0: it
 * is not dirty; -EBUSY: somebody has it exclusively. */
int hl_claim_dirty(struct hl_pagecache *cache, struct hl_frame *frame, uint64_t page);
/* With written_lock held: a page was written as it is, a sync has succeeded, one has failed. */
void hl_orders_written(struct hl_pagecache *cache, uint64_t page);
void hl_orders_synced(struct hl_pagecache *cache);
void hl_orders_lost(struct hl_pagecache *cache);
/* The cache is going. */
void hl_orders_free(struct hl_pagecache *cache);

/* ---- load.c ---- */

/* Reads what of n pages is not in memory, HL_BATCH at most, and holds none of it; how many were
 * read. What could not be is found out by who fixes it. */
unsigned hl_load(struct hl_pagecache *cache, struct hl_local *local, const uint64_t *page,
		 unsigned n);
/* The same for pages in a row, no more than a part of the cache. */
unsigned hl_load_range(struct hl_pagecache *cache, struct hl_local *local, uint64_t first,
		       uint64_t n);

/* ---- background.c, flush.c ---- */

/* Starts a thread of the library; 0 or a negative errno value. */
int hl_start_thread(void *(*function)(void *));
/* The cache is going: nobody reads for it any more. */
void hl_background_forget(struct hl_pagecache *cache);
/* Has a cache's pages written when they are old or many, and no more. */
int hl_flush_add(struct hl_pagecache *cache);
void hl_flush_remove(struct hl_pagecache *cache);
/* Has it done now if they are many. */
void hl_flush_if_many(struct hl_pagecache *cache);

/* Around fork. */
void hl_background_lock(void);
void hl_background_unlock(void);
void hl_background_forked(void);
void hl_flush_lock(void);
void hl_flush_unlock(void);
void hl_flush_forked(void);

/* ---- transfer.c ---- */

/* Reads or writes frames, sorted by page, HL_BATCH at most; error[i]: 0 or negative. */
void hl_transfer(struct hl_pagecache *cache, struct hl_local *local, struct hl_frame **frame,
		 unsigned n, bool write, int *error);
void hl_sort_by_page(struct hl_frame **frame, unsigned n);

/* ---- uring.c ---- */

void hl_ring_free(void *ring);
/* In a child: the parent goes on using it. */
void hl_ring_abandon(void *ring);

#endif
