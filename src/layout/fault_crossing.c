// SPDX-License-Identifier: MIT
/*
 * crossing: a member that crosses a line though it need not.
 */
#include "find.h"

#include <errno.h>

/* Members beyond this many are not tried at other places: time grows with their square. */
#define MOST_TRIED 256u

static bool crosses(uint64_t offset, uint64_t size, unsigned line)
{
	return size && offset / line != (offset + size - 1) / line;
}

/* Whether a struct holds something that CPUs hand to each other, to a small depth. */
static bool holds_shared(const struct hl_find *find, const struct hl_type *type, int depth)
{
	for (uint32_t i = 0; i < type->count; i++) {
		const struct hl_member *member = &find->types->member[type->first + i];
		const struct hl_type *inner =
			&find->types->type[hl_type_strip(find->types, member->type)];

		if (hl_look_is_written(hl_look_of_member(find->looks, find->types, member)))
			return true;
		if (hl_kind_is_aggregate(inner->kind) && depth < 4 &&
		    holds_shared(find, inner, depth + 1))
			return true;
	}
	return false;
}

/* How much it matters that the member lies on one line; 0: not. */
static double weight_of(const struct hl_find *find, const struct hl_member *member, uint64_t size)
{
	const struct hl_type *type = &find->types->type[hl_type_strip(find->types, member->type)];
	enum hl_look look = hl_look_of_member(find->looks, find->types, member);

	if (!size || size > find->line || member->bit_size || member->flags & HL_MEMBER_VIRTUAL)
		return 0;
	if (hl_look_is_written(look))
		return 420;
	switch (type->kind) {
	case HL_BASE:
	case HL_ENUM:
	case HL_POINTER:
		return 330;	/* packed: every access is two */
	case HL_STRUCT:
	case HL_CLASS:
		if (look == HL_LOOK_DONE)
			return 250;
		return size <= find->line / 2 && holds_shared(find, type, 0) ? 300 : 0;
	default:
		return 0;
	}
}

/* Crossings that matter in an order, weighed. */
static double weigh(const struct hl_find *find, const struct hl_placing *placing)
{
	double sum = 0;

	for (uint32_t i = 0; i < placing->n; i++) {
		const struct hl_field *field = &placing->field[i];

		if (!field->bits && crosses(field->bit_offset / 8, field->size, find->line))
			sum += weight_of(find, &find->types->member[field->member], field->size);
	}
	return sum;
}

static void move(struct hl_placing *placing, uint32_t from, uint32_t to)
{
	struct hl_field field = placing->field[from];

	for (; from < to; from++)
		placing->field[from] = placing->field[from + 1];
	for (; from > to; from--)
		placing->field[from] = placing->field[from - 1];
	placing->field[to] = field;
}

static bool may_move(const struct hl_field *field)
{
	return !field->bits && !(field->flags & (HL_FIELD_FIXED | HL_FIELD_LAST |
						 HL_FIELD_WITH_PREVIOUS));
}

/* The nearest place to which field i can go so that it crosses no line, nothing that
 * matters crosses in its stead and the struct does not grow. */
static bool find_place(const struct hl_find *find, uint32_t i, double now, struct hl_placing *proposal)
{
	uint32_t n = find->placing.n;

	for (uint32_t distance = 1; distance < n; distance++) {
		for (int side = 0; side < 2; side++) {
			uint32_t to = side ? i + distance : i - distance;

			if (to >= n || !may_move(&find->placing.field[to]))
				continue;
			for (uint32_t k = 0; k < n; k++)
				proposal->field[k] = find->placing.field[k];
			move(proposal, i, to);
			hl_place(proposal, find->line);
			if (proposal->size <= find->placing.size && weigh(find, proposal) < now &&
			    !crosses(proposal->field[to].bit_offset / 8, proposal->field[to].size,
				     find->line))
				return true;
		}
	}
	return false;
}

static void report(struct hl_find *find, uint32_t i, double weight, struct hl_placing *proposal)
{
	const struct hl_field *field = &find->placing.field[i];
	const struct hl_member *member = &find->types->member[field->member];
	uint64_t offset = field->bit_offset / 8, at = 0;
	const char *name = member->name ? member->name : "(anonymous)";

	for (uint32_t k = 0; k < proposal->n; k++)
		if (proposal->field[k].member == field->member)
			at = proposal->field[k].bit_offset / 8;
	hl_text_printf(&find->evidence, "%s (%llu bytes at %llu) crosses from line %llu to the next", name,
		       (unsigned long long)field->size, (unsigned long long)offset,
		       (unsigned long long)(offset / find->line));
	if (find->align < find->line)
		hl_text_printf(&find->evidence, ", where the struct begins a line (it is aligned to %u)",
			       find->align);
	hl_text_printf(&find->advice, "move %s to byte %llu: it lies in one line there, and the struct does not grow",
		       name, (unsigned long long)at);
	hl_fault_member_named(find, name);
	hl_fault_report(find, HL_FAULT_CROSSING, hl_score(find->align < find->line ? weight * 0.6 : weight),
			proposal, NULL);
}

void hl_find_crossing(struct hl_find *find)
{
	struct hl_placing proposal;
	double now;

	if (!find->placed || find->type->size <= find->line || find->placing.n > MOST_TRIED ||
	    hl_find_is_grouped(find))
		return;
	now = weigh(find, &find->placing);
	if (now <= 0)
		return;
	if (hl_placing_copy(&proposal, &find->placing)) {
		find->rc = -ENOMEM;
		return;
	}
	for (uint32_t i = 0; i < find->placing.n && !find->rc; i++) {
		const struct hl_field *field = &find->placing.field[i];
		double weight = weight_of(find, &find->types->member[field->member], field->size);

		if (weight > 0 && may_move(field) &&
		    crosses(field->bit_offset / 8, field->size, find->line) &&
		    find_place(find, i, now, &proposal)) {
			report(find, i, weight, &proposal);
			break;
		}
	}
	hl_placing_free(&proposal);
}
