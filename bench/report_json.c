// SPDX-License-Identifier: MIT
/*
 * The members that scripts rely on come first in each object; what was added to them later
 * stands behind.
 */
#include "bench/report.h"

#include "layout/json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define SCHEMA 1

/* Six digits, which is more than any figure here is worth. */
static void add_figure(struct hl_json *json, cJSON *to, const char *key, double value)
{
	char digits[32];

	snprintf(digits, sizeof(digits), "%.6g", value);
	hl_json_add(json, to, key, cJSON_CreateNumber(strtod(digits, NULL)));
}

static void add_stats(struct hl_json *json, cJSON *to, struct bench_stats stats)
{
	add_figure(json, to, "median", stats.median);
	add_figure(json, to, "min", stats.min);
	add_figure(json, to, "max", stats.max);
}

static void add_row(struct hl_json *json, cJSON *rows, const struct bench_row *row)
{
	cJSON *object = hl_json_add_object(json, rows, NULL);
	cJSON *values;

	hl_json_add_string(json, object, "name", row->name);
	hl_json_add_string(json, object, "kind", bench_kind_name(row->kind));
	add_stats(json, object, bench_stats(row->value, row->runs));
	hl_json_add_number(json, object, "runs", row->runs);
	hl_json_add_number(json, object, "loops", row->loops);
	values = hl_json_add_array(json, object, "values");
	for (unsigned i = 0; i < row->runs; i++)
		add_figure(json, values, NULL, row->value[i]);
}

static void add_rows(struct hl_json *json, cJSON *object, const struct bench_scenario *scenario)
{
	cJSON *rows = hl_json_add_array(json, object, "rows");

	for (unsigned i = 0; i < scenario->n_rows; i++) {
		if (bench_was_measured(&scenario->row[i]))
			add_row(json, rows, &scenario->row[i]);
	}
}

static void add_ratio(struct hl_json *json, cJSON *ratios, const char *of, const char *to,
		      struct bench_stats stats)
{
	cJSON *ratio = hl_json_add_object(json, ratios, NULL);

	hl_json_add_string(json, ratio, "of", of);
	hl_json_add_string(json, ratio, "to", to);
	add_stats(json, ratio, stats);
}

/* Those of the table first; then those of the other rows of ours. */
static void add_ratios(struct hl_json *json, cJSON *object, const struct bench_scenario *scenario)
{
	cJSON *ratios = hl_json_add_array(json, object, "ratios");
	const struct bench_row *row = scenario->row;
	struct bench_stats stats;

	for (unsigned i = 0; i < scenario->n_rows; i++) {
		if (bench_ratio_to(scenario, &row[i], &stats))
			add_ratio(json, ratios, bench_ours(scenario)->name, row[i].name, stats);
	}
	for (unsigned i = 0; i < scenario->n_rows; i++) {
		for (unsigned k = 0; k < scenario->n_rows; k++) {
			if (bench_other_ratio(scenario, &row[i], &row[k], &stats))
				add_ratio(json, ratios, row[i].name, row[k].name, stats);
		}
	}
}

static void add_unavailable(struct hl_json *json, cJSON *object,
			    const struct bench_scenario *scenario)
{
	cJSON *all = hl_json_add_array(json, object, "unavailable");

	for (unsigned i = 0; i < scenario->n_rows; i++) {
		const struct bench_row *row = &scenario->row[i];
		cJSON *one;

		if (bench_was_measured(row))
			continue;
		one = hl_json_add_object(json, all, NULL);
		hl_json_add_string(json, one, "name", row->name);
		hl_json_add_string(json, one, "why", row->why_not);
		hl_json_add_string(json, one, "kind", bench_kind_name(row->kind));
		hl_json_add_bool(json, one, "failed", row->failed);
	}
}

static void add_scenario(struct hl_json *json, cJSON *scenarios,
			 const struct bench_scenario *scenario)
{
	cJSON *object = hl_json_add_object(json, scenarios, NULL);

	hl_json_add_string(json, object, "name", scenario->name);
	hl_json_add_string(json, object, "metric", scenario->metric->name);
	hl_json_add_string(json, object, "better",
			   scenario->metric->higher_is_better ? "higher" : "lower");
	add_rows(json, object, scenario);
	add_ratios(json, object, scenario);
	add_unavailable(json, object, scenario);
	hl_json_add_string(json, object, "title", scenario->title);
	hl_json_add_number(json, object, "threads", scenario->threads);
}

static void add_experiments(struct hl_json *json, cJSON *document,
			    const struct bench_report *report)
{
	cJSON *experiments = hl_json_add_array(json, document, "experiments");

	for (unsigned i = 0; i < report->n_experiments; i++) {
		const struct bench_experiment *experiment = &report->experiment[i];
		cJSON *object = hl_json_add_object(json, experiments, NULL);
		cJSON *scenarios;

		hl_json_add_string(json, object, "name", experiment->name);
		hl_json_add_string(json, object, "origin", experiment->origin);
		scenarios = hl_json_add_array(json, object, "scenarios");
		for (unsigned k = 0; k < experiment->n_scenarios; k++)
			add_scenario(json, scenarios, &experiment->scenario[k]);
		hl_json_add_string(json, object, "title", experiment->title);
	}
}

static void add_machine(struct hl_json *json, cJSON *document, const struct bench_machine *machine)
{
	cJSON *object = hl_json_add_object(json, document, "machine");

	hl_json_add_number(json, object, "cpus", machine->cpus);
	hl_json_add_number(json, object, "line_bytes", machine->line_bytes);
	hl_json_add_string(json, object, "model", machine->model);
	hl_json_add_string(json, object, "kernel", machine->kernel);
}

static void add_harness(struct hl_json *json, cJSON *document, const struct bench_report *report)
{
	cJSON *object = hl_json_add_object(json, document, "harness");

	hl_json_add_string(json, object, "version", report->version);
	hl_json_add_number(json, object, "runs", report->options->runs);
	hl_json_add_number(json, object, "run_ns", report->options->run_ns);
	add_figure(json, object, "clock_ns", report->overhead->clock_ns);
	add_figure(json, object, "loop_ns", report->overhead->loop_ns);
}

int bench_report_json(struct hl_text *text, const struct bench_report *report)
{
	struct hl_json json = { .clean = HL_TEXT_INIT };
	cJSON *document = hl_json_object(&json);
	int rc;

	hl_json_add_number(&json, document, "schema", SCHEMA);
	add_machine(&json, document, report->machine);
	add_experiments(&json, document, report);
	add_harness(&json, document, report);
	rc = hl_json_print(&json, text, document);
	hl_text_putc(text, '\n');
	hl_json_free(&json);
	return rc || text->failed ? -ENOMEM : 0;
}
