/* SPDX-License-Identifier: MIT */
/*
 * The report of a run: its processes, each with its findings, as text, JSON, SARIF or HTML.
 */
#ifndef HL_LINES_REPORT_H
#define HL_LINES_REPORT_H

#include "lines/findings.h"

/* A rule of the budget that does not hold. */
struct hl_over_budget {
	const char *rule; /* as it is written, or what rule that is */
	const char *said; /* what is there instead */
	uint32_t line; /* in the file of the budget; 0: none */
};

struct hl_lines_process {
	struct hl_raw_file file;
	struct hl_findings findings;
};

struct hl_lines_report {
	const char *program;
	const char *version;
	const struct hl_lines_process *process;
	uint32_t n_processes;
	const struct hl_over_budget *over; /* NULL: nothing was checked */
	uint32_t n_over;
	const char *budget; /* the file, or NULL */
	uint32_t top; /* findings of a process; 0: all */
	uint32_t fields; /* of a finding, in text; 0: all */
	bool colour;
	size_t width;
	/* As in struct hl_report. */
	int (*write)(void *arg, const char *bytes, size_t n);
	void *write_arg;
};

/* Each writes the whole.  0, -ENOMEM, or what report->write returned. */
int hl_lines_report_text(const struct hl_lines_report *report);
int hl_lines_report_json(const struct hl_lines_report *report);
int hl_lines_report_sarif(const struct hl_lines_report *report);
int hl_lines_report_html(const struct hl_lines_report *report);

/* Whether there is something to tell of the process. */
static inline bool hl_process_counts(const struct hl_lines_process *process)
{
	return process->findings.accesses || !process->file.whole || process->file.end.signal;
}

/* How many findings of the process are shown. */
static inline uint32_t hl_process_shown(const struct hl_lines_report *report,
					const struct hl_lines_process *process)
{
	uint32_t n = process->findings.n_findings;

	return report->top && n > report->top ? report->top : n;
}

/* ---- Inside: what the forms of the report have in common (report_common.c). ---- */

/* Letters for the threads of a line, in the order of its bytes. */
struct hl_letters {
	uint32_t thread[26];
	unsigned n;
};

/* Adds the line as 64 letters: upper case where the thread writes, lower case where it only reads,
 * * or + where several do, . where nobody does. */
void hl_lines_picture(struct hl_text *text, const struct hl_shown_line *line,
		      struct hl_letters *letters);
/* Adds "work 3": the thread with its number among all, or the name alone when it is the only one. */
void hl_lines_thread(struct hl_text *text, const struct hl_findings *findings, uint32_t thread);
/* "reads", "writes", "changes". */
const char *hl_lines_verb(uint8_t flags);
/* The module was not built with hooks, and is no part of the system that cannot be. */
bool hl_lines_not_seen(const struct hl_raw_module_read *module);
/* Adds what ended the process: "", "ended by signal 11 (Segmentation fault)". */
void hl_lines_ending(struct hl_text *text, const struct hl_lines_process *process);

#endif
