/* SPDX-License-Identifier: MIT */
/*
 * A survey told: as text for people, as JSON and SARIF for machines.  All of it
 * goes piece by piece through one function that the caller gives, so that what
 * is in memory does not grow with the file.
 */
#ifndef HL_LAYOUT_REPORT_H
#define HL_LAYOUT_REPORT_H

#include "debuginfo/debuginfo.h"
#include "debuginfo/text.h"
#include "layout/check.h"
#include "layout/faults.h"
#include "layout/rank.h"

struct hl_report {
	const struct hl_survey *survey;
	const struct hl_ranking *ranking;
	const char *path;		/* of the file, as the user gave it */
	const char *version;		/* of the program that reports */
	bool whole;			/* show subjects without faults too */
	bool colour;			/* text: with the terminal's colours */
	unsigned width;			/* text: columns that sentences may take */
	uint32_t top;			/* text: how many faults or types to show; 0: all */
	uint32_t proposals;		/* text: how many of them with the proposal in full */
	const struct hl_check *check;	/* what --check found, or NULL */

	/* Takes n bytes; 0, or a failure that ends the report and is what it returns. */
	int (*write)(void *arg, const char *bytes, size_t n);
	void *write_arg;
};

/* All return 0, -ENOMEM, or what write returned. */

/* The ranked list: a header, then the worst faults with evidence and advice. */
int hl_report_faults(const struct hl_report *report);
/* The picture of each subject, its notes, its faults; those with faults first,
 * the worst first, when the whole file is shown. */
int hl_report_pictures(const struct hl_report *report);
/* A table of sizes, the largest first. */
int hl_report_sizes(const struct hl_report *report);
/* What a check found, in words. */
int hl_report_check(const struct hl_report *report);

int hl_report_json(const struct hl_report *report);
int hl_report_sarif(const struct hl_report *report);

#endif
