// SPDX-License-Identifier: MIT
#include "layout/out.h"

#include "layout/chunks.h"
#include "layout/clean.h"
#include "layout/picture.h"
#include "layout/shape.h"
#include "layout/subject.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK	64	/* pictures made at a time */

/* The order in which pictures come. */
struct order {
	uint32_t *index;	/* for hl_survey_subject() */
	uint32_t n;
	uint32_t n_faulty;	/* only as many can have faults: the rest need not be asked again */
};

/* Those with faults, the worst first; then all types that have none. */
static void put_worst_first(struct order *order, const struct hl_report *report, bool *taken)
{
	const struct hl_survey *survey = report->survey;

	for (uint32_t i = 0; i < report->ranking->n; i++) {
		uint32_t index = report->ranking->fault[i].index;

		if (!taken[index])
			order->index[order->n++] = index;
		taken[index] = true;
	}
	order->n_faulty = order->n;
	for (uint32_t i = 0; i < survey->n; i++) {
		if (!taken[i] && !hl_survey_subject(survey, i).variable)
			order->index[order->n++] = i;
	}
}

/* What was asked for comes in the user's own order. */
static int find_order(struct order *order, const struct hl_report *report)
{
	uint32_t n = report->survey->n;
	bool *taken = calloc((size_t)n + 1, sizeof(*taken));

	*order = (struct order){ .index = malloc(((size_t)n + 1) * sizeof(*order->index)) };
	if (!taken || !order->index) {
		free(taken);
		free(order->index);
		return -ENOMEM;
	}
	if (report->survey->subject) {
		while (order->n < n) {
			order->index[order->n] = order->n;
			order->n++;
		}
		order->n_faulty = n;
	} else {
		put_worst_first(order, report, taken);
	}
	free(taken);
	return 0;
}

struct picture_run {
	const struct hl_report *report;
	struct order order;
};

/* What each thread has of its own. */
struct picture_scratch {
	struct hl_out out;
	struct hl_shape shape;
	struct hl_text notes;
};

static void add_declared(struct hl_out *out, struct hl_subject subject)
{
	size_t from = out->text.len;

	hl_out_begin(out, HL_DIM);
	hl_text_puts(&out->text, "/* ");

	size_t empty = out->text.len;

	hl_subject_declared(&out->text, out->report->survey->types, subject);
	if (out->text.len == empty && !out->text.failed) {
		out->text.len = from;
		return;
	}
	hl_text_puts(&out->text, " */");
	hl_out_end(out);
	hl_text_putc(&out->text, '\n');
}

/* A C++ type goes under its plain name in its picture: says its namespaces. */
static void add_scope(struct hl_out *out, struct hl_subject subject)
{
	const struct hl_types *types = out->report->survey->types;

	if (subject.variable || !types->type[subject.type].scope)
		return;
	hl_out_begin(out, HL_DIM);
	hl_text_puts(&out->text, "/* in ");
	hl_clean_add(&out->text, types->file[types->type[subject.type].scope]);
	hl_text_puts(&out->text, " */");
	hl_out_end(out);
	hl_text_putc(&out->text, '\n');
}

static void add_notes(struct picture_scratch *scratch, struct hl_subject subject)
{
	struct hl_out *out = &scratch->out;
	const struct hl_survey *survey = out->report->survey;
	const char *at;

	hl_text_reset(&scratch->notes);
	hl_text_puts(&scratch->notes, "");
	hl_notes_of_type(&scratch->notes, survey->types, subject.type, &survey->ruler);
	hl_clean_from(&scratch->notes, 0);
	if (scratch->notes.failed) {
		out->text.failed = true;
		return;
	}
	at = scratch->notes.at;
	while (*at) {
		size_t n = strcspn(at, "\n");

		hl_out_paint(out, HL_GREEN, "   note ");
		hl_text_add(&out->text, at, n);
		hl_text_putc(&out->text, '\n');
		at += n + (at[n] == '\n');
	}
}

static int add_picture(struct picture_scratch *scratch, struct hl_subject subject)
{
	struct hl_out *out = &scratch->out;
	const struct hl_survey *survey = out->report->survey;
	bool an_enum = !subject.variable && survey->types->type[subject.type].kind == HL_ENUM;
	size_t from;
	int status = 0;

	out->after_code = false;
	add_declared(out, subject);
	add_scope(out, subject);
	from = out->text.len;
	if (subject.variable) {
		hl_declare(&out->text, survey->types, subject.type,
			   survey->types->variable[subject.variable - 1].name);
		hl_text_puts(&out->text, ";\n");
	} else {
		status = hl_picture(&out->text, survey->types, subject.type, survey->ruler.line,
				    &scratch->shape);
	}
	hl_out_finish_code(out, from, 0);
	if (!status && !subject.variable && !an_enum)
		add_notes(scratch, subject);
	return status;
}

static int make_pictures(void *arg, void *memory, uint32_t first, uint32_t n)
{
	const struct picture_run *run = arg;
	struct picture_scratch *scratch = memory;
	const struct hl_report *report = run->report;
	struct hl_out *out = &scratch->out;
	int status = 0;

	out->report = report;
	for (uint32_t i = first; i < first + n && !status; i++) {
		struct hl_subject subject = hl_survey_subject(report->survey, run->order.index[i]);
		struct hl_shown shown = { .out = out, .subject = subject };

		status = add_picture(scratch, subject);
		if (!status && i < run->order.n_faulty)
			status = hl_show_subject(report->survey, subject, report->proposals != 0,
						 hl_out_fault, &shown);
		hl_text_putc(&out->text, '\n');
	}
	return status;
}

static int take_pictures(void *arg, void *memory)
{
	struct picture_scratch *scratch = memory;

	(void)arg;
	return hl_out_flush(&scratch->out);
}

static void drop_pictures(void *memory)
{
	struct picture_scratch *scratch = memory;

	hl_text_free(&scratch->out.text);
	hl_text_free(&scratch->out.scratch);
	hl_text_free(&scratch->notes);
	hl_shape_free(&scratch->shape);
}

int hl_report_pictures(const struct hl_report *report)
{
	struct hl_out out = { .report = report };
	struct picture_run run = { .report = report };
	struct hl_chunks chunks = {
		.chunk = CHUNK,
		.threads = report->survey->threads,
		.scratch_size = sizeof(struct picture_scratch),
		.arg = &run,
		.make = make_pictures,
		.take = take_pictures,
		.drop = drop_pictures,
	};
	int status = find_order(&run.order, report);

	if (status)
		return status;
	if (!report->survey->subject) {
		hl_out_header(&out);
		hl_text_putc(&out.text, '\n');
	}
	status = hl_out_finish(&out, 0);
	chunks.n = run.order.n;
	if (!status)
		status = hl_chunks_run(&chunks);
	free(run.order.index);
	return status;
}
