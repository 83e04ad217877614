// SPDX-License-Identifier: MIT
/*
 * Pages that are not written before others: hl_page_write_before().
 *
 * An order is an edge of a graph of pages. It begins when the first page has something that is
 * not on the device, and ends when that is there: written, and then synced. A page with an
 * order before it that has not ended is not written. Since an order that would close a circle is
 * refused, some page can always be written.
 *
 * Who writes pages claims them (HL_FRAME_WRITING), so that nobody changes them, and then looks
 * whether there are orders before them. What is ordered later than that is about what will
 * be changed later. Of the pages that have to go first those that wait for nothing are
 * written together, and one sync is for all. Where orders follow each other they are settled
 * from page to page: each page on the path from the one that is to be written to the one that
 * can be is claimed.
 *
 * Nobody waits in a circle. Who holds a claim waits for nothing but the device, and for other
 * claims on pages that go before all those that it has claimed on its path: the order between
 * two pages of a path stays, for only a write could end it. So of those who wait one has
 * the page that goes before all others, and gets on. Who comes to a page that somebody has fixed
 * exclusively lets go of all claims, and only then waits, or does without.
 *
 * No frame is needed: what has to be written is in one.
 *
 * Locking: written_lock, for the graph. Claims are tried with it held, and not waited for.
 */
#include "pagecache/table.h"

#include <errno.h>
#include <stdlib.h>

/* A line: a walk over a graph that is in memory takes one for each. */
struct order {
	struct hl_order_page *first, *then;
	struct order *next_out, **link_out; /* of .first */
	struct order *next_in, **link_in; /* of .then */
	uint64_t sync; /* the number of the sync that ends it; 0: the first is not written yet */
} __attribute__((aligned(8 * sizeof(uint64_t))));

/* A page with orders. */
struct hl_order_page {
	uint64_t page;
	struct hl_order_page *next; /* in its bucket */
	struct order *out, *in;
	size_t n_out, n_in;
	/* To look for circles. */
	uint64_t search;
	struct hl_order_page *todo;
	/* Of who has claimed it as one of a path; users keep it from being freed. */
	unsigned users;
	struct hl_order_page *up;
	struct hl_frame *frame;
};

/* ---- The graph; written_lock is held ---- */

static struct hl_order_page **bucket_of(const struct hl_orders *orders, uint64_t page)
{
	return &orders->bucket[(size_t)(hl_table_hash(page) >> 32) & (orders->room - 1)];
}

static struct hl_order_page *find(const struct hl_orders *orders, uint64_t page)
{
	struct hl_order_page *node = orders->room ? *bucket_of(orders, page) : NULL;

	while (node && node->page != page)
		node = node->next;
	return node;
}

static void put(struct hl_orders *orders, struct hl_order_page *node)
{
	struct hl_order_page **bucket = bucket_of(orders, node->page);

	node->next = *bucket;
	*bucket = node;
}

/* Twice as many buckets, if there is memory; without, the lists get longer. */
static void grow(struct hl_orders *orders)
{
	struct hl_orders more = { .room = orders->room ? 2 * orders->room : 64 };

	more.bucket = calloc(more.room, sizeof(*more.bucket));
	if (!more.bucket)
		return;
	for (size_t i = 0; i < orders->room; i++) {
		struct hl_order_page *node, *next;

		for (node = orders->bucket[i]; node; node = next) {
			next = node->next;
			put(&more, node);
		}
	}
	free(orders->bucket);
	orders->bucket = more.bucket;
	orders->room = more.room;
}

static struct hl_order_page *get(struct hl_orders *orders, uint64_t page)
{
	struct hl_order_page *node = find(orders, page);

	if (node)
		return node;
	if (orders->n_pages >= orders->room)
		grow(orders);
	node = orders->room ? calloc(1, sizeof(*node)) : NULL;
	if (!node)
		return NULL;
	node->page = page;
	orders->n_pages++;
	put(orders, node);
	return node;
}

static void free_if_unused(struct hl_orders *orders, struct hl_order_page *node)
{
	struct hl_order_page **link;

	if (!node || node->in || node->out || node->users)
		return;
	for (link = bucket_of(orders, node->page); *link != node;)
		link = &(*link)->next;
	*link = node->next;
	orders->n_pages--;
	free(node);
}

