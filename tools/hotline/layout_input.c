// SPDX-License-Identifier: MIT
#include "layout.h"

#include "complain.h"
#include "layout/chunks.h"
#include "layout/look.h"
#include "progress.h"

#include <errno.h>
#include <string.h>

static int read_types(struct layout_input *input, const struct layout_options *options,
		      const char *path)
{
	struct hl_types_options how = options->types;
	struct progress progress;
	struct hl_error err = { "" };
	int status;

	progress_begin(&progress, path);
	how.progress = progress_show;
	how.progress_arg = &progress;
	status = hl_types_open(&input->types, path, &how, &err);
	progress_end(&progress);
	if (!status)
		return 0;
	input->types = NULL;
	if (*err.text)
		complain("%s", err.text);
	else
		complain_of(status, path);
	return -1;
}

/* The type behind arrays, typedefs and qualifiers. */
static hl_type_id element_of(const struct hl_types *types, hl_type_id id)
{
	for (int depth = 0; depth < HL_MAX_DEPTH; depth++) {
		id = hl_type_strip(types, id);
		if (types->type[id].kind != HL_ARRAY)
			break;
		id = types->type[id].target;
	}
	return id;
}

static void count_fault(void *arg, const struct hl_fault *fault)
{
	(void)fault;
	++*(unsigned *)arg;
}

/* Adds the variables of a type asked for about which there is something to say. */
static int add_variables(struct layout_input *input)
{
	const struct hl_types *types = input->types;
	uint32_t n_types = input->asked.n;

	for (uint32_t i = 0; i < types->n_variables; i++) {
		struct hl_subject variable = hl_subject_at(types, types->n_defined + i);
		hl_type_id element = element_of(types, variable.type);
		unsigned faults = 0;

		for (uint32_t k = 0; k < n_types; k++) {
			struct hl_subject asked = input->asked.at[k];

			if (asked.variable || hl_type_strip(types, asked.type) != element)
				continue;
			if (hl_show_subject(&input->survey, variable, false, count_fault, &faults) ||
			    (faults && hl_subjects_add(&input->asked, variable)))
				return -ENOMEM;
			break;
		}
	}
	return 0;
}

/* Finds what the names ask for; says which are not there. */
static int find_asked(struct layout_input *input, const char *path, char **name, uint32_t n,
		      enum layout_missing missing)
{
	int status = 0;

	for (uint32_t i = 0; i < n && status >= 0; i++) {
		struct hl_text why = HL_TEXT_INIT;

		status = hl_subjects_find(&input->asked, input->types, name[i]);
		if (status || missing == LAYOUT_MAY_BE_MISSING)
			continue;
		input->missing = true;
		hl_subjects_why_none(&why, input->types, name[i]);
		if (why.failed)
			status = -ENOMEM;
		else
			complain("%s: %s", path, why.at);
		hl_text_free(&why);
	}
	return status < 0 ? status : add_variables(input);
}

/* A file in which the compiler left no struct gives no answer. */
static int nothing_defined(const char *path)
{
	complain("%s: defines no struct, union or class.\nA compiler drops types that no code "
		 "uses; -fno-eliminate-unused-debug-types keeps them.", path);
	return -1;
}

int layout_input_open(struct layout_input *input, const struct layout_options *options,
		      const char *path, char **name, uint32_t n, enum layout_missing missing)
{
	static const struct hl_subject none;
	int status;

	*input = (struct layout_input){ 0 };
	if (read_types(input, options, path))
		return -1;
	if (!input->types->n_defined && !n)
		return nothing_defined(path);
	input->survey = (struct hl_survey){
		.types = input->types,
		.ruler = options->ruler,
		.n = hl_n_subjects(input->types),
		.kinds = options->kinds,
		.min_score = options->min_score,
		.threads = hl_chunks_threads(options->types.threads),
	};
	input->looks = hl_looks_build(input->types);
	if (!input->looks) {
		complain_of(-ENOMEM, path);
		return -1;
	}
	input->survey.ruler.looks = input->looks;
	status = find_asked(input, path, name, n, missing);
	if (!status && n) {
		if (!input->asked.n && missing == LAYOUT_MUST_EXIST)
			return -1;
		input->survey.subject = input->asked.n ? input->asked.at : &none;
		input->survey.n = input->asked.n;
	}
	if (!status)
		status = hl_rank(&input->ranking, &input->survey);
	if (!status)
		return 0;
	complain_of(status, path);
	return -1;
}

void layout_input_close(struct layout_input *input)
{
	hl_ranking_free(&input->ranking);
	hl_subjects_free(&input->asked);
	if (input->looks)
		hl_looks_free(input->looks);
	input->looks = NULL;
	if (input->types)
		hl_types_close(input->types);
	input->types = NULL;
}
