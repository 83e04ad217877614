// SPDX-License-Identifier: MIT
/*
 * shared-slots: an array with one element a thread or CPU whose elements are not
 * whole lines, so that neighbours write the same line.
 */
#include "find.h"
#include "picture.h"
#include "weights.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Faults of one struct; a file can give it a hundred thousand arrays. */
#define MOST_FAULTS 16u

/* Elements of an array in a struct or of a variable. */
struct slots {
	const char *name;
	hl_type_id element;
	uint64_t n, stride, padded;
	bool guess; /* nothing speaks of threads */
	bool wrapped; /* in a std::array, whose declaration says nothing of its own */
};

/* The array itself, or the one that a std::array wraps. */
static const struct hl_type *find_array(const struct hl_types *types, hl_type_id id, bool *wrapped)
{
	const struct hl_type *type = &types->type[hl_type_strip(types, id)];

	*wrapped = hl_kind_is_aggregate(type->kind) && type->count == 1 && type->name &&
		   !strncmp(type->name, "array<", 6);
	if (*wrapped)
		type = &types->type[hl_type_strip(types, types->member[type->first].type)];
	return type->kind == HL_ARRAY && !(type->flags & HL_TYPE_VECTOR) ? type : NULL;
}

static bool take_array(const struct hl_find *find, hl_type_id id, const char *name,
		       struct slots *slots)
{
	bool wrapped;
	const struct hl_type *array = find_array(find->types, id, &wrapped);
	uint64_t stride = array ? hl_type_size(find->types, array->target) : 0;

	if (!array || array->size < 2 || !stride || stride % find->apart == 0)
		return false;
	*slots = (struct slots){
		.name = name ? name : "(anonymous)",
		.element = array->target,
		.n = array->size,
		.stride = stride,
		.wrapped = wrapped,
		.padded = (stride + find->apart - 1) / find->apart * find->apart,
	};
	return true;
}

static bool is_const(const struct hl_types *types, hl_type_id id)
{
	for (int depth = 0; depth < HL_MAX_DEPTH; depth++) {
		const struct hl_type *type = &types->type[id];

		if (type->kind == HL_CONST)
			return true;
		if (type->kind != HL_TYPEDEF && type->kind != HL_VOLATILE && type->kind != HL_ARRAY)
			return false;
		id = type->target;
	}
	return false;
}

/* percpu_counter and its kind keep what their CPUs write elsewhere. */
static bool keeps_elsewhere(const struct hl_type *element)
{
	return element->name && !strncmp(element->name, "percpu_", 7) &&
	       (strstr(element->name, "counter") || strstr(element->name, "ref") ||
		strstr(element->name, "sem"));
}

static double weight_of_structs(const struct hl_find *find, const struct slots *slots,
				const struct hl_type *element)
{
	enum hl_per_thread said = hl_look_per_thread(slots->name);

	if (keeps_elsewhere(element))
		return 0;
	if (said != HL_PER_THREAD_SAID &&
	    !hl_look_is_shared(hl_look_of_type(find->looks, slots->element)) &&
	    hl_look_per_thread(element->name) == HL_PER_THREAD_SAID)
		said = HL_PER_THREAD_SAID;
	if (hl_looks_hold(find->looks, find->types, slots->element,
			  HL_HOLDS_SHARED | HL_HOLDS_COUNTED))
		return said == HL_PER_THREAD_SAID ? HL_W_SLOT_STRUCT
		       : said == HL_PER_THREAD_MAYBE && slots->n < HL_W_MANY_SLOTS ? HL_W_SLOT_MAYBE
										   : 0;
	return said == HL_PER_THREAD_SAID && slots->n >= 4 ? HL_W_SLOT_QUIET : 0;
}

static double weight_of_numbers(const struct hl_find *find, const struct slots *slots,
				const struct hl_type *number)
{
	bool shared = hl_look_is_shared(hl_look_of_type(find->looks, slots->element));
	enum hl_per_thread said = hl_look_per_thread(slots->name);

	if (number->kind != HL_BASE ||
	    number->flags & (HL_TYPE_CHAR | HL_TYPE_FLOAT | HL_TYPE_BOOL))
		return 0;
	if (said != HL_PER_THREAD_NOT)
		return shared			      ? HL_W_SLOT_ATOMIC
		       : hl_look_counted(slots->name) ? HL_W_SLOT_COUNT
						      : 0;
	return 0;
}

/* An array of locks or of counts that nobody calls one of threads: it may be all the same. */
static double weight_of_guess(const struct hl_find *find, const struct slots *slots,
			      const struct hl_type *element)
{
	if (slots->n < 4 || slots->n > HL_W_MANY_SLOTS || slots->n * slots->stride < find->line)
		return 0;
	switch (hl_look_of_type(find->looks, slots->element)) {
	case HL_LOOK_LOCK:
		return HL_W_GUESS_LOCK;
	case HL_LOOK_ATOMIC:
		return HL_W_GUESS_ATOMIC;
	default:
		return element->kind == HL_BASE && element->size >= 4 &&
				       !(element->flags & HL_TYPE_FLOAT) &&
				       hl_look_counts_alone(slots->name)
			       ? HL_W_GUESS_COUNT
			       : 0;
	}
}

