// SPDX-License-Identifier: MIT
/*
 * Writing dirty pages before somebody has to: a thread of the library, for all caches that
 * can be written to, writes those that have been dirty for long, and when too many are.
 *
 * Locking: `lock`, for the list of caches and the thread. A cache is not freed while it is
 * being flushed.
 */
#include "pagecache/internal.h"

#include <errno.h>
#include <time.h>

/* How often ages are looked at, at least. */
#define MOST_MS 1000u
/* How long nobody asks for more when there was nothing that could be written. */
#define QUIET_MS 200u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER, idle = PTHREAD_COND_INITIALIZER;
static struct hl_pagecache *caches, **end = &caches, *flushing;
static bool running, kicked;
static uint64_t generation;

static int64_t dirty_pages(struct hl_pagecache *cache)
{
	int64_t n = 0;

	pthread_mutex_lock(&hl_pc_registry);
	for (struct hl_local *local = hl_locals_of(cache); local; local = local->next_of_cache)
		n += (int64_t)atomic_load_explicit(&local->count[HL_DIRTIED],
						   memory_order_relaxed) -
		     (int64_t)atomic_load_explicit(&local->count[HL_CLEANED], memory_order_relaxed);
	pthread_mutex_unlock(&hl_pc_registry);
	return n;
}

static int64_t most_dirty(const struct hl_pagecache *cache)
{
	return (int64_t)atomic_load_explicit(&cache->n_frames, memory_order_relaxed) *
	       cache->dirty_percent / 100;
}

static bool is_old(const struct hl_pagecache *cache, const struct hl_frame *frame, uint64_t now)
{
	return now - atomic_load_explicit(&frame->dirtied_ms, memory_order_relaxed) >=
	       cache->write_after_ms;
}

/* Whether it is time to write a page: the old ones, and when too many are dirty others, but for
 * those in constant use, which would be dirty again at once. */
static bool is_time(const struct hl_pagecache *cache, const struct hl_frame *frame, uint64_t now,
		    bool too_many)
{
	uint64_t word = atomic_load_explicit(&frame->word, memory_order_relaxed);

	if (!(word & HL_FRAME_DIRTY))
		return false;
	return (too_many && !(word & HL_FRAME_ACTIVE)) || is_old(cache, frame, now);
}

/* When too many are dirty, writes half of those that may be. What cannot be written stays dirty
 * for who syncs. */
static void flush(struct hl_pagecache *cache)
{
	int64_t dirty = dirty_pages(cache), too_many = 0;
	struct hl_local *local = dirty ? hl_local_get(cache) : NULL;
	uint32_t n_frames = hl_frames_ever(cache);
	struct hl_frame *batch[HL_BATCH], *busy;
	uint64_t now = hl_now_coarse_ms();
	unsigned n = 0;

	if (!local)
		return;
	if (dirty > most_dirty(cache))
		too_many = dirty - most_dirty(cache) / 2;
	for (uint32_t i = 0; i < n_frames; i++) {
		struct hl_frame *frame = &cache->frame[cache->flush_from++ % n_frames];

		if (is_time(cache, frame, now, too_many > 0) && hl_write_claim(frame)) {
			batch[n++] = frame;
			too_many--;
		}
		if (n == HL_BATCH) {
			hl_write_claimed(cache, local, batch, n, &busy);
			n = 0;
		}
	}
	if (n)
		hl_write_claimed(cache, local, batch, n, &busy);
	if (too_many > 0) /* there are no others now */
		atomic_store_explicit(&cache->no_flush_before, now + QUIET_MS,
				      memory_order_relaxed);
}

static void put_last(struct hl_pagecache *cache)
{
	cache->next_flushed = NULL;
	*end = cache;
	end = &cache->next_flushed;
}

static void take_out(struct hl_pagecache *cache)
{
	struct hl_pagecache **link = &caches;

	while (*link != cache)
		link = &(*link)->next_flushed;
	*link = cache->next_flushed;
	if (!*link)
		end = link;
}

/* The next that has not been flushed in this round, if there is one; lock is held. Those that
 * have been are the last in the list. */
static struct hl_pagecache *next_of_round(uint64_t round)
{
	struct hl_pagecache *cache = caches;

	if (!cache || cache->flush_round == round)
		return NULL;
	take_out(cache);
	put_last(cache);
	cache->flush_round = round;
	return cache;
}

static void sleep_until_due(void)
{
	uint64_t ms = MOST_MS;
	struct timespec until;

	for (struct hl_pagecache *cache = caches; cache; cache = cache->next_flushed) {
		if (cache->write_after_ms / 2 + 1 < ms)
			ms = cache->write_after_ms / 2 + 1;
	}
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += (long)ms * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	if (!caches)
		pthread_cond_wait(&work, &lock);
	else if (!kicked)
		pthread_cond_timedwait(&work, &lock, &until);
	kicked = false;
}

static void *serve(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&lock);
	for (uint64_t round = 1;; round++) {
		sleep_until_due();
		while ((flushing = next_of_round(round))) {
			pthread_mutex_unlock(&lock);
			flush(flushing);
			pthread_mutex_lock(&lock);
			flushing = NULL;
			pthread_cond_broadcast(&idle);
		}
	}
	return NULL;
}

int hl_flush_add(struct hl_pagecache *cache)
{
	int rc = 0;

	pthread_mutex_lock(&lock);
	if (!running || generation != cache->generation) {
		generation = cache->generation;
		caches = flushing = NULL; /* in a child: the parent's */
		end = &caches;
		rc = hl_start_thread(serve);
		running = !rc;
	}
	if (!rc) {
		cache->next_flushed = caches;
		cache->is_flushed = true;
		caches = cache;
		if (!cache->next_flushed)
			end = &cache->next_flushed;
		pthread_cond_signal(&work);
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

void hl_flush_remove(struct hl_pagecache *cache)
{
	if (!cache->is_flushed)
		return;
	pthread_mutex_lock(&lock);
	take_out(cache);
	while (flushing == cache)
		pthread_cond_wait(&idle, &lock);
	pthread_mutex_unlock(&lock);
}

void hl_flush_if_many(struct hl_pagecache *cache)
{
	if (!cache->is_flushed || dirty_pages(cache) <= most_dirty(cache) ||
	    hl_now_coarse_ms() <
		    atomic_load_explicit(&cache->no_flush_before, memory_order_relaxed))
		return;
	pthread_mutex_lock(&lock);
	kicked = true;
	pthread_cond_signal(&work);
	pthread_mutex_unlock(&lock);
}

/* ---- Around fork, for local.c ---- */

void hl_flush_lock(void)
{
	pthread_mutex_lock(&lock);
}

void hl_flush_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void hl_flush_forked(void)
{
	pthread_cond_init(&work, NULL);
	pthread_cond_init(&idle, NULL);
	pthread_mutex_unlock(&lock);
}
