// SPDX-License-Identifier: MIT
/*
 * Threads: what each keeps for itself of a cache, so that a hit writes nothing that others
 * read: what it counts, which pages it has fixed, free frames for its next misses.
 *
 * Locking: hl_pc_registry, for the lists and for held[] when it is not the owner who
 * changes it. The owner adds and removes without a lock: a page that it has fixed is in one
 * entry, and only one thread unfixes it.
 */
#include "pagecache/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

pthread_mutex_t hl_pc_registry = PTHREAD_MUTEX_INITIALIZER;
_Atomic(uint64_t) hl_pc_generation;
__thread struct hl_local_way hl_local_way[HL_LOCAL_WAYS];

static __thread struct hl_thread *this_thread;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t ending;
static int once_failed;

/* ---- A thread comes and ends ---- */

/* With what it has pinned. */
static unsigned held_pages(const struct hl_local *local)
{
	unsigned n = 0;

	for (uint32_t i = atomic_load_explicit(&local->n_held, memory_order_relaxed); i--;)
		n += atomic_load_explicit(&local->held[i], memory_order_relaxed) != 0;
	for (uint32_t i = 0; i < HL_PINS; i++)
		n += atomic_load_explicit(&local->pin[i], memory_order_relaxed) != 0;
	return n;
}

static unsigned report_leak(struct hl_local *local, uint32_t held)
{
	struct hl_pagecache *cache = local->cache;
	struct hl_frame *frame = &cache->frame[held - 1];

	if (!held)
		return 0;
	hl_count_add(local, HL_LEAKED, 1);
	if (cache->leaked)
		cache->leaked(cache, hl_frame_page(frame), hl_frame_data(cache, frame),
			      cache->leaked_arg);
	return 1;
}

/* Tells of the pages that the thread has fixed still. With the last of them unfixed the cache may
 * be closed, and what the thread kept of it is gone. */
static void report_leaks(struct hl_local *local)
{
	uint32_t n = atomic_load_explicit(&local->n_held, memory_order_relaxed);
	unsigned left = held_pages(local);

	for (uint32_t i = n; left && i--;)
		left -= report_leak(local,
				    atomic_load_explicit(&local->held[i], memory_order_relaxed));
	for (unsigned i = HL_PINS; left && i--;)
		left -= report_leak(local,
				    atomic_load_explicit(&local->pin[i], memory_order_relaxed));
}

/* Takes what the thread keeps of caches from it, and tells of what it has fixed. Others may close
 * a cache meanwhile of which it has nothing fixed. */
static void leave_caches(struct hl_thread *thread)
{
	struct hl_local *local;

	pthread_mutex_lock(&hl_pc_registry);
	while ((local = thread->locals)) {
		if (held_pages(local) && !local->told) {
			local->told = true;
			pthread_mutex_unlock(&hl_pc_registry);
			report_leaks(local);
			pthread_mutex_lock(&hl_pc_registry);
			continue;
		}
		thread->locals = local->next_of_thread;
		local->thread = NULL;
	}
	pthread_mutex_unlock(&hl_pc_registry);
}

static void thread_ends(void *arg)
{
	struct hl_thread *thread = arg;

	if (thread->generation != atomic_load_explicit(&hl_pc_generation, memory_order_relaxed)) {
		hl_ring_abandon(thread->ring);
		free(thread);
		return;
	}
	leave_caches(thread);
	hl_ring_free(thread->ring);
	memset(hl_local_way, 0, sizeof(hl_local_way));
	this_thread = NULL;
	free(thread);
}

static void before_fork(void)
{
	hl_flush_lock();
	hl_background_lock();
	pthread_mutex_lock(&hl_pc_registry);
	hl_io_threads_lock();
}

static void parent_forked(void)
{
	hl_io_threads_unlock();
	pthread_mutex_unlock(&hl_pc_registry);
	hl_background_unlock();
	hl_flush_unlock();
}

/* What the parent had open stays as it is, out of reach. */
static void child_forked(void)
{
	atomic_fetch_add_explicit(&hl_pc_generation, 1, memory_order_relaxed);
	memset(hl_local_way, 0, sizeof(hl_local_way));
	if (this_thread) {
		this_thread->locals = NULL;
		hl_ring_abandon(this_thread->ring);
		this_thread->ring = NULL;
		this_thread->generation =
			atomic_load_explicit(&hl_pc_generation, memory_order_relaxed);
	}
	hl_io_threads_forked();
	pthread_mutex_unlock(&hl_pc_registry);
	hl_background_forked();
	hl_flush_forked();
}

