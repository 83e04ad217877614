// SPDX-License-Identifier: MIT
/*
 * Which frame a page is in: an open hash of buckets of one line, that never moves an entry.
 *
 * It has seven slots for every frame or two, so it takes 32 to 64 bytes a frame whatever
 * the length of the file: an array with a word for each page of the file would be faster
 * by a multiplication and would outgrow the cache when the file is a thousand times as
 * large. A page whose bucket is full goes to the next, and the buckets that it passed count
 * it, so that a search knows when to stop.
 *
 * Memory ordering
 *
 * TABLE_SLOT: insert() stores a slot with release, after the frame's page; find() loads with
 *	acquire. Without it a search finds a frame that does not yet say which page it is to
 *	hold, and passes it over.
 *
 * A search runs beside insertions and removals: what it returns may have become another
 * page's, and what it does not find may just have come. Who fixes looks at the frame again,
 * and who inserts searches with the stripe held.
 */
#include "pagecache/table.h"

#include <errno.h>

static pthread_mutex_t *stripe_of(struct hl_pagecache *cache, uint64_t hashed)
{
	return &cache->stripe[hl_table_home(cache, hashed) % HL_STRIPES].lock;
}

struct hl_frame *hl_table_search(const struct hl_pagecache *cache, uint64_t page)
{
	uint64_t hashed = hl_table_hash(page), tag = hl_table_tag(hashed);
	const struct hl_bucket *bucket = &cache->bucket[hl_table_home(cache, hashed)];

	for (uint32_t n = 0; n < cache->n_buckets; n++) {
		for (unsigned i = 0; i < HL_BUCKET_SLOTS; i++) {
			struct hl_frame *frame = hl_table_look(cache, &bucket->slot[i], tag, page);

			if (frame)
				return frame;
		}
		if (!atomic_load_explicit(&bucket->passed, memory_order_relaxed))
			break;
		bucket = hl_table_after(cache, bucket);
	}
	return NULL;
}

/* Pages of other stripes come and go in the same bucket. */
static bool put_into(struct hl_bucket *bucket, uint64_t slot, unsigned first)
{
	for (unsigned n = 0; n < HL_BUCKET_SLOTS; n++) {
		unsigned i = (first + n) % HL_BUCKET_SLOTS;
		uint64_t none = 0;

		/* TABLE_SLOT, pairs with hl_table_look() */
		if (!atomic_load_explicit(&bucket->slot[i], memory_order_relaxed) &&
		    atomic_compare_exchange_strong_explicit(&bucket->slot[i], &none, slot,
							    memory_order_release,
							    memory_order_relaxed))
			return true;
	}
	return false;
}

static bool take_from(struct hl_bucket *bucket, uint64_t slot)
{
	for (unsigned i = 0; i < HL_BUCKET_SLOTS; i++) {
		if (atomic_load_explicit(&bucket->slot[i], memory_order_relaxed) == slot) {
			atomic_store_explicit(&bucket->slot[i], 0, memory_order_relaxed);
			return true;
		}
	}
	return false;
}

bool hl_table_has(struct hl_pagecache *cache, uint64_t page)
{
	pthread_mutex_t *lock = stripe_of(cache, hl_table_hash(page));
	bool has;

	pthread_mutex_lock(lock);
	has = hl_table_find(cache, page) != NULL;
	pthread_mutex_unlock(lock);
	return has;
}

int hl_table_insert(struct hl_pagecache *cache, struct hl_frame *frame, uint64_t page)
{
	uint64_t hashed = hl_table_hash(page);
	uint64_t slot = hl_table_tag(hashed) | (hl_frame_number(cache, frame) + 1);
	struct hl_bucket *bucket = &cache->bucket[hl_table_home(cache, hashed)];
	pthread_mutex_t *lock = stripe_of(cache, hashed);

	pthread_mutex_lock(lock);
	if (hl_table_find(cache, page)) {
		pthread_mutex_unlock(lock);
		return -EEXIST;
	}
	atomic_store_explicit(&frame->page, page, memory_order_relaxed);
	atomic_store_explicit(&frame->last, 0, memory_order_relaxed);
	atomic_store_explicit(&frame->paid, 0, memory_order_relaxed);
	/* There are more slots than frames. A page is counted before it can be found behind. */
	while (!put_into(bucket, slot, hl_table_first(hashed))) {
		atomic_fetch_add_explicit(&bucket->passed, 1, memory_order_relaxed);
		bucket = hl_table_after(cache, bucket);
	}
	pthread_mutex_unlock(lock);
	return 0;
}

void hl_table_remove(struct hl_pagecache *cache, struct hl_frame *frame)
{
	uint64_t hashed = hl_table_hash(hl_frame_page(frame));
	uint64_t slot = hl_table_tag(hashed) | (hl_frame_number(cache, frame) + 1);
	struct hl_bucket *bucket = &cache->bucket[hl_table_home(cache, hashed)];
	pthread_mutex_t *lock = stripe_of(cache, hashed);

	pthread_mutex_lock(lock);
	while (!take_from(bucket, slot)) {
		atomic_fetch_sub_explicit(&bucket->passed, 1, memory_order_relaxed);
		bucket = hl_table_after(cache, bucket);
	}
	atomic_store_explicit(&frame->page, HL_NO_PAGE, memory_order_relaxed);
	pthread_mutex_unlock(lock);
}
