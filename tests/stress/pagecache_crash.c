// SPDX-License-Identifier: MIT
/*
 * What a sync promised is there, whatever happens after it.
 *
 *	stress-pagecache_crash [ROUNDS [SEED]]
 *
 * A process that writes and syncs is killed at a moment that nobody chose, again and again, and
 * the file is looked at. That loses nothing that the kernel has, so the same is done on a model
 * of a disk (tools/model_disk.h), which loses power at any I/O and forgets what was not synced,
 * wholly or by sectors, and whose syncs fail now and then.
 *
 * Each sector of a page says which page it is and in which version. Who has synced notes the
 * versions that were there before: .promised. What is on the disk afterwards may be newer, up
 * to what somebody has begun to write, and never older. Pages are ordered behind others: of what
 * is on the disk, synced or not, nothing is there without what had to be there before.
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
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <hotline/pagecache.h>

#include "../tools/model_disk.h"

#define PAGES 64u
#define THREADS 3
#define ORDERS 4u
#define NO_ORDER PAGES

/* In memory that the killed process shares with who looks at the file. */
struct shared {
	struct {
		_Atomic(uint64_t) begun; /* the newest version that anybody began to write */
		_Atomic(uint64_t) written; /* the newest that was unfixed */
		_Atomic(uint64_t) promised; /* at least this is in the file */
		/* The last orders: what is newer than .since is not there without this .version
		 * of the page .before, or a newer one. By who has the page exclusively. */
		struct {
			_Atomic(uint64_t) before, since, version; /* 0: none */
		} order[ORDERS];
		_Atomic(unsigned) n_orders;
	} page[PAGES];
	_Atomic(uint64_t) operations, orders;
	_Atomic(int) bad;
};

static struct shared *shared;
static struct hl_pagecache *cache;
static size_t page_size = 4096;
static char path[] = "pagecache-crash-XXXXXX", log_path[] = "pagecache-crash-log-XXXXXX";
static unsigned long rounds = 24;
static unsigned seed;

static uint32_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

static void wrong(const char *what, uint64_t page, uint64_t one, uint64_t two)
{
	if (!atomic_fetch_add(&shared->bad, 1))
		fprintf(stderr, "# seed %u: %s: page %lu, %lu %lu\n", seed, what,
			(unsigned long)page, (unsigned long)one, (unsigned long)two);
}

/* ---- Sectors ---- */

struct sector {
	uint64_t page, version, filling[MODEL_SECTOR / sizeof(uint64_t) - 2];
};

static void fill_page(struct sector *sector, uint64_t page, uint64_t version)
{
	for (size_t i = 0; i < page_size / sizeof(*sector); i++) {
		sector[i].page = page;
		sector[i].version = version;
		for (unsigned k = 0; k < sizeof(sector->filling) / sizeof(uint64_t); k++)
			sector[i].filling[k] = version * 1000003 + page + k;
	}
}

static bool sector_is_whole(const struct sector *sector, uint64_t page)
{
	if (!sector->version) /* never written */
		return true;
	for (unsigned k = 0; k < sizeof(sector->filling) / sizeof(uint64_t); k++) {
		if (sector->filling[k] != sector->version * 1000003 + page + k)
			return false;
	}
	return sector->page == page;
}

/* The oldest or the newest version of a page's sectors. */
static uint64_t version_on_disk(const struct sector *sector, uint64_t page, bool newest)
{
	const size_t sectors = page_size / sizeof(*sector);
	uint64_t version = sector[page * sectors].version;

	for (size_t i = page * sectors; i < (page + 1) * sectors; i++) {
		if (newest ? sector[i].version > version : sector[i].version < version)
			version = sector[i].version;
	}
	return version;
}

static void check_orders(const struct sector *sector)
{
	for (uint64_t page = 0; page < PAGES; page++) {
		uint64_t newest = version_on_disk(sector, page, true);

		for (unsigned i = 0; i < ORDERS; i++) {
			uint64_t before = shared->page[page].order[i].before;

			if (newest > shared->page[page].order[i].since &&
			    version_on_disk(sector, before, false) <
				    shared->page[page].order[i].version)
				wrong("is there without what goes before it", page, before,
				      shared->page[page].order[i].version);
		}
	}
}

