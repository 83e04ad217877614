/* SPDX-License-Identifier: MIT */
/*
 * Types as C (C++ where they are C++), in pahole's picture: offsets and sizes
 * as comments, holes, padding, line boundaries.
 */
#ifndef HL_LAYOUT_PICTURE_H
#define HL_LAYOUT_PICTURE_H

#include "debuginfo/debuginfo.h"
#include "debuginfo/text.h"
#include "layout/place.h"
#include "layout/shape.h"

/* Adds the declaration of `name` (may be NULL or empty: an abstract declarator)
 * as an object of the type: "int (*fn[3])(void)", "struct foo *const p". */
void hl_declare(struct hl_text *text, const struct hl_types *types, hl_type_id id,
		const char *name);

/* Adds the picture of the type id, which is one of types->defined (or an enum).
 * The shape is scratch memory, zero at first, used again from call to call. */
int hl_picture(struct hl_text *text, const struct hl_types *types, hl_type_id id, unsigned line,
	       struct hl_shape *scratch);

/* Adds C that a compiler takes as it is and that gives each of the n types the
 * same size and offsets: all types they need first, in order, each once, then
 * _Static_asserts of every sizeof and offsetof.  -ENOTSUP with the reason in err for
 * what cannot be written in C (a C++ class with bases, a Rust enum). */
int hl_compilable(struct hl_text *text, const struct hl_types *types, const hl_type_id *ids,
		  uint32_t n, struct hl_error *err);

/* Adds the definition of the type id with its fields as `placing` has them (order,
 * HL_FIELD_NEW_LINE, min_align), offsets as comments, under the type's own name:
 * what a proposal shows.  changed[i], if not NULL, replaces the declaration of
 * member i of the type (index from the type's first) by the given text. */
int hl_picture_of_placing(struct hl_text *text, const struct hl_types *types, hl_type_id id,
			  const struct hl_placing *placing, unsigned line,
			  const char *const *changed);

#endif
