// SPDX-License-Identifier: MIT
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <hotline/pagecache.h>

#include "../tools/faulty_io.h"
#include "pagecache/table.h"

#include "../tools/pages.h"

/* They take memory of their own. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UNDER_SANITIZER true
#else
#define UNDER_SANITIZER false
#endif

/* ---- Pages ---- */

static void what_was_written_is_read_again_with_any_number_of_frames(void **state)
{
	static const unsigned frames[] = { 1, 2, 3, 10, 100 };

	(void)state;
	for (unsigned k = 0; k < sizeof(frames) / sizeof(frames[0]); k++) {
		open_with(frames[k], 50, 0, 0);
		for (uint64_t page = 0; page < 50; page++)
			put(page, k);
		for (uint64_t page = 0; page < 50; page++)
			expect(page * 7 % 50, k);
		assert_int_equal(stats().total, frames[k]);
		close_cache();
		for (uint64_t page = 0; page < 50; page++)
			expect_in_file(page, k);
	}
}

static void every_way_of_doing_io_does_the_same(void **state)
{
	static const unsigned flags[] = { 0, HL_PAGECACHE_BUFFERED, HL_PAGECACHE_NO_URING,
					  HL_PAGECACHE_NO_URING | HL_PAGECACHE_BUFFERED };

	(void)state;
	for (unsigned k = 0; k < 4; k++) {
		const struct hl_pagecache_options options = { .limit = 300 * PAGE,
							      .pages = 1000,
							      .flags = flags[k] };

		assert_int_equal(hl_pagecache_open(&cache, path, &options), 0);
		for (uint64_t page = 0; page < 1000; page++)
			put(page * 3 % 1000, k);
		for (uint64_t page = 0; page < 1000; page++)
			expect(page, k);
		if (flags[k] & HL_PAGECACHE_NO_URING)
			assert_false(stats().uring);
		if (flags[k] & HL_PAGECACHE_BUFFERED)
			assert_false(stats().direct);
		close_cache();
		expect_in_file(999, k);
	}
}

static void pages_of_every_size_keep_what_they_hold(void **state)
{
	(void)state;
	for (size_t size = 4096; size <= 65536; size *= 2) {
		const struct hl_pagecache_options options = { .limit = 4 * size,
							      .page_size = size,
							      .pages = 16,
							      .flags = HL_PAGECACHE_CREATE };

		assert_int_equal(hl_pagecache_open(&cache, path, &options), 0);
		assert_int_equal(hl_pagecache_page_size(cache), size);
		for (unsigned page = 0; page < 16; page++) {
			char *data = fix(page, HL_PAGE_NEW);

			assert_int_equal((uintptr_t)data % size, 0);
			memset(data, (int)page + 1, size);
			unfix(data);
		}
		for (unsigned page = 0; page < 16; page++) {
			char *data = fix(page, HL_PAGE_SHARED);

			assert_true(data[0] == (char)(page + 1) && data[size - 1] == data[0]);
			unfix(data);
		}
		close_cache();
		unlink(path);
	}
}

static void a_new_page_is_not_read(void **state)
{
	void *data;

	(void)state;
	open_with(4, 10, 0, 0);
	faulty_read = -EIO;
	data = fix(3, HL_PAGE_NEW);
	assert_int_equal(((char *)data)[100], 0);
	unfix(data);
	assert_int_equal(faulty_reads, 0);
	assert_int_equal(stats().dirty, 1);
	close_cache();
}

static void a_cache_full_of_clean_pages_takes_writes(void **state)
{
	(void)state;
	open_with(4, 20, 0, 0);
	for (uint64_t page = 0; page < 20; page++)
		unfix(fix(page, HL_PAGE_SHARED));
	assert_int_equal(stats().clean, 4);
	/* The clean ones go, and nothing has to be written for it. */
	for (uint64_t page = 0; page < 3; page++)
		put(page, 1);
	assert_int_equal(faulty_writes, 0);
	close_cache();
}

static void a_shared_page_excludes_who_wants_it_exclusively(void **state)
{
	void *one, *two, *three;

	(void)state;
	open_with(4, 10, 0, 0);
	one = fix(1, HL_PAGE_SHARED);
	two = fix(1, HL_PAGE_SHARED | HL_PAGE_TRY);
	assert_ptr_equal(one, two);
	assert_int_equal(hl_page_fix(cache, 1, HL_PAGE_EXCLUSIVE, &three), -EDEADLK);
	assert_int_equal(hl_page_dirty(cache, one), -EINVAL);
	unfix(one);
	unfix(two);
	one = fix(1, HL_PAGE_EXCLUSIVE);
	assert_int_equal(hl_page_fix(cache, 1, HL_PAGE_SHARED, &three), -EDEADLK);
	unfix(one);
	assert_int_equal(hl_page_unfix(cache, one), -EINVAL);
	close_cache();
}

static void what_cannot_be_is_refused(void **state)
{
	struct hl_pagecache *none;
	void *data;

	(void)state;
	open_with(4, 10, 0, 0);
	assert_int_equal(hl_page_fix(cache, 10, 0, &data), -ERANGE);
	assert_int_equal(hl_page_fix(cache, UINT64_MAX, 0, &data), -ERANGE);
	assert_int_equal(hl_page_fix(cache, 0, 4, &data), -EINVAL);
	assert_int_equal(hl_page_fix(cache, 0, 8, &data), -EINVAL);
	assert_int_equal(hl_page_fix(cache, 0, HL_PAGE_TRY, &data), -EAGAIN);
	data = fix(0, 0);
	assert_int_equal(hl_page_unfix(cache, (char *)data + 1), -EINVAL);
	assert_int_equal(hl_page_unfix(cache, NULL), -EINVAL);
	assert_int_equal(hl_pagecache_close(cache), -EBUSY);
	unfix(data);
	close_cache();
	assert_int_equal(hl_pagecache_open(&none, path,
					   &(struct hl_pagecache_options){ .page_size = 5000 }),
			 -EINVAL);
	assert_int_equal(hl_pagecache_open(&none, path,
					   &(struct hl_pagecache_options){ .limit = 100 }),
			 -EINVAL);
	assert_int_equal(hl_pagecache_open(&none, "/nowhere/at/all", NULL), -ENOENT);
	assert_int_equal(hl_pagecache_open(&none, ".", NULL), -EISDIR);
	assert_int_equal(hl_pagecache_open(&none, "/dev/null", NULL), -EINVAL);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(hl_pagecache_open(
				 &none, path,
				 &(struct hl_pagecache_options){ .flags = HL_PAGECACHE_READ_ONLY }),
			 -EINVAL);
}

