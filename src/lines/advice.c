// SPDX-License-Identifier: MIT
/*
 * What to do about a finding.
 *
 * False sharing is ended by distance: fields that different threads write, or that some write and
 * others only read, get lines of their own.  True sharing is not: there the advice is to share
 * less.
 */
#include "lines/findings.h"

#include "layout/picture.h"
#include "layout/place.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A field that takes less of the transfers than this share is not worth a line. */
#define LEAST_PERCENT 2

static bool matters(const struct hl_shared *finding, const struct hl_touched *field)
{
	return field->transfers * 100 >= finding->transfers * LEAST_PERCENT;
}

static bool is_block(const struct hl_object *object)
{
	return object->kind == HL_OBJECT_HEAP || object->kind == HL_OBJECT_MAPPED;
}

/* ---- Which pattern it is. ---- */

/* Elements of the outermost array, each written by one thread, and by different ones. */
static bool is_slots(const struct hl_shared *finding)
{
	uint32_t first = 0;
	bool different = false;

	for (uint32_t i = 0; i < finding->n_fields; i++) {
		const struct hl_touched *field = &finding->field[i];

		if (!matters(finding, field) || !field->writer)
			continue;
		if (field->index == UINT32_MAX || field->writer == HL_MANY ||
		    field->object != finding->object)
			return false;
		different |= first && first != field->writer;
		first = field->writer;
	}
	return different;
}

/* Threads that write what lies in different objects. */
static const struct hl_object *written_neighbour(const struct hl_shared *finding)
{
	for (uint32_t i = 0; i < finding->n_fields; i++) {
		const struct hl_touched *field = &finding->field[i];

		if (field->object != finding->object && field->accesses)
			return field->object;
	}
	return NULL;
}

/* Several blocks from one place, written by different threads, at the same offset. */
static bool is_blocks(const struct hl_shared *finding, unsigned line)
{
	return is_block(finding->object) && finding->object->several &&
	       finding->object->named.size < line;
}

/* ---- A struct with lines of their own for what is written by different threads. ---- */

/* Who has to do with a member of the outermost struct. */
struct role {
	uint32_t writer, reader; /* as in struct hl_touched */
	uint64_t transfers;
	unsigned class; /* order of the lines: 0: what is not written */
};

static uint32_t joined(uint32_t a, uint32_t b)
{
	return !a ? b : !b || a == b ? a : HL_MANY;
}

/* The member that the byte is in; of a bit-field, the first of its run. */
static int64_t member_index(const struct hl_types *types, const struct hl_type *type,
			    uint64_t offset)
{
	for (uint32_t i = 0; i < type->count; i++) {
		const struct hl_member *member = &types->member[type->first + i];
		uint64_t first = member->bit_offset / 8;
		uint64_t size = member->bit_size
					? (member->bit_offset % 8 + member->bit_size + 7) / 8
					: hl_member_size(types, member);

		if (offset >= first && offset < first + size)
			return i;
	}
	return -1;
}

/* Members by who writes them: those that nobody writes, then by thread, then what many write.
 * How many classes are written. */
static unsigned classify(struct role *role, uint32_t n)
{
	uint32_t writers[16];
	unsigned classes = 0;

	for (uint32_t i = 0; i < n; i++) {
		unsigned c = 0;

		role[i].class = 0;
		if (!role[i].writer)
			continue;
		/* Each member that many threads write has a line of its own. */
		while (c < classes && (writers[c] != role[i].writer || writers[c] == HL_MANY))
			c++;
		if (c == classes && classes < 16)
			writers[classes++] = role[i].writer;
		role[i].class = c < 16 ? c + 1 : 16;
	}
	return classes;
}

static void order_fields(struct hl_placing *placing, const struct role *role, uint32_t first,
			 unsigned classes)
{
	struct hl_field *sorted = malloc(placing->n * sizeof(*sorted));
	uint32_t n = 0;

	if (!sorted)
		return;
	for (unsigned c = 0; c <= classes; c++) {
		bool begins = c != 0;

		for (uint32_t i = 0; i < placing->n; i++) {
			if (role[placing->field[i].member - first].class != c)
				continue;
			sorted[n] = placing->field[i];
			if (begins)
				sorted[n].flags |= HL_FIELD_NEW_LINE;
			begins = false;
			n++;
		}
	}
	if (n == placing->n)
		memcpy(placing->field, sorted, n * sizeof(*sorted));
	free(sorted);
}

