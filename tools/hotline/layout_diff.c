// SPDX-License-Identifier: MIT
#include "layout.h"

#include "complain.h"
#include "layout/diff.h"

static int report_diff(const struct layout_options *options, const struct layout_input *after,
		       const struct hl_diff *diff)
{
	const char *old = options->name[0], *new = options->name[1];
	struct hl_report report;
	struct output output;
	int status;

	output_open(&output, options->pager);
	layout_fill_report(&report, options, after, new, &output);
	status = options->format == LAYOUT_JSON ? hl_report_diff_json(&report, diff, old, new) :
						  hl_report_diff(&report, diff, old, new);
	if (status && status != output.error)
		complain_of(status, new);
	else
		status = 0;
	if (output_close(&output) || status)
		return STATUS_CANNOT_TELL;
	return diff->worse ? STATUS_FALLS_SHORT : STATUS_HOLDS;
}

/* Reads one side.  A type that was named may be in the other file only. */
static int open_side(struct layout_input *side, const struct layout_options *options,
		     const char *path)
{
	return layout_input_open(side, options, path, options->name + 2, options->n_names - 2,
				 LAYOUT_MAY_BE_MISSING);
}

/* Whether all types that were named are in one of the files at least; says which are not. */
static bool all_there(const struct layout_options *options, const struct layout_input *before,
		      const struct layout_input *after)
{
	struct hl_subjects found = { 0 };
	bool all = true;

	for (uint32_t i = 2; i < options->n_names; i++) {
		if (!hl_subjects_find(&found, before->types, options->name[i]) &&
		    !hl_subjects_find(&found, after->types, options->name[i])) {
			complain("no type %s in either file", options->name[i]);
			all = false;
		}
	}
	hl_subjects_free(&found);
	return all;
}

int layout_diff(const struct layout_options *options)
{
	struct layout_input before = { 0 }, after = { 0 };
	int status = STATUS_CANNOT_TELL;

	if (!open_side(&before, options, options->name[0]) &&
	    !open_side(&after, options, options->name[1]) &&
	    all_there(options, &before, &after)) {
		struct hl_diff diff;
		int failure = hl_diff_run(&diff,
					  (struct hl_diff_side){ &before.survey, &before.ranking },
					  (struct hl_diff_side){ &after.survey, &after.ranking });

		if (failure)
			complain_of(failure, options->name[1]);
		else
			status = report_diff(options, &after, &diff);
		hl_diff_free(&diff);
	}
	layout_input_close(&before);
	layout_input_close(&after);
	return status;
}
