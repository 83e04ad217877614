// SPDX-License-Identifier: MIT
/*
 * Threads that share a page cache: who waits, who ends, who forks.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <hotline/pagecache.h>

#include "../tools/faulty_io.h"
#include "pagecache/table.h"

#include "../tools/pages.h"

#if defined(__SANITIZE_THREAD__)
#define UNDER_TSAN true
#else
#define UNDER_TSAN false
#endif

static pthread_t start(void *(*function)(void *), void *arg)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, function, arg), 0);
	return thread;
}

/* ---- Who waits ---- */

static _Atomic(int) waiter;

/* S: it sleeps. */
static char state_of(int tid)
{
	char name[64], state = '?';
	FILE *file;

	snprintf(name, sizeof(name), "/proc/self/task/%d/stat", tid);
	file = fopen(name, "r");
	if (file) {
		if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
			state = '?';
		fclose(file);
	}
	return state;
}

/* Or has ended. */
static void wait_until_it_sleeps(void)
{
	char state = 0;

	while (state != 'S' && state != '?') {
		sched_yield();
		state = atomic_load(&waiter) ? state_of(waiter) : 0;
	}
}

static void *wait_exclusively(void *data)
{
	atomic_store(&waiter, (int)syscall(SYS_gettid));
	return (void *)(intptr_t)hl_page_fix(cache, 1, HL_PAGE_EXCLUSIVE, data);
}

static void *wait_for_any_frame(void *data)
{
	atomic_store(&waiter, (int)syscall(SYS_gettid));
	return (void *)(intptr_t)hl_page_fix(cache, 2, HL_PAGE_SHARED, data);
}

/* Threads that wait cost nothing, however many they are. */
static void who_waits_sleeps(void **state)
{
	void *(*const waits[])(void *) = { wait_exclusively, wait_for_any_frame };

	(void)state;
	open_with(1, 10, 0, UINT_MAX);
	for (unsigned k = 0; k < 2; k++) {
		void *mine = fix(1, HL_PAGE_SHARED), *data, *rc;
		pthread_t thread;

		waiter = 0;
		thread = start(waits[k], &data);
		wait_until_it_sleeps();
		unfix(mine);
		pthread_join(thread, &rc);
		assert_null(rc);
		unfix(data);
	}
	close_cache();
}

static _Atomic(unsigned long) turns;

/* Nine writes in ten, as fast as it can. */
static void *write_and_read(void *arg)
{
	uint64_t random = (uintptr_t)arg + 1;
	uint64_t slowest = 0;

	for (unsigned i = 0; i < 200; i++) {
		struct timespec before, after;
		uint64_t *data, page, ns;
		int rc;

		random = random * 6364136223846793005u + 1442695040888963407u;
		page = (random >> 33) % 64;
		clock_gettime(CLOCK_MONOTONIC, &before);
		rc = hl_page_fix(cache, page, (random >> 50) % 10 ? HL_PAGE_EXCLUSIVE : 0,
				 (void **)&data);
		clock_gettime(CLOCK_MONOTONIC, &after);
		if (rc)
			return (void *)UINTPTR_MAX;
		ns = (uint64_t)(after.tv_sec - before.tv_sec) * 1000000000 +
		     (uint64_t)(after.tv_nsec - before.tv_nsec);
		slowest = ns > slowest ? ns : slowest;
		if (!hl_page_dirty(cache, data))
			data[0]++;
		hl_page_unfix(cache, data);
		atomic_fetch_add(&turns, 1);
	}
	return (void *)(uintptr_t)(slowest / 1000);
}

static void thirty_threads_that_write_through_eight_pages_all_get_on(void **state)
{
	enum { N = 30 };
	pthread_t thread[N];
	uintptr_t slowest = 0, us;

	(void)state;
	turns = 0;
	open_with(8, 64, HL_PAGECACHE_BUFFERED, 60000);
	for (uintptr_t i = 0; i < N; i++)
		thread[i] = start(write_and_read, (void *)i);
	for (unsigned i = 0; i < N; i++) {
		pthread_join(thread[i], (void **)&us);
		assert_true(us != UINTPTR_MAX);
		slowest = us > slowest ? us : slowest;
	}
	assert_int_equal(turns, N * 200);
	print_message("# the slowest fix took %lu us\n", (unsigned long)slowest);
	close_cache();
}