/* What is one CPU's own has no other CPU's elements in it. */
static bool is_inside_slot(const struct hl_find *find, const struct slots *slots)
{
	return find->type && hl_look_per_thread(slots->name) != HL_PER_THREAD_SAID &&
	       hl_look_per_thread(hl_type_name(find->types, find->id)) == HL_PER_THREAD_SAID;
}

/* How sure it is that each element belongs to a thread of its own and is written by it;
 * 0: not at all. */
static double weight_of(const struct hl_find *find, struct slots *slots)
{
	const struct hl_types *types = find->types;
	hl_type_id id = hl_type_strip(types, slots->element);
	double weight;

	if (is_const(types, slots->element) || is_inside_slot(find, slots))
		return 0;
	/* A row of numbers for each. */
	for (int depth = 0; types->type[id].kind == HL_ARRAY && depth < HL_MAX_DEPTH; depth++)
		id = hl_type_strip(types, types->type[id].target);
	weight = hl_kind_is_aggregate(types->type[id].kind)
			 ? weight_of_structs(find, slots, &types->type[id])
			 : weight_of_numbers(find, slots, &types->type[id]);
	slots->guess = weight <= 0;
	/* So many are rather the places in a table. */
	if (slots->n >= HL_W_MANY_SLOTS)
		weight *= HL_W_SLOT_MANY;
	return slots->guess ? weight_of_guess(find, slots, &types->type[id]) : weight;
}

static void say(struct hl_find *find, const struct slots *slots)
{
	uint64_t whole = find->apart / slots->stride;
	struct hl_text *text = &find->evidence;

	hl_text_printf(text, "%llu elements of %llu bytes, %s: ", (unsigned long long)slots->n,
		       (unsigned long long)slots->stride,
		       slots->guess ? "which may be written by different threads"
				    : "one a thread or CPU by the look of it");
	if (slots->stride < find->apart)
		hl_text_printf(text, "up to %llu of them share a line of %u",
			       (unsigned long long)(slots->stride * whole == find->apart
							    ? whole
							    : whole + 2),
			       find->apart);
	else
		hl_text_printf(text, "no multiple of the line of %u, so that neighbours share one",
			       find->apart);
}

static void advise(struct hl_find *find, const struct slots *slots)
{
	hl_text_printf(&find->advice,
		       "align the element to a line: %llu bytes each, %llu in all (now %llu); "
		       "or let each thread have its own in thread-local or per-CPU memory",
		       (unsigned long long)slots->padded,
		       (unsigned long long)(slots->padded * slots->n),
		       (unsigned long long)(slots->stride * slots->n));
}

static bool examine(struct hl_find *find, struct slots *slots, unsigned *score)
{
	double weight = weight_of(find, slots);

	if (weight <= 0)
		return false;
	/* The more of them on a line, the more fight over it. */
	if (slots->stride > find->apart)
		weight *= HL_W_SLOT_LARGE;
	*score = hl_score(weight);
	say(find, slots);
	advise(find, slots);
	return true;
}

/* ---- The proposal ---- */

/* The element as it should be defined; 0, or negative when it cannot be said. */
static int write_padded(const struct hl_find *find, struct hl_text *text, hl_type_id element)
{
	struct hl_placing placing;
	int rc = hl_placing_of(&placing, find->types, hl_type_strip(find->types, element));

	if (rc)
		return rc;
	placing.min_align = find->apart;
	hl_place(&placing, find->line);
	rc = hl_picture_of_placing(text, find->types, element, &placing, find->line, NULL);
	hl_placing_free(&placing);
	return rc;
}

/* Whether the element can be defined anew: a lock or an atomic is somebody else's. */
static bool is_own_struct(const struct hl_find *find, const struct slots *slots)
{
	hl_type_id what = hl_type_strip(find->types, slots->element);

	return hl_kind_is_aggregate(find->types->type[what].kind) &&
	       !hl_look_is_shared(hl_look_of_type(find->looks, slots->element));
}

/* What names the element's type; 0: nothing does, it is declared where it is used. */
static hl_type_id named_element(const struct hl_find *find, const struct slots *slots)
{
	const struct hl_types *types = find->types;
	hl_type_id what = hl_type_strip(types, slots->element);

	if (!is_own_struct(find, slots))
		return 0;
	if (types->type[what].name)
		return what;
	return types->type[slots->element].kind == HL_TYPEDEF ? slots->element : 0;
}

