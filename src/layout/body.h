/* SPDX-License-Identifier: MIT */
/*
 * Inside the room: writes a struct, class, union or enum as C, with the attributes
 * and unnamed bit-fields that give it its layout; in pahole's picture or bare.
 */
#ifndef HL_LAYOUT_BODY_H
#define HL_LAYOUT_BODY_H

#include "layout/declare.h"
#include "layout/place.h"
#include "layout/shape.h"

struct hl_body_level;

struct hl_body {
	struct hl_text *text;
	const struct hl_types *types;
	unsigned line; /* bytes of a line; 0: bare C without a comment */
	void *arg;
	/* As in struct hl_declarator; NULL: types have their own names. */
	const char *(*name_of)(void *arg, hl_type_id id);
	/* The name of an enumerator; NULL: the one it has. */
	const char *(*enumerator)(void *arg, const struct hl_member *member);
	/* The alignment of a struct, class or union as it was written before; 0: its own. */
	uint32_t (*align_of)(void *arg, hl_type_id id);
	struct hl_shape *scratch; /* for the outermost type */
	const char *const *changed; /* as for hl_picture_of_placing() */

	struct hl_body_level *level; /* the innermost of the types being written */
	unsigned depth; /* how many are around it */
	uint64_t base; /* byte at which the innermost of them begins */
	uint64_t last_line; /* the last line boundary that was shown */
	uint32_t written; /* members so far of the types inside */
	uint64_t looked; /* members of their types that were looked at */
	bool blank; /* the last line is empty */
	int error;
};

/* Adds "struct NAME { ... } attributes" or "enum NAME { ... }" without what would
 * follow: a name, ";\n".  placing: the fields in another order than the type's own;
 * NULL: in that.  0, -ENOMEM. */
int hl_body_write(struct hl_body *body, hl_type_id id, const struct hl_placing *placing);

#endif
