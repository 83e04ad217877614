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
 * more. Until then each sync of them fails. What was on its way while a sync failed may be
 * among what was forgotten: it is written once more before it counts as written.
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

uint64_t hl_failed_syncs(struct hl_pagecache *cache)
{
	uint64_t n;

	pthread_mutex_lock(&cache->written_lock);
	n = cache->failed_syncs;
	pthread_mutex_unlock(&cache->written_lock);
	return n;
}

bool hl_note_written(struct hl_pagecache *cache, uint64_t failed_before, const uint64_t *page,
		     unsigned n, bool claimed)
{
	bool sure;

	pthread_mutex_lock(&cache->written_lock);
	sure = cache->failed_syncs == failed_before;
	for (unsigned i = 0; sure && i < n; i++) {
		hl_pageset_add(&cache->written, page[i]);
		hl_pageset_remove(&cache->lost, page[i]);
		if (claimed)
			hl_orders_written(cache, page[i]);
	}
	pthread_mutex_unlock(&cache->written_lock);
	return sure;
}

/* Writes frames, and once more if a sync failed meanwhile. */
static void write_surely(struct hl_pagecache *cache, struct hl_local *local,
			 struct hl_frame **frame, unsigned n, int *error)
{
	uint64_t page[HL_BATCH], failed_before;
	unsigned n_written;

	do {
		n_written = 0;
		failed_before = hl_failed_syncs(cache);
		hl_transfer(cache, local, frame, n, true, error);
		for (unsigned i = 0; i < n; i++) {
			if (!error[i])
				page[n_written++] = hl_frame_page(frame[i]);
		}
	} while (!hl_note_written(cache, failed_before, page, n_written, true));
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

int hl_write_unordered(struct hl_pagecache *cache, struct hl_local *local, struct hl_frame **frame,
		       unsigned n)
{
	int error[HL_BATCH], first = 0;
	int state = hl_no_cancel(); /* for what the program is asked */
	unsigned cleaned = 0, may = ask(cache, frame, n, error);

	hl_sort_by_page(frame, may);
	/* Noted before anyone sees that they are clean. */
	if (may)
		write_surely(cache, local, frame, may, error);
	for (unsigned i = 0; i < n; i++) {
		hl_frame_unshare(cache, frame[i],
				 HL_FRAME_WRITING | (error[i] ? 0 : HL_FRAME_DIRTY));
		cleaned += !error[i];
		if (error[i] && !first)
			first = error[i];
	}
	hl_count_add(local, HL_CLEANED, cleaned);
	hl_cancel_as_before(state);
	return first;
}

/* Writes a page after those before it, whatever that takes. */
static int write_in_order(struct hl_pagecache *cache, struct hl_local *local,
			  struct hl_frame *frame, uint64_t page, struct hl_frame **busy)
{
	int rc = hl_claim_dirty(cache, frame, page);

	if (rc < 0)
		*busy = frame;
	if (rc <= 0)
		return rc;
	rc = hl_orders_settle(cache, local, page, busy);
	if (!rc)
		return hl_write_unordered(cache, local, &frame, 1);
	hl_frame_unshare(cache, frame, HL_FRAME_WRITING);
	return rc;
}

/* Writes claimed frames before which something has to go; 0 or the first error. */
static int write_ordered(struct hl_pagecache *cache, struct hl_local *local,
			 struct hl_frame **frame, unsigned n, struct hl_frame **busy)
{
	uint64_t page[HL_BATCH];
	unsigned may;
	int rc, first;