static void a_read_only_cache_writes_nothing(void **state)
{
	void *data;

	(void)state;
	open_with(4, 10, 0, 0);
	put(5, 5);
	close_cache();
	open_with(4, 0, HL_PAGECACHE_READ_ONLY, 0);
	expect(5, 5);
	assert_int_equal(hl_page_fix(cache, 5, HL_PAGE_EXCLUSIVE, &data), -EROFS);
	assert_int_equal(hl_pagecache_grow(cache, 20), -EROFS);
	assert_int_equal(hl_pagecache_discard(cache, 0, 1), -EROFS);
	close_cache();
}

static void an_optimistic_read_sees_that_the_page_changed(void **state)
{
	struct hl_page_read read, other;

	(void)state;
	open_with(2, 10, 0, 0);
	put(1, 1);
	assert_int_equal(hl_page_read_begin(cache, 1, &read), 0);
	assert_true(holds(read.data, 1, 1));
	assert_true(hl_page_read_valid(&read));
	/* Others who only read do not matter. */
	expect(1, 1);
	assert_true(hl_page_read_valid(&read));
	put(1, 2);
	assert_false(hl_page_read_valid(&read));
	assert_int_equal(hl_page_read_begin(cache, 1, &read), 0);
	/* Evicted, and read again into the same frame or another. */
	assert_int_equal(hl_pagecache_resize(cache, PAGE), 0);
	unfix(fix(2, 0));
	assert_false(hl_page_read_valid(&read));
	assert_int_equal(hl_page_read_begin(cache, 1, &other), 0);
	assert_true(holds(other.data, 1, 2));
	assert_false(hl_page_read_valid(&read));
	assert_int_equal(hl_page_read_begin(cache, 10, &read), -ERANGE);
	close_cache();
}

/* ---- Errors ---- */

static void a_read_error_is_the_callers_each_time_and_goes_away_with_its_cause(void **state)
{
	void *data;

	(void)state;
	open_with(4, 10, 0, 0);
	faulty_read = -EIO;
	faulty_page = 3;
	for (int i = 0; i < 3; i++)
		assert_int_equal(hl_page_fix(cache, 3, 0, &data), -EIO);
	unfix(fix(4, 0));
	assert_int_equal(stats().errors, 3);
	assert_int_equal(stats().fixed, 0);
	faulty_read = 0;
	unfix(fix(3, 0));
	close_cache();
}

static void a_write_error_comes_with_every_sync_until_the_page_was_written(void **state)
{
	(void)state;
	open_with(8, 10, 0, 0);
	put(1, 1);
	put(2, 2);
	put(3, 3);
	faulty_write = -ENOSPC;
	faulty_page = 2;
	for (int i = 0; i < 3; i++)
		assert_int_equal(hl_pagecache_sync(cache), -ENOSPC);
	/* The others of the same request were written. */
	assert_int_equal(stats().dirty, 1);
	assert_int_equal(hl_pagecache_sync_range(cache, 3, 5), 0);
	expect_in_file(1, 1);
	expect_in_file(3, 3);
	assert_int_equal(hl_pagecache_close(cache), -ENOSPC);
	faulty_write = 0;
	assert_int_equal(hl_pagecache_sync(cache), 0);
	close_cache();
	expect_in_file(2, 2);
}

static void pages_that_cannot_be_written_do_not_make_room_and_say_why(void **state)
{
	void *data;

	(void)state;
	open_with(2, 10, 0, 0);
	put(1, 1);
	put(2, 2);
	faulty_write = -EIO;
	assert_int_equal(hl_page_fix(cache, 3, 0, &data), -EIO);
	expect(1, 1);
	expect(2, 2);
	faulty_write = 0;
	unfix(fix(3, 0));
	expect(1, 1);
	expect(2, 2);
	close_cache();
}

static void a_failed_fsync_is_remembered_until_the_pages_were_written_anew(void **state)
{
	(void)state;
	open_with(2, 10, 0, 0);
	put(1, 1);
	put(2, 2);
	/* Written to make room, and in memory no more. */
	unfix(fix(5, 0));
	unfix(fix(6, 0));
	put(3, 3);
	faulty_sync = -EIO;
	assert_int_equal(hl_pagecache_sync(cache), -EIO);
	faulty_sync = 0;
	for (int i = 0; i < 3; i++)
		assert_int_equal(hl_pagecache_sync(cache), -EIO);
	assert_int_equal(hl_pagecache_sync_range(cache, 3, 1), 0);
	assert_int_equal(hl_pagecache_sync_range(cache, 1, 1), -EIO);
	assert_int_equal(hl_pagecache_close(cache), -EIO);
	put(1, 11);
	assert_int_equal(hl_pagecache_sync_range(cache, 1, 1), 0);
	assert_int_equal(hl_pagecache_sync(cache), -EIO);
	put(2, 22);
	assert_int_equal(hl_pagecache_sync(cache), 0);
	close_cache();
	expect_in_file(1, 11);
	expect_in_file(2, 22);
	expect_in_file(3, 3);
}

