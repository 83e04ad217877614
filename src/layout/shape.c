// SPDX-License-Identifier: MIT
#include "shape.h"

#include <errno.h>
#include <stdlib.h>

/* A bit-field's storage unit is its declared type, unless that has no size that a
 * processor could load at once. */
#define MAX_UNIT_BYTES 64

/* Members that one question about virtual bases may look at: the bases of hostile
 * input can share their bases, so that paths are many more than types. */
#define MAX_BASE_STEPS 4096

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Sizes and offsets come from a file: sums stay at the top instead of wrapping. */
static uint64_t add_u64(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t bits_of(uint64_t bytes)
{
	return min_u64(bytes, HL_MAX_SIZE) * 8;
}

static uint16_t clamp_u16(uint64_t value)
{
	return (uint16_t)min_u64(value, UINT16_MAX);
}

static uint64_t round_up(uint64_t value, uint64_t step)
{
	return add_u64(value, (step - value % step) % step);
}

uint64_t hl_shape_used_bytes(const struct hl_types *types, hl_type_id id)
{
	const struct hl_type *type = &types->type[hl_type_strip(types, id)];

	if (!hl_kind_is_aggregate(type->kind))
		return hl_type_size(types, id);
	return type->size - min_u64(type->size, type->tail);
}

/* The aligned unit of its declared type in which the bit-field begins.  A bit-field
 * of a packed struct may run on into the next. */
static void place_in_unit(struct hl_slot *slot, uint64_t at, uint64_t unit, uint16_t bits)
{
	if (unit == 0 || unit > MAX_UNIT_BYTES)
		unit = 1;
	slot->size = unit;
	slot->offset = at / (unit * 8) * unit;
	slot->bit_offset = (uint16_t)(at % (unit * 8));
	slot->bit_size = bits;
}

static void fill_slot(struct hl_slot *slot, const struct hl_types *types, uint32_t index)
{
	const struct hl_member *member = &types->member[index];

	*slot = (struct hl_slot){ .member = index };
	if (member->bit_size) {
		place_in_unit(slot, member->bit_offset, hl_member_size(types, member),
			      member->bit_size);
		return;
	}
	slot->offset = member->bit_offset / 8;
	slot->size = hl_member_size(types, member);
	if ((member->flags & HL_MEMBER_BASE) && !hl_shape_used_bytes(types, member->type))
		slot->size = 0; /* an empty base takes no room */
}

/* Where a walk over the members, in the order of their offsets, has come to. */
struct walk {
	const struct hl_types *types;
	bool packed;
	uint64_t end; /* bits in use so far */
	uint64_t unit_end; /* where the storage of an open run of bit-fields ends, else end */
	struct hl_slot *last; /* NULL before the first */
};

static uint64_t slot_start(const struct hl_slot *slot)
{
	return slot->offset * 8 + slot->bit_offset;
}

static uint64_t slot_end(const struct hl_slot *slot)
{
	return slot->bit_size ? slot_start(slot) + slot->bit_size
			      : add_u64(slot_start(slot), bits_of(slot->size));
}

/* Where the unit of the bit-field ends, or the next if it runs over that end. */
static uint64_t slot_unit_end(const struct hl_slot *slot)
{
	uint64_t end = slot->offset * 8 + slot->size * 8;

	return slot_end(slot) > end ? end + slot->size * 8 : end;
}

/* Where the compiler would have put the member if nothing had been asked for. */
static uint64_t natural_start(const struct walk *walk, const struct hl_slot *slot)
{
	const struct hl_member *member = &walk->types->member[slot->member];
	uint64_t align = 8 * (uint64_t)hl_member_align(walk->types, member);

	if (walk->packed && !member->align_log2)
		align = 8;
	if (!slot->bit_size)
		return round_up(walk->end, align);
	if (walk->packed || walk->end % align + slot->bit_size <= slot->size * 8)
		return walk->end;
	return round_up(walk->end, align);
}

/* Splits what lies free between the end so far and the slot into bits and bytes:
 * bits up to the end of the storage unit before it and from the start of its own,
 * bytes between the two. */
static void split_gap(const struct walk *walk, const struct hl_slot *slot, uint64_t *bytes,
		      uint64_t *bits)
{
	uint64_t start = slot_start(slot);
	uint64_t from = min_u64(walk->unit_end, start);
	uint64_t to = max_u64(from, slot->bit_size ? slot->offset * 8 : start);

	*bits = from - walk->end + (start - to);
	*bytes = (to - from) / 8;
}

static void note_gap(struct hl_shape *shape, struct walk *walk, const struct hl_slot *slot)
{
	uint64_t bytes, bits;

	if (slot_start(slot) <= walk->end)
		return;
	split_gap(walk, slot, &bytes, &bits);
	if (walk->last) {
		walk->last->hole = bytes;
		walk->last->bit_hole = clamp_u16(bits);
		walk->last->asked = bits && slot_start(slot) > natural_start(walk, slot);
	} else {
		shape->lead = bytes;
		shape->lead_bits = clamp_u16(bits);
	}
	shape->holes += bytes != 0;
	shape->hole_bytes += bytes;
	shape->bit_holes += bits != 0;
	shape->hole_bits += clamp_u16(bits);
}

/* When the slot lies in the unused tail of the member before it (a C++ base, a member
 * with [[no_unique_address]]), that member ends where the slot begins. */
static void hand_over_tail(struct hl_shape *shape, struct walk *walk, const struct hl_slot *slot)
{
	uint64_t start = slot_start(slot);
	const struct hl_slot *last = walk->last;

	if (!last || last->bit_size || start >= walk->end || slot_end(last) != walk->end)
		return;
	if (!hl_kind_is_aggregate(
		    walk->types
			    ->type[hl_type_strip(walk->types,
						 walk->types->member[last->member].type)]
			    .kind))
		return;

	uint64_t used = hl_shape_used_bytes(walk->types, walk->types->member[last->member].type);

	if (slot_start(last) + bits_of(used) > start)
		return;
	shape->sum_members -= (walk->end - start) / 8;
	walk->end = start;
	walk->unit_end = start;
}

static void take_slot(struct hl_shape *shape, struct walk *walk, struct hl_slot *slot)
{
	uint64_t end = slot_end(slot);

	hand_over_tail(shape, walk, slot);
	note_gap(shape, walk, slot);
	if (slot->bit_size) {
		shape->sum_bits += slot->bit_size;
		walk->unit_end = max_u64(walk->unit_end, slot_unit_end(slot));
	} else if (end >= walk->end) {
		/* Bytes from here on are its, or free: no storage unit goes on, also where
		 * the member takes none, as a flexible array. */
		shape->sum_members += (end - max_u64(walk->end, slot_start(slot))) / 8;
		walk->unit_end = end;
	}
	walk->end = max_u64(walk->end, end);
	walk->unit_end = max_u64(walk->unit_end, walk->end);
	walk->last = slot;
}

/* Bytes that virtual bases take, at offsets that only the running program knows. */
static uint64_t virtual_bytes(const struct hl_types *types, const struct hl_type *type,
			      unsigned depth, unsigned *steps)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < type->count && depth < HL_MAX_DEPTH; i++) {
		const struct hl_member *member = &types->member[type->first + i];

		if (!(member->flags & HL_MEMBER_BASE))
			continue;
		if (++*steps > MAX_BASE_STEPS)
			break;
		if (member->flags & HL_MEMBER_VIRTUAL)
			sum = add_u64(sum, hl_type_size(types, member->type));
		sum = add_u64(sum,
			      virtual_bytes(types, &types->type[hl_type_strip(types, member->type)],
					    depth + 1, steps));
	}
	return sum;
}

