// SPDX-License-Identifier: MIT
/*
 * Pages that are shared by threads' pins and not by the frame's word: whatever holds of a fixed
 * page holds of these too.
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <hotline/pagecache.h>

#include "pagecache/table.h"

#define PAGE 4096u

static char path[64];
static struct hl_pagecache *cache;

struct told {
	unsigned n, exclusive, ended;
	uint64_t page;
};

static struct told leaks;

static void note_leak(struct hl_pagecache *which, uint64_t page, void *data, void *arg)
{
	(void)which;
	(void)data;
	(void)arg;
	leaks.n++;
	leaks.page = page;
}

static void note_holder(const struct hl_page_holder *holder, void *arg)
{
	struct told *told = arg;

	told->n++;
	told->page = holder->page;
	told->exclusive += holder->exclusive;
	told->ended += holder->ended;
}

static int open_cache(unsigned frames, unsigned wait_ms)
{
	const struct hl_pagecache_options options = {
		.limit = frames * PAGE,
		.pages = 4 * frames,
		.wait_ms = wait_ms,
		.write_after_ms = UINT_MAX,
		.leaked = note_leak,
	};

	return hl_pagecache_open(&cache, path, &options);
}

static int set_up(void **state)
{
	int fd;

	(void)state;
	strcpy(path, "pagecache-pins-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	leaks = (struct told){ 0 };
	assert_int_equal(open_cache(4, 0), 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	assert_int_equal(hl_pagecache_close(cache), 0);
	unlink(path);
	return 0;
}

static void *fix(uint64_t page, unsigned how)
{
	void *data = NULL;

	assert_int_equal(hl_page_fix(cache, page, how, &data), 0);
	return data;
}

static void unfix(void *data)
{
	assert_int_equal(hl_page_unfix(cache, data), 0);
}

static uint64_t word_of(uint64_t page)
{
	return atomic_load(&hl_table_find(cache, page)->word);
}

static bool is_spread(uint64_t page)
{
	return word_of(page) & HL_FRAME_SPREAD;
}

/* Shares a page until it is spread. */
static void spread(uint64_t page)
{
	for (int i = 0; i < 1000 && !(hl_table_find(cache, page) && is_spread(page)); i++)
		unfix(fix(page, 0));
	assert_true(is_spread(page));
}

/* Fixed, and not by its word. */
static void *pin(uint64_t page)
{
	void *data;

	spread(page);
	data = fix(page, 0);
	assert_int_equal(word_of(page) & HL_FRAME_COUNT, 0);
	return data;
}

static struct hl_pagecache_stats stats(void)
{
	struct hl_pagecache_stats now;

	assert_int_equal(hl_pagecache_get_stats(cache, &now), 0);
	assert_int_equal(now.free + now.clean + now.dirty + now.fixed, now.total);
	return now;
}

/* What another thread gets. */
static void *try_exclusively(void *page)
{
	void *data;
	int rc = hl_page_fix(cache, (uintptr_t)page, HL_PAGE_EXCLUSIVE | HL_PAGE_TRY, &data);

	if (!rc)
		hl_page_unfix(cache, data);
	return (void *)(intptr_t)rc;
}

static int elsewhere(void *(*function)(void *), void *arg)
{
	pthread_t thread;
	void *result;

	assert_int_equal(pthread_create(&thread, NULL, function, arg), 0);
	pthread_join(thread, &result);
	return (int)(intptr_t)result;
}

static void a_pinned_page_is_fixed_in_statistics_and_lists(void **state)
{
	struct told told = { 0 };
	void *data = pin(1), *again = fix(1, 0);

	(void)state;
	assert_ptr_equal(data, again);
	assert_int_equal(stats().fixed, 1);
	assert_int_equal(hl_pagecache_holders(cache, note_holder, &told), 2);
	assert_int_equal(told.page, 1);
	assert_int_equal(told.exclusive, 0);
	assert_int_equal(hl_pagecache_close(cache), -EBUSY);
	unfix(data);
	assert_int_equal(stats().fixed, 1);
	unfix(again);
	assert_int_equal(stats().fixed, 0);
	assert_int_equal(hl_page_unfix(cache, data), -EINVAL);
}

static void who_wants_a_pinned_page_exclusively_gets_it_when_it_is_not(void **state)
{
	void *data = pin(1);

	(void)state;
	assert_int_equal(hl_page_dirty(cache, data), -EINVAL);
	assert_int_equal(elsewhere(try_exclusively, (void *)1), -EAGAIN);
	assert_true(is_spread(1));
	unfix(data);
	assert_int_equal(elsewhere(try_exclusively, (void *)1), 0);
	assert_false(is_spread(1));
	spread(1);
}

static void *fix_exclusively(void *page)
{
	void *data;
	int rc = hl_page_fix(cache, (uintptr_t)page, HL_PAGE_EXCLUSIVE, &data);

	if (!rc)
		hl_page_unfix(cache, data);
	return (void *)(intptr_t)rc;
}

static void who_has_pinned_a_page_gets_another_share_while_somebody_waits_for_it(void **state)
{
	void *data = pin(1), *again, *exclusive, *result;
	pthread_t thread;

	(void)state;
	assert_int_equal(hl_page_fix(cache, 1, HL_PAGE_EXCLUSIVE, &exclusive), -EDEADLK);
	assert_int_equal(pthread_create(&thread, NULL, fix_exclusively, (void *)1), 0);
	while (!(word_of(1) & HL_FRAME_WANT))
		sched_yield();
	again = fix(1, 0);
	unfix(data);
	unfix(again);
	pthread_join(thread, &result);
	assert_null(result);
}

