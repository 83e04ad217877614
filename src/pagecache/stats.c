// SPDX-License-Identifier: MIT
/*
 * What there is and what was done. The states are counted by looking at each frame once, so
 * that they add up whatever happens meanwhile.
 */
#include "pagecache/internal.h"

#include <errno.h>
#include <string.h>

/* Which frames may be pinned: those whose number's rest has its bit set. */
#define RESTS 1024u

struct pinned {
	uint64_t bit[RESTS / 64];
};

static void find_pinned(const struct hl_pagecache *cache, struct pinned *pinned)
{
	memset(pinned, 0, sizeof(*pinned));
	for (const struct hl_local *local =
		     atomic_load_explicit(&cache->locals, memory_order_acquire);
	     local; local = local->next_of_cache) {
		for (unsigned i = 0; i < HL_PINS; i++) {
			uint32_t pin = atomic_load_explicit(&local->pin[i], memory_order_relaxed);
			uint32_t rest = (pin - 1) % RESTS;

			if (pin)
				pinned->bit[rest / 64] |= UINT64_C(1) << rest % 64;
		}
	}
}

static bool is_pinned(const struct hl_pagecache *cache, const struct pinned *pinned, uint32_t i,
		      uint64_t word)
{
	return word & HL_FRAME_SPREAD && pinned->bit[i % RESTS / 64] >> i % 64 & 1 &&
	       hl_pins_have(cache, &cache->frame[i]);
}

static void count_frame(struct hl_pagecache_stats *stats, uint64_t word, bool pinned)
{
	stats->total++;
	stats->active += (word & HL_FRAME_ACTIVE) != 0;
	if (pinned || hl_frame_is_fixed(word))
		stats->fixed++;
	else if (!(word & HL_FRAME_RESIDENT))
		stats->free++;
	else if (word & HL_FRAME_DIRTY)
		stats->dirty++;
	else
		stats->clean++;
}

static uint64_t sum(const struct hl_pagecache *cache, enum hl_count which)
{
	uint64_t total = 0;

	for (const struct hl_local *local =
		     atomic_load_explicit(&cache->locals, memory_order_acquire);
	     local; local = local->next_of_cache)
		total += atomic_load_explicit(&local->count[which], memory_order_relaxed);
	return total;
}

int hl_pagecache_get_stats(struct hl_pagecache *cache, struct hl_pagecache_stats *stats)
{
	struct pinned pinned;

	if (!hl_cache_is_ours(cache))
		return -ECHILD;
	memset(stats, 0, sizeof(*stats));
	find_pinned(cache, &pinned);
	for (uint32_t i = 0; i < hl_frames_ever(cache); i++) {
		uint64_t word = atomic_load_explicit(&cache->frame[i].word, memory_order_relaxed);

		/* Above the limit there may be pages that cannot be dropped yet. */
		if (i < atomic_load_explicit(&cache->n_frames, memory_order_relaxed) ||
		    word & HL_FRAME_RESIDENT)
			count_frame(stats, word, is_pinned(cache, &pinned, i, word));
	}
	stats->direct = cache->direct;
	stats->uring = cache->io == &hl_io_uring;
	pthread_mutex_lock(&hl_pc_registry);
	stats->hits = sum(cache, HL_HITS);
	stats->misses = sum(cache, HL_MISSES);
	stats->pages_read = sum(cache, HL_PAGES_READ);
	stats->pages_written = sum(cache, HL_PAGES_WRITTEN);
	stats->reads = sum(cache, HL_READS);
	stats->writes = sum(cache, HL_WRITES);
	stats->evicted = sum(cache, HL_EVICTED);
	stats->reclaims = sum(cache, HL_RECLAIMS);
	stats->errors = sum(cache, HL_ERRORS);
	stats->leaked = sum(cache, HL_LEAKED);
	pthread_mutex_unlock(&hl_pc_registry);
	return 0;
}
