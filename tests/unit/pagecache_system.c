// SPDX-License-Identifier: MIT
/*
 * The page cache and the system that it runs on: files, disks and devices of every kind, limits,
 * and memory that runs out.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/loop.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <hotline/pagecache.h>

#include "../tools/faulty_io.h"
#include "../tools/filter.h"
#include "pagecache/table.h"

#include "../tools/pages.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static void skip_because(const char *why)
{
	print_message("# skipped: %s\n", why);
	skip();
}

/* ---- Every kind of file ---- */

/* Through few frames, with whatever options; pages say what they are. */
static void write_all_and_read_again(const struct hl_pagecache_options *options, uint64_t pages)
{
	const size_t words = options->page_size / sizeof(uint64_t);
	uint64_t *data;

	assert_int_equal(hl_pagecache_open(&cache, path, options), 0);
	for (uint64_t page = 0; page < pages; page++) {
		data = fix(page * 3 % pages, HL_PAGE_NEW);
		for (size_t i = 0; i < words; i++)
			data[i] = page * 3 % pages * 1000003 + i;
		unfix(data);
	}
	for (uint64_t page = 0; page < pages; page++) {
		data = fix(page, HL_PAGE_SHARED);
		for (size_t i = 0; i < words; i++)
			assert_int_equal(data[i], page * 1000003 + i);
		unfix(data);
	}
	close_cache();
}

static void pages_of_each_size_go_each_way_and_are_read_by_who_only_reads(void **state)
{
	static const unsigned flags[] = { 0, HL_PAGECACHE_BUFFERED, HL_PAGECACHE_NO_URING,
					  HL_PAGECACHE_NO_URING | HL_PAGECACHE_BUFFERED };

	(void)state;
	for (size_t size = 4096; size <= 65536; size *= 2) {
		for (unsigned k = 0; k < 4; k++) {
			struct hl_pagecache_options options = {
				.page_size = size, .limit = 7 * size, .pages = 31, .flags = flags[k]
			};

			write_all_and_read_again(&options, 31);
			options.pages = 0;
			options.flags |= HL_PAGECACHE_READ_ONLY;
			assert_int_equal(hl_pagecache_open(&cache, path, &options), 0);
			assert_int_equal(hl_pagecache_pages(cache), 31);
			for (uint64_t page = 0; page < 31; page++) {
				uint64_t *data = fix(page, HL_PAGE_SHARED);

				assert_int_equal(data[9], page * 1000003 + 9);
				unfix(data);
			}
			close_cache();
		}
		assert_int_equal(truncate(path, 0), 0);
	}
}

/* Beyond 32 bits of bytes on the disk, and of pages where files may be so long. */
static void files_are_longer_than_32_bits_of_bytes_and_of_pages(void **state)
{
	const uint64_t far[] = { UINT64_C(5) << 30, (UINT64_C(1) << 44) + (UINT64_C(7) << 40) };
	int memory = memfd_create("pagecache-test", 0);

	(void)state;
	for (unsigned k = 0; k < 2; k++) {
		const struct hl_pagecache_options options = { .limit = 4 * PAGE,
							      .pages = far[k] / PAGE + 10 };
		char name[64];

		snprintf(name, sizeof(name), "/proc/self/fd/%d", memory);
		if (hl_pagecache_open(&cache, k ? name : path, &options))
			continue; /* such a file cannot be here */
		assert_int_equal(hl_pagecache_pages(cache), far[k] / PAGE + 10);
		for (uint64_t page = 0; page < 10; page++) {
			put(page, 1);
			/* The same lower bits. */
			put(far[k] / PAGE + page, 2);
			put((far[k] / 2) / PAGE + page, 3);
		}
		for (uint64_t page = 0; page < 10; page++) {
			expect(page, 1);
			expect(far[k] / PAGE + page, 2);
			expect((far[k] / 2) / PAGE + page, 3);
		}
		assert_int_equal(hl_pagecache_sync_range(cache, far[k] / PAGE, 10), 0);
		assert_int_equal(hl_pagecache_discard(cache, far[k] / PAGE, 10), 0);
		assert_int_equal(*(uint64_t *)fix(far[k] / PAGE + 3, 0), 0);
		assert_int_equal(hl_pagecache_abandon(cache), 0);
	}
	close(memory);
}

