/* SPDX-License-Identifier: MIT */
/*
 * What a program may pass on: a number, or a file of rules, one a line, # begins a comment:
 *
 *	transfers <= 5000		all processes together
 *	false <= 0			transfers for bytes that nobody else had touched
 *	struct conn: transfers <= 100	of one object, as reports name it
 *	accept used			whatever it costs
 *
 * An object with false or mixed sharing that no rule names is over the budget, unless the budget
 * is a number: then all false transfers together may be as many.
 */
#ifndef HL_LINES_BUDGET_H
#define HL_LINES_BUDGET_H

#include "lines/report.h"

struct hl_budget;

/* The text is that of the file, or a number.  0, -EINVAL with the reason in err, -ENOMEM. */
int hl_budget_parse(struct hl_budget **budget, const char *text, size_t n, const char *path,
		    struct hl_error *err);
/* What does not hold of the processes: an array of *n, which lasts as long as the budget.  0 or
 * -ENOMEM. */
int hl_budget_check(struct hl_budget *budget, const struct hl_lines_process *process,
		    uint32_t n_processes, const struct hl_over_budget **over, uint32_t *n);
void hl_budget_free(struct hl_budget *budget);

#endif
