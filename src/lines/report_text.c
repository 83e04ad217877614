// SPDX-License-Identifier: MIT
#include "lines/report.h"

#include "layout/clean.h"
#include "layout/out.h"
#include "layout/report.h"

#include <string.h>

#define INDENT 7
#define USERS 6 /* of a field that are shown */

static void add_percent(struct hl_text *text, uint64_t part, uint64_t whole)
{
	hl_text_printf(text, "%.0f %%", whole ? 100.0 * (double)part / (double)whole : 0.0);
}

/* "4 work, main" */
static void add_groups(struct hl_text *text, const struct hl_findings *findings)
{
	for (uint32_t i = 0; i < findings->n_groups; i++) {
		const struct hl_group *group = &findings->group[i];

		hl_text_puts(text, i ? ", " : "");
		if (group->n_threads > 1)
			hl_text_printf(text, "%u ", group->n_threads);
		hl_text_puts(text, group->name);
	}
}

static void add_not_seen(struct hl_text *text, const struct hl_lines_process *process)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < process->file.n_modules; i++) {
		const struct hl_raw_module_read *module = &process->file.module[i];
		const char *slash = strrchr(module->path, '/');

		if (!hl_lines_not_seen(module))
			continue;
		hl_text_puts(text,
			     n++ ? ", "
				 : "not seen, but for what it copies, compares and allocates: ");
		hl_clean_add(text, slash ? slash + 1 : module->path);
	}
	if (n)
		hl_text_putc(text, '\n');
}

static void add_head(struct hl_out *out, const struct hl_lines_report *report,
		     const struct hl_lines_process *process)
{
	const struct hl_findings *findings = &process->findings;
	struct hl_text *text = &out->text;
	unsigned of[3] = { 0 };

	hl_out_begin(out, HL_BOLD);
	hl_clean_add(text, report->program);
	hl_text_printf(text, " (process %u)", process->file.header.pid);
	hl_out_end(out);
	hl_text_puts(text, ": ");
	hl_out_plural(out, process->file.n_threads, "thread");
	hl_text_puts(text, " (");
	add_groups(text, findings);
	hl_text_printf(text,
		       "), %llu accesses seen, %llu lines passed on (%.2f of 1000 accesses), ",
		       (unsigned long long)findings->accesses,
		       (unsigned long long)findings->transfers,
		       findings->accesses
			       ? 1000.0 * (double)findings->transfers / (double)findings->accesses
			       : 0.0);
	add_percent(text, findings->untrue, findings->transfers);
	hl_text_puts(text, " of them for bytes that nobody else had touched\n");
	hl_lines_ending(text, process);
	if (process->file.end.signal || !process->file.whole)
		hl_text_putc(text, '\n');
	add_not_seen(text, process);
	if (findings->lost)
		hl_text_printf(
			text,
			"%llu transfers came when the tables were full and are in no finding\n",
			(unsigned long long)findings->lost);
	for (uint32_t i = 0; i < findings->n_findings; i++)
		of[findings->finding[i].sharing]++;
	hl_out_plural(out, findings->n_findings, "finding");
	if (findings->n_findings) {
		const char *between = ": ";

		for (unsigned i = 0; i < 3; i++) {
			if (!of[i])
				continue;
			hl_text_printf(text, "%s%u %s sharing", between, of[i], hl_sharing_name(i));
			between = ", ";
		}
	}
	if (findings->n_small)
		hl_text_printf(text, "; %u more objects with few transfers, %llu in all",
			       findings->n_small, (unsigned long long)findings->small);
	hl_text_putc(text, '\n');
}

static void add_line(struct hl_out *out, const struct hl_findings *findings,
		     const struct hl_shared *finding)
{
	struct hl_letters letters = { .n = 0 };
	struct hl_text *text = &out->text;

	if (!finding->line.transfers)
		return;
	hl_text_spaces(text, INDENT);
	hl_text_putc(text, '|');
	hl_lines_picture(text, &finding->line, &letters);
	hl_text_printf(text, "| %llu transfers%s\n", (unsigned long long)finding->line.transfers,
		       finding->n_lines > 1 ? ", the most of its lines" : "");
	hl_text_spaces(text, INDENT + 1);
	for (unsigned i = 0; i < letters.n; i++) {
		hl_text_printf(text, "%s%c ", i ? ", " : "", 'A' + i);
		hl_lines_thread(text, findings, letters.thread[i]);
	}
	hl_text_puts(text, letters.n
				   ? "; small letters only read, * several write, + several read\n"
				   : "* several write, + several read\n");
}

static void add_user(struct hl_out *out, const struct hl_findings *findings,
		     const struct hl_user *user)
{
	const struct hl_group *group = &findings->group[user->group];
	struct hl_text *text = &out->text;

	hl_text_spaces(text, INDENT + 4);
	if (user->thread)
		hl_lines_thread(text, findings, user->thread);
	else if (group->n_threads > 1)
		hl_text_printf(text, "%s (several)", group->name);
	else
		hl_text_puts(text, group->name);
	hl_text_printf(text, " %s it at ", hl_lines_verb(user->flags));
	hl_code_place(text, user->code);
	if (user->code->file) {
		hl_text_puts(text, " in ");
		hl_clean_add(text, user->code->function);
		hl_text_puts(text, "()");
	}
	hl_text_printf(text, ": %llu of %llu", (unsigned long long)user->transfers,
		       (unsigned long long)user->accesses);
	if (user->from && user->transfers) {
		hl_text_puts(text, ", mostly from ");
		hl_code_place(text, user->from);
	}
	hl_text_putc(text, '\n');
}