/* A loop device of the file; its name, or NULL with errno. */
static const char *make_device(int *device)
{
	static char name[32];
	int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC), file, n;

	if (control < 0)
		return NULL;
	n = ioctl(control, LOOP_CTL_GET_FREE);
	close(control);
	snprintf(name, sizeof(name), "/dev/loop%d", n);
	*device = n < 0 ? -1 : open(name, O_RDWR | O_CLOEXEC);
	if (*device < 0)
		return NULL;
	file = open(path, O_RDWR | O_CLOEXEC);
	n = ioctl(*device, LOOP_SET_FD, file);
	close(file);
	if (n)
		close(*device);
	return n ? NULL : name;
}

static void a_block_device_is_a_file_of_one_length(void **state)
{
	const struct hl_pagecache_options options = { .page_size = 8192, .limit = 6 * 8192 };
	const char *name;
	char before[64];
	void *data;
	int device = -1;

	(void)state;
	assert_int_equal(truncate(path, 100 * 8192), 0);
	name = make_device(&device);
	if (!name)
		skip_because("no loop device can be made: it takes root");
	strcpy(before, path);
	strcpy(path, name);
	write_all_and_read_again(&options, 100);
	assert_int_equal(hl_pagecache_open(&cache, path, &options), 0);
	assert_int_equal(hl_pagecache_pages(cache), 100);
	assert_int_equal(hl_page_fix(cache, 100, 0, &data), -ERANGE);
	assert_int_equal(hl_pagecache_grow(cache, 101), -EINVAL);
	assert_int_equal(hl_pagecache_grow(cache, 100), 0);
	assert_int_equal(hl_pagecache_discard(cache, 3, 2), 0);
	data = fix(3, 0);
	assert_int_equal(*(uint64_t *)data, 0);
	unfix(data);
	data = fix(5, 0);
	assert_int_equal(*(uint64_t *)data, 5 * 1000003);
	unfix(data);
	close_cache();
	strcpy(path, before);
	ioctl(device, LOOP_CLR_FD);
	close(device);
}

/* ---- A disk that is full ---- */

/* In a child, whose disk it is; 0, or what is wrong. */
static int fill_the_disk(void)
{
	const struct hl_pagecache_options options = { .limit = 16 * PAGE,
						      .pages = 1000,
						      .flags = HL_PAGECACHE_CREATE,
						      .write_after_ms = UINT_MAX };
	struct hl_pagecache *own;
	uint64_t page = 0;
	uint64_t *data;
	int rc;

	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", "/mnt", "tmpfs", 0, "size=256k"))
		return 77;
	if (hl_pagecache_open(&own, "/mnt/base", &options))
		return 1;
	/* Until no more can be written to make room. */
	while (!(rc = hl_page_fix(own, page, HL_PAGE_NEW, (void **)&data)) && page < 1000) {
		*data = page++ + 1;
		hl_page_unfix(own, data);
	}
	if (rc != -ENOSPC || page < 60)
		return 2;
	for (unsigned i = 0; i < 3; i++) {
		if (hl_pagecache_sync(own) != -ENOSPC)
			return 3;
	}
	if (hl_pagecache_close(own) != -ENOSPC)
		return 4;
	/* The pages that are there can be read, if none has to be written for it. */
	if (hl_page_fix(own, page - 1, HL_PAGE_SHARED, (void **)&data) || *data != page)
		return 5;
	hl_page_unfix(own, data);
	/* Room is made, and all is well. */
	if (hl_pagecache_discard(own, 0, 20))
		return 6;
	if (hl_pagecache_sync(own))
		return 7;
	for (uint64_t i = 20; i < page; i++) {
		if (hl_page_fix(own, i, HL_PAGE_SHARED, (void **)&data) || *data != i + 1)
			return 8;
		hl_page_unfix(own, data);
	}
	return hl_pagecache_close(own) ? 9 : 0;
}

static void a_full_disk_is_an_error_each_time_until_there_is_room(void **state)
{
	pid_t pid = fork();
	int status;

	(void)state;
	if (!pid)
		_exit(fill_the_disk());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip_because("no small disk can be mounted: it takes root");
	assert_int_equal(status, 0);
}

