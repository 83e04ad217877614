/* SPDX-License-Identifier: MIT */
/*
 * A page cache in user space: a file or block device that is larger than memory, read and
 * written by pages through a fixed amount of memory.
 *
 *	struct hl_pagecache *cache;
 *	void *data;
 *	int rc = hl_pagecache_open(&cache, "base", &(struct hl_pagecache_options){
 *			.limit = 64 << 20, .flags = HL_PAGECACHE_CREATE, .pages = 1000 });
 *
 *	rc = hl_page_fix(cache, 17, HL_PAGE_EXCLUSIVE, &data);
 *	memcpy(data, "hello", 5);
 *	hl_page_dirty(cache, data);
 *	hl_page_unfix(cache, data);
 *	rc = hl_pagecache_sync(cache);
 *
 * Who wants to use a page fixes it: the cache reads it if it has to, and keeps it where it
 * is until it is unfixed. Shared, any number of threads hold it and read it; exclusive, one
 * holds it and may write to it. hl_page_read_begin() reads a page without holding it.
 *
 * Any thread may use a cache, whether it is a CPU (hotline/cpu.h) or not. No function here may
 * be called in a signal handler, and none is a cancellation point; a signal that arrives while
 * one blocks is handled and the function goes on. A process may have many caches, also
 * thousands. The file belongs to the cache as long as it is open: what others write to it
 * meanwhile may or may not be seen.
 *
 * Fork: every function that returns an error returns -ECHILD, and does nothing, in a child for a
 * cache that the parent opened; nor is the memory of the pages there, which a pointer from before
 * the fork may point to. The parent goes on undisturbed, and the child can open its own.
 *
 * Errors are negative errno values. These come from wherever a page may have to be read or room
 * made for one:
 *
 *	-ENOBUFS	all the memory is fixed (hl_pagecache_holders() tells by whom)
 *	-ENODATA	the file is shorter than it was: somebody has truncated it
 *	-EIO, -ENOSPC	and whatever else reading this page, or writing others to make
 *			room for it, failed with
 *	-ENOMEM		no memory for what the cache keeps for this thread
 *
 * A page that could not be written stays in memory and dirty, is tried again by whoever
 * next needs it written, and fails there again until it could be. A page that was written
 * but whose way to the device failed (fdatasync) is written again if it is still in
 * memory; if not, each sync of it fails until it has been written anew.
 */
#ifndef HOTLINE_PAGECACHE_H
#define HOTLINE_PAGECACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hotline/api.h>

HL_BEGIN_DECLS

struct hl_pagecache;

/* ---- Open and close ---- */

/* The file must exist and is never written to. */
#define HL_PAGECACHE_READ_ONLY 0x1u
/* Makes the file if it does not exist, with mode 0666 less the umask. */
#define HL_PAGECACHE_CREATE 0x2u
/* Goes through the kernel's page cache. Without this, past it (O_DIRECT) where the file
 * system can. */
#define HL_PAGECACHE_BUFFERED 0x4u
/* Does its I/O by threads though there is io_uring. Without this, where io_uring is
 * forbidden or missing. */
#define HL_PAGECACHE_NO_URING 0x8u

