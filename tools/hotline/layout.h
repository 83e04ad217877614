/* SPDX-License-Identifier: MIT */
/*
 * `hotline layout`: what the command line says, and the work behind it.
 */
#ifndef HOTLINE_LAYOUT_H
#define HOTLINE_LAYOUT_H

#include "debuginfo/debuginfo.h"
#include "layout/faults.h"
#include "layout/rank.h"
#include "layout/report.h"
#include "layout/subject.h"
#include "output.h"

#include <stdbool.h>
#include <stdint.h>

/* What is to be done.  Each but the first has an option of its own. */
enum layout_mode {
	LAYOUT_REPORT,		/* the ranked list, or pictures */
	LAYOUT_SIZES,
	LAYOUT_COMPILE,
	LAYOUT_CHECK,
	LAYOUT_WRITE_ACCEPT,
	LAYOUT_DIFF,
	LAYOUT_EXPLAIN,
};

enum layout_format { LAYOUT_TEXT, LAYOUT_JSON, LAYOUT_SARIF };

struct layout_options {
	enum layout_mode mode;
	enum layout_format format;
	char **name;			/* what stands behind the options: the file(s), types */
	uint32_t n_names;
	const char *explain;		/* a fault, or "all" */
	const char *accept;		/* the file of accepted faults and rules */
	const char *write_accept;
	bool all, strict;
	struct hl_ruler ruler;
	unsigned kinds;			/* bits of enum hl_fault_kind */
	unsigned min_score;
	int64_t top, proposals;		/* -1: not said */
	struct hl_types_options types;
	enum colour_when colour;
	bool pager;
};

/* Each does the work of a mode and returns the exit status. */
int layout_report(const struct layout_options *options);
int layout_check(const struct layout_options *options);
int layout_diff(const struct layout_options *options);

/* ---- What these have in common (layout_input.c). ---- */

/* Exit statuses of --check and --diff. */
#define STATUS_HOLDS		0
#define STATUS_FALLS_SHORT	1
#define STATUS_CANNOT_TELL	2

/* A file that was read, and what of it is looked at. */
struct layout_input {
	struct hl_types *types;
	struct hl_looks *looks;
	struct hl_subjects asked;	/* when types were named */
	struct hl_survey survey;
	struct hl_ranking ranking;
	bool missing;			/* a type that was named is not there */
};

/* What is to be done about a type that was named and is not there. */
enum layout_missing { LAYOUT_MUST_EXIST, LAYOUT_MAY_BE_MISSING };

/* Reads the file, finds the types that n names ask for, ranks the faults.  Says of
 * each type that must exist and does not, why; fails when none is left.  0, or -1
 * after a message.  To be closed in either case. */
int layout_input_open(struct layout_input *input, const struct layout_options *options,
		      const char *path, char **name, uint32_t n, enum layout_missing missing);
void layout_input_close(struct layout_input *input);

/* A report as the options want it, to the output. */
void layout_fill_report(struct hl_report *report, const struct layout_options *options,
			const struct layout_input *input, const char *path,
			struct output *output);

#endif
