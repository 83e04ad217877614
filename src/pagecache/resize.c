// SPDX-License-Identifier: MIT
/*
 * Changing the limit. The frames in use are those with the lowest numbers; those above are
 * HL_FRAME_OFF, on no list, and their memory is the system's.
 */
#include "pagecache/internal.h"

#include <errno.h>
#include <sched.h>
#include <sys/mman.h>

static void raise_to(struct hl_pagecache *cache, uint32_t n)
{
	uint32_t before = atomic_load_explicit(&cache->n_frames, memory_order_relaxed);

	hl_frames_use(cache, n);
	pthread_mutex_lock(&cache->free_lock);
	for (uint32_t i = before; i < n; i++) {
		struct hl_frame *frame = &cache->frame[i];
		uint64_t word = atomic_load_explicit(&frame->word, memory_order_relaxed);

		/* One that could not be dropped last time is in use. */
		if (i < hl_frames_ever(cache) && !(word & HL_FRAME_OFF))
			continue;
		atomic_store_explicit(&frame->page, HL_NO_PAGE, memory_order_relaxed);
		atomic_fetch_and_explicit(&frame->word, ~HL_FRAME_OFF, memory_order_relaxed);
		cache->free[cache->n_free++] = i;
	}
	pthread_mutex_unlock(&cache->free_lock);
	if (n > hl_frames_ever(cache))
		atomic_store_explicit(&cache->n_ever, n, memory_order_relaxed);
	atomic_store_explicit(&cache->n_frames, n, memory_order_relaxed);
}

/* Nobody uses it any more. */
static void turn_off(struct hl_pagecache *cache, struct hl_frame *frame)
{
	atomic_fetch_or_explicit(&frame->word, HL_FRAME_OFF, memory_order_relaxed);
	madvise(hl_frame_data(cache, frame), hl_page_bytes(cache), MADV_DONTNEED);
}

/* Takes the frames above the limit out of the lists of free ones. */
static void turn_off_free(struct hl_pagecache *cache, uint32_t n)
{
	uint32_t kept = 0;

	hl_frames_drain(cache);
	pthread_mutex_lock(&cache->free_lock);
	for (uint32_t i = 0; i < cache->n_free; i++) {
		if (cache->free[i] < n)
			cache->free[kept++] = cache->free[i];
		else
			turn_off(cache, &cache->frame[cache->free[i]]);
	}
	cache->n_free = kept;
	pthread_mutex_unlock(&cache->free_lock);
}

/* Drops the page of a frame; 0, -EBUSY: it is fixed, or what has to be written before it;
 * -EAGAIN: look again, or an error. */
static int turn_off_used(struct hl_pagecache *cache, struct hl_local *local, struct hl_frame *frame)
{
	uint64_t word = atomic_load_explicit(&frame->word, memory_order_relaxed);

	if (word & HL_FRAME_OFF)
		return 0;
	if (word & HL_FRAME_WRITING)
		return -EAGAIN;
	if (word & (HL_FRAME_COUNT | HL_FRAME_EXCL))
		return word & HL_FRAME_EVICTING ? -EAGAIN : -EBUSY;
	if (word & HL_FRAME_SPREAD && hl_pins_have(cache, frame))
		return -EBUSY;
	if (word & HL_FRAME_DIRTY) {
		struct hl_frame *busy;
		int rc = hl_write_claim(frame) ? hl_write_claimed(cache, local, &frame, 1, &busy)
					       : -EAGAIN;

		return rc ? rc : -EAGAIN;
	}
	if (!hl_evict(cache, frame))
		return -EAGAIN; /* it is free, or somebody has just fixed it */
	hl_count_add(local, HL_EVICTED, 1);
	turn_off(cache, frame);
	hl_frame_unlock(cache, frame, HL_FRAME_EVICTING, 0);
	return 0;
}

static int lower_to(struct hl_pagecache *cache, struct hl_local *local, uint32_t n)
{
	int rc = 0, error;

	/* From now on nobody makes room above. */
	atomic_store_explicit(&cache->n_frames, n, memory_order_relaxed);
	hl_frames_use(cache, n);
	turn_off_free(cache, n);
	for (uint32_t i = hl_frames_ever(cache); i-- > n && (!rc || rc == -EBUSY);) {
		while ((error = turn_off_used(cache, local, &cache->frame[i])) == -EAGAIN) {
			turn_off_free(cache, n);
			sched_yield();
		}
		rc = error ? error : rc;
	}
	return rc == -EBUSY ? -ENOBUFS : rc;
}

int hl_pagecache_resize(struct hl_pagecache *cache, size_t limit)
{
	uint32_t n = (uint32_t)(limit >> cache->page_shift);
	struct hl_local *local;
	int rc = 0;

	if (!hl_cache_is_ours(cache))
		return -ECHILD;
	if (limit < hl_page_bytes(cache))
		return -EINVAL;
	if (limit >> cache->page_shift > cache->most_frames)
		return -E2BIG;
	local = hl_local_get(cache);
	if (!local)
		return -ENOMEM;
	pthread_mutex_lock(&cache->resize_lock);
	if (n > atomic_load_explicit(&cache->n_frames, memory_order_relaxed))
		raise_to(cache, n);
	else
		rc = lower_to(cache, local, n);
	pthread_mutex_unlock(&cache->resize_lock);
	return rc;
}
