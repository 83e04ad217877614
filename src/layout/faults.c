// SPDX-License-Identifier: MIT
/*
 * The faults of a type: runs the routine of each kind and shows what they find.
 */
#include "find.h"
#include "picture.h"
#include "weights.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void (*const find_fault[HL_N_FAULTS])(struct hl_find *) = {
	[HL_FAULT_FALSE_ISOLATION] = hl_find_false_isolation,
	[HL_FAULT_SHARED_SLOTS] = hl_find_shared_slots,
	[HL_FAULT_STRADDLE] = hl_find_straddle,
	[HL_FAULT_LOCK_BESIDE_READ_MOSTLY] = hl_find_lock_beside_read_mostly,
	[HL_FAULT_JUST_OVER] = hl_find_just_over,
	[HL_FAULT_CROSSING] = hl_find_crossing,
	[HL_FAULT_HOLE] = hl_find_hole,
};

/* ---- Putting a fault together ---- */

/* A proposal of more fields is not written out: nobody would read it, and each of several
 * faults of a struct would have to be written for each that is shown. */
#define MOST_SHOWN 2048u

/* Names are gathered one behind the other, each with its zero byte; pointers to them are
 * made when the text does not move any more. */
static void end_name(struct hl_find *find)
{
	hl_text_add(&find->names, "", 1);
	find->n_names++;
}

void hl_fault_member(struct hl_find *find, const struct hl_leaf *leaf)
{
	hl_find_path(&find->names, find, leaf);
	end_name(find);
}

void hl_fault_member_named(struct hl_find *find, const char *name)
{
	hl_text_puts(&find->names, name);
	end_name(find);
}

static int point_to_names(struct hl_find *find)
{
	const char *at = find->names.at;

	if (find->n_names > find->names_room) {
		const char **more = realloc(find->name, find->n_names * sizeof(*more));

		if (!more)
			return -ENOMEM;
		find->name = more;
		find->names_room = find->n_names;
	}
	for (uint32_t i = 0; i < find->n_names; i++) {
		find->name[i] = at;
		at += strlen(at) + 1;
	}
	return 0;
}

static const char *text_of(const struct hl_text *text)
{
	return text->at ? text->at : "";
}

static void show(struct hl_find *find, struct hl_fault *fault)
{
	bool failed = find->evidence.failed || find->advice.failed || find->text.failed ||
		      find->names.failed;

	if (!find->rc && (failed || point_to_names(find)))
		find->rc = -ENOMEM;
	if (!find->rc) {
		fault->evidence = text_of(&find->evidence);
		fault->advice = text_of(&find->advice);
		fault->text = text_of(&find->text);
		fault->members = find->name;
		fault->n_members = find->n_names;
		find->sink(find->arg, fault);
	}
	hl_text_reset(&find->evidence);
	hl_text_reset(&find->advice);
	hl_text_reset(&find->text);
	hl_text_reset(&find->names);
	find->n_names = 0;
}

static bool can_begin(const struct hl_find *find, const struct hl_field *field)
{
	return find->types->member[field->member].name != NULL;
}

/* The field behind `start` that can stand before all of its group; 0: none. */
static uint32_t find_named(const struct hl_find *find, const struct hl_placing *proposal,
			   uint32_t start)
{
	for (uint32_t i = start + 1; i < proposal->n; i++) {
		const struct hl_field *field = &proposal->field[i];

		if (field->flags & (HL_FIELD_NEW_LINE | HL_FIELD_LAST) || !field->size)
			return 0;
		if (can_begin(find, field) && !field->bits)
			return i;
	}
	return 0;
}

int hl_fault_name_groups(const struct hl_find *find, struct hl_placing *proposal)
{
	for (uint32_t start = 0; start < proposal->n; start++) {
		struct hl_field *field = &proposal->field[start];

		if (!(field->flags & HL_FIELD_NEW_LINE) || can_begin(find, field))
			continue;

		uint32_t named = find_named(find, proposal, start);
		struct hl_field first = proposal->field[named];

		if (!named)
			return -ENOTSUP;
		memmove(field + 1, field, (named - start) * sizeof(*field));
		field[1].flags &= (uint16_t)~HL_FIELD_NEW_LINE;
		field[0] = first;
		field[0].flags |= HL_FIELD_NEW_LINE;
		hl_place(proposal, find->apart);
	}
	return 0;
}

/* Groups that begin lines are as far apart as the ruler wants them. */
static unsigned line_of(const struct hl_find *find, const struct hl_placing *proposal)
{
	for (uint32_t i = 0; i < proposal->n; i++)
		if (proposal->field[i].flags & HL_FIELD_NEW_LINE)
			return find->apart;
	return find->line;
}

/* A header of the system's: whoever reads this cannot change it. */
static bool is_foreign(const struct hl_find *find)
{
	return !strncmp(find->types->file[find->type->file], "/usr/", 5);
}

void hl_fault_report(struct hl_find *find, enum hl_fault_kind kind, unsigned score,
		     const struct hl_placing *proposal, const char *const *changed)
{
	struct hl_fault fault = { .kind = kind, .type = find->id, .score = score };

	if (is_foreign(find))
		fault.score = hl_score(score * HL_W_FOREIGN);

	if (proposal) {
		fault.size = proposal->size;
		fault.lines = hl_lines(proposal->size, find->line);
		if (find->want_text && proposal->n && proposal->n <= MOST_SHOWN &&
		    hl_picture_of_placing(&find->text, find->types, find->id, proposal,
					  line_of(find, proposal), changed) == -ENOMEM)
			find->rc = -ENOMEM;
	}
	show(find, &fault);
}