static void a_file_may_be_truncated_whatever_is_done_with_it(void **state)
{
	uint64_t page[4] = { 1, 6, 7, 9 };
	struct hl_page_request request = { .page = 8 };
	struct hl_page_read read;
	void *data[4];
	int rc;

	(void)state;
	open_with(8, 10, 0, 0);
	put(4, 1);
	assert_int_equal(truncate(path, 2 * PAGE), 0);
	expect(4, 1); /* it is in memory */
	assert_int_equal(hl_page_fix_many(cache, page, 4, 0, data), -ENODATA);
	assert_int_equal(hl_page_read_begin(cache, 5, &read), -ENODATA);
	assert_int_equal(hl_page_fix_begin(cache, &request), -EINPROGRESS);
	while ((rc = hl_page_fix_end(&request, data)) == -EAGAIN)
		sched_yield();
	assert_int_equal(rc, -ENODATA);
	assert_int_equal(hl_pagecache_prefetch(cache, 0, 10), 0);
	unfix(fix(0, 0));
	/* Written anew it is there again, and with it what is before. */
	assert_int_equal(hl_pagecache_sync(cache), 0);
	unfix(fix(3, 0));
	assert_int_equal(hl_page_fix(cache, 9, 0, data), -ENODATA);
	unfix(fix(9, HL_PAGE_NEW));
	close_cache();
	expect_in_file(4, 1);
}

/* ---- Discarding ---- */

/* Called before the file system takes room back; what it fails with instead, or 0. */
static int (*before_fallocate)(void);

int fallocate(int fd, int mode, off_t offset, off_t bytes)
{
	int error = before_fallocate ? before_fallocate() : 0;

	if (!error)
		return (int)syscall(SYS_fallocate, fd, mode, offset, bytes);
	errno = error;
	return -1;
}

static int read_it(void)
{
	before_fallocate = NULL; /* once */
	expect(3, 1);
	return 0;
}

/* A thread that has the page until it is wanted. */
static void *hold_it(void *ready)
{
	void *data = fix(3, HL_PAGE_SHARED);

	atomic_store((_Atomic(int) *)ready, 1);
	while (!(atomic_load(&hl_table_find(cache, 3)->word) & HL_FRAME_WANT))
		sched_yield();
	unfix(data);
	return NULL;
}

static pthread_t holder;

static int have_it_held(void)
{
	static _Atomic(int) ready;

	before_fallocate = NULL; /* once */
	ready = 0;
	assert_int_equal(pthread_create(&holder, NULL, hold_it, (void *)&ready), 0);
	while (!ready)
		sched_yield();
	return 0;
}

static int cannot(void)
{
	return EOPNOTSUPP;
}

static int out_of_room(void)
{
	return ENOSPC;
}

static void expect_zeroes(uint64_t page)
{
	char zeroes[PAGE] = { 0 }, *data = fix(page, HL_PAGE_SHARED);

	assert_memory_equal(data, zeroes, PAGE);
	unfix(data);
}

static void what_is_read_while_it_is_discarded_is_not_kept(void **state)
{
	(void)state;
	open_with(4, 10, 0, 0);
	for (uint64_t page = 0; page < 10; page++)
		put(page, 1);
	assert_int_equal(hl_pagecache_resize(cache, PAGE), 0);
	expect(5, 1);
	assert_int_equal(hl_pagecache_resize(cache, 4 * PAGE), 0);
	before_fallocate = read_it;
	assert_int_equal(hl_pagecache_discard(cache, 3, 1), 0);
	expect_zeroes(3);
	put(3, 1);
	/* Out of memory with it. */
	assert_int_equal(hl_pagecache_resize(cache, PAGE), 0);
	expect(5, 1);
	assert_int_equal(hl_pagecache_resize(cache, 4 * PAGE), 0);
	before_fallocate = have_it_held;
	assert_int_equal(hl_pagecache_discard(cache, 3, 1), 0);
	pthread_join(holder, NULL);
	expect_zeroes(3);
	close_cache();
	open_with(4, 0, 0, 0);
	expect_zeroes(3);
	close_cache();
}

