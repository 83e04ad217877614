// SPDX-License-Identifier: MIT
/*
 * Every I/O of a page cache goes wrong once, in every way that there is.
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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <hotline/pagecache.h>

#include "../tools/faulty_io.h"
#include "../tools/filter.h"
#include "pagecache/pagecache_config.h"
#include "pagecache/table.h"

#include "../tools/pages.h"

/* ---- One program, and a fault at each of its I/Os ---- */

#define PAGES 24u

/* What each page holds by now. A page that could not be discarded holds what it held, or zeroes. */
static uint64_t value[PAGES + 8];
static bool unsure[PAGES + 8];
static uint64_t pages;
static unsigned told; /* calls that failed, in this run */

/* Fails with what was injected, if it fails. */
static bool works(int rc)
{
	int how = faulty_how;

	if (!rc)
		return true;
	told++;
	if (how < 0)
		assert_int_equal(rc, how);
	else /* nothing at all was done, which is an error; else it is continued */
		assert_true(how == FAULTY_SHORT && (rc == -EIO || rc == -ENODATA));
	return false;
}

static void check(const uint64_t *data, uint64_t page)
{
	if (!data[0] && (!value[page] || unsure[page])) {
		for (unsigned i = 0; i < PAGE / sizeof(*data); i++)
			assert_int_equal(data[i], 0);
	} else {
		assert_true(holds(data, page, value[page]));
	}
}

static void try_write(uint64_t page, uint64_t next, unsigned how)
{
	uint64_t *data;

	if (!works(hl_page_fix(cache, page, how, (void **)&data)))
		return;
	if (how != HL_PAGE_NEW)
		check(data, page);
	for (unsigned i = 0; i < PAGE / sizeof(*data); i++)
		data[i] = (page << 32) ^ next ^ i;
	hl_page_dirty(cache, data);
	unfix(data);
	value[page] = next;
	unsure[page] = false;
}

static void try_read(uint64_t page)
{
	void *data;

	if (!works(hl_page_fix(cache, page, HL_PAGE_SHARED, &data)))
		return;
	check(data, page);
	unfix(data);
}

static void try_read_many(uint64_t first)
{
	uint64_t page[3] = { first, first + 5, first + 1 };
	void *data[3];

	if (!works(hl_page_fix_many(cache, page, 3, HL_PAGE_SHARED, data)))
		return;
	for (unsigned i = 0; i < 3; i++) {
		check(data[i], page[i]);
		unfix(data[i]);
	}
}

static void try_read_later(uint64_t page)
{
	struct hl_page_request request = { .page = page, .how = HL_PAGE_SHARED };
	void *data;
	int rc = hl_page_fix_begin(cache, &request);

	assert_true(rc == 0 || rc == -EINPROGRESS);
	while ((rc = hl_page_fix_end(&request, &data)) == -EAGAIN)
		sched_yield();
	if (works(rc)) {
		check(data, page);
		unfix(data);
	}
}

static void try_read_without_fixing(uint64_t page)
{
	struct hl_page_read read;

	if (works(hl_page_read_begin(cache, page, &read))) {
		check(read.data, page);
		assert_true(hl_page_read_valid(&read));
	}
}

static void try_discard(uint64_t page)
{
	if (works(hl_pagecache_discard(cache, page, 1)))
		value[page] = 0;
	else
		unsure[page] = true;
}

/* Everything that a cache does, through four frames. */
static void do_everything(void)
{
	for (uint64_t page = 0; page < 9; page++)
		try_write(page * 5 % PAGES, 1, page % 3 ? HL_PAGE_EXCLUSIVE : HL_PAGE_NEW);
	works(hl_pagecache_sync_range(cache, 5, 6));
	try_read(0);
	try_read_many(2);
	try_read_later(11);
	try_read_without_fixing(20);
	try_write(10, 2, HL_PAGE_EXCLUSIVE);
	works(hl_pagecache_sync(cache));
	try_discard(5);
	try_discard(10);
	assert_int_equal(hl_pagecache_grow(cache, PAGES + 2), 0);
	pages = PAGES + 2;
	try_write(PAGES + 1, 3, HL_PAGE_EXCLUSIVE);
	/* In a row: reads ahead. */
	for (uint64_t page = 12; page < 18; page++)
		try_read(page);
	for (uint64_t page = 12; page < 16; page++)
		try_write(page, 4, HL_PAGE_EXCLUSIVE);
	works(hl_pagecache_resize(cache, 2 * PAGE));
	works(hl_pagecache_resize(cache, 4 * PAGE));
	try_write(7, 5, HL_PAGE_EXCLUSIVE);
	works(hl_pagecache_sync(cache));
}

