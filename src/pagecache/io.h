/* SPDX-License-Identifier: MIT */
/*
 * How pages get to the file and back. The library does it by io_uring or by threads; tests
 * put a table of their own between, in which things fail.
 */
#ifndef HL_PAGECACHE_IO_H
#define HL_PAGECACHE_IO_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct hl_io_request {
	struct iovec *iov; /* left as they are */
	unsigned n_iov;
	bool write;
	uint64_t offset;
	ssize_t result; /* bytes, or a negative errno value */
};

struct hl_io {
	/* Does them all, at the same time if it can, and returns when all are done. */
	void (*run)(int fd, struct hl_io_request *request, unsigned n);
	/* What was written is on the device; 0 or a negative errno value. */
	int (*sync)(int fd);
};

extern const struct hl_io hl_io_uring;
extern const struct hl_io hl_io_threads;

/* Whether the calling thread can use io_uring. */
bool hl_uring_usable(void);
/* One request, by the calling thread. */
void hl_io_one(int fd, struct hl_io_request *request);
int hl_io_sync(int fd);

/* ---- threads.c: around fork ---- */

void hl_io_threads_lock(void);
void hl_io_threads_unlock(void);
void hl_io_threads_forked(void);

struct hl_pagecache;
struct hl_pagecache_options;

/* As hl_pagecache_open(), with another table. */
int hl_pagecache_open_by(struct hl_pagecache **out, const char *path,
			 const struct hl_pagecache_options *options, const struct hl_io *io);

#endif