/* Each thread has one page fixed at a time, so that as many frames are enough; though the cache
 * reads ahead into others. */
static void *read_in_a_row(void *arg)
{
	uint64_t first = (uintptr_t)arg * 50;

	for (unsigned round = 0; round < 4; round++) {
		for (uint64_t page = first; page < first + 50; page++) {
			void *data;
			int rc = hl_page_fix(cache, page, HL_PAGE_SHARED, &data);

			if (rc)
				return (void *)(intptr_t)rc;
			hl_page_unfix(cache, data);
		}
		hl_pagecache_prefetch(cache, first, 5);
	}
	return NULL;
}

/* Others run meanwhile. */
static void be_slow(const struct hl_io_request *request)
{
	(void)request;
	for (unsigned i = 0; i < 10; i++)
		sched_yield();
}

static void frames_that_are_read_into_ahead_are_not_missed(void **state)
{
	pthread_t thread[8];

	(void)state;
	open_with(9, 400, HL_PAGECACHE_BUFFERED, 0); /* the library's thread has one, too */
	faulty_before = be_slow;
	for (uintptr_t i = 0; i < 8; i++)
		thread[i] = start(read_in_a_row, (void *)i);
	for (unsigned i = 0; i < 8; i++) {
		void *rc;

		pthread_join(thread[i], &rc);
		assert_null(rc);
	}
	close_cache();
}

/* A reader that is in the middle of it, when all else is fixed. */
static pthread_barrier_t begun;
static _Atomic(int) to_block;

static void block_reader(const struct hl_io_request *request)
{
	int yes = 1;

	if (!request->write && atomic_compare_exchange_strong(&to_block, &yes, 0)) {
		pthread_barrier_wait(&begun);
		pthread_barrier_wait(&begun);
	}
}

static void *read_exclusively(void *data)
{
	assert_int_equal(hl_page_fix(cache, 1, HL_PAGE_EXCLUSIVE, data), 0);
	return NULL;
}

static void who_waits_for_a_reader_is_told_when_all_is_fixed_after_it(void **state)
{
	void *theirs, *data, *rc;
	pthread_t thread, other;

	(void)state;
	open_with(1, 10, 0, 0);
	pthread_barrier_init(&begun, NULL, 2);
	to_block = 1;
	faulty_before = block_reader;
	thread = start(read_exclusively, &theirs);
	pthread_barrier_wait(&begun);
	/* Finds the only frame being read, and waits; then it is fixed. */
	waiter = 0;
	other = start(wait_for_any_frame, &data);
	wait_until_it_sleeps();
	pthread_barrier_wait(&begun);
	pthread_join(other, &rc);
	assert_int_equal((intptr_t)rc, -ENOBUFS);
	pthread_join(thread, NULL);
	unfix(theirs);
	close_cache();
}

static _Atomic(int) called;

static void see_whether_it_is_there(struct hl_page_request *request)
{
	const struct hl_frame *frame = hl_table_find(cache, request->page);

	atomic_store(&called, frame && atomic_load(&frame->word) & HL_FRAME_RESIDENT ? 1 : -1);
}

static void what_was_begun_is_not_told_of_while_another_reads_the_page(void **state)
{
	struct hl_page_request request = { .page = 1, .done = see_whether_it_is_there };
	void *theirs, *data;
	pthread_t thread;

	(void)state;
	open_with(2, 10, 0, 0);
	pthread_barrier_init(&begun, NULL, 2);
	to_block = 1;
	called = 0;
	faulty_before = block_reader;
	thread = start(read_exclusively, &theirs);
	pthread_barrier_wait(&begun);
	assert_int_equal(hl_page_fix_begin(cache, &request), -EINPROGRESS);
	for (unsigned i = 0; i < 1000 && !atomic_load(&called); i++)
		sched_yield();
	pthread_barrier_wait(&begun);
	while (!atomic_load(&called))
		sched_yield();
	assert_int_equal(called, 1);
	pthread_join(thread, NULL);
	unfix(theirs);
	assert_int_equal(hl_page_fix_end(&request, &data), 0);
	unfix(data);
	close_cache();
}