static void a_sync_that_fails_says_so_though_only_the_length_changed(void **state)
{
	(void)state;
	open_with(2, 10, 0, 0);
	put(1, 1);
	assert_int_equal(hl_pagecache_sync(cache), 0);
	assert_int_equal(hl_pagecache_grow(cache, 20), 0);
	faulty_sync = -EIO;
	assert_int_equal(hl_pagecache_sync_range(cache, 1, 1), 0);
	assert_int_equal(hl_pagecache_sync(cache), -EIO);
	assert_int_equal(hl_pagecache_close(cache), -EIO);
	faulty_sync = 0;
	close_cache();
}

static void a_page_that_is_in_memory_is_written_again_after_a_failed_fsync(void **state)
{
	unsigned long writes;

	(void)state;
	open_with(4, 10, 0, 0);
	put(1, 1);
	faulty_sync = -EIO;
	assert_int_equal(hl_pagecache_sync(cache), -EIO);
	writes = faulty_writes;
	faulty_sync = 0;
	assert_int_equal(stats().dirty, 1);
	assert_int_equal(hl_pagecache_sync(cache), 0);
	assert_int_equal(faulty_writes, writes + 1);
	close_cache();
}

static void short_transfers_are_continued(void **state)
{
	(void)state;
	open_with(20, 40, HL_PAGECACHE_BUFFERED, 0);
	faulty_short = 1000;
	for (uint64_t page = 0; page < 40; page++)
		put(page, 9);
	for (uint64_t page = 0; page < 40; page++)
		expect(page, 9);
	close_cache();
	for (uint64_t page = 0; page < 40; page++)
		expect_in_file(page, 9);
}

static void a_file_that_was_truncated_is_an_error_and_no_signal(void **state)
{
	void *data;

	(void)state;
	open_with(4, 10, 0, 0);
	put(1, 1);
	assert_int_equal(hl_pagecache_sync(cache), 0);
	assert_int_equal(truncate(path, PAGE * 5 / 2), 0);
	expect(1, 1);
	assert_int_equal(hl_page_fix(cache, 7, 0, &data), -ENODATA);
	assert_int_equal(hl_page_fix(cache, 2, 0, &data), -ENODATA);
	unfix(fix(0, 0));
	close_cache();
}

static void a_file_may_end_within_a_page(void **state)
{
	int fd = open(path, O_WRONLY);
	char *data;

	(void)state;
	assert_int_equal(pwrite(fd, "end", 3, PAGE), 3);
	close(fd);
	open_with(1, 0, 0, 0);
	assert_int_equal(hl_pagecache_pages(cache), 2);
	unfix(fix(0, 0));
	data = fix(1, HL_PAGE_EXCLUSIVE);
	assert_memory_equal(data, "end\0\0\0", 6);
	assert_int_equal(data[PAGE - 1], 0);
	data[PAGE - 1] = 'x';
	hl_page_dirty(cache, data);
	unfix(data);
	unfix(fix(0, 0));
	data = fix(1, 0);
	assert_int_equal(data[PAGE - 1], 'x');
	unfix(data);
	close_cache();
}

/* ---- Frames ---- */

static void when_all_is_fixed_there_is_a_prompt_error(void **state)
{
	void *one, *two, *three;

	(void)state;
	open_with(2, 10, 0, 0);
	one = fix(1, 0);
	two = fix(2, HL_PAGE_EXCLUSIVE);
	assert_int_equal(hl_page_fix(cache, 3, 0, &three), -ENOBUFS);
	assert_int_equal(stats().fixed, 2);
	unfix(one);
	three = fix(3, 0);
	unfix(two);
	unfix(three);
	close_cache();
}

static void *unfix_later(void *data)
{
	/* The main thread waits for a frame by now, or is about to. */
	while (!atomic_load(&cache->starving))
		sched_yield();
	hl_page_unfix(cache, data);
	return NULL;
}

static void when_all_is_fixed_it_can_wait_for_one(void **state)
{
	pthread_t thread;
	void *one, *two;

	(void)state;
	open_with(1, 10, 0, 60000);
	one = fix(1, 0);
	assert_int_equal(pthread_create(&thread, NULL, unfix_later, one), 0);
	two = fix(2, 0);
	pthread_join(thread, NULL);
	unfix(two);
	close_cache();
	open_with(1, 10, 0, 20);
	one = fix(1, 0);
	assert_int_equal(hl_page_fix(cache, 2, 0, &two), -ENOBUFS);
	unfix(one);
	close_cache();
}

static pthread_barrier_t together;
static _Atomic(uintptr_t) address;
static atomic_int different;

static void *fix_the_same(void *arg)
{
	(void)arg;
	for (uint64_t page = 0; page < 200; page++) {
		uintptr_t none = 0, here;
		void *data;

		pthread_barrier_wait(&together);
		if (hl_page_fix(cache, 199 - page, 0, &data)) {
			different++;
			data = NULL;
		}
		here = (uintptr_t)data;
		if (!atomic_compare_exchange_strong(&address, &none, here) && none != here)
			different++;
		pthread_barrier_wait(&together);
		atomic_store(&address, 0);
		if (data)
			hl_page_unfix(cache, data);
	}
	return NULL;
}

static void a_page_that_is_read_has_one_frame_however_many_want_it(void **state)
{
	pthread_t thread[4];

	(void)state;
	open_with(8, 200, 0, 0);
	pthread_barrier_init(&together, NULL, 4);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, fix_the_same, NULL), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(different, 0);
	assert_int_equal(stats().pages_read, 200);
	assert_true(faulty_reads <= 200);
	close_cache();
}

