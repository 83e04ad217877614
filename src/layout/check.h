/* SPDX-License-Identifier: MIT */
/*
 * The file of --check: faults that a project accepts and rules that its types
 * must keep.  hotline-layout(1) has the grammar.
 */
#ifndef HL_LAYOUT_CHECK_H
#define HL_LAYOUT_CHECK_H

#include "debuginfo/debuginfo.h"
#include "debuginfo/text.h"
#include "layout/rank.h"
#include "layout/subject.h"

struct hl_rules;

/* Reads len bytes of text.  `name` is the file's name for errors.  0 and the
 * rules, to be freed; -EINVAL with the line and what is wrong; -ENOMEM. */
int hl_rules_parse(struct hl_rules **rules, const char *text, size_t len, const char *name,
		   struct hl_error *err);
void hl_rules_free(struct hl_rules *rules);
uint32_t hl_rules_count(const struct hl_rules *rules);

enum hl_finding_kind {
	HL_FINDING_BROKEN,	/* a rule that a type does not keep */
	HL_FINDING_UNKNOWN,	/* a rule about a type or a member that is not there */
	HL_FINDING_STALE,	/* an accepted fault that is no more */
	HL_FINDING_CONDITION,	/* a rule that holds only for objects that begin a line */
};

struct hl_finding {
	enum hl_finding_kind kind;
	unsigned line;			/* in the file */
	const char *rule;		/* as the file has it; the rules own it */
	struct hl_subject subject;	/* what it is about; type 0 when it is not known */
	char *said;			/* what was found */
};

struct hl_check {
	const char *rules_path;		/* NULL when there are none */
	struct hl_ranking faults;	/* those that are not accepted, worst first */
	struct hl_finding *finding;	/* in the order of the file */
	uint32_t n, room;
	uint32_t accepted;		/* faults */
	uint32_t rules;			/* rules that were looked at */
	bool broken, unknown, stale;	/* there is such a finding, or a fault */
};

/* Holds the ranking of the survey against the rules, which may be NULL.  0 or
 * -ENOMEM; the check is to be freed in either case and may not outlive the rules. */
int hl_check_run(struct hl_check *check, const struct hl_rules *rules,
		 const struct hl_survey *survey, const struct hl_ranking *ranking);
void hl_check_free(struct hl_check *check);

/* Adds a file that accepts all faults of the survey: the rules (or NULL) as they
 * were written, without accepted faults that are no more, and a line for each
 * fault that they did not accept.  Sets how many these are. */
int hl_rules_write(struct hl_text *text, const struct hl_rules *rules,
		   const struct hl_survey *survey, const struct hl_check *check, uint32_t *added);

#endif
