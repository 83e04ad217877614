// SPDX-License-Identifier: MIT
/*
 * Files that are small and would make libelf or libdw take gigabytes: refused, or read
 * without what would. The files are in tests/fuzz/corpus/file/.
 */
#include "debuginfo/debuginfo.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

static int open_file(const char *name, struct hl_types **types, struct hl_error *err)
{
	const char *source = getenv("HOTLINE_SOURCE");
	char path[4096];

	assert_non_null(source);
	snprintf(path, sizeof(path), "%s/tests/fuzz/corpus/file/%s", source, name);
	return hl_types_open(types, path, NULL, err);
}

static void refuses(const char *name, const char *why)
{
	struct hl_types *types = NULL;
	struct hl_error err;

	assert_int_equal(open_file(name, &types, &err), -E2BIG);
	assert_non_null(strstr(err.text, why));
}

static void compressed_sections(void **state)
{
	(void)state;
	refuses("compressed-bomb", "compressed sections");
	refuses("zdebug-bomb", "compressed sections");
}

static void shared_abbreviations(void **state)
{
	(void)state;
	refuses("units-share-abbreviations", "abbreviations");
}

/* Each unit has a table of lines that runs on through those of all others. */
static void overlapping_lines(void **state)
{
	struct hl_types *types = NULL;
	struct hl_error err;

	(void)state;
	assert_int_equal(open_file("lines-overlap", &types, &err), 0);
	assert_int_equal(types->n_defined, 400);
	assert_true(types->n_skipped > 0);
	assert_non_null(strstr(types->skipped, "overlaps"));
	hl_types_close(types);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compressed_sections),
		cmocka_unit_test(shared_abbreviations),
		cmocka_unit_test(overlapping_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