/* Fixed by the thread that writes, dirtied while it does. */
static pthread_barrier_t begun;
static _Atomic(int) blocked;

static void block_once(const struct hl_io_request *request)
{
	int yes = 1;

	if (request->write && atomic_compare_exchange_strong(&blocked, &yes, 2)) {
		pthread_barrier_wait(&begun);
		pthread_barrier_wait(&begun);
	}
}

static void *sync_in_thread(void *rc)
{
	*(int *)rc = hl_pagecache_sync(cache);
	return NULL;
}

static void a_page_that_is_dirtied_during_its_write_back_stays_dirty(void **state)
{
	struct hl_frame *frame;
	pthread_t thread;
	void *data;
	int rc = -1;

	(void)state;
	open_with(4, 10, 0, 0);
	put(1, 1);
	pthread_barrier_init(&begun, NULL, 2);
	blocked = 1;
	faulty_before = block_once;
	assert_int_equal(pthread_create(&thread, NULL, sync_in_thread, &rc), 0);
	pthread_barrier_wait(&begun);
	/* It can be read meanwhile, and written to when it is in the file. */
	expect(1, 1);
	assert_int_equal(hl_page_fix(cache, 1, HL_PAGE_EXCLUSIVE | HL_PAGE_TRY, &data), -EAGAIN);
	frame = hl_table_find(cache, 1);
	assert_true(atomic_load(&frame->word) & HL_FRAME_DIRTY);
	pthread_barrier_wait(&begun);
	put(1, 2);
	pthread_join(thread, NULL);
	assert_int_equal(rc, 0);
	assert_int_equal(hl_pagecache_sync(cache), 0);
	expect_in_file(1, 2);
	close_cache();
}

static void a_second_sync_waits_for_what_the_first_is_writing(void **state)
{
	pthread_t one, two;
	int rc_one = -1, rc_two = -1;

	(void)state;
	open_with(4, 10, 0, 0);
	put(1, 1);
	pthread_barrier_init(&begun, NULL, 2);
	blocked = 1;
	faulty_before = block_once;
	faulty_write = -EIO;
	assert_int_equal(pthread_create(&one, NULL, sync_in_thread, &rc_one), 0);
	pthread_barrier_wait(&begun);
	assert_int_equal(pthread_create(&two, NULL, sync_in_thread, &rc_two), 0);
	pthread_barrier_wait(&begun);
	pthread_join(one, NULL);
	pthread_join(two, NULL);
	assert_int_equal(rc_one, -EIO);
	assert_int_equal(rc_two, -EIO);
	faulty_write = 0;
	close_cache();
}

/* ---- Who holds what ---- */

struct told {
	int n, ended;
	uint64_t page;
};

static void note_holder(const struct hl_page_holder *holder, void *arg)
{
	struct told *told = arg;

	told->n++;
	told->ended += holder->ended;
	told->page = holder->page;
}

static void note_leak(struct hl_pagecache *which, uint64_t page, void *data, void *arg)
{
	struct told *told = arg;

	assert_ptr_equal(which, cache);
	assert_non_null(data);
	told->n++;
	told->page = page;
}

static void *fix_and_end(void *page)
{
	return fix((uint64_t)(uintptr_t)page, HL_PAGE_SHARED);
}

static void a_thread_that_ends_with_a_page_is_reported(void **state)
{
	struct told leaks = { 0 }, holders = { 0 };
	const struct hl_pagecache_options options = {
		.limit = 4 * PAGE, .pages = 10, .leaked = note_leak, .leaked_arg = &leaks
	};
	pthread_t thread;
	void *data, *mine;

	(void)state;
	assert_int_equal(hl_pagecache_open_by(&cache, path, &options, &faulty_io), 0);
	assert_int_equal(pthread_create(&thread, NULL, fix_and_end, (void *)7), 0);
	pthread_join(thread, &data);
	assert_int_equal(leaks.n, 1);
	assert_int_equal(leaks.page, 7);
	assert_int_equal(stats().leaked, 1);
	mine = fix(3, HL_PAGE_SHARED);
	assert_int_equal(hl_pagecache_holders(cache, note_holder, &holders), 2);
	assert_int_equal(holders.n, 2);
	assert_int_equal(holders.ended, 1);
	assert_int_equal(hl_pagecache_close(cache), -EBUSY);
	unfix(data);
	unfix(mine);
	assert_int_equal(hl_pagecache_holders(cache, note_holder, &holders), 0);
	close_cache();
}

static void a_thread_can_fix_more_pages_than_it_has_room_for_at_first(void **state)
{
	void *data[200];
	struct told holders = { 0 };

	(void)state;
	open_with(200, 200, 0, 0);
	for (unsigned i = 0; i < 200; i++)
		data[i] = fix(i, HL_PAGE_SHARED);
	assert_int_equal(hl_pagecache_holders(cache, note_holder, &holders), 200);
	for (unsigned i = 0; i < 200; i++)
		unfix(data[(i * 7) % 200]);
	assert_int_equal(stats().fixed, 0);
	close_cache();
}

