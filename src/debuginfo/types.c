// SPDX-License-Identifier: MIT
/*
 * Questions about one type, and what is worked out once when a file was read:
 * the alignment of every type, which structs are packed, which BTF types must
 * have been aligned by hand.
 */
#include "internal.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

static const struct hl_type *type_at(const struct hl_types *types, hl_type_id id)
{
	return &types->type[id < types->n_types ? id : 0];
}

static bool is_alias(uint8_t kind)
{
	return kind == HL_TYPEDEF || kind == HL_CONST || kind == HL_VOLATILE ||
	       kind == HL_RESTRICT || kind == HL_ATOMIC;
}

hl_type_id hl_type_strip(const struct hl_types *types, hl_type_id id)
{
	for (int depth = 0; depth < HL_MAX_DEPTH; depth++) {
		const struct hl_type *type = type_at(types, id);

		if (!is_alias(type->kind))
			return id < types->n_types ? id : 0;
		id = type->target;
	}
	return 0;
}

/* The type behind aliases, but not behind an atomic that has a size of its own. */
static const struct hl_type *sized_type(const struct hl_types *types, hl_type_id id)
{
	const struct hl_type *type = type_at(types, id);

	for (int depth = 0; depth < HL_MAX_DEPTH && is_alias(type->kind) && !type->size; depth++)
		type = type_at(types, type->target);
	return type;
}

static uint64_t size_of(const struct hl_types *types, hl_type_id id)
{
	uint64_t count = 1;

	for (int depth = 0; depth < HL_MAX_DEPTH; depth++) {
		const struct hl_type *type = sized_type(types, id);
		uint64_t product;

		if (type->kind != HL_ARRAY) {
			if (__builtin_mul_overflow(count, type->size, &product) ||
			    product > HL_MAX_SIZE)
				return HL_MAX_SIZE;
			return product;
		}
		if (__builtin_mul_overflow(count, type->size, &count))
			return HL_MAX_SIZE;
		id = type->target;
	}
	return 0;
}

uint64_t hl_type_size(const struct hl_types *types, hl_type_id id)
{
	return size_of(types, id);
}

uint32_t hl_type_align(const struct hl_types *types, hl_type_id id)
{
	return (uint32_t)1 << type_at(types, id)->natural_log2;
}

/* Alignment as the member's type and its own attribute say, wherever it lies. */
static uint32_t asked_align(const struct hl_types *types, const struct hl_member *member)
{
	if (member->align_log2)
		return (uint32_t)1 << (member->align_log2 - 1);
	return hl_type_align(types, member->type);
}

uint32_t hl_member_align(const struct hl_types *types, const struct hl_member *member)
{
	uint32_t align = asked_align(types, member);

	/* Only a packed member lies where its type may not. */
	if (!member->bit_size && !(member->flags & HL_MEMBER_VIRTUAL) &&
	    member->bit_offset / 8 % align)
		return 1;
	return align;
}

uint64_t hl_member_size(const struct hl_types *types, const struct hl_member *member)
{
	return size_of(types, member->type);
}

const char *hl_type_name(const struct hl_types *types, hl_type_id id)
{
	const char *name = type_at(types, id)->name;

	return name ? name : "(anonymous)";
}

/* ---- Settling: alignment for every type, once. ---- */

/* A vector is aligned to its size; a larger one is none that a compiler makes. */
#define MAX_VECTOR ((uint64_t)1 << 30)

enum { NOT_SETTLED, SETTLING, SETTLED };

struct settling {
	struct hl_types *types;
	struct hl_type *type;
	struct hl_member *member;
	uint8_t *state; /* one of the above for each type */
	struct hl_error *err;
};

static unsigned log2_of(uint64_t power)
{
	return (unsigned)__builtin_ctzll(power);
}

static uint64_t align_up(uint64_t value, uint64_t align)
{
	return (value + align - 1) & ~(align - 1);
}

/* Scalars are aligned to the power of two at or below their size, no further
 * than the ABI's largest. */
static unsigned scalar_log2(const struct settling *s, const struct hl_type *type)
{
	unsigned most = s->types->max_align_log2, log2 = 0;

	/* On i386 what SSE loads is aligned all the same: _Float128. */
	if (s->types->machine == EM_386 && type->flags & HL_TYPE_FLOAT && type->size == 16)
		most = 4;
	/* x87 long double: 12 bytes aligned as 4, 16 aligned as 16. */
	while (log2 < most && ((uint64_t)2 << log2) <= type->size &&
	       type->size % ((uint64_t)2 << log2) == 0)
		log2++;
	return log2;
}

