// SPDX-License-Identifier: MIT
/*
 * Frames: the memory that pages are in, and those of them that are free.
 *
 * A thread takes free frames from the cache by the batch, and keeps the rest for its next
 * misses; when there are no others they are stolen from it.
 */
#include "pagecache/internal.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* Pages start at multiples of the largest page that there can be, and all of them at one of the
 * system's large pages: a first touch then brings 512 small ones, and the processor finds them
 * with one entry of its table. */
#define ALIGN ((size_t)1 << 21)

static void *map(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

static void unmap(void *memory, size_t bytes)
{
	if (memory)
		munmap(memory, bytes);
}

/* The pages begin inside what was mapped. */
static char *map_aligned(size_t bytes)
{
	char *memory = map(bytes + ALIGN), *begin;
	size_t before;

	if (!memory)
		return NULL;
	begin = (char *)(((uintptr_t)memory + ALIGN - 1) & ~(uintptr_t)(ALIGN - 1));
	before = (size_t)(begin - memory);
	if (before)
		munmap(memory, before);
	munmap(begin + bytes, ALIGN - before);
	/* A child cannot use the cache. With its pages, what the device writes to memory during a
	 * fork could be the child's, and the parent would copy each page that it writes to. */
	madvise(begin, bytes, MADV_DONTFORK);
	return begin;
}

void hl_frames_use(struct hl_pagecache *cache, uint32_t n)
{
	size_t used = (size_t)n << cache->page_shift;
	size_t unused = ((size_t)cache->most_frames << cache->page_shift) - used;

	/* Not above: the system would fill up what was given back to it, or not used yet, to make
	 * a large page of it. */
	madvise(cache->data, used, MADV_HUGEPAGE);
	if (unused)
		madvise(cache->data + used, unused, MADV_NOHUGEPAGE);
}

static size_t data_bytes(const struct hl_pagecache *cache)
{
	return (size_t)cache->most_frames << cache->page_shift;
}

int hl_frames_map(struct hl_pagecache *cache, size_t limit, size_t most)
{
	uint32_t n = (uint32_t)(limit >> cache->page_shift);
	unsigned bits = 1;

	cache->most_frames = (uint32_t)(most >> cache->page_shift);
	/* 3.5 to 7 slots a frame that is two buckets or more. */
	while (((uint32_t)1 << bits) < cache->most_frames / 2)
		bits++;
	cache->n_buckets = (uint32_t)1 << bits;
	cache->bucket_shift = 64 - bits;
	cache->data = map_aligned(data_bytes(cache));
	cache->frame = map(cache->most_frames * sizeof(*cache->frame));
	cache->bucket = map(cache->n_buckets * sizeof(*cache->bucket));
	cache->free = map(cache->most_frames * sizeof(*cache->free));
	if (!cache->data || !cache->frame || !cache->bucket || !cache->free)
		return -ENOMEM; /* hl_frames_unmap() is for what there is */
	hl_frames_use(cache, n);
	for (uint32_t i = 0; i < n; i++) {
		atomic_init(&cache->frame[i].page, HL_NO_PAGE);
		cache->free[i] = n - 1 - i;
	}
	cache->n_free = n;
	atomic_init(&cache->n_frames, n);
	atomic_init(&cache->n_ever, n);
	return 0;
}

void hl_frames_unmap(struct hl_pagecache *cache)
{
	unmap(cache->data, data_bytes(cache));
	unmap(cache->frame, cache->most_frames * sizeof(*cache->frame));
	unmap(cache->bucket, cache->n_buckets * sizeof(*cache->bucket));
	unmap(cache->free, cache->most_frames * sizeof(*cache->free));
}

/* ---- Free frames ---- */

/* Free frames are nobody's, and their words are looked at by all. */
static void take(struct hl_frame *frame)
{
	atomic_fetch_or_explicit(&frame->word, HL_FRAME_EXCL, memory_order_acquire);
	/* FRAME_VALID, pairs with hl_page_read_valid(): the version went up before. */
	hl_pc_fence(memory_order_release);
}

static void push(void **frames, unsigned n, void *arg)
{
	struct hl_pagecache *cache = arg;

	pthread_mutex_lock(&cache->free_lock);
	while (n--)
		cache->free[cache->n_free++] = hl_frame_number(cache, frames[n]);
	pthread_mutex_unlock(&cache->free_lock);
}

/* One, and with it a part of the others, so that some are left for other threads. */
static struct hl_frame *pop(struct hl_pagecache *cache, struct hl_pagevec *more)
{
	struct hl_frame *frame = NULL;
	uint32_t n;

	pthread_mutex_lock(&cache->free_lock);
	n = more ? cache->n_free / 8 : 0;
	if (cache->n_free)
		frame = &cache->frame[cache->free[--cache->n_free]];
	while (n-- && hl_pagevec_space(more))
		hl_pagevec_add(more, &cache->frame[cache->free[--cache->n_free]]);
	pthread_mutex_unlock(&cache->free_lock);
	return frame;
}

static struct hl_frame *get_free(struct hl_pagecache *cache, struct hl_local *local)
{
	void *frame = NULL;

	pthread_mutex_lock(&local->lock);
	if (!hl_pagevec_take(&local->free, &frame))
		frame = pop(cache, &local->free);
	pthread_mutex_unlock(&local->lock);
	return frame;
}

void hl_frames_drain(struct hl_pagecache *cache)
{
	pthread_mutex_lock(&hl_pc_registry);
	for (struct hl_local *local = hl_locals_of(cache); local; local = local->next_of_cache) {
		pthread_mutex_lock(&local->lock);
		hl_pagevec_release(&local->free, push, cache);
		pthread_mutex_unlock(&local->lock);
	}
	pthread_mutex_unlock(&hl_pc_registry);
}

struct hl_frame *hl_frame_steal(struct hl_pagecache *cache)
{
	struct hl_frame *frame = pop(cache, NULL);

	if (frame)
		return frame;
	hl_frames_drain(cache);
	return pop(cache, NULL);
}

void hl_frame_put(struct hl_pagecache *cache, struct hl_frame *frame)
{
	void *one = frame;

	hl_frame_unlock(cache, frame, 0, 0);
	push(&one, 1, cache);
}

void hl_frames_put(struct hl_pagecache *cache, struct hl_local *local, void **frame, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		hl_frame_unlock(cache, frame[i], HL_FRAME_EVICTING, 0);
	pthread_mutex_lock(&local->lock);
	/* Other threads want some, too. */
	for (unsigned half = n / 2; n > half && hl_pagevec_space(&local->free); n--)
		hl_pagevec_add(&local->free, frame[n - 1]);
	pthread_mutex_unlock(&local->lock);
	push(frame, n, cache);
}

/* ---- For a miss ---- */

static void add_ms(struct timespec *when, unsigned ms)
{
	when->tv_sec += ms / 1000;
	when->tv_nsec += (long)(ms % 1000) * 1000000;
	if (when->tv_nsec >= 1000000000) {
		when->tv_nsec -= 1000000000;
		when->tv_sec++;
	}
}

/* What is left until then; false: nothing. */
static bool time_left(const struct timespec *until, struct timespec *left)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	left->tv_sec = until->tv_sec - now.tv_sec;
	left->tv_nsec = until->tv_nsec - now.tv_nsec;
	if (left->tv_nsec < 0) {
		left->tv_nsec += 1000000000;
		left->tv_sec--;
	}
	return left->tv_sec >= 0;
}

