/* SPDX-License-Identifier: MIT */
/*
 * Inside the room: C declarators, for what writes them in columns or with names
 * of its own.
 */
#ifndef HL_LAYOUT_DECLARE_H
#define HL_LAYOUT_DECLARE_H

#include "debuginfo/debuginfo.h"
#include "debuginfo/text.h"

struct hl_declarator {
	struct hl_text *text;
	const struct hl_types *types;
	unsigned type_width; /* columns that the type takes at least; 0: no columns */
	void *arg; /* for the two below */
	/* The name of a type; NULL: the one it has. */
	const char *(*name_of)(void *arg, hl_type_id id);
	/* Writes an unnamed struct, union or enum; NULL: in one line. */
	void (*unnamed)(void *arg, hl_type_id id);
	bool c_only; /* classes become structs */
	bool no_open_arrays; /* int a[] is written as int a[0] */

	size_t start; /* where the declaration began */
	bool apart; /* the room between type and declarator is there */
	unsigned depth, steps; /* of what a damaged file can blow up */
};

/* Adds the declaration of name (NULL: an abstract one). */
void hl_declarator_write(struct hl_declarator *d, hl_type_id id, const char *name);

/* "struct", "class" (in C: "struct"), "union" or "enum". */
const char *hl_keyword(const struct hl_type *type, bool c_only);

/* Adds the value of an enumerator. */
void hl_write_enumerator(struct hl_text *text, const struct hl_type *type,
			 const struct hl_member *member);

#endif
