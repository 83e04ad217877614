/* SPDX-License-Identifier: MIT */
/*
 * Where the compiler would put the members of a struct: the one routine behind
 * every proposed order.  It knows natural and explicit alignment, bit-fields,
 * packed structs, flexible arrays, over-aligned members and C++ bases, by the
 * rules of the System V ABIs and the Itanium C++ ABI (x86-64, i386, arm64, ...:
 * what differs is in the sizes and alignments that the fields bring along).
 */
#ifndef HL_LAYOUT_PLACE_H
#define HL_LAYOUT_PLACE_H

#include "debuginfo/debuginfo.h"

/* hl_field.flags */
#define HL_FIELD_FIXED 0x01 /* must stay at the front, in this order: base, vptr */
#define HL_FIELD_LAST 0x02 /* must stay at the end: flexible array, virtual base */
#define HL_FIELD_NEW_LINE 0x04 /* begins a line: the proposal writes aligned(line) on it */
#define HL_FIELD_WITH_PREVIOUS 0x08 /* goes where the field before it goes: a run of bit-fields */
#define HL_FIELD_NEW_UNIT 0x10 /* bit-field that begins a unit of its type: behind int :0 */
#define HL_FIELD_PACKED 0x20 /* this member alone is packed */

struct hl_field {
	uint32_t member; /* index into hl_types.member */
	uint64_t size; /* bytes; of a bit-field, of its declared type */
	uint64_t data_size; /* bytes that the next field may not use: less than size for a C++ base
				 * whose tail padding is reused */
	uint64_t pad; /* bits left free before it that no alignment explains: int :6 */
	uint32_t align; /* bytes, a power of two; 1 for packed without an explicit one */
	uint16_t bits; /* width of a bit-field; 0: no bit-field */
	uint16_t flags;
	uint64_t bit_offset; /* the result: memory order, byte * 8 + bit */
};

struct hl_placing {
	struct hl_field *field;
	uint32_t n;
	uint32_t room; /* fields that there is memory for */
	uint32_t min_align; /* explicit alignment of the whole; 1 otherwise */
	bool packed;
	bool overlay; /* a union: every field begins where it does */
	uint64_t tail; /* bytes behind the last field that no alignment explains */
	uint64_t size; /* the results */
	uint32_t align;
};

/* The fields of a struct or class as the source orders them, with sizes and
 * alignments filled in, not yet placed.  0; -ENOMEM; -ENOTSUP when the type is
 * one that the routine does not place (a union, a Rust type, a virtual base),
 * or when placing the fields in the source's order does not give the offsets
 * and the size that the compiler gave: then nothing is proposed for it. */
int hl_placing_of(struct hl_placing *placing, const struct hl_types *types, hl_type_id id);
void hl_placing_free(struct hl_placing *placing);

/* The same for what is to be written out as it is, not to be reordered: takes
 * unions, too, and puts what no alignment explains down to .pad and .tail.
 * The fields' memory is used again from call to call through the same struct,
 * which must be zero at first. */
int hl_placing_explain(struct hl_placing *placing, const struct hl_types *types, hl_type_id id);
/* The same for a type that lies where no alignment allows it: packed, to be aligned as
 * a byte, whatever is said of it. */
int hl_placing_explain_loose(struct hl_placing *placing, const struct hl_types *types,
			     hl_type_id id);

/* A copy whose fields can be reordered or changed. */
int hl_placing_copy(struct hl_placing *to, const struct hl_placing *from);

/* Places the fields in the order in which they stand: sets bit_offset, size, align. */
void hl_place(struct hl_placing *placing, unsigned line);

/* Bytes that are needed in any order: what the fields of a struct hold. Quick to tell. */
uint64_t hl_placing_least(const struct hl_placing *placing);

/* Reorders the fields so that the size is the least that can be had, moving as
 * few as it needs, and places them.  Fields that are fixed, last or runs stay so.
 * No field crosses one with HL_FIELD_NEW_LINE: the fields that it begins are ordered
 * among themselves, and the mark passes to the one that then stands first.  Nor
 * does one cross a member of no size, which marks where a group begins.
 * 0; -ENOMEM, then nothing was changed. */
int hl_place_smallest(struct hl_placing *placing, unsigned line);

#endif