static void where_no_room_can_be_taken_back_zeroes_are_written(void **state)
{
	(void)state;
	open_with(4, 10, 0, 0);
	for (uint64_t page = 0; page < 10; page++)
		put(page, 1);
	before_fallocate = cannot;
	assert_int_equal(hl_pagecache_discard(cache, 1, 8), 0);
	faulty_write = -EIO;
	assert_int_equal(hl_pagecache_discard(cache, 0, 1), -EIO);
	faulty_write = 0;
	before_fallocate = out_of_room;
	assert_int_equal(hl_pagecache_discard(cache, 0, 1), -ENOSPC);
	before_fallocate = NULL;
	for (uint64_t page = 1; page < 9; page++)
		expect_zeroes(page);
	expect(0, 1);
	expect(9, 1);
	close_cache();
}

/* ---- Limits ---- */

static unsigned in_directory(const char *name)
{
	char command[64];
	unsigned n = 0;
	FILE *list;

	snprintf(command, sizeof(command), "ls /proc/%d/%s | wc -l", (int)getpid(), name);
	list = popen(command, "r");
	assert_int_equal(fscanf(list, "%u", &n), 1);
	pclose(list);
	return n;
}

static size_t resident(void)
{
	unsigned long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	assert_int_equal(fscanf(file, "%*u %lu", &pages), 1);
	fclose(file);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void five_thousand_files_take_a_descriptor_each_and_no_thread(void **state)
{
	enum { N = 5000 };
	const struct hl_pagecache_options options = { .limit = 2 * PAGE,
						      .pages = 3,
						      .flags = HL_PAGECACHE_CREATE };
	static struct hl_pagecache *many[N];
	struct rlimit limit, before;
	char directory[] = "pagecache-many-XXXXXX", name[64];
	unsigned threads, descriptors;
	size_t memory;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = before;
	limit.rlim_cur = limit.rlim_max;
	if (limit.rlim_max < N + 100 || setrlimit(RLIMIT_NOFILE, &limit))
		skip_because("no process may have 5100 files open here");
	assert_non_null(mkdtemp(directory));
	open_with(2, 3, 0, 0); /* the library's own threads are there from now on */
	hl_pagecache_prefetch(cache, 0, 1);
	close_cache();
	threads = in_directory("task");
	descriptors = in_directory("fd");
	memory = resident();
	for (unsigned i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "%s/%u", directory, i);
		assert_int_equal(hl_pagecache_open(&many[i], name, &options), 0);
	}
	/* All in turn, twice. */
	for (unsigned i = 0; i < 2 * N; i++) {
		uint64_t *data;

		cache = many[i % N];
		data = fix(i % 3, HL_PAGE_EXCLUSIVE);
		assert_int_equal(data[0], i >= N && N % 3 == 0 ? i - N + 1 : data[0]);
		data[0] = i + 1;
		if (i % N % 20 == 0) /* not all of them, for each is to be synced */
			hl_page_dirty(cache, data);
		unfix(data);
	}
	assert_true(in_directory("task") <= threads + 2);
	assert_true(in_directory("fd") <= descriptors + N + 2);
	print_message("# %zu bytes of memory for each, with a page in it\n",
		      (resident() - memory) / N);
#if !SANITIZED
	assert_true((resident() - memory) / N < 32 << 10);
#endif
	/* In another order than they were opened in. */
	for (unsigned i = 0; i < N; i++) {
		unsigned which = (unsigned)((uint64_t)i * 1237 % N);

		cache = many[which];
		if (which % 20)
			assert_int_equal(hl_pagecache_abandon(cache), 0);
		else
			close_cache();
		snprintf(name, sizeof(name), "%s/%u", directory, which);
		unlink(name);
	}
	rmdir(directory);
	setrlimit(RLIMIT_NOFILE, &before);
}