static void link_up(struct hl_orders *orders, struct order *order)
{
	struct hl_order_page *first = order->first, *then = order->then;

	order->link_out = &first->out;
	order->next_out = first->out;
	if (first->out)
		first->out->link_out = &order->next_out;
	first->out = order;
	first->n_out++;
	order->link_in = &then->in;
	order->next_in = then->in;
	if (then->in)
		then->in->link_in = &order->next_in;
	then->in = order;
	then->n_in++;
	orders->n++;
}

static void drop(struct hl_orders *orders, struct order *order)
{
	struct hl_order_page *first = order->first, *then = order->then;

	*order->link_out = order->next_out;
	if (order->next_out)
		order->next_out->link_out = order->link_out;
	first->n_out--;
	*order->link_in = order->next_in;
	if (order->next_in)
		order->next_in->link_in = order->link_in;
	then->n_in--;
	orders->n--;
	free(order);
	free_if_unused(orders, first);
	free_if_unused(orders, then);
}

static struct order *order_between(const struct hl_order_page *first,
				   const struct hl_order_page *then)
{
	struct order *order;

	if (first->n_out < then->n_in) {
		for (order = first->out; order && order->then != then;)
			order = order->next_out;
	} else {
		for (order = then->in; order && order->first != first;)
			order = order->next_in;
	}
	return order;
}

/* Whether one page has to be written before another, directly or not. */
static bool goes_before(struct hl_orders *orders, const struct hl_order_page *one,
			struct hl_order_page *other)
{
	struct hl_order_page *todo = other;

	orders->searches++;
	other->search = orders->searches;
	other->todo = NULL;
	while (todo) {
		struct hl_order_page *node = todo;

		todo = node->todo;
		for (struct order *order = node->in; order; order = order->next_in) {
			struct hl_order_page *first = order->first;

			if (first == one)
				return true;
			if (first->search == orders->searches)
				continue;
			first->search = orders->searches;
			first->todo = todo;
			todo = first;
		}
	}
	return false;
}

/* Does something with each order; it may drop that one, and no other. */
static void each(struct hl_orders *orders, void (*what)(struct hl_orders *, struct order *))
{
	for (size_t i = 0; orders->n && i < orders->room; i++) {
		struct hl_order_page *node = orders->bucket[i], *next;

		for (; node; node = next) {
			struct order *order = node->out, *next_out;

			node->users++;
			for (; order; order = next_out) {
				next_out = order->next_out;
				what(orders, order);
			}
			node->users--;
			next = node->next;
			free_if_unused(orders, node);
		}
	}
}

/* ---- How far a page has got ---- */

/* What an order waits for. */
enum due { NOTHING, A_SYNC, A_WRITE, WRITTEN_ANEW };

/* The frame of a page that is to be written, or is being written; NULL: it is not. */
static struct hl_frame *dirty_frame(const struct hl_pagecache *cache, uint64_t page)
{
	struct hl_frame *frame = hl_table_find(cache, page);
	uint64_t word;

	if (!frame)
		return NULL;
	word = atomic_load_explicit(&frame->word, memory_order_acquire);
	return word & (HL_FRAME_DIRTY | HL_FRAME_WRITING) && hl_frame_page(frame) == page ? frame
											  : NULL;
}

/* A page that was written while nobody looked is found out about here. */
static enum due what_is_due(struct hl_pagecache *cache, uint64_t page, uint64_t *sync,
			    struct hl_frame **frame)
{
	if (*sync)
		return A_SYNC;
	*frame = dirty_frame(cache, page);
	if (*frame)
		return A_WRITE;
	if (hl_pageset_has(&cache->lost, page))
		return WRITTEN_ANEW;
	if (hl_pageset_has(&cache->written, page))
		*sync = cache->syncs + 1;
	else if (cache->syncing)
		*sync = cache->syncs;
	else
		return NOTHING;
	return A_SYNC;
}

void hl_orders_written(struct hl_pagecache *cache, uint64_t page)
{
	struct hl_order_page *node = find(&cache->orders, page);

	for (struct order *order = node ? node->out : NULL; order; order = order->next_out)
		order->sync = cache->syncs + 1;
}

static void end_if_synced(struct hl_orders *orders, struct order *order)
{
	if (order->sync && order->sync <= orders->synced)
		drop(orders, order);
}

void hl_orders_synced(struct hl_pagecache *cache)
{
	cache->orders.synced = cache->syncs;
	each(&cache->orders, end_if_synced);
}

static void begin_anew(struct hl_orders *orders, struct order *order)
{
	(void)orders;
	order->sync = 0;
}

