// SPDX-License-Identifier: MIT
/*
 * hole: closing the holes saves at least one line.
 */
#include "find.h"
#include "weights.h"

#include <errno.h>

void hl_find_hole(struct hl_find *find)
{
	struct hl_placing proposal;
	uint64_t size = find->type->size, lines = hl_lines(size, find->line);

	if (lines < 2 || find->type->flags & HL_TYPE_PACKED || !hl_find_placed(find) ||
	    hl_lines(hl_placing_least(&find->placing), find->line) == lines ||
	    hl_find_is_grouped(find))
		return;
	if (hl_placing_copy(&proposal, &find->placing)) {
		find->rc = -ENOMEM;
		return;
	}
	if (!hl_place_smallest(&proposal, find->line) &&
	    hl_lines(proposal.size, find->line) < lines && !hl_find_is_format(find)) {
		uint64_t saved = lines - hl_lines(proposal.size, find->line);

		hl_text_printf(&find->evidence,
			       "%llu bytes in %llu lines, of which %llu bytes are holes "
			       "and padding that another order would not leave",
			       (unsigned long long)size, (unsigned long long)lines,
			       (unsigned long long)(size - proposal.size));
		hl_text_printf(&find->advice, "reorder the members: %llu bytes, %llu line%s less",
			       (unsigned long long)proposal.size, (unsigned long long)saved,
			       saved > 1 ? "s" : "");
		double score = HL_W_HOLE * (double)saved / (double)lines;

		/* It was told before, by another name. */
		if (find->reordered)
			score *= HL_W_HOLE_TOLD;
		hl_fault_report(find, HL_FAULT_HOLE, hl_score(score), &proposal, NULL);
	}
	hl_placing_free(&proposal);
}
