// SPDX-License-Identifier: MIT
/*
 * shared-slots: an array with one element a thread or CPU whose elements are not
 * whole lines, so that neighbours write the same line.
 */
#include "find.h"
#include "picture.h"

#include <string.h>

/* Elements of an array in a struct or of a variable. */
struct slots {
	const char *name;
	hl_type_id element;
	uint64_t n, stride;
};

static bool take_array(const struct hl_types *types, hl_type_id id, const char *name,
		       struct slots *slots)
{
	const struct hl_type *array = &types->type[hl_type_strip(types, id)];

	if (array->kind != HL_ARRAY || array->flags & HL_TYPE_VECTOR)
		return false;
	*slots = (struct slots){
		.name = name ? name : "(anonymous)", .element = array->target, .n = array->size,
		.stride = hl_type_size(types, array->target),
	};
	return true;
}

/* Whether the element of a struct type holds something that its thread writes. */
static bool holds_written(const struct hl_find *find, const struct hl_type *type, int depth)
{
	for (uint32_t i = 0; i < type->count; i++) {
		const struct hl_member *member = &find->types->member[type->first + i];
		const struct hl_type *inner =
			&find->types->type[hl_type_strip(find->types, member->type)];
		enum hl_look look = hl_look_of_member(find->looks, find->types, member);

		if (hl_look_is_shared(look) || look == HL_LOOK_COUNTER)
			return true;
		if (hl_kind_is_aggregate(inner->kind) && depth < 4 &&
		    holds_written(find, inner, depth + 1))
			return true;
	}
	return false;
}

/* How sure it is that each element belongs to a thread of its own and is written by it;
 * 0: not at all. */
static double weight_of(const struct hl_find *find, const struct slots *slots)
{
	const struct hl_types *types = find->types;
	const struct hl_type *element = &types->type[hl_type_strip(types, slots->element)];
	bool per_thread = hl_look_per_thread(slots->name);
	bool shared = hl_look_is_shared(hl_look_of_type(find->looks, slots->element));

	for (hl_type_id id = slots->element; types->type[id].kind != element->kind;
	     id = types->type[id].target)
		if (types->type[id].kind == HL_CONST)
			return 0;
	if (hl_kind_is_aggregate(element->kind)) {
		/* percpu_counter and its kind keep their slots elsewhere. */
		if (hl_look_per_thread(element->name) && !shared && !strstr(element->name, "percpu"))
			per_thread = true;
		if (!per_thread)
			return 0;
		if (shared || holds_written(find, element, 0))
			return 850;
		return hl_look_per_thread(slots->name) && slots->n >= 4 ? 300 : 0;
	}
	if (!per_thread || element->kind != HL_BASE || element->flags & (HL_TYPE_CHAR | HL_TYPE_FLOAT))
		return 0;
	if (shared)
		return 800;
	return hl_look_counted(slots->name) ? 700 : 0;
}

static void say(struct hl_find *find, const struct slots *slots)
{
	uint64_t whole = find->apart / (slots->stride ? slots->stride : 1);

	if (slots->stride < find->apart)
		hl_text_printf(&find->evidence, "%llu elements of %llu bytes, one a thread or CPU by the look "
			       "of it: up to %llu of them share a line of %u",
			       (unsigned long long)slots->n, (unsigned long long)slots->stride,
			       (unsigned long long)(slots->stride * whole == find->apart ? whole
										      : whole + 2),
			       find->apart);
	else
		hl_text_printf(&find->evidence, "%llu elements of %llu bytes, one a thread or CPU by the look "
			       "of it: no multiple of the line of %u, so that neighbours share one",
			       (unsigned long long)slots->n, (unsigned long long)slots->stride,
			       find->apart);
}

static void advise(struct hl_find *find, const struct slots *slots)
{
	uint64_t padded = (slots->stride + find->apart - 1) / find->apart * find->apart;

	hl_text_printf(&find->advice, "align the element to a line: %llu bytes each, %llu in all (now %llu); "
		       "or let each thread have its own in thread-local or per-CPU memory",
		       (unsigned long long)padded, (unsigned long long)(padded * slots->n),
		       (unsigned long long)(slots->stride * slots->n));
}

/* The element as it should be declared. */
static void write_element(struct hl_find *find, const struct slots *slots)
{
	const struct hl_types *types = find->types;
	hl_type_id what = hl_type_strip(types, slots->element);

	if (!find->want_text)
		return;
	if (hl_kind_is_aggregate(types->type[what].kind)) {
		struct hl_placing placing;

		if (hl_placing_of(&placing, types, what))
			return;
		placing.min_align = find->apart;
		hl_place(&placing, find->line);
		if (hl_picture_of_placing(&find->text, types, what, &placing, find->line, NULL))
			hl_text_reset(&find->text);
		hl_placing_free(&placing);
		return;
	}
	hl_text_puts(&find->text, "struct {\n\t");
	hl_declare(&find->text, types, slots->element, "value");
	hl_text_printf(&find->text, " __attribute__((aligned(%u)));\n} %s[%llu];\n", find->apart,
		       slots->name, (unsigned long long)slots->n);
}

static bool examine(struct hl_find *find, const struct slots *slots, unsigned *score)
{
	if (slots->n < 2 || !slots->stride || slots->stride % find->apart == 0)
		return false;

	double weight = weight_of(find, slots);

	if (weight <= 0)
		return false;
	/* So many are rather the buckets of a hash. */
	if (slots->n >= 256)
		weight *= 0.4;
	/* The more of them on a line, the more fight over it. */
	if (slots->stride > find->apart)
		weight *= 0.6;
	*score = hl_score(weight);
	say(find, slots);
	advise(find, slots);
	write_element(find, slots);
	return true;
}

void hl_find_shared_slots(struct hl_find *find)
{
	for (uint32_t i = 0; i < find->type->count && !find->rc; i++) {
		const struct hl_member *member = &find->types->member[find->type->first + i];
		struct slots slots;
		unsigned score;

		if (!take_array(find->types, member->type, member->name, &slots) ||
		    !examine(find, &slots, &score))
			continue;
		hl_fault_member_named(find, slots.name);
		uint64_t padded = (slots.stride + find->apart - 1) / find->apart * find->apart;
		struct hl_placing sized = {
			.size = find->type->size + (padded - slots.stride) * slots.n,
		};

		hl_fault_report(find, HL_FAULT_SHARED_SLOTS, score, &sized, NULL);
	}
}

void hl_find_variable_slots(struct hl_find *find, const struct hl_variable *variable)
{
	struct slots slots;
	unsigned score;

	if (take_array(find->types, variable->type, variable->name, &slots) &&
	    examine(find, &slots, &score))
		hl_fault_report_variable(find, HL_FAULT_SHARED_SLOTS, score, variable);
}
