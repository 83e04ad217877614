// SPDX-License-Identifier: MIT
/*
 * Making room: a hand goes round over the frames, and whoever needs a frame moves it on.
 *
 * Every page is inactive at first. One that was used again by the time the hand comes becomes
 * active, one that was not is evicted. Active pages are passed over; one in ROUNDS times, or
 * whenever more than 3 in 4 are active, the hand looks at them too, and those that were not used
 * since then are inactive again. So pages that are used once, by a scan, go round among
 * themselves, however many they are.
 *
 * These are the kernel's two lists, with frames in place of list entries: the order of a list
 * is the order of the frames, for a frame is filled where the hand has just passed. A use
 * sets a bit in the word that it writes anyway; there is no list to move a page on, so no
 * lock and no batch of pages on their way to one that others would have to drain. What
 * is done in batches is what costs: the hand moves by HL_BATCH frames at once, so that
 * threads that make room at the same time look at different ones; dirty pages are written
 * together; free frames are handed out together.
 *
 * Who finds nothing looks harder: at active pages in the second round, and at whatever is
 * not fixed in the third.
 */
#include "pagecache/internal.h"

#include <errno.h>
#include <sched.h>

/* How many frames the hand passes at once. */
#define CHUNK 64u
#define ROUNDS 16u

/* What a word without a page has not. */
#define USED (HL_FRAME_RESIDENT | HL_FRAME_ACTIVE | HL_FRAME_REF | HL_FRAME_FRESH)

enum pressure { AS_USUAL, ACTIVE_TOO, WHATEVER };

struct harvest {
	void *clean[HL_BATCH]; /* evicted frames, ours */
	struct hl_frame *dirty[HL_BATCH];
	unsigned n_clean, n_dirty;
	/* In this round. */
	uint32_t fixed;
	struct hl_frame *writing; /* one of those that others write */
	struct hl_frame *busy; /* one that has to be written first, and is fixed exclusively */
};

static bool change(struct hl_frame *frame, uint64_t word, uint64_t next)
{
	/* FRAME_LOCK, pairs with hl_frame_unlock() and hl_frame_unshare(); FRAME_PIN, hl_pin() */
	return atomic_compare_exchange_strong_explicit(&frame->word, &word, next,
						       memory_order_seq_cst, memory_order_relaxed);
}

bool hl_evict(struct hl_pagecache *cache, struct hl_frame *frame)
{
	uint64_t word = atomic_load_explicit(&frame->word, memory_order_relaxed);

	if ((word & (HL_FRAME_RESIDENT | HL_FRAME_DIRTY | HL_FRAME_EXCL | HL_FRAME_COUNT |
		     HL_FRAME_WAITERS)) != HL_FRAME_RESIDENT)
		return false;
	if (!(word & HL_FRAME_SPREAD)) {
		if (!change(frame, word, (word & ~USED) | HL_FRAME_EXCL | HL_FRAME_EVICTING))
			return false;
	} else {
		if (!change(frame, word, word | HL_FRAME_EXCL | HL_FRAME_EVICTING) ||
		    !hl_frame_gather(cache, frame))
			return false;
		word = atomic_fetch_and_explicit(&frame->word, ~USED, memory_order_relaxed);
	}
	if (word & HL_FRAME_ACTIVE)
		atomic_fetch_sub_explicit(&cache->n_active, 1, memory_order_relaxed);
	hl_table_remove(cache, frame);
	return true;
}

/* Whether the hand looks at an active page this time. */
static bool is_due(struct hl_pagecache *cache, uint64_t position, uint32_t n)
{
	return (position / n + position % n) % ROUNDS == 0 ||
	       atomic_load_explicit(&cache->n_active, memory_order_relaxed) > (int64_t)n / 4 * 3;
}

/* An active page at which the hand looks; true: it is inactive now. */
static bool deactivate(struct hl_pagecache *cache, struct hl_frame *frame, uint64_t word,
		       enum pressure pressure)
{
	if (word & HL_FRAME_REF && pressure != WHATEVER) {
		change(frame, word, word & ~HL_FRAME_REF);
		return false;
	}
	if (!change(frame, word, word & ~(HL_FRAME_ACTIVE | HL_FRAME_REF)))
		return false;
	atomic_fetch_sub_explicit(&cache->n_active, 1, memory_order_relaxed);
	return true;
}

static void look_at(struct hl_pagecache *cache, struct hl_frame *frame, uint64_t position,
		    uint32_t n, enum pressure pressure, struct harvest *harvest)
{
	uint64_t word = atomic_load_explicit(&frame->word, memory_order_relaxed);

	if (word & HL_FRAME_WRITING) {
		harvest->writing = frame;
		return;
	}
	if (word & (HL_FRAME_EXCL | HL_FRAME_COUNT)) {
		harvest->fixed += !(word & HL_FRAME_EVICTING);
		return;
	}
	if (!(word & HL_FRAME_RESIDENT))
		return;
	if (word & HL_FRAME_ACTIVE) {
		if (pressure == AS_USUAL && !is_due(cache, position, n))
			return;
		if (!deactivate(cache, frame, word, pressure) || pressure == AS_USUAL)
			return;
	} else if (word & HL_FRAME_REF && pressure == AS_USUAL) {
		if (change(frame, word, (word | HL_FRAME_ACTIVE) & ~HL_FRAME_REF))
			atomic_fetch_add_explicit(&cache->n_active, 1, memory_order_relaxed);
		return;
	}
	if (word & HL_FRAME_SPREAD && hl_pins_have(cache, frame)) {
		harvest->fixed++;
		return;
	}
	if (word & HL_FRAME_DIRTY) {
		if (harvest->n_dirty < HL_BATCH)
			harvest->dirty[harvest->n_dirty++] = frame;
	} else if (harvest->n_clean < HL_BATCH && hl_evict(cache, frame)) {
		harvest->clean[harvest->n_clean++] = frame;
	}
}

