/* SPDX-License-Identifier: MIT */
/*
 * The rules of a --check file as the parser leaves them for the check.
 */
#ifndef HL_LAYOUT_RULES_H
#define HL_LAYOUT_RULES_H

#include "layout/check.h"

enum hl_rule_kind {
	HL_RULE_ACCEPT,		/* the fault is accepted for the type */
	HL_RULE_GROUP,		/* word[0] names the members that follow it */
	HL_RULE_APART,		/* the members lie on different lines */
	HL_RULE_TOGETHER,	/* the members lie on one line */
	HL_RULE_WITHIN,		/* the members lie within the lines first to last */
	HL_RULE_AT,		/* the member lies at the offset first */
	HL_RULE_QUANTITY,	/* the quantity compares with first */
};

enum hl_quantity {
	HL_QUANTITY_SIZE,
	HL_QUANTITY_ALIGN,
	HL_QUANTITY_LINES,
	HL_QUANTITY_HOLES,
	HL_QUANTITY_PADDING,
	HL_N_QUANTITIES
};

/* What a user calls it. */
extern const char *const hl_quantity_name[HL_N_QUANTITIES];

enum hl_comparison { HL_LESS, HL_AT_MOST, HL_EQUAL, HL_UNEQUAL, HL_AT_LEAST, HL_MORE };

struct hl_rule {
	enum hl_rule_kind kind;
	unsigned line;			/* in the file */
	const char *text;		/* the statement as it was written, without its reason */
	const char *type;		/* a query for hl_subjects_find() */
	char **word;			/* the members */
	uint32_t n_words;
	uint64_t first, last;
	bool in_lines;			/* first is a number of lines */
	enum hl_quantity quantity;
	enum hl_comparison comparison;
	enum hl_fault_kind fault;
};

struct hl_rules {
	char *source;			/* the file as it was read */
	size_t len;
	char *words;			/* the same, cut up; what the rules point into */
	struct hl_rule *rule;		/* in the order of the file */
	uint32_t n, room;
};

#endif
