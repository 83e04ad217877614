// SPDX-License-Identifier: MIT
/*
 * Pages that are not written before others. What is written and synced is put down as it
 * happens, and looked at afterwards.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <hotline/pagecache.h>

#include "../tools/faulty_io.h"
#include "pagecache/internal.h"

#include "../tools/pages.h"

#define PAGES 3000u

/* ---- What was written when ---- */

/* The number of syncs that had succeeded when a page was first written after start(), and one. */
static _Atomic(uint64_t) written_at[PAGES];

static void note(const struct hl_io_request *request)
{
	uint64_t page = request->offset / PAGE, none;

	for (unsigned i = 0; request->write && i < request->n_iov; i++) {
		none = 0;
		atomic_compare_exchange_strong(&written_at[page + i], &none, faulty_syncs + 1);
	}
}

static void start(void)
{
	for (unsigned i = 0; i < PAGES; i++)
		written_at[i] = 0;
	faulty_before = note;
}

static bool was_written(uint64_t page)
{
	return written_at[page];
}

/* With a sync between. */
static bool was_before(uint64_t first, uint64_t then)
{
	return written_at[first] && written_at[then] && written_at[first] < written_at[then];
}

/* Orders that the cache still has. */
static size_t orders(void)
{
	size_t n;

	pthread_mutex_lock(&cache->written_lock);
	n = cache->orders.n;
	assert_true(n || !cache->orders.n_pages);
	pthread_mutex_unlock(&cache->written_lock);
	return n;
}

static void order(uint64_t first, uint64_t then)
{
	assert_int_equal(hl_page_write_before(cache, first, then), 0);
}

/* Changes a page after it was ordered behind another. */
static void put_after(uint64_t first, uint64_t then, uint64_t value)
{
	void *data = fix(then, HL_PAGE_EXCLUSIVE);

	order(first, then);
	hl_page_dirty(cache, data);
	unfix(data);
	put(then, value);
}

static void read_page(uint64_t page)
{
	unfix(fix(page, HL_PAGE_SHARED));
}

/* Has all other pages make room. */
static void push_out(void)
{
	void *data[16];
	uint64_t n = stats().total;

	for (uint64_t i = 0; i < n; i++)
		data[i] = fix(80 + i, HL_PAGE_SHARED);
	for (uint64_t i = 0; i < n; i++)
		unfix(data[i]);
}

/* ---- Whatever a page is written for ---- */

static void to_make_room_the_first_page_is_written_and_synced_first(void **state)
{
	(void)state;
	for (unsigned frames = 1; frames <= 10; frames++) {
		open_with(frames, 100, 0, 0);
		start();
		put(1, frames);
		put_after(1, 2, frames);
		push_out();
		assert_true(was_before(1, 2));
		assert_int_equal(orders(), 0);
		close_cache();
		expect_in_file(1, frames);
		expect_in_file(2, frames);
	}
}

static void a_sync_of_the_second_page_alone_writes_the_first(void **state)
{
	(void)state;
	open_with(10, 100, 0, 0);
	start();
	put(50, 1);
	put(70, 1);
	put_after(50, 3, 1);
	assert_int_equal(hl_pagecache_sync_range(cache, 3, 1), 0);
	assert_true(was_before(50, 3));
	assert_false(was_written(70));
	assert_int_equal(orders(), 0);
	close_cache();
}

static void close_and_resize_write_in_order(void **state)
{
	struct hl_pagecache_options options = { .limit = 8 * PAGE,
						.pages = 100,
						.write_after_ms = UINT_MAX };

	(void)state;
	for (int resize = 0; resize < 2; resize++) {
		assert_int_equal(hl_pagecache_open_by(&cache, path, &options, &faulty_io), 0);
		start();
		for (uint64_t page = 8; page > 1; page--) {
			put(page, 5);
			order(page, page - 1);
		}
		put(1, 5);
		if (resize)
			assert_int_equal(hl_pagecache_resize(cache, PAGE), 0);
		else
			close_cache();
		for (uint64_t page = 8; page > 2; page--)
			assert_true(was_before(page, page - 1));
		if (resize)
			close_cache();
		assert_true(was_before(2, 1));
	}
}