static void add_field(struct hl_out *out, const struct hl_findings *findings,
		      const struct hl_shared *finding, const struct hl_touched *field)
{
	struct hl_text *text = &out->text;

	hl_text_spaces(text, INDENT);
	if (field->object != finding->object) {
		hl_object_name(text, field->object);
		hl_text_puts(text, ": ");
	}
	hl_out_paint(out, HL_CYAN, field->name);
	if (field->type)
		hl_text_printf(text, "  %s", field->type);
	hl_text_printf(text, "  bytes %llu to %llu: %llu transfers of %llu accesses",
		       (unsigned long long)field->offset,
		       (unsigned long long)(field->offset + field->size - 1),
		       (unsigned long long)field->transfers, (unsigned long long)field->accesses);
	if (field->transfers) {
		hl_text_puts(text, ", ");
		add_percent(text, field->untrue, field->transfers);
		hl_text_puts(text, " false");
	}
	hl_text_putc(text, '\n');
	for (uint32_t i = 0; i < field->n_users && i < USERS; i++)
		add_user(out, findings, &field->user[i]);
	if (field->n_users > USERS) {
		hl_text_spaces(text, INDENT + 4);
		hl_text_printf(text, "and %u more places\n", field->n_users - USERS);
	}
}

static void add_others(struct hl_out *out, const struct hl_findings *findings,
		       const struct hl_shared *finding)
{
	struct hl_text *text = &out->text;

	for (uint32_t i = 0; i < finding->n_others; i++) {
		hl_text_spaces(text, INDENT);
		hl_text_puts(text, "shares a line with ");
		hl_object_name(text, finding->other[i]);
		hl_text_puts(text, " (");
		hl_object_where(text, findings, finding->other[i]);
		hl_text_puts(text, ")\n");
	}
}

static void add_finding(struct hl_out *out, const struct hl_lines_report *report,
			const struct hl_findings *findings, uint32_t i)
{
	const struct hl_shared *finding = &findings->finding[i];
	struct hl_text *text = &out->text, words = HL_TEXT_INIT;
	uint32_t shown = report->fields && finding->n_fields > report->fields ? report->fields
									      : finding->n_fields;

	hl_text_printf(text, "\n%3u  %7llu ", i + 1, (unsigned long long)finding->transfers);
	hl_out_paint(out, finding->sharing == HL_SHARING_TRUE ? HL_YELLOW : HL_RED,
		     hl_sharing_name(finding->sharing));
	hl_text_puts(text, "  ");
	hl_out_begin(out, HL_BOLD);
	hl_object_name(text, finding->object);
	hl_out_end(out);
	hl_text_puts(text, "  ");
	hl_object_where(text, findings, finding->object);
	hl_text_putc(text, '\n');
	add_line(out, findings, finding);
	for (uint32_t f = 0; f < shown; f++)
		add_field(out, findings, finding, &finding->field[f]);
	if (shown < finding->n_fields) {
		hl_text_spaces(text, INDENT);
		hl_text_printf(text, "and %u more fields\n", finding->n_fields - shown);
	}
	add_others(out, findings, finding);
	hl_text_reset(&words);
	hl_text_puts(&words, "-> ");
	hl_text_puts(&words, finding->advice);
	if (!words.failed)
		hl_out_sentences(out, words.at, INDENT - 3);
	text->failed |= words.failed;
	hl_text_free(&words);
	if (finding->code) {
		size_t from = text->len;

		hl_text_puts(text, finding->code);
		hl_out_finish_code(out, from, INDENT);
	}
}

static void add_over(struct hl_out *out, const struct hl_lines_report *report)
{
	struct hl_text *text = &out->text;

	if (!report->over)
		return;
	hl_text_putc(text, '\n');
	for (uint32_t i = 0; i < report->n_over; i++) {
		size_t from = text->len;

		if (report->budget && report->over[i].line)
			hl_text_printf(text, "%s:%u: ", report->budget, report->over[i].line);
		hl_text_printf(text, "%s: %s\n", report->over[i].rule, report->over[i].said);
		hl_clean_from(text, from);
	}
	if (report->n_over)
		hl_out_plural(out, report->n_over, "rule");
	hl_text_puts(text, report->n_over ? " of the budget not kept\n" : "the budget is kept\n");
}

int hl_lines_report_text(const struct hl_lines_report *report)
{
	const struct hl_report how = {
		.colour = report->colour,
		.width = report->width,
		.write = report->write,
		.write_arg = report->write_arg,
	};
	struct hl_out out = { .report = &how };
	bool any = false;
	int status = 0;

	for (uint32_t p = 0; p < report->n_processes && !status; p++) {
		const struct hl_lines_process *process = &report->process[p];
		uint32_t shown = hl_process_shown(report, process);

		if (!hl_process_counts(process))
			continue;
		if (any)
			hl_text_putc(&out.text, '\n');
		any = true;
		add_head(&out, report, process);
		for (uint32_t i = 0; i < shown && !status; i++) {
			add_finding(&out, report, &process->findings, i);
			status = hl_out_flush_when_full(&out);
		}
		if (shown < process->findings.n_findings)
			hl_text_printf(&out.text, "\n%u more findings (--top 0 shows all)\n",
				       process->findings.n_findings - shown);
	}
	if (!any)
		hl_text_puts(&out.text, "nothing was counted\n");
	add_over(&out, report);
	return hl_out_finish(&out, status);
}
