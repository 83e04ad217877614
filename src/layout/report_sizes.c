// SPDX-License-Identifier: MIT
#include "layout/out.h"

#include "layout/shape.h"
#include "layout/subject.h"

#include <errno.h>
#include <stdlib.h>

struct size_row {
	struct hl_subject subject;
	uint64_t size, lines, hole_bytes;
	uint32_t index, holes;
};

static int larger_first(const void *a, const void *b)
{
	const struct size_row *x = a, *y = b;

	if (x->size != y->size)
		return x->size > y->size ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

/* The rows of all types, without variables and enums; n is what is counted. */
static struct size_row *measure_rows(const struct hl_survey *survey, uint32_t *n)
{
	struct size_row *row = calloc((size_t)survey->n + 1, sizeof(*row));
	struct hl_shape shape = { 0 };

	*n = 0;
	for (uint32_t i = 0; row && i < survey->n; i++) {
		struct hl_subject subject = hl_survey_subject(survey, i);

		if (subject.variable || survey->types->type[subject.type].kind == HL_ENUM)
			continue;
		if (hl_shape_measure(&shape, survey->types, subject.type, survey->ruler.line)) {
			free(row);
			row = NULL;
			break;
		}
		row[(*n)++] = (struct size_row){
			.subject = subject, .size = shape.size, .lines = shape.lines,
			.hole_bytes = shape.hole_bytes, .index = i, .holes = shape.holes,
		};
	}
	hl_shape_free(&shape);
	return row;
}

int hl_report_sizes(const struct hl_report *report)
{
	struct hl_out out = { .report = report };
	uint32_t n;
	struct size_row *row = measure_rows(report->survey, &n);
	int status = 0;

	if (!row)
		return -ENOMEM;
	qsort(row, n, sizeof(*row), larger_first);
	if (report->top && report->top < n)
		n = report->top;
	hl_out_begin(&out, HL_BOLD);
	hl_text_puts(&out.text, "      size    lines  holes  in holes  type");
	hl_out_end(&out);
	hl_text_putc(&out.text, '\n');
	for (uint32_t i = 0; i < n && !status; i++) {
		hl_text_u64_width(&out.text, row[i].size, 10);
		hl_text_u64_width(&out.text, row[i].lines, 9);
		hl_text_u64_width(&out.text, row[i].holes, 7);
		hl_text_u64_width(&out.text, row[i].hole_bytes, 10);
		hl_text_puts(&out.text, "  ");
		hl_subject_name(&out.text, report->survey->types, row[i].subject);
		hl_text_putc(&out.text, '\n');
		status = hl_out_flush_when_full(&out);
	}
	free(row);
	return hl_out_finish(&out, status);
}