static bool member_fits_alignment(const struct settling *s, const struct hl_member *member)
{
	uint32_t align = asked_align(s->types, member);

	if (member->flags & HL_MEMBER_VIRTUAL)
		return true;
	if (!member->bit_size)
		return member->bit_offset % ((uint64_t)align * 8) == 0;

	/* It begins a unit of its type at every multiple of the alignment, which on i386 is
	 * less than the size. */
	uint64_t unit = hl_member_size(s->types, member) * 8;
	uint64_t from = (uint64_t)hl_type_align(s->types, member->type) * 8;

	return !unit || member->bit_offset % from + member->bit_size <= unit;
}

/* True when the members follow one another without a gap to the very end, as
 * __attribute__((packed)) puts them. */
static bool is_contiguous(const struct settling *s, const struct hl_type *type)
{
	uint64_t end = 0;

	for (uint32_t i = 0; i < type->count; i++) {
		const struct hl_member *member = &s->member[type->first + i];

		if (member->flags & HL_MEMBER_VIRTUAL)
			return false;
		if (type->kind == HL_UNION)
			continue;
		if (member->bit_offset > (member->bit_size ? end : align_up(end, 8)))
			return false;
		end = member->bit_offset +
		      (member->bit_size ? member->bit_size : hl_member_size(s->types, member) * 8);
	}
	return type->kind == HL_UNION || align_up(end, 8) / 8 == type->size;
}

/* The smallest alignment above `natural` that moves `from` to `to`; 0: none does. */
static unsigned explaining_log2(uint64_t from, uint64_t to, unsigned natural)
{
	for (unsigned log2 = natural + 1; log2 < 16; log2++)
		if (align_up(from, (uint64_t)1 << log2) == to)
			return log2;
	return 0;
}

/* A member that lies further on than its type asks for: was it aligned? */
static void infer_member(const struct hl_type *type, struct hl_member *member, uint64_t end,
			 unsigned natural)
{
	uint64_t at = member->bit_offset / 8;
	unsigned log2;

	if (member->bit_offset % 8 || at <= align_up(end, (uint64_t)1 << natural))
		return;
	log2 = explaining_log2(end, at, natural);
	if (log2 && type->size % ((uint64_t)1 << log2) == 0)
		member->align_log2 = (uint8_t)(log2 + 1);
}

/* Where the file does not tell alignment, holes and sizes that natural alignment
 * leaves unexplained are put down to an aligned attribute where one would explain them. */
static void infer_alignment(struct settling *s, struct hl_type *type)
{
	uint64_t end = 0;
	unsigned most = 0;

	for (uint32_t i = 0; i < type->count; i++) {
		struct hl_member *member = &s->member[type->first + i];
		bool fits = member_fits_alignment(s, member);
		uint64_t bits = member->bit_size ? member->bit_size
						 : hl_member_size(s->types, member) * 8;

		if (member->flags & HL_MEMBER_VIRTUAL)
			return;
		if (type->kind != HL_UNION)
			infer_member(type, member, end,
				     fits ? log2_of(asked_align(s->types, member)) : 0);
		if ((fits || member->align_log2) && log2_of(asked_align(s->types, member)) > most)
			most = log2_of(asked_align(s->types, member));
		if ((member->bit_offset + bits + 7) / 8 > end)
			end = (member->bit_offset + bits + 7) / 8;
	}
	if (!type->align_log2 && type->size > align_up(end, (uint64_t)1 << most)) {
		unsigned log2 = explaining_log2(end, type->size, most);

		if (log2)
			type->align_log2 = (uint8_t)(log2 + 1);
	}
}

/* The most that a member which lies as its alignment asks is aligned to. */
static unsigned most_aligned(const struct settling *s, const struct hl_type *type, bool said_only,
			     bool *misplaced)
{
	unsigned most = 0;

	for (uint32_t i = 0; i < type->count; i++) {
		const struct hl_member *member = &s->member[type->first + i];
		unsigned log2 = log2_of(asked_align(s->types, member));

		if (!member_fits_alignment(s, member))
			*misplaced = true;
		else if (log2 > most && (member->align_log2 || !said_only))
			most = log2;
	}
	return most;
}

