// SPDX-License-Identifier: MIT
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/pages.h"

#define AT_ONCE 256u

static int fill(int fd, uint64_t pages)
{
	static uint64_t block[AT_ONCE * BENCH_PAGE / sizeof(uint64_t)];

	for (uint64_t first = 0; first < pages; first += AT_ONCE) {
		size_t n = pages - first < AT_ONCE ? (size_t)(pages - first) : AT_ONCE;

		for (size_t i = 0; i < n; i++)
			block[i * BENCH_PAGE / sizeof(uint64_t)] = first + i;
		if (pwrite(fd, block, n * BENCH_PAGE, (off_t)(first * BENCH_PAGE)) !=
		    (ssize_t)(n * BENCH_PAGE))
			return -1;
	}
	return fdatasync(fd) || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

const char *bench_pages_file(enum pages_place place, uint64_t pages)
{
	static char path[4096], name[64];
	const char *directory = getenv("TMPDIR");
	int fd;

	if (place == PAGES_IN_RAM)
		directory = "/dev/shm";
	else if (!directory)
		directory = "/var/tmp";
	snprintf(path, sizeof(path), "%s/hotline-bench-XXXXXX", directory);
	fd = mkstemp(path);
	if (fd < 0)
		return NULL;
	unlink(path);
	/* What has no name is reached by its descriptor, and is gone when it is closed. */
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	return fill(fd, pages) ? NULL : name;
}
