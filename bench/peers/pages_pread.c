// SPDX-License-Identifier: MIT
/*
 * A system call for each page, and the kernel's page cache.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "bench/pages.h"

static int fd;

static int open_file(const struct pages_setup *setup)
{
	fd = open(setup->path, O_RDONLY | O_CLOEXEC);
	return fd < 0 || posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM) ? -errno : 0;
}

static int read_file(const uint64_t *page, unsigned n, uint64_t *sum)
{
	uint64_t buffer[BENCH_PAGE / sizeof(uint64_t)];

	for (unsigned i = 0; i < n; i++) {
		if (pread(fd, buffer, BENCH_PAGE, (off_t)(page[i] * BENCH_PAGE)) != BENCH_PAGE)
			return -EIO;
		*sum += buffer[0];
	}
	return 0;
}

static bool hits(uint64_t page)
{
	char buffer[BENCH_PAGE];
	struct iovec iov = { buffer, sizeof(buffer) };

	return preadv2(fd, &iov, 1, (off_t)(page * BENCH_PAGE), RWF_NOWAIT) == BENCH_PAGE;
}

const struct pages_peer pages_pread = {
	.name = "pread",
	.kind = BENCH_PEER,
	.kernel = true,
	.open = open_file,
	.read = read_file,
	.hits = hits,
};