void hl_fault_report_variable(struct hl_find *find, enum hl_fault_kind kind, unsigned score,
			      const struct hl_variable *variable, uint64_t size)
{
	struct hl_fault fault = {
		.kind = kind,
		.variable = variable,
		.score = score,
		.size = size,
		.lines = hl_lines(size, find->line),
	};

	hl_fault_member_named(find, variable->name);
	show(find, &fault);
}

/* ---- One type, one variable ---- */

static void begin(struct hl_find *find, const struct hl_types *types, const struct hl_ruler *ruler,
		  bool want_text, hl_fault_sink *sink, void *arg)
{
	*find = (struct hl_find){
		.types = types,
		.looks = ruler->looks,
		.line = ruler->line,
		.apart = ruler->pair ? ruler->line * 2 : ruler->line,
		.want_text = want_text,
		.sink = sink,
		.arg = arg,
	};
}

static int end(struct hl_find *find)
{
	hl_placing_free(&find->placing);
	free(find->leaf);
	free(find->frame);
	free(find->name);
	hl_text_free(&find->evidence);
	hl_text_free(&find->advice);
	hl_text_free(&find->text);
	hl_text_free(&find->names);
	return find->rc;
}

bool hl_find_placed(struct hl_find *find)
{
	if (find->asked)
		return find->placed;

	int rc = hl_placing_of(&find->placing, find->types, hl_type_strip(find->types, find->id));

	find->asked = true;
	find->placed = !rc;
	if (rc == -ENOMEM)
		find->rc = rc;
	if (find->placed)
		hl_place(&find->placing, find->line);
	return find->placed;
}

/* What an address of the type is a multiple of, for all that is known. */
static uint32_t align_of(const struct hl_find *find)
{
	uint32_t align = hl_type_align(find->types, find->id);
	hl_type_id what = hl_type_strip(find->types, find->id);

	if (align < hl_looks_used_align(find->looks, what))
		align = hl_looks_used_align(find->looks, what);
	/* BTF tells of an alignment only by the padding that it left, and so the least
	 * that it can have been: what fills lines was to begin one. */
	if (find->types->from_btf && find->type->align_log2 && align < find->line &&
	    find->type->size % find->line == 0)
		align = find->line;
	return align;
}

int hl_faults_of_type(const struct hl_types *types, hl_type_id id, const struct hl_ruler *ruler,
		      bool want_text, hl_fault_sink *sink, void *arg)
{
	struct hl_find find;
	hl_type_id what = hl_type_strip(types, id);

	begin(&find, types, ruler, want_text, sink, arg);
	find.id = id;
	find.type = &types->type[what];
	if (!hl_kind_is_aggregate(find.type->kind) || !find.type->size || !find.type->count)
		return 0;
	find.align = align_of(&find);
	if (hl_find_leaves(&find))
		return end(&find);

	for (int kind = 0; kind < HL_N_FAULTS && !find.rc; kind++)
		find_fault[kind](&find);
	return end(&find);
}

int hl_faults_of_variable(const struct hl_types *types, uint32_t index,
			  const struct hl_ruler *ruler, bool want_text, hl_fault_sink *sink,
			  void *arg)
{
	struct hl_find find;
	const struct hl_variable *variable = &types->variable[index];

	begin(&find, types, ruler, want_text, sink, arg);
	hl_find_variable_isolation(&find, variable);
	hl_find_variable_slots(&find, variable);
	return end(&find);
}

/* ---- Notes ---- */

/* Any allocator gives what max_align_t needs; more must be asked for. */
#define ALLOCATED_ALIGN 16u

static bool ends_flexible(const struct hl_types *types, hl_type_id id, int depth)
{
	const struct hl_type *type = &types->type[hl_type_strip(types, id)];

	if (type->kind == HL_ARRAY)
		return type->flags & HL_TYPE_FLEXIBLE && !type->size;
	if ((type->kind != HL_STRUCT && type->kind != HL_CLASS) || !type->count || depth > 16)
		return false;
	return ends_flexible(types, types->member[type->first + type->count - 1].type, depth + 1);
}

void hl_notes_of_type(struct hl_text *text, const struct hl_types *types, hl_type_id id,
		      const struct hl_ruler *ruler)
{
	const struct hl_type *type = &types->type[hl_type_strip(types, id)];
	uint32_t align = hl_type_align(types, id);

	(void)ruler;
	if (align > ALLOCATED_ALIGN)
		hl_text_printf(
			text,
			"needs aligned allocation: malloc() and a plain new give %u, not %u; "
			"use aligned_alloc() or std::align_val_t\n",
			ALLOCATED_ALIGN, align);
	if (type->kind == HL_UNION)
		return;
	for (uint32_t i = 0; i + 1 < type->count; i++) {
		const struct hl_member *member = &types->member[type->first + i];

		if (!member->bit_size && !(member->flags & (HL_MEMBER_VIRTUAL | HL_MEMBER_BASE)) &&
		    hl_kind_is_aggregate(types->type[hl_type_strip(types, member->type)].kind) &&
		    ends_flexible(types, member->type, 0))
			hl_text_printf(
				text,
				"%s ends in a flexible array but is not the last member: its "
				"elements overlay what follows\n",
				member->name ? member->name : "an anonymous member");
	}
}
