// SPDX-License-Identifier: MIT
#include "layout.h"

#include "command.h"
#include "complain.h"
#include "layout/clean.h"
#include "layout/picture.h"
#include "layout/report.h"

#include <errno.h>
#include <stdlib.h>

/* Columns that sentences may take where output is to no terminal, and at most. */
#define WIDTH		100
/* How many faults are shown where output is to no terminal. */
#define TOP		20
/* Lines of a screen of that width that a fault takes, and that the rest takes with
 * one proposal. */
#define FAULT_LINES	5
#define OTHER_LINES	24

/* How many faults fit one screen, about. */
static uint32_t screenful(unsigned columns, unsigned rows)
{
	unsigned each = columns && columns < WIDTH ? FAULT_LINES * WIDTH / columns : FAULT_LINES;

	if (!rows)
		return TOP;
	return rows > OTHER_LINES + 3 * each ? (rows - OTHER_LINES) / each : 3;
}

void layout_fill_report(struct hl_report *report, const struct layout_options *options,
			const struct layout_input *input, const char *path,
			struct output *output)
{
	unsigned columns, rows;

	output_terminal(&columns, &rows);
	*report = (struct hl_report){
		.survey = &input->survey,
		.ranking = &input->ranking,
		.path = path,
		.version = HL_VERSION,
		.whole = options->all || input->survey.subject,
		.colour = output_has_colour(options->colour),
		.width = columns > 40 && columns < WIDTH ? columns : WIDTH,
		.top = options->top >= 0 ? options->top : screenful(columns, rows),
		.proposals = options->proposals >= 0 ? options->proposals : 1,
		.write = output_write,
		.write_arg = output,
	};
}

/* C for the types asked for, or for all. */
static int write_compilable(const struct hl_report *report)
{
	const struct hl_survey *survey = report->survey;
	hl_type_id *ids = malloc(((size_t)survey->n + 1) * sizeof(*ids));
	struct hl_text text = HL_TEXT_INIT;
	struct hl_error err = { "" };
	uint32_t n = 0;
	int status = ids ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < survey->n && !status; i++) {
		struct hl_subject subject = hl_survey_subject(survey, i);

		if (!subject.variable)
			ids[n++] = subject.type;
	}
	if (!status)
		status = hl_compilable(&text, survey->types, ids, n, &err);
	if (!status && text.failed)
		status = -ENOMEM;
	if (!status && text.len) {
		hl_clean_from(&text, 0);
		status = report->write(report->write_arg, text.at, text.len);
	}
	if (status == -ENOTSUP && *err.text)
		complain("%s: %s", report->path, err.text);
	hl_text_free(&text);
	free(ids);
	return status;
}

static int write_report(const struct layout_options *options, struct hl_report *report)
{
	bool pictures = options->all || report->survey->subject;

	if (options->mode == LAYOUT_COMPILE)
		return write_compilable(report);
	if (options->mode == LAYOUT_SIZES) {
		report->top = options->top > 0 ? options->top : 0;
		return hl_report_sizes(report);
	}
	if (options->format == LAYOUT_JSON)
		return hl_report_json(report);
	if (options->format == LAYOUT_SARIF)
		return hl_report_sarif(report);
	if (!pictures)
		return hl_report_faults(report);
	/* Types asked for come with all proposals, a whole file only if it is said. */
	if (options->proposals < 0)
		report->proposals = report->survey->subject != NULL;
	return hl_report_pictures(report);
}

int layout_report(const struct layout_options *options)
{
	const char *path = options->name[0];
	struct layout_input input;
	struct hl_report report;
	struct output output;
	int status = layout_input_open(&input, options, path, options->name + 1,
				       options->n_names - 1, LAYOUT_MUST_EXIST);
	bool missing = input.missing;

	if (status) {
		layout_input_close(&input);
		return STATUS_FAILED;
	}
	output_open(&output, options->pager);
	layout_fill_report(&report, options, &input, path, &output);
	status = write_report(options, &report);
	layout_input_close(&input);
	/* What went wrong with the output, it says itself. */
	if (status && status != output.error && status != -ENOTSUP)
		complain_of(status, path);
	else if (status == output.error)
		status = 0;
	if (output_close(&output))
		status = -1;
	return status || missing ? STATUS_FAILED : STATUS_FINE;
}
