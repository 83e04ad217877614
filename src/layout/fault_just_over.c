// SPDX-License-Identifier: MIT
/*
 * just-over: a little more than a whole number of lines, so that one line more
 * than needed is touched (O4).
 *
 * Means are tried, the mildest first: another order; indexes no wider than the array
 * beside them needs; narrow integers all round; a shorter array, as long as little of
 * it goes.
 */
#include "find.h"
#include "picture.h"
#include "weights.h"

#include <errno.h>
#include <stdlib.h>

/* A field of a proposal that is declared otherwise than it is now. */
struct change {
	uint32_t member; /* index into hl_types.member */
	uint64_t size; /* its new size */
	uint64_t elements; /* of an array; 0: a narrower integer */
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

static bool is_integer(const struct hl_find *find, const struct hl_field *field)
{
	const struct hl_type *type = type_of(find, field);

	return type->kind == HL_BASE && !field->bits &&
	       !(type->flags & (HL_TYPE_FLOAT | HL_TYPE_BOOL));
}

/* How many fields look like what counts the elements of an array or points among them:
 * without one its length is hardly a matter of choice. */
static uint32_t count_indexes(const struct hl_find *find, const struct hl_placing *placing,
			      bool (*is_index)(const char *name))
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < placing->n; i++)
		n += is_integer(find, &placing->field[i]) &&
		     is_index(member_of(find, &placing->field[i])->name);
	return n;
}

/* The largest array, if it takes that share of the struct and is filled up to a count. */
static int find_array(const struct hl_find *find, const struct hl_placing *placing, unsigned share)
{
	int found = -1;

	for (uint32_t i = 0; i < placing->n; i++) {
		const struct hl_field *field = &placing->field[i];
		const struct hl_member *member = member_of(find, field);
		const struct hl_type *type = type_of(find, field);

		if (type->kind != HL_ARRAY || type->flags & HL_TYPE_VECTOR || type->size < 4 ||
		    field->size * share < find->type->size ||
		    hl_look_of_member(find->looks, find->types, member) == HL_LOOK_PAD ||
		    hl_look_per_thread(member->name) == HL_PER_THREAD_SAID)
			continue;
		if (found < 0 || field->size > placing->field[found].size)
			found = (int)i;
	}
	return found >= 0 && count_indexes(find, placing, hl_look_counts_elements) ? found : -1;
}

static void set_size(struct trial *trial, uint32_t index, uint64_t size, uint64_t elements)
{
	struct hl_field *field = &trial->placing.field[index];

	if (trial->n_changes == sizeof(trial->change) / sizeof(trial->change[0]))
		return;
	trial->change[trial->n_changes++] = (struct change){ field->member, size, elements };
	field->size = field->data_size = size;
	if (!elements)
		field->align = (uint32_t)size;
}

/* all: also those that are not named like an index, as in a batch with little else in it. */
static void narrow_counters(const struct hl_find *find, struct trial *trial, int array, bool all)
{
	uint64_t narrow = type_of(find, &trial->placing.field[array])->size <= UINT16_MAX ? 2 : 4;

	for (uint32_t i = 0; i < trial->placing.n; i++) {
		const struct hl_field *field = &trial->placing.field[i];
		const struct hl_member *member = member_of(find, field);

		if (is_integer(find, field) && field->size > narrow && !member->align_log2 &&
		    !hl_look_is_shared(hl_look_of_type(find->looks, member->type)) &&
		    (all || hl_look_counts_elements(member->name)))
			set_size(trial, i, narrow, 0);
	}
	hl_place(&trial->placing, find->line);
}

/* Shortens the array by as few elements as bring the size to `limit`, an eighth at the most.
 * Not a ring between two indexes: its length is a power of two for a reason. */
