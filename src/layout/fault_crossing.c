// SPDX-License-Identifier: MIT
/*
 * crossing: a member that crosses a line though it need not.
 */
#include "find.h"
#include "weights.h"

#include <errno.h>
#include <string.h>

/* Members beyond this many are not tried at other places: time grows with their square. */
#define MOST_TRIED 256u

/* Tries for one struct at the most, so that a long one takes no long time. */
#define MOST_TRIES 512u

static bool crosses(uint64_t offset, uint64_t size, unsigned line)
{
	return size && offset / line != (offset + size - 1) / line;
}

/* An array of elements each of which could lie in one line; 1 and the size for all else. */
struct elements {
	uint64_t n, size;
	hl_type_id type;
};

static struct elements elements_of(const struct hl_find *find, const struct hl_field *field)
{
	const struct hl_types *types = find->types;
	const struct hl_member *member = &types->member[field->member];
	const struct hl_type *array = &types->type[hl_type_strip(types, member->type)];
	struct elements one = { 1, field->size, member->type };

	if (array->kind != HL_ARRAY || array->flags & HL_TYPE_VECTOR)
		return one;

	struct elements each = { array->size, hl_type_size(types, array->target), array->target };

	return each.size && find->line % each.size == 0 ? each : one;
}

/* Whether the field, or an element of it, lies on two lines; the first that does in *index. */
static bool field_crosses(const struct hl_find *find, const struct hl_field *field, uint64_t *index)
{
	struct elements e = elements_of(find, field);
	uint64_t offset = field->bit_offset / 8, into = offset % find->line;

	*index = 0;
	if (field->bits || !e.n)
		return false;
	if (e.n == 1)
		return crosses(offset, e.size, find->line);
	/* Sizes that divide a line: all lie in one or one of each line does not. */
	if (into % e.size == 0)
		return false;
	*index = (find->line - into) / e.size;
	return *index < e.n;
}

/* How much it matters that the field lies on one line; 0: not. */
static double weight_of(const struct hl_find *find, const struct hl_field *field)
{
	const struct hl_member *member = &find->types->member[field->member];
	struct elements e = elements_of(find, field);
	const struct hl_type *type = &find->types->type[hl_type_strip(find->types, e.type)];
	enum hl_look look = hl_look_of_member(find->looks, find->types, member);

	if (!e.size || e.size > find->line || field->bits || member->flags & HL_MEMBER_VIRTUAL ||
	    look == HL_LOOK_PAD)
		return 0;
	if (hl_look_is_written(look))
		return HL_W_CROSS_WRITTEN;
	switch (type->kind) {
	case HL_BASE:
	case HL_ENUM:
	case HL_POINTER:
		/* Packed: every access is two.  What the ABI of a 32-bit machine aligns to
		 * half its size is accessed in halves. */
		return e.n == 1 && find->type->flags & HL_TYPE_PACKED ? HL_W_CROSS_SCALAR : 0;
	case HL_STRUCT:
	case HL_CLASS:
		if (look == HL_LOOK_DONE)
			return HL_W_CROSS_FLAG;
		if (e.size > find->line / 2)
			return 0;
		if (hl_looks_hold(find->looks, find->types, e.type, HL_HOLDS_WRITTEN))
			return HL_W_CROSS_HOLDER;
		if (look == HL_LOOK_LINK || e.size < 8 ||
		    (find->align < find->line && e.size > find->line / 4))
			return 0;
		return HL_W_CROSS_PLAIN;
	default:
		return 0;
	}
}