static void pages_that_are_written_by_age_are_in_order(void **state)
{
	struct hl_pagecache_options options = { .limit = 100 * PAGE,
						.pages = 100,
						.write_after_ms = 1 };

	(void)state;
	assert_int_equal(hl_pagecache_open_by(&cache, path, &options, &faulty_io), 0);
	start();
	put(1, 1);
	put_after(1, 2, 1);
	while (!was_written(2))
		sched_yield();
	assert_true(was_before(1, 2));
	close_cache();
}

static void what_is_on_the_device_needs_no_order(void **state)
{
	(void)state;
	open_with(4, 100, 0, 0);
	order(1, 2); /* never written */
	assert_int_equal(orders(), 0);
	put(1, 1);
	assert_int_equal(hl_pagecache_sync(cache), 0);
	order(1, 2);
	assert_int_equal(orders(), 0);
	put(1, 2);
	order(1, 2);
	order(1, 2);
	assert_int_equal(orders(), 1);
	/* Written to make room, and not synced. */
	push_out();
	assert_int_equal(stats().dirty, 0);
	assert_int_equal(orders(), 1);
	order(1, 3);
	assert_int_equal(orders(), 2);
	assert_int_equal(hl_pagecache_sync(cache), 0);
	assert_int_equal(orders(), 0);
	close_cache();
}

/* What was written before the order was given is not what the order is for. */
static void the_page_is_written_as_it_was_when_it_was_ordered(void **state)
{
	(void)state;
	open_with(1, 100, 0, 0);
	put(1, 1);
	read_page(5); /* the old page 1 is written, and waits for a sync */
	start();
	put(1, 2);
	put_after(1, 2, 1);
	read_page(5);
	assert_true(was_before(1, 2));
	expect_in_file(1, 2);
	close_cache();
}

/* ---- Many ---- */

static void a_chain_is_written_from_its_beginning(void **state)
{
	enum { LENGTH = 200 };

	(void)state;
	open_with(LENGTH + 10, PAGES, 0, 0);
	start();
	/* The last in the file is the first in order. */
	for (uint64_t page = LENGTH; page > 0; page--) {
		put(page, 1);
		order(page, page - 1);
	}
	put(0, 1);
	assert_int_equal(orders(), LENGTH);
	assert_int_equal(hl_pagecache_sync_range(cache, 0, 1), 0);
	for (uint64_t page = LENGTH; page > 0; page--)
		assert_true(was_before(page, page - 1));
	assert_int_equal(orders(), 0);
	close_cache();
}

static void a_thousand_pages_before_one_take_one_sync_and_few_submissions(void **state)
{
	(void)state;
	open_with(2000, PAGES, 0, 0);
	for (uint64_t page = 1; page <= 1000; page++) {
		put(page * 2, 1);
		order(page * 2, 0);
	}
	put(0, 1);
	assert_int_equal(orders(), 1000);
	start();
	faulty_runs = faulty_syncs = 0;
	assert_int_equal(hl_pagecache_sync_range(cache, 0, 1), 0);
	for (uint64_t page = 1; page <= 1000; page++)
		assert_true(was_before(page * 2, 0));
	assert_true(faulty_runs < 10);
	assert_true(faulty_syncs < 4); /* the first pages, the page, and what could not wait */
	close_cache();
}

static void one_before_a_thousand_takes_one_sync(void **state)
{
	(void)state;
	open_with(2000, PAGES, 0, 0);
	put(0, 1);
	for (uint64_t page = 1; page <= 1000; page++)
		put_after(0, page * 2, 1);
	start();
	faulty_syncs = 0;
	assert_int_equal(hl_pagecache_sync_range(cache, 1, PAGES), 0);
	for (uint64_t page = 1; page <= 1000; page++)
		assert_true(was_before(0, page * 2));
	assert_true(faulty_syncs < 4);
	close_cache();
}

/* ---- Circles and mistakes ---- */

static void circles_are_refused_and_can_be_synced_away(void **state)
{
	(void)state;
	open_with(10, 100, 0, 0);
	for (uint64_t page = 1; page <= 4; page++)
		put(page, 1);
	order(1, 2);
	order(2, 3);
	order(3, 4);
	order(1, 4);
	assert_int_equal(hl_page_write_before(cache, 2, 1), -EDEADLK);
	assert_int_equal(hl_page_write_before(cache, 4, 1), -EDEADLK);
	assert_int_equal(hl_page_write_before(cache, 4, 2), -EDEADLK);
	assert_int_equal(orders(), 4);
	start();
	/* What goes before page 2 is on the device then, and page 2 too. */
	assert_int_equal(hl_pagecache_sync_range(cache, 2, 1), 0);
	assert_false(was_written(3));
	order(2, 1);
	put(2, 2);
	order(2, 1);
	put(1, 2);
	assert_int_equal(hl_page_write_before(cache, 1, 2), -EDEADLK);
	close_cache();
	assert_true(was_before(3, 4));
	expect_in_file(1, 2);
}

