// SPDX-License-Identifier: MIT
/*
 * just-over: a little more than a whole number of lines, so that one line more
 * than needed is touched (O4).
 *
 * Three means are tried, the mildest first: another order; counters no wider than
 * the array beside them needs; a shorter array, as long as little of it goes.
 */
#include "find.h"
#include "picture.h"

#include <errno.h>
#include <stdlib.h>

/* A field of a proposal that is declared otherwise than it is now. */
struct change {
	uint32_t index;		/* of the field */
	uint64_t size;		/* its new size */
	uint64_t elements;	/* of an array; 0: a narrower integer */
};

struct trial {
	struct hl_placing placing;
	struct change change[8];
	uint32_t n_changes;
};

static const struct hl_member *member_of(const struct hl_find *find, const struct hl_field *field)
{
	return &find->types->member[field->member];
}

static const struct hl_type *type_of(const struct hl_find *find, const struct hl_field *field)
{
	return &find->types->type[hl_type_strip(find->types, member_of(find, field)->type)];
}

/* Whether a field beside the array looks like what counts its elements: without one its
 * length is hardly a matter of choice. */
static bool has_counter(const struct hl_find *find, const struct hl_placing *placing)
{
	for (uint32_t i = 0; i < placing->n; i++)
		if (hl_look_of_member(find->looks, find->types, member_of(find, &placing->field[i])) ==
		    HL_LOOK_COUNTER)
			return true;
	return false;
}

/* The array that takes at least half of the struct and is filled up to a count. */
static int find_array(const struct hl_find *find, const struct hl_placing *placing)
{
	for (uint32_t i = 0; i < placing->n; i++) {
		const struct hl_type *type = type_of(find, &placing->field[i]);

		if (type->kind == HL_ARRAY && !(type->flags & HL_TYPE_VECTOR) && type->size >= 4 &&
		    placing->field[i].size * 2 >= find->type->size && has_counter(find, placing))
			return (int)i;
	}
	return -1;
}

static void set_size(struct trial *trial, uint32_t index, uint64_t size, uint64_t elements)
{
	struct hl_field *field = &trial->placing.field[index];

	if (trial->n_changes == sizeof(trial->change) / sizeof(trial->change[0]))
		return;
	trial->change[trial->n_changes++] = (struct change){ index, size, elements };
	field->size = field->data_size = size;
	if (!elements)
		field->align = (uint32_t)size;
}

static void narrow_counters(const struct hl_find *find, struct trial *trial, uint64_t elements)
{
	uint64_t narrow = elements <= UINT16_MAX ? 2 : 4;

	for (uint32_t i = 0; i < trial->placing.n; i++) {
		const struct hl_field *field = &trial->placing.field[i];
		const struct hl_type *type = type_of(find, field);

		if (type->kind == HL_BASE && !field->bits && field->size > narrow &&
		    !(type->flags & HL_TYPE_FLOAT) && !member_of(find, field)->align_log2 &&
		    !hl_look_is_shared(hl_look_of_type(find->looks, member_of(find, field)->type)))
			set_size(trial, i, narrow, 0);
	}
}

/* Shortens the array by as few elements as bring the size to `limit`, an eighth at the most. */
static bool shorten(const struct hl_find *find, struct trial *trial, int array, uint64_t limit)
{
	const struct hl_type *type = type_of(find, &trial->placing.field[array]);
	uint64_t stride = type->size ? trial->placing.field[array].size / type->size : 0;
	uint64_t most = type->size < 8 ? 1 : type->size / 8;

	for (uint64_t cut = 1; stride && cut <= most && cut < type->size; cut++) {
		trial->placing.field[array].size = trial->placing.field[array].data_size =
			(type->size - cut) * stride;
		hl_place(&trial->placing, find->line);
		if (trial->placing.size <= limit) {
			set_size(trial, (uint32_t)array, (type->size - cut) * stride,
				 type->size - cut);
			return true;
		}
	}
	return false;
}

