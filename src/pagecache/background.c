// SPDX-License-Identifier: MIT
/*
 * Reading pages for threads that do not wait: a thread of the library, for all caches, takes
 * what they have asked for and reads it, all that is there for a cache at once.
 *
 * Locking: `lock`, for the list of requests, which cache is being served, and the thread.
 *
 * Memory ordering
 *
 * REQUEST_DONE: the thread stores .state with release when it is done with a request;
 *	hl_page_fix_end() loads it with acquire. Without it the caller takes a result that is
 *	not there yet.
 */
#include "pagecache/table.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { PENDING, DONE };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER, idle = PTHREAD_COND_INITIALIZER;
static struct hl_page_request *first, **last = &first;
static struct hl_pagecache *serving;
static bool running;
static uint64_t generation;

/* Takes out what there is for the cache of the first request; lock is held. */
static unsigned take(struct hl_page_request **request)
{
	struct hl_page_request **link = &first;
	unsigned n = 0;

	serving = first->cache;
	while (*link && n < HL_BATCH) {
		if ((*link)->cache == serving) {
			request[n++] = *link;
			*link = (*link)->next;
		} else {
			link = &(*link)->next;
		}
	}
	while (*link)
		link = &(*link)->next;
	last = link;
	return n;
}

/* Somebody else reads it; that is the device. */
static void wait_for_reader(struct hl_frame *frame, uint64_t page)
{
	const uint64_t states = HL_FRAME_EXCL | HL_FRAME_RESIDENT | HL_FRAME_EVICTING;
	uint64_t word;

	while (((word = atomic_load_explicit(&frame->word, memory_order_acquire)) & states) ==
		       HL_FRAME_EXCL &&
	       hl_frame_page(frame) == page)
		hl_frame_wait(frame, word, 0);
}

/* Keeps the page until hl_page_fix_end(), if nobody has it exclusively just now. */
static void keep(struct hl_page_request *request)
{
	struct hl_frame *frame = hl_table_find(request->cache, request->page);

	if (frame)
		wait_for_reader(frame, request->page);
	request->frame = frame && !hl_frame_try(frame, request->page, HL_PAGE_SHARED, 0) ? frame
											 : NULL;
}

static void conclude(struct hl_page_request *request)
{
	void (*done)(struct hl_page_request *) = request->done;

	if (request->prefetch) {
		free(request);
		return;
	}
	keep(request);
	/* REQUEST_DONE, pairs with hl_page_fix_end(); without done() it may be gone then */
	if (!done)
		__atomic_store_n(&request->state, DONE, __ATOMIC_RELEASE);
	else
		request->state = DONE, done(request);
}

static void serve_all(struct hl_page_request **request, unsigned n)
{
	struct hl_local *local = hl_local_get(serving);
	uint64_t page[HL_BATCH];
	unsigned n_pages = 0;

	for (unsigned i = 0; local && i < n; i++) {
		if (request[i]->prefetch)
			hl_load_range(serving, local, request[i]->page, request[i]->prefetch);
		else
			page[n_pages++] = request[i]->page;
	}
	if (n_pages)
		hl_load(serving, local, page, n_pages);
	for (unsigned i = 0; i < n; i++)
		conclude(request[i]);
}

static void *serve(void *unused)
{
	struct hl_page_request *request[HL_BATCH];

	(void)unused;
	pthread_mutex_lock(&lock);
	for (;;) {
		unsigned n;

		while (!first)
			pthread_cond_wait(&work, &lock);
		n = take(request);
		pthread_mutex_unlock(&lock);
		serve_all(request, n);
		pthread_mutex_lock(&lock);
		serving = NULL;
		pthread_cond_broadcast(&idle);
	}
	return NULL;
}