static void what_cannot_be_ordered_is_refused(void **state)
{
	const struct hl_pagecache_options options = { .limit = PAGE,
						      .flags = HL_PAGECACHE_READ_ONLY };
	int status;

	(void)state;
	open_with(2, 10, 0, 0);
	put(1, 1);
	assert_int_equal(hl_page_write_before(cache, 1, 1), -EINVAL);
	assert_int_equal(hl_page_write_before(cache, 1, 10), -ERANGE);
	assert_int_equal(hl_page_write_before(cache, 10, 1), -ERANGE);
	assert_int_equal(hl_page_write_before(cache, UINT64_MAX, 1), -ERANGE);
	order(1, 2);
	if (!fork())
		_exit(hl_page_write_before(cache, 1, 3) != -ECHILD);
	assert_true(wait(&status) > 0 && status == 0);
	/* What was never written is given up with its orders. */
	assert_int_equal(hl_pagecache_abandon(cache), 0);
	assert_int_equal(hl_pagecache_open(&cache, path, &options), 0);
	assert_int_equal(hl_page_write_before(cache, 1, 2), -EROFS);
	close_cache();
}

/* ---- Errors ---- */

static void while_the_first_cannot_be_written_the_second_is_not_and_says_why(void **state)
{
	void *data;

	(void)state;
	for (unsigned frames = 2; frames <= 5; frames++) {
		open_with(frames, 100, 0, 0);
		start();
		put(1, 1);
		put_after(1, 2, 1);
		faulty_page = 1;
		faulty_write = -ENOSPC;
		for (int i = 0; i < 3; i++) {
			assert_int_equal(hl_pagecache_sync_range(cache, 2, 1), -ENOSPC);
			assert_int_equal(hl_pagecache_sync(cache), -ENOSPC);
		}
		assert_int_equal(hl_pagecache_close(cache), -ENOSPC);
		/* What is clean makes room, and when nothing is there is the reason. */
		for (uint64_t page = 10; page < 30; page++) {
			int rc = hl_page_fix(cache, page, HL_PAGE_SHARED, &data);

			assert_int_equal(rc, frames == 2 ? -ENOSPC : 0);
			if (!rc)
				unfix(data);
		}
		assert_false(was_written(2));
		assert_int_equal(stats().dirty, 2);
		faulty_write = 0;
		faulty_page = -1;
		start();
		assert_int_equal(hl_pagecache_sync_range(cache, 2, 1), 0);
		assert_true(was_before(1, 2));
		close_cache();
	}
}

static void a_first_page_that_was_lost_is_waited_for_until_it_is_written_anew(void **state)
{
	(void)state;
	open_with(2, 100, 0, 0);
	start();
	put(1, 1);
	push_out(); /* written, and in no frame */
	put_after(1, 2, 1);
	faulty_sync = -EIO;
	assert_int_equal(hl_pagecache_sync_range(cache, 2, 1), -EIO);
	faulty_sync = 0;
	/* The kernel has forgotten page 1 by now and says yes. */
	for (int i = 0; i < 3; i++)
		assert_int_equal(hl_pagecache_sync_range(cache, 2, 1), -EIO);
	assert_false(was_written(2));
	assert_int_equal(orders(), 1);
	start();
	put(1, 2);
	assert_int_equal(hl_pagecache_sync_range(cache, 2, 1), 0);
	assert_true(was_before(1, 2));
	assert_int_equal(orders(), 0);
	close_cache();
}

static void with_one_frame_a_lost_first_page_can_be_discarded(void **state)
{
	void *data;

	(void)state;
	open_with(1, 100, 0, 0);
	start();
	put(1, 1);
	put_after(1, 2, 1);
	faulty_sync = -EIO;
	assert_int_equal(hl_pagecache_sync(cache), -EIO);
	faulty_sync = 0;
	/* Page 2 has the only frame and cannot leave it. */
	assert_int_equal(hl_page_fix(cache, 1, HL_PAGE_NEW, &data), -EIO);
	assert_int_equal(hl_pagecache_discard(cache, 1, 1), 0);
	assert_int_equal(hl_pagecache_sync(cache), 0);
	assert_true(was_written(2));
	assert_int_equal(orders(), 0);
	expect(2, 1);
	close_cache();
}

