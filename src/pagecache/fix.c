// SPDX-License-Identifier: MIT
/*
 * Fixing pages: the way of a hit, and that of a miss.
 *
 * A hit reads the cache's first lines and the page's bucket, which nobody writes meanwhile,
 * writes the word of the frame once, and what the thread keeps for itself. If other threads share
 * the page as well it does not even write the word: see pins.c. An optimistic read writes
 * the word only if the page was not used since the hand came by.
 */
#include "pagecache/table.h"

#include <errno.h>
#include <string.h>

/* What is read at once at most when pages are read in a row. */
#define AHEAD_BYTES ((size_t)256 << 10)

/* A page that a thread uses twice in a row, as a cursor does that goes through it, was
 * used once. */
static uint64_t mark_of(struct hl_local *local, struct hl_frame *frame)
{
	return local->last == frame ? 0 : HL_FRAME_REF;
}

static void hold(struct hl_pagecache *cache, struct hl_local *local, struct hl_frame *frame,
		 void **data)
{
	local->last = frame;
	hl_held_add(local, hl_frame_number(cache, frame));
	*data = hl_frame_data(cache, frame);
}

/* ---- A miss ---- */

static int fill(struct hl_pagecache *cache, struct hl_local *local, struct hl_frame *frame,
		unsigned how)
{
	int error;

	if ((how & HL_PAGE_NEW) == HL_PAGE_NEW) {
		memset(hl_frame_data(cache, frame), 0, hl_page_bytes(cache));
		return 0;
	}
	hl_transfer(cache, local, &frame, 1, false, &error);
	return error;
}

/* The frame holds the page from now on, and the calling thread holds the frame. */
static void let_in(struct hl_pagecache *cache, struct hl_frame *frame, unsigned how)
{
	if (how & HL_PAGE_EXCLUSIVE)
		hl_frame_fill(frame);
	else
		hl_frame_unlock(cache, frame, 0, HL_FRAME_RESIDENT + 1);
}

/* Reads this page and some that follow, if the thread reads pages in a row. */
static bool read_ahead(struct hl_pagecache *cache, struct hl_local *local, uint64_t page)
{
	uint32_t most = (uint32_t)(AHEAD_BYTES >> cache->page_shift);
	bool in_a_row = page == local->next_page;

	local->ahead = in_a_row ? local->ahead * 2 + 2 : 0;
	if (local->ahead > most)
		local->ahead = most;
	local->next_page = page + (local->ahead ? local->ahead : 1);
	if (!local->ahead || !hl_load_range(cache, local, page, local->ahead))
		return false;
	hl_count_read(local, 1);
	return true;
}

/* Reads the page into a frame; -ESTALE: somebody else does. */
static int miss(struct hl_pagecache *cache, struct hl_local *local, uint64_t page, unsigned how,
		struct hl_frame **out)
{
	struct hl_frame *frame;
	int rc;

	if (page >= atomic_load_explicit(&cache->pages, memory_order_relaxed))
		return -ERANGE;
	if (how & HL_PAGE_TRY)
		return -EAGAIN;
	if ((how & HL_PAGE_NEW) != HL_PAGE_NEW && read_ahead(cache, local, page))
		return -ESTALE; /* it is there now, or was */
	frame = hl_frame_get(cache, local, &rc);
	if (!frame)
		return rc;
	if (hl_table_insert(cache, frame, page)) {
		hl_frame_put(cache, frame);
		return -ESTALE;
	}
	hl_count_add(local, HL_MISSES, 1);
	rc = fill(cache, local, frame, how);
	if (rc) {
		hl_table_remove(cache, frame);
		hl_frame_put(cache, frame);
		return rc;
	}
	let_in(cache, frame, how);
	*out = frame;
	return 0;
}

/* ---- Fix and unfix ---- */

static int fix_slowly(struct hl_pagecache *cache, struct hl_local *local, uint64_t page,
		      unsigned how, struct hl_frame **out)
{
	struct hl_frame *frame;
	int rc;

	do {
		frame = hl_table_find(cache, page);
		if (!frame) {
			rc = miss(cache, local, page, how, out);
			continue;
		}
		rc = hl_frame_lock(cache, local, frame, page, how, mark_of(local, frame));
		if (!rc) {
			hl_count_add(local, HL_HITS, 1);
			*out = frame;
		}
	} while (rc == -ESTALE);
	return rc;
}

static int check(const struct hl_pagecache *cache, unsigned how)
{
	if (!hl_cache_is_ours(cache))
		return -ECHILD;
	if (how & ~(HL_PAGE_NEW | HL_PAGE_TRY) || (how & HL_PAGE_NEW) == (HL_PAGE_NEW & ~1u))
		return -EINVAL;
	return how & HL_PAGE_EXCLUSIVE && cache->flags & HL_PAGECACHE_READ_ONLY ? -EROFS : 0;
}

static inline bool is_spread(const struct hl_frame *frame)
{
	return atomic_load_explicit(&frame->word, memory_order_relaxed) & HL_FRAME_SPREAD;
}

int hl_page_fix(struct hl_pagecache *cache, uint64_t page, unsigned how, void **data)
{
	struct hl_frame *frame;
	struct hl_local *local;
	int rc = check(cache, how);

	if (__builtin_expect(rc, 0))
		return rc;
	local = hl_local_get(cache);
	if (__builtin_expect(!local || hl_held_reserve(local), 0))
		return -ENOMEM;
	frame = hl_table_find(cache, page);
	if (__builtin_expect(frame && !(how & HL_PAGE_EXCLUSIVE) && is_spread(frame), 0) &&
	    hl_pin(cache, local, frame, page, mark_of(local, frame))) {
		hl_count_add(local, HL_HITS, 1);
		local->last = frame;
		*data = hl_frame_data(cache, frame);
		return 0;
	}
	if (__builtin_expect(frame && !hl_frame_try(frame, page, how, mark_of(local, frame)), 1)) {
		hl_count_add(local, HL_HITS, 1);
	} else {
		rc = fix_slowly(cache, local, page, how, &frame);
		if (rc)
			return rc;
	}
	if (!(how & HL_PAGE_EXCLUSIVE))
		hl_frame_shared(cache, local, frame);
	if ((how & HL_PAGE_NEW) == HL_PAGE_NEW)
		hl_page_dirty(cache, hl_frame_data(cache, frame));
	hold(cache, local, frame, data);
	return 0;
}

