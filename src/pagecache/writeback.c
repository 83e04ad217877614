// SPDX-License-Identifier: MIT
/*
 * Writing pages, and making sure of them.
 *
 * Who writes a page holds a share of it, so that nobody changes it meanwhile; it stays dirty
 * until it is written, and WRITING keeps others from writing it too. Who syncs waits for
 * WRITING as for DIRTY.
 *
 * A page that was written is in .written until the device was synced. When that fails, the
 * kernel has forgotten what it could not write, and says so once: the pages of .written
 * become .lost. Those still in memory are dirty again; written anew, they are lost no
 * more. Until then each sync of them fails.
 */
#include "pagecache/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Whether too many pages are dirty is looked at once in so many. */
#define CHECK_EACH 64

uint64_t hl_now_coarse_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void hl_mark_dirty(struct hl_local *local, struct hl_frame *frame)
{
	atomic_store_explicit(&frame->dirtied_ms, hl_now_coarse_ms(), memory_order_relaxed);
	if (atomic_fetch_or_explicit(&frame->word, HL_FRAME_DIRTY, memory_order_relaxed) &
	    HL_FRAME_DIRTY)
		return;
	hl_count_add(local, HL_DIRTIED, 1);
	if (atomic_load_explicit(&local->count[HL_DIRTIED], memory_order_relaxed) % CHECK_EACH == 0)
		hl_flush_if_many(local->cache);
}

bool hl_write_claim(struct hl_frame *frame)
{
	uint64_t word = atomic_load_explicit(&frame->word, memory_order_relaxed);

	do {
		if ((word & (HL_FRAME_DIRTY | HL_FRAME_EXCL | HL_FRAME_WRITING)) !=
			    HL_FRAME_DIRTY ||
		    (word & HL_FRAME_COUNT) == HL_FRAME_COUNT)
			return false;
		/* FRAME_LOCK, pairs with hl_frame_unlock() */
	} while (!atomic_compare_exchange_weak_explicit(
		&frame->word, &word, (word + 1) | HL_FRAME_WRITING, memory_order_acquire,
		memory_order_relaxed));
	return true;
}

static void note_written(struct hl_pagecache *cache, struct hl_frame **frame, unsigned n,
			 const int *error)
{
	pthread_mutex_lock(&cache->written_lock);
	for (unsigned i = 0; i < n; i++) {
		if (error[i])
			continue;
		hl_pageset_add(&cache->written, hl_frame_page(frame[i]));
		hl_pageset_remove(&cache->lost, hl_frame_page(frame[i]));
	}
	pthread_mutex_unlock(&cache->written_lock);
}

/* Asks for each page whether it may be written; those that may come first: how many. */
static unsigned ask(struct hl_pagecache *cache, struct hl_frame **frame, unsigned n, int *error)
{
	unsigned may = 0, may_not = n;
	int rc;

	memset(error, 0, n * sizeof(*error));
	while (cache->before_write && may < may_not) {
		struct hl_frame *asked = frame[may];

		rc = cache->before_write(cache, hl_frame_page(asked), hl_frame_data(cache, asked),
					 cache->before_write_arg);
		if (!rc) {
			may++;
			continue;
		}
		frame[may] = frame[--may_not];
		frame[may_not] = asked;
		error[may_not] = rc;
	}
	return may_not;
}

int hl_write_claimed(struct hl_pagecache *cache, struct hl_local *local, struct hl_frame **frame,
		     unsigned n)
{
	int error[HL_BATCH], first = 0;
	unsigned cleaned = 0, may = ask(cache, frame, n, error);

	hl_sort_by_page(frame, may);
	if (may)
		hl_transfer(cache, local, frame, may, true, error);
	/* Before anyone sees that they are clean. */
	note_written(cache, frame, n, error);
	for (unsigned i = 0; i < n; i++) {
		hl_frame_unshare(cache, frame[i],
				 HL_FRAME_WRITING | (error[i] ? 0 : HL_FRAME_DIRTY));
		cleaned += !error[i];
		if (error[i] && !first)
			first = error[i];
	}
	hl_count_add(local, HL_CLEANED, cleaned);
	return first;
}

/* ---- Sync ---- */

struct range {
	uint64_t first, n;
};

/* Whether a frame holds a page of the range that is not in the file. */
static bool is_due(const struct hl_frame *frame, const struct range *range)
{
	uint64_t page = hl_frame_page(frame);

	return page != HL_NO_PAGE && page >= range->first && page - range->first < range->n &&
	       atomic_load_explicit(&frame->word, memory_order_acquire) &
		       (HL_FRAME_DIRTY | HL_FRAME_WRITING);
}

