/* SPDX-License-Identifier: MIT */
/*
 * As much of cmocka as the torture of RCU uses, for processors that there is no package of it
 * for. Prints TAP; a test that fails ends there.
 */
#ifndef CROSS_CMOCKA_H
#define CROSS_CMOCKA_H

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

struct CMUnitTest {
	const char *name;
	void (*run)(void **state);
};

enum cross_result { CROSS_OK, CROSS_FAILED, CROSS_SKIPPED };

static jmp_buf cross_end;

#define cmocka_unit_test(function) { #function, function }
#define print_message(...) printf(__VA_ARGS__)
#define skip() longjmp(cross_end, CROSS_SKIPPED)

/* Of the thread that runs the tests alone. */
#define assert_true(condition) \
	do { \
		if (!(condition)) { \
			printf("# %s:%d: %s\n", __FILE__, __LINE__, #condition); \
			longjmp(cross_end, CROSS_FAILED); \
		} \
	} while (0)
#define assert_int_equal(a, b) assert_true((a) == (b))
#define assert_non_null(pointer) assert_true(pointer)

#define cmocka_run_group_tests(tests, setup, teardown) \
	cross_run(tests, sizeof(tests) / sizeof((tests)[0]), setup)

static inline int cross_run(const struct CMUnitTest *tests, size_t n, int (*setup)(void **))
{
	volatile int failed = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (setup && setup(NULL))
		return 1;
	printf("1..%zu\n", n);
	for (volatile size_t i = 0; i < n; i++) {
		int result = setjmp(cross_end);

		if (result == CROSS_OK)
			tests[i].run(NULL);
		failed += result == CROSS_FAILED;
		printf("%sok %zu - %s%s\n", result == CROSS_FAILED ? "not " : "", i + 1,
		       tests[i].name, result == CROSS_SKIPPED ? " # SKIP" : "");
	}
	return failed;
}

#endif