struct hl_pagecache_options {
	/* Bytes of a page: a power of two, 4096 to 65536. 0: 4096. */
	size_t page_size;
	/*
	 * Bytes of memory for pages, rounded down to whole pages; one page at least. The
	 * cache keeps 3.3 % more for itself at most, less with larger pages. 0: half of what is
	 * free now, as the system, the memory cgroups (memory.max and memory.high), RLIMIT_AS
	 * and RLIMIT_DATA have it.
	 */
	size_t limit;
	/* What hl_pagecache_resize() may raise the limit to; addresses are set aside for it,
	 * no memory. 0: the limit. */
	size_t most;
	/* The file is made this many pages long if it is shorter. */
	uint64_t pages;
	/* HL_PAGECACHE_... */
	unsigned flags;
	/* How long to wait for a page to be unfixed when all memory is fixed, in
	 * milliseconds, before -ENOBUFS. 0: not at all. */
	unsigned wait_ms;
	/*
	 * Pages are written by a thread of the library when they have been dirty for so many
	 * milliseconds (0: 5000), and when more of the memory is dirty than so many percent
	 * (0: 25). write_after_ms UINT_MAX: only by sync, and to make room.
	 */
	unsigned write_after_ms;
	unsigned dirty_percent;
	/*
	 * Told when a thread ends that has a page fixed; may be NULL. Called by that thread
	 * while it ends; it may unfix the page and do nothing else with the cache. A page
	 * that is not unfixed stays fixed and is listed by hl_pagecache_holders().
	 */
	void (*leaked)(struct hl_pagecache *cache, uint64_t page, void *data, void *arg);
	void *leaked_arg;
	/*
	 * Called before a page is written; may be NULL. For logs: it makes sure that the log has
	 * what led to this page - that the log's own cache is synced as far as the page
	 * says - and returns 0, or a negative errno value, with which the page is not written,
	 * as if the device had said so. Called by whichever thread writes, for each page,
	 * while nobody can change it; it may block and use other caches, not this one. For an
	 * order of two pages of one cache see hl_page_write_before().
	 */
	int (*before_write)(struct hl_pagecache *cache, uint64_t page, const void *data, void *arg);
	void *before_write_arg;
};

/*
 * hl_pagecache_open - opens a file or a block device through a cache
 * @out: where the cache goes
 * @options: NULL: all zero
 *
 * A file whose length is no whole number of pages ends in a page whose rest reads as
 * zeroes; when that page is written the file becomes longer.
 *
 * Returns 0; -EINVAL: the options cannot be, it is neither a file nor a block device, or
 * options.pages are more than a block device has; -ENOMEM; -EAGAIN: no thread can be started,
 * which writes pages (options.write_after_ms); or what open(2), fstat(2), ftruncate(2) fail
 * with. May block.
 */
HL_API int hl_pagecache_open(struct hl_pagecache **out, const char *path,
			     const struct hl_pagecache_options *options);

/*
 * hl_pagecache_close - writes what is dirty, as hl_pagecache_sync(), and frees the cache
 *
 * No other thread may be using the cache. Blocks as hl_pagecache_sync(). Returns 0, and the cache
 * is gone. Otherwise it is still there, to be synced again or given up: -EBUSY: pages are fixed;
 * what hl_pagecache_sync() returns.
 */
HL_API int hl_pagecache_close(struct hl_pagecache *cache);

/*
 * hl_pagecache_abandon - frees the cache without writing anything, fixed pages or not
 *
 * No other thread may be using it. May block for what the library's threads are doing with it.
 * Returns 0.
 */
HL_API int hl_pagecache_abandon(struct hl_pagecache *cache);

/* ---- Pages ---- */

/* How to fix; HL_PAGE_SHARED is 0. */
#define HL_PAGE_SHARED 0x0u
#define HL_PAGE_EXCLUSIVE 0x1u
/* Neither waits for who has the page fixed nor for the device. */
#define HL_PAGE_TRY 0x2u
/* All of the page is going to be written: it need not be read. Exclusive, and dirty. Holds
 * zeroes, or what it held if it is in memory. */
#define HL_PAGE_NEW 0x5u

/*
 * hl_page_fix - brings a page into memory and keeps it there
 * @page: its number, from 0
 * @how: HL_PAGE_...
 * @data: where the address of the page goes: page_size bytes, aligned to that
 *
 * To be given back with hl_page_unfix(), as often as it was fixed. A thread may fix a page
 * shared that it has fixed shared already.
 *
 * Returns 0, or, and nothing is fixed:
 *	-ERANGE		the file ends before that page
 *	-EROFS		exclusive, and the cache is read-only
 *	-EAGAIN		with HL_PAGE_TRY: it would have to wait
 *	-EDEADLK	the calling thread has it fixed, and one of the two is exclusive; or all
 *			the shares that there can be are in use, 4095
 *	-EINVAL		unknown bits in @how
 * and the errors at the top. Blocks for the device and while others have it fixed in a way
 * that excludes this one; who waits for it exclusively goes before new readers.
 */
HL_API int hl_page_fix(struct hl_pagecache *cache, uint64_t page, unsigned how, void **data);