static void shares_are_many_and_who_has_them_all_does_not_wait_for_more(void **state)
{
	enum { MOST = 5000 };
	static void *share[MOST];
	unsigned n = 0;
	void *data, *rc;
	pthread_t thread;

	(void)state;
	open_with(2, 10, 0, 0);
	while (n < MOST && !hl_page_fix(cache, 2, HL_PAGE_SHARED, &share[n]))
		n++;
	assert_true(n >= 4095 && n < MOST);
	assert_int_equal(hl_page_fix(cache, 2, HL_PAGE_SHARED, &data), -EDEADLK);
	waiter = 0;
	thread = start(wait_for_any_frame, &data);
	wait_until_it_sleeps();
	/* One goes, and it has it. */
	unfix(share[--n]);
	pthread_join(thread, &rc);
	assert_null(rc);
	unfix(data);
	while (n)
		unfix(share[--n]);
	assert_int_equal(stats().fixed, 0);
	close_cache();
}

/* ---- Who ends ---- */

static _Atomic(int) ready;

static void *use_and_end(void *unused)
{
	void *data;

	(void)unused;
	if (!hl_page_fix(cache, 1, HL_PAGE_SHARED, &data))
		hl_page_unfix(cache, data);
	atomic_fetch_add(&ready, 1);
	return NULL;
}

/* The thread has nothing of the cache any more, and ends while it is closed. */
static void a_cache_can_be_closed_while_threads_end_that_used_it(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 100; round++) {
		pthread_t thread[4];

		ready = 0;
		open_with(4, 10, HL_PAGECACHE_BUFFERED, 0);
		for (unsigned i = 0; i < 4; i++)
			thread[i] = start(use_and_end, NULL);
		while (atomic_load(&ready) < 4)
			sched_yield();
		close_cache();
		for (unsigned i = 0; i < 4; i++)
			pthread_join(thread[i], NULL);
	}
}

static _Atomic(int) leaks;

static void unfix_leak(struct hl_pagecache *which, uint64_t page, void *data, void *arg)
{
	assert_ptr_equal(arg, &leaks);
	(void)page;
	atomic_fetch_add(&leaks, 1);
	assert_int_equal(hl_page_unfix(which, data), 0);
}

static void *end_with_pages(void *unused)
{
	void *data;

	(void)unused;
	for (uint64_t page = 1; page < 4; page++)
		assert_int_equal(hl_page_fix(cache, page, page % 2, &data), 0);
	atomic_fetch_add(&ready, 1);
	return NULL;
}

static void pages_of_a_thread_that_ended_can_be_unfixed_as_it_ends(void **state)
{
	const struct hl_pagecache_options options = { .limit = 8 * PAGE,
						      .pages = 10,
						      .flags = HL_PAGECACHE_BUFFERED,
						      .leaked = unfix_leak,
						      .leaked_arg = &leaks,
						      .write_after_ms = UINT_MAX };

	(void)state;
	leaks = 0;
	for (int round = 0; round < 50; round++) {
		pthread_t thread;
		int rc;

		ready = 0;
		assert_int_equal(hl_pagecache_open_by(&cache, path, &options, &faulty_io), 0);
		thread = start(end_with_pages, NULL);
		while (!atomic_load(&ready))
			sched_yield();
		/* It can be closed as soon as the last is unfixed. */
		while ((rc = hl_pagecache_close(cache)) == -EBUSY)
			sched_yield();
		assert_int_equal(rc, 0);
		pthread_join(thread, NULL);
		assert_int_equal(leaks, 3 * (round + 1));
	}
}

static void *take_turns(void *unused)
{
	(void)unused;
	put(1, 1);
	expect(1, 1);
	return NULL;
}

static void thousands_of_threads_one_after_the_other_leave_nothing_behind(void **state)
{
	unsigned n = 0;

	(void)state;
	open_with(4, 10, HL_PAGECACHE_BUFFERED, 0);
	for (unsigned i = 0; i < 2000; i++)
		pthread_join(start(take_turns, NULL), NULL);
	for (struct hl_local *local = hl_locals_of(cache); local; local = local->next_of_cache)
		n++;
	assert_true(n < 5);
	/* What they counted is not forgotten. */
	assert_int_equal(stats().hits + stats().misses, 4000);
	close_cache();
}

/* ---- Who is cancelled or interrupted ---- */

