// SPDX-License-Identifier: MIT
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "faulty_io.h"
#include "pages.h"

char path[64];
struct hl_pagecache *cache;

int make_path(void **state)
{
	int fd;

	(void)state;
	/* Where the tests run, for /tmp may not know O_DIRECT. */
	strcpy(path, "pagecache-test-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	faulty_reset();
	cache = NULL;
	return 0;
}

int remove_path(void **state)
{
	(void)state;
	unlink(path);
	return 0;
}

void open_with(unsigned frames, uint64_t pages, unsigned flags, unsigned wait_ms)
{
	const struct hl_pagecache_options options = {
		.limit = frames * PAGE,
		.pages = pages,
		.flags = flags,
		.wait_ms = wait_ms,
		.write_after_ms = UINT_MAX,
	};

	assert_int_equal(hl_pagecache_open_by(&cache, path, &options, &faulty_io), 0);
}

void *fix(uint64_t page, unsigned how)
{
	void *data = NULL;

	assert_int_equal(hl_page_fix(cache, page, how, &data), 0);
	assert_non_null(data);
	return data;
}

void unfix(void *data)
{
	assert_int_equal(hl_page_unfix(cache, data), 0);
}

/* Gives a page a content that says which page it is and when it was written. */
void put(uint64_t page, uint64_t value)
{
	uint64_t *data = fix(page, HL_PAGE_EXCLUSIVE);

	for (unsigned i = 0; i < PAGE / sizeof(*data); i++)
		data[i] = (page << 32) ^ value ^ i;
	assert_int_equal(hl_page_dirty(cache, data), 0);
	unfix(data);
}

bool holds(const uint64_t *data, uint64_t page, uint64_t value)
{
	for (unsigned i = 0; i < PAGE / sizeof(*data); i++) {
		if (data[i] != ((page << 32) ^ value ^ i))
			return false;
	}
	return true;
}

void expect(uint64_t page, uint64_t value)
{
	void *data = fix(page, HL_PAGE_SHARED);

	assert_true(holds(data, page, value));
	unfix(data);
}

void expect_in_file(uint64_t page, uint64_t value)
{
	uint64_t data[PAGE / sizeof(uint64_t)];
	int fd = open(path, O_RDONLY);

	assert_int_equal(pread(fd, data, PAGE, (off_t)(page * PAGE)), PAGE);
	close(fd);
	assert_true(holds(data, page, value));
}

struct hl_pagecache_stats stats(void)
{
	struct hl_pagecache_stats now;

	assert_int_equal(hl_pagecache_get_stats(cache, &now), 0);
	assert_int_equal(now.free + now.clean + now.dirty + now.fixed, now.total);
	return now;
}

void close_cache(void)
{
	assert_int_equal(hl_pagecache_close(cache), 0);
}