/* The fault is over: all is there that was written, and gets to the file. */
static void check_all_and_close(void)
{
	int rc;

	faulty_at = 0;
	for (uint64_t page = 0; page < pages; page++)
		try_read(page);
	assert_int_equal(stats().fixed, 0);
	rc = hl_pagecache_sync(cache);
	if (rc) { /* a sync has failed, and pages are lost that were in memory no more */
		assert_int_equal(hl_pagecache_sync(cache), rc);
		for (uint64_t page = 0; page < pages; page++)
			try_write(page, 6, HL_PAGE_EXCLUSIVE);
		assert_int_equal(hl_pagecache_sync(cache), 0);
	}
	close_cache();
	faulty_reset();
	open_with(4, 0, HL_PAGECACHE_BUFFERED, 0);
	for (uint64_t page = 0; page < pages; page++)
		try_read(page);
	close_cache();
}

/* How many I/Os there were, which is less than n when there was none to fail. */
static unsigned long run_with_fault(unsigned long n, long times, int how, unsigned flags)
{
	unsigned long ios;

	assert_int_equal(truncate(path, 0), 0);
	memset(value, 0, sizeof(value));
	memset(unsure, 0, sizeof(unsure));
	pages = PAGES;
	told = 0;
	faulty_reset();
	faulty_no_sync = true;
	open_with(4, PAGES, flags, 0);
	faulty_how = how;
	faulty_times = times;
	faulty_at = (long)n;
	faulty_ios = 0;
	do_everything();
	ios = faulty_ios;
	check_all_and_close();
	return ios;
}

static void every_io_fails_once_and_nothing_is_lost_but_what_is_said(void **state)
{
	static const struct {
		const char *what;
		int how;
		long times;
		unsigned flags;
	} kind[] = {
		{ "EIO", -EIO, 1, 0 },
		{ "ENOSPC", -ENOSPC, 1, HL_PAGECACHE_BUFFERED },
		{ "ENOMEM, for good", -ENOMEM, LONG_MAX, HL_PAGECACHE_BUFFERED },
		{ "EIO, for good", -EIO, LONG_MAX, 0 },
		{ "nothing done", FAULTY_SHORT, 1, HL_PAGECACHE_BUFFERED },
		{ "nothing done, for good", FAULTY_SHORT, LONG_MAX, HL_PAGECACHE_BUFFERED },
		{ "a byte done", FAULTY_SHORT + 1, 1, HL_PAGECACHE_BUFFERED },
		{ "a sector done", FAULTY_SHORT + 512, 1, 0 },
		{ "a page less a byte done", FAULTY_SHORT + 4095, 1, HL_PAGECACHE_BUFFERED },
		{ "a page done", FAULTY_SHORT + 4096, 1, 0 },
	};
	unsigned long all = 0, all_told = 0;

	(void)state;
	for (unsigned k = 0; k < sizeof(kind) / sizeof(kind[0]); k++) {
		unsigned long n = 0, failures = 0;

		do {
			n++;
		} while (run_with_fault(n, kind[k].times, kind[k].how, kind[k].flags) >= n &&
			 (failures += told, true));
		printf("# %s: at each of %lu I/Os, of which callers were told %lu times\n",
		       kind[k].what, n - 1, failures);
		assert_true(n > 40);
		all += n - 1;
		all_told += failures;
	}
	printf("# %lu faults injected and survived, %lu calls failed for them\n", all, all_told);
	assert_true(all_told > 0);
}

/* ---- io_uring ---- */

#if HL_HAVE_URING
#include <dlfcn.h>
#include <liburing.h>

/* What the ring answers to one in so many requests, and to submissions. */
static unsigned answer_one_in;
static int answer, refuse_with;
static unsigned long refuse_times, answered, refused, submissions;

static void answer_wrongly(struct io_uring_cqe *cqe)
{
	struct hl_io_request *request = io_uring_cqe_get_data(cqe);
	size_t keep = answer > 0 ? (size_t)answer : 0;

	/* What was not read is not there. */
	for (unsigned i = 0; !request->write && i < request->n_iov; i++) {
		size_t skip = keep < request->iov[i].iov_len ? keep : request->iov[i].iov_len;

		memset((char *)request->iov[i].iov_base + skip, 0xee,
		       request->iov[i].iov_len - skip);
		keep -= skip;
	}
	if (answer <= 0 || cqe->res > answer)
		cqe->res = answer;
	answered++;
}

