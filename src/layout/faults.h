/* SPDX-License-Identifier: MIT */
/*
 * What is wrong with a type's layout, by name, with the evidence and a proposal.
 */
#ifndef HL_LAYOUT_FAULTS_H
#define HL_LAYOUT_FAULTS_H

#include "debuginfo/debuginfo.h"
#include "debuginfo/text.h"

enum hl_fault_kind {
	HL_FAULT_FALSE_ISOLATION,
	HL_FAULT_SHARED_SLOTS,
	HL_FAULT_STRADDLE,
	HL_FAULT_LOCK_BESIDE_READ_MOSTLY,
	HL_FAULT_JUST_OVER,
	HL_FAULT_CROSSING,
	HL_FAULT_HOLE,
	HL_N_FAULTS
};

/* "straddle", ...; never NULL for a valid kind. */
const char *hl_fault_name(enum hl_fault_kind kind);
/* The kind of a name, or -1. */
int hl_fault_by_name(const char *name);
/* One line: what it is. */
const char *hl_fault_title(enum hl_fault_kind kind);
/* Paragraphs for --explain: what is looked for, how the score is made, what to do. */
const char *hl_fault_explanation(enum hl_fault_kind kind);

struct hl_looks; /* layout/look.h: what the types of the file look like */

struct hl_ruler {
	unsigned line; /* bytes of a line, a power of two */
	bool pair; /* the prefetcher fetches pairs: what must not share is two lines apart */
	const struct hl_looks *looks; /* of the same types: hl_looks_build() */
};

/* One fault of one type.  What a sink is shown is valid during the call only. */
struct hl_fault {
	enum hl_fault_kind kind;
	hl_type_id type; /* one of hl_types.defined; 0 for a variable's fault */
	const struct hl_variable *variable; /* NULL for a type's fault */
	unsigned score; /* 1 to 1000, the worst first */
	const char *evidence; /* one line or several, no newline at the end */
	const char *const *members; /* the members it is about, by name (path for inner ones) */
	uint32_t n_members;
	uint64_t size, lines; /* with the proposal; 0 when there is none */
	const char *advice; /* what to do, in a sentence */
	const char *text; /* the proposal written out as code; "" unless want_text */
};

typedef void hl_fault_sink(void *arg, const struct hl_fault *fault);

/* Finds the faults of one type, or of a variable, and shows each to the sink in
 * the order of enum hl_fault_kind.  want_text: also write proposals out.
 * 0, -ENOMEM.  Any number of threads may look for faults at once. */
int hl_faults_of_type(const struct hl_types *types, hl_type_id id, const struct hl_ruler *ruler,
		      bool want_text, hl_fault_sink *sink, void *arg);
int hl_faults_of_variable(const struct hl_types *types, uint32_t index,
			  const struct hl_ruler *ruler, bool want_text, hl_fault_sink *sink,
			  void *arg);

/* Things worth knowing that are no faults: "needs aligned allocation", "a flexible
 * array inside is not last".  Adds each as a line. */
void hl_notes_of_type(struct hl_text *text, const struct hl_types *types, hl_type_id id,
		      const struct hl_ruler *ruler);

#endif
