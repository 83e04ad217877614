// SPDX-License-Identifier: MIT
#include "layout/out.h"

#include "layout/clean.h"
#include "layout/subject.h"

#include <string.h>

static void add_counts(struct hl_out *out)
{
	const struct hl_ranking *ranking = out->report->ranking;
	const char *separator = ": ";

	hl_out_plural(out, ranking->n, "fault");
	for (int kind = 0; kind < HL_N_FAULTS; kind++) {
		if (!ranking->of_kind[kind])
			continue;
		hl_text_printf(&out->text, "%s%u %s", separator, ranking->of_kind[kind],
			       hl_fault_name(kind));
		separator = ", ";
	}
	hl_text_putc(&out->text, '\n');
}

void hl_out_header(struct hl_out *out)
{
	const struct hl_report *report = out->report;
	const struct hl_types *types = report->survey->types;

	hl_out_begin(out, HL_BOLD);
	hl_clean_add(&out->text, report->path);
	hl_out_end(out);
	hl_text_puts(&out->text, ": ");
	if (report->survey->subject) {
		hl_text_printf(&out->text, "%u of ", report->survey->n);
	}
	hl_out_plural(out, types->n_defined, "type");
	if (!types->from_btf) {
		hl_text_puts(&out->text, " in ");
		hl_out_plural(out, types->n_units, "unit");
	}
	hl_text_printf(&out->text, ", lines of %u bytes%s\n", report->survey->ruler.line,
		       report->survey->ruler.pair ? " that travel in pairs" : "");
	if (types->n_skipped) {
		hl_out_plural(out, types->n_skipped, "thing");
		hl_text_puts(&out->text, " left out, first: ");
		hl_clean_add(&out->text, types->skipped ? types->skipped : "not known");
		hl_text_putc(&out->text, '\n');
	}
	add_counts(out);
}

static enum hl_colour colour_of_score(unsigned score)
{
	return score >= 700 ? HL_RED : score >= 400 ? HL_YELLOW : HL_GREEN;
}

static void add_proposal(struct hl_out *out, const char *code)
{
	size_t from;

	hl_text_putc(&out->text, '\n');
	from = out->text.len;
	hl_text_puts(&out->text, code);
	if (code[strlen(code) - 1] != '\n')
		hl_text_putc(&out->text, '\n');
	hl_out_finish_code(out, from, HL_OUT_INDENT);
}

static void add_fault_line(struct hl_shown *shown, const struct hl_fault *fault)
{
	struct hl_out *out = shown->out;
	const struct hl_types *types = out->report->survey->types;
	struct hl_text *text = &out->text;

	if (shown->rank) {
		hl_text_u64_width(text, shown->rank, shown->rank_width);
		hl_text_puts(text, "  ");
	} else {
		hl_text_puts(text, "   ");
	}
	hl_out_begin(out, colour_of_score(fault->score));
	hl_text_u64_width(text, fault->score, 4);
	hl_text_putc(text, ' ');
	hl_text_puts(text, hl_fault_name(fault->kind));
	hl_out_end(out);
	if (shown->rank) {
		hl_text_puts(text, "  ");
		hl_out_begin(out, HL_BOLD);
		hl_subject_name(text, types, shown->subject);
		hl_out_end(out);
		hl_text_puts(text, "  ");
		hl_out_begin(out, HL_DIM);
		hl_subject_declared(text, types, shown->subject);
		hl_out_end(out);
	}
	hl_text_putc(text, '\n');
}

void hl_out_fault(void *arg, const struct hl_fault *fault)
{
	struct hl_shown *shown = arg;
	struct hl_out *out = shown->out;

	if (out->after_code)
		hl_text_putc(&out->text, '\n');
	out->after_code = false;
	add_fault_line(shown, fault);
	hl_out_sentences(out, fault->evidence, HL_OUT_INDENT);
	if (fault->advice && *fault->advice) {
		hl_text_spaces(&out->text, HL_OUT_INDENT - 3);
		hl_text_puts(&out->text, "-> ");

		/* The first line goes behind the arrow. */
		size_t from = out->text.len;

		hl_out_sentences(out, fault->advice, HL_OUT_INDENT);
		if (!out->text.failed && out->text.len >= from + HL_OUT_INDENT) {
			memmove(out->text.at + from, out->text.at + from + HL_OUT_INDENT,
				out->text.len - from - HL_OUT_INDENT);
			out->text.len -= HL_OUT_INDENT;
		}
	}
	if (fault->text && *fault->text) {
		add_proposal(out, fault->text);
		out->after_code = true;
	}
}