/*
 * hl_page_unfix - gives a page back
 * @data: as hl_page_fix() gave it
 *
 * What is written to the page after it is lost or worse. Another thread than the one that
 * fixed it may do this; it takes longer. Returns 0; -EINVAL: no page of the cache begins
 * there, or it is not fixed. Does not block, but to wake others.
 */
HL_API int hl_page_unfix(struct hl_pagecache *cache, void *data);

/*
 * hl_page_dirty - says that a page is to be written
 * @data: of a page that the caller has fixed exclusively
 *
 * Before or after it was changed, but before it is unfixed. Returns 0; -EINVAL: it is not
 * fixed exclusively; -ENOMEM: no memory for what the cache keeps for this thread, which cannot be
 * for the thread that fixed it. Does not block.
 */
HL_API int hl_page_dirty(struct hl_pagecache *cache, void *data);

/*
 * hl_page_write_before - says that a page must not be written before another
 * @first: the page that is to be on the device first
 * @then: the page that has to wait
 *
 * From now on the cache does not write @then before @first is on the device - written and synced
 * (fdatasync) - with all that was marked dirty in it until now, or with something newer. So after
 * a crash of the program, of the system or of the power, whatever is found in @then that was
 * changed after this call, @first is found with what it had at this call, or later. If @first has
 * nothing that is not on the device, there is nothing to do. An order is for once: it ends when
 * @first has got there, and later changes need their own.
 *
 *	hl_page_fix(cache, leaf, HL_PAGE_EXCLUSIVE, &data);	the new leaf
 *	...
 *	hl_page_dirty(cache, data);
 *	hl_page_unfix(cache, data);
 *	hl_page_fix(cache, parent, HL_PAGE_EXCLUSIVE, &data);	and who points to it
 *	hl_page_write_before(cache, leaf, parent);
 *	...
 *
 * To be called while @then is fixed exclusively, or before it is: otherwise what was changed may
 * be written meanwhile. @first must have been marked dirty with what matters. Neither has to be
 * in memory or fixed; @then may have any number of pages before it, which may have others before
 * them. The cache writes all of it by itself, as many pages as it can with each sync, whatever
 * @then is written for: to make room, by age, by sync - also of a range without @first - by
 * resize or close; and hl_pagecache_discard() of @then writes what goes before it too.
 *
 * If @first cannot be written, @then is not either: whoever needs @then written gets the error of
 * @first, each time, until it could be. While @first is fixed exclusively @then stays in memory as
 * if it were fixed too: who needs room may get -ENOBUFS or wait options.wait_ms, who syncs waits,
 * and gets -EDEADLK if the calling thread itself has @first. To give up an @first that can never
 * be written, discard it.
 *
 * Returns 0, or, and there is no new order:
 *	-EDEADLK	a circle: @first must not be written before @then, directly or over others.
 *			hl_pagecache_sync_range() of @first ends that, and then this call succeeds
 *	-ERANGE		the file ends before one of the pages
 *	-EINVAL		@first is @then
 *	-EROFS		the cache is read-only
 *	-ENOMEM		about 200 bytes are kept for an order with its pages
 * Does not block, and does no I/O.
 */
HL_API int hl_page_write_before(struct hl_pagecache *cache, uint64_t first, uint64_t then);

/* Pages that can be fixed at once. */
#define HL_PAGES_AT_ONCE 256u

/*
 * hl_page_fix_many - fixes several pages
 * @page: their numbers, in any order; the .item of a batch of them (hotline/pagevec.h) or
 *	any other array
 * @n: how many, HL_PAGES_AT_ONCE at most
 * @how: for all of them
 * @data: where their addresses go, as the numbers are ordered
 *
 * Those that are not in memory are read at the same time, in one submission. Each is to be
 * unfixed. Threads that fix the same pages so do not wait for each other in a circle, if they
 * have no others fixed. Returns 0, or, and none is fixed: -EINVAL: too many; as hl_page_fix().
 * Blocks as that.
 */
HL_API int hl_page_fix_many(struct hl_pagecache *cache, const uint64_t *page, unsigned n,
			    unsigned how, void **data);