static void a_failed_sync_has_the_first_written_again_if_it_is_there(void **state)
{
	(void)state;
	open_with(5, 100, 0, 0);
	put(1, 1);
	put_after(1, 2, 1);
	start();
	faulty_sync = -EIO;
	assert_int_equal(hl_pagecache_sync_range(cache, 2, 1), -EIO);
	assert_true(was_written(1) && !was_written(2));
	faulty_sync = 0;
	start();
	assert_int_equal(hl_pagecache_sync_range(cache, 2, 1), 0);
	assert_true(was_before(1, 2));
	close_cache();
}

/* ---- Discarding ---- */

static void discarding_the_second_writes_the_first(void **state)
{
	(void)state;
	for (int in_memory = 0; in_memory < 2; in_memory++) {
		open_with(5, 100, 0, 0);
		start();
		put(1, 1);
		if (in_memory)
			put_after(1, 2, 1);
		else
			order(1, 2);
		faulty_page = 1;
		faulty_write = -EIO;
		assert_int_equal(hl_pagecache_discard(cache, 2, 1), -EIO);
		faulty_write = 0;
		faulty_page = -1;
		faulty_syncs = 0;
		assert_int_equal(hl_pagecache_discard(cache, 2, 1), 0);
		assert_true(was_written(1) && faulty_syncs > 0);
		assert_int_equal(orders(), 0);
		close_cache();
	}
}

static void discarding_the_first_is_newer_than_what_it_held(void **state)
{
	(void)state;
	open_with(5, 100, 0, 0);
	start();
	put(1, 1);
	put_after(1, 2, 1);
	assert_int_equal(hl_pagecache_discard(cache, 1, 1), 0);
	faulty_syncs = 0;
	assert_int_equal(hl_pagecache_sync_range(cache, 2, 1), 0);
	assert_false(was_written(1));
	assert_int_equal(written_at[2], 2); /* after one sync */
	close_cache();
}

/* ---- A first page that somebody has ---- */

struct other {
	uint64_t page;
	_Atomic(bool) has, let_go;
};

static void *hold(void *arg)
{
	struct other *other = arg;
	void *data = fix(other->page, HL_PAGE_EXCLUSIVE);

	atomic_store(&other->has, true);
	while (!atomic_load(&other->let_go))
		sched_yield();
	unfix(data);
	return NULL;
}

static void while_the_first_is_fixed_exclusively_the_second_stays(void **state)
{
	void *data, *first;

	(void)state;
	open_with(2, 100, 0, 0);
	start();
	put(1, 1);
	put_after(1, 2, 1);
	first = fix(1, HL_PAGE_EXCLUSIVE);
	assert_int_equal(hl_page_fix(cache, 3, HL_PAGE_SHARED, &data), -ENOBUFS);
	assert_int_equal(hl_pagecache_sync_range(cache, 2, 1), -EDEADLK);
	assert_int_equal(hl_pagecache_discard(cache, 2, 1), -EBUSY);
	assert_int_equal(hl_pagecache_resize(cache, PAGE), -ENOBUFS);
	assert_int_equal(hl_pagecache_resize(cache, 2 * PAGE), 0);
	assert_false(was_written(2));
	unfix(first);
	/* Who only reads it does not keep it from being written. */
	first = fix(1, HL_PAGE_SHARED);
	read_page(3);
	assert_true(was_before(1, 2));
	unfix(first);
	close_cache();
}

static void who_waits_for_room_or_syncs_gets_on_when_the_first_is_let_go(void **state)
{
	(void)state;
	for (int sync = 0; sync < 2; sync++) {
		struct other other = { .page = 1 };
		pthread_t thread;
		void *data;

		open_with(2, 100, 0, sync ? 0 : 60000);
		start();
		put(1, 1);
		put_after(1, 2, 1);
		assert_int_equal(pthread_create(&thread, NULL, hold, &other), 0);
		while (!atomic_load(&other.has))
			sched_yield();
		if (!sync)
			assert_int_equal(hl_page_fix(cache, 3, HL_PAGE_SHARED | HL_PAGE_TRY, &data),
					 -EAGAIN);
		atomic_store(&other.let_go, true);
		if (sync)
			assert_int_equal(hl_pagecache_sync_range(cache, 2, 1), 0);
		else
			read_page(3);
		pthread_join(thread, NULL);
		assert_true(was_before(1, 2));
		close_cache();
	}
}