int hl_start_thread(void *(*function)(void *))
{
	sigset_t all, before;
	pthread_t thread;
	int rc;

	/* Signals are for the program's own threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&thread, NULL, function, NULL);
	if (!rc)
		pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -rc;
}

/* Hands a request to the thread, which there is from then on. */
static int submit(struct hl_page_request *request)
{
	int rc = 0;

	request->next = NULL;
	pthread_mutex_lock(&lock);
	if (!running || generation != request->cache->generation) {
		generation = request->cache->generation;
		first = NULL; /* in a child: the parent's */
		last = &first;
		serving = NULL;
		rc = hl_start_thread(serve);
		running = !rc;
	}
	if (!rc) {
		*last = request;
		last = &request->next;
		pthread_cond_signal(&work);
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

void hl_background_forget(struct hl_pagecache *cache)
{
	pthread_mutex_lock(&lock);
	for (struct hl_page_request **link = &first; *link;) {
		struct hl_page_request *request = *link;

		if (request->cache == cache && request->prefetch) {
			*link = request->next;
			free(request);
		} else {
			link = &request->next;
		}
		last = link;
	}
	if (!first)
		last = &first;
	while (serving == cache)
		pthread_cond_wait(&idle, &lock);
	pthread_mutex_unlock(&lock);
}

/* ---- Around fork, for local.c ---- */

void hl_background_lock(void)
{
	pthread_mutex_lock(&lock);
}

void hl_background_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void hl_background_forked(void)
{
	pthread_cond_init(&work, NULL);
	pthread_cond_init(&idle, NULL);
	pthread_mutex_unlock(&lock);
}

/* ---- For the program ---- */

int hl_pagecache_prefetch(struct hl_pagecache *cache, uint64_t page, uint64_t n)
{
	struct hl_page_request *request;
	uint64_t pages, most;
	int rc = 0;

	if (!hl_cache_is_ours(cache))
		return -ECHILD;
	pages = atomic_load_explicit(&cache->pages, memory_order_relaxed);
	/* What is more would push out what was read before it. */
	most = atomic_load_explicit(&cache->n_frames, memory_order_relaxed);
	if (page >= pages)
		return 0;
	n = n < pages - page ? n : pages - page;
	n = n < most ? n : most;
	/* As much as one reads ahead at once. */
	for (; n && !rc; page += HL_BATCH, n -= n < HL_BATCH ? n : HL_BATCH) {
		request = aligned_alloc(_Alignof(struct hl_page_request), sizeof(*request));
		if (!request)
			return -ENOMEM;
		memset(request, 0, sizeof(*request));
		request->cache = cache;
		request->page = page;
		request->prefetch = (unsigned)(n < HL_BATCH ? n : HL_BATCH);
		rc = submit(request);
		if (rc)
			free(request);
	}
	return rc;
}

int hl_page_fix_begin(struct hl_pagecache *cache, struct hl_page_request *request)
{
	struct hl_frame *frame;

	if (!hl_cache_is_ours(cache))
		return -ECHILD;
	request->cache = cache;
	request->prefetch = 0;
	request->frame = NULL;
	request->state = DONE;
	frame = hl_table_find(cache, request->page);
	if ((frame && !hl_frame_try(frame, request->page, HL_PAGE_SHARED, 0)) ||
	    (request->how & HL_PAGE_NEW) == HL_PAGE_NEW ||
	    request->page >= atomic_load_explicit(&cache->pages, memory_order_relaxed)) {
		request->frame = frame;
		return 0;
	}
	request->state = PENDING;
	return submit(request) ? -ENOMEM : -EINPROGRESS;
}

int hl_page_fix_end(struct hl_page_request *request, void **data)
{
	struct hl_pagecache *cache = request->cache;
	struct hl_frame *frame;

	if (!hl_cache_is_ours(cache))
		return -ECHILD;
	/* REQUEST_DONE, pairs with conclude() */
	if (__atomic_load_n(&request->state, __ATOMIC_ACQUIRE) != DONE)
		return -EAGAIN;
	frame = request->frame;
	if (frame && !request->how)
		return hl_page_take_share(cache, frame, data);
	if (frame)
		hl_frame_unshare(cache, frame, 0);
	return hl_page_fix(cache, request->page, request->how, data);
}