/*
 * A page that is brought into memory while the program does something else. A line, which the
 * program and the library's thread hand to each other, and aligned so that it never lies on two.
 */
struct hl_page_request {
	/* The caller's: set before hl_page_fix_begin(). */
	uint64_t page;
	unsigned how; /* HL_PAGE_SHARED, HL_PAGE_EXCLUSIVE or HL_PAGE_NEW */
	/*
	 * Called when hl_page_fix_end() will not wait for the device, by a thread of the library;
	 * short, and it must not fix anything: it writes to an eventfd, or pushes the request on a
	 * list. NULL: the caller asks hl_page_fix_end() now and then.
	 */
	void (*done)(struct hl_page_request *request);
	void *arg; /* for done() */
	/* The library's. */
	struct hl_pagecache *cache;
	struct hl_page_request *next;
	void *frame;
	unsigned prefetch;
	int state;
} __attribute__((aligned(8 * sizeof(uint64_t))));

/*
 * hl_page_fix_begin - begins to fix a page, and returns at once
 * @request: stays where it is until hl_page_fix_end() has returned something else than -EAGAIN
 *
 * Returns 0: hl_page_fix_end() can be called now, and done() will not be; -EINPROGRESS: done()
 * will be; -ENOMEM: nor can it be begun. Does not block. Every request that was begun has to be
 * ended before the cache is closed.
 */
HL_API int hl_page_fix_begin(struct hl_pagecache *cache, struct hl_page_request *request);

/*
 * hl_page_fix_end - fixes a page that was begun
 * @data: as for hl_page_fix()
 *
 * By any thread, which has the page fixed then. Returns -EAGAIN: it is not there yet; 0 or an
 * error as hl_page_fix(). It may block while others have the page fixed in a way that excludes
 * it, and for the device if the page had to make room meanwhile.
 */
HL_API int hl_page_fix_end(struct hl_page_request *request, void **data);

/*
 * hl_pagecache_prefetch - says that pages will be needed
 * @first, @n: which; what is behind the end does not matter
 *
 * A thread of the library reads what of them is not in memory, as far as it takes no more than
 * a part of the cache at once, and no more than there is memory for in all. What cannot be read is
 * passed over. Threads that read pages in a row need not do this: the cache reads ahead by itself,
 * up to 256 KiB. Returns 0; -ENOMEM; -EAGAIN: no thread can be started. Does not block.
 */
HL_API int hl_pagecache_prefetch(struct hl_pagecache *cache, uint64_t first, uint64_t n);

/* What hl_page_read_begin() saw. */
struct hl_page_read {
	const void *data; /* the page */
	uint64_t state; /* for hl_page_read_valid() */
	const void *frame;
};

/*
 * hl_page_read_begin - begins to read a page without fixing it
 *
 * The page may change or be replaced by another while it is read. What was read must not
 * be trusted, not as an index nor as a length, before hl_page_read_valid() has said that it
 * did not:
 *
 *	do {
 *		rc = hl_page_read_begin(cache, 17, &read);
 *		if (rc)
 *			break;
 *		value = atomic_load_explicit((_Atomic(int) *)read.data, memory_order_relaxed);
 *	} while (!hl_page_read_valid(&read));
 *
 * Nothing is held and nothing need be given back. On a page that is in use it writes
 * nothing, so that any number of threads read the same pages without disturbing each other.
 *
 * Returns 0 or as hl_page_fix() shared. Blocks if the page is not in memory, and while
 * somebody has it fixed exclusively.
 */
HL_API int hl_page_read_begin(struct hl_pagecache *cache, uint64_t page, struct hl_page_read *read);

/* hl_page_read_valid - whether the page was all the time what it was at the beginning; does not
 * block */
HL_API bool hl_page_read_valid(const struct hl_page_read *read);

/* ---- The file ---- */

/* hl_pagecache_pages - how many pages the file has; -ECHILD. Does not block. */
HL_API int64_t hl_pagecache_pages(const struct hl_pagecache *cache);

/* hl_pagecache_page_size - bytes of a page; in a child of fork too. Does not block. */
HL_API size_t hl_pagecache_page_size(const struct hl_pagecache *cache);