/* Does everything, and must get to its end though it is cancelled from the beginning. */
static void *do_everything(void *flags)
{
	const struct hl_pagecache_options options = { .limit = 20 * PAGE,
						      .pages = 100,
						      .flags = (unsigned)(uintptr_t)flags };
	struct hl_pagecache *own;
	struct hl_pagecache_stats now;
	uint64_t page[10];
	void *data[10];
	int rc = hl_pagecache_open(&own, path, &options);

	for (uint64_t i = 0; i < 10; i++)
		page[i] = 7 * i;
	for (unsigned round = 0; round < 3 && !rc; round++) {
		rc = hl_page_fix_many(own, page, 10, HL_PAGE_EXCLUSIVE, data);
		for (unsigned i = 0; i < 10 && !rc; i++) {
			hl_page_dirty(own, data[i]);
			rc = hl_page_unfix(own, data[i]);
		}
		for (uint64_t i = 0; i < 100 && !rc; i++) {
			rc = hl_page_fix(own, i, i % 2, &data[0]);
			rc = rc ? rc : hl_page_unfix(own, data[0]);
		}
		rc = rc ? rc : hl_pagecache_sync(own);
		rc = rc ? rc : hl_pagecache_discard(own, 10, 30);
		rc = rc ? rc : hl_pagecache_prefetch(own, 10, 10);
		rc = rc ? rc : hl_pagecache_grow(own, 110 + round);
		rc = rc ? rc : hl_pagecache_resize(own, 5 * PAGE);
		rc = rc ? rc : hl_pagecache_resize(own, 20 * PAGE);
		rc = rc ? rc : hl_pagecache_get_stats(own, &now);
	}
	return (void *)(intptr_t)(rc ? rc : hl_pagecache_close(own));
}

static _Atomic(int) came_through;

static void *do_everything_cancelled(void *flags)
{
	pthread_cancel(pthread_self());
	if (!do_everything(flags))
		came_through++;
	pthread_testcancel();
	return NULL;
}

static const unsigned ways[] = { 0, HL_PAGECACHE_BUFFERED, HL_PAGECACHE_NO_URING };

static void no_function_is_a_cancellation_point(void **state)
{
	(void)state;
	came_through = 0;
	for (unsigned k = 0; k < 3; k++) {
		void *rc;

		pthread_join(start(do_everything_cancelled, (void *)(uintptr_t)ways[k]), &rc);
		assert_ptr_equal(rc, PTHREAD_CANCELED);
	}
	assert_int_equal(came_through, 3);
}

static _Atomic(unsigned long) signals;

static void count_signal(int number)
{
	(void)number;
	signals++;
}

static void signals_that_interrupt_system_calls_do_no_harm(void **state)
{
	/* Without SA_RESTART. */
	const struct sigaction action = { .sa_handler = count_signal };
	const struct itimerval often = { { 0, 300 }, { 0, 300 } }, never = { { 0, 0 }, { 0, 0 } };
	struct sigaction before;

	(void)state;
	signals = 0;
	assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
	do {
		for (unsigned k = 0; k < 3; k++)
			assert_null(do_everything((void *)(uintptr_t)ways[k]));
	} while (signals < 20);
	setitimer(ITIMER_REAL, &never, NULL);
	sigaction(SIGALRM, &before, NULL);
}

/* ---- Who forks ---- */

static _Atomic(bool) enough;
static _Atomic(unsigned long) rounds, bad;

/* Reads what was written, through too few frames, so that the device is always busy. */
static void *read_and_write(void *arg)
{
	uint64_t random = (uintptr_t)arg + 1;

	while (!atomic_load(&enough)) {
		uint64_t *data, page;

		random = random * 6364136223846793005u + 1442695040888963407u;
		page = (random >> 33) % 40;
		if (hl_page_fix(cache, page, (random >> 50) % 4 ? 0 : HL_PAGE_EXCLUSIVE,
				(void **)&data)) {
			atomic_fetch_add(&bad, 1);
			continue;
		}
		for (unsigned i = 1; i < PAGE / sizeof(*data); i++)
			bad += data[i] != data[0];
		if (!hl_page_dirty(cache, data)) {
			for (unsigned i = 0; i < PAGE / sizeof(*data); i++)
				data[i] = random;
		}
		hl_page_unfix(cache, data);
		atomic_fetch_add(&rounds, 1);
	}
	return NULL;
}