/* The array with elements of whole lines, as C declares it. */
static int declare_slots(const struct hl_find *find, struct hl_text *text,
			 const struct slots *slots)
{
	const struct hl_types *types = find->types;
	hl_type_id what = hl_type_strip(types, slots->element);
	struct hl_text bounded = HL_TEXT_INIT;
	int rc = 0;

	hl_text_printf(&bounded, "%s[%llu]", slots->name, (unsigned long long)slots->n);
	if (bounded.failed) {
		rc = -ENOMEM;
	} else if (named_element(find, slots)) {
		hl_declare(text, types, slots->element, bounded.at);
	} else if (is_own_struct(find, slots)) {
		rc = write_padded(find, text, what);
		/* Without the ";\n" of a definition. */
		if (!rc && !text->failed)
			text->at[text->len -= 2] = '\0';
		hl_text_printf(text, " %s", bounded.at);
	} else {
		hl_text_puts(text, "struct {\n\t\t");
		hl_declare(text, types, slots->element, "value");
		hl_text_printf(text, " __attribute__((__aligned__(%u)));\n\t} %s", find->apart,
			       bounded.at);
	}
	hl_text_free(&bounded);
	return rc;
}

/* What the proposal begins with: the element's definition, when it has a name.  false: it
 * cannot be written, and so nothing is. */
static bool write_proposal(struct hl_find *find, const struct slots *slots,
			   struct hl_text *declared)
{
	hl_type_id named = named_element(find, slots);
	int rc = slots->wrapped ? -ENOTSUP : 0;

	if (!rc && named)
		rc = write_padded(find, &find->text, named);
	if (!rc && named)
		hl_text_putc(&find->text, '\n');
	if (!rc)
		rc = declare_slots(find, declared, slots);
	if (rc == -ENOMEM || declared->failed)
		find->rc = -ENOMEM;
	if (rc)
		hl_text_reset(&find->text);
	return !rc;
}

/* The struct with the array in it, as large as that makes it. */
static bool place_padded(struct hl_find *find, uint32_t member, const struct slots *slots,
			 struct hl_placing *placing)
{
	if (!hl_find_placed(find))
		return false;
	if (hl_placing_copy(placing, &find->placing)) {
		find->rc = -ENOMEM;
		return false;
	}
	for (uint32_t i = 0; i < placing->n; i++) {
		struct hl_field *field = &placing->field[i];

		if (field->member != member)
			continue;
		field->size = field->data_size = slots->padded * slots->n;
		if (field->align < find->apart)
			field->align = find->apart;
		field->flags &= (uint16_t)~HL_FIELD_PACKED;
	}
	hl_place(placing, find->line);
	return true;
}

static uint32_t own_align(const struct hl_find *find, uint32_t top)
{
	uint8_t log2 = find->types->member[find->type->first + top].align_log2;

	return log2 ? (uint32_t)1 << (log2 - 1) : 1;
}

static void report_member(struct hl_find *find, uint32_t top, const struct slots *slots,
			  unsigned score)
{
	const char **changed = calloc(find->type->count, sizeof(*changed));
	struct hl_text declared = HL_TEXT_INIT;
	struct hl_placing proposal = { 0 };
	bool made = changed && place_padded(find, find->type->first + top, slots, &proposal);

	if (!changed)
		find->rc = -ENOMEM;
	hl_fault_member_named(find, slots->name);
	if (made && find->want_text && write_proposal(find, slots, &declared)) {
		/* In a packed struct the alignment of the type does not count; an alignment of
		 * the member's own may be more. */
		uint32_t said = own_align(find, top);

		if (proposal.packed || said > find->apart)
			hl_text_printf(&declared, " __attribute__((__aligned__(%u)))",
				       said > find->apart ? said : find->apart);
		changed[top] = declared.at;
	}
	/* Without a text the size alone is worth saying. */
	if (made && find->want_text && !changed[top])
		proposal.n = 0;
	hl_fault_report(find, HL_FAULT_SHARED_SLOTS, score, made ? &proposal : NULL, changed);
	hl_text_free(&declared);
	hl_placing_free(&proposal);
	free(changed);
}

void hl_find_shared_slots(struct hl_find *find)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < find->type->count && !find->rc && n < MOST_FAULTS; i++) {
		const struct hl_member *member = &find->types->member[find->type->first + i];
		struct slots slots;
		unsigned score;

		if (take_array(find, member->type, member->name, &slots) &&
		    examine(find, &slots, &score)) {
			report_member(find, i, &slots, score);
			n++;
		}
	}
}

void hl_find_variable_slots(struct hl_find *find, const struct hl_variable *variable)
{
	struct hl_text declared = HL_TEXT_INIT;
	struct slots slots;
	unsigned score;

	if (!take_array(find, variable->type, variable->name, &slots) ||
	    !examine(find, &slots, &score))
		return;
	if (find->want_text && write_proposal(find, &slots, &declared))
		hl_text_printf(&find->text, "%s;\n", declared.at ? declared.at : "");
	hl_fault_report_variable(find, HL_FAULT_SHARED_SLOTS, score, variable,
				 slots.padded * slots.n);
	hl_text_free(&declared);
}
