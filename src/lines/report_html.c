// SPDX-License-Identifier: MIT
/*
 * One file that needs nothing else: no script, no picture, no font from elsewhere.
 */
#include "lines/report.h"

#include "layout/clean.h"

#include <errno.h>

/* Colours of threads, by letter. */
static const char *const colours[] = { "#d62728", "#1f77b4", "#2ca02c", "#9467bd",
				       "#ff7f0e", "#17becf", "#8c564b", "#e377c2" };
#define N_COLOURS (sizeof(colours) / sizeof(colours[0]))

static void add_escaped(struct hl_text *text, const char *string)
{
	struct hl_text clean = HL_TEXT_INIT;

	hl_text_puts(&clean, string);
	hl_clean_from(&clean, 0);
	for (const char *at = clean.failed ? "" : clean.at; *at; at++) {
		switch (*at) {
		case '<':
			hl_text_puts(text, "&lt;");
			break;
		case '>':
			hl_text_puts(text, "&gt;");
			break;
		case '&':
			hl_text_puts(text, "&amp;");
			break;
		case '"':
			hl_text_puts(text, "&quot;");
			break;
		default:
			hl_text_putc(text, *at);
		}
	}
	text->failed |= clean.failed;
	hl_text_free(&clean);
}

static void add_word(struct hl_text *text, struct hl_text *word)
{
	text->failed |= word->failed;
	add_escaped(text, word->at && !word->failed ? word->at : "");
	hl_text_reset(word);
}

/* The line as a row of boxes, one a byte, in the colours of the threads that write it. */
static void add_line(struct hl_text *text, struct hl_text *word, const struct hl_findings *findings,
		     const struct hl_shared *finding)
{
	struct hl_letters letters = { .n = 0 };

	if (!finding->line.transfers)
		return;
	hl_lines_picture(word, &finding->line, &letters);
	hl_text_puts(text, "<div class=line>");
	for (size_t i = 0; !word->failed && i < word->len; i++) {
		char c = word->at[i];
		bool writes = c >= 'A' && c <= 'Z', reads = c >= 'a' && c <= 'z';
		unsigned who = writes ? c - 'A' : reads ? c - 'a' : 0;

		if (writes || reads)
			hl_text_printf(text, "<i style=\"background:%s%s\">%c</i>",
				       colours[who % N_COLOURS], reads ? "55" : "", c);
		else
			hl_text_printf(text, "<i class=\"%s\">%c</i>",
				       c == '*'	  ? "many"
				       : c == '+' ? "read"
						  : "none",
				       c);
	}
	hl_text_reset(word);
	hl_text_puts(text, "</div><p class=key>");
	for (unsigned i = 0; i < letters.n; i++) {
		hl_text_printf(text, "%s<b>%c</b> ", i ? ", " : "", 'A' + i);
		hl_lines_thread(word, findings, letters.thread[i]);
		add_word(text, word);
	}
	hl_text_puts(text, "; small letters only read, * several write, + several read</p>\n");
}

static void add_user(struct hl_text *text, struct hl_text *word, const struct hl_findings *findings,
		     const struct hl_user *user)
{
	hl_text_puts(text, "<tr class=user><td>");
	if (user->thread)
		hl_lines_thread(word, findings, user->thread);
	else
		hl_text_puts(word, findings->group[user->group].name);
	hl_text_printf(word, " %s it in %s()", hl_lines_verb(user->flags), user->code->function);
	add_word(text, word);
	hl_text_puts(text, "<td>");
	hl_code_place(word, user->code);
	add_word(text, word);
	hl_text_printf(text, "<td><td>%llu<td>%llu<td>%llu\n", (unsigned long long)user->transfers,
		       (unsigned long long)user->untrue, (unsigned long long)user->accesses);
}

static void add_fields(struct hl_text *text, struct hl_text *word,
		       const struct hl_findings *findings, const struct hl_shared *finding,
		       uint32_t most)
{
	hl_text_puts(text,
		     "<table><tr><th>field<th>type<th>bytes<th>transfers<th>false<th>accesses\n");
	for (uint32_t f = 0; f < finding->n_fields && (!most || f < most); f++) {
		const struct hl_touched *field = &finding->field[f];

		hl_text_puts(text, "<tr><td><b>");
		if (field->object != finding->object) {
			hl_object_name(word, field->object);
			hl_text_puts(word, ": ");
		}
		hl_text_puts(word, field->name);
		add_word(text, word);
		hl_text_puts(text, "</b><td>");
		add_escaped(text, field->type ? field->type : "");
		hl_text_printf(text, "<td>%llu to %llu<td>%llu<td>%llu<td>%llu\n",
			       (unsigned long long)field->offset,
			       (unsigned long long)(field->offset + field->size - 1),
			       (unsigned long long)field->transfers,
			       (unsigned long long)field->untrue,
			       (unsigned long long)field->accesses);
		for (uint32_t u = 0; u < field->n_users && u < 8; u++)
			add_user(text, word, findings, &field->user[u]);
	}
	hl_text_puts(text, "</table>\n");
}

