/* SPDX-License-Identifier: MIT */
/* hotline/cacheline.h in C, and where the size of a line is learnt. */
#include "cacheline_tests.h"

#include <stdio.h>
#include <stdlib.h>

#include "cacheline/line_size.h"

/* In C the name is the struct itself: pointers go both ways. */
static void size_aligned_pointers_mix(void **state)
{
	struct message message = { .flags = 7 };
	message_aligned *aligned = NULL;
	struct message **plain = &aligned;

	(void)state;
	*plain = &message;
	assert_int_equal(aligned->flags, 7);
}

static void grouped_struct_takes_named_initialisers(void **state)
{
	struct queue queue = { .head = 3, .size = 4 };

	(void)state;
	assert_int_equal(queue.head, 3);
	assert_int_equal(queue.size, 4);
	assert_int_equal(queue.tail, 0);
}

static void sources_that_know_the_size_agree(void **state)
{
	const size_t sizes[] = {
		hl_line_size_from_libc(),
		hl_line_size_from_auxv(),
		hl_line_size_from_cpu(),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		if (sizes[i])
			assert_int_equal(sizes[i], hl_cache_line_size());
#if defined(__x86_64__) || defined(__aarch64__)
	assert_int_not_equal(hl_line_size_from_cpu(), 0);
#endif
}

/* What is learnt from a file with this text. */
static size_t size_from(const char *text)
{
	char path[] = "/tmp/hotline-line-size-XXXXXX";
	size_t length = strlen(text);
	int fd = mkstemp(path);
	size_t size;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, length), length);
	size = hl_line_size_from_file(path);
	assert_int_equal(close(fd), 0);
	assert_int_equal(unlink(path), 0);
	return size;
}

static void file_with_a_size_is_believed(void **state)
{
	(void)state;
	assert_int_equal(size_from("16\n"), 16);
	assert_int_equal(size_from("64\n"), 64);
	assert_int_equal(size_from("128\n"), 128);
	assert_int_equal(size_from("4096\n"), 4096);
}

static void file_without_a_size_is_not_believed(void **state)
{
	static const char *const texts[] = {
		"",	 "\n",	    "0\n",	 "8\n",
		"48\n",	 "-64\n",   " 64\n",	 "64",
		"64k\n", "8192\n",  "0x40\n",	 "64\n64\n",
		"nan\n", "+128 \n", "6\00064\n", "00000000000000000000000000000064\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(size_from(texts[i]), 0);
	/* 2^64 + 64, which wraps around to 64 */
	assert_int_equal(size_from("18446744073709551680\n"), 0);
	assert_int_equal(hl_line_size_from_file("/nonexistent/line_size"), 0);
	assert_int_equal(hl_line_size_from_file("/"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CACHELINE_TESTS,
		cmocka_unit_test(size_aligned_pointers_mix),
		cmocka_unit_test(grouped_struct_takes_named_initialisers),
		cmocka_unit_test(sources_that_know_the_size_agree),
		cmocka_unit_test(file_with_a_size_is_believed),
		cmocka_unit_test(file_without_a_size_is_not_believed),
	};

	return cmocka_run_group_tests_name("cacheline", tests, NULL, NULL);
}
