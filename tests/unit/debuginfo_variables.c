// SPDX-License-Identifier: MIT
/*
 * Which variables of a program a ruler is shown: this program's own.
 */
#include "debuginfo/debuginfo.h"

#include "debuginfo_variables.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct slot visible[7];
static volatile struct slot hidden[4];
static volatile const struct slot qualified[2][3];
static _Thread_local volatile struct slot of_thread[8];
static volatile char text[300];
static volatile unsigned char bytes[4][4];
static volatile int plain;
static volatile int aligned __attribute__((aligned(64)));

static struct hl_types *types;

static int open_own(void **state)
{
	struct hl_error err;

	(void)state;
	return hl_types_open(&types, "/proc/self/exe", NULL, &err);
}

static int close_own(void **state)
{
	(void)state;
	hl_types_close(types);
	return 0;
}

static unsigned count(const char *name)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < types->n_variables; i++)
		n += !strcmp(types->variable[i].name, name);
	return n;
}

/* Uses all of them, so that the compiler keeps them. */
static long use(int i)
{
	volatile struct slot local[4] = { { i, 0, 0 } };
	static volatile struct slot kept[6];

	return local[i].n + visible[i].n + hidden[i].n + qualified[i][i].n + of_thread[i].n +
	       text[i] + bytes[i][i] + plain + aligned + kept[i].n + in_other_unit(i) +
	       header_table[i].n;
}

static void shows_arrays_of_the_whole_program(void **state)
{
	(void)state;
	assert_int_equal(count("visible"), 1);
	assert_int_equal(count("hidden"), 1);
	assert_int_equal(count("qualified"), 1);
	assert_int_equal(count("kept"), 1);
}

static void shows_what_was_aligned(void **state)
{
	(void)state;
	assert_int_equal(count("aligned"), 1);
	for (uint32_t i = 0; i < types->n_variables; i++)
		if (!strcmp(types->variable[i].name, "aligned"))
			assert_int_equal(types->variable[i].align_log2, 7);
}

static void shows_a_header_s_static_once(void **state)
{
	(void)state;
	assert_int_equal(count("header_table"), 1);
}

static void leaves_out_strings_stacks_and_threads(void **state)
{
	(void)state;
	assert_int_equal(count("text"), 0);
	assert_int_equal(count("bytes"), 0);
	assert_int_equal(count("local"), 0);
	assert_int_equal(count("of_thread"), 0);
	assert_int_equal(count("plain"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shows_arrays_of_the_whole_program),
		cmocka_unit_test(shows_what_was_aligned),
		cmocka_unit_test(shows_a_header_s_static_once),
		cmocka_unit_test(leaves_out_strings_stacks_and_threads),
	};

	if (use(0))
		return 1;
	return cmocka_run_group_tests(tests, open_own, close_own);
}
