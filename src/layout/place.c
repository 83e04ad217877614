// SPDX-License-Identifier: MIT
#include "place.h"

#include "cursor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Sizes come from a file; a struct that would grow past this stays here. */
#define MAX_BITS ((uint64_t)1 << 60)

static uint64_t clamp_bits(uint64_t bits)
{
	return bits < MAX_BITS ? bits : MAX_BITS;
}

static uint64_t field_bits(const struct hl_field *field)
{
	return field->bits ? field->bits : clamp_bits(field->data_size) * 8;
}

/* System V: a bit-field goes to the next free bit, unless it would cross a boundary
 * of its declared type there. */
static uint64_t bit_field_start(uint64_t end, const struct hl_placing *placing,
				const struct hl_field *field)
{
	uint64_t align = (uint64_t)field->align * 8;
	uint64_t start = end;

	if (field->flags & HL_FIELD_NEW_UNIT)
		start = hl_round_up(start, align);
	start += field->pad;
	if (placing->packed || field->flags & HL_FIELD_PACKED)
		return start;
	if (start % align + field->bits > clamp_bits(field->size) * 8)
		start = hl_round_up(start, align);
	return start;
}

struct hl_cursor hl_cursor_begin(const struct hl_placing *placing)
{
	return (struct hl_cursor){ .align = placing->min_align };
}

uint64_t hl_cursor_put(struct hl_cursor *cursor, const struct hl_placing *placing,
		       const struct hl_field *field, unsigned line)
{
	uint64_t start = placing->overlay ? 0 : cursor->end;
	uint32_t align = field->align;

	if (field->flags & HL_FIELD_NEW_LINE) {
		start = hl_round_up(start, (uint64_t)line * 8);
		if (align < line)
			align = line;
	}
	if (field->bits)
		start = bit_field_start(start, placing, field);
	else
		start = hl_round_up(hl_round_up(start, 8) + field->pad, (uint64_t)align * 8);
	start = clamp_bits(start);
	if (cursor->align < align)
		cursor->align = align;

	uint64_t end = clamp_bits(start + field_bits(field));
	uint64_t reach = field->bits ? 0 : start / 8 + field->size;

	if (!placing->overlay || cursor->end < end)
		cursor->end = end;
	if (cursor->reach < reach)
		cursor->reach = reach;
	return start;
}

uint64_t hl_cursor_size(const struct hl_cursor *cursor, const struct hl_placing *placing)
{
	uint64_t end = hl_round_up(cursor->end, 8) / 8;

	if (end < cursor->reach)
		end = cursor->reach;
	return hl_round_up(end + placing->tail, cursor->align);
}

void hl_place(struct hl_placing *placing, unsigned line)
{
	struct hl_cursor cursor = hl_cursor_begin(placing);

	for (uint32_t i = 0; i < placing->n; i++)
		placing->field[i].bit_offset =
			hl_cursor_put(&cursor, placing, &placing->field[i], line);
	placing->size = hl_cursor_size(&cursor, placing);
	placing->align = cursor.align;
}

uint64_t hl_placing_least(const struct hl_placing *placing)
{
	uint64_t bits = 0;

	for (uint32_t i = 0; i < placing->n; i++)
		bits = clamp_bits(bits + field_bits(&placing->field[i]));
	return bits / 8;
}

int hl_placing_copy(struct hl_placing *to, const struct hl_placing *from)
{
	struct hl_field *field = malloc((from->n ? from->n : 1) * sizeof(*field));

	if (!field)
		return -ENOMEM;
	if (from->n)
		memcpy(field, from->field, from->n * sizeof(*field));
	*to = *from;
	to->field = field;
	to->room = from->n;
	return 0;
}

void hl_placing_free(struct hl_placing *placing)
{
	free(placing->field);
	*placing = (struct hl_placing){ 0 };
}
