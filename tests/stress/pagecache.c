// SPDX-License-Identifier: MIT
/*
 * The page cache against a model: threads do random things with pages, and the model, a
 * version number for each page with a lock around it, says what each page must hold. With 1, 2,
 * 3, 10 and more frames, with and without faults of the device.
 *
 *	stress-pagecache_model [OPERATIONS [SEED [FRAMES]]]	for each number of frames, or one
 *
 * A page holds its number and a version in every word; a thread that has it exclusively
 * writes the next. What no fault concerned must be as the model has it; a page whose fix
 * fails is as it was before. After a sync that said yes the file holds what was there when it
 * began, or later. Some pages are discarded now and then, by who keeps all others from them; they
 * hold zeroes then. Pages are ordered behind others, and each write is looked at on its way
 * to the file: what has to be there before it is.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <hotline/pagecache.h>

#include "../tools/faulty_io.h"

#define PAGE 4096u
#define WORDS (PAGE / sizeof(uint64_t))
#define PAGES 64u
#define THREADS 6
/* That are remembered of a page. */
#define ORDERS 4u

struct model {
	/* Written by who has the page exclusively; read by who has it in any way. */
	_Atomic(uint64_t) version;
	/* Who has it, to see that nobody has it who must not. */
	_Atomic(int) shared, exclusive;
	/* The newest that was marked dirty, or newer. */
	_Atomic(uint64_t) marked;
	/* At least this is in the file: set by who synced. */
	_Atomic(uint64_t) synced;
	/* What the device has of it, and has kept. */
	_Atomic(uint64_t) on_device, durable;
	/* What is newer than .since needs .version of the page .before at least to be durable. The
	 * last orders, by who has the page exclusively. */
	struct {
		uint64_t before, version, since;
	} order[ORDERS];
	unsigned n_orders;
	/* For pages that are discarded: held by who uses the page, exclusively by who discards. */
	pthread_rwlock_t gate;
	bool zeroes; /* it was discarded, and not written since */
	bool unsure; /* or may have been */
};

static struct model model[PAGES];
static struct hl_pagecache *cache;
static char path[] = "pagecache-model-XXXXXX";
static _Atomic(unsigned long) bad, done, no_frames, faults, torn, synced, sync_failed, discarded,
	ordered, circles;
static unsigned long operations = 10000;
static unsigned seed, only_frames;

static uint32_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

static void wrong(const char *what, uint64_t page, uint64_t one, uint64_t two)
{
	if (!atomic_fetch_add(&bad, 1))
		fprintf(stderr, "# seed %u: %s: page %lu, %lx %lx\n", seed, what,
			(unsigned long)page, (unsigned long)one, (unsigned long)two);
}

static uint64_t word_of(uint64_t page, uint64_t version)
{
	return version ? page << 40 | version : 0;
}

static bool is_discarded_at_times(uint64_t page)
{
	return page % 8 == 7;
}

/* ---- The device ---- */

static uint64_t version_of(uint64_t word)
{
	return word & ((UINT64_C(1) << 40) - 1);
}

static void check_write(uint64_t page, const uint64_t *data)
{
	const struct model *m = &model[page];

	for (unsigned i = 0; i < ORDERS && i < m->n_orders; i++) {
		if (version_of(data[0]) > m->order[i].since &&
		    atomic_load(&model[m->order[i].before].durable) < m->order[i].version)
			wrong("is written too early", page, m->order[i].before,
			      m->order[i].version);
	}
}

/* Who writes a page has a share of it, so that its orders stay as they are meanwhile. */
static void run_requests(int fd, struct hl_io_request *request, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		for (unsigned k = 0; request[i].write && k < request[i].n_iov; k++)
			check_write(request[i].offset / PAGE + k, request[i].iov[k].iov_base);
	}
	faulty_io.run(fd, request, n);
	for (unsigned i = 0; i < n; i++) {
		for (ssize_t k = 0; request[i].write && k * PAGE < request[i].result; k++)
			atomic_store(&model[request[i].offset / PAGE + (uint64_t)k].on_device,
				     version_of(*(uint64_t *)request[i].iov[k].iov_base));
	}
}

/* One at a time. */
static int sync_file(int fd)
{
	uint64_t version[PAGES];
	int rc;

	for (unsigned page = 0; page < PAGES; page++)
		version[page] = atomic_load(&model[page].on_device);
	rc = faulty_io.sync(fd);
	for (unsigned page = 0; page < PAGES && !rc; page++)
		atomic_store(&model[page].durable, version[page]);
	return rc;
}

static const struct hl_io checked_io = { .run = run_requests, .sync = sync_file };

/* ---- What the threads do ---- */