static bool shorten(const struct hl_find *find, struct trial *trial, int array, uint64_t limit)
{
	const struct hl_type *type = type_of(find, &trial->placing.field[array]);
	uint64_t stride = trial->placing.field[array].size / type->size;
	uint64_t most = type->size < 8 ? 1 : type->size / 8;

	if (count_indexes(find, &trial->placing, hl_look_moves_on) > 1)
		return false;
	for (uint64_t cut = 1; cut <= most && trial->placing.size > limit; cut++) {
		/* All that is over may go at once: alignment can only help further. */
		uint64_t over = (trial->placing.size - limit) / stride;

		cut += over > 1 ? over - 1 : 0;
		if (cut > most)
			break;
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

/* Whether the fields as they are now fit, maybe in another order. */
static bool fits(const struct hl_find *find, struct trial *trial, uint64_t limit)
{
	if (trial->placing.size <= limit)
		return true;
	return !hl_place_smallest(&trial->placing, find->line) && trial->placing.size <= limit;
}

enum way { REORDER, NARROW_INDEXES, NARROW_ALL, SHORTEN, N_WAYS };

/* One of the ways; true when it brings the size to the limit. */
static bool try_way(const struct hl_find *find, struct trial *trial, enum way way, uint64_t limit)
{
	int array = way == REORDER
			    ? -1
			    : find_array(find, &trial->placing, way == NARROW_INDEXES ? 4 : 2);

	if (way == REORDER)
		return fits(find, trial, limit);
	if (array < 0)
		return false;
	narrow_counters(find, trial, array, way != NARROW_INDEXES);
	if (way == SHORTEN)
		return shorten(find, trial, array, limit);
	return trial->n_changes && fits(find, trial, limit);
}

static void say_shorter(struct hl_find *find, const struct change *change, const char *name,
			struct hl_text *declared)
{
	const struct hl_member *member = &find->types->member[change->member];
	const struct hl_type *array = &find->types->type[hl_type_strip(find->types, member->type)];
	struct hl_text bounded = HL_TEXT_INIT;

	hl_text_printf(&find->advice, "%s from %llu to %llu elements", name,
		       (unsigned long long)array->size, (unsigned long long)change->elements);
	hl_text_printf(&bounded, "%s[%llu]", name, (unsigned long long)change->elements);
	if (bounded.failed)
		find->rc = -ENOMEM;
	else
		hl_declare(declared, find->types, array->target, bounded.at);
	if (member->align_log2)
		hl_text_printf(declared, " __attribute__((__aligned__(%u)))",
			       1u << (member->align_log2 - 1));
	hl_text_free(&bounded);
}

static void say_narrower(struct hl_find *find, const struct change *change, const char *name,
			 struct hl_text *declared)
{
	hl_type_id id = hl_type_strip(find->types, find->types->member[change->member].type);
	bool is_signed = find->types->type[id].flags & HL_TYPE_SIGNED;

	hl_text_printf(&find->advice, "%s as a %u-bit integer where its values fit", name,
		       (unsigned)change->size * 8);
	hl_text_printf(declared, "%s%s %s", is_signed ? "" : "unsigned ",
		       change->size == 2 ? "short" : "int", name);
}

static void say_change(struct hl_find *find, const struct change *change, struct hl_text *declared)
{
	const char *name = find->types->member[change->member].name;

	if (!name)
		name = "(anonymous)";
	hl_fault_member_named(find, name);
	if (change->elements)
		say_shorter(find, change, name, declared);
	else
		say_narrower(find, change, name, declared);
}

static void report(struct hl_find *find, struct trial *trial, uint64_t over, uint64_t lines)
{
	struct hl_text declared[8] = { 0 };
	uint32_t count = find->type->count;
	const char **changed = calloc(count ? count : 1, sizeof(*changed));
	bool failed = !changed;

	hl_text_printf(&find->evidence,
		       "%llu bytes: %llu more than %llu line%s, so that it takes %llu%s",
		       (unsigned long long)find->type->size, (unsigned long long)over,
		       (unsigned long long)lines, lines > 1 ? "s" : "",
		       (unsigned long long)lines + 1,
		       find->align < find->line ? " (and lies on one more at most addresses)" : "");
	if (!trial->n_changes)
		hl_text_printf(&find->advice, "reorder the members: %llu bytes",
			       (unsigned long long)trial->placing.size);
	for (uint32_t i = 0; i < trial->n_changes; i++) {
		uint32_t top = trial->change[i].member - find->type->first;

		hl_text_puts(&find->advice, i ? "; " : "");
		say_change(find, &trial->change[i], &declared[i]);
		failed = failed || declared[i].failed;
		if (!failed)
			changed[top] = declared[i].at;
	}
	if (trial->n_changes)
		hl_text_printf(&find->advice, ": %llu bytes",
			       (unsigned long long)trial->placing.size);
	/* One line of many is little. */
	double score =
		(double)HL_W_OVER / (double)(lines + 1) + (trial->n_changes ? 0 : HL_W_OVER_ORDER);

	/* What several CPUs touch is fetched again and again. */
	if (!trial->n_changes &&
	    !hl_looks_hold(find->looks, find->types, find->id, HL_HOLDS_SHARED))
		score *= HL_W_OVER_PRIVATE;
	find->reordered = !trial->n_changes;

	if (failed)
		find->rc = -ENOMEM;
	else
		hl_fault_report(find, HL_FAULT_JUST_OVER, hl_score(score), &trial->placing,
				changed);
	for (uint32_t i = 0; i < trial->n_changes; i++)
		hl_text_free(&declared[i]);
	free(changed);
}

void hl_find_just_over(struct hl_find *find)
{
	uint64_t size = find->type->size, lines = size / find->line, over = size % find->line;

	if (!lines || !over || over > find->line / 4 || !hl_find_placed(find) ||
	    find->type->kind == HL_UNION || find->type->flags & HL_TYPE_PACKED ||
	    hl_find_is_grouped(find) || hl_find_is_format(find))
		return;
	for (enum way way = REORDER; way < N_WAYS && !find->rc; way++) {
		struct trial trial = { .n_changes = 0 };

		if (hl_placing_copy(&trial.placing, &find->placing)) {
			find->rc = -ENOMEM;
			return;
		}
		bool works = try_way(find, &trial, way, lines * find->line);

		if (works)
			report(find, &trial, over, lines);
		hl_placing_free(&trial.placing);
		if (works)
			return;
	}
}