static void a_child_of_fork_gets_errors_and_the_parent_is_unharmed(void **state)
{
	struct hl_pagecache_stats now;
	struct hl_page_read read;
	unsigned char there;
	void *data, *mine;
	pid_t pid;
	int status;

	(void)state;
	open_with(4, 10, 0, 0);
	put(1, 1);
	mine = fix(1, HL_PAGE_SHARED);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		struct hl_pagecache *own;
		bool bad = hl_page_fix(cache, 1, 0, &data) != -ECHILD ||
			   hl_page_unfix(cache, mine) != -ECHILD ||
			   hl_page_dirty(cache, mine) != -ECHILD ||
			   hl_page_read_begin(cache, 1, &read) != -ECHILD ||
			   hl_pagecache_sync(cache) != -ECHILD ||
			   hl_pagecache_close(cache) != -ECHILD ||
			   hl_pagecache_abandon(cache) != -ECHILD ||
			   hl_pagecache_pages(cache) != -ECHILD ||
			   hl_pagecache_grow(cache, 20) != -ECHILD ||
			   hl_pagecache_discard(cache, 0, 1) != -ECHILD ||
			   hl_pagecache_resize(cache, 2 * PAGE) != -ECHILD ||
			   hl_pagecache_holders(cache, NULL, NULL) != -ECHILD ||
			   hl_pagecache_get_stats(cache, &now) != -ECHILD;

		/* The pages are not there, so they cannot be changed under the parent. */
		bad |= mincore(mine, PAGE, &there) != -1 || errno != ENOMEM;
		/* It can have its own. */
		bad |= hl_pagecache_open(&own, path,
					 &(struct hl_pagecache_options){
						 .limit = 2 * PAGE, .write_after_ms = UINT_MAX }) !=
			       0 ||
		       hl_page_fix(own, 3, 0, &data) != 0 || hl_page_unfix(own, data) != 0 ||
		       hl_pagecache_close(own) != 0;
		_exit(bad);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(holds(mine, 1, 1));
	unfix(mine);
	close_cache();
	expect_in_file(1, 1);
}

/* ---- Limits and lengths ---- */

static void a_file_grows_and_reads_as_zeroes(void **state)
{
	char *data;

	(void)state;
	open_with(2, 1, 0, 0);
	put(0, 1);
	for (uint64_t pages = 2; pages < 40; pages++) {
		assert_int_equal(hl_pagecache_grow(cache, pages), 0);
		assert_int_equal(hl_pagecache_pages(cache), pages);
		data = fix(pages - 1, 0);
		assert_int_equal(data[0] | data[PAGE - 1], 0);
		unfix(data);
		put(pages - 1, pages);
	}
	assert_int_equal(hl_pagecache_grow(cache, 3), 0);
	assert_int_equal(hl_pagecache_pages(cache), 39);
	assert_int_equal(hl_pagecache_grow(cache, UINT64_MAX / 2), -EFBIG);
	for (uint64_t page = 1; page < 39; page++)
		expect(page, page + 1);
	close_cache();
}

static void discarded_pages_read_as_zeroes(void **state)
{
	char *data;

	(void)state;
	open_with(3, 20, 0, 0);
	for (uint64_t page = 0; page < 20; page++)
		put(page, 1);
	assert_int_equal(hl_pagecache_discard(cache, 5, 10), 0);
	for (uint64_t page = 0; page < 20; page++) {
		if (page < 5 || page >= 15) {
			expect(page, 1);
			continue;
		}
		data = fix(page, 0);
		assert_int_equal(data[0] | data[8] | data[PAGE - 1], 0);
		unfix(data);
	}
	assert_int_equal(hl_pagecache_discard(cache, 15, 6), -ERANGE);
	data = fix(2, 0);
	assert_int_equal(hl_pagecache_discard(cache, 2, 1), -EBUSY);
	unfix(data);
	put(6, 2);
	close_cache();
	expect_in_file(6, 2);
}

static size_t memory_of_process(unsigned long *resident)
{
	unsigned long mapped = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	assert_int_equal(fscanf(file, "%lu %lu", &mapped, resident), 2);
	fclose(file);
	return mapped * (size_t)sysconf(_SC_PAGESIZE);
}