/*
 * hl_pagecache_sync - has everything that was written reach the device
 * hl_pagecache_sync_range - the same for some pages
 * @first, @n: which; pages behind the end do not matter
 *
 * When it returns 0, all that was marked dirty before it was called is on the device
 * (fdatasync). Otherwise something is not, and every later call that concerns the same pages
 * fails too until they were written anew: the first error. -EDEADLK: the calling
 * thread has one of the pages fixed exclusively, or one that has to be written before them. Blocks,
 * also for who else has them fixed exclusively.
 */
HL_API int hl_pagecache_sync(struct hl_pagecache *cache);
HL_API int hl_pagecache_sync_range(struct hl_pagecache *cache, uint64_t first, uint64_t n);

/*
 * hl_pagecache_discard - throws the contents of pages away
 *
 * They read as zeroes from then on; what was dirty of them is not written. The file system
 * gets the room back if it can take it, also when nothing can be written any more for want of
 * room. Returns 0; -EBUSY: one is fixed, or one that has to be written before it is exclusively;
 * nothing was discarded that is fixed or behind it; -ERANGE: some are behind the end; -EROFS; what
 * fallocate(2), pwrite(2) or writing what goes before it fails with, and the page holds what it
 * held or zeroes. May block.
 */
HL_API int hl_pagecache_discard(struct hl_pagecache *cache, uint64_t first, uint64_t n);

/*
 * hl_pagecache_grow - makes the file at least so many pages long
 *
 * New pages read as zeroes. Room for them is not set aside: -ENOSPC comes when they are
 * written. Returns 0; -EROFS; -EFBIG; what ftruncate(2) fails with, -EINVAL for a block device.
 * May block.
 */
HL_API int hl_pagecache_grow(struct hl_pagecache *cache, uint64_t pages);

/*
 * hl_pagecache_resize - changes the limit
 * @limit: bytes
 *
 * A lower limit takes effect now: pages are written and dropped until it holds, and their
 * memory goes back to the system. Returns 0; -EINVAL: less than a page; -E2BIG: more than
 * options.most; -ENOBUFS: pages are fixed in memory that was to go, which stay in memory until
 * this is called again, the rest has gone; the errors of writing. May block.
 */
HL_API int hl_pagecache_resize(struct hl_pagecache *cache, size_t limit);

/* ---- What goes on ---- */

struct hl_pagecache_stats {
	/* Pages of memory at this moment: free + clean + dirty + fixed == total. A page is
	 * counted as fixed whether it is dirty or not, and while it is read. */
	uint64_t total, free, clean, dirty, fixed;
	uint64_t active; /* of them, those that were used again and again */
	/* Since the cache was opened. */
	uint64_t hits, misses; /* of hl_page_fix(); optimistic reads are not counted */
	uint64_t pages_read, pages_written;
	uint64_t reads, writes; /* requests for one or more pages in a row */
	uint64_t evicted;
	uint64_t reclaims; /* batches in which they were */
	uint64_t errors; /* pages that could not be read or written */
	uint64_t leaked; /* pages that threads had fixed when they ended */
	/* How it is. */
	bool direct; /* past the kernel's cache */
	bool uring; /* by io_uring */
};

/*
 * hl_pagecache_get_stats - what there is and what was done
 *
 * Adds up what each thread has counted for itself and looks at every page of memory: some
 * milliseconds for a million. Returns 0. Does not block for long.
 */
HL_API int hl_pagecache_get_stats(struct hl_pagecache *cache, struct hl_pagecache_stats *stats);

struct hl_page_holder {
	uint64_t page;
	int tid; /* of the thread that fixed it, as gettid() there */
	bool exclusive;
	bool ended; /* the thread is no more */
};

/*
 * hl_pagecache_holders - tells who has which pages fixed
 * @tell: called for each; it may not use the cache
 *
 * Returns how many there are. What is fixed and unfixed meanwhile may be told or not. Blocks new
 * threads of the cache while it tells.
 */
HL_API int hl_pagecache_holders(struct hl_pagecache *cache,
				void (*tell)(const struct hl_page_holder *holder, void *arg),
				void *arg);

HL_END_DECLS

#endif