/* ---- Threads ---- */

#define HOT 16u

static _Atomic(bool) stop;
static _Atomic(unsigned long) changes, circles;

static void *change(void *arg)
{
	uint64_t random = (uintptr_t)arg;

	while (!atomic_load(&stop)) {
		uint64_t first, then;
		void *data;
		int rc;

		random = random * 6364136223846793005u + 1442695040888963407u;
		first = random >> 33 & (HOT - 1);
		then = random >> 40 & (HOT - 1);
		if (first == then)
			continue;
		rc = hl_page_fix(cache, first, HL_PAGE_EXCLUSIVE, &data);
		if (rc == -ENOBUFS)
			continue;
		assert_int_equal(rc, 0);
		hl_page_dirty(cache, data);
		unfix(data);
		rc = hl_page_fix(cache, then, HL_PAGE_EXCLUSIVE, &data);
		if (rc == -ENOBUFS)
			continue;
		assert_int_equal(rc, 0);
		rc = hl_page_write_before(cache, first, then);
		assert_true(!rc || rc == -EDEADLK);
		circles += rc != 0;
		hl_page_dirty(cache, data);
		unfix(data);
		changes++;
	}
	return NULL;
}

static void syncs_end_though_all_pages_are_ordered_again_and_again(void **state)
{
	static const unsigned frames[] = { 1, 2, 3, 5, 20 };
	pthread_t thread[4];

	(void)state;
	for (unsigned k = 0; k < sizeof(frames) / sizeof(frames[0]); k++) {
		open_with(frames[k], 100, HL_PAGECACHE_BUFFERED, 0);
		faulty_no_sync = true;
		stop = false;
		changes = circles = 0;
		for (uintptr_t i = 0; i < 4; i++)
			assert_int_equal(pthread_create(&thread[i], NULL, change, (void *)(i + 1)),
					 0);
		for (int i = 0; i < 40; i++) {
			assert_int_equal(hl_pagecache_sync_range(cache, (uint64_t)i % HOT, 1), 0);
			if (i % 10 == 0)
				assert_int_equal(hl_pagecache_sync(cache), 0);
		}
		while (!changes)
			sched_yield();
		stop = true;
		for (int i = 0; i < 4; i++)
			pthread_join(thread[i], NULL);
		assert_int_equal(hl_pagecache_sync(cache), 0);
		assert_int_equal(orders(), 0);
		close_cache();
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_path, remove_path)
	const struct CMUnitTest tests[] = {
		TEST(to_make_room_the_first_page_is_written_and_synced_first),
		TEST(a_sync_of_the_second_page_alone_writes_the_first),
		TEST(close_and_resize_write_in_order),
		TEST(pages_that_are_written_by_age_are_in_order),
		TEST(what_is_on_the_device_needs_no_order),
		TEST(the_page_is_written_as_it_was_when_it_was_ordered),
		TEST(a_chain_is_written_from_its_beginning),
		TEST(a_thousand_pages_before_one_take_one_sync_and_few_submissions),
		TEST(one_before_a_thousand_takes_one_sync),
		TEST(circles_are_refused_and_can_be_synced_away),
		TEST(what_cannot_be_ordered_is_refused),
		TEST(while_the_first_cannot_be_written_the_second_is_not_and_says_why),
		TEST(a_first_page_that_was_lost_is_waited_for_until_it_is_written_anew),
		TEST(with_one_frame_a_lost_first_page_can_be_discarded),
		TEST(a_failed_sync_has_the_first_written_again_if_it_is_there),
		TEST(discarding_the_second_writes_the_first),
		TEST(discarding_the_first_is_newer_than_what_it_held),
		TEST(while_the_first_is_fixed_exclusively_the_second_stays),
		TEST(who_waits_for_room_or_syncs_gets_on_when_the_first_is_let_go),
		TEST(syncs_end_though_all_pages_are_ordered_again_and_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
