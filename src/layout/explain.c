// SPDX-License-Identifier: MIT
/*
 * From the offsets that the compiler gave to the fields that give them: what is
 * natural, what was aligned or packed by hand, where room was left on purpose.
 * DWARF 5 tells what was aligned, older DWARF and BTF do not, and none what was packed.
 */
#include "cursor.h"
#include "place.h"
#include "shape.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

/* No larger alignment is put down to an attribute: that of the largest huge page. */
#define MAX_ALIGN ((uint64_t)1 << 30)

struct explaining {
	const struct hl_types *types;
	const struct hl_type *type;
	struct hl_placing *placing;
	bool loose; /* nothing that asks for alignment counts */
	struct hl_cursor before; /* without the last field that was placed ... */
	struct hl_cursor cursor; /* ... and with it */
};

static uint32_t said_align(uint8_t align_log2)
{
	return align_log2 ? (uint32_t)1 << (align_log2 - 1) : 1;
}

/* An array without elements, or a struct that ends in one: what is behind it in
 * memory may be its own. */
static bool ends_open(const struct hl_types *types, hl_type_id id)
{
	for (int depth = 0; depth < HL_MAX_DEPTH; depth++) {
		const struct hl_type *type = &types->type[hl_type_strip(types, id)];

		if (type->kind == HL_ARRAY)
			return !hl_type_size(types, id);
		if (!hl_kind_is_aggregate(type->kind) || !type->count)
			return false;
		id = types->member[type->first + type->count - 1].type;
	}
	return false;
}

/* The alignment that the member has in a packed struct. clang tells that of its type
 * even then; what the struct's size has no room for is not so. An unnamed member has
 * no attributes but those of its type, which do not count there. */
static uint32_t packed_align(const struct explaining *x, const struct hl_member *member)
{
	uint32_t said = said_align(member->align_log2);

	if (x->loose || !member->name || x->type->size % said || member->bit_offset / 8 % said)
		return 1;
	return said;
}

/* Whether what is told of a member that is not packed has to do with where it lies: not
 * so for a bit-field and for an unnamed member where its type has as much. */
static bool says_align(const struct explaining *x, const struct hl_member *member)
{
	uint32_t said = said_align(member->align_log2);
	uint32_t natural = hl_type_align(x->types, member->type);

	if (!member->align_log2 || (member->bit_size && said < natural))
		return false;
	return member->name || (said > natural && !(hl_member_size(x->types, member) % said));
}

/* No member is more aligned than the whole, whose size shows that: something inside
 * such a member's type is packed and does not show. */
static uint32_t member_align(const struct explaining *x, const struct hl_member *member)
{
	uint32_t natural = hl_type_align(x->types, member->type);

	if (x->placing->packed)
		return packed_align(x, member);
	if (says_align(x, member))
		return said_align(member->align_log2);
	while (member->name && !member->bit_size && x->type->size % natural)
		natural /= 2;
	return natural;
}

static void fill_field(struct hl_field *field, const struct explaining *x, uint32_t index)
{
	const struct hl_member *member = &x->types->member[index];

	*field = (struct hl_field){
		.member = index,
		.size = hl_member_size(x->types, member),
		.bits = member->bit_size,
		.align = member_align(x, member),
		.bit_offset = member->bit_offset,
	};
	if (member->flags & (HL_MEMBER_BASE | HL_MEMBER_VPTR))
		field->flags |= HL_FIELD_FIXED;
	if (member->flags & HL_MEMBER_BASE && !hl_shape_used_bytes(x->types, member->type))
		field->size = 0;
	if (field->bits && said_align(member->align_log2) > hl_type_align(x->types, member->type))
		field->flags |= HL_FIELD_NEW_UNIT;
	field->data_size = field->size;
}

/* Which fields move together, which not at all. */
static void bind_fields(struct hl_placing *placing, const struct hl_types *types)
{
	struct hl_field *field = placing->field;
	uint32_t last = placing->n;

	while (last && !field[last - 1].bits && !(field[last - 1].flags & HL_FIELD_FIXED) &&
	       ends_open(types, types->member[field[last - 1].member].type))
		field[--last].flags |= HL_FIELD_LAST;
	for (uint32_t i = 1; i < last; i++)
		if (field[i].bits && field[i - 1].bits)
			field[i].flags |= HL_FIELD_WITH_PREVIOUS;
}

static uint64_t try_field(const struct explaining *x, const struct hl_field *field)
{
	struct hl_cursor cursor = x->cursor;

	return hl_cursor_put(&cursor, x->placing, field, 1);
}