	hl_orders_prepare(cache, local, frame, n);
	may = hl_orders_split(cache, frame, n);
	first = hl_write_unordered(cache, local, frame, may);
	/* One by one, for nobody may wait who has others claimed. */
	for (unsigned i = may; i < n; i++) {
		page[i] = hl_frame_page(frame[i]);
		hl_frame_unshare(cache, frame[i], HL_FRAME_WRITING);
	}
	for (unsigned i = may; i < n; i++) {
		rc = write_in_order(cache, local, frame[i], page[i], busy);
		first = first ? first : rc;
	}
	return first;
}

int hl_write_claimed(struct hl_pagecache *cache, struct hl_local *local, struct hl_frame **frame,
		     unsigned n, struct hl_frame **busy)
{
	unsigned may = hl_orders_split(cache, frame, n);
	int rc, first = hl_write_unordered(cache, local, frame, may);

	*busy = NULL;
	if (may == n)
		return first;
	rc = write_ordered(cache, local, frame + may, n - may, busy);
	return first ? first : rc;
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
	struct hl_frame *batch[HL_BATCH], *busy;
	uint32_t n_frames = hl_frames_ever(cache);
	unsigned n = 0;
	int rc, first = 0;

	for (uint32_t i = 0; i < n_frames; i++) {
		if (is_due(&cache->frame[i], range) && hl_write_claim(&cache->frame[i]))
			batch[n++] = &cache->frame[i];
		if (n && (n == HL_BATCH || i + 1 == n_frames)) {
			rc = hl_write_claimed(cache, local, batch, n, &busy);
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
		struct hl_frame *busy = frame;
		uint64_t word;

		if (hl_write_claim(frame)) {
			int rc = hl_write_claimed(cache, local, &frame, 1, &busy);

			if (!busy)
				return rc;
		}
		word = atomic_load_explicit(&busy->word, memory_order_acquire);
		if (word & HL_FRAME_EXCL && hl_held_has(local, hl_frame_number(cache, busy)))
			return -EDEADLK;
		if (word & (HL_FRAME_EXCL | HL_FRAME_WRITING))
			hl_frame_wait(busy, word, 0);
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

/* A page that is lost, and to be written again if it is still in memory. */
static void lose(uint64_t page, void *arg)
{
	struct hl_local *local = arg;
	struct hl_pagecache *cache = local->cache;
	struct hl_frame *frame = hl_table_find(cache, page);
	uint64_t word;

	hl_pageset_add(&cache->lost, page);
	if (!frame)
		return;
	word = atomic_load_explicit(&frame->word, memory_order_acquire);
	do {
		if (!(word & HL_FRAME_RESIDENT) || word & HL_FRAME_DIRTY ||
		    hl_frame_page(frame) != page)
			return;
	} while (!atomic_compare_exchange_weak_explicit(&frame->word, &word, word | HL_FRAME_DIRTY,
							memory_order_acquire,
							memory_order_acquire));
	hl_count_add(local, HL_DIRTIED, 1);
}

/* The device has not kept what was written until now; written_lock is held. */
static void lose_all(struct hl_pagecache *cache, struct hl_local *local, struct hl_pageset *written)
{
	cache->failed_syncs++;
	cache->lost.all |= written->all;
	hl_orders_lost(cache);
	hl_pageset_each(written, lose, local);
}

int hl_sync_written(struct hl_pagecache *cache, struct hl_local *local)
{
	struct hl_pageset written;
	int rc;

	pthread_mutex_lock(&cache->sync_lock);
	pthread_mutex_lock(&cache->written_lock);
	cache->syncs++;
	cache->syncing = true;
	written = cache->written;
	cache->written = (struct hl_pageset){ 0 };
	pthread_mutex_unlock(&cache->written_lock);
	rc = cache->io->sync(cache->fd);
	pthread_mutex_lock(&cache->written_lock);
	cache->syncing = false;
	if (!rc)
		hl_orders_synced(cache);
	if (rc) {
		cache->lost_error = rc;
		lose_all(cache, local, &written);
		/* What was written meanwhile: before it failed, or after. */
		lose_all(cache, local, &cache->written);
		hl_pageset_free(&cache->written);
	}
	pthread_mutex_unlock(&cache->written_lock);
	pthread_mutex_unlock(&cache->sync_lock);
	hl_pageset_free(&written);
	return rc;
}

/* The same; 0, or an error that concerns the range. */
static int sync_device(struct hl_pagecache *cache, struct hl_local *local,
		       const struct range *range)
{
	int rc = hl_sync_written(cache, local);

	pthread_mutex_lock(&cache->written_lock);
	/* The length of the file is no page's, and may be what was not kept. */
	if (hl_pageset_any(&cache->lost, range->first, range->n))
		rc = cache->lost_error;
	else if (range->first || range->n != UINT64_MAX)
		rc = 0;
	pthread_mutex_unlock(&cache->written_lock);
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