static void check_page(const uint64_t *data, uint64_t page)
{
	uint64_t wanted = model[page].zeroes ? 0 : word_of(page, atomic_load(&model[page].version));

	if (model[page].unsure && !data[0])
		wanted = 0;
	for (unsigned i = 0; i < WORDS; i++) {
		if (data[i] != wanted) {
			wrong("holds something else", page, data[i], wanted);
			return;
		}
	}
}

/* What fix may fail with when nothing is wrong with the cache. */
static bool may_fail(int rc, unsigned how)
{
	if (rc == -EAGAIN && how & HL_PAGE_TRY)
		return true;
	if (rc == -ENOBUFS) {
		atomic_fetch_add(&no_frames, 1);
		return true;
	}
	if (rc == -EIO || rc == -ENOSPC || rc == -ENOMEM) {
		atomic_fetch_add(&faults, 1);
		return faulty_one_in != 0;
	}
	return false;
}

/* Orders a page that is fixed exclusively, and going to be changed, behind another. */
static void order_behind(uint64_t first, uint64_t then)
{
	struct model *m = &model[then];
	uint64_t version = atomic_load(&model[first].marked);
	int rc = hl_page_write_before(cache, first, then);
	unsigned i = m->n_orders % ORDERS;

	if (rc) {
		if (rc != -EDEADLK && rc != -ENOMEM)
			wrong("cannot be ordered", then, first, (uint64_t)-rc);
		atomic_fetch_add(&circles, 1);
		return;
	}
	m->order[i].before = first;
	m->order[i].version = version;
	m->order[i].since = atomic_load(&m->version);
	m->n_orders++;
	atomic_fetch_add(&ordered, 1);
}

/* Uses a page that is fixed, and unfixes it. */
static void use_fixed(uint64_t page, unsigned how, uint64_t *data, uint64_t *random)
{
	struct model *m = &model[page];
	uint64_t version;

	if (how & HL_PAGE_EXCLUSIVE) {
		if (atomic_fetch_add(&m->exclusive, 1) || atomic_load(&m->shared))
			wrong("not exclusive", page, 0, 0);
		version = atomic_load(&m->version);
		/* A new page may hold zeroes. */
		if ((how & HL_PAGE_NEW) != HL_PAGE_NEW)
			check_page(data, page);
		if (how == HL_PAGE_NEW || next_random(random) % 8) {
			uint64_t first = next_random(random) % PAGES;

			if (next_random(random) % 4 == 0 && first != page &&
			    !is_discarded_at_times(first) && !is_discarded_at_times(page))
				order_behind(first, page);
			for (unsigned i = 0; i < WORDS; i++)
				data[i] = word_of(page, version + 1);
			atomic_store(&m->version, version + 1);
			m->zeroes = m->unsure = false;
			if (hl_page_dirty(cache, data))
				wrong("cannot be dirty", page, 0, 0);
			atomic_store(&m->marked, version + 1);
		}
		atomic_fetch_sub(&m->exclusive, 1);
	} else {
		atomic_fetch_add(&m->shared, 1);
		if (atomic_load(&m->exclusive))
			wrong("shared with who has it exclusively", page, 0, 0);
		check_page(data, page);
		if (next_random(random) % 16 == 0)
			sched_yield();
		check_page(data, page);
		atomic_fetch_sub(&m->shared, 1);
	}
	if (hl_page_unfix(cache, data))
		wrong("cannot be unfixed", page, 0, 0);
}

static void enter(uint64_t page)
{
	if (is_discarded_at_times(page))
		pthread_rwlock_rdlock(&model[page].gate);
}

static void leave(uint64_t page)
{
	if (is_discarded_at_times(page))
		pthread_rwlock_unlock(&model[page].gate);
}

static void use(uint64_t page, unsigned how, uint64_t *random)
{
	uint64_t *data;
	int rc;

	enter(page);
	rc = hl_page_fix(cache, page, how, (void **)&data);
	if (!rc)
		use_fixed(page, how, data, random);
	else if (!may_fail(rc, how))
		wrong("fix failed", page, (uint64_t)-rc, how);
	leave(page);
}

/* Several at once, not in the order of their numbers. */
static void use_several(uint64_t first, unsigned how, uint64_t *random)
{
	uint64_t page[3] = { (first + 5) % PAGES, first, (first + 18) % PAGES };
	void *data[3];
	int rc;

	for (unsigned i = 0; i < 3; i++) {
		if (is_discarded_at_times(page[i]))
			return;
	}
	rc = hl_page_fix_many(cache, page, 3, how, data);
	if (rc) {
		if (!may_fail(rc, how))
			wrong("several cannot be fixed", first, (uint64_t)-rc, how);
		return;
	}
	for (unsigned i = 0; i < 3; i++)
		use_fixed(page[i], how, data[i], random);
}