static void set_up(void)
{
	once_failed = pthread_key_create(&ending, thread_ends) ||
		      pthread_atfork(before_fork, parent_forked, child_forked);
}

struct hl_thread *hl_thread_get(void)
{
	struct hl_thread *thread = this_thread;

	if (thread)
		return thread;
	pthread_once(&once, set_up);
	if (once_failed)
		return NULL;
	thread = calloc(1, sizeof(*thread));
	if (!thread || pthread_setspecific(ending, thread)) {
		free(thread);
		return NULL;
	}
	thread->generation = atomic_load_explicit(&hl_pc_generation, memory_order_relaxed);
	return this_thread = thread;
}

/* ---- A thread and a cache ---- */

/* One whose thread has ended, and with it what it has counted. */
static struct hl_local *adopt(struct hl_pagecache *cache)
{
	for (struct hl_local *local = hl_locals_of(cache); local; local = local->next_of_cache) {
		if (!local->thread && !atomic_load_explicit(&local->n_held, memory_order_relaxed) &&
		    !atomic_load_explicit(&local->n_pins, memory_order_relaxed))
			return local;
	}
	return NULL;
}

static struct hl_local *make(struct hl_pagecache *cache)
{
	struct hl_local *local = aligned_alloc(_Alignof(struct hl_local), sizeof(*local));

	if (!local)
		return NULL;
	memset(local, 0, sizeof(*local));
	local->cache = cache;
	local->held = local->held_inline;
	local->most_held = HL_HELD_INLINE;
	pthread_mutex_init(&local->lock, NULL);
	hl_pagevec_init(&local->free);
	local->number = atomic_fetch_add_explicit(&cache->n_locals, 1, memory_order_relaxed) + 1;
	local->next_of_cache = hl_locals_of(cache);
	/* FRAME_PIN, pairs with hl_pins_have(): whole before it can be found. */
	atomic_store_explicit(&cache->locals, local, memory_order_seq_cst);
	return local;
}

/* What the thread has of the cache already. A thread may use many caches and a cache be used by
 * many threads: the shorter list is looked through. */
static struct hl_local *there_is(struct hl_pagecache *cache, struct hl_thread *thread)
{
	struct hl_local *of_cache = hl_locals_of(cache), *of_thread = thread->locals;

	while (of_cache && of_thread) {
		if (of_cache->thread == thread)
			return of_cache;
		if (of_thread->cache == cache)
			return of_thread;
		of_cache = of_cache->next_of_cache;
		of_thread = of_thread->next_of_thread;
	}
	return NULL;
}

static struct hl_local *join(struct hl_pagecache *cache, struct hl_thread *thread)
{
	struct hl_local *local;

	pthread_mutex_lock(&hl_pc_registry);
	local = there_is(cache, thread);
	if (!local) {
		local = adopt(cache);
		if (!local)
			local = make(cache);
		if (local) {
			local->thread = thread;
			local->told = false;
			local->tid = (int)syscall(SYS_gettid);
			local->last = NULL;
			local->next_page = HL_NO_PAGE;
			local->ahead = 0;
			local->next_of_thread = thread->locals;
			thread->locals = local;
		}
	}
	pthread_mutex_unlock(&hl_pc_registry);
	return local;
}

struct hl_local *hl_local_find(struct hl_pagecache *cache)
{
	struct hl_local_way *way = &hl_local_way[cache->id % HL_LOCAL_WAYS];
	struct hl_thread *thread = hl_thread_get();
	struct hl_local *local = thread ? join(cache, thread) : NULL;

	if (local)
		*way = (struct hl_local_way){ cache->id, local };
	return local;
}

static void leave_thread(struct hl_local *local)
{
	struct hl_local **link = &local->thread->locals;

	while (*link != local)
		link = &(*link)->next_of_thread;
	*link = local->next_of_thread;
}

void hl_locals_free(struct hl_pagecache *cache)
{
	struct hl_local *local;

	pthread_mutex_lock(&hl_pc_registry);
	while ((local = hl_locals_of(cache))) {
		atomic_store_explicit(&cache->locals, local->next_of_cache, memory_order_relaxed);
		if (local->thread)
			leave_thread(local);
		if (local->held != local->held_inline)
			free(local->held);
		pthread_mutex_destroy(&local->lock);
		free(local);
	}
	pthread_mutex_unlock(&hl_pc_registry);
}

/* ---- What a thread has fixed ---- */