/* What must stay where it is cannot be put in order. */
static bool can_be_ordered(const struct hl_placing *placing)
{
	for (uint32_t i = 0; i < placing->n; i++) {
		if (placing->field[i].flags &
			    (HL_FIELD_FIXED | HL_FIELD_LAST | HL_FIELD_WITH_PREVIOUS) ||
		    placing->field[i].bits)
			return false;
	}
	return true;
}

static int propose_struct(struct hl_shared *finding, const struct hl_types *types, hl_type_id id,
			  uint64_t element, unsigned line)
{
	const struct hl_type *type = &types->type[hl_type_strip(types, id)];
	struct role *role = calloc(type->count + 1ul, sizeof(*role));
	struct hl_placing placing = { 0 };
	struct hl_text text = HL_TEXT_INIT;
	unsigned classes = 0;
	int status;

	if (!role)
		return -ENOMEM;
	for (uint32_t i = 0; i < finding->n_fields; i++) {
		const struct hl_touched *field = &finding->field[i];
		int64_t m = field->object == finding->object
				    ? member_index(types, type, field->offset % element)
				    : -1;

		if (m < 0 || !matters(finding, field))
			continue;
		role[m].writer = joined(role[m].writer, field->writer);
		role[m].reader = joined(role[m].reader, field->reader);
		role[m].transfers += field->transfers;
	}
	status = hl_placing_of(&placing, types, id);
	if (!status && can_be_ordered(&placing))
		classes = classify(role, type->count);
	if (classes) {
		order_fields(&placing, role, type->first, classes);
		placing.min_align = placing.min_align < line ? line : placing.min_align;
		hl_place(&placing, line);
		status = hl_picture_of_placing(&text, types, id, &placing, line, NULL);
		if (!status && text.failed)
			status = -ENOMEM;
		if (!status && placing.size > hl_type_size(types, id)) {
			finding->code = text.at;
			finding->new_size = placing.size;
			text = (struct hl_text)HL_TEXT_INIT;
		}
	}
	hl_text_free(&text);
	hl_placing_free(&placing);
	free(role);
	return status == -ENOTSUP ? 0 : status;
}

/* The struct whose fields share lines: the object's type, or what it is an array of. */
static int propose_layout(struct hl_shared *finding, unsigned line)
{
	const struct hl_named_object *named = &finding->object->named;
	hl_type_id id = named->type;
	uint64_t size;

	if (!named->types)
		return 0;
	for (int i = 0; i < HL_MAX_DEPTH &&
			named->types->type[hl_type_strip(named->types, id)].kind == HL_ARRAY;
	     i++)
		id = named->types->type[hl_type_strip(named->types, id)].target;
	size = hl_type_size(named->types, id);
	if (!size ||
	    !hl_kind_is_aggregate(named->types->type[hl_type_strip(named->types, id)].kind))
		return 0;
	return propose_struct(finding, named->types, id, size, line);
}

/* ---- Words. ---- */

static void name_fields(struct hl_text *text, const struct hl_shared *finding, bool written)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < finding->n_fields; i++) {
		const struct hl_touched *field = &finding->field[i];

		if (field->object != finding->object || !matters(finding, field) ||
		    (field->writer != 0) != written)
			continue;
		if (n++ == 4) {
			hl_text_puts(text, ", ...");
			return;
		}
		hl_text_printf(text, "%s%s", n > 1 ? ", " : "", field->name);
	}
}

static void say_saved(struct hl_text *text, const struct hl_shared *finding)
{
	hl_text_printf(text, "; that saves about %llu of %llu transfers",
		       (unsigned long long)finding->untrue, (unsigned long long)finding->transfers);
}