static void note_padding(struct hl_shape *shape, const struct walk *walk,
			 const struct hl_type *type)
{
	uint64_t end = min_u64(walk->end, bits_of(type->size));
	uint64_t unit_end = min_u64(walk->unit_end, bits_of(type->size));
	unsigned steps = 0;

	if (type->kind == HL_UNION) {
		shape->padding = type->size - round_up(end, 8) / 8;
		return;
	}
	shape->bit_padding = clamp_u16(unit_end - end);
	shape->padding = type->size - round_up(unit_end, 8) / 8;
	if (type->language == HL_LANG_CXX && shape->padding)
		shape->padding -=
			min_u64(shape->padding, virtual_bytes(walk->types, type, 0, &steps));
}

static bool is_virtual(const struct hl_types *types, const struct hl_slot *slot)
{
	return types->member[slot->member].flags & HL_MEMBER_VIRTUAL;
}

/* Fills the slots in the order of the source; tells whether that is the order of
 * the offsets, too (it need not be in Rust and with [[no_unique_address]]). */
static bool fill_slots(struct hl_shape *shape, const struct hl_types *types,
		       const struct hl_type *type)
{
	bool ordered = true;
	uint64_t before = 0;

	for (uint32_t i = 0; i < type->count; i++) {
		struct hl_slot *slot = &shape->slot[i];

		fill_slot(slot, types, type->first + i);
		if (is_virtual(types, slot))
			continue;
		ordered = ordered && slot_start(slot) >= before;
		before = slot_start(slot);
	}
	shape->n_slots = type->count;
	return ordered;
}

static int compare_slots(const void *a, const void *b)
{
	const struct hl_slot *x = *(struct hl_slot *const *)a, *y = *(struct hl_slot *const *)b;
	uint64_t start_x = slot_start(x), start_y = slot_start(y);

	if (start_x != start_y)
		return start_x < start_y ? -1 : 1;
	return x->member < y->member ? -1 : x->member > y->member;
}