static unsigned digits(uint32_t n)
{
	unsigned d = 1;

	while (n /= 10)
		d++;
	return d;
}

static int add_ranked(struct hl_out *out, const struct hl_ranking *ranking, uint32_t top)
{
	const struct hl_report *report = out->report;
	uint32_t n = top && top < ranking->n ? top : ranking->n;
	int status = 0;

	for (uint32_t i = 0; i < n && !status; i++) {
		const struct hl_ranked *fault = &ranking->fault[i];
		struct hl_shown shown = {
			.out = out,
			.rank = i + 1,
			.rank_width = digits(n) < 3 ? 3 : digits(n),
			.subject = hl_survey_subject(report->survey, fault->index),
		};

		status = hl_show_ranked(report->survey, fault, i < report->proposals, hl_out_fault,
					&shown);
		if (!status)
			status = hl_out_flush_when_full(out);
	}
	return status;
}

/* What else there is to see, below the list. */
static void add_hint(struct hl_out *out)
{
	const struct hl_report *report = out->report;
	struct hl_text hint = HL_TEXT_INIT;

	if (report->top && report->top < report->ranking->n)
		hl_text_printf(&hint, "%u more: --top 0 lists all. ",
			       report->ranking->n - report->top);
	hl_text_puts(&hint, "A TYPE behind the file shows it in full, --explain FAULT says what a "
		     "fault is.");
	hl_text_putc(&out->text, '\n');
	hl_out_begin(out, HL_DIM);
	if (hint.failed)
		out->text.failed = true;
	else
		hl_out_sentences(out, hint.at, 0);
	hl_out_end(out);
	hl_text_free(&hint);
}

int hl_report_faults(const struct hl_report *report)
{
	struct hl_out out = { .report = report };
	const struct hl_ranking *ranking = report->ranking;
	int status;

	hl_out_header(&out);
	if (ranking->n)
		hl_text_putc(&out.text, '\n');
	status = add_ranked(&out, ranking, report->top);
	if (ranking->n && !status)
		add_hint(&out);
	return hl_out_finish(&out, status);
}

/* ---- What a check found. ---- */

static void add_finding(struct hl_out *out, const struct hl_finding *finding)
{
	static const struct {
		const char *word;
		enum hl_colour colour;
	} how[] = {
		[HL_FINDING_BROKEN] = { "broken", HL_RED },
		[HL_FINDING_UNKNOWN] = { "cannot tell", HL_RED },
		[HL_FINDING_STALE] = { "stale", HL_YELLOW },
		[HL_FINDING_CONDITION] = { "note", HL_GREEN },
	};
	const struct hl_types *types = out->report->survey->types;

	hl_clean_add(&out->text, out->report->check->rules_path);
	hl_text_printf(&out->text, ":%u: ", finding->line);
	hl_out_paint(out, how[finding->kind].colour, how[finding->kind].word);
	hl_text_puts(&out->text, ": ");
	hl_clean_add(&out->text, finding->rule);
	hl_text_putc(&out->text, '\n');
	if (finding->subject.type && types->type[finding->subject.type].file) {
		hl_text_spaces(&out->text, HL_OUT_INDENT);
		hl_subject_declared(&out->text, types, finding->subject);
		hl_text_putc(&out->text, '\n');
	}
	hl_out_sentences(out, finding->said, HL_OUT_INDENT);
}

int hl_report_check(const struct hl_report *report)
{
	struct hl_out out = { .report = report };
	const struct hl_check *check = report->check;
	int status = 0;

	for (uint32_t i = 0; i < check->n && !status; i++) {
		add_finding(&out, &check->finding[i]);
		status = hl_out_flush_when_full(&out);
	}
	if (!status)
		status = add_ranked(&out, &check->faults, report->top);
	if (check->n || check->faults.n)
		hl_text_putc(&out.text, '\n');
	hl_out_begin(&out, HL_BOLD);
	hl_clean_add(&out.text, report->path);
	hl_out_end(&out);
	hl_text_puts(&out.text, check->unknown ? ": could not tell. " :
				check->broken ? ": falls short. " : ": holds. ");
	hl_out_plural(&out, check->rules, "rule");
	hl_text_puts(&out.text, ", ");
	hl_out_plural(&out, check->accepted, "accepted fault");
	hl_text_puts(&out.text, ", ");
	hl_out_plural(&out, check->faults.n, "fault");
	hl_text_puts(&out.text, " not accepted\n");
	return hl_out_finish(&out, status);
}
