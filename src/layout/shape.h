/* SPDX-License-Identifier: MIT */
/*
 * The shape of a type: where its members lie, its holes and its padding, in
 * pahole's words and with pahole's arithmetic, where that is right.
 */
#ifndef HL_LAYOUT_SHAPE_H
#define HL_LAYOUT_SHAPE_H

#include "debuginfo/debuginfo.h"
#include "layout/place.h"

/* One member as a picture or a report shows it. */
struct hl_slot {
	uint32_t member; /* index into hl_types.member */
	uint64_t offset; /* bytes; of a bit-field, where the aligned unit of its declared
				 * type that it begins in begins (in a packed struct it may run on
				 * into the next one, as pahole has it) */
	uint64_t size; /* bytes; of a bit-field, of its storage unit */
	uint16_t bit_offset; /* bit-field: from the start of that unit, offset * 8 + bit_offset is
				 * its place in the struct; 0 otherwise */
	uint16_t bit_size; /* 0: not a bit-field */
	uint64_t hole; /* bytes left free between it and the next member */
	uint16_t bit_hole; /* bits left free behind it in its storage unit */
	bool asked; /* the bit hole was written in the source (int :6), not left by the compiler */
};

struct hl_shape {
	uint64_t size;
	uint32_t align;
	uint64_t lines; /* line-sized pieces, the last may be part of one */
	uint32_t holes, bit_holes;
	uint64_t hole_bytes;
	uint32_t hole_bits;
	uint64_t lead; /* bytes free before the first member */
	uint16_t lead_bits;
	uint64_t padding; /* bytes behind the last member */
	uint16_t bit_padding; /* bits behind the last bit-field in its unit */
	uint64_t sum_members; /* bytes of all members that are no bit-fields */
	uint32_t sum_bits; /* bits of all bit-fields */
	struct hl_slot *slot; /* one a member, in the order of the source */
	uint32_t n_slots;
	uint32_t slot_room; /* slots that there is memory for */
};

/* Measures the struct, class, union (or the HL_TYPEDEF of one) id with lines of
 * `line` bytes.  0, or -ENOMEM.  The shape's memory is freed, or used again by
 * the next call, through the same struct, which must be zero at first. */
int hl_shape_measure(struct hl_shape *shape, const struct hl_types *types, hl_type_id id,
		     unsigned line);
/* The same for the fields of the type as `placing` has them, one slot a field. */
int hl_shape_measure_placing(struct hl_shape *shape, const struct hl_types *types, hl_type_id id,
			     const struct hl_placing *placing, unsigned line);
void hl_shape_free(struct hl_shape *shape);

/* The bytes of padding behind the last member, as hl_shape_measure() finds them. */
uint64_t hl_shape_padding(const struct hl_types *types, hl_type_id id);

/* Bytes from the start of a class to the end of its last member: what a class that
 * derives from it may not use.  0 for an empty class; the size of all other types. */
uint64_t hl_shape_used_bytes(const struct hl_types *types, hl_type_id id);

#endif
