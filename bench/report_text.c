// SPDX-License-Identifier: MIT
#include "bench/report.h"

#include <errno.h>
#include <string.h>

#define NAME_WIDTH 17
#define KIND_WIDTH 10
#define FIGURE_WIDTH 12

/* A figure, right-aligned. */
static void add_column(struct hl_text *text, double value)
{
	struct hl_text figure = HL_TEXT_INIT;

	bench_add_figure(&figure, value);
	hl_text_printf(text, " %*s", FIGURE_WIDTH, figure.failed ? "" : figure.at);
	text->failed |= figure.failed;
	hl_text_free(&figure);
}

static void add_row(struct hl_text *text, const struct bench_scenario *scenario,
		    const struct bench_row *row)
{
	struct bench_stats stats = bench_stats(row->value, row->runs), ratio;

	hl_text_printf(text, "    %-*s %-*s", NAME_WIDTH, row->name, KIND_WIDTH,
		       bench_kind_name(row->kind));
	add_column(text, stats.median);
	add_column(text, stats.min);
	add_column(text, stats.max);
	if (bench_ratio_to(scenario, row, &ratio)) {
		hl_text_puts(text, "   ");
		bench_add_ratio(text, ratio);
	}
	hl_text_putc(text, '\n');
}

static void add_scenario(struct hl_text *text, const struct bench_scenario *scenario)
{
	hl_text_printf(text, "\n  %s: %s\n    %s, %s is better\n", scenario->name, scenario->title,
		       scenario->metric->unit,
		       scenario->metric->higher_is_better ? "higher" : "lower");
	hl_text_printf(text, "    %-*s %-*s %*s %*s %*s   hotline / this\n", NAME_WIDTH, "",
		       KIND_WIDTH, "", FIGURE_WIDTH, "median", FIGURE_WIDTH, "min", FIGURE_WIDTH,
		       "max");
	for (unsigned i = 0; i < scenario->n_rows; i++) {
		if (bench_was_measured(&scenario->row[i]))
			add_row(text, scenario, &scenario->row[i]);
	}
	for (unsigned i = 0; i < scenario->n_rows; i++) {
		const struct bench_row *row = &scenario->row[i];

		if (!bench_was_measured(row))
			hl_text_printf(text, "    %-*s %s%s\n", NAME_WIDTH, row->name,
				       row->failed ? "FAILED: " : "", row->why_not);
	}
}

int bench_report_text(struct hl_text *text, const struct bench_report *report)
{
	const struct bench_machine *machine = report->machine;

	hl_text_printf(text, "%s, %u processor%s, lines of %u bytes, kernel %s\n", machine->model,
		       machine->cpus, machine->cpus == 1 ? "" : "s", machine->line_bytes,
		       machine->kernel);
	hl_text_printf(text, "%u run%s of %g ms a row, in turn; ratios run by run\n",
		       report->options->runs, report->options->runs == 1 ? "" : "s",
		       (double)report->options->run_ns / 1e6);
	hl_text_printf(text, "the harness itself: %.1f ns to read the clock, %.1f ns a call\n",
		       report->overhead->clock_ns, report->overhead->loop_ns);
	for (unsigned i = 0; i < report->n_experiments; i++) {
		const struct bench_experiment *experiment = &report->experiment[i];

		hl_text_printf(text, "\n%s (%s): %s\n", experiment->name, experiment->origin,
			       experiment->title);
		for (unsigned k = 0; k < experiment->n_scenarios; k++)
			add_scenario(text, &experiment->scenario[k]);
	}
	return text->failed ? -ENOMEM : 0;
}