void hl_orders_lost(struct hl_pagecache *cache)
{
	each(&cache->orders, begin_anew);
}

static void end(struct hl_orders *orders, struct order *order)
{
	drop(orders, order);
}

void hl_orders_free(struct hl_pagecache *cache)
{
	each(&cache->orders, end);
	free(cache->orders.bucket);
}

/* ---- Before a page is written ---- */

/* What has to be done before some pages can be written. */
struct need {
	struct hl_frame *ready[HL_BATCH]; /* claimed, and nothing goes before them */
	unsigned n_ready;
	struct hl_frame *next; /* to be written, and something goes before it, or others have it */
	uint64_t next_page;
	bool sync;
	int error;
};

static void need_written(struct hl_pagecache *cache, const struct hl_order_page *first,
			 struct hl_frame *frame, struct need *need)
{
	if (!first->in && need->n_ready < HL_BATCH && hl_write_claim(frame)) {
		if (hl_frame_page(frame) == first->page) {
			need->ready[need->n_ready++] = frame;
			return;
		}
		hl_frame_unshare(cache, frame, HL_FRAME_WRITING);
	}
	need->next = frame;
	need->next_page = first->page;
}

/* With written_lock held. */
static void look_before(struct hl_pagecache *cache, struct hl_order_page *then, struct need *need)
{
	struct order *next;

	then->users++;
	for (struct order *order = then->in; order; order = next) {
		struct hl_frame *frame = NULL;

		next = order->next_in;
		switch (what_is_due(cache, order->first->page, &order->sync, &frame)) {
		case NOTHING:
			drop(&cache->orders, order);
			break;
		case A_SYNC:
			need->sync = true;
			break;
		case A_WRITE:
			need_written(cache, order->first, frame, need);
			break;
		case WRITTEN_ANEW:
			need->error = cache->lost_error;
			break;
		}
	}
	then->users--;
	free_if_unused(&cache->orders, then);
}

unsigned hl_orders_split(struct hl_pagecache *cache, struct hl_frame **frame, unsigned n)
{
	unsigned may = 0, may_not = n;

	pthread_mutex_lock(&cache->written_lock);
	while (cache->orders.n && may < may_not) {
		const struct hl_order_page *node = find(&cache->orders, hl_frame_page(frame[may]));
		struct hl_frame *ordered = frame[may];

		if (!node || !node->in) {
			may++;
			continue;
		}
		frame[may] = frame[--may_not];
		frame[may_not] = ordered;
	}
	pthread_mutex_unlock(&cache->written_lock);
	return may_not;
}

void hl_orders_prepare(struct hl_pagecache *cache, struct hl_local *local, struct hl_frame **frame,
		       unsigned n)
{
	struct need need = { .n_ready = 0 };

	pthread_mutex_lock(&cache->written_lock);
	for (unsigned i = 0; i < n; i++) {
		struct hl_order_page *node = find(&cache->orders, hl_frame_page(frame[i]));

		if (node)
			look_before(cache, node, &need);
	}
	pthread_mutex_unlock(&cache->written_lock);
	if (need.n_ready) {
		need.sync = true;
		hl_write_unordered(cache, local, need.ready, need.n_ready);
	}
	if (need.sync)
		hl_sync_written(cache, local);
}

int hl_claim_dirty(struct hl_pagecache *cache, struct hl_frame *frame, uint64_t page)
{
	for (;;) {
		uint64_t word;

		if (hl_write_claim(frame)) {
			if (hl_frame_page(frame) == page)
				return 1;
			hl_frame_unshare(cache, frame, HL_FRAME_WRITING);
			return 0;
		}
		word = atomic_load_explicit(&frame->word, memory_order_acquire);
		if (hl_frame_page(frame) != page || !(word & (HL_FRAME_DIRTY | HL_FRAME_WRITING)))
			return 0;
		if (word & HL_FRAME_WRITING)
			hl_frame_wait(frame, word, 0);
		else if (word & HL_FRAME_EXCL || (word & HL_FRAME_COUNT) == HL_FRAME_COUNT)
			return -EBUSY;
	}
}

/* Goes from a page to one before it; 0 also if that need not be written any more. */
static int descend(struct hl_pagecache *cache, const struct need *need, struct hl_order_page **at,
		   struct hl_frame **busy)
{
	int rc = hl_claim_dirty(cache, need->next, need->next_page);
	const struct order *order;
	struct hl_order_page *node;

