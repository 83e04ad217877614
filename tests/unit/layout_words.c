// SPDX-License-Identifier: MIT
/* What names are taken for: whole words count, not what lies inside others. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "layout/look.h"
#include "layout/words.h"

static void test_words_count(void **state)
{
	(void)state;
	assert_true(hl_read_name("lock").last & W_LOCK);
	assert_true(hl_read_name("queue_lock").last & W_LOCK);
	assert_true(hl_read_name("queueLock").last & W_LOCK);
	assert_true(hl_read_name("pthread_mutex_t").last & W_LOCK);
	assert_true(hl_read_name("spinlock_s").last & W_LOCK);
	assert_true(hl_read_name("LOCK").last & W_LOCK);
	assert_true(hl_read_name("std::atomic<int>").any & W_ATOMIC);
}

static void test_parts_of_words_do_not(void **state)
{
	static const char *const names[] = { "clock", "block", "flock", "blocks", "unlocked",
					     "lockless", "deadlocks", "" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_false(hl_read_name(names[i]).any & W_LOCK);
	/* Where the lock is not what it is. */
	assert_false(hl_read_name("lock_count").last & W_LOCK);
}

static void test_template_arguments_do_not(void **state)
{
	(void)state;
	assert_false(hl_read_name("vector<std::mutex>").any & W_LOCK);
}

static void test_no_name(void **state)
{
	(void)state;
	assert_int_equal(hl_read_name(NULL).words, 0);
	assert_int_equal(hl_look_per_thread(NULL), HL_PER_THREAD_NOT);
	assert_false(hl_look_counts_alone(NULL));
	assert_false(hl_look_counts_alone(""));
}

static void test_long_names(void **state)
{
	char name[4096];

	(void)state;
	for (size_t i = 0; i < sizeof(name) - 1; i++)
		name[i] = "lock_"[i % 5];
	name[sizeof(name) - 1] = '\0';
	assert_true(hl_read_name(name).any & W_LOCK);
	for (size_t i = 0; i < sizeof(name) - 1; i++)
		name[i] = 'a';
	assert_int_equal(hl_read_name(name).any, 0);
	assert_int_equal(hl_read_name(name).words, 1);
}

static void test_per_thread(void **state)
{
	(void)state;
	assert_int_equal(hl_look_per_thread("per_cpu_stats"), HL_PER_THREAD_SAID);
	assert_int_equal(hl_look_per_thread("workers"), HL_PER_THREAD_SAID);
	assert_int_equal(hl_look_per_thread("readers"), HL_PER_THREAD_SAID);
	assert_int_equal(hl_look_per_thread("consumers_args"), HL_PER_THREAD_NOT);
	assert_int_equal(hl_look_per_thread("slots"), HL_PER_THREAD_MAYBE);
	assert_int_equal(hl_look_per_thread("slots_range"), HL_PER_THREAD_NOT);
	assert_int_equal(hl_look_per_thread("cpu_to_node"), HL_PER_THREAD_NOT);
	assert_int_equal(hl_look_per_thread("cpufreq"), HL_PER_THREAD_NOT);
}

static void test_counts(void **state)
{
	(void)state;
	assert_true(hl_look_counts_alone("used"));
	assert_true(hl_look_counts_alone("total_hits"));
	assert_false(hl_look_counts_alone("used_pages"));
	assert_true(hl_look_counts_elements("nr_pages"));
	assert_true(hl_look_counts_elements("head"));
	assert_false(hl_look_counts_elements("bytes"));
	assert_false(hl_look_counts_elements("max_count"));
	assert_true(hl_look_moves_on("tail"));
	assert_false(hl_look_moves_on("tail_lock"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words_count),
		cmocka_unit_test(test_parts_of_words_do_not),
		cmocka_unit_test(test_template_arguments_do_not),
		cmocka_unit_test(test_no_name),
		cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_per_thread),
		cmocka_unit_test(test_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
