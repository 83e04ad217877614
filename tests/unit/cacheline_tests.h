/* SPDX-License-Identifier: MIT */
/*
 * The tests of hotline/cacheline.h that are the same in C and in C++. Each of the
 * two programs includes this file and lists CACHELINE_TESTS in its main().
 */
#ifndef CACHELINE_TESTS_H
#define CACHELINE_TESTS_H

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hotline/cacheline.h>

HL_BEGIN_DECLS
#include <cmocka.h>
HL_END_DECLS

static int is_aligned(const volatile void *p, size_t alignment)
{
	return (uintptr_t)p % alignment == 0;
}

/* The number of the line that an address is on. */
static uintptr_t line_of(const volatile void *p)
{
	return (uintptr_t)p / HL_CACHE_LINE;
}

/* Sizes at run time */

static void line_size_is_a_power_of_two(void **state)
{
	size_t size = hl_cache_line_size();

	(void)state;
	assert_true(size >= 16);
	assert_int_equal(size & (size - 1), 0);
}

static void line_size_is_what_the_c_library_says(void **state)
{
	long reported = sysconf(_SC_LEVEL1_DCACHE_LINESIZE);

	(void)state;
	if (reported <= 0)
		skip();
	assert_int_equal(hl_cache_line_size(), reported);
}

static void line_size_leaves_errno_alone(void **state)
{
	(void)state;
	errno = EXDEV;
	hl_cache_line_size();
	assert_int_equal(errno, EXDEV);
}

static void *report_line_size(void *result)
{
	*(size_t *)result = hl_cache_line_size();
	return NULL;
}

static void line_size_is_the_same_in_every_thread(void **state)
{
	pthread_t threads[8];
	size_t sizes[8];

	(void)state;
	for (int i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, report_line_size, &sizes[i]), 0);
	for (int i = 0; i < 8; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	for (int i = 0; i < 8; i++)
		assert_int_equal(sizes[i], hl_cache_line_size());
}

