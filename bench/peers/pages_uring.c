// SPDX-License-Identifier: MIT
/*
 * What the device and the kernel allow: bare io_uring, with no cache at all.
 */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>

#include "bench/pages.h"

/* Blocks that are written, and how many at once. */
#define BLOCK_PAGES 64u
#define BLOCKS 4u

static int fd;

struct thread {
	struct io_uring ring;
	char *buffer;
};

static __thread struct thread *mine;

static int open_file(const struct pages_setup *setup)
{
	fd = open(setup->path, O_RDWR | O_CLOEXEC | O_DIRECT);
	return fd < 0 ? -errno : 0;
}

static struct thread *this_thread(void)
{
	size_t bytes = (size_t)BLOCKS * BLOCK_PAGES * BENCH_PAGE;

	if (mine)
		return mine;
	mine = calloc(1, sizeof(*mine));
	if (!mine || posix_memalign((void **)&mine->buffer, BENCH_PAGE, bytes))
		return NULL;
	memset(mine->buffer, 1, bytes);
	if (io_uring_queue_init(64, &mine->ring,
				IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN))
		return NULL;
	return mine;
}

/* Submits what was prepared and takes n results of so many bytes. */
static int finish(struct thread *thread, unsigned n, int bytes)
{
	int rc = 0;

	io_uring_submit_and_wait(&thread->ring, n);
	for (unsigned i = 0; i < n; i++) {
		struct io_uring_cqe *cqe;

		if (io_uring_wait_cqe(&thread->ring, &cqe) || cqe->res != bytes)
			rc = -EIO;
		io_uring_cqe_seen(&thread->ring, cqe);
	}
	return rc;
}

static int read_file(const uint64_t *page, unsigned n, uint64_t *sum)
{
	struct thread *thread = this_thread();
	int rc;

	if (!thread)
		return -ENOMEM;
	for (unsigned i = 0; i < n; i++)
		io_uring_prep_read(io_uring_get_sqe(&thread->ring), fd,
				   thread->buffer + i * BENCH_PAGE, BENCH_PAGE,
				   page[i] * BENCH_PAGE);
	rc = finish(thread, n, BENCH_PAGE);
	for (unsigned i = 0; i < n; i++)
		*sum += *(uint64_t *)(thread->buffer + i * BENCH_PAGE);
	return rc;
}

/* As if the program had filled the blocks. */
static int write_file(uint64_t first, unsigned n, uint64_t value)
{
	struct thread *thread = this_thread();
	unsigned blocks = 0;

	if (!thread)
		return -ENOMEM;
	memset(thread->buffer, (int)value, (size_t)n * BENCH_PAGE);
	for (unsigned done = 0; done < n; done += BLOCK_PAGES, blocks++)
		io_uring_prep_write(io_uring_get_sqe(&thread->ring), fd,
				    thread->buffer + (size_t)done * BENCH_PAGE,
				    BLOCK_PAGES * BENCH_PAGE, (first + done) * BENCH_PAGE);
	return finish(thread, blocks, BLOCK_PAGES * BENCH_PAGE);
}

const struct pages_peer pages_uring = {
	.name = "io_uring",
	.kind = BENCH_LIMIT,
	.open = open_file,
	.read = read_file,
	.write = write_file,
};
