// SPDX-License-Identifier: MIT
#include <stdatomic.h>
#include <string.h>

#include <hotline/pagecache.h>

#include "bench/pages.h"

static struct hl_pagecache *cache;

static int open_cache(const struct pages_setup *setup)
{
	const struct hl_pagecache_options options = { .limit = setup->limit * BENCH_PAGE };

	return hl_pagecache_open(&cache, setup->path, &options);
}

static int read_fixed(const uint64_t *page, unsigned n, uint64_t *sum)
{
	for (unsigned i = 0; i < n; i++) {
		void *data;
		int rc = hl_page_fix(cache, page[i], HL_PAGE_SHARED, &data);

		if (rc)
			return rc;
		*sum += *(uint64_t *)data;
		hl_page_unfix(cache, data);
	}
	return 0;
}

static int read_optimistically(const uint64_t *page, unsigned n, uint64_t *sum)
{
	for (unsigned i = 0; i < n; i++) {
		struct hl_page_read read;
		uint64_t value;

		do {
			int rc = hl_page_read_begin(cache, page[i], &read);

			if (rc)
				return rc;
			value = atomic_load_explicit((const _Atomic(uint64_t) *)read.data,
						     memory_order_relaxed);
		} while (!hl_page_read_valid(&read));
		*sum += value;
	}
	return 0;
}

static int read_many(const uint64_t *page, unsigned n, uint64_t *sum)
{
	void *data[BENCH_PAGES_AT_ONCE];
	int rc = hl_page_fix_many(cache, page, n, HL_PAGE_SHARED, data);

	for (unsigned i = 0; i < n && !rc; i++) {
		*sum += *(uint64_t *)data[i];
		hl_page_unfix(cache, data[i]);
	}
	return rc;
}

static bool hits(uint64_t page)
{
	void *data;

	return !hl_page_fix(cache, page, HL_PAGE_SHARED | HL_PAGE_TRY, &data) &&
	       !hl_page_unfix(cache, data);
}

static int write_pages(uint64_t first, unsigned n, uint64_t value)
{
	for (unsigned i = 0; i < n; i++) {
		void *data;
		int rc = hl_page_fix(cache, first + i, HL_PAGE_NEW, &data);

		if (rc)
			return rc;
		memset(data, (int)value, BENCH_PAGE);
		hl_page_unfix(cache, data);
	}
	return 0;
}

const struct pages_peer pages_hotline = {
	.name = "hotline",
	.kind = BENCH_OURS,
	.open = open_cache,
	.read = read_fixed,
	.write = write_pages,
	.hits = hits,
};
const struct pages_peer pages_hotline_optimistic = {
	.name = "hotline-optimistic",
	.kind = BENCH_OURS,
	.open = open_cache,
	.read = read_optimistically,
};
const struct pages_peer pages_hotline_batch = {
	.name = "hotline",
	.kind = BENCH_OURS,
	.open = open_cache,
	.read = read_many,
};
const struct pages_peer pages_hotline_one_by_one = {
	.name = "hotline-one-by-one",
	.kind = BENCH_OURS,
	.open = open_cache,
	.read = read_fixed,
};