static void check_disk(const struct sector *sector)
{
	check_orders(sector);
	for (size_t i = 0; i < PAGES * page_size / sizeof(*sector); i++, sector++) {
		uint64_t page = i / (page_size / sizeof(*sector));

		if (!sector_is_whole(sector, page))
			wrong("half a sector", page, sector->version, 0);
		if (sector->version < atomic_load(&shared->page[page].promised))
			wrong("older than was promised", page, sector->version,
			      atomic_load(&shared->page[page].promised));
		if (sector->version > atomic_load(&shared->page[page].begun))
			wrong("newer than anybody wrote", page, sector->version,
			      atomic_load(&shared->page[page].begun));
	}
}

/* ---- Threads that write and sync ---- */

/* The page is fixed exclusively. It may be killed at each line. */
static void order_behind(uint64_t first, uint64_t page)
{
	unsigned i = shared->page[page].n_orders++ % ORDERS;
	uint64_t version = shared->page[first].written;

	if (first == page || hl_page_write_before(cache, first, page))
		return;
	shared->page[page].order[i].version = 0;
	shared->page[page].order[i].before = first;
	shared->page[page].order[i].since = shared->page[page].begun;
	shared->page[page].order[i].version = version;
	shared->orders++;
}

static void write_page(uint64_t page, unsigned how, uint64_t first)
{
	uint64_t version;
	void *data;

	if (hl_page_fix(cache, page, how, &data))
		return;
	if (first != NO_ORDER)
		order_behind(first, page);
	version = atomic_fetch_add(&shared->page[page].begun, 1) + 1;
	fill_page(data, page, version);
	hl_page_dirty(cache, data);
	hl_page_unfix(cache, data);
	/* Another may have written a newer one since. */
	for (uint64_t was = atomic_load(&shared->page[page].written);
	     was < version &&
	     !atomic_compare_exchange_weak(&shared->page[page].written, &was, version);)
		;
}

static void read_page(uint64_t page)
{
	void *data;

	if (!hl_page_fix(cache, page, HL_PAGE_SHARED, &data))
		hl_page_unfix(cache, data);
}

static void sync_pages(uint64_t first, uint64_t n)
{
	uint64_t version[PAGES];
	int rc;

	for (uint64_t page = first; page < first + n; page++)
		version[page] = atomic_load(&shared->page[page].written);
	rc = n == PAGES ? hl_pagecache_sync(cache) : hl_pagecache_sync_range(cache, first, n);
	for (uint64_t page = first; !rc && page < first + n; page++) {
		uint64_t was = atomic_load(&shared->page[page].promised);

		while (was < version[page] &&
		       !atomic_compare_exchange_weak(&shared->page[page].promised, &was,
						     version[page]))
			;
	}
}

struct work {
	uint64_t random;
	unsigned long operations;
};

static void *work(void *arg)
{
	struct work *work = arg;

	for (unsigned long i = 0; i < work->operations && !model_disk_has_no_power(); i++) {
		uint64_t page = next_random(&work->random) % PAGES;
		unsigned what = next_random(&work->random) % 100;

		if (what < 35)
			write_page(page, HL_PAGE_EXCLUSIVE, NO_ORDER);
		else if (what < 55)
			write_page(page, HL_PAGE_EXCLUSIVE, next_random(&work->random) % PAGES);
		else if (what < 60)
			write_page(page, HL_PAGE_NEW, NO_ORDER);
		else if (what < 80)
			read_page(page);
		else if (what < 97)
			sync_pages(page, next_random(&work->random) % (PAGES - page) + 1);
		else
			sync_pages(0, PAGES);
		atomic_fetch_add(&shared->operations, 1);
	}
	return NULL;
}

