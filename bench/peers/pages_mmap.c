// SPDX-License-Identifier: MIT
/*
 * The file mapped, and the kernel told that it is read at random.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "bench/pages.h"

static char *map;
static size_t bytes;

static int open_map(const struct pages_setup *setup)
{
	int fd = open(setup->path, O_RDWR | O_CLOEXEC);

	bytes = setup->pages * BENCH_PAGE;
	if (fd < 0)
		return -errno;
	map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return map == MAP_FAILED || madvise(map, bytes, MADV_RANDOM) ? -errno : 0;
}

static int read_map(const uint64_t *page, unsigned n, uint64_t *sum)
{
	for (unsigned i = 0; i < n; i++)
		*sum += *(const volatile uint64_t *)(map + page[i] * BENCH_PAGE);
	return 0;
}

static int write_map(uint64_t first, unsigned n, uint64_t value)
{
	memset(map + first * BENCH_PAGE, (int)value, (size_t)n * BENCH_PAGE);
	return 0;
}

const struct pages_peer pages_mmap = {
	.name = "mmap",
	.kind = BENCH_PEER,
	.kernel = true,
	.open = open_map,
	.read = read_map,
	.write = write_map,
};