static void pinned_pages_stay_where_they_are(void **state)
{
	void *data[4], *more;

	(void)state;
	for (uint64_t page = 0; page < 4; page++)
		data[page] = pin(page);
	assert_int_equal(hl_page_fix(cache, 9, 0, &more), -ENOBUFS);
	assert_int_equal(hl_pagecache_resize(cache, 2 * PAGE), -ENOBUFS);
	assert_int_equal(hl_pagecache_discard(cache, 2, 1), -EBUSY);
	for (uint64_t page = 0; page < 4; page++) {
		assert_ptr_equal(fix(page, 0), data[page]);
		unfix(data[page]);
		unfix(data[page]);
	}
	assert_int_equal(hl_pagecache_resize(cache, 2 * PAGE), 0);
	unfix(fix(9, 0));
}

static void *unfix_later(void *data)
{
	while (!atomic_load(&cache->starving))
		sched_yield();
	return (void *)(intptr_t)hl_page_unfix(cache, data);
}

static void who_waits_for_any_frame_gets_one_that_was_pinned(void **state)
{
	pthread_t thread;
	void *data, *result;

	(void)state;
	assert_int_equal(hl_pagecache_close(cache), 0);
	assert_int_equal(open_cache(1, 60000), 0);
	data = pin(1);
	assert_int_equal(pthread_create(&thread, NULL, unfix_later, data), 0);
	unfix(fix(2, 0));
	pthread_join(thread, &result);
	assert_null(result);
}

static void *pin_and_end(void *arg)
{
	return pin((uintptr_t)arg);
}

static void the_pin_of_a_thread_that_ends_is_reported_and_can_be_taken_back(void **state)
{
	struct told told = { 0 };
	pthread_t thread;
	void *data;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, pin_and_end, (void *)3), 0);
	pthread_join(thread, &data);
	assert_int_equal(leaks.n, 1);
	assert_int_equal(leaks.page, 3);
	assert_int_equal(hl_pagecache_holders(cache, note_holder, &told), 1);
	assert_int_equal(told.ended, 1);
	assert_int_equal(elsewhere(try_exclusively, (void *)3), -EAGAIN);
	unfix(data);
	assert_int_equal(hl_page_unfix(cache, data), -EINVAL);
	assert_int_equal(elsewhere(try_exclusively, (void *)3), 0);
}

static void a_thread_without_pins_left_shares_by_the_word(void **state)
{
	void *data[3 * HL_PINS];

	(void)state;
	spread(1);
	for (unsigned i = 0; i < 3 * HL_PINS; i++)
		data[i] = fix(1, 0);
	assert_int_equal(word_of(1) & HL_FRAME_COUNT, 2 * HL_PINS);
	assert_int_equal(hl_pagecache_holders(cache, note_holder, &(struct told){ 0 }),
			 3 * HL_PINS);
	for (unsigned i = 0; i < 3 * HL_PINS; i++) {
		assert_int_equal(elsewhere(try_exclusively, (void *)1), -EAGAIN);
		unfix(data[i]);
	}
	assert_int_equal(elsewhere(try_exclusively, (void *)1), 0);
}

#define ROUNDS 20000

static _Atomic(unsigned) wrong, spreads;

static void *read_again_and_again(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t *data, first;

		if (hl_page_fix(cache, (uint64_t)(i % 2), 0, (void **)&data)) {
			wrong++;
			continue;
		}
		spreads += is_spread((uint64_t)(i % 2));
		first = data[0];
		for (unsigned k = 0; k < PAGE / sizeof(*data); k += 64)
			wrong += data[k] != first;
		wrong += hl_page_unfix(cache, data) != 0;
	}
	return NULL;
}

static void *write_now_and_then(void *arg)
{
	(void)arg;
	for (uint64_t i = 0; i < ROUNDS / 64; i++) {
		uint64_t *data;

		if (hl_page_fix(cache, i % 2, HL_PAGE_EXCLUSIVE, (void **)&data)) {
			wrong++;
			continue;
		}
		for (unsigned k = 0; k < PAGE / sizeof(*data); k += 64)
			data[k] = i;
		wrong += hl_page_dirty(cache, data) != 0;
		wrong += hl_page_unfix(cache, data) != 0;
	}
	return NULL;
}

static void *read_others(void *arg)
{
	(void)arg;
	for (uint64_t i = 0; i < ROUNDS / 16; i++) {
		void *data;
		int rc = hl_page_fix(cache, 2 + i % 14, 0, &data);

		if (!rc)
			wrong += hl_page_unfix(cache, data) != 0;
		else
			wrong += rc != -ENOBUFS;
	}
	return NULL;
}

static void nobody_sees_half_a_change_of_a_page_that_all_share(void **state)
{
	pthread_t thread[5];

	(void)state;
	for (int i = 0; i < 5; i++)
		assert_int_equal(pthread_create(&thread[i], NULL,
						i < 3	? read_again_and_again
						: i < 4 ? write_now_and_then
							: read_others,
						NULL),
				 0);
	for (int i = 0; i < 5; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(wrong, 0);
	assert_true(spreads);
	assert_int_equal(stats().fixed, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_pinned_page_is_fixed_in_statistics_and_lists),
		TEST(who_wants_a_pinned_page_exclusively_gets_it_when_it_is_not),
		TEST(who_has_pinned_a_page_gets_another_share_while_somebody_waits_for_it),
		TEST(pinned_pages_stay_where_they_are),
		TEST(who_waits_for_any_frame_gets_one_that_was_pinned),
		TEST(the_pin_of_a_thread_that_ends_is_reported_and_can_be_taken_back),
		TEST(a_thread_without_pins_left_shares_by_the_word),
		TEST(nobody_sees_half_a_change_of_a_page_that_all_share),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