static void say_slots(struct hl_text *text, const struct hl_shared *finding, unsigned line)
{
	hl_text_puts(text, "each element is written by one thread: give each a line of its own");
	hl_text_printf(text,
		       " (a struct with the element and __attribute__((aligned(%u))), or one "
		       "element a thread in its own memory)",
		       line);
	say_saved(text, finding);
}

static void say_blocks(struct hl_text *text, const struct hl_shared *finding, unsigned line)
{
	hl_text_printf(
		text,
		"blocks that different threads use lie on one line: allocate each with "
		"aligned_alloc(%u, %llu), or let each thread allocate its own",
		line, (unsigned long long)((finding->object->named.size + line - 1) / line * line));
	say_saved(text, finding);
}

static void say_neighbours(struct hl_text *text, const struct hl_shared *finding,
			   const struct hl_object *neighbour, unsigned line)
{
	hl_object_name(text, finding->object);
	hl_text_puts(text, " and ");
	hl_object_name(text, neighbour);
	hl_text_puts(text, " are different objects on one line: ");
	if (is_block(finding->object))
		hl_text_printf(text,
			       "allocate one with aligned_alloc(%u, ...), its size a multiple of "
			       "%u",
			       line, line);
	else
		hl_text_printf(text, "begin each with __attribute__((aligned(%u)))", line);
	say_saved(text, finding);
}

static void say_separate(struct hl_text *text, const struct hl_shared *finding)
{
	struct hl_text read = HL_TEXT_INIT, written = HL_TEXT_INIT;

	name_fields(&read, finding, false);
	name_fields(&written, finding, true);
	hl_text_puts(text, "give lines of their own to what different threads write");
	if (written.len)
		hl_text_printf(text, " (%s)", written.at);
	if (read.len)
		hl_text_printf(text, ", away from what is only read (%s)", read.at);
	text->failed |= read.failed || written.failed;
	say_saved(text, finding);
	if (finding->code)
		hl_text_printf(text, "; %llu bytes instead of %llu",
			       (unsigned long long)finding->new_size,
			       (unsigned long long)finding->object->named.size);
	hl_text_free(&read);
	hl_text_free(&written);
}

/* The field with the most transfers says how the sharing could be less. */
static void say_share_less(struct hl_text *text, const struct hl_shared *finding)
{
	const struct hl_touched *field = &finding->field[0];
	bool changes = false, swaps = false;

	for (uint32_t i = 0; i < field->n_users; i++) {
		changes |= field->user[i].flags & HL_RAW_WRITE && field->reader;
		swaps |= field->user[i].flags & HL_RAW_RMW;
	}
	if (field->writer == HL_MANY && (changes || swaps))
		hl_text_printf(
			text,
			"%s is changed by many threads: if it is a count, give each thread "
			"or CPU its own and add them up when it is read; if it is a lock or a "
			"head of a list, take it less often or have several",
			field->name);
	else if (field->writer == HL_MANY)
		hl_text_printf(text,
			       "%s is written by many threads: let each write its own, or look "
			       "first whether it has the value already",
			       field->name);
	else
		hl_text_printf(text,
			       "%s goes from one thread to others, as it must: pass on more at a "
			       "time, or less often",
			       field->name);
	hl_text_puts(text, "; another layout saves nothing");
}

int hl_advise(struct hl_findings *findings, struct hl_shared *finding)
{
	const struct hl_object *neighbour = written_neighbour(finding);
	struct hl_text text = HL_TEXT_INIT;
	unsigned line = findings->file->header.line;
	int status = 0;

	if (finding->sharing == HL_SHARING_TRUE || !finding->n_fields) {
		say_share_less(&text, finding);
	} else if (is_slots(finding)) {
		say_slots(&text, finding, line);
	} else if (neighbour) {
		say_neighbours(&text, finding, neighbour, line);
	} else if (is_blocks(finding, line)) {
		say_blocks(&text, finding, line);
	} else {
		status = propose_layout(finding, line);
		say_separate(&text, finding);
		if (finding->sharing == HL_SHARING_MIXED)
			hl_text_puts(&text, "; the rest is true sharing and stays");
	}
	if (text.failed || status) {
		hl_text_free(&text);
		return status ? status : -ENOMEM;
	}
	finding->advice = text.at;
	return 0;
}
