// SPDX-License-Identifier: MIT
/*
 * Reading several pages at once: those that are not in memory get a frame each, and all
 * frames go to the device in one submission. Nothing is waited for while frames are
 * held that nobody else can use, but the device.
 */
#include "pagecache/table.h"

#include <errno.h>
#include <stdlib.h>

struct load {
	struct hl_frame *frame[HL_BATCH];
	unsigned n;
};

/* Takes a frame for a page that is not in memory; 0 also if it is, or is on its way. */
static int claim(struct hl_pagecache *cache, struct hl_local *local, struct load *load,
		 uint64_t page)
{
	struct hl_frame *frame;
	int rc;

	if (page >= atomic_load_explicit(&cache->pages, memory_order_relaxed))
		return -ERANGE;
	if (hl_table_find(cache, page))
		return 0;
	frame = hl_frame_get_now(cache, local, &rc);
	if (!frame)
		return rc;
	if (hl_table_insert(cache, frame, page))
		hl_frame_put(cache, frame);
	else
		load->frame[load->n++] = frame;
	return 0;
}

static void finish(struct hl_pagecache *cache, struct hl_frame *frame, int error)
{
	if (error) {
		hl_table_remove(cache, frame);
		hl_frame_put(cache, frame);
	} else {
		hl_frame_unlock(cache, frame, 0, HL_FRAME_RESIDENT + HL_FRAME_FRESH);
	}
}

unsigned hl_load(struct hl_pagecache *cache, struct hl_local *local, const uint64_t *page,
		 unsigned n)
{
	int error[HL_BATCH], rc = 0;
	struct load load = { .n = 0 };
	unsigned loaded = 0;

	for (unsigned i = 0; i < n && !rc; i++)
		rc = claim(cache, local, &load, page[i]);
	if (!load.n)
		return 0;
	hl_sort_by_page(load.frame, load.n);
	hl_transfer(cache, local, load.frame, load.n, false, error);
	for (unsigned i = 0; i < load.n; i++) {
		finish(cache, load.frame[i], error[i]);
		loaded += !error[i];
	}
	return loaded;
}

unsigned hl_load_range(struct hl_pagecache *cache, struct hl_local *local, uint64_t first,
		       uint64_t n)
{
	/* Not so much at once that what is in use has to go. */
	uint64_t most = atomic_load_explicit(&cache->n_frames, memory_order_relaxed) / 4;
	uint64_t pages = atomic_load_explicit(&cache->pages, memory_order_relaxed);
	uint64_t page[HL_BATCH];

	if (n > most)
		n = most;
	if (n > HL_BATCH)
		n = HL_BATCH;
	if (first >= pages)
		return 0;
	if (n > pages - first)
		n = pages - first;
	for (unsigned i = 0; i < n; i++)
		page[i] = first + i;
	return hl_load(cache, local, page, (unsigned)n);
}

/* ---- Fixing several pages ---- */

struct wanted {
	uint64_t page;
	unsigned place; /* in the caller's arrays */
};

static int by_page(const void *a, const void *b)
{
	const struct wanted *left = a, *right = b;

	return left->page < right->page ? -1 : left->page > right->page;
}

/* In the order of their numbers, so that two threads that want the same pages do not wait
 * for each other. */
static int fix_in_order(struct hl_pagecache *cache, const struct wanted *wanted, unsigned n,
			unsigned how, void **data)
{
	for (unsigned i = 0; i < n; i++) {
		int rc = hl_page_fix(cache, wanted[i].page, how, &data[wanted[i].place]);

		if (!rc)
			continue;
		while (i--)
			hl_page_unfix(cache, data[wanted[i].place]);
		return rc;
	}
	return 0;
}

int hl_page_fix_many(struct hl_pagecache *cache, const uint64_t *page, unsigned n, unsigned how,
		     void **data)
{
	struct wanted wanted[HL_BATCH];
	struct hl_local *local;
	unsigned loaded = 0;
	int rc;

	if (!hl_cache_is_ours(cache))
		return -ECHILD;
	if (n > HL_PAGES_AT_ONCE)
		return -EINVAL;
	local = hl_local_get(cache);
	if (!local)
		return -ENOMEM;
	for (unsigned i = 0; i < n; i++)
		wanted[i] = (struct wanted){ page[i], i };
	qsort(wanted, n, sizeof(*wanted), by_page);
	if (!(how & HL_PAGE_TRY) && (how & HL_PAGE_NEW) != HL_PAGE_NEW)
		loaded = hl_load(cache, local, page, n);
	rc = fix_in_order(cache, wanted, n, how, data);
	hl_count_read(local, rc ? 0 : loaded);
	return rc;
}