/* The smallest power of two that moves `from` to `to` bytes; 0: none does, or the
 * file would have told. */
static uint64_t explaining_align(const struct explaining *x, uint64_t from, uint64_t to,
				 uint64_t at_least)
{
	uint64_t align = at_least;

	if (!x->types->align_untold || x->loose)
		return 0;
	while (align <= to - from && align < MAX_ALIGN)
		align *= 2;
	return hl_round_up(from, align) == to ? align : 0;
}

/* The attribute of an unnamed member is that of its type, which has a size to match. */
static bool can_be_aligned(const struct explaining *x, const struct hl_field *field, uint64_t align)
{
	return x->types->member[field->member].name ||
	       (!x->placing->packed && !(field->size % align));
}

/* A field that is not where the next free place is: aligned by hand, if the file would
 * not tell and the whole can be as aligned as that, or behind unnamed bit-fields. */
static void explain_gap(struct explaining *x, struct hl_field *field)
{
	hl_type_id type = hl_type_strip(x->types, x->types->member[field->member].type);
	uint32_t natural = x->types->type[type].align_log2 ? 1 : hl_type_align(x->types, type);
	uint64_t end = hl_round_up(x->cursor.end, 8) / 8;
	uint64_t start = field->bit_offset / 8;
	uint64_t align = explaining_align(x, end, start, (uint64_t)field->align * 2);

	/* clang tells an attribute also where it asks for less than the type does. */
	if (natural > field->align && hl_round_up(end, natural) == start && !x->placing->packed)
		field->align = natural;
	else if (align && !(x->type->size % align) && can_be_aligned(x, field, align))
		field->align = (uint32_t)align;
	else
		field->pad = (start - end) * 8;
}

static void explain_bit_gap(struct explaining *x, struct hl_field *field)
{
	uint64_t unit = (uint64_t)field->align * 8;

	if (!x->placing->packed && hl_round_up(x->cursor.end, unit) == field->bit_offset)
		field->flags |= HL_FIELD_NEW_UNIT;
	else
		field->pad = field->bit_offset - x->cursor.end;
}

/* A base class's tail padding may hold what follows it. */
static bool hand_over_tail(struct explaining *x, struct hl_field *field)
{
	struct hl_field *last = field - 1;

	if (field == x->placing->field || !(last->flags & HL_FIELD_FIXED) || last->bits)
		return false;
	last->data_size = hl_shape_used_bytes(x->types, x->types->member[last->member].type);
	x->cursor = x->before;
	hl_cursor_put(&x->cursor, x->placing, last, 1);
	return x->cursor.end <= field->bit_offset;
}

static int explain_field(struct explaining *x, struct hl_field *field)
{
	if (field->bits ? !field->size : field->bit_offset % 8)
		return -ENOTSUP;
	if (!x->placing->overlay && field->bit_offset < x->cursor.end && !hand_over_tail(x, field))
		return -ENOTSUP;
	if (try_field(x, field) > field->bit_offset) {
		field->flags |= HL_FIELD_PACKED;
		field->align = 1;
	}

	uint64_t start = try_field(x, field);

	if (start < field->bit_offset && field->bits)
		explain_bit_gap(x, field);
	else if (start < field->bit_offset)
		explain_gap(x, field);
	x->before = x->cursor;
	start = hl_cursor_put(&x->cursor, x->placing, field, 1);
	return start == field->bit_offset ? 0 : -ENOTSUP;
}

/* The alignment that makes the used bytes the size: the one that the type is known
 * to have, or the smallest that would; 0: none does. */
static uint64_t size_align(const struct explaining *x, hl_type_id id, uint64_t used)
{
	uint32_t known = hl_type_align(x->types, id);
	bool counts = !x->placing->packed || x->types->align_untold || x->type->align_log2;

	if (x->loose)
		return 0;
	if (counts && known > x->cursor.align && hl_round_up(used, known) == x->type->size)
		return known;
	return explaining_align(x, used, x->type->size, (uint64_t)x->cursor.align * 2);
}

static int explain_size(struct explaining *x, hl_type_id id)
{
	struct hl_placing *placing = x->placing;
	uint64_t size = hl_cursor_size(&x->cursor, placing);

	if (size < x->type->size) {
		struct hl_cursor end = x->cursor;

		end.align = 1;

		uint64_t used = hl_cursor_size(&end, placing);
		uint64_t align = size_align(x, id, used);

		if (align)
			placing->min_align = (uint32_t)align;
		else
			placing->tail = x->type->size - used;
		if (x->cursor.align < placing->min_align)
			x->cursor.align = placing->min_align;
		size = hl_cursor_size(&x->cursor, placing);
	}
	placing->size = size;
	placing->align = x->cursor.align;
	return size == x->type->size ? 0 : -ENOTSUP;
}