int hl_page_take_share(struct hl_pagecache *cache, struct hl_frame *frame, void **data)
{
	struct hl_local *local = hl_local_get(cache);

	if (!local || hl_held_reserve(local)) {
		hl_frame_unshare(cache, frame, 0);
		return -ENOMEM;
	}
	hl_count_add(local, HL_HITS, 1);
	hold(cache, local, frame, data);
	return 0;
}

/* NULL: no page begins there. */
static struct hl_frame *frame_of(struct hl_pagecache *cache, const void *data)
{
	uintptr_t offset = (uintptr_t)data - (uintptr_t)cache->data;

	if (offset & (hl_page_bytes(cache) - 1) ||
	    offset >> cache->page_shift >= cache->most_frames)
		return NULL;
	return &cache->frame[offset >> cache->page_shift];
}

int hl_page_unfix(struct hl_pagecache *cache, void *data)
{
	struct hl_frame *frame = frame_of(cache, data);
	struct hl_local *local;
	uint32_t number;
	uint64_t word;

	if (!hl_cache_is_ours(cache))
		return -ECHILD;
	if (!frame)
		return -EINVAL;
	number = hl_frame_number(cache, frame);
	local = hl_local_get(cache);
	if (local && (hl_pin_remove_last(local, number) || hl_pin_remove(local, number))) {
		hl_frame_released(cache, frame);
		return 0;
	}
	if (__builtin_expect(!local || !hl_held_remove(local, number), 0) &&
	    !hl_held_remove_any(cache, number)) {
		if (!hl_pin_remove_any(cache, number))
			return -EINVAL;
		hl_frame_released(cache, frame);
		return 0;
	}
	word = atomic_load_explicit(&frame->word, memory_order_relaxed);
	if (word & HL_FRAME_COUNT)
		hl_frame_unshare(cache, frame, 0);
	else
		hl_frame_unlock(cache, frame, 0, 0);
	return 0;
}

int hl_page_dirty(struct hl_pagecache *cache, void *data)
{
	struct hl_frame *frame = frame_of(cache, data);
	struct hl_local *local;
	uint64_t word;

	if (!hl_cache_is_ours(cache))
		return -ECHILD;
	if (!frame)
		return -EINVAL;
	word = atomic_load_explicit(&frame->word, memory_order_relaxed);
	if ((word & (HL_FRAME_RESIDENT | HL_FRAME_EXCL | HL_FRAME_EVICTING)) !=
	    (HL_FRAME_RESIDENT | HL_FRAME_EXCL))
		return -EINVAL;
	if (word & HL_FRAME_DIRTY)
		return 0;
	local = hl_local_get(cache);
	if (!local)
		return -ENOMEM;
	hl_mark_dirty(local, frame);
	return 0;
}

/* ---- Reading without fixing ---- */

/* Has the page read by fixing it. */
static int bring(struct hl_pagecache *cache, uint64_t page)
{
	void *data;
	int rc = hl_page_fix(cache, page, HL_PAGE_SHARED, &data);

	return rc ? rc : hl_page_unfix(cache, data);
}

/* Whether the page is in memory and nobody has it exclusively. */
static inline bool see(struct hl_pagecache *cache, uint64_t page, struct hl_page_read *read,
		       uint64_t mark)
{
	struct hl_frame *frame = hl_table_find(cache, page);
	uint64_t word;

	if (__builtin_expect(!frame, 0))
		return false;
	/* FRAME_LOCK, pairs with hl_frame_unlock() */
	word = atomic_load_explicit(&frame->word, memory_order_acquire);
	if (__builtin_expect((word & (HL_FRAME_RESIDENT | HL_FRAME_EXCL)) != HL_FRAME_RESIDENT ||
				     hl_frame_page(frame) != page,
			     0))
		return false;
	if (__builtin_expect(hl_frame_used(word, mark) != word, 0))
		hl_frame_note_use(frame, word, mark);
	read->data = hl_frame_data(cache, frame);
	read->state = word & HL_FRAME_VALID;
	read->frame = frame;
	return true;
}

static __attribute__((noinline)) int see_slowly(struct hl_pagecache *cache, uint64_t page,
						struct hl_page_read *read)
{
	int rc;

	do {
		rc = bring(cache, page);
		if (rc)
			return rc;
	} while (!see(cache, page, read, 0)); /* that was its use */
	return 0;
}

int hl_page_read_begin(struct hl_pagecache *cache, uint64_t page, struct hl_page_read *read)
{
	if (__builtin_expect(!hl_cache_is_ours(cache), 0))
		return -ECHILD;
	return __builtin_expect(see(cache, page, read, HL_FRAME_REF), 1)
		       ? 0
		       : see_slowly(cache, page, read);
}

bool hl_page_read_valid(const struct hl_page_read *read)
{
	const struct hl_frame *frame = read->frame;

	/* FRAME_VALID, pairs with hl_frame_try() */
	hl_pc_fence(memory_order_acquire);
	return (atomic_load_explicit(&frame->word, memory_order_relaxed) & HL_FRAME_VALID) ==
	       read->state;
}
