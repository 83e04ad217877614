/* SPDX-License-Identifier: MIT */
/*
 * What a report is about: one of the types that a file defines, or a variable.
 * How it is called, and how what a user types is matched with it.
 */
#ifndef HL_LAYOUT_SUBJECT_H
#define HL_LAYOUT_SUBJECT_H

#include "debuginfo/debuginfo.h"
#include "debuginfo/text.h"

struct hl_subject {
	hl_type_id type;	/* the type, or that of the variable */
	uint32_t variable;	/* 1 + index into hl_types.variable; 0: the type itself */
};

/* All subjects of a file are numbered: the types it defines, then its variables. */
static inline uint32_t hl_n_subjects(const struct hl_types *types)
{
	return types->n_defined + types->n_variables;
}

static inline struct hl_subject hl_subject_at(const struct hl_types *types, uint32_t i)
{
	if (i < types->n_defined)
		return (struct hl_subject){ types->defined[i], 0 };
	i -= types->n_defined;
	return (struct hl_subject){ types->variable[i].type, i + 1 };
}

/* A number that no other subject of the file has: the type's own id, and beyond
 * all types for variables. */
static inline uint32_t hl_subject_id(const struct hl_types *types, struct hl_subject subject)
{
	return subject.variable ? types->n_types + subject.variable - 1 : subject.type;
}

/* "struct", "union", "class", "enum", "variable", whatever names the type. */
const char *hl_subject_kind(const struct hl_types *types, struct hl_subject subject);

/* Adds the name with its namespaces, without the kind: "ns::foo". */
void hl_subject_bare_name(struct hl_text *text, const struct hl_types *types,
			  struct hl_subject subject);

/* Adds the name as C would have it: "struct ns::foo", or "foo" where a typedef
 * names it; "variable foo". */
void hl_subject_name(struct hl_text *text, const struct hl_types *types,
		     struct hl_subject subject);

/* Where it was declared: the line, and the file or NULL when it is not known. */
const char *hl_subject_file(const struct hl_types *types, struct hl_subject subject,
			    uint32_t *line);

/* Adds "file.c:12"; false and nothing when it is not known. */
bool hl_subject_declared(struct hl_text *text, const struct hl_types *types,
			 struct hl_subject subject);

/* Whether the query means it.  A query is a name, with as many namespaces as it
 * takes, with or without template arguments, and with or without one of the
 * words struct, union, class, enum, typedef, variable in front.  A leading ::
 * says that it stands in no namespace. */
bool hl_subject_matches(const struct hl_types *types, struct hl_subject subject,
			const char *query);

struct hl_subjects {
	struct hl_subject *at;
	uint32_t n, room;
};

/* Adds all that the query means and that is not there yet: types of that name,
 * those that typedefs of that name stand for, variables; enums if there is
 * nothing else.  The number of matches, or -ENOMEM. */
int hl_subjects_find(struct hl_subjects *found, const struct hl_types *types, const char *query);
/* Adds one unless it is there already.  0 or -ENOMEM. */
int hl_subjects_add(struct hl_subjects *found, struct hl_subject subject);
void hl_subjects_free(struct hl_subjects *found);

/* Adds why a query found nothing, and what to do: names close to it, a type that
 * is only declared, that compilers drop what no code uses. */
void hl_subjects_why_none(struct hl_text *text, const struct hl_types *types, const char *query);

#endif