static int explain_as(struct explaining *x, hl_type_id id, bool packed)
{
	struct hl_placing *placing = x->placing;
	int error = 0;

	placing->packed = packed;
	placing->tail = 0;
	placing->min_align = x->loose ? 1 : said_align(x->type->align_log2);
	x->cursor = hl_cursor_begin(placing);
	for (uint32_t i = 0; !error && i < placing->n; i++) {
		fill_field(&placing->field[i], x, x->type->first + i);
		error = explain_field(x, &placing->field[i]);
	}
	return error ? error : explain_size(x, id);
}

static bool is_known_form(const struct hl_types *types, const struct hl_type *type)
{
	if (!hl_kind_is_aggregate(type->kind) || type->flags & HL_TYPE_DECLARATION ||
	    type->language == HL_LANG_RUST)
		return false;
	for (uint32_t i = 0; i < type->count; i++)
		if (types->member[type->first + i].flags & HL_MEMBER_VIRTUAL)
			return false;
	return true;
}

/* Makes room for n fields and empties all else. */
static int reset(struct hl_placing *placing, uint32_t n)
{
	struct hl_field *field = placing->field;
	uint32_t room = placing->room;

	if (n > room) {
		room = n < 32 ? 32 : n;
		field = realloc(field, room * sizeof(*field));
		if (!field)
			return -ENOMEM;
	}
	*placing = (struct hl_placing){ .field = field, .n = n, .room = room };
	return 0;
}

static bool is_odd(const struct explaining *x, const struct hl_field *field)
{
	const struct hl_member *member = &x->types->member[field->member];

	return field->pad || field->flags & HL_FIELD_PACKED ||
	       field->align > member_align(x, member) ||
	       (!x->placing->packed && !field->bits &&
		field->align < hl_type_align(x->types, member->type));
}

/* How much had to be made up beside the types of the members. */
static unsigned unlikeliness(const struct explaining *x, hl_type_id id)
{
	const struct hl_placing *placing = x->placing;
	unsigned odd = placing->tail != 0;

	for (uint32_t i = 0; i < placing->n; i++)
		odd += is_odd(x, &placing->field[i]);
	return 2 * odd + (placing->align != (x->type->align_log2 ? said_align(x->type->align_log2)
								 : hl_type_align(x->types, id)));
}

/* As packed or not, whichever explains more. */
static int explain_either(struct explaining *x, hl_type_id id)
{
	bool packed = x->type->flags & HL_TYPE_PACKED;
	int error = explain_as(x, id, packed);
	unsigned odd = error ? UINT_MAX : unlikeliness(x, id);

	if (!odd || (!explain_as(x, id, !packed) && unlikeliness(x, id) < odd))
		return 0;
	return explain_as(x, id, packed);
}

static int explain(struct hl_placing *placing, const struct hl_types *types, hl_type_id id,
		   bool loose)
{
	struct explaining x = {
		.types = types,
		.type = &types->type[hl_type_strip(types, id)],
		.placing = placing,
		.loose = loose,
	};

	if (!is_known_form(types, x.type))
		return -ENOTSUP;

	int error = reset(placing, x.type->count);

	if (error)
		return error;
	placing->overlay = x.type->kind == HL_UNION;
	error = loose ? explain_as(&x, id, true) : explain_either(&x, id);
	if (!error)
		bind_fields(placing, types);
	return error;
}

int hl_placing_explain(struct hl_placing *placing, const struct hl_types *types, hl_type_id id)
{
	return explain(placing, types, id, false);
}

int hl_placing_explain_loose(struct hl_placing *placing, const struct hl_types *types,
			     hl_type_id id)
{
	return explain(placing, types, id, true);
}

/* Room that was left on purpose, but not between bit-fields, has a meaning that
 * only the source tells. */
static bool is_unexplained(const struct hl_placing *placing)
{
	for (uint32_t i = 0; i < placing->n; i++)
		if (placing->field[i].pad && !placing->field[i].bits)
			return true;
	return placing->tail;
}

int hl_placing_of(struct hl_placing *placing, const struct hl_types *types, hl_type_id id)
{
	*placing = (struct hl_placing){ 0 };

	int error = hl_placing_explain(placing, types, id);

	if (!error && (placing->overlay || is_unexplained(placing)))
		error = -ENOTSUP;
	if (error)
		hl_placing_free(placing);
	return error;
}
