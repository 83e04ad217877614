// SPDX-License-Identifier: MIT
#include "layout/rank.h"

#include "layout/chunks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK		128
#define MAX_ORDINAL	0xffff

/* Between the survey, which leaves some faults out, and the sink of a caller. */
struct filter {
	const struct hl_survey *survey;
	hl_fault_sink *sink;
	void *arg;
	uint32_t ordinal;	/* of the next fault */
	int64_t only;		/* the one ordinal that is shown; -1: all */
};

static void pass(void *arg, const struct hl_fault *fault)
{
	struct filter *filter = arg;

	if (!(filter->survey->kinds & 1u << fault->kind) ||
	    fault->score < filter->survey->min_score)
		return;
	if (filter->only < 0 || filter->ordinal == filter->only)
		filter->sink(filter->arg, fault);
	filter->ordinal++;
}

/* A type that a file defines, unlike an enum, has faults. */
static int show(struct filter *filter, struct hl_subject subject, bool want_text)
{
	const struct hl_types *types = filter->survey->types;
	const struct hl_ruler *ruler = &filter->survey->ruler;

	if (subject.variable)
		return hl_faults_of_variable(types, subject.variable - 1, ruler, want_text, pass,
					     filter);
	if (types->type[subject.type].kind == HL_ENUM)
		return 0;
	return hl_faults_of_type(types, subject.type, ruler, want_text, pass, filter);
}

int hl_show_ranked(const struct hl_survey *survey, const struct hl_ranked *ranked, bool want_text,
		   hl_fault_sink *sink, void *arg)
{
	struct filter filter = { survey, sink, arg, 0, ranked->ordinal };

	return show(&filter, hl_survey_subject(survey, ranked->index), want_text);
}

int hl_show_subject(const struct hl_survey *survey, struct hl_subject subject, bool want_text,
		    hl_fault_sink *sink, void *arg)
{
	struct filter filter = { survey, sink, arg, 0, -1 };

	return show(&filter, subject, want_text);
}

/* ---- The ranking: chunks of subjects, each with a list of its own. ---- */

struct list {
	struct hl_ranked *at;
	uint32_t n, room;
	uint32_t index;		/* of the subject whose faults come in */
	uint32_t ordinal;
	bool failed;
};

static int grow(struct hl_ranked **at, uint32_t *room, uint32_t n)
{
	uint32_t more = *room ? *room : 64;

	while (more < n)
		more *= 2;
	if (more == *room)
		return 0;

	struct hl_ranked *moved = reallocarray(*at, more, sizeof(*moved));

	if (!moved)
		return -ENOMEM;
	*at = moved;
	*room = more;
	return 0;
}

static void remember(void *arg, const struct hl_fault *fault)
{
	struct list *list = arg;

	if (list->ordinal > MAX_ORDINAL)
		return;
	if (grow(&list->at, &list->room, list->n + 1)) {
		list->failed = true;
		return;
	}
	list->at[list->n++] = (struct hl_ranked){
		.index = list->index,
		.score = fault->score,
		.kind = fault->kind,
		.ordinal = list->ordinal++,
	};
}

struct rank_run {
	const struct hl_survey *survey;
	struct hl_ranking *ranking;
};

static int make_list(void *arg, void *scratch, uint32_t first, uint32_t n)
{
	const struct rank_run *run = arg;
	struct list *list = scratch;

	list->n = 0;
	for (uint32_t i = first; i < first + n; i++) {
		list->index = i;
		list->ordinal = 0;

		int status = hl_show_subject(run->survey, hl_survey_subject(run->survey, i), false,
					     remember, list);

		if (status || list->failed)
			return status ? status : -ENOMEM;
	}
	return 0;
}

static int take_list(void *arg, void *scratch)
{
	const struct rank_run *run = arg;
	struct hl_ranking *ranking = run->ranking;
	const struct list *list = scratch;

	if (grow(&ranking->fault, &ranking->room, ranking->n + list->n))
		return -ENOMEM;
	for (uint32_t i = 0; i < list->n; i++) {
		ranking->of_kind[list->at[i].kind]++;
		ranking->fault[ranking->n++] = list->at[i];
	}
	return 0;
}

static void drop_list(void *scratch)
{
	struct list *list = scratch;

	free(list->at);
}

/* A total order, so that it does not matter how the list is sorted. */
static int compare(const void *a, const void *b)
{
	const struct hl_ranked *x = a, *y = b;

	if (x->score != y->score)
		return x->score > y->score ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->index != y->index)
		return x->index < y->index ? -1 : 1;
	return x->ordinal < y->ordinal ? -1 : x->ordinal > y->ordinal;
}

int hl_rank(struct hl_ranking *ranking, const struct hl_survey *survey)
{
	struct rank_run run = { survey, ranking };
	const struct hl_chunks chunks = {
		.n = survey->n,
		.chunk = CHUNK,
		.threads = survey->threads,
		.scratch_size = sizeof(struct list),
		.arg = &run,
		.make = make_list,
		.take = take_list,
		.drop = drop_list,
	};

	*ranking = (struct hl_ranking){ 0 };

	int status = hl_chunks_run(&chunks);

	if (!status && ranking->n)
		qsort(ranking->fault, ranking->n, sizeof(*ranking->fault), compare);
	return status;
}

void hl_ranking_free(struct hl_ranking *ranking)
{
	free(ranking->fault);
	*ranking = (struct hl_ranking){ 0 };
}
