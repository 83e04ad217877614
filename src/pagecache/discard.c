// SPDX-License-Identifier: MIT
/*
 * Throwing pages away.
 */
#include "pagecache/table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* Puts zeroes where the file system cannot take the room back. */
static int write_zeroes(struct hl_pagecache *cache, uint64_t page)
{
	struct iovec iov = { NULL, hl_page_bytes(cache) };
	struct hl_io_request request = {
		.iov = &iov, .n_iov = 1, .write = true, .offset = page << cache->page_shift
	};

	if (posix_memalign(&iov.iov_base, hl_page_bytes(cache), hl_page_bytes(cache)))
		return -ENOMEM;
	memset(iov.iov_base, 0, hl_page_bytes(cache));
	cache->io->run(cache->fd, &request, 1);
	free(iov.iov_base);
	if (request.result < 0)
		return (int)request.result;
	return request.result == (ssize_t)hl_page_bytes(cache) ? 0 : -EIO;
}

static int clear_in_file(struct hl_pagecache *cache, uint64_t page)
{
	off_t offset = (off_t)(page << cache->page_shift);
	int state = hl_no_cancel(), rc = 0;

	if (fallocate(cache->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset,
		      (off_t)hl_page_bytes(cache)))
		rc = -errno;
	hl_cancel_as_before(state);
	return rc == -EOPNOTSUPP || rc == -ENOSYS ? write_zeroes(cache, page) : rc;
}

/* In the file, and for the next sync to make sure of. */
static int discard_in_file(struct hl_pagecache *cache, uint64_t page)
{
	uint64_t failed_before;
	int rc;

	do {
		failed_before = hl_failed_syncs(cache);
		rc = clear_in_file(cache, page);
	} while (!rc && !hl_note_written(cache, failed_before, &page, 1, false));
	return rc;
}

/* Who only reads it from the device or writes it there is waited for. */
static bool is_fixed(struct hl_pagecache *cache, uint64_t page)
{
	struct hl_frame *frame = hl_table_find(cache, page);
	uint64_t word;

	if (!frame || hl_frame_page(frame) != page)
		return false;
	word = atomic_load_explicit(&frame->word, memory_order_relaxed);
	if (!(word & HL_FRAME_RESIDENT) || word & (HL_FRAME_EVICTING | HL_FRAME_WRITING))
		return false;
	return word & (HL_FRAME_EXCL | HL_FRAME_COUNT) ||
	       (word & HL_FRAME_SPREAD && hl_pins_have(cache, frame));
}

/* A page that is discarded is written, with zeroes: what goes before it goes before that. */
static int settle_orders(struct hl_pagecache *cache, uint64_t page)
{
	struct hl_local *local = hl_local_get(cache);
	struct hl_frame *busy;

	return local ? hl_orders_settle(cache, local, page, &busy) : -ENOMEM;
}

/* Fixes the page without reading it, makes it zeroes in the file and in memory. */
static int discard_in_memory(struct hl_pagecache *cache, uint64_t page)
{
	struct hl_frame *frame;
	void *data;
	int rc;

	rc = hl_page_fix(cache, page, HL_PAGE_NEW, &data);
	if (rc)
		return rc == -EDEADLK ? -EBUSY : rc;
	frame = &cache->frame[((char *)data - cache->data) >> cache->page_shift];
	rc = settle_orders(cache, page);
	if (!rc)
		rc = discard_in_file(cache, page);
	if (!rc) {
		memset(data, 0, hl_page_bytes(cache));
		atomic_fetch_and_explicit(&frame->word, ~HL_FRAME_DIRTY, memory_order_relaxed);
		hl_count_add(hl_local_get(cache), HL_CLEANED, 1); /* it has one by now */
	}
	hl_page_unfix(cache, data);
	return rc;
}

/* No frame is needed for what is in none, so that a full disk, to which nothing can be written to
 * make room, can be made emptier. Who read it meanwhile has a frame for it by then, and is waited
 * for, since the file has not got the page any more. */
static int discard_page(struct hl_pagecache *cache, uint64_t page)
{
	int rc;

	if (hl_table_has(cache, page))
		return is_fixed(cache, page) ? -EBUSY : discard_in_memory(cache, page);
	rc = settle_orders(cache, page);
	if (!rc)
		rc = discard_in_file(cache, page);
	if (rc || !hl_table_has(cache, page))
		return rc;
	return discard_in_memory(cache, page);
}

int hl_pagecache_discard(struct hl_pagecache *cache, uint64_t first, uint64_t n)
{
	uint64_t pages;
	int rc = hl_cache_may_change(cache);

	if (rc)
		return rc;
	pages = atomic_load_explicit(&cache->pages, memory_order_relaxed);
	if (first > pages || n > pages - first)
		return -ERANGE;
	for (uint64_t i = 0; i < n && !rc; i++)
		rc = discard_page(cache, first + i);
	return rc;
}