/* What a child does; 0 if all is as it should be. */
static int be_a_child(const char *own_path)
{
	const struct hl_pagecache_options options = { .limit = 4 * PAGE, .pages = 10 };
	struct hl_pagecache *own;
	void *data;

	if (hl_page_fix(cache, 1, 0, &data) != -ECHILD || hl_pagecache_sync(cache) != -ECHILD ||
	    hl_pagecache_prefetch(cache, 0, 10) != -ECHILD)
		return 1;
	if (hl_pagecache_open(&own, own_path, &options))
		return 2;
	for (uint64_t page = 0; page < 10; page++) {
		if (hl_page_fix(own, page, HL_PAGE_EXCLUSIVE, &data))
			return 3;
		memset(data, 7, PAGE);
		hl_page_dirty(own, data);
		hl_page_unfix(own, data);
	}
	if (hl_pagecache_prefetch(own, 0, 10))
		return 4;
	return hl_pagecache_close(own) ? 5 : 0;
}

static void forks_in_the_middle_of_everything_harm_nobody(void **state)
{
	char own_path[] = "pagecache-child-XXXXXX";
	const unsigned flags[] = { 0, HL_PAGECACHE_NO_URING };

	(void)state;
	if (UNDER_TSAN) {
		print_message("# skipped: ThreadSanitizer does not let a child of threads "
			      "start its own\n");
		skip();
	}
	close(mkstemp(own_path));
	for (unsigned k = 0; k < 2; k++) {
		const struct hl_pagecache_options options = { .limit = 12 * PAGE,
							      .pages = 40,
							      .flags = flags[k],
							      .wait_ms = 10000,
							      .write_after_ms = 1 };
		pthread_t thread[3];

		enough = false;
		rounds = bad = 0;
		assert_int_equal(hl_pagecache_open(&cache, path, &options), 0);
		for (uintptr_t i = 0; i < 3; i++)
			thread[i] = start(read_and_write, (void *)i);
		for (unsigned i = 0; i < 25; i++) {
			unsigned long seen = rounds;
			int status;
			pid_t pid = fork();

			if (!pid)
				_exit(be_a_child(own_path));
			assert_true(pid > 0);
			assert_int_equal(waitpid(pid, &status, 0), pid);
			assert_int_equal(status, 0);
			while (atomic_load(&rounds) < seen + 20)
				sched_yield();
		}
		enough = true;
		for (unsigned i = 0; i < 3; i++)
			pthread_join(thread[i], NULL);
		assert_int_equal(bad, 0);
		close_cache();
	}
	unlink(own_path);
}

static void a_child_of_a_child_can_do_it_too(void **state)
{
	char own_path[] = "pagecache-child-XXXXXX";
	int status;
	pid_t pid;

	(void)state;
	if (UNDER_TSAN)
		skip();
	close(mkstemp(own_path));
	open_with(4, 10, 0, 0);
	put(1, 1);
	pid = fork();
	if (!pid) {
		int rc = be_a_child(own_path);

		pid = fork();
		if (!pid)
			_exit(be_a_child(own_path));
		_exit(rc || waitpid(pid, &status, 0) != pid || status);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	expect(1, 1);
	close_cache();
	unlink(own_path);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_path, remove_path)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(who_waits_sleeps),
		TEST(thirty_threads_that_write_through_eight_pages_all_get_on),
		TEST(frames_that_are_read_into_ahead_are_not_missed),
		TEST(who_waits_for_a_reader_is_told_when_all_is_fixed_after_it),
		TEST(what_was_begun_is_not_told_of_while_another_reads_the_page),
		TEST(shares_are_many_and_who_has_them_all_does_not_wait_for_more),
		TEST(a_cache_can_be_closed_while_threads_end_that_used_it),
		TEST(pages_of_a_thread_that_ended_can_be_unfixed_as_it_ends),
		TEST(thousands_of_threads_one_after_the_other_leave_nothing_behind),
		TEST(no_function_is_a_cancellation_point),
		TEST(signals_that_interrupt_system_calls_do_no_harm),
		TEST(forks_in_the_middle_of_everything_harm_nobody),
		TEST(a_child_of_a_child_can_do_it_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