int io_uring_submit_and_wait(struct io_uring *ring, unsigned wait_for)
{
	static int (*real)(struct io_uring *, unsigned);
	struct io_uring_cqe *cqe;
	unsigned head, n = 0;
	int rc;

	submissions++;
	if (refuse_times) {
		refuse_times--;
		refused++;
		return refuse_with;
	}
	if (!real)
		real = (int (*)(struct io_uring *, unsigned))dlsym(RTLD_NEXT,
								   "io_uring_submit_and_wait");
	rc = real(ring, wait_for);
	io_uring_for_each_cqe(ring, head, cqe)
	{
		if (answer_one_in && n++ % answer_one_in == 0)
			answer_wrongly(cqe);
	}
	return rc;
}

static void ring_as_it_is(void)
{
	answer_one_in = 0;
	answer = refuse_with = 0;
	refuse_times = answered = refused = submissions = 0;
}

/* Pages apart, so that each is a request of its own, or two and two. */
static void write_and_read_apart(uint64_t round)
{
	uint64_t page[60];
	void *data[60];

	for (uint64_t i = 0; i < 60; i++)
		put(i * 3 / 2 * 2, round);
	assert_int_equal(hl_pagecache_sync(cache), 0);
	/* Out of memory with them. */
	assert_int_equal(hl_pagecache_resize(cache, PAGE), 0);
	assert_int_equal(hl_pagecache_resize(cache, 100 * PAGE), 0);
	for (uint64_t i = 0; i < 60; i++)
		page[i] = i * 3 / 2 * 2;
	assert_int_equal(hl_page_fix_many(cache, page, 60, HL_PAGE_SHARED, data), 0);
	for (unsigned i = 0; i < 60; i++) {
		assert_true(holds(data[i], page[i], round));
		unfix(data[i]);
	}
}

static void open_with_ring(unsigned flags)
{
	const struct hl_pagecache_options options = {
		.limit = 100 * PAGE, .pages = 200, .flags = flags, .write_after_ms = UINT_MAX
	};

	assert_int_equal(hl_pagecache_open(&cache, path, &options), 0);
	if (!stats().uring) {
		close_cache();
		print_message("# skipped: io_uring cannot be used here\n");
		skip();
	}
}

static void what_the_ring_interrupts_or_does_by_halves_is_done_again(void **state)
{
	static const int answers[] = { -EINTR, -EAGAIN, -EIO, 0, 512, 4096 - 512 };
	unsigned long all = 0;

	(void)state;
	ring_as_it_is();
	open_with_ring(0);
	for (unsigned k = 0; k < sizeof(answers) / sizeof(answers[0]); k++) {
		ring_as_it_is();
		answer = answers[k];
		answer_one_in = k % 2 ? 1 : 3;
		write_and_read_apart(k + 1);
		assert_true(answered >= 2 && submissions >= 2);
		all += answered;
	}
	ring_as_it_is();
	close_cache();
	printf("# %lu wrong answers of io_uring survived\n", all);
}

static void submissions_that_fail_are_repeated(void **state)
{
	static const int errors[] = { -EINTR, -EAGAIN, -EBUSY };

	(void)state;
	ring_as_it_is();
	open_with_ring(0);
	for (unsigned k = 0; k < 3; k++) {
		ring_as_it_is();
		refuse_with = errors[k];
		refuse_times = 5;
		write_and_read_apart(k + 1);
		assert_int_equal(refused, 5);
	}
	/* It still is the ring that does it. */
	assert_true(submissions > refused);
	ring_as_it_is();
	write_and_read_apart(9);
	assert_true(submissions > 0);
	close_cache();
}

static void a_ring_that_takes_nothing_any_more_is_given_up(void **state)
{
	(void)state;
	ring_as_it_is();
	open_with_ring(0);
	write_and_read_apart(1);
	refuse_with = -EPERM;
	refuse_times = ULONG_MAX;
	write_and_read_apart(2);
	assert_true(refused > 0 && refused < 100);
	refused = 0;
	write_and_read_apart(3);
	assert_int_equal(refused, 0); /* it is not asked any more */
	close_cache();
	ring_as_it_is();
}
#else
static void submissions_that_fail_are_repeated(void **state)
{
	(void)state;
	print_message("# skipped: built without liburing\n");
	skip();
}
#define what_the_ring_interrupts_or_does_by_halves_is_done_again submissions_that_fail_are_repeated
#define a_ring_that_takes_nothing_any_more_is_given_up submissions_that_fail_are_repeated
#endif

/* ---- io_uring is forbidden ---- */

