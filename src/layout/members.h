/* SPDX-License-Identifier: MIT */
/*
 * Members by name, as code names them: those of anonymous structs and unions
 * plainly, those inside others by a path.
 */
#ifndef HL_LAYOUT_MEMBERS_H
#define HL_LAYOUT_MEMBERS_H

#include "debuginfo/debuginfo.h"

struct hl_named {
	const char *name;	/* of a base class, the class's */
	hl_type_id type;
	uint64_t bit_offset;	/* from the start of the outermost struct, byte * 8 + bit */
	uint64_t bits;		/* its size */
};

static inline uint64_t hl_named_first(const struct hl_named *named)
{
	return named->bit_offset / 8;
}

/* The last byte; of what has no size, the byte where it would begin. */
static inline uint64_t hl_named_last(const struct hl_named *named)
{
	return (named->bit_offset + (named->bits ? named->bits - 1 : 0)) / 8;
}

/* Calls visit for each member that has a name, and for base classes, in their
 * order, until it returns false.  Virtual bases, whose place is not known, are
 * left out. */
void hl_named_each(const struct hl_types *types, hl_type_id id,
		   bool (*visit)(void *arg, const struct hl_named *named), void *arg);

/* Finds "a", "a.b", "a[3].b"; members of base classes by their own name.  False
 * when there is none. */
bool hl_named_find(const struct hl_types *types, hl_type_id id, const char *path,
		   struct hl_named *found);

#endif