static void add_finding(struct hl_text *text, struct hl_text *word,
			const struct hl_lines_report *report, const struct hl_findings *findings,
			const struct hl_shared *finding)
{
	hl_text_printf(text, "<section class=%s><h2>", hl_sharing_name(finding->sharing));
	hl_object_name(word, finding->object);
	add_word(text, word);
	hl_text_printf(
		text,
		"</h2><p><b>%s sharing</b>, %llu transfers, %llu of them for bytes that nobody "
		"else had touched; ",
		hl_sharing_name(finding->sharing), (unsigned long long)finding->transfers,
		(unsigned long long)finding->untrue);
	hl_object_where(word, findings, finding->object);
	add_word(text, word);
	hl_text_puts(text, "</p>\n");
	add_line(text, word, findings, finding);
	add_fields(text, word, findings, finding, report->fields);
	hl_text_puts(text, "<p class=advice>");
	add_escaped(text, finding->advice);
	hl_text_puts(text, "</p>\n");
	if (finding->code) {
		hl_text_puts(text, "<pre>");
		add_escaped(text, finding->code);
		hl_text_puts(text, "</pre>\n");
	}
	hl_text_puts(text, "</section>\n");
}

static void add_head(struct hl_text *text, const struct hl_lines_report *report)
{
	hl_text_puts(
		text,
		"<!DOCTYPE html>\n<html lang=en><meta charset=utf-8>\n<title>hotline c2c</title>\n<style>\n"
		"body{font:15px/1.5 sans-serif;max-width:72em;margin:2em auto;padding:0 1em}\n"
		"section{border-left:6px solid #bbb;padding:0 1em;margin:2em 0}\n"
		"section.false{border-color:#d62728}section.mixed{border-color:#ff7f0e}\n"
		"table{border-collapse:collapse}td,th{padding:.1em .8em;text-align:left}\n"
		"tr.user{color:#555;font-size:90%}tr.user td:first-child{padding-left:2.5em}\n"
		".line i{display:inline-block;width:1.4%;text-align:center;font:12px monospace;"
		"color:#fff;margin-right:1px;padding:.3em 0}\n"
		".line .none{background:#eee;color:#999}.line .many{background:#000}"
		".line .read{background:#888}\n.key{font-size:85%;color:#555}"
		".advice{background:#f4f4e8;padding:.5em 1em}\n</style>\n<h1>Lines passed on by ");
	add_escaped(text, report->program);
	hl_text_puts(text, "</h1>\n");
}

static int flush(const struct hl_lines_report *report, struct hl_text *text)
{
	int status = text->failed ? -ENOMEM : report->write(report->write_arg, text->at, text->len);

	hl_text_reset(text);
	return status;
}

int hl_lines_report_html(const struct hl_lines_report *report)
{
	struct hl_text text = HL_TEXT_INIT, word = HL_TEXT_INIT;
	int status;

	add_head(&text, report);
	status = flush(report, &text);
	for (uint32_t p = 0; p < report->n_processes && !status; p++) {
		const struct hl_lines_process *process = &report->process[p];
		const struct hl_findings *findings = &process->findings;

		if (!hl_process_counts(process))
			continue;
		hl_text_printf(
			&text,
			"<p>Process %u: %u threads, %llu accesses seen, %llu lines passed on, "
			"%llu of them for bytes that nobody else had touched. ",
			process->file.header.pid, process->file.n_threads,
			(unsigned long long)findings->accesses,
			(unsigned long long)findings->transfers,
			(unsigned long long)findings->untrue);
		hl_lines_ending(&word, process);
		add_word(&text, &word);
		hl_text_puts(&text, "</p>\n");
		status = flush(report, &text);
		for (uint32_t i = 0; i < hl_process_shown(report, process) && !status; i++) {
			add_finding(&text, &word, report, findings, &findings->finding[i]);
			status = flush(report, &text);
		}
	}
	for (uint32_t i = 0; i < report->n_over && !status; i++) {
		hl_text_puts(&text, "<p class=advice>Over the budget: ");
		add_escaped(&text, report->over[i].rule);
		hl_text_puts(&text, ": ");
		add_escaped(&text, report->over[i].said);
		hl_text_puts(&text, "</p>\n");
	}
	hl_text_puts(&text, "</html>\n");
	if (!status)
		status = flush(report, &text);
	hl_text_free(&text);
	hl_text_free(&word);
	return status;
}