static void without_descriptors_it_says_so_and_goes_on_with_those_it_has(void **state)
{
	pid_t pid = fork();
	int status;

	(void)state;
	if (!pid) {
		const struct hl_pagecache_options options = { .limit = 50 * PAGE, .pages = 100 };
		struct hl_pagecache *one, *two;
		uint64_t page[30];
		void *data[30];
		int rc = hl_pagecache_open(&one, path, &options), fd = dup(0);
		struct rlimit limit = { (rlim_t)fd, (rlim_t)fd };

		close(fd);
		rc |= setrlimit(RLIMIT_NOFILE, &limit);
		rc |= hl_pagecache_open(&two, path, &options) != -EMFILE || two;
		for (unsigned i = 0; i < 30; i++)
			page[i] = 2 * i;
		/* Without a ring, if it has not got one yet. */
		rc |= hl_page_fix_many(one, page, 30, HL_PAGE_EXCLUSIVE, data);
		for (unsigned i = 0; i < 30; i++) {
			hl_page_dirty(one, data[i]);
			hl_page_unfix(one, data[i]);
		}
		_exit(rc || hl_pagecache_close(one));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* A memory cgroup of 64 MiB, of either version; false: there can be none. */
static bool make_cgroup(char *group, size_t room)
{
	static const char *const kinds[][2] = {
		{ "/sys/fs/cgroup/memory", "memory.limit_in_bytes" },
		{ "/sys/fs/cgroup", "memory.max" },
	};
	char file[256];

	for (unsigned i = 0; i < 2; i++) {
		int fd;
		bool set;

		snprintf(group, room, "%s/hotline-test-%d", kinds[i][0], (int)getpid());
		if (mkdir(group, 0755))
			continue;
		snprintf(file, sizeof(file), "%s/%s", group, kinds[i][1]);
		fd = open(file, O_WRONLY | O_CLOEXEC);
		set = fd >= 0 && write(fd, "67108864", 8) == 8;
		close(fd);
		if (set)
			return true;
		rmdir(group);
	}
	return false;
}

/* In the cgroup, with all of its memory in use by the cache: nobody is killed. */
static int use_defaults_in(const char *group)
{
	char file[256];
	struct hl_pagecache *own;
	uint64_t pages = (256 << 20) / PAGE;
	int fd, rc;

	snprintf(file, sizeof(file), "%s/cgroup.procs", group);
	fd = open(file, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "0", 1) != 1)
		return 77;
	close(fd);
	if (hl_default_limit() > 32 << 20 || hl_default_limit() < 4 << 20)
		return 1;
	rc = hl_pagecache_open(&own, path, &(struct hl_pagecache_options){ .pages = pages });
	for (uint64_t page = 0; page < pages && !rc; page += 4) {
		void *data;

		rc = hl_page_fix(own, page, page % 16 ? HL_PAGE_SHARED : HL_PAGE_NEW, &data);
		if (!rc)
			rc = hl_page_unfix(own, data);
	}
	if (rc || !memset(malloc(8 << 20), 1, 8 << 20))
		return 2;
	return hl_pagecache_abandon(own);
}

static void the_limit_by_default_is_half_of_what_the_cgroup_has_left(void **state)
{
	char group[128];
	int status;
	pid_t pid;

	(void)state;
	if (SANITIZED)
		skip_because("sanitizers need more memory than that");
	if (!make_cgroup(group, sizeof(group)))
		skip_because("no memory cgroup can be made: it takes root");
	pid = fork();
	if (!pid)
		_exit(use_defaults_in(group));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	while (rmdir(group) && errno == EBUSY)
		sched_yield();
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip_because("a process may not be put into a cgroup");
	assert_int_equal(status, 0);
}

static void write_file(const char *folder, const char *name, const char *text)
{
	char file[256];
	FILE *out;

	snprintf(file, sizeof(file), "%s/%s", folder, name);
	out = fopen(file, "we");
	assert_non_null(out);
	fputs(text, out);
	assert_int_equal(fclose(out), 0);
}

/* A folder that looks like cgroups, of the second version, one in another. */
static void the_limit_by_default_heeds_each_limit_of_each_cgroup_above(void **state)
{
	char root[] = "pagecache-cgroups-XXXXXX", outer[64], inner[64], own[64], command[64];

	(void)state;
	assert_non_null(mkdtemp(root));
	snprintf(outer, sizeof(outer), "%s/outer", root);
	snprintf(inner, sizeof(inner), "%s/outer/inner", root);
	snprintf(own, sizeof(own), "%s/own", root);
	assert_int_equal(mkdir(outer, 0755) | mkdir(inner, 0755), 0);
	write_file(root, "own", "1:name=other:/\n0::/outer/inner\n");
	assert_true(hl_free_of_cgroups(own, root) == UINT64_MAX);
	write_file(inner, "memory.max", "max\n");
	write_file(inner, "memory.high", "max\n");
	write_file(inner, "memory.current", "1000\n");
	assert_true(hl_free_of_cgroups(own, root) == UINT64_MAX);
	write_file(inner, "memory.max", "90000\n");
	assert_int_equal(hl_free_of_cgroups(own, root), 89000);
	/* Above it nothing is killed, but everything slowed down. */
	write_file(inner, "memory.high", "50000\n");
	assert_int_equal(hl_free_of_cgroups(own, root), 49000);
	write_file(outer, "memory.high", "60000\n");
	write_file(outer, "memory.current", "20000\n");
	assert_int_equal(hl_free_of_cgroups(own, root), 40000);
	write_file(outer, "memory.high", "10000\n");
	assert_int_equal(hl_free_of_cgroups(own, root), 0);
	assert_true(hl_free_of_cgroups("/nowhere", root) == UINT64_MAX);
	snprintf(command, sizeof(command), "rm -r %s", root);
	assert_int_equal(system(command), 0);
}

/* ---- Mappings stay as they are ---- */

/* Evicts thousands of pages, where changing a mapping would be the end. */
static int evict_without_mapping(void)
{
	const struct hl_pagecache_options options = { .limit = 64 * PAGE, .pages = 2000 };
	static const unsigned calls[] = { SYS_munmap, SYS_madvise, SYS_mprotect, SYS_mremap,
					  SYS_process_madvise };
	struct hl_pagecache_stats now;
	struct hl_pagecache *own;
	void *data;

	if (hl_pagecache_open(&own, path, &options) || hl_page_fix(own, 1, 0, &data) ||
	    hl_page_unfix(own, data))
		return 1;
	for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (filter_call(calls[i], ENOTRECOVERABLE))
			return 77;
	}
	for (uint64_t page = 0; page < 2000; page++) {
		if (hl_page_fix(own, page, page % 2, &data))
			return 2;
		hl_page_dirty(own, data);
		hl_page_unfix(own, data);
	}
	if (munmap(NULL, 4096) != -1 || errno != ENOTRECOVERABLE)
		return 3; /* the filter filters */
	return hl_pagecache_get_stats(own, &now) || now.evicted < 1900 ? 4 : 0;
}