int hl_held_grow(struct hl_local *local)
{
	uint32_t n = local->most_held;
	_Atomic(uint32_t) *more = calloc(2 * (size_t)n, sizeof(*more)), *before = local->held;

	if (!more)
		return -ENOMEM;
	pthread_mutex_lock(&hl_pc_registry);
	for (uint32_t i = 0; i < n; i++)
		atomic_init(&more[i], atomic_load_explicit(&before[i], memory_order_relaxed));
	local->held = more;
	local->most_held = 2 * n;
	pthread_mutex_unlock(&hl_pc_registry);
	if (before != local->held_inline)
		free(before);
	return 0;
}

bool hl_held_has(const struct hl_local *local, uint32_t frame)
{
	uint32_t n = atomic_load_explicit(&local->n_held, memory_order_relaxed);

	while (n--) {
		if (atomic_load_explicit(&local->held[n], memory_order_relaxed) == frame + 1)
			return true;
	}
	return false;
}

bool hl_held_remove(struct hl_local *local, uint32_t frame)
{
	uint32_t n = atomic_load_explicit(&local->n_held, memory_order_relaxed), i = n;

	while (i && atomic_load_explicit(&local->held[i - 1], memory_order_relaxed) != frame + 1)
		i--;
	if (!i)
		return false;
	atomic_store_explicit(&local->held[i - 1], 0, memory_order_relaxed);
	while (n && !atomic_load_explicit(&local->held[n - 1], memory_order_relaxed))
		n--;
	atomic_store_explicit(&local->n_held, n, memory_order_relaxed);
	return true;
}

/* The thread has ended: nobody else takes entries off the end. */
static void trim(struct hl_local *local)
{
	uint32_t n = atomic_load_explicit(&local->n_held, memory_order_relaxed);

	while (n && !atomic_load_explicit(&local->held[n - 1], memory_order_relaxed))
		n--;
	atomic_store_explicit(&local->n_held, n, memory_order_relaxed);
}

static bool remove_elsewhere(struct hl_local *local, uint32_t frame)
{
	for (uint32_t i = atomic_load_explicit(&local->n_held, memory_order_relaxed); i--;) {
		uint32_t held = frame + 1;

		if (!atomic_compare_exchange_strong_explicit(
			    &local->held[i], &held, 0, memory_order_relaxed, memory_order_relaxed))
			continue;
		if (!local->thread)
			trim(local);
		return true;
	}
	return false;
}

bool hl_held_remove_any(struct hl_pagecache *cache, uint32_t frame)
{
	bool removed = false;

	pthread_mutex_lock(&hl_pc_registry);
	for (struct hl_local *local = hl_locals_of(cache); local && !removed;
	     local = local->next_of_cache)
		removed = remove_elsewhere(local, frame);
	pthread_mutex_unlock(&hl_pc_registry);
	return removed;
}

struct listing {
	void (*tell)(const struct hl_page_holder *holder, void *arg);
	void *arg;
	int holders;
};

static void list(struct listing *listing, const struct hl_local *local, uint32_t held)
{
	const struct hl_frame *frame = &local->cache->frame[held - 1];
	struct hl_page_holder holder;
	uint64_t word;

	/* A pin may be of who is about to see that the page is gone. */
	if (!held || hl_frame_page(frame) == HL_NO_PAGE)
		return;
	word = atomic_load_explicit(&frame->word, memory_order_relaxed);
	holder = (struct hl_page_holder){
		.page = hl_frame_page(frame),
		.tid = local->tid,
		.exclusive = (word & (HL_FRAME_EXCL | HL_FRAME_EVICTING)) == HL_FRAME_EXCL,
		.ended = !local->thread,
	};
	listing->tell(&holder, listing->arg);
	listing->holders++;
}

int hl_pagecache_holders(struct hl_pagecache *cache,
			 void (*tell)(const struct hl_page_holder *holder, void *arg), void *arg)
{
	struct listing listing = { tell, arg, 0 };

	if (!hl_cache_is_ours(cache))
		return -ECHILD;
	pthread_mutex_lock(&hl_pc_registry);
	for (struct hl_local *local = hl_locals_of(cache); local; local = local->next_of_cache) {
		uint32_t n = atomic_load_explicit(&local->n_held, memory_order_relaxed);

		for (uint32_t i = 0; i < n; i++)
			list(&listing, local,
			     atomic_load_explicit(&local->held[i], memory_order_relaxed));
		for (uint32_t i = 0; i < HL_PINS; i++)
			list(&listing, local,
			     atomic_load_explicit(&local->pin[i], memory_order_relaxed));
	}
	pthread_mutex_unlock(&hl_pc_registry);
	return listing.holders;
}