static void use_later(uint64_t page, unsigned how, uint64_t *random)
{
	struct hl_page_request request = { .page = page, .how = how };
	void *data;
	int rc;

	if (is_discarded_at_times(page))
		return;
	rc = hl_page_fix_begin(cache, &request);
	if (rc && rc != -EINPROGRESS && !may_fail(rc, how))
		wrong("cannot begin", page, (uint64_t)-rc, how);
	if (rc && rc != -EINPROGRESS)
		return;
	while ((rc = hl_page_fix_end(&request, &data)) == -EAGAIN)
		sched_yield();
	if (!rc)
		use_fixed(page, how, data, random);
	else if (!may_fail(rc, how))
		wrong("cannot end", page, (uint64_t)-rc, how);
}

/* What could not be discarded may be zeroes or not. */
static void discard(uint64_t page)
{
	struct model *m = &model[page];
	int rc;

	pthread_rwlock_wrlock(&m->gate);
	rc = hl_pagecache_discard(cache, page, 1);
	if (!rc) {
		m->zeroes = true;
		atomic_store(&m->synced, 0);
		atomic_fetch_add(&discarded, 1);
	} else if (rc != -EBUSY && !may_fail(rc, 0)) { /* the library's thread may have it */
		wrong("cannot discard", page, (uint64_t)-rc, 0);
	}
	if (rc != -EBUSY)
		m->unsure = rc != 0;
	pthread_rwlock_unlock(&m->gate);
}

/* What is read without a lock may be written meanwhile: that is what it is checked for, and
 * what ThreadSanitizer would report. Whether all of the page is the same. */
__attribute__((noinline, no_sanitize("thread"))) static bool peek(const volatile uint64_t *data,
								  uint64_t *first, bool slowly)
{
	bool same = true;

	*first = data[0];
	if (slowly)
		sched_yield();
	for (unsigned i = 1; i < WORDS; i += 7)
		same &= data[i] == *first;
	return same;
}

static void read_without_fixing(uint64_t page)
{
	uint64_t before = atomic_load(&model[page].version), first, after;
	struct hl_page_read read;
	bool same;
	int rc;

	if (is_discarded_at_times(page))
		return;
	rc = hl_page_read_begin(cache, page, &read);
	if (rc) {
		if (!may_fail(rc, 0))
			wrong("read failed", page, (uint64_t)-rc, 0);
		return;
	}
	same = peek(read.data, &first, before % 4 == 0);
	if (!hl_page_read_valid(&read)) {
		atomic_fetch_add(&torn, 1);
		return;
	}
	after = atomic_load(&model[page].version);
	if (!same)
		wrong("a torn page is valid", page, first, 0);
	/* The model's number comes before the page is let go of. */
	if (first < word_of(page, before) || first > word_of(page, after + 1))
		wrong("a page of another time is valid", page, first, word_of(page, before));
}

static void sync_some(uint64_t first, uint64_t n)
{
	uint64_t version[PAGES];
	int rc;

	for (uint64_t page = first; page < first + n; page++)
		version[page] = atomic_load(&model[page].version);
	rc = hl_pagecache_sync_range(cache, first, n);
	if (rc) {
		atomic_fetch_add(&sync_failed, 1);
		if (!may_fail(rc, 0))
			wrong("sync failed", first, (uint64_t)-rc, n);
		return;
	}
	atomic_fetch_add(&synced, 1);
	for (uint64_t page = first; page < first + n; page++) {
		uint64_t was = atomic_load(&model[page].synced);

		if (is_discarded_at_times(page)) /* and may be just now */
			continue;
		/* The version that was seen may have been of who still had the page. */
		while (was + 1 < version[page] &&
		       !atomic_compare_exchange_weak(&model[page].synced, &was, version[page] - 1))
			;
	}
}

static void check_stats(void)
{
	struct hl_pagecache_stats stats;

	hl_pagecache_get_stats(cache, &stats);
	if (stats.free + stats.clean + stats.dirty + stats.fixed != stats.total)
		wrong("the sum is wrong", 0, stats.total, stats.fixed);
}

static void *torment(void *arg)
{
	uint64_t random = seed * UINT64_C(1000003) + (uintptr_t)arg;

	while (atomic_fetch_add(&done, 1) < operations && !bad) {
		uint64_t page = next_random(&random) % PAGES;
		unsigned what = next_random(&random) % 1000;

		if (what < 400)
			use(page, HL_PAGE_SHARED, &random);
		else if (what < 700)
			use(page, HL_PAGE_EXCLUSIVE, &random);
		else if (what < 750)
			use(page, HL_PAGE_EXCLUSIVE | HL_PAGE_TRY, &random);
		else if (what < 800)
			use(page, HL_PAGE_NEW, &random);
		else if (what < 850)
			use_several(page, what % 2 ? HL_PAGE_EXCLUSIVE : HL_PAGE_SHARED, &random);
		else if (what < 870)
			use_later(page, what % 2 ? HL_PAGE_EXCLUSIVE : HL_PAGE_SHARED, &random);
		else if (what < 875)
			hl_pagecache_prefetch(cache, page, 4);
		else if (what < 885)
			discard(page | 7);
		else if (what < 980)
			read_without_fixing(page);
		else if (what < 995)
			check_stats();
		else if (what < 999)
			sync_some(page, next_random(&random) % (PAGES - page) + 1);
		else
			sync_some(0, PAGES);
	}
	return NULL;
}