static void line_size_is_the_same_in_a_child(void **state)
{
	size_t size = hl_cache_line_size();
	int status;
	pid_t child = fork();

	(void)state;
	if (child == 0)
		_exit(hl_cache_line_size() == size ? 0 : 1);
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void pair_is_two_lines_on_x86_64_and_one_elsewhere(void **state)
{
	(void)state;
#if defined(__x86_64__)
	assert_int_equal(HL_CACHE_LINE_PAIR, 2 * HL_CACHE_LINE);
	assert_int_equal(hl_cache_line_pair_size(), 2 * hl_cache_line_size());
#else
	assert_int_equal(HL_CACHE_LINE_PAIR, HL_CACHE_LINE);
	assert_int_equal(hl_cache_line_pair_size(), hl_cache_line_size());
#endif
}

/* Alignment */

struct aligned_counter {
	unsigned long events;
} HL_CACHELINE_ALIGNED;
HL_CACHELINE_ASSERT_FITS(struct aligned_counter);

struct pair_aligned_counter {
	unsigned long events;
} HL_CACHELINE_PAIR_ALIGNED;

static char aligned_variable HL_CACHELINE_ALIGNED;
static char pair_aligned_variable HL_CACHELINE_PAIR_ALIGNED;

static void variables_start_a_line(void **state)
{
	char local HL_CACHELINE_ALIGNED = 1;
	char pair_local HL_CACHELINE_PAIR_ALIGNED = 1;

	(void)state;
	aligned_variable = pair_aligned_variable = 1;
	assert_true(is_aligned(&aligned_variable, HL_CACHE_LINE));
	assert_true(is_aligned(&pair_aligned_variable, HL_CACHE_LINE_PAIR));
	assert_true(is_aligned(&local, HL_CACHE_LINE));
	assert_true(is_aligned(&pair_local, HL_CACHE_LINE_PAIR));
}

static void elements_of_an_array_share_no_line(void **state)
{
	static struct aligned_counter counters[3];
	static struct pair_aligned_counter pairs[3];

	(void)state;
	assert_int_equal(sizeof(struct aligned_counter), HL_CACHE_LINE);
	assert_int_equal(sizeof(struct pair_aligned_counter), HL_CACHE_LINE_PAIR);
	for (int i = 0; i < 3; i++) {
		counters[i].events = pairs[i].events = 1;
		assert_true(is_aligned(&counters[i], HL_CACHE_LINE));
		assert_true(is_aligned(&pairs[i], HL_CACHE_LINE_PAIR));
	}
}

/* Alignment to the own size */

struct message {
	struct message *next;
	void (*func)(void *info);
	void *info;
	unsigned long flags;
};
HL_TYPEDEF_SIZE_ALIGNED(struct message, message_aligned);
HL_CACHELINE_ASSERT_FITS(message_aligned);

/* An odd place for a message: in front of it one pointer, behind it another. */
struct mailbox {
	void *owner;
	message_aligned message;
	void *reader;
};
HL_CACHELINE_ASSERT_MEMBER_FITS(struct mailbox, message);

static void size_aligned_type_has_the_alignment_of_its_size(void **state)
{
	(void)state;
	assert_int_equal(sizeof(message_aligned), sizeof(struct message));
	assert_int_equal(HL_PRIV_ALIGNOF(message_aligned), sizeof(struct message));
	assert_int_equal(HL_PRIV_ALIGNOF(struct message), HL_PRIV_ALIGNOF(void *));
}

static void size_aligned_member_is_on_one_line_everywhere(void **state)
{
	static struct mailbox boxes[5];

	(void)state;
	for (int i = 0; i < 5; i++) {
		const char *start = (const char *)&boxes[i].message;

		assert_int_equal(line_of(start), line_of(start + sizeof(struct message) - 1));
	}
}

static void size_aligned_type_passes_as_the_type(void **state)
{
	message_aligned message = {};
	struct message *plain = &message;

	(void)state;
	plain->flags = 5;
	assert_int_equal(message.flags, 5);
	assert_ptr_equal(plain, &message);
}

/* Groups and guards */

struct queue {
	HL_CACHELINE_GROUP_BEGIN(producer) HL_CACHELINE_ALIGNED;
	uint64_t tail;
	uint64_t dropped;
	HL_CACHELINE_GROUP_END(producer);

	HL_CACHELINE_GROUP_BEGIN(consumer) HL_CACHELINE_PAIR_ALIGNED;
	uint64_t head;
	HL_CACHELINE_GROUP_END(consumer);

	HL_CACHELINE_GUARD(guard);

	HL_CACHELINE_GROUP_BEGIN(readers);
	uint32_t size;
	uint32_t mask[4];
	HL_CACHELINE_GROUP_END(readers);
};
HL_CACHELINE_ASSERT_ALIGNED(struct queue, producer);
HL_CACHELINE_ASSERT_SIZE(struct queue, producer, 16);
HL_CACHELINE_ASSERT_MEMBER(struct queue, producer, tail);
HL_CACHELINE_ASSERT_MEMBER(struct queue, producer, dropped);
HL_CACHELINE_ASSERT_ALIGNED(struct queue, consumer);
HL_CACHELINE_ASSERT_SIZE(struct queue, consumer, 8);
HL_CACHELINE_ASSERT_MEMBER(struct queue, consumer, head);
HL_CACHELINE_ASSERT_ALIGNED(struct queue, readers);
HL_CACHELINE_ASSERT_SIZE(struct queue, readers, 20);
HL_CACHELINE_ASSERT_MEMBER(struct queue, readers, size);
HL_CACHELINE_ASSERT_MEMBER(struct queue, readers, mask);
HL_CACHELINE_ASSERT_APART(struct queue, tail, head);
HL_CACHELINE_ASSERT_APART(struct queue, mask, dropped);
HL_CACHELINE_ASSERT_MEMBER_FITS(struct queue, mask);

static void groups_start_where_they_say(void **state)
{
	(void)state;
	assert_int_equal(offsetof(struct queue, tail), 0);
	assert_int_equal(offsetof(struct queue, dropped), 8);
	assert_int_equal(offsetof(struct queue, head), HL_CACHE_LINE_PAIR);
	assert_int_equal(HL_PRIV_ALIGNOF(struct queue), HL_CACHE_LINE_PAIR);
}

struct unmarked {
	char first;
	short second;
	char third;
};

struct marked {
	char first;
	HL_CACHELINE_GROUP_BEGIN(shorts);
	short second;
	HL_CACHELINE_GROUP_END(shorts);
	char third;
};

static void markers_change_no_layout(void **state)
{
	(void)state;
	assert_int_equal(sizeof(struct marked), sizeof(struct unmarked));
	assert_int_equal(offsetof(struct marked, second), offsetof(struct unmarked, second));
	assert_int_equal(offsetof(struct marked, third), offsetof(struct unmarked, third));
	assert_int_equal(HL_PRIV_ALIGNOF(struct marked), HL_PRIV_ALIGNOF(struct unmarked));
}

static void guard_leaves_a_whole_line_between(void **state)
{
	static struct queue queue;

	(void)state;
	queue.head = queue.size = 1;
	assert_int_equal(line_of(&queue.size) - line_of(&queue.head), 2);
	assert_true(is_aligned(&queue.size, HL_CACHE_LINE));
}

static void grouped_struct_takes_an_empty_initialiser(void **state)
{
	struct queue queue = {};

	(void)state;
	assert_int_equal(queue.tail + queue.dropped + queue.head + queue.size, 0);
}

/* A struct that is aligned to a word: only distance keeps its fields apart. */
struct word_aligned {
	int first;
	char gap[HL_CACHE_LINE];
	int second;
};
HL_CACHELINE_ASSERT_APART(struct word_aligned, first, second);
HL_CACHELINE_ASSERT_MEMBER_FITS(struct word_aligned, second);

static void apart_holds_at_every_address(void **state)
{
	static char memory[3 * HL_CACHE_LINE] HL_CACHELINE_ALIGNED;

	(void)state;
	for (size_t i = 0; i + sizeof(struct word_aligned) <= sizeof(memory); i += sizeof(int)) {
		const char *base = &memory[i];

		assert_int_not_equal(line_of(base + offsetof(struct word_aligned, first)),
				     line_of(base + offsetof(struct word_aligned, second)));
	}
}

/* Prefetch */

static void prefetch_changes_nothing(void **state)
{
	static unsigned char bytes[4 * HL_CACHE_LINE];

	(void)state;
	memset(bytes, 0x5a, sizeof(bytes));
	for (size_t i = 0; i < sizeof(bytes); i++) {
		hl_prefetch(&bytes[i]);
		hl_prefetchw(&bytes[i]);
	}
	for (size_t i = 0; i < sizeof(bytes); i++)
		assert_int_equal(bytes[i], 0x5a);
}

static void prefetch_of_a_bad_address_does_not_fault(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *no_access = (char *)mmap(NULL, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_true(no_access != MAP_FAILED);
	hl_prefetch(NULL);
	hl_prefetchw(NULL);
	hl_prefetch(no_access);
	hl_prefetchw(no_access);
	assert_int_equal(munmap(no_access, page), 0);
	hl_prefetch(no_access);
	hl_prefetchw(no_access);
}

#define CACHELINE_TESTS \
	cmocka_unit_test(line_size_is_a_power_of_two), \
		cmocka_unit_test(line_size_is_what_the_c_library_says), \
		cmocka_unit_test(line_size_leaves_errno_alone), \
		cmocka_unit_test(line_size_is_the_same_in_every_thread), \
		cmocka_unit_test(line_size_is_the_same_in_a_child), \
		cmocka_unit_test(pair_is_two_lines_on_x86_64_and_one_elsewhere), \
		cmocka_unit_test(variables_start_a_line), \
		cmocka_unit_test(elements_of_an_array_share_no_line), \
		cmocka_unit_test(size_aligned_type_has_the_alignment_of_its_size), \
		cmocka_unit_test(size_aligned_member_is_on_one_line_everywhere), \
		cmocka_unit_test(size_aligned_type_passes_as_the_type), \
		cmocka_unit_test(groups_start_where_they_say), \
		cmocka_unit_test(markers_change_no_layout), \
		cmocka_unit_test(guard_leaves_a_whole_line_between), \
		cmocka_unit_test(grouped_struct_takes_an_empty_initialiser), \
		cmocka_unit_test(apart_holds_at_every_address), \
		cmocka_unit_test(prefetch_changes_nothing), \
		cmocka_unit_test(prefetch_of_a_bad_address_does_not_fault)

#endif