/* Writes what can be written at once; 0 or the first error. */
static int write_all(struct hl_pagecache *cache, struct hl_local *local, const struct range *range)
{
	struct hl_frame *batch[HL_BATCH];
	uint32_t n_frames = hl_frames_ever(cache);
	unsigned n = 0;
	int rc, first = 0;

	for (uint32_t i = 0; i < n_frames; i++) {
		if (is_due(&cache->frame[i], range) && hl_write_claim(&cache->frame[i]))
			batch[n++] = &cache->frame[i];
		if (n && (n == HL_BATCH || i + 1 == n_frames)) {
			rc = hl_write_claimed(cache, local, batch, n);
			first = first ? first : rc;
			n = 0;
		}
	}
	return first;
}

/* Waits until the page of a frame is in the file, if need be by writing it. */
static int write_one(struct hl_pagecache *cache, struct hl_local *local, struct hl_frame *frame,
		     const struct range *range)
{
	while (is_due(frame, range)) {
		uint64_t word;

		if (hl_write_claim(frame))
			return hl_write_claimed(cache, local, &frame, 1);
		word = atomic_load_explicit(&frame->word, memory_order_acquire);
		if (word & HL_FRAME_EXCL && hl_held_has(local, hl_frame_number(cache, frame)))
			return -EDEADLK;
		if (word & (HL_FRAME_EXCL | HL_FRAME_WRITING))
			hl_frame_wait(frame, word, 0);
	}
	return 0;
}

/* Those that others had, one by one: nothing is held while one is waited for. */
static int write_rest(struct hl_pagecache *cache, struct hl_local *local, const struct range *range)
{
	int first = 0;

	for (uint32_t i = 0; i < hl_frames_ever(cache); i++) {
		int rc = write_one(cache, local, &cache->frame[i], range);

		first = first ? first : rc;
	}
	return first;
}

/* A page of .lost that is still in memory: to be written again. */
static void dirty_again(uint64_t page, void *arg)
{
	struct hl_local *local = arg;
	struct hl_pagecache *cache = local->cache;
	struct hl_frame *frame = hl_table_find(cache, page);

	hl_pageset_add(&cache->lost, page);
	if (!frame || hl_frame_try(frame, page, HL_PAGE_SHARED, 0))
		return; /* who has it exclusively may write it, or not: it is lost till then */
	hl_mark_dirty(local, frame);
	hl_frame_unshare(cache, frame, 0);
}

/* Has the device keep what was written; 0, or an error that concerns the range. */
static int sync_device(struct hl_pagecache *cache, struct hl_local *local,
		       const struct range *range)
{
	struct hl_pageset written;
	int rc;

	pthread_mutex_lock(&cache->sync_lock);
	pthread_mutex_lock(&cache->written_lock);
	written = cache->written;
	cache->written = (struct hl_pageset){ 0 };
	pthread_mutex_unlock(&cache->written_lock);
	rc = cache->io->sync(cache->fd);
	pthread_mutex_lock(&cache->written_lock);
	if (rc) {
		cache->lost_error = rc;
		cache->lost.all |= written.all;
		hl_pageset_each(&written, dirty_again, local);
	}
	rc = hl_pageset_any(&cache->lost, range->first, range->n) ? cache->lost_error : 0;
	pthread_mutex_unlock(&cache->written_lock);
	pthread_mutex_unlock(&cache->sync_lock);
	hl_pageset_free(&written);
	return rc;
}

int hl_pagecache_sync_range(struct hl_pagecache *cache, uint64_t first, uint64_t n)
{
	const struct range range = { first, n };
	struct hl_local *local;
	int rc, rc_device;

	if (!hl_cache_is_ours(cache))
		return -ECHILD;
	local = hl_local_get(cache);
	if (!local)
		return -ENOMEM;
	if (cache->flags & HL_PAGECACHE_READ_ONLY)
		return 0;
	/* What fails here fails again below. */
	write_all(cache, local, &range);
	rc = write_rest(cache, local, &range);
	rc_device = sync_device(cache, local, &range);
	return rc ? rc : rc_device;
}

int hl_pagecache_sync(struct hl_pagecache *cache)
{
	return hl_pagecache_sync_range(cache, 0, UINT64_MAX);
}
