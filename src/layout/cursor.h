/* SPDX-License-Identifier: MIT */
/*
 * Inside the room: placing field after field, for what tries many orders.
 */
#ifndef HL_LAYOUT_CURSOR_H
#define HL_LAYOUT_CURSOR_H

#include "place.h"

struct hl_cursor {
	uint64_t end; /* bits: where the next field may begin */
	uint64_t reach; /* bytes: what the size must cover, more than end behind a base class */
	uint32_t align; /* of the whole so far */
};

struct hl_cursor hl_cursor_begin(const struct hl_placing *placing);
/* Places one field at the end; tells the bit it begins at. */
uint64_t hl_cursor_put(struct hl_cursor *cursor, const struct hl_placing *placing,
		       const struct hl_field *field, unsigned line);
/* The size of the whole if the fields placed so far were all. */
uint64_t hl_cursor_size(const struct hl_cursor *cursor, const struct hl_placing *placing);

static inline uint64_t hl_round_up(uint64_t value, uint64_t power)
{
	return (value + power - 1) & ~(power - 1);
}

#endif
