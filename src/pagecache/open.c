// SPDX-License-Identifier: MIT
/*
 * Opening and closing a cache, and its file's length.
 */
#include "pagecache/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define ALL_FLAGS \
	(HL_PAGECACHE_READ_ONLY | HL_PAGECACHE_CREATE | HL_PAGECACHE_BUFFERED | \
	 HL_PAGECACHE_NO_URING)
#define LEAST_PAGE ((size_t)4096)
#define MOST_PAGE ((size_t)65536)
/* Frames' numbers and one have 32 bits. */
#define MOST_FRAMES ((size_t)1 << 31)

/* When pages are written that nobody has synced. */
#define WRITE_AFTER_MS 5000
#define DIRTY_PERCENT 25

static _Atomic(uint64_t) next_id = 1;

/* ---- The file ---- */

static int open_file(struct hl_pagecache *cache, const char *path)
{
	bool read_only = cache->flags & HL_PAGECACHE_READ_ONLY;
	int flags = O_CLOEXEC | (read_only ? O_RDONLY : O_RDWR);
	struct stat about;

	/* What would block, or do something, when it is opened. */
	if (!stat(path, &about) &&
	    (S_ISFIFO(about.st_mode) || S_ISCHR(about.st_mode) || S_ISSOCK(about.st_mode)))
		return -EINVAL;
	if (cache->flags & HL_PAGECACHE_CREATE)
		flags |= O_CREAT;
	if (!(cache->flags & HL_PAGECACHE_BUFFERED)) {
		cache->fd = open(path, flags | O_DIRECT, 0666);
		cache->direct = cache->fd >= 0;
		if (cache->direct || errno != EINVAL)
			return cache->direct ? 0 : -errno;
	}
	cache->fd = open(path, flags, 0666);
	return cache->fd >= 0 ? 0 : -errno;
}

static int length_of_file(const struct hl_pagecache *cache, uint64_t *bytes)
{
	struct stat about;

	if (fstat(cache->fd, &about))
		return -errno;
	*bytes = (uint64_t)about.st_size;
	if (S_ISBLK(about.st_mode))
		return ioctl(cache->fd, BLKGETSIZE64, bytes) ? -errno : 0;
	return S_ISREG(about.st_mode) ? 0 : -EINVAL;
}

static uint64_t pages_of(const struct hl_pagecache *cache, uint64_t bytes)
{
	return (bytes >> cache->page_shift) + ((bytes & (hl_page_bytes(cache) - 1)) != 0);
}

int hl_pagecache_grow(struct hl_pagecache *cache, uint64_t pages)
{
	uint64_t bytes = pages << cache->page_shift;
	int rc = hl_cache_may_change(cache);

	if (rc)
		return rc;
	if (bytes >> cache->page_shift != pages || bytes > INT64_MAX)
		return -EFBIG;
	pthread_mutex_lock(&cache->resize_lock);
	if (pages > atomic_load_explicit(&cache->pages, memory_order_relaxed)) {
		rc = ftruncate(cache->fd, (off_t)bytes) ? -errno : 0;
		if (!rc) {
			atomic_store_explicit(&cache->file_bytes, bytes, memory_order_relaxed);
			atomic_store_explicit(&cache->pages, pages, memory_order_relaxed);
		}
	}
	pthread_mutex_unlock(&cache->resize_lock);
	return rc;
}

int64_t hl_pagecache_pages(const struct hl_pagecache *cache)
{
	return hl_cache_is_ours(cache)
		       ? (int64_t)atomic_load_explicit(&cache->pages, memory_order_relaxed)
		       : -ECHILD;
}

size_t hl_pagecache_page_size(const struct hl_pagecache *cache)
{
	return hl_page_bytes(cache);
}

/* ---- Open ---- */

static int check(const struct hl_pagecache_options *options)
{
	size_t size = options->page_size;

	if (options->flags & ~ALL_FLAGS || size < LEAST_PAGE || size > MOST_PAGE ||
	    size & (size - 1))
		return -EINVAL;
	if ((options->flags & HL_PAGECACHE_READ_ONLY) &&
	    (options->flags & HL_PAGECACHE_CREATE || options->pages))
		return -EINVAL;
	if (options->dirty_percent > 100)
		return -EINVAL;
	if (options->limit < size || options->most < options->limit ||
	    options->most / size > MOST_FRAMES)
		return -EINVAL;
	return 0;
}

static void init_locks(struct hl_pagecache *cache)
{
	pthread_mutex_init(&cache->free_lock, NULL);
	pthread_mutex_init(&cache->sync_lock, NULL);
	pthread_mutex_init(&cache->written_lock, NULL);
	pthread_mutex_init(&cache->resize_lock, NULL);
	for (unsigned i = 0; i < HL_STRIPES; i++)
		pthread_mutex_init(&cache->stripe[i].lock, NULL);
}