/* What a class that derives from this one may use: the room behind the last member. */
static void settle_tail(const struct settling *s, struct hl_type *type)
{
	uint64_t end = 0;

	for (uint32_t i = 0; i < type->count; i++) {
		const struct hl_member *member = &s->member[type->first + i];
		uint64_t bits = member->bit_size;

		if (member->flags & HL_MEMBER_VIRTUAL)
			continue;
		if (!bits)
			bits = hl_member_size(s->types, member) * 8;
		if (member->flags & HL_MEMBER_BASE)
			bits -= s->type[hl_type_strip(s->types, member->type)].tail * 8u;
		if (end < member->bit_offset + bits)
			end = member->bit_offset + bits;
	}
	end = align_up(end, 8) / 8;
	if (end < type->size)
		type->tail =
			(uint16_t)(type->size - end < UINT16_MAX ? type->size - end : UINT16_MAX);
}

static void settle_aggregate(struct settling *s, struct hl_type *type)
{
	bool misplaced = false;
	unsigned most = most_aligned(s, type, false, &misplaced);

	if ((misplaced || type->size % ((uint64_t)1 << most)) && is_contiguous(s, type)) {
		type->flags |= HL_TYPE_PACKED;
		most = most_aligned(s, type, true, &misplaced);
	} else if (s->types->align_untold) {
		infer_alignment(s, type);
		most = most_aligned(s, type, false, &misplaced);
	}
	while (most && type->size % ((uint64_t)1 << most))
		most--;
	if (type->align_log2 && type->align_log2 - 1u > most)
		most = type->align_log2 - 1u;
	type->natural_log2 = (uint8_t)most;
}

static int contains_itself(struct settling *s, const struct hl_type *type)
{
	return hl_fail(s->err, -EBADMSG, "damaged type information: %s %s contains itself",
		       type->kind == HL_TYPEDEF ? "typedef" : "type",
		       type->name ? type->name : "(anonymous)");
}

/* Settles a type after those that it holds by value. */
static int settle(struct settling *s, hl_type_id id, int depth)
{
	struct hl_type *type = &s->type[id];
	int rc = 0;

	if (s->state[id] == SETTLED)
		return 0;
	if (s->state[id] == SETTLING)
		return contains_itself(s, type);
	if (depth > HL_MAX_DEPTH)
		return hl_fail(s->err, -E2BIG, "types are nested more than %d deep", HL_MAX_DEPTH);
	s->state[id] = SETTLING;

	switch (type->kind) {
	case HL_TYPEDEF:
	case HL_CONST:
	case HL_VOLATILE:
	case HL_RESTRICT:
	case HL_ATOMIC:
	case HL_ARRAY:
		rc = settle(s, type->target, depth + 1);
		if (rc)
			return rc;
		type->natural_log2 = s->type[type->target].natural_log2;
		if (type->kind == HL_ATOMIC) {
			/* A lock-free atomic is aligned to its size. */
			uint64_t size = size_of(s->types, id);

			if (size && size <= 16 && !(size & (size - 1)) &&
			    log2_of(size) > type->natural_log2)
				type->natural_log2 = (uint8_t)log2_of(size);
		}
		if (type->flags & HL_TYPE_VECTOR && type->kind == HL_ARRAY) {
			uint64_t size = size_of(s->types, id);

			if (size && !(size & (size - 1)) && size <= MAX_VECTOR)
				type->natural_log2 = (uint8_t)log2_of(size);
		}
		if (type->align_log2)
			type->natural_log2 = (uint8_t)(type->align_log2 - 1);
		break;
	case HL_STRUCT:
	case HL_CLASS:
	case HL_UNION:
		for (uint32_t i = 0; !rc && i < type->count; i++)
			rc = settle(s, s->member[type->first + i].type, depth + 1);
		if (rc)
			return rc;
		settle_aggregate(s, type);
		settle_tail(s, type);
		break;
	case HL_FUNCTION:
	case HL_VOID:
		type->natural_log2 = 0;
		break;
	default:
		type->natural_log2 = (uint8_t)scalar_log2(s, type);
		if (type->kind == HL_MEMBER_POINTER)
			type->natural_log2 = (uint8_t)log2_of(s->types->address_size);
		if (type->align_log2)
			type->natural_log2 = (uint8_t)(type->align_log2 - 1);
	}
	s->state[id] = SETTLED;
	return 0;
}

int hl_types_settle(struct hl_types *types, struct hl_type *type, struct hl_member *member,
		    struct hl_error *err)
{
	struct settling s = { .types = types, .type = type, .member = member, .err = err };
	int rc = 0;

	s.state = calloc(types->n_types, 1);
	if (!s.state)
		return hl_fail_nomem(err);
	for (hl_type_id id = 0; !rc && id < types->n_types; id++)
		rc = settle(&s, id, 0);
	free(s.state);
	return rc;
}
