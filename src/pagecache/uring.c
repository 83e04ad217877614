// SPDX-License-Identifier: MIT
/*
 * I/O by io_uring, a ring for each thread: nobody shares one, so there is no lock. A single
 * request is done by preadv or pwritev, which is one system call as well and a shorter one.
 */
#include "pagecache/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "pagecache/pagecache_config.h"

static ssize_t call(int fd, const struct hl_io_request *request)
{
	const struct iovec *iov = request->iov;
	off_t offset = (off_t)request->offset;

	if (request->n_iov == 1)
		return request->write ? pwrite(fd, iov->iov_base, iov->iov_len, offset)
				      : pread(fd, iov->iov_base, iov->iov_len, offset);
	return request->write ? pwritev(fd, iov, (int)request->n_iov, offset)
			      : preadv(fd, iov, (int)request->n_iov, offset);
}

void hl_io_one(int fd, struct hl_io_request *request)
{
	int state = hl_no_cancel();
	ssize_t rc;

	do {
		rc = call(fd, request);
	} while (rc < 0 && errno == EINTR);
	request->result = rc < 0 ? -errno : rc;
	hl_cancel_as_before(state);
}

int hl_io_sync(int fd)
{
	int state = hl_no_cancel(), rc;

	do {
		rc = fdatasync(fd);
	} while (rc && errno == EINTR);
	rc = rc ? -errno : 0;
	hl_cancel_as_before(state);
	return rc;
}

#if HL_HAVE_URING
#include <liburing.h>

/* Requests on their way at once. */
#define DEPTH 64u
/* How often a submission is tried that fails: it may be a signal, or memory that comes back. */
#define MOST_REFUSED 16u

static struct io_uring *make_ring(void)
{
	static const unsigned flags[] = {
#ifdef IORING_SETUP_DEFER_TASKRUN
		IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
#endif
		0
	};
	struct io_uring *ring = malloc(sizeof(*ring));

	for (unsigned i = 0; ring && i < sizeof(flags) / sizeof(flags[0]); i++) {
		if (!io_uring_queue_init(DEPTH, ring, flags[i]))
			return ring;
	}
	free(ring);
	return NULL;
}

void hl_ring_free(void *ring)
{
	if (ring)
		io_uring_queue_exit(ring);
	free(ring);
}

/* The ring itself is the parent's; its memory is shared with it and is not touched. */
void hl_ring_abandon(void *ring)
{
	if (ring)
		close(((struct io_uring *)ring)->ring_fd);
	free(ring);
}

static struct io_uring *ring_of_thread(void)
{
	struct hl_thread *thread = hl_thread_get();

	if (!thread || thread->no_ring)
		return NULL;
	if (!thread->ring)
		thread->ring = make_ring();
	thread->no_ring = !thread->ring;
	return thread->ring;
}

bool hl_uring_usable(void)
{
	return ring_of_thread() != NULL;
}

/* The kernel takes no requests from this thread any more. */
static void give_up_ring(void)
{
	struct hl_thread *thread = hl_thread_get();

	hl_ring_free(thread->ring);
	thread->ring = NULL;
	thread->no_ring = true;
}

static void prepare(struct io_uring *ring, int fd, struct hl_io_request *request)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	if (request->write)
		io_uring_prep_writev(sqe, fd, request->iov, request->n_iov, request->offset);
	else
		io_uring_prep_readv(sqe, fd, request->iov, request->n_iov, request->offset);
	io_uring_sqe_set_data(sqe, request);
}

/* Takes what is done; how many. */
static unsigned reap(struct io_uring *ring)
{
	struct io_uring_cqe *cqe;
	unsigned head, n = 0;

	io_uring_for_each_cqe(ring, head, cqe)
	{
		struct hl_io_request *request = io_uring_cqe_get_data(cqe);

		request->result = cqe->res;
		n++;
	}
	io_uring_cq_advance(ring, n);
	return n;
}

/* How many requests were done: all, or the first ones if the kernel takes no others. */
static unsigned run_by_ring(struct io_uring *ring, int fd, struct hl_io_request *request,
			    unsigned n)
{
	unsigned begun = 0, done = 0, refused = 0;

	while (done < n) {
		int rc;

		while (begun < n && begun - done < DEPTH)
			prepare(ring, fd, &request[begun++]);
		rc = io_uring_submit_and_wait(ring, 1);
		done += reap(ring);
		refused = rc < 0 ? refused + 1 : 0;
		/* What is on its way uses our memory, so it is waited for whatever happens. */
		if (refused > MOST_REFUSED && begun - io_uring_sq_ready(ring) == done)
			break;
	}
	return done;
}

static void run(int fd, struct hl_io_request *request, unsigned n)
{
	struct io_uring *ring = n > 1 ? ring_of_thread() : NULL;
	unsigned done = 0;

	if (ring) {
		done = run_by_ring(ring, fd, request, n);
		if (done < n)
			give_up_ring();
	}
	if (done < n)
		hl_io_threads.run(fd, request + done, n - done);
	for (unsigned i = 0; i < n; i++) {
		if (request[i].result == -EINTR || request[i].result == -EAGAIN)
			hl_io_one(fd, &request[i]);
	}
}

const struct hl_io hl_io_uring = { .run = run, .sync = hl_io_sync };
#else
void hl_ring_free(void *ring)
{
	(void)ring;
}

void hl_ring_abandon(void *ring)
{
	(void)ring;
}

bool hl_uring_usable(void)
{
	return false;
}

const struct hl_io hl_io_uring = { .sync = hl_io_sync }; /* not usable */
#endif
