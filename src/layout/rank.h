/* SPDX-License-Identifier: MIT */
/*
 * The faults of a whole file, worst first.  A ranking holds no texts: what is
 * shown is found a second time, with its text, when it is shown.
 */
#ifndef HL_LAYOUT_RANK_H
#define HL_LAYOUT_RANK_H

#include "debuginfo/debuginfo.h"
#include "layout/faults.h"
#include "layout/subject.h"

/* What is measured, and with what. */
struct hl_survey {
	const struct hl_types *types;
	struct hl_ruler ruler;
	const struct hl_subject *subject;	/* only these; NULL: all subjects of the file */
	uint32_t n;				/* how many these are; or all */
	unsigned kinds;				/* only faults whose 1 << enum hl_fault_kind is in it */
	unsigned min_score;			/* only faults of that score and above */
	unsigned threads;			/* at least 1 */
};

static inline struct hl_subject hl_survey_subject(const struct hl_survey *survey, uint32_t i)
{
	return survey->subject ? survey->subject[i] : hl_subject_at(survey->types, i);
}

struct hl_ranked {
	uint32_t index;			/* of the subject, for hl_survey_subject() */
	uint32_t score : 12;
	uint32_t kind : 4;		/* enum hl_fault_kind */
	uint32_t ordinal : 16;		/* how many faults the subject has before it */
};

struct hl_ranking {
	struct hl_ranked *fault;	/* worst first, then in the order of the file */
	uint32_t n, room;
	uint32_t of_kind[HL_N_FAULTS];	/* how many there are of each */
};

/* Finds all faults.  0 or -ENOMEM; the ranking is to be freed in either case. */
int hl_rank(struct hl_ranking *ranking, const struct hl_survey *survey);
void hl_ranking_free(struct hl_ranking *ranking);

/* Shows the sink one fault of a ranking, or all of a subject that the survey is after. */
int hl_show_ranked(const struct hl_survey *survey, const struct hl_ranked *ranked, bool want_text,
		   hl_fault_sink *sink, void *arg);
int hl_show_subject(const struct hl_survey *survey, struct hl_subject subject, bool want_text,
		    hl_fault_sink *sink, void *arg);

#endif