	if (rc < 0)
		*busy = need->next;
	if (rc <= 0)
		return rc;
	pthread_mutex_lock(&cache->written_lock);
	node = find(&cache->orders, need->next_page);
	order = node ? order_between(node, *at) : NULL;
	if (order && !order->sync) { /* and it stays so: see the top */
		node->users++;
		node->up = *at;
		node->frame = need->next;
		*at = node;
	} else {
		rc = 0;
	}
	pthread_mutex_unlock(&cache->written_lock);
	if (!rc)
		hl_frame_unshare(cache, need->next, HL_FRAME_WRITING);
	return 0;
}

/* Leaves a page of the path, whose frame is still claimed and returned. */
static struct hl_frame *ascend(struct hl_pagecache *cache, struct hl_order_page **at)
{
	struct hl_order_page *node = *at;
	struct hl_frame *frame;

	pthread_mutex_lock(&cache->written_lock);
	frame = node->frame;
	*at = node->up;
	node->users--;
	free_if_unused(&cache->orders, node);
	pthread_mutex_unlock(&cache->written_lock);
	return frame;
}

/* One step towards the top of the path; *done: there is nothing left before it. */
static int step(struct hl_pagecache *cache, struct hl_local *local, struct hl_order_page *top,
		struct hl_order_page **at, struct hl_frame **busy, bool *done)
{
	struct need need = { .n_ready = 0 };
	struct hl_frame *frame;

	pthread_mutex_lock(&cache->written_lock);
	look_before(cache, *at, &need);
	pthread_mutex_unlock(&cache->written_lock);
	if (need.n_ready)
		return hl_write_unordered(cache, local, need.ready, need.n_ready);
	if (need.error)
		return need.error;
	if (need.next)
		return descend(cache, &need, at, busy);
	if (need.sync)
		return hl_sync_written(cache, local);
	*done = *at == top;
	if (*done)
		return 0;
	frame = ascend(cache, at);
	return hl_write_unordered(cache, local, &frame, 1);
}

int hl_orders_settle(struct hl_pagecache *cache, struct hl_local *local, uint64_t page,
		     struct hl_frame **busy)
{
	struct hl_order_page *top, *at;
	bool done = false;
	int rc = 0;

	pthread_mutex_lock(&cache->written_lock);
	at = top = find(&cache->orders, page);
	if (top)
		top->users++;
	pthread_mutex_unlock(&cache->written_lock);
	if (!top)
		return 0;
	while (!rc && !done)
		rc = step(cache, local, top, &at, busy, &done);
	while (at != top)
		hl_frame_unshare(cache, ascend(cache, &at), HL_FRAME_WRITING);
	pthread_mutex_lock(&cache->written_lock);
	top->users--;
	free_if_unused(&cache->orders, top);
	pthread_mutex_unlock(&cache->written_lock);
	return rc;
}

/* ---- For the program ---- */

/* With written_lock held. */
static int add(struct hl_pagecache *cache, uint64_t first, uint64_t then, uint64_t sync)
{
	struct hl_orders *orders = &cache->orders;
	struct hl_order_page *before = get(orders, first), *after = get(orders, then);
	struct order *order = before && after ? order_between(before, after) : NULL;
	int rc = 0;

	if (order) {
		order->sync = sync;
		return 0;
	}
	if (before && after && goes_before(orders, after, before))
		rc = -EDEADLK;
	else if (before && after)
		order = aligned_alloc(_Alignof(struct order), sizeof(*order));
	if (order) {
		*order = (struct order){ .first = before, .then = after, .sync = sync };
		link_up(orders, order);
		return 0;
	}
	free_if_unused(orders, before);
	free_if_unused(orders, after);
	return rc ? rc : -ENOMEM;
}

int hl_page_write_before(struct hl_pagecache *cache, uint64_t first, uint64_t then)
{
	struct hl_frame *frame;
	uint64_t sync = 0, pages;
	int rc = hl_cache_may_change(cache);

	if (rc)
		return rc;
	pages = atomic_load_explicit(&cache->pages, memory_order_relaxed);
	if (first == then)
		return -EINVAL;
	if (first >= pages || then >= pages)
		return -ERANGE;
	pthread_mutex_lock(&cache->written_lock);
	if (what_is_due(cache, first, &sync, &frame) != NOTHING)
		rc = add(cache, first, then, sync);
	pthread_mutex_unlock(&cache->written_lock);
	return rc;
}
