// SPDX-License-Identifier: MIT
/*
 * Memory of the process, more of it than it may have: the kernel's swap, on a file that the
 * run makes. Needs root.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/swap.h>
#include <unistd.h>

#include "bench/pages.h"

static char *memory, swap_file[64];

/* The header of a swap area, as mkswap(8) writes it. */
static int make_swap(int fd, uint64_t pages)
{
	static char block[1 << 20];
	union {
		char bytes[BENCH_PAGE];
		struct {
			char boot[1024];
			uint32_t version, last_page, bad_pages;
		} info;
	} head = { .info = { .version = 1, .last_page = (uint32_t)pages - 1 } };

	/* Without holes, as the kernel wants it. */
	for (uint64_t done = 0; done < pages * BENCH_PAGE; done += sizeof(block)) {
		if (pwrite(fd, block, sizeof(block), (off_t)done) != sizeof(block))
			return -errno;
	}
	memcpy(head.bytes + BENCH_PAGE - 10, "SWAPSPACE2", 10);
	return pwrite(fd, &head, BENCH_PAGE, 0) == BENCH_PAGE && !fsync(fd) ? 0 : -errno;
}

static int open_swap(const struct pages_setup *setup)
{
	uint64_t pages = (setup->pages + 511) / 256 * 256;
	int fd, rc;

	snprintf(swap_file, sizeof(swap_file), "/var/tmp/hotline-bench-swap-%d", (int)getpid());
	fd = open(swap_file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	rc = make_swap(fd, pages);
	close(fd);
	if (!rc && swapon(swap_file, 0))
		rc = -errno;
	if (rc) {
		unlink(swap_file);
		return rc;
	}
	memory = mmap(NULL, setup->pages * BENCH_PAGE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return memory == MAP_FAILED ? -errno : 0;
}

static int write_swap(uint64_t first, unsigned n, uint64_t value)
{
	memset(memory + first * BENCH_PAGE, (int)value, (size_t)n * BENCH_PAGE);
	return 0;
}

static void close_swap(const struct pages_setup *setup)
{
	munmap(memory, setup->pages * BENCH_PAGE);
	swapoff(swap_file);
	unlink(swap_file);
}

const struct pages_peer pages_swap = {
	.name = "swap",
	.kind = BENCH_PEER,
	.kernel = true,
	.open = open_swap,
	.write = write_swap,
	.close = close_swap,
};