static void work_in_threads(unsigned round, unsigned long operations)
{
	pthread_t thread[THREADS];
	struct work what[THREADS];

	for (unsigned i = 0; i < THREADS; i++) {
		what[i] = (struct work){ seed * UINT64_C(1000003) + round * 16 + i, operations };
		if (pthread_create(&thread[i], NULL, work, &what[i]))
			abort();
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
}

static struct hl_pagecache_options options_of(uint64_t *random)
{
	static const unsigned frames[] = { 1, 2, 3, 10, 30, 100 };

	return (struct hl_pagecache_options){
		.page_size = page_size,
		.limit = frames[next_random(random) % 6] * page_size,
		.pages = PAGES,
		.wait_ms = 100,
		.write_after_ms = next_random(random) % 2 ? 1 : UINT_MAX,
	};
}

static void forget(void)
{
	memset(shared, 0, sizeof(*shared));
}

/* What was written and not synced may be gone. */
static void forget_written(void)
{
	for (unsigned i = 0; i < PAGES; i++)
		shared->page[i].written = 0;
	for (unsigned i = 0; i < PAGES * ORDERS; i++)
		shared->page[i / ORDERS].order[i % ORDERS].version = 0;
	shared->operations = shared->orders = 0;
}

/* ---- Killed ---- */

static void be_killed(unsigned round, uint64_t random)
{
	static const unsigned flags[] = { 0, HL_PAGECACHE_BUFFERED, HL_PAGECACHE_NO_URING,
					  HL_PAGECACHE_BUFFERED | HL_PAGECACHE_NO_URING };
	struct hl_pagecache_options options = options_of(&random);

	options.flags = flags[next_random(&random) % 4];
	if (hl_pagecache_open(&cache, path, &options))
		_exit(1);
	work_in_threads(round, ULONG_MAX);
	_exit(1); /* it is killed before */
}

static void check_file(void)
{
	void *data = malloc(PAGES * page_size);
	int fd = open(path, O_RDONLY);

	assert_int_equal(pread(fd, data, PAGES * page_size, 0), PAGES * page_size);
	check_disk(data);
	close(fd);
	free(data);
}

static void what_sync_promised_is_there_after_a_kill(void **state)
{
	unsigned long operations = 0, orders = 0;

	(void)state;
	forget();
	for (unsigned round = 0; round < rounds && !shared->bad; round++) {
		uint64_t random = seed + round, until;
		int status;
		pid_t pid;

		if (round % (rounds / 2 + 1) == 0) {
			page_size = round ? 16384 : 4096;
			forget();
			assert_int_equal(truncate(path, 0), 0);
			assert_int_equal(truncate(path, (off_t)(PAGES * page_size)), 0);
		}
		until = next_random(&random) % 2000;
		forget_written();
		pid = fork();
		if (!pid)
			be_killed(round, random);
		while (atomic_load(&shared->operations) < until && !waitpid(pid, &status, WNOHANG))
			sched_yield();
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		operations += shared->operations;
		orders += shared->orders;
		check_file();
	}
	page_size = 4096;
	printf("# killed %lu times after %lu operations, %lu orders\n", rounds, operations, orders);
	assert_int_equal(shared->bad, 0);
	assert_true(orders);
}

/* ---- Without power ---- */

static void what_sync_promised_is_there_after_a_loss_of_power(void **state)
{
	unsigned long lost = 0, ios = 0, failed = 0, orders = 0;

	(void)state;
	forget();
	page_size = 4096;
	model_disk_make(0, path, PAGES * page_size);
	for (unsigned round = 0; round < rounds * 10 && !shared->bad; round++) {
		uint64_t random = seed + round;
		const struct hl_pagecache_options options = options_of(&random);

		model_disk_fail_power_at(next_random(&random) % 1000 + 1, seed + round);
		assert_int_equal(hl_pagecache_open_by(&cache, path, &options, &model_disk_io), 0);
		model_sync_fails_one_in = round % 3 ? 10 : 0;
		forget_written();
		work_in_threads(round, ULONG_MAX);
		assert_int_equal(hl_pagecache_abandon(cache), 0);
		ios += model_ios;
		failed += model_failed_syncs;
		orders += shared->orders;
		lost += model_disk_recover(0);
		check_disk(model_disk_contents(0));
		/* What is there now will stay, but it may be any of what was not promised. */
	}
	model_disk_free(0);
	printf("# power failed %lu times in %lu I/Os, %lu syncs failed, %lu sectors lost, "
	       "%lu orders\n",
	       rounds * 10, ios, failed, lost, orders);
	assert_int_equal(shared->bad, 0);
	assert_true(failed && lost && orders);
}

/* ---- The log first ---- */

static struct hl_pagecache *log_cache;
static uint64_t logged;

/* The log has what led to this page. */
static int sync_log(struct hl_pagecache *which, uint64_t page, const void *data, void *arg)
{
	const struct sector *sector = data;
	int rc = 0;

	(void)which, (void)page, (void)arg;
	if (sector->version > atomic_load((_Atomic(uint64_t) *)&logged)) {
		rc = hl_pagecache_sync_range(log_cache, 0, sector->version + 1);
		if (!rc)
			logged = sector->version;
	}
	return rc;
}

/* Each change is a page of the log and then one of the data, until power fails. */
static void log_and_write(void)
{
	for (uint64_t number = 1; number < PAGES && !model_disk_has_no_power(); number++) {
		void *data;

		if (hl_page_fix(log_cache, number, HL_PAGE_NEW, &data))
			return;
		fill_page(data, number, number);
		hl_page_unfix(log_cache, data);
		if (hl_page_fix(cache, number * 7 % 20, HL_PAGE_EXCLUSIVE, &data))
			return;
		fill_page(data, number * 7 % 20, number);
		hl_page_dirty(cache, data);
		hl_page_unfix(cache, data);
		if (number % 16 == 0)
			hl_pagecache_sync(cache);
	}
}

static void check_order(void)
{
	const struct sector *log = model_disk_contents(1), *data = model_disk_contents(0);
	const size_t sectors = page_size / sizeof(*data);

	for (size_t i = 0; i < 20 * sectors; i++) {
		uint64_t number = data[i].version;

		for (size_t k = 0; number && k < sectors; k++) {
			if (log[number * sectors + k].version != number)
				wrong("a page is there and its log is not", i / sectors, number, k);
		}
	}
}

static void no_page_is_there_before_its_log(void **state)
{
	unsigned long n = 1, written = 0;

	(void)state;
	forget();
	model_sync_fails_one_in = 0;
	do {
		const struct hl_pagecache_options data_options = { .limit = 5 * page_size,
								   .pages = PAGES,
								   .write_after_ms = UINT_MAX,
								   .before_write = sync_log };
		const struct hl_pagecache_options log_options = { .limit = 4 * page_size,
								  .pages = PAGES,
								  .write_after_ms = UINT_MAX };

		model_disk_make(0, path, PAGES * page_size);
		model_disk_make(1, log_path, PAGES * page_size);
		model_disk_fail_power_at(n, seed + (unsigned)n);
		logged = 0;
		assert_int_equal(hl_pagecache_open_by(&log_cache, log_path, &log_options,
						      &model_disk_io),
				 0);
		assert_int_equal(hl_pagecache_open_by(&cache, path, &data_options, &model_disk_io),
				 0);
		log_and_write();
		hl_pagecache_abandon(cache);
		hl_pagecache_abandon(log_cache);
		model_disk_recover(0);
		model_disk_recover(1);
		check_order();
		for (unsigned page = 0; page < 20; page++)
			written += ((const struct sector *)model_disk_contents(
					   0))[page * page_size / MODEL_SECTOR]
					   .version != 0;
		model_disk_free(0);
		model_disk_free(1);
		n++;
	} while (model_disk_has_no_power() && !shared->bad);
	printf("# power failed at each of %lu I/Os, %lu pages were there\n", n - 2, written);
	assert_int_equal(shared->bad, 0);
	assert_true(n > 50 && written);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		/* First: who is killed is a child of a process that has one thread. */
		cmocka_unit_test(what_sync_promised_is_there_after_a_kill),
		cmocka_unit_test(what_sync_promised_is_there_after_a_loss_of_power),
		cmocka_unit_test(no_page_is_there_before_its_log),
	};
	int failed;

	rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : rounds;
	seed = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : (unsigned)time(NULL);
	printf("# seed %u\n", seed);
	fflush(stdout);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	close(mkstemp(path));
	close(mkstemp(log_path));
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	unlink(log_path);
	return failed;
}