/* Crossings that matter in an order, weighed. */
static double weigh(const struct hl_find *find, const struct hl_placing *placing)
{
	double sum = 0;
	uint64_t index;

	for (uint32_t i = 0; i < placing->n; i++)
		if (field_crosses(find, &placing->field[i], &index))
			sum += weight_of(find, &placing->field[i]);
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

static void swap(struct hl_placing *a, struct hl_placing *b)
{
	struct hl_placing c = *a;

	*a = *b;
	*b = c;
}

static bool may_move(const struct hl_field *field)
{
	return !field->bits &&
	       !(field->flags & (HL_FIELD_FIXED | HL_FIELD_LAST | HL_FIELD_WITH_PREVIOUS));
}

/* The nearest place to which field i can go so that it crosses no line, nothing that
 * matters crosses in its stead and the struct does not grow. */
static bool find_place(const struct hl_find *find, uint32_t i, double now, uint32_t *tries,
		       struct hl_placing *proposal)
{
	uint32_t n = find->placing.n;
	uint64_t index;

	for (uint32_t distance = 1; distance < n && *tries < MOST_TRIES; distance++) {
		for (int side = 0; side < 2; side++) {
			uint32_t to = side ? i + distance : i - distance;

			if (to >= n || !may_move(&find->placing.field[to]))
				continue;
			++*tries;
			memcpy(proposal->field, find->placing.field, n * sizeof(*proposal->field));
			move(proposal, i, to);
			hl_place(proposal, find->line);
			if (proposal->size <= find->placing.size && weigh(find, proposal) < now &&
			    !field_crosses(find, &proposal->field[to], &index))
				return true;
		}
	}
	return false;
}

static void say(struct hl_find *find, const struct hl_field *field, const char *name)
{
	struct elements e = elements_of(find, field);
	struct hl_text *text = &find->evidence;
	uint64_t offset = field->bit_offset / 8, index;

	field_crosses(find, field, &index);
	offset += index * e.size;
	if (e.n > 1)
		hl_text_printf(text, "element %llu of ", (unsigned long long)index);
	hl_text_printf(text, "%s (%llu bytes at %llu) crosses from line %llu to the next", name,
		       (unsigned long long)e.size, (unsigned long long)offset,
		       (unsigned long long)(offset / find->line));
	if (find->align < find->line)
		hl_text_printf(text, ", where the struct begins a line (it is aligned to %u)",
			       find->align);
}

static void report(struct hl_find *find, uint32_t i, double weight, struct hl_placing *proposal)
{
	const struct hl_field *field = &find->placing.field[i];
	const struct hl_member *member = &find->types->member[field->member];
	bool fixed = hl_find_is_format(find);
	const char *name = member->name ? member->name : "(anonymous)";
	uint64_t at = 0;

	for (uint32_t k = 0; k < proposal->n; k++)
		if (proposal->field[k].member == field->member)
			at = proposal->field[k].bit_offset / 8;
	say(find, field, name);
	hl_text_printf(
		&find->advice,
		"move %s to byte %llu: it lies in one line there, and the struct does not grow%s",
		name, (unsigned long long)at,
		fixed ? " (if no file and no other program depends on the order)" : "");
	hl_fault_member_named(find, name);
	if (find->align < find->line)
		weight *= HL_W_CROSS_UNALIGNED;
	if (fixed)
		weight *= HL_W_CROSS_FORMAT;
	hl_fault_report(find, HL_FAULT_CROSSING, hl_score(weight), fixed ? NULL : proposal, NULL);
}

void hl_find_crossing(struct hl_find *find)
{
	struct hl_placing proposal, best;
	uint32_t tries = 0, worst = 0;
	uint64_t index;
	double now, most = 0;

	if (find->type->size <= find->line || find->type->count > MOST_TRIED ||
	    !hl_find_placed(find) || hl_find_is_grouped(find))
		return;
	now = weigh(find, &find->placing);
	if (now <= 0 || hl_find_has_byte_order(find))
		return;
	if (hl_placing_copy(&proposal, &find->placing)) {
		find->rc = -ENOMEM;
		return;
	}
	if (hl_placing_copy(&best, &find->placing)) {
		hl_placing_free(&proposal);
		find->rc = -ENOMEM;
		return;
	}
	for (uint32_t i = 0; i < find->placing.n; i++) {
		const struct hl_field *field = &find->placing.field[i];
		double weight = weight_of(find, field);

		if (weight > most && may_move(field) && field_crosses(find, field, &index) &&
		    find_place(find, i, now, &tries, &proposal)) {
			most = weight;
			worst = i;
			swap(&proposal, &best);
		}
	}
	if (most > 0)
		report(find, worst, most, &best);
	hl_placing_free(&proposal);
	hl_placing_free(&best);
}
