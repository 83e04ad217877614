// SPDX-License-Identifier: MIT
/*
 * Frames to the file and back: pages in a row go in one request, all requests at once. What
 * came short is continued; a request for several pages that fails is done again page by
 * page, so that an error concerns the pages that have it.
 */
#include "pagecache/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of a request: what devices take at once without splitting it. */
#define RUN_BYTES ((size_t)256 << 10)
#define MOST_IOV (RUN_BYTES >> 12)
/* What O_DIRECT wants offsets to be multiples of, on all there is. */
#define BLOCK ((size_t)4096)

static int by_page(const void *a, const void *b)
{
	uint64_t left = hl_frame_page(*(struct hl_frame *const *)a);
	uint64_t right = hl_frame_page(*(struct hl_frame *const *)b);

	return left < right ? -1 : left > right;
}

void hl_sort_by_page(struct hl_frame **frame, unsigned n)
{
	qsort(frame, n, sizeof(*frame), by_page);
}

/* What of a page the file has; the rest is zeroes. */
static size_t bytes_in_file(const struct hl_pagecache *cache, uint64_t page)
{
	uint64_t bytes = atomic_load_explicit(&cache->file_bytes, memory_order_relaxed);
	uint64_t offset = page << cache->page_shift;

	if (offset >= bytes)
		return 0;
	return bytes - offset < hl_page_bytes(cache) ? (size_t)(bytes - offset)
						     : hl_page_bytes(cache);
}

static size_t wanted_of(const struct hl_pagecache *cache, struct hl_frame *const *frame, unsigned n,
			bool write)
{
	size_t before = (size_t)(n - 1) << cache->page_shift;

	if (write)
		return before + hl_page_bytes(cache);
	return before + bytes_in_file(cache, hl_frame_page(frame[n - 1]));
}

/* What was not in the file of a page that is half behind its end. */
static void clear_rest(struct hl_pagecache *cache, struct hl_frame *frame)
{
	size_t bytes = bytes_in_file(cache, hl_frame_page(frame));

	memset((char *)hl_frame_data(cache, frame) + bytes, 0, hl_page_bytes(cache) - bytes);
}

/* The last page has been written whole. */
static void file_reaches(struct hl_pagecache *cache, uint64_t end)
{
	uint64_t bytes = atomic_load_explicit(&cache->file_bytes, memory_order_relaxed);

	while (bytes < end &&
	       !atomic_compare_exchange_weak_explicit(&cache->file_bytes, &bytes, end,
						      memory_order_relaxed, memory_order_relaxed))
		;
}

/* Does the rest of a request of which some bytes came; 0 or an error. */
static int go_on(struct hl_pagecache *cache, struct hl_frame *const *frame, unsigned n, bool write,
		 size_t done, size_t wanted)
{
	while (done < wanted) {
		struct iovec iov[MOST_IOV];
		size_t from = cache->direct ? done & ~(BLOCK - 1) : done;
		struct hl_io_request request = {
			.iov = iov,
			.write = write,
			.offset = (hl_frame_page(frame[0]) << cache->page_shift) + from,
		};

		for (unsigned i = (unsigned)(from >> cache->page_shift); i < n; i++) {
			size_t skip = request.n_iov ? 0 : from & (hl_page_bytes(cache) - 1);

			iov[request.n_iov++] =
				(struct iovec){ (char *)hl_frame_data(cache, frame[i]) + skip,
						hl_page_bytes(cache) - skip };
		}
		cache->io->run(cache->fd, &request, 1);
		if (request.result < 0)
			return (int)request.result;
		if (from + (size_t)request.result <= done)
			return write ? -EIO : -ENODATA;
		done = from + (size_t)request.result;
	}
	return 0;
}

/* What became of a request for pages in a row. */
static void conclude(struct hl_pagecache *cache, struct hl_frame *const *frame, unsigned n,
		     bool write, ssize_t result, int *error)
{
	size_t wanted = wanted_of(cache, frame, n, write);
	int rc = result < 0 ? (int)result : go_on(cache, frame, n, write, (size_t)result, wanted);

	if (rc && n > 1) {
		for (unsigned i = 0; i < n; i++)
			conclude(cache, frame + i, 1, write, 0, error + i);
		return;
	}
	for (unsigned i = 0; i < n; i++)
		error[i] = rc;
	if (rc)
		return;
	if (write)
		file_reaches(cache, (hl_frame_page(frame[n - 1]) + 1) << cache->page_shift);
	else
		clear_rest(cache, frame[n - 1]);
}

static unsigned length_of_run(const struct hl_pagecache *cache, struct hl_frame *const *frame,
			      unsigned n)
{
	unsigned most = (unsigned)(RUN_BYTES >> cache->page_shift), i = 1;

	while (i < n && i < most && hl_frame_page(frame[i]) == hl_frame_page(frame[0]) + i)
		i++;
	return i;
}

void hl_transfer(struct hl_pagecache *cache, struct hl_local *local, struct hl_frame **frame,
		 unsigned n, bool write, int *error)
{
	struct hl_io_request request[HL_BATCH];
	struct iovec iov[HL_BATCH];
	unsigned first[HL_BATCH + 1], n_requests = 0, n_failed = 0;

	for (unsigned i = 0; i < n; i++)
		iov[i] = (struct iovec){ hl_frame_data(cache, frame[i]), hl_page_bytes(cache) };
	for (unsigned i = 0; i < n; i = first[n_requests]) {
		unsigned run = length_of_run(cache, frame + i, n - i);

		request[n_requests] = (struct hl_io_request){
			.iov = iov + i,
			.n_iov = run,
			.write = write,
			.offset = hl_frame_page(frame[i]) << cache->page_shift,
		};
		first[n_requests++] = i;
		first[n_requests] = i + run;
	}
	cache->io->run(cache->fd, request, n_requests);
	for (unsigned i = 0; i < n_requests; i++)
		conclude(cache, frame + first[i], first[i + 1] - first[i], write, request[i].result,
			 error + first[i]);
	for (unsigned i = 0; i < n; i++)
		n_failed += error[i] != 0;
	hl_count_add(local, write ? HL_WRITES : HL_READS, n_requests);
	hl_count_add(local, write ? HL_PAGES_WRITTEN : HL_PAGES_READ, n - n_failed);
	hl_count_add(local, HL_ERRORS, n_failed);
}
