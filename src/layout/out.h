/* SPDX-License-Identifier: MIT */
/*
 * A report as text while it is written: gathered, and written in large pieces,
 * with colours if the report has them.
 */
#ifndef HL_LAYOUT_OUT_H
#define HL_LAYOUT_OUT_H

#include "layout/report.h"

struct hl_out {
	const struct hl_report *report;
	struct hl_text text;
	struct hl_text scratch;
	bool after_code;	/* the fault before this one ended in a proposal */
};

/* Writes what is there.  0, -ENOMEM, or what report->write returned. */
int hl_out_flush(struct hl_out *out);
int hl_out_flush_when_full(struct hl_out *out);
/* Writes the rest unless something failed already, frees all, returns the status. */
int hl_out_finish(struct hl_out *out, int status);

enum hl_colour { HL_BOLD, HL_DIM, HL_RED, HL_YELLOW, HL_GREEN, HL_CYAN };

void hl_out_begin(struct hl_out *out, enum hl_colour colour);
void hl_out_end(struct hl_out *out);
void hl_out_paint(struct hl_out *out, enum hl_colour colour, const char *string);

/* Adds sentences, each line indented and broken where the report's width ends. */
void hl_out_sentences(struct hl_out *out, const char *string, size_t indent);

/* Makes code that was added from `from` on fit to be shown: clean, indented, its
 * comments painted. */
void hl_out_finish_code(struct hl_out *out, size_t from, size_t indent);

/* Adds "3 types". */
void hl_out_plural(struct hl_out *out, uint64_t n, const char *one);

/* ---- What all text reports show in the same way (report_faults.c). ---- */

/* Columns in front of what belongs to a fault. */
#define HL_OUT_INDENT	7

/* The file, how it was measured, how many faults there are of each kind. */
void hl_out_header(struct hl_out *out);

/* A fault to be shown: in a list, with its rank, or below a picture, with rank 0. */
struct hl_shown {
	struct hl_out *out;
	uint32_t rank;
	unsigned rank_width;
	struct hl_subject subject;
};

/* Adds it; a hl_fault_sink for struct hl_shown. */
void hl_out_fault(void *shown, const struct hl_fault *fault);

#endif