/* All frames are fixed: waits until one is not, as long as the cache's owner wants. */
static struct hl_frame *wait_for_any(struct hl_pagecache *cache, struct hl_local *local, int *error)
{
	struct timespec until, left;
	struct hl_frame *frame = NULL;

	if (!cache->wait_ms)
		return NULL;
	clock_gettime(CLOCK_MONOTONIC, &until);
	add_ms(&until, cache->wait_ms);
	/* FRAME_STARVE, pairs with tell_the_starving() in lock.c */
	atomic_fetch_add_explicit(&cache->starving, 1, memory_order_seq_cst);
	for (;;) {
		uint32_t seen = atomic_load_explicit(&cache->released, memory_order_seq_cst);

		frame = hl_frame_steal(cache);
		if (!frame)
			frame = hl_reclaim(cache, local, error);
		if (frame || *error != -ENOBUFS || !time_left(&until, &left))
			break;
		hl_futex_wait((uint32_t *)&cache->released, seen, &left);
	}
	atomic_fetch_sub_explicit(&cache->starving, 1, memory_order_relaxed);
	return frame;
}

struct hl_frame *hl_frame_get_now(struct hl_pagecache *cache, struct hl_local *local, int *error)
{
	struct hl_frame *frame = get_free(cache, local);

	if (!frame)
		frame = hl_reclaim(cache, local, error);
	if (frame)
		take(frame);
	return frame;
}

struct hl_frame *hl_frame_get(struct hl_pagecache *cache, struct hl_local *local, int *error)
{
	struct hl_frame *frame;

	/* What is read ahead is not fixed, and who is not done with reading may fail. */
	do {
		frame = hl_frame_get_now(cache, local, error);
		if (frame || *error != -ENOBUFS)
			return frame;
	} while (hl_wait_for_reader(cache));
	frame = wait_for_any(cache, local, error);
	if (frame)
		take(frame);
	return frame;
}
