// SPDX-License-Identifier: MIT
/*
 * What the device gives to one who reads a file from its beginning to its end in large blocks and
 * knows that he does, past the kernel's page cache; as dd with iflag=direct.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/pages.h"

#define BLOCK_PAGES 64u

static int fd;
static __thread char *block;
static __thread uint64_t first; /* page of the block */

static int open_file(const struct pages_setup *setup)
{
	fd = open(setup->path, O_RDONLY | O_CLOEXEC | O_DIRECT);
	return fd < 0 ? -errno : 0;
}

static int read_block(uint64_t page)
{
	const size_t bytes = (size_t)BLOCK_PAGES * BENCH_PAGE;

	if (!block && posix_memalign((void **)&block, BENCH_PAGE, bytes))
		return -ENOMEM;
	first = page - page % BLOCK_PAGES;
	/* The last may be shorter. */
	if (pread(fd, block, bytes, (off_t)(first * BENCH_PAGE)) <
	    (ssize_t)((page - first + 1) * BENCH_PAGE))
		return -EIO;
	return 0;
}

static int read_file(const uint64_t *page, unsigned n, uint64_t *sum)
{
	for (unsigned i = 0; i < n; i++) {
		int rc = block && page[i] - first < BLOCK_PAGES ? 0 : read_block(page[i]);

		if (rc)
			return rc;
		*sum += *(uint64_t *)(block + (page[i] - first) * BENCH_PAGE);
	}
	return 0;
}

const struct pages_peer pages_blocks = {
	.name = "blocks",
	.kind = BENCH_LIMIT,
	.open = open_file,
	.read = read_file,
};
