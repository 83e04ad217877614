// SPDX-License-Identifier: MIT
/*
 * The harness of the benchmarks: figures, and runs that do not end well.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/harness.h"
#include "bench/peer.h"
#include "bench/report.h"
#include "bench/stats.h"

#define MS 1000000

/* ---- Figures ---- */

static void median_and_range(void **state)
{
	const double odd[] = { 3, 1, 2 }, even[] = { 4, 1, 3, 2 };
	struct bench_stats stats = bench_stats(odd, 3);

	(void)state;
	assert_true(stats.median == 2 && stats.min == 1 && stats.max == 3);
	stats = bench_stats(even, 4);
	assert_true(stats.median == 2.5 && stats.min == 1 && stats.max == 4);
	/* The order of the runs is kept: ratios are taken run by run. */
	assert_true(odd[0] == 3 && even[0] == 4);
	stats = bench_stats(odd, 1);
	assert_true(stats.median == 3 && stats.min == 3 && stats.max == 3);
}

static void ratios_run_by_run(void **state)
{
	/* The machine was ten times slower in the second turn: no ratio is. */
	const double of[] = { 1, 10, 1 }, to[] = { 2, 20, 2 };
	struct bench_stats stats = bench_ratio(of, to, 3);

	(void)state;
	assert_true(stats.median == 0.5 && stats.min == 0.5 && stats.max == 0.5);
}

static void figures_for_people(void **state)
{
	static const struct {
		double value;
		const char *text;
	} cases[] = {
		{ 0.5, "0.50" },    { 12.345, "12.3" },	  { 123.4, "123" },
		{ 1234, "1 234" },  { 12345, "12 350" },  { 47300123, "47 300 000" },
		{ 99.99, "100.0" }, { 9999.9, "10 000" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct hl_text text = HL_TEXT_INIT;

		bench_add_figure(&text, cases[i].value);
		assert_string_equal(text.at, cases[i].text);
		hl_text_free(&text);
	}
}

/* ---- Runs ---- */

static int fine(struct bench_run *run, const struct bench_row *row)
{
	(void)row;
	run->ns = run->loops * 100;
	run->done = run->loops;
	return 0;
}

static int hang(struct bench_run *run, const struct bench_row *row)
{
	(void)run;
	(void)row;
	/* Until it is killed. */
	return pause();
}

static int crash(struct bench_run *run, const struct bench_row *row)
{
	(void)run;
	(void)row;
	abort();
}

static int leave(struct bench_run *run, const struct bench_row *row)
{
	(void)run;
	(void)row;
	_exit(7);
}

static int refuse(struct bench_run *run, const struct bench_row *row)
{
	(void)run;
	(void)row;
	return -ENOMEM;
}

static void expect_failure(bench_fn run, unsigned limit_ms, const char *why)
{
	struct bench_row row = { .name = "row", .run = run };
	struct bench_run one = { .loops = 1 };
	char *said;

	assert_int_equal(bench_run_row(&one, &row, limit_ms, &said), -1);
	assert_non_null(said);
	assert_non_null(strstr(said, why));
	free(said);
}

static void runs_that_fail(void **state)
{
	(void)state;
	expect_failure(hang, 50, "did not end within 0.05 s");
	expect_failure(crash, 10000, "was ended by signal 6");
	expect_failure(leave, 10000, "ended without a result, exit status 7");
	expect_failure(refuse, 10000, strerror(ENOMEM));
}

/* One that hangs takes nothing from the others. */
static void one_of_several_hangs(void **state)
{
	static const bench_fn runs[] = { fine, hang, fine };
	static const char *const names[] = { "hotline", "hangs", "peer" };
	struct bench_experiment experiment = { .name = "test", .origin = "O0", .title = "test" };
	struct bench_scenario *scenario =
		bench_add_scenario(&experiment, "s", "s", &bench_ns_per_call, 1);
	int processor = 0;
	struct bench_machine machine = { .cpus = 1, .processor = &processor };
	struct bench_options options = { .runs = 3, .run_ns = MS, .limit_ms = 50 };
	struct bench_stats ratio;

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		bench_add_row(&experiment, scenario,
			      &(struct bench_row){ .name = names[i],
						   .kind = i ? BENCH_PEER : BENCH_OURS,
						   .run = runs[i] });
	assert_false(experiment.no_memory);
	assert_int_equal(bench_measure(&experiment, &machine, &options), 0);
	for (unsigned i = 0; i < 3; i += 2) {
		assert_true(bench_was_measured(&scenario->row[i]));
		assert_int_equal(scenario->row[i].runs, 3);
		assert_true(fabs(scenario->row[i].value[2] - 100) < 1e-9);
	}
	assert_false(bench_was_measured(&scenario->row[1]));
	assert_true(scenario->row[1].failed);
	assert_string_equal(scenario->row[1].why_not, "did not end within 0.05 s");
	assert_false(bench_ratio_to(scenario, &scenario->row[1], &ratio));
	assert_true(bench_ratio_to(scenario, &scenario->row[2], &ratio));
	assert_true(fabs(ratio.median - 1) < 1e-9);
	bench_free(&experiment);
}

static void too_few_processors(void **state)
{
	struct bench_experiment experiment = { .name = "test", .origin = "O0", .title = "test" };
	struct bench_scenario *scenario =
		bench_add_scenario(&experiment, "s", "s", &bench_ns_per_call, 3);
	int processor[2] = { 0, 1 };
	struct bench_machine machine = { .cpus = 2, .processor = processor };
	struct bench_options options = { .runs = 1, .run_ns = MS, .limit_ms = 1000 };

	(void)state;
	bench_add_row(&experiment, scenario,
		      &(struct bench_row){ .name = "hotline", .kind = BENCH_OURS, .run = hang });
	assert_int_equal(bench_measure(&experiment, &machine, &options), 0);
	assert_false(scenario->row[0].failed);
	assert_string_equal(scenario->row[0].why_not, "takes 3 processors, there are 2");
	bench_free(&experiment);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(median_and_range),	cmocka_unit_test(ratios_run_by_run),
		cmocka_unit_test(figures_for_people),	cmocka_unit_test(runs_that_fail),
		cmocka_unit_test(one_of_several_hangs), cmocka_unit_test(too_few_processors),
	};

	return cmocka_run_group_tests_name("bench", tests, NULL, NULL);
}