static void set_up(struct hl_pagecache *cache, const struct hl_pagecache_options *options,
		   const struct hl_io *io)
{
	memset(cache, 0, sizeof(*cache));
	cache->id = atomic_fetch_add_explicit(&next_id, 1, memory_order_relaxed);
	cache->generation = atomic_load_explicit(&hl_pc_generation, memory_order_relaxed);
	cache->page_shift = (unsigned)__builtin_ctzl(options->page_size);
	cache->fd = -1;
	cache->flags = options->flags;
	cache->wait_ms = options->wait_ms;
	cache->write_after_ms = options->write_after_ms;
	cache->dirty_percent = options->dirty_percent;
	cache->leaked = options->leaked;
	cache->leaked_arg = options->leaked_arg;
	cache->before_write = options->before_write;
	cache->before_write_arg = options->before_write_arg;
	cache->io = io;
	init_locks(cache);
}

static int open_all(struct hl_pagecache *cache, const char *path,
		    const struct hl_pagecache_options *options)
{
	uint64_t bytes = 0;
	int rc = hl_frames_map(cache, options->limit, options->most);

	if (!rc)
		rc = open_file(cache, path);
	if (!rc)
		rc = length_of_file(cache, &bytes);
	if (rc)
		return rc;
	atomic_init(&cache->file_bytes, bytes);
	atomic_init(&cache->pages, pages_of(cache, bytes));
	rc = options->pages ? hl_pagecache_grow(cache, options->pages) : 0;
	if (!rc && !(cache->flags & HL_PAGECACHE_READ_ONLY) && options->write_after_ms != UINT_MAX)
		rc = hl_flush_add(cache);
	return rc;
}

static void destroy(struct hl_pagecache *cache)
{
	int state = hl_no_cancel();

	hl_flush_remove(cache);
	hl_background_forget(cache);
	hl_locals_free(cache);
	hl_frames_unmap(cache);
	if (cache->fd >= 0)
		close(cache->fd);
	hl_pageset_free(&cache->written);
	hl_pageset_free(&cache->lost);
	hl_orders_free(cache);
	free(cache);
	hl_cancel_as_before(state);
}

static int make(struct hl_pagecache **out, const char *path,
		const struct hl_pagecache_options *options, const struct hl_io *io)
{
	struct hl_pagecache_options all = options ? *options : (struct hl_pagecache_options){ 0 };
	struct hl_pagecache *cache;
	int rc;

	*out = NULL;
	if (!hl_thread_get()) /* sees to forks, too */
		return -ENOMEM;
	all.page_size = all.page_size ? all.page_size : LEAST_PAGE;
	if (!all.limit) {
		all.limit = hl_default_limit();
		if (all.limit < all.page_size)
			return -ENOMEM;
	}
	all.most = all.most ? all.most : all.limit;
	all.write_after_ms = all.write_after_ms ? all.write_after_ms : WRITE_AFTER_MS;
	all.dirty_percent = all.dirty_percent ? all.dirty_percent : DIRTY_PERCENT;
	rc = check(&all);
	if (rc)
		return rc;
	cache = aligned_alloc(_Alignof(struct hl_pagecache), sizeof(*cache));
	if (!cache)
		return -ENOMEM;
	set_up(cache, &all, io);
	rc = open_all(cache, path, &all);
	if (rc) {
		destroy(cache);
		return rc;
	}
	*out = cache;
	return 0;
}

int hl_pagecache_open_by(struct hl_pagecache **out, const char *path,
			 const struct hl_pagecache_options *options, const struct hl_io *io)
{
	int state = hl_no_cancel();
	int rc = make(out, path, options, io);

	hl_cancel_as_before(state);
	return rc;
}

int hl_pagecache_open(struct hl_pagecache **out, const char *path,
		      const struct hl_pagecache_options *options)
{
	bool uring = !(options && options->flags & HL_PAGECACHE_NO_URING) && hl_uring_usable();

	return hl_pagecache_open_by(out, path, options, uring ? &hl_io_uring : &hl_io_threads);
}

/* ---- Close ---- */

static bool any_fixed(const struct hl_pagecache *cache)
{
	for (uint32_t i = 0; i < hl_frames_ever(cache); i++) {
		const struct hl_frame *frame = &cache->frame[i];
		uint64_t word = atomic_load_explicit(&frame->word, memory_order_acquire);

		if (hl_frame_is_fixed(word) ||
		    (word & HL_FRAME_SPREAD && hl_pins_have(cache, frame)))
			return true;
	}
	return false;
}

int hl_pagecache_close(struct hl_pagecache *cache)
{
	int state, rc;

	if (!hl_cache_is_ours(cache))
		return -ECHILD;
	state = hl_no_cancel();
	hl_background_forget(cache); /* which fixes pages to read them */
	hl_cancel_as_before(state);
	if (any_fixed(cache))
		return -EBUSY;
	rc = hl_pagecache_sync(cache);
	if (rc)
		return rc;
	destroy(cache);
	return 0;
}

int hl_pagecache_abandon(struct hl_pagecache *cache)
{
	if (!hl_cache_is_ours(cache))
		return -ECHILD;
	destroy(cache);
	return 0;
}
