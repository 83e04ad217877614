/* SPDX-License-Identifier: MIT */
/*
 * Searching the table: see table.c.
 */
#ifndef HL_PAGECACHE_TABLE_H
#define HL_PAGECACHE_TABLE_H

#include "pagecache/internal.h"

static inline uint64_t hl_table_hash(uint64_t page)
{
	return page * UINT64_C(0x9e3779b97f4a7c15);
}

static inline uint32_t hl_table_home(const struct hl_pagecache *cache, uint64_t hashed)
{
	return (uint32_t)(hashed >> cache->bucket_shift);
}

static inline uint64_t hl_table_tag(uint64_t hashed)
{
	return hashed << 32;
}

static inline struct hl_bucket *hl_table_after(const struct hl_pagecache *cache,
					       const struct hl_bucket *bucket)
{
	return &cache->bucket[(uint32_t)(bucket - cache->bucket + 1) & (cache->n_buckets - 1)];
}

/* Where in its bucket a page is put if the slot is free, so that most searches look at one. */
static inline unsigned hl_table_first(uint64_t hashed)
{
	return (unsigned)(((uint64_t)(uint32_t)hashed * HL_BUCKET_SLOTS) >> 32);
}

/* The frame of a page if a slot says so, or NULL. */
static inline struct hl_frame *hl_table_look(const struct hl_pagecache *cache,
					     const _Atomic(uint64_t) *place, uint64_t tag,
					     uint64_t page)
{
	/* TABLE_SLOT, pairs with put_into() */
	uint64_t slot = atomic_load_explicit(place, memory_order_acquire);
	struct hl_frame *frame = &cache->frame[(uint32_t)slot - 1];

	if ((slot ^ tag) >> 32 || !(uint32_t)slot || hl_frame_page(frame) != page)
		return NULL;
	return frame;
}

struct hl_frame *hl_table_search(const struct hl_pagecache *cache, uint64_t page);

/* Finds the frame that holds or is to hold a page. It may be another's by now. */
static inline struct hl_frame *hl_table_find(const struct hl_pagecache *cache, uint64_t page)
{
	uint64_t hashed = hl_table_hash(page);
	const struct hl_bucket *bucket = &cache->bucket[hl_table_home(cache, hashed)];
	struct hl_frame *frame = hl_table_look(cache, &bucket->slot[hl_table_first(hashed)],
					       hl_table_tag(hashed), page);

	return __builtin_expect(frame != NULL, 1) ? frame : hl_table_search(cache, page);
}

#endif