/* One of the ways; true when it brings the size to the limit. */
static bool try_way(const struct hl_find *find, struct trial *trial, int way, int array,
		    uint64_t limit)
{
	switch (way) {
	case 0:
		return !hl_find_is_grouped(find) &&
		       !hl_place_smallest(&trial->placing, find->line) &&
		       trial->placing.size <= limit;
	case 1:
		if (array < 0)
			return false;
		narrow_counters(find, trial, type_of(find, &trial->placing.field[array])->size);
		hl_place(&trial->placing, find->line);
		return trial->n_changes && trial->placing.size <= limit;
	case 2:
		/* With narrow counters the array loses least. */
		if (array < 0)
			return false;
		narrow_counters(find, trial, type_of(find, &trial->placing.field[array])->size);
		return shorten(find, trial, array, limit);
	default:
		return false;
	}
}

static void say_change(struct hl_find *find, const struct trial *trial, const struct change *change,
		       struct hl_text *declared)
{
	const struct hl_field *field = &trial->placing.field[change->index];
	const char *name = member_of(find, field)->name;

	if (!name)
		name = "(anonymous)";
	hl_fault_member_named(find, name);
	if (change->elements) {
		const struct hl_type *array = type_of(find, field);

		hl_text_printf(&find->advice, "%s from %llu to %llu elements", name,
			       (unsigned long long)array->size, (unsigned long long)change->elements);
		struct hl_text bounded = HL_TEXT_INIT;

		hl_text_printf(&bounded, "%s[%llu]", name, (unsigned long long)change->elements);
		if (!bounded.failed)
			hl_declare(declared, find->types, array->target, bounded.at);
		hl_text_free(&bounded);
		return;
	}
	hl_text_printf(&find->advice, "%s as a 16-bit integer where its values fit", name);
	hl_text_printf(declared, "%s %s", change->size == 2 ? "unsigned short" : "unsigned int", name);
}

static void report(struct hl_find *find, struct trial *trial, uint64_t over, uint64_t lines)
{
	struct hl_text declared[8] = { 0 };
	uint32_t count = find->type->count;
	const char **changed = calloc(count ? count : 1, sizeof(*changed));
	bool failed = !changed;

	hl_text_printf(&find->evidence, "%llu bytes: %llu more than %llu line%s, so that it takes %llu%s",
		       (unsigned long long)find->type->size, (unsigned long long)over,
		       (unsigned long long)lines, lines > 1 ? "s" : "", (unsigned long long)lines + 1,
		       find->align < find->line ? " (and lies on one more at most addresses)" : "");
	if (!trial->n_changes)
		hl_text_printf(&find->advice, "reorder the members: %llu bytes",
			       (unsigned long long)trial->placing.size);
	for (uint32_t i = 0; i < trial->n_changes; i++) {
		uint32_t top = trial->placing.field[trial->change[i].index].member - find->type->first;

		hl_text_puts(&find->advice, i ? "; " : "");
		say_change(find, trial, &trial->change[i], &declared[i]);
		failed = failed || declared[i].failed;
		if (!failed)
			changed[top] = declared[i].at;
	}
	if (trial->n_changes)
		hl_text_printf(&find->advice, ": %llu bytes", (unsigned long long)trial->placing.size);
	/* One line of many is little. */
	double score = 700.0 / (double)(lines + 1) + (trial->n_changes ? 0 : 60);

	if (failed)
		find->rc = -ENOMEM;
	else
		hl_fault_report(find, HL_FAULT_JUST_OVER, hl_score(score), &trial->placing, changed);
	for (uint32_t i = 0; i < trial->n_changes; i++)
		hl_text_free(&declared[i]);
	free(changed);
}

void hl_find_just_over(struct hl_find *find)
{
	uint64_t size = find->type->size, lines = size / find->line, over = size % find->line;

	if (!lines || !over || over > find->line / 4 || !find->placed ||
	    find->type->kind == HL_UNION || find->type->flags & HL_TYPE_PACKED)
		return;

	int array = find_array(find, &find->placing);

	for (int way = 0; way < 3; way++) {
		struct trial trial = { .n_changes = 0 };

		if (hl_placing_copy(&trial.placing, &find->placing)) {
			find->rc = -ENOMEM;
			return;
		}
		bool works = try_way(find, &trial, way, array, lines * find->line);

		if (works)
			report(find, &trial, over, lines);
		hl_placing_free(&trial.placing);
		if (works)
			return;
	}
}