static void pages_come_and_go_without_a_change_to_any_mapping(void **state)
{
	pid_t pid = fork();
	int status;

	(void)state;
	if (!pid)
		_exit(evict_without_mapping());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip_because("system calls cannot be filtered here");
	assert_int_equal(status, 0);
}

/* ---- Memory that runs out ---- */

#if !SANITIZED
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

static _Atomic(long) fail_at; /* this many from now fails; 0: none */
static _Atomic(unsigned long) failed;
static _Atomic(long) mapped;
static __thread bool counted; /* of this thread only */

static bool fails(void)
{
	if (!counted || !atomic_load(&fail_at) || atomic_fetch_sub(&fail_at, 1) != 1)
		return false;
	atomic_fetch_add(&failed, 1);
	errno = ENOMEM;
	return true;
}

void *malloc(size_t bytes)
{
	return fails() ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
	return fails() ? NULL : __libc_calloc(n, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
	return fails() ? NULL : __libc_memalign(alignment, bytes);
}

int posix_memalign(void **memory, size_t alignment, size_t bytes)
{
	*memory = fails() ? NULL : __libc_memalign(alignment, bytes);
	return *memory ? 0 : ENOMEM;
}

void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	if (fails())
		return MAP_FAILED;
	if (counted)
		mapped += (long)bytes;
	return (void *)syscall(SYS_mmap, address, bytes, protection, flags, fd, offset);
}

int munmap(void *address, size_t bytes)
{
	if (counted)
		mapped -= (long)bytes;
	return (int)syscall(SYS_munmap, address, bytes);
}