/* What the file holds, read without the cache. */
static void check_file(bool all)
{
	uint64_t data[WORDS];
	int fd = open(path, O_RDONLY);

	for (uint64_t page = 0; page < PAGES; page++) {
		uint64_t least = all ? atomic_load(&model[page].version)
				     : atomic_load(&model[page].synced);

		if (model[page].zeroes || model[page].unsure)
			least = 0;
		assert_int_equal(pread(fd, data, PAGE, (off_t)(page * PAGE)), PAGE);
		for (unsigned i = 1; i < WORDS; i++)
			assert_int_equal(data[i], data[0]);
		if (data[0] < word_of(page, least))
			wrong("the file has not got what was synced", page, data[0], least);
	}
	close(fd);
}

static void run(unsigned frames, unsigned one_in, bool resizes)
{
	const struct hl_pagecache_options options = {
		.limit = frames * PAGE,
		.most = 2 * frames * PAGE,
		.pages = PAGES,
		.flags = HL_PAGECACHE_BUFFERED,
		.wait_ms = frames % 2 * 2,
	};
	pthread_t thread[THREADS];
	int rc;

	if (only_frames && frames != only_frames)
		return;
	memset(model, 0, sizeof(model));
	for (unsigned page = 0; page < PAGES; page++)
		pthread_rwlock_init(&model[page].gate, NULL);
	done = no_frames = faults = torn = synced = sync_failed = discarded = ordered = circles = 0;
	assert_int_equal(truncate(path, 0), 0);
	faulty_reset();
	assert_int_equal(hl_pagecache_open_by(&cache, path, &options, &checked_io), 0);
	faulty_one_in = one_in;
	faulty_slow_one_in = 20;
	faulty_no_sync = true; /* see pagecache_crash for what it is for */
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, torment, (void *)i), 0);
	while (resizes && atomic_load(&done) < operations && !bad) {
		rc = hl_pagecache_resize(cache,
					 (frames / 2 + atomic_load(&done) % frames + 1) * PAGE);
		if (rc && !may_fail(rc, 0))
			wrong("resize failed", 0, (uint64_t)-rc, 0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	check_file(false);
	faulty_one_in = 0;
	check_stats();
	for (uint64_t page = 0; page < PAGES && !bad; page++) {
		uint64_t random = page;

		use(page, HL_PAGE_SHARED, &random);
	}
	assert_int_equal(bad, 0);
	assert_int_equal(hl_pagecache_close(cache), 0);
	check_file(true);
	assert_int_equal(bad, 0);
	printf("# %u frames, one fault in %u: %lu operations, %lu without a frame, %lu faults, "
	       "%lu torn, %lu syncs, %lu failed, %lu discarded, %lu orders, %lu circles\n",
	       frames, one_in, operations, no_frames, faults, torn, synced, sync_failed, discarded,
	       ordered, circles);
	fflush(stdout);
	assert_true(!one_in || faults);
	assert_true(synced && ordered);
}

static void pages_hold_what_the_model_says(void **state)
{
	static const unsigned frames[] = { 1, 2, 3, 10, 30, 100 };

	(void)state;
	for (unsigned i = 0; i < sizeof(frames) / sizeof(frames[0]); i++)
		run(frames[i], 0, false);
}

static void pages_hold_what_the_model_says_when_the_device_fails(void **state)
{
	static const unsigned frames[] = { 1, 2, 3, 10, 30 };

	(void)state;
	for (unsigned i = 0; i < sizeof(frames) / sizeof(frames[0]); i++)
		run(frames[i], 10, false);
}

static void pages_hold_what_the_model_says_while_the_limit_changes(void **state)
{
	(void)state;
	run(4, 0, true);
	run(30, 50, true);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_hold_what_the_model_says),
		cmocka_unit_test(pages_hold_what_the_model_says_when_the_device_fails),
		cmocka_unit_test(pages_hold_what_the_model_says_while_the_limit_changes),
	};
	int fd, failed;

	operations = argc > 1 ? strtoul(argv[1], NULL, 10) : operations;
	seed = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : (unsigned)time(NULL);
	only_frames = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 0;
	printf("# seed %u\n", seed);
	faulty_seed(seed);
	fd = mkstemp(path);
	if (fd < 0)
		return 1;
	close(fd);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return failed;
}