/* What a child does for which a system call fails; it says what went wrong by its status. */
static int use_without(unsigned call, unsigned error, bool before)
{
	const struct hl_pagecache_options options = { .limit = 50 * PAGE, .pages = 100 };
	struct hl_pagecache *own;
	struct hl_pagecache_stats now;
	uint64_t page[30];
	void *data[30];
	int rc = 0;

	if (before && filter_call(call, error))
		return 77;
	if (hl_pagecache_open(&own, path, &options))
		return 2;
	if (!before && filter_call(call, error))
		return 77;
	if (hl_pagecache_get_stats(own, &now) || (before && now.uring))
		return 3;
	for (unsigned i = 0; i < 30; i++)
		page[i] = i * 2;
	for (unsigned round = 0; round < 3 && !rc; round++) {
		rc = hl_page_fix_many(own, page, 30, HL_PAGE_EXCLUSIVE, data);
		for (unsigned i = 0; !rc && i < 30; i++) {
			*(uint64_t *)data[i] += i;
			hl_page_dirty(own, data[i]);
			rc = hl_page_unfix(own, data[i]);
		}
		rc = rc ? rc : hl_pagecache_sync(own);
		rc = rc ? rc : hl_pagecache_resize(own, PAGE);
		rc = rc ? rc : hl_pagecache_resize(own, 50 * PAGE);
	}
	if (rc || hl_page_fix(own, 58, 0, data) || *(uint64_t *)data[0] != 3 * 29)
		return 4;
	hl_page_unfix(own, data[0]);
	return hl_pagecache_close(own) ? 5 : 0;
}

static void where_io_uring_is_forbidden_threads_do_the_same(void **state)
{
	static const struct {
		unsigned call, error;
		bool before;
	} cases[] = {
		{ SYS_io_uring_setup, EPERM, true },
		{ SYS_io_uring_setup, ENOSYS, true },
		{ SYS_io_uring_setup, ENOMEM, true },
		{ SYS_io_uring_enter, EPERM, false },
		/* The sandbox closes after the ring was made. */
		{ SYS_io_uring_enter, ENOSYS, true },
		{ SYS_userfaultfd, EPERM, true },
	};

	(void)state;
	for (unsigned k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		int status;
		pid_t pid;

		assert_int_equal(truncate(path, 0), 0);
		pid = fork();
		if (!pid)
			_exit(use_without(cases[k].call, cases[k].error,
					  cases[k].before && cases[k].call == SYS_io_uring_setup));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status));
		if (WEXITSTATUS(status) == 77) {
			print_message("# skipped: system calls cannot be filtered here\n");
			skip();
		}
		assert_int_equal(WEXITSTATUS(status), 0);
	}
}

static void requests_are_left_as_they_were(void **state)
{
	const struct hl_io *io[] = { &hl_io_threads, &hl_io_uring };
	char data[2][3][4096], wanted[4096 * 6];
	int fd = open(path, O_RDWR);

	(void)state;
	for (unsigned i = 0; i < sizeof(wanted); i++)
		wanted[i] = (char)(i * 7 / 1000);
	assert_int_equal(pwrite(fd, wanted, sizeof(wanted), 0), sizeof(wanted));
	for (unsigned k = 0; k < (hl_uring_usable() ? 2 : 1); k++) {
		struct hl_io_request request[2];
		struct iovec iov[2][3], before[2][3];

		for (unsigned i = 0; i < 2; i++) {
			for (unsigned j = 0; j < 3; j++)
				iov[i][j] = (struct iovec){ data[i][j], 4096 };
			request[i] = (struct hl_io_request){ .iov = iov[i],
							     .n_iov = 3,
							     .offset = i * 3 * 4096 };
		}
		memcpy(before, iov, sizeof(iov));
		/* Twice with the same vectors. */
		for (unsigned round = 0; round < 2; round++) {
			memset(data, 0, sizeof(data));
			io[k]->run(fd, request, 2);
			assert_int_equal(request[0].result, 3 * 4096);
			assert_int_equal(request[1].result, 3 * 4096);
			assert_memory_equal(data, wanted, sizeof(wanted));
			assert_memory_equal(before, iov, sizeof(iov));
		}
	}
	close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_path, remove_path)

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* First: its children start threads. */
		TEST(where_io_uring_is_forbidden_threads_do_the_same),
		TEST(every_io_fails_once_and_nothing_is_lost_but_what_is_said),
		TEST(what_the_ring_interrupts_or_does_by_halves_is_done_again),
		TEST(submissions_that_fail_are_repeated),
		TEST(a_ring_that_takes_nothing_any_more_is_given_up),
		TEST(requests_are_left_as_they_were),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
