/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <hotline/cacheline.h>

static void test_line_size_is_a_power_of_two(void **state)
{
	size_t size = hl_cache_line_size();

	(void)state;
	assert_true(size >= 16);
	assert_int_equal(size & (size - 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_line_size_is_a_power_of_two),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