static size_t resident_bytes(void)
{
	unsigned long pages;

	memory_of_process(&pages);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void a_lower_limit_holds_at_once(void **state)
{
	const struct hl_pagecache_options options = { .limit = 1000 * PAGE,
						      .pages = 2000,
						      .most = 1500 * PAGE };
	size_t start = resident_bytes(), before, after;
	void *data;

	(void)state;
	assert_int_equal(hl_pagecache_open_by(&cache, path, &options, &faulty_io), 0);
	for (uint64_t page = 0; page < 1500; page++)
		put(page, 1);
	before = resident_bytes();
	assert_int_equal(stats().total, 1000);
	assert_true(UNDER_SANITIZER || before < start + 1100 * PAGE);
	assert_int_equal(hl_pagecache_resize(cache, 100 * PAGE), 0);
	assert_int_equal(stats().total, 100);
	after = resident_bytes();
	assert_true(before > after + 500 * PAGE);
	for (uint64_t page = 0; page < 1500; page++)
		expect(page, 1);
	assert_true(UNDER_SANITIZER || resident_bytes() < after + 300 * PAGE);
	assert_int_equal(hl_pagecache_resize(cache, 1500 * PAGE), 0);
	for (uint64_t page = 0; page < 1500; page++)
		put(page, 2);
	assert_int_equal(stats().total, 1500);
	assert_int_equal(hl_pagecache_resize(cache, 1501 * PAGE), -E2BIG);
	assert_int_equal(hl_pagecache_resize(cache, 10), -EINVAL);
	data = fix(1499, 0);
	hl_pagecache_resize(cache, PAGE);
	for (uint64_t page = 0; page < 1499; page++) {
		void *other;
		int rc = hl_page_fix(cache, page, 0, &other);

		assert_true(rc == 0 || rc == -ENOBUFS);
		if (!rc) {
			assert_true(holds(other, page, 2));
			unfix(other);
		}
	}
	unfix(data);
	assert_int_equal(hl_pagecache_resize(cache, PAGE), 0);
	assert_int_equal(stats().total, 1);
	for (uint64_t page = 0; page < 1500; page++)
		expect(page, 2);
	close_cache();
}

static size_t data_of_process(void)
{
	unsigned long data = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	assert_int_equal(fscanf(file, "%*u %*u %*u %*u %*u %lu", &data), 1);
	fclose(file);
	return data * (size_t)sysconf(_SC_PAGESIZE);
}

/* With a limit to what is left of addresses or data; 0, or what is wrong. */
static int use_default_with(__rlimit_resource_t resource, rlim_t most, size_t room)
{
	const struct rlimit limit = { most, most };
	void *data;

	if (setrlimit(resource, &limit))
		return 1;
	if (hl_default_limit() > room / 2 || hl_default_limit() < room / 4)
		return 2;
	if (hl_pagecache_open(&cache, path, &(struct hl_pagecache_options){ .pages = 10 }))
		return 3;
	return hl_page_fix(cache, 1, 0, &data) || !malloc(32 << 20) ? 4 : 0;
}

static void the_limit_by_default_leaves_room(void **state)
{
	const size_t room = 256 << 20;
	unsigned long resident;

	(void)state;
	assert_true(hl_default_limit() > 0);
	for (int of_data = 0; of_data < 2 && !UNDER_SANITIZER; of_data++) {
		rlim_t most = (of_data ? data_of_process() : memory_of_process(&resident)) + room;
		int status;
		pid_t pid = fork();

		if (!pid)
			_exit(use_default_with(of_data ? RLIMIT_DATA : RLIMIT_AS, most, room));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
}

static void a_hot_set_survives_a_scan(void **state)
{
	const unsigned pages = 2000, frames = 200, hot = 100;
	unsigned missed = 0;
	void *data;

	(void)state;
	open_with(frames, pages, 0, 0);
	for (int round = 0; round < 4; round++) {
		for (uint64_t page = 0; page < hot; page++)
			unfix(fix(page, 0));
	}
	for (uint64_t page = hot; page < pages; page++) {
		unfix(fix(page, 0));
		if (hl_page_fix(cache, page * 7 % hot, HL_PAGE_TRY, &data)) {
			missed++;
			data = fix(page * 7 % hot, 0);
		}
		unfix(data);
	}
	assert_true(missed < (pages - hot) / 20);
	close_cache();
}

static void many_caches_are_open_at_once(void **state)
{
	enum { N = 300 };
	static struct hl_pagecache *many[N];
	const struct hl_pagecache_options options = { .limit = 2 * PAGE, .pages = 4 };

	(void)state;
	for (unsigned i = 0; i < N; i++)
		assert_int_equal(hl_pagecache_open(&many[i], path, &options), 0);
	for (unsigned i = 0; i < N; i++) {
		cache = many[i];
		put(i % 4, i);
		expect(i % 4, i);
	}
	for (unsigned i = 0; i < N; i++) {
		cache = many[i];
		expect(i % 4, i);
		assert_int_equal(hl_pagecache_abandon(cache), 0);
	}
}

/* ---- Several pages at once, later, ahead ---- */

static void several_pages_are_read_in_one_submission(void **state)
{
	uint64_t page[40];
	void *data[40];

	(void)state;
	open_with(50, 200, 0, 0);
	for (uint64_t i = 0; i < 200; i++)
		put(i, 4);
	close_cache();
	open_with(50, 200, 0, 0);
	expect(7, 4);
	faulty_reset();
	for (unsigned i = 0; i < 40; i++)
		page[i] = i * 37 % 200;
	assert_int_equal(hl_page_fix_many(cache, page, 40, HL_PAGE_SHARED, data), 0);
	for (unsigned i = 0; i < 40; i++)
		assert_true(holds(data[i], page[i], 4));
	assert_int_equal(faulty_runs, 1);
	assert_int_equal(stats().fixed, 40);
	for (unsigned i = 0; i < 40; i++)
		unfix(data[i]);
	assert_int_equal(stats().hits + stats().misses, 41);
	assert_int_equal(hl_page_fix_many(cache, page, 257, 0, data), -EINVAL);
	close_cache();
}

static void of_several_pages_all_are_fixed_or_none(void **state)
{
	uint64_t page[6] = { 1, 2, 3, 4, 5, 6 };
	void *data[6];

	(void)state;
	open_with(4, 10, 0, 0);
	assert_int_equal(hl_page_fix_many(cache, page, 6, 0, data), -ENOBUFS);
	assert_int_equal(stats().fixed, 0);
	faulty_read = -EIO;
	faulty_page = 8;
	for (int i = 0; i < 4; i++)
		page[i] += 5;
	assert_int_equal(hl_page_fix_many(cache, page, 4, 0, data), -EIO);
	assert_int_equal(stats().fixed, 0);
	page[3] = 10;
	faulty_read = 0;
	assert_int_equal(hl_page_fix_many(cache, page, 4, 0, data), -ERANGE);
	page[3] = 6;
	assert_int_equal(hl_page_fix_many(cache, page, 4, HL_PAGE_EXCLUSIVE, data), -EDEADLK);
	assert_int_equal(hl_page_fix_many(cache, page, 3, HL_PAGE_EXCLUSIVE, data), 0);
	for (int i = 0; i < 3; i++)
		unfix(data[i]);
	close_cache();
}

static void *fix_overlapping(void *arg)
{
	uint64_t random = (uintptr_t)arg, page[4];
	void *data[4];

	for (int round = 0; round < 500; round++) {
		for (int i = 0; i < 4; i++) {
			random = random * 6364136223846793005u + 1;
			page[i] = (uint64_t)i * 3 + (random >> 40) % 3;
		}
		if (hl_page_fix_many(cache, page, 4, HL_PAGE_EXCLUSIVE, data))
			return (void *)1;
		for (int i = 0; i < 4; i++)
			hl_page_unfix(cache, data[i]);
	}
	return NULL;
}

static void threads_that_fix_the_same_pages_at_once_do_not_lock_each_other_up(void **state)
{
	pthread_t thread[4];
	void *failed;

	(void)state;
	open_with(20, 12, 0, 0);
	for (uintptr_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, fix_overlapping, (void *)(i + 1)),
				 0);
	for (int i = 0; i < 4; i++) {
		pthread_join(thread[i], &failed);
		assert_null(failed);
	}
	close_cache();
}

static void write_to_pipe(struct hl_page_request *request)
{
	char byte = 1;

	assert_int_equal(write(*(int *)request->arg, &byte, 1), 1);
}

static void a_fix_that_was_begun_is_told_of_and_ended(void **state)
{
	struct hl_page_request request = { .page = 3, .done = write_to_pipe };
	int ends[2];
	void *data;
	char byte;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	request.arg = &ends[1];
	open_with(2, 10, 0, 0);
	put(3, 1);
	/* In memory: at once. */
	assert_int_equal(hl_page_fix_begin(cache, &request), 0);
	assert_int_equal(hl_page_fix_end(&request, &data), 0);
	unfix(data);
	assert_int_equal(hl_pagecache_resize(cache, PAGE), 0);
	unfix(fix(5, 0));
	for (unsigned how = HL_PAGE_SHARED; how <= HL_PAGE_EXCLUSIVE; how++) {
		request.how = how;
		assert_int_equal(hl_page_fix_begin(cache, &request), -EINPROGRESS);
		assert_int_equal(read(ends[0], &byte, 1), 1);
		/* Nobody takes its memory meanwhile. */
		assert_int_equal(hl_page_fix(cache, 6, 0, &data), -ENOBUFS);
		assert_int_equal(hl_page_fix_end(&request, &data), 0);
		assert_true(holds(data, 3, 1));
		unfix(data);
		unfix(fix(5, 0));
	}
	faulty_read = -EIO;
	assert_int_equal(hl_page_fix_begin(cache, &request), -EINPROGRESS);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	assert_int_equal(hl_page_fix_end(&request, &data), -EIO);
	request.page = 10;
	assert_int_equal(hl_page_fix_begin(cache, &request), 0);
	assert_int_equal(hl_page_fix_end(&request, &data), -ERANGE);
	close_cache();
	close(ends[0]);
	close(ends[1]);
}

static void *want_exclusively(void *data)
{
	assert_int_equal(hl_page_fix(cache, 3, HL_PAGE_EXCLUSIVE, data), 0);
	return NULL;
}

static void a_fix_that_was_begun_does_not_wait_for_who_waits_for_it(void **state)
{
	struct hl_page_request request = { .page = 3 };
	void *mine, *theirs;
	pthread_t thread;

	(void)state;
	open_with(2, 10, 0, 0);
	put(3, 1);
	assert_int_equal(hl_page_fix_begin(cache, &request), 0);
	assert_int_equal(pthread_create(&thread, NULL, want_exclusively, &theirs), 0);
	while (!(atomic_load(&hl_table_find(cache, 3)->word) & HL_FRAME_WANT))
		sched_yield();
	assert_int_equal(hl_page_fix_end(&request, &mine), 0);
	unfix(mine);
	pthread_join(thread, NULL);
	unfix(theirs);
	close_cache();
}

static bool is_in_memory(uint64_t page)
{
	const struct hl_frame *frame = hl_table_find(cache, page);

	return frame && atomic_load(&frame->word) & HL_FRAME_RESIDENT;
}

static void prefetched_pages_need_not_be_read(void **state)
{
	(void)state;
	open_with(100, 100, 0, 0);
	assert_int_equal(hl_pagecache_prefetch(cache, 50, 20), 0);
	assert_int_equal(hl_pagecache_prefetch(cache, 90, 1000), 0);
	/* The thread that reads is told to, and this one waits for the last page. */
	while (!is_in_memory(99))
		sched_yield();
	faulty_reads = 0;
	for (uint64_t page = 50; page < 70; page++)
		unfix(fix(page, 0));
	unfix(fix(99, 0));
	assert_int_equal(faulty_reads, 0);
	close_cache();
}

static void who_reads_in_a_row_reads_ahead(void **state)
{
	(void)state;
	open_with(400, 1000, 0, 0);
	for (uint64_t page = 0; page < 1000; page++)
		unfix(fix(page, 0));
	assert_true(faulty_reads < 40);
	assert_int_equal(stats().hits + stats().misses, 1000);
	faulty_reset();
	for (uint64_t page = 0; page < 1000; page++)
		unfix(fix(page * 331 % 1000, 0));
	assert_true(stats().pages_read - 1000 <= 1000);
	close_cache();
}

static void wait_until_clean(void)
{
	while (stats().dirty)
		sched_yield();
}

static void old_pages_and_too_many_are_written_without_being_asked_for(void **state)
{
	struct hl_pagecache_options options = {
		.limit = 1000 * PAGE, .pages = 1000, .write_after_ms = 1, .dirty_percent = 100
	};

	(void)state;
	assert_int_equal(hl_pagecache_open_by(&cache, path, &options, &faulty_io), 0);
	put(1, 1);
	wait_until_clean();
	expect_in_file(1, 1);
	close_cache();
	options.write_after_ms = 1000000;
	options.dirty_percent = 10;
	assert_int_equal(hl_pagecache_open_by(&cache, path, &options, &faulty_io), 0);
	for (uint64_t page = 0; page < 500; page++)
		put(page, 2);
	while (stats().dirty > 100)
		sched_yield();
	close_cache();
}

/* A log in a cache of its own, whose pages say what they led to. */
static struct hl_pagecache *log_cache;
static uint64_t logged, refused;
static bool log_fails;

static int sync_log_to(struct hl_pagecache *which, uint64_t page, const void *data, void *arg)
{
	uint64_t needs = *(const uint64_t *)data;

	assert_ptr_equal(which, cache);
	assert_ptr_equal(arg, &logged);
	(void)page;
	if (log_fails) {
		refused++;
		return -EROFS;
	}
	if (needs > logged) {
		int rc = hl_pagecache_sync(log_cache);

		if (rc)
			return rc;
		logged = needs;
	}
	return 0;
}

/* Whatever is written of the data, the log has it. */
static void check_order(const struct hl_io_request *request)
{
	if (!request->write || request->n_iov == 0)
		return;
	for (unsigned i = 0; i < request->n_iov; i++)
		assert_true(*(uint64_t *)request->iov[i].iov_base <= logged);
}

static void a_page_is_not_written_before_its_log(void **state)
{
	const struct hl_pagecache_options data_options = {
		.limit = 5 * PAGE,
		.pages = 50,
		.write_after_ms = UINT_MAX,
		.before_write = sync_log_to,
		.before_write_arg = &logged,
	};
	char log_path[] = "pagecache-log-XXXXXX";
	const struct hl_pagecache_options log_options = { .limit = 4 * PAGE, .pages = 200 };
	uint64_t *data;

	(void)state;
	close(mkstemp(log_path));
	assert_int_equal(hl_pagecache_open(&log_cache, log_path, &log_options), 0);
	assert_int_equal(hl_pagecache_open_by(&cache, path, &data_options, &faulty_io), 0);
	logged = refused = 0;
	log_fails = false;
	faulty_before = check_order;
	for (uint64_t number = 1; number < 200; number++) {
		assert_int_equal(hl_page_fix(log_cache, number, HL_PAGE_NEW, (void **)&data), 0);
		*data = number;
		hl_page_unfix(log_cache, data);
		data = fix(number * 7 % 50, HL_PAGE_EXCLUSIVE);
		*data = number;
		hl_page_dirty(cache, data);
		unfix(data);
	}
	assert_true(logged > 100 && faulty_writes > 0);
	log_fails = true;
	assert_int_equal(hl_pagecache_sync(cache), -EROFS);
	assert_true(refused > 0 && stats().dirty > 0);
	log_fails = false;
	close_cache();
	assert_int_equal(logged, 199);
	assert_int_equal(hl_pagecache_close(log_cache), 0);
	unlink(log_path);
}

static void sets_of_pages_keep_what_was_added_and_not_removed(void **state)
{
	struct hl_pageset set = { 0 };

	(void)state;
	for (uint64_t page = 0; page < 5000; page++)
		hl_pageset_add(&set, page * page);
	for (uint64_t page = 0; page < 5000; page += 2)
		hl_pageset_remove(&set, page * page);
	hl_pageset_remove(&set, 2);
	assert_int_equal(set.n, 2500);
	for (uint64_t page = 0; page < 5000; page++)
		assert_int_equal(hl_pageset_any(&set, page * page, 1), page % 2);
	hl_pageset_free(&set);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_path, remove_path)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_was_written_is_read_again_with_any_number_of_frames),
		TEST(every_way_of_doing_io_does_the_same),
		TEST(pages_of_every_size_keep_what_they_hold),
		TEST(a_new_page_is_not_read),
		TEST(a_cache_full_of_clean_pages_takes_writes),
		TEST(a_shared_page_excludes_who_wants_it_exclusively),
		TEST(what_cannot_be_is_refused),
		TEST(a_read_only_cache_writes_nothing),
		TEST(an_optimistic_read_sees_that_the_page_changed),
		TEST(a_read_error_is_the_callers_each_time_and_goes_away_with_its_cause),
		TEST(a_write_error_comes_with_every_sync_until_the_page_was_written),
		TEST(pages_that_cannot_be_written_do_not_make_room_and_say_why),
		TEST(a_failed_fsync_is_remembered_until_the_pages_were_written_anew),
		TEST(a_sync_that_fails_says_so_though_only_the_length_changed),
		TEST(a_page_that_is_in_memory_is_written_again_after_a_failed_fsync),
		TEST(short_transfers_are_continued),
		TEST(a_file_that_was_truncated_is_an_error_and_no_signal),
		TEST(a_file_may_end_within_a_page),
		TEST(when_all_is_fixed_there_is_a_prompt_error),
		TEST(when_all_is_fixed_it_can_wait_for_one),
		TEST(a_page_that_is_read_has_one_frame_however_many_want_it),
		TEST(a_page_that_is_dirtied_during_its_write_back_stays_dirty),
		TEST(a_second_sync_waits_for_what_the_first_is_writing),
		TEST(a_thread_that_ends_with_a_page_is_reported),
		TEST(a_thread_can_fix_more_pages_than_it_has_room_for_at_first),
		TEST(a_child_of_fork_gets_errors_and_the_parent_is_unharmed),
		TEST(a_file_grows_and_reads_as_zeroes),
		TEST(discarded_pages_read_as_zeroes),
		TEST(a_lower_limit_holds_at_once),
		TEST(the_limit_by_default_leaves_room),
		TEST(a_hot_set_survives_a_scan),
		TEST(many_caches_are_open_at_once),
		TEST(several_pages_are_read_in_one_submission),
		TEST(of_several_pages_all_are_fixed_or_none),
		TEST(threads_that_fix_the_same_pages_at_once_do_not_lock_each_other_up),
		TEST(a_fix_that_was_begun_is_told_of_and_ended),
		TEST(a_fix_that_was_begun_does_not_wait_for_who_waits_for_it),
		TEST(prefetched_pages_need_not_be_read),
		TEST(who_reads_in_a_row_reads_ahead),
		TEST(old_pages_and_too_many_are_written_without_being_asked_for),
		TEST(a_page_is_not_written_before_its_log),
		TEST(sets_of_pages_keep_what_was_added_and_not_removed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
