// SPDX-License-Identifier: MIT
/*
 * What there is and what was done. The states are counted by looking at each frame once, so
 * that they add up whatever happens meanwhile.
 */
#include "pagecache/internal.h"

#include <errno.h>
#include <string.h>

static void count_frame(struct hl_pagecache_stats *stats, uint64_t word)
{
	stats->total++;
	stats->active += (word & HL_FRAME_ACTIVE) != 0;
	if (hl_frame_is_fixed(word))
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

	for (const struct hl_local *local = cache->locals; local; local = local->next_of_cache)
		total += atomic_load_explicit(&local->count[which], memory_order_relaxed);
	return total;
}

int hl_pagecache_get_stats(struct hl_pagecache *cache, struct hl_pagecache_stats *stats)
{
	if (!hl_cache_is_ours(cache))
		return -ECHILD;
	memset(stats, 0, sizeof(*stats));
	for (uint32_t i = 0; i < hl_frames_ever(cache); i++) {
		uint64_t word = atomic_load_explicit(&cache->frame[i].word, memory_order_relaxed);

		/* Above the limit there may be pages that cannot be dropped yet. */
		if (i < atomic_load_explicit(&cache->n_frames, memory_order_relaxed) ||
		    word & HL_FRAME_RESIDENT)
			count_frame(stats, word);
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
