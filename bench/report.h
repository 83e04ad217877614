/* SPDX-License-Identifier: MIT */
/*
 * What was measured, as text for people, as JSON, and as a page.
 */
#ifndef HL_BENCH_REPORT_H
#define HL_BENCH_REPORT_H

#include "bench/harness.h"
#include "bench/stats.h"
#include "debuginfo/text.h"

struct bench_report {
	const char *version;
	const struct bench_machine *machine;
	const struct bench_options *options;
	const struct bench_overhead *overhead;
	const struct bench_experiment *experiment;
	unsigned n_experiments;
};

/* Each adds to the text; 0 or -ENOMEM. */
int bench_report_text(struct hl_text *text, const struct bench_report *report);
int bench_report_json(struct hl_text *text, const struct bench_report *report);
/* Where gnuplot cannot be run there are no plots, and the page says how to get it. */
int bench_report_html(struct hl_text *text, const struct bench_report *report);

/* ---- What these have in common (report.c). ---- */

const char *bench_kind_name(enum bench_kind kind);
/* Whether there are figures of all runs. */
bool bench_was_measured(const struct bench_row *row);
/* Our row of the scenario; NULL: it has no figures. */
const struct bench_row *bench_ours(const struct bench_scenario *scenario);
/* The ratio of ours to a row; false: there is none. */
bool bench_ratio_to(const struct bench_scenario *scenario, const struct bench_row *to,
		    struct bench_stats *ratio);
/* Of another row of ours to one that is not: the same. */
bool bench_other_ratio(const struct bench_scenario *scenario, const struct bench_row *of,
		       const struct bench_row *to, struct bench_stats *ratio);
/* Adds a figure for people: four digits that matter at most, thousands apart. */
void bench_add_figure(struct hl_text *text, double value);
/* Adds "1.10 (1.02 to 1.21)". */
void bench_add_ratio(struct hl_text *text, struct bench_stats ratio);

#endif