/* Everything that takes memory; 0 or -ENOMEM or what starting a thread fails with. */
static int use_memory(void)
{
	const struct hl_pagecache_options options = { .limit = 40 * PAGE, .pages = 200 };
	uint64_t page[30];
	void *data[30];
	int rc = hl_pagecache_open(&cache, path, &options);

	if (rc)
		return rc;
	for (unsigned i = 0; i < 30; i++)
		page[i] = i * 3;
	rc = hl_page_fix_many(cache, page, 30, HL_PAGE_EXCLUSIVE, data);
	for (unsigned i = 0; !rc && i < 30; i++) {
		*(uint64_t *)data[i] = i;
		if (hl_page_dirty(cache, data[i]) || hl_page_unfix(cache, data[i]))
			rc = 1;
	}
	for (unsigned i = 1; !rc && i < 6; i++)
		rc = hl_page_write_before(cache, page[i - 1], page[i]);
	if (!rc)
		rc = hl_pagecache_prefetch(cache, 100, 10);
	if (!rc)
		rc = hl_pagecache_discard(cache, 4, 1);
	if (!rc)
		rc = hl_pagecache_sync(cache);
	for (unsigned i = 0; !rc && i < 30; i++) {
		rc = hl_page_fix(cache, page[i], 0, &data[i]);
		if (!rc && *(uint64_t *)data[i] != i)
			rc = 2;
		if (!rc)
			rc = hl_page_unfix(cache, data[i]);
	}
	return rc;
}

/* In a child, which has nothing yet. */
static int run_out_at(long n)
{
	struct hl_pagecache *before;
	long had;
	int rc;

	counted = true;
	fail_at = n;
	had = mapped;
	before = cache = NULL;
	rc = use_memory();
	fail_at = 0;
	if (rc > 0)
		return 1;
	if (rc && rc != -ENOMEM && rc != -EAGAIN)
		return 2;
	if (!cache && mapped != had)
		return 3; /* not all of it was given back, or more */
	/* With memory it works, and what was there is not lost. */
	before = cache;
	if (before) {
		rc = hl_pagecache_sync(before);
		if (rc)
			return 4;
		if (hl_pagecache_close(before))
			return 5;
	}
	if (use_memory() || hl_pagecache_close(cache))
		return 6;
	return failed ? 0 : 99;
}

static void memory_runs_out_at_each_point_and_nothing_is_broken(void **state)
{
	int status;
	long n = 0;

	(void)state;
	do {
		pid_t pid;

		fflush(stdout);
		pid = fork();
		if (!pid)
			_exit(run_out_at(++n));
		n++;
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status));
		if (WEXITSTATUS(status) && WEXITSTATUS(status) != 99)
			print_message("# %d at allocation %ld\n", WEXITSTATUS(status), n);
		assert_true(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 99);
	} while (!WEXITSTATUS(status));
	print_message("# memory ran out at each of %ld allocations\n", n - 1);
	assert_true(n > 10);
}
#else
static void memory_runs_out_at_each_point_and_nothing_is_broken(void **state)
{
	(void)state;
	skip_because("sanitizers have allocators of their own");
}
#endif

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_path, remove_path)

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* Children that start threads come first. */
		TEST(memory_runs_out_at_each_point_and_nothing_is_broken),
		TEST(without_descriptors_it_says_so_and_goes_on_with_those_it_has),
		TEST(pages_come_and_go_without_a_change_to_any_mapping),
		TEST(a_full_disk_is_an_error_each_time_until_there_is_room),
		TEST(the_limit_by_default_is_half_of_what_the_cgroup_has_left),
		TEST(the_limit_by_default_heeds_each_limit_of_each_cgroup_above),
		TEST(pages_of_each_size_go_each_way_and_are_read_by_who_only_reads),
		TEST(files_are_longer_than_32_bits_of_bytes_and_of_pages),
		TEST(a_block_device_is_a_file_of_one_length),
		TEST(a_file_may_be_truncated_whatever_is_done_with_it),
		TEST(what_is_read_while_it_is_discarded_is_not_kept),
		TEST(where_no_room_can_be_taken_back_zeroes_are_written),
		TEST(five_thousand_files_take_a_descriptor_each_and_no_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