static int walk_sorted(struct hl_shape *shape, struct walk *walk)
{
	struct hl_slot **order = malloc(shape->n_slots * sizeof(*order));

	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < shape->n_slots; i++)
		order[i] = &shape->slot[i];
	qsort(order, shape->n_slots, sizeof(*order), compare_slots);
	for (uint32_t i = 0; i < shape->n_slots; i++)
		if (!is_virtual(walk->types, order[i]))
			take_slot(shape, walk, order[i]);
	free(order);
	return 0;
}

static void walk_in_order(struct hl_shape *shape, struct walk *walk)
{
	for (uint32_t i = 0; i < shape->n_slots; i++)
		if (!is_virtual(walk->types, &shape->slot[i]))
			take_slot(shape, walk, &shape->slot[i]);
}

/* All members of a union begin where it does: the longest is its extent. */
static void walk_union(struct hl_shape *shape, struct walk *walk)
{
	for (uint32_t i = 0; i < shape->n_slots; i++) {
		const struct hl_slot *slot = &shape->slot[i];

		shape->sum_bits += slot->bit_size;
		if (!slot->bit_size)
			shape->sum_members = max_u64(shape->sum_members, slot->size);
		walk->end = max_u64(walk->end, slot_end(slot));
	}
}

/* Makes room for n slots and empties all else. */
static int reset(struct hl_shape *shape, uint32_t n)
{
	struct hl_slot *slot = shape->slot;
	uint32_t room = shape->slot_room;

	if (n > room) {
		room = n < 32 ? 32 : n;
		slot = realloc(slot, room * sizeof(*slot));
		if (!slot)
			return -ENOMEM;
	}
	*shape = (struct hl_shape){ .slot = slot, .slot_room = room };
	return 0;
}

static void set_extent(struct hl_shape *shape, uint64_t size, uint32_t align, unsigned line)
{
	shape->size = size;
	shape->align = align;
	shape->lines = size / line + (size % line != 0);
}

int hl_shape_measure(struct hl_shape *shape, const struct hl_types *types, hl_type_id id,
		     unsigned line)
{
	const struct hl_type *type = &types->type[hl_type_strip(types, id)];
	struct walk walk = { .types = types, .packed = type->flags & HL_TYPE_PACKED };
	int error = reset(shape, type->count);

	if (error)
		return error;
	set_extent(shape, type->size, hl_type_align(types, id), line);

	bool ordered = fill_slots(shape, types, type);

	if (type->kind == HL_UNION)
		walk_union(shape, &walk);
	else if (ordered)
		walk_in_order(shape, &walk);
	else
		error = walk_sorted(shape, &walk);
	if (!error)
		note_padding(shape, &walk, type);
	return error;
}

static void fill_placed_slots(struct hl_shape *shape, const struct hl_placing *placing)
{
	for (uint32_t i = 0; i < placing->n; i++) {
		const struct hl_field *field = &placing->field[i];
		struct hl_slot *slot = &shape->slot[i];

		*slot = (struct hl_slot){ .member = field->member };
		if (field->bits) {
			place_in_unit(slot, field->bit_offset, field->size, field->bits);
		} else {
			slot->offset = field->bit_offset / 8;
			slot->size = field->size;
		}
	}
	shape->n_slots = placing->n;
}

int hl_shape_measure_placing(struct hl_shape *shape, const struct hl_types *types, hl_type_id id,
			     const struct hl_placing *placing, unsigned line)
{
	struct hl_type type = types->type[hl_type_strip(types, id)];
	struct walk walk = { .types = types, .packed = placing->packed };
	int error = reset(shape, placing->n);

	if (error)
		return error;
	type.size = placing->size;
	set_extent(shape, placing->size, placing->align, line);
	fill_placed_slots(shape, placing);
	if (placing->overlay)
		walk_union(shape, &walk);
	else
		walk_in_order(shape, &walk);
	note_padding(shape, &walk, &type);
	return 0;
}

uint64_t hl_shape_padding(const struct hl_types *types, hl_type_id id)
{
	const struct hl_type *type = &types->type[hl_type_strip(types, id)];
	struct walk walk = { .types = types };
	struct hl_shape sums = { 0 };
	struct hl_slot slot[2]; /* this one and the last */

	for (uint32_t i = 0; i < type->count; i++) {
		fill_slot(&slot[i % 2], types, type->first + i);
		if (!is_virtual(types, &slot[i % 2]))
			take_slot(&sums, &walk, &slot[i % 2]);
	}
	note_padding(&sums, &walk, type);
	return sums.padding;
}

void hl_shape_free(struct hl_shape *shape)
{
	free(shape->slot);
	*shape = (struct hl_shape){ 0 };
}
