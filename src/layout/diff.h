/* SPDX-License-Identifier: MIT */
/*
 * What became of the types of one file in another, usually a later build.
 */
#ifndef HL_LAYOUT_DIFF_H
#define HL_LAYOUT_DIFF_H

#include "debuginfo/debuginfo.h"
#include "layout/rank.h"

/* hl_change.what */
#define HL_CHANGE_GREW		0x001
#define HL_CHANGE_MORE_LINES	0x002
#define HL_CHANGE_CROSSES	0x004	/* a member crosses a line that did not */
#define HL_CHANGE_FAULT		0x008	/* a fault that was not there */
#define HL_CHANGE_WORSE		0x00f	/* any of these */
#define HL_CHANGE_SHRANK	0x010
#define HL_CHANGE_FEWER_LINES	0x020
#define HL_CHANGE_MOVED		0x040	/* a member is on another line */
#define HL_CHANGE_MENDED	0x080	/* a fault is no more */
#define HL_CHANGE_APPEARED	0x100
#define HL_CHANGE_VANISHED	0x200

/* A type of which there is something to say.  One that appeared has no old
 * subject, one that vanished no new one: its type is 0. */
struct hl_change {
	unsigned what;
	struct hl_subject old_subject, new_subject;
	uint64_t old_size, new_size, old_lines, new_lines;
	uint32_t first_fault, n_faults;	/* new ones, in hl_diff.fault; of a type that appeared, all */
};

/* One side of the comparison. */
struct hl_diff_side {
	const struct hl_survey *survey;
	const struct hl_ranking *ranking;
};

struct hl_diff {
	struct hl_diff_side before, after;
	struct hl_change *change;	/* what is worse first, then by name */
	uint32_t n, room;
	struct hl_ranked *fault;
	uint32_t n_faults, faults_room;
	uint32_t same;			/* types about which there is nothing to say */
	bool worse;
};

/* Compares the types of both surveys, by name; types of the same name by their
 * file, then by their order.  0 or -ENOMEM; the diff is to be freed in either
 * case, and may not outlive the surveys. */
int hl_diff_run(struct hl_diff *diff, struct hl_diff_side before, struct hl_diff_side after);
void hl_diff_free(struct hl_diff *diff);

/* A member that lies elsewhere than it did, or crosses a line now. */
struct hl_moved {
	const char *name;
	uint64_t old_offset, new_offset;
	uint64_t old_line, new_line;	/* of its first byte */
	bool crosses;			/* a line, as it did not before, though it fits in one */
};

/* Calls visit for each member of a type that has moved to another line or crosses
 * one now.  0 or -ENOMEM. */
int hl_diff_moved(const struct hl_diff *diff, const struct hl_change *change,
		  void (*visit)(void *arg, const struct hl_moved *moved), void *arg);

/* Both go through report->write; `before` and `after` are the files' names. */
struct hl_report;
int hl_report_diff(const struct hl_report *report, const struct hl_diff *diff, const char *before,
		   const char *after);
int hl_report_diff_json(const struct hl_report *report, const struct hl_diff *diff,
			const char *before, const char *after);

#endif