/* Moves the hand on; how many frames it passed. */
static uint32_t sweep(struct hl_pagecache *cache, enum pressure pressure, struct harvest *harvest)
{
	uint32_t n = atomic_load_explicit(&cache->n_frames, memory_order_relaxed);
	uint32_t chunk = n < CHUNK ? n : CHUNK;
	uint64_t position = atomic_fetch_add_explicit(&cache->hand, chunk, memory_order_relaxed);

	for (uint32_t i = 0; i < chunk; i++, position++) {
		hl_prefetch(&cache->frame[(position + 8) % n]);
		look_at(cache, &cache->frame[position % n], position, n, pressure, harvest);
	}
	return chunk;
}

/* Writes what dirty pages there were, and evicts them; 0 or why one could not be written. */
static int clean(struct hl_pagecache *cache, struct hl_local *local, struct harvest *harvest)
{
	struct hl_frame *claimed[HL_BATCH], *busy;
	unsigned n = 0;
	int rc;

	for (unsigned i = 0; i < harvest->n_dirty; i++) {
		if (hl_write_claim(harvest->dirty[i]))
			claimed[n++] = harvest->dirty[i];
	}
	harvest->n_dirty = 0;
	if (!n)
		return 0;
	rc = hl_write_claimed(cache, local, claimed, n, &busy);
	harvest->busy = busy ? busy : harvest->busy;
	for (unsigned i = 0; i < n && harvest->n_clean < HL_BATCH; i++) {
		if (hl_evict(cache, claimed[i]))
			harvest->clean[harvest->n_clean++] = claimed[i];
	}
	return rc;
}

/* One round, or less if there was something; 0 or why a page could not be written. */
static int go_round(struct hl_pagecache *cache, struct hl_local *local, enum pressure pressure,
		    struct harvest *harvest)
{
	uint32_t n = atomic_load_explicit(&cache->n_frames, memory_order_relaxed), passed = 0;
	int rc = 0, error;

	harvest->fixed = 0;
	harvest->writing = harvest->busy = NULL;
	while (passed < n && !harvest->n_clean) {
		passed += sweep(cache, pressure, harvest);
		if (harvest->n_dirty == HL_BATCH || (passed >= n && !harvest->n_clean)) {
			error = clean(cache, local, harvest);
			rc = rc ? rc : error;
		}
	}
	return rc;
}

/* One for the caller, the others for whoever needs them. */
static struct hl_frame *hand_out(struct hl_pagecache *cache, struct hl_local *local,
				 struct harvest *harvest)
{
	struct hl_frame *mine = harvest->clean[0];

	hl_count_add(local, HL_EVICTED, harvest->n_clean);
	hl_count_add(local, HL_RECLAIMS, 1);
	hl_frames_put(cache, local, harvest->clean + 1, harvest->n_clean - 1);
	hl_frame_unlock(cache, mine, HL_FRAME_EVICTING, 0);
	return mine;
}

static void wait_for_writer(struct hl_frame *frame)
{
	uint64_t word = atomic_load_explicit(&frame->word, memory_order_relaxed);

	if (word & HL_FRAME_WRITING)
		hl_frame_wait(frame, word, 0);
}

bool hl_wait_for_reader(struct hl_pagecache *cache)
{
	const uint64_t states = HL_FRAME_EXCL | HL_FRAME_RESIDENT | HL_FRAME_EVICTING;
	uint32_t n = atomic_load_explicit(&cache->n_frames, memory_order_relaxed);

	for (uint32_t i = 0; i < n; i++) {
		struct hl_frame *frame = &cache->frame[i];
		uint64_t word = atomic_load_explicit(&frame->word, memory_order_relaxed);

		if ((word & states) == HL_FRAME_EXCL) {
			hl_frame_wait(frame, word, 0);
			return true;
		}
	}
	return false;
}

struct hl_frame *hl_reclaim(struct hl_pagecache *cache, struct hl_local *local, int *error)
{
	enum pressure pressure = AS_USUAL;
	struct harvest harvest;

	harvest.n_clean = harvest.n_dirty = 0;
	for (;;) {
		int rc = go_round(cache, local, pressure, &harvest);
		struct hl_frame *stolen;

		if (harvest.n_clean)
			return hand_out(cache, local, &harvest);
		stolen = hl_frame_steal(cache);
		if (stolen)
			return stolen;
		if (harvest.fixed >= atomic_load_explicit(&cache->n_frames, memory_order_relaxed)) {
			*error = -ENOBUFS;
			return NULL;
		}
		if (pressure != WHATEVER) {
			pressure++;
			continue;
		}
		if (rc) {
			*error = harvest.busy && rc == -EBUSY ? -ENOBUFS : rc;
			return NULL;
		}
		/* Others are about to have some: by writing them, or they have just taken them. */
		if (harvest.writing)
			wait_for_writer(harvest.writing);
		else
			sched_yield();
	}
}
