// SPDX-License-Identifier: MIT
#include "lines/findings.h"

#include "layout/clean.h"
#include "layout/picture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Above this share of transfers for bytes that nobody else had touched, it is false sharing alone;
 * below the other, true sharing. */
#define MOSTLY_FALSE 80
#define MOSTLY_TRUE 20

/* Fields of one finding; what comes beyond, in a large array, is counted together. */
#define MAX_FIELDS 4096

/* ---- Memory of strings: freed as a whole. ---- */

struct string {
	struct string *next;
	char at[];
};

/* Names are kept as they can be shown. */
static const char *keep(struct hl_findings *findings, struct hl_text *text)
{
	struct string *string;

	if (text->len)
		hl_clean_from(text, 0);

	if (text->failed)
		return NULL;
	string = malloc(sizeof(*string) + text->len + 1);
	if (!string)
		return NULL;
	memcpy(string->at, text->at ? text->at : "", text->len);
	string->at[text->len] = '\0';
	string->next = findings->memory;
	findings->memory = string;
	return string->at;
}

/* ---- Groups. ---- */

static bool is_of_library(const struct hl_code *code)
{
	return !code->hooked || (code->file && (strstr(code->file, "/include/c++/") ||
						strstr(code->file, "/c++/v1/")));
}

/* The function that says what the thread does: the one it was started with, or where that is a
 * library's, the first of the program's own. */
static const struct hl_code *what_it_does(struct hl_symbols *symbols,
					  const struct hl_raw_thread *thread)
{
	const struct hl_code *code = hl_symbols_function(symbols, thread->start);

	if (!code || !is_of_library(code))
		return code;
	for (unsigned i = 0; i < HL_RAW_FRAMES && thread->first[i]; i++) {
		const struct hl_code *first = hl_symbols_code(symbols, thread->first[i]);

		if (first && is_of_library(first) && first->hooked)
			first = hl_symbols_inlined(symbols, thread->first[i]);
		if (first && !is_of_library(first))
			return first;
	}
	return code;
}

static int name_thread(struct hl_findings *findings, struct hl_text *name,
		       const struct hl_raw_thread *thread)
{
	const struct hl_code *code;

	hl_text_reset(name);
	hl_text_puts(name, "");
	if (!thread->start) {
		hl_text_puts(name, thread->id == 1 ? "main" : "other");
		return 0;
	}
	code = what_it_does(findings->symbols, thread);
	if (!code)
		return -ENOMEM;
	hl_text_puts(name, code->function);
	/* A lambda has no name of its own. */
	if (!strcmp(code->function, "operator()") && code->file) {
		hl_text_puts(name, " at ");
		hl_code_place(name, code);
	}
	return 0;
}

static int make_groups(struct hl_findings *findings)
{
	const struct hl_raw_file *file = findings->file;
	struct hl_text name = HL_TEXT_INIT;
	int status = 0;

	findings->group = calloc(file->n_threads + 1, sizeof(*findings->group));
	findings->group_of = calloc(file->n_threads + 1, sizeof(*findings->group_of));
	if (!findings->group || !findings->group_of)
		return -ENOMEM;
	for (uint32_t i = 0; i < file->n_threads && !status; i++) {
		const struct hl_raw_thread *thread = &file->thread[i].raw;
		struct hl_group *group;
		uint32_t g = 0;

		status = name_thread(findings, &name, thread);
		while (!status && g < findings->n_groups &&
		       strcmp(findings->group[g].name, name.at))
			g++;
		group = &findings->group[g];
		if (!status && g == findings->n_groups) {
			group->name = keep(findings, &name);
			status = group->name ? 0 : -ENOMEM;
			findings->n_groups++;
		}
		group->n_threads++;
		group->accesses += thread->accesses;
		group->transfers += thread->transfers;
		findings->accesses += thread->accesses;
		findings->transfers += thread->transfers;
		findings->lost += thread->lost;
		findings->group_of[i] = g;
	}
	hl_text_free(&name);
	return status;
}

uint32_t hl_findings_group(const struct hl_findings *findings, uint32_t thread)
{
	const struct hl_raw_thread_read *read = hl_raw_thread(findings->file, thread);

	return read ? findings->group_of[read - findings->file->thread] : 0;
}

/* ---- Objects. ---- */

/* While they are found: objects by what tells them apart, and what each line holds. */
struct finder {
	struct hl_findings *findings;
	uint32_t *bucket; /* index of an object + 1; open addressing */
	uint32_t buckets, room;
	struct line_facts {
		uint32_t object[4]; /* index + 1 */
		uint64_t transfers[4];
	} * line; /* by number */
	uint32_t *finding_of; /* by object: index of its finding + 1 */
	struct touches {
		struct hl_touch *at;
		uint32_t n;
	} * touches; /* by object */
};

static uint64_t hash_object(enum hl_object_kind kind, uint64_t a, uint64_t b)
{
	uint64_t h = (a ^ (uint64_t)kind << 60) * 0x9e3779b97f4a7c15;

	h = (h ^ h >> 32 ^ b) * 0x9e3779b97f4a7c15;
	return h ^ h >> 32;
}

static int grow_buckets(struct finder *finder)
{
	struct hl_findings *findings = finder->findings;
	uint32_t buckets = finder->buckets ? finder->buckets * 2 : 64;
	uint32_t *more = calloc(buckets, sizeof(*more));
	struct hl_object *objects = realloc(findings->object, buckets / 2 * sizeof(*objects));

	if (objects)
		findings->object = objects;
	if (!more || !objects) {
		free(more);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < findings->n_objects; i++) {
		uint32_t at = hash_object(objects[i].kind, objects[i].a, objects[i].b);

		while (more[at & (buckets - 1)])
			at++;
		more[at & (buckets - 1)] = i + 1;
	}
	free(finder->bucket);
	finder->bucket = more;
	finder->buckets = buckets;
	return 0;
}

/* The object of that kind; new ones are as `object` says.  Its index, or -ENOMEM. */
static int64_t find_object(struct finder *finder, const struct hl_object *object)
{
	struct hl_findings *findings = finder->findings;
	uint32_t at = hash_object(object->kind, object->a, object->b);

	if (findings->n_objects >= finder->buckets / 2 && grow_buckets(finder))
		return -ENOMEM;
	for (;; at++) {
		uint32_t there = finder->bucket[at & (finder->buckets - 1)];
		struct hl_object *known = there ? &findings->object[there - 1] : NULL;

		if (!known)
			break;
		if (known->kind == object->kind && known->a == object->a && known->b == object->b) {
			known->several |= known->instance != object->instance;
			return there - 1;
		}
	}
	findings->object[findings->n_objects] = *object;
	finder->bucket[at & (finder->buckets - 1)] = ++findings->n_objects;
	return findings->n_objects - 1;
}

/* The part of the line that has the byte; of several that begin before it the last. */
static const struct hl_raw_part *part_at(const struct hl_raw_line *line, uint64_t address)
{
	const struct hl_raw_part *found = NULL;

	for (uint32_t i = 0; i < line->n_parts; i++) {
		const struct hl_raw_part *part = &line->part[i];

		if (part->place == HL_RAW_TLS || part->place == HL_RAW_ON_STACK ||
		    (address >= part->start && address < part->start + part->size))
			found = part;
	}
	return found;
}

static void fill_static(struct finder *finder, struct hl_object *object, uint64_t address)
{
	if (hl_symbols_static(finder->findings->symbols, address, &object->named)) {
		object->kind = HL_OBJECT_STATIC;
		object->a = object->instance = object->named.start;
		return;
	}
	object->kind = HL_OBJECT_UNKNOWN;
	object->a = object->instance = address &
				       ~(uint64_t)(finder->findings->file->header.line - 1);
	object->named.start = object->a;
	object->named.size = finder->findings->file->header.line;
}

static void fill_tls(struct finder *finder, struct hl_object *object,
		     const struct hl_raw_part *part, uint64_t address)
{
	object->kind = HL_OBJECT_TLS;
	object->group = hl_findings_group(finder->findings, part->thread);
	if (hl_symbols_tls(finder->findings->symbols, part->size, address - part->start,
			   &object->named))
		object->instance = part->start + object->named.start;
	else
		object->named.start = object->instance = part->start;
	object->a = object->named.name ? part->size : part->start;
	object->b = object->named.name ? object->named.start : 0;
	object->named.start = object->instance;
}

static void fill_on_stack(struct finder *finder, struct hl_object *object,
			  const struct hl_raw_part *part, uint64_t address)
{
	struct hl_findings *findings = finder->findings;
	uint64_t line = findings->file->header.line;

	object->kind = HL_OBJECT_STACK;
	object->group = hl_findings_group(findings, part->thread);
	object->stack = hl_raw_stack(findings->file, part->stack);
	object->b = object->group;
	if (object->stack && object->stack->n == HL_RAW_FRAME) {
		object->function = hl_symbols_code(findings->symbols, object->stack->pc[0]);
		object->a = object->stack->pc[0];
		if (hl_symbols_local(findings->symbols, object->stack->pc, address,
				     &object->named)) {
			object->instance = object->named.start;
			/* One function can have several in a line. */
			object->b |= (object->named.start - object->stack->pc[1]) << 32;
			return;
		}
	}
	object->instance = address & ~(line - 1);
	object->named.start = object->instance;
	object->named.size = line;
}

static int64_t object_of(struct finder *finder, const struct hl_raw_line *line, uint64_t address)
{
	const struct hl_raw_part *part = part_at(line, address);
	struct hl_object object = { 0 };

	if (!part) {
		fill_static(finder, &object, address);
	} else if (part->place == HL_RAW_TLS) {
		fill_tls(finder, &object, part, address);
	} else if (part->place == HL_RAW_ON_STACK) {
		fill_on_stack(finder, &object, part, address);
	} else {
		object.kind = part->place == HL_RAW_MAPPED ? HL_OBJECT_MAPPED : HL_OBJECT_HEAP;
		object.stack = hl_raw_stack(finder->findings->file, part->stack);
		object.a = part->stack;
		object.b = part->size;
		object.instance = object.named.start = part->start;
		object.named.size = part->size;
	}
	return find_object(finder, &object);
}

static int64_t object_of_handover(struct finder *finder, const struct hl_raw_handover *handover)
{
	struct hl_raw_line line = { .n_parts = handover->block_size ? 1 : 0 };

	line.part[0] = (struct hl_raw_part){
		.start = handover->address - handover->offset,
		.size = handover->block_size,
		.stack = handover->stack,
		.place = handover->place == HL_RAW_MAPPED ? HL_RAW_MAPPED : HL_RAW_HEAP,
	};
	return object_of(finder, &line, handover->address);
}

/* ---- First pass: which objects there are, and what is in each line. ---- */

static const struct hl_raw_line *line_of(const struct hl_raw_file *file, uint32_t number)
{
	static const struct hl_raw_line none;

	return number && number < file->n_lines ? &file->line[number] : &none;
}

static void count_in_line(struct finder *finder, uint32_t line, uint32_t object, uint64_t transfers)
{
	struct line_facts *facts = &finder->line[line];

	for (unsigned i = 0; i < 4; i++) {
		if (!facts->object[i])
			facts->object[i] = object + 1;
		if (facts->object[i] == object + 1) {
			facts->transfers[i] += transfers;
			return;
		}
	}
}

static int64_t object_of_access(struct finder *finder, const struct hl_raw_access *access)
{
	const struct hl_raw_line *line = line_of(finder->findings->file, access->line);

	return object_of(finder, line, line->address + access->offset);
}

static int find_objects(struct finder *finder)
{
	const struct hl_raw_file *file = finder->findings->file;

	for (uint32_t t = 0; t < file->n_threads; t++) {
		for (uint32_t i = 0; i < file->thread[t].n_accesses; i++) {
			const struct hl_raw_access *access = &file->thread[t].access[i];
			int64_t object = object_of_access(finder, access);

			if (object < 0)
				return object;
			finder->findings->untrue += access->untrue;
			if (access->line < file->n_lines)
				count_in_line(finder, access->line, object, access->transfers);
		}
		for (uint32_t i = 0; i < file->thread[t].n_handovers; i++) {
			int64_t object = object_of_handover(finder, &file->thread[t].handover[i]);

			if (object < 0)
				return object;
			finder->findings->untrue += file->thread[t].handover[i].untrue;
		}
	}
	return 0;
}

/* The object that the line is reported under; UINT32_MAX: it is not known. */
static uint32_t first_of_line(const struct finder *finder, uint32_t line)
{
	const struct line_facts *facts = &finder->line[line];
	unsigned best = 0;

	if (line >= finder->findings->file->n_lines)
		return UINT32_MAX;
	for (unsigned i = 1; i < 4 && facts->object[i]; i++) {
		if (facts->transfers[i] > facts->transfers[best])
			best = i;
	}
	return facts->object[best] - 1;
}

/* ---- Types of blocks. ---- */

#define MAX_TOUCHES 64

static int add_touch(struct touches *touches, uint64_t pc, uint64_t offset, uint32_t size)
{
	if (touches->n == MAX_TOUCHES)
		return 0;
	for (uint32_t i = 0; i < touches->n; i++) {
		if (touches->at[i].pc == pc && touches->at[i].offset == offset)
			return 0;
	}
	if (!touches->at)
		touches->at = calloc(MAX_TOUCHES, sizeof(*touches->at));
	if (!touches->at)
		return -ENOMEM;
	touches->at[touches->n++] = (struct hl_touch){ pc, offset, size };
	return 0;
}

static bool is_block(const struct hl_object *object)
{
	return object->kind == HL_OBJECT_HEAP || object->kind == HL_OBJECT_MAPPED;
}

/* Where in its object an address lies, whichever of its kind the object at the line is. */
static uint64_t offset_in(const struct finder *finder, uint32_t object,
			  const struct hl_raw_line *line, uint64_t address)
{
	const struct hl_object *at = &finder->findings->object[object];
	const struct hl_raw_part *part = part_at(line, address);
	const struct hl_raw_stack_read *stack;

	if (part && is_block(at))
		return address - part->start;
	/* The same function was called elsewhere on the stack, or on that of another thread. */
	stack = at->kind == HL_OBJECT_STACK && part
			? hl_raw_stack(finder->findings->file, part->stack)
			: NULL;
	if (stack && stack->n == HL_RAW_FRAME && at->stack && at->stack->n == HL_RAW_FRAME)
		address -= stack->pc[1] - at->stack->pc[1];
	else if (at->kind == HL_OBJECT_STACK)
		return address & (finder->findings->file->header.line - 1);
	return address - at->named.start;
}

static int find_types(struct finder *finder)
{
	struct hl_findings *findings = finder->findings;
	const struct hl_raw_file *file = findings->file;
	int status = 0;

	for (uint32_t t = 0; t < file->n_threads && !status; t++) {
		for (uint32_t i = 0; i < file->thread[t].n_accesses && !status; i++) {
			const struct hl_raw_access *access = &file->thread[t].access[i];
			const struct hl_raw_line *line = line_of(file, access->line);
			int64_t object = object_of_access(finder, access);

			if (object >= 0 && is_block(&findings->object[object]))
				status = add_touch(&finder->touches[object], access->pc,
						   offset_in(finder, object, line,
							     line->address + access->offset),
						   access->size);
		}
		for (uint32_t i = 0; i < file->thread[t].n_handovers && !status; i++) {
			const struct hl_raw_handover *handover = &file->thread[t].handover[i];
			int64_t object = object_of_handover(finder, handover);

			if (object >= 0 && is_block(&findings->object[object]))
				status = add_touch(&finder->touches[object], handover->pc,
						   handover->offset, handover->size);
		}
	}
	for (uint32_t i = 0; i < findings->n_objects && !status; i++) {
		struct hl_object *object = &findings->object[i];
		uint64_t size = object->named.size, start = object->named.start;

		if (!is_block(object) || !object->stack ||
		    !hl_symbols_block_type(findings->symbols, size, finder->touches[i].at,
					   finder->touches[i].n, object->stack->pc,
					   object->stack->n, &object->named))
			continue;
		object->named.size = size;
		object->named.start = start;
	}
	return status;
}

/* ---- Second pass: fields and who uses them. ---- */

static struct hl_shared *finding_of(struct finder *finder, uint32_t object)
{
	struct hl_findings *findings = finder->findings;
	struct hl_shared *more;

	if (finder->finding_of[object])
		return &findings->finding[finder->finding_of[object] - 1];
	if (!(findings->n_findings & (findings->n_findings - 1))) {
		more = realloc(findings->finding,
			       (findings->n_findings ? 2ul * findings->n_findings : 1) *
				       sizeof(*more));
		if (!more)
			return NULL;
		findings->finding = more;
	}
	more = &findings->finding[findings->n_findings++];
	*more = (struct hl_shared){ .object = &findings->object[object] };
	finder->finding_of[object] = findings->n_findings;
	return more;
}

/* A large block without a type is a pool that somebody hands out in parts: its offsets say nothing,
 * the places that use it do. */
#define POOL_BYTES 4096

static bool is_pool(const struct hl_object *object)
{
	return is_block(object) && !object->named.types && object->named.size > POOL_BYTES;
}

/* The element of a block that is an array of what its type is, and the path in it. */
static void name_field(struct hl_findings *findings, struct hl_touched *field, uint64_t offset,
		       uint64_t size)
{
	const struct hl_named_object *named = &field->object->named;
	struct hl_text text = HL_TEXT_INIT, type = HL_TEXT_INIT;
	uint64_t each, base = 0;
	const char *bracket;
	hl_type_id member;

	field->index = UINT32_MAX;
	field->offset = offset;
	field->size = size;
	if (is_pool(field->object)) {
		field->offset = 0;
		field->size = named->size;
		field->name = "(all of it)";
		return;
	}
	if (!named->types) {
		hl_text_printf(&text, "+%llu", (unsigned long long)offset);
	} else {
		hl_text_puts(&text, is_block(field->object) || !named->name ? "" : named->name);
		each = hl_type_size(named->types, named->type);
		if (each && each < named->size) {
			hl_text_printf(&text, "[%llu]", (unsigned long long)(offset / each));
			base = offset / each * each;
		}
		field->offset = base + hl_path_at(&text, named->types, named->type, offset - base,
						  size, &member, &field->size);
		hl_declare(&type, named->types, member, NULL);
		field->type = keep(findings, &type);
	}
	bracket = text.at ? strchr(text.at, '[') : NULL;
	if (bracket)
		field->index = strtoul(bracket + 1, NULL, 10);
	if (text.at && *text.at == '.')
		memmove(text.at, text.at + 1, text.len--);
	if (!text.len)
		hl_text_puts(&text, "(whole)");
	field->name = keep(findings, &text);
	hl_text_free(&text);
	hl_text_free(&type);
}

static struct hl_touched *field_at(struct hl_findings *findings, struct hl_shared *finding,
				   const struct hl_object *object, uint64_t offset, uint64_t size)
{
	struct hl_touched *more, key = { .object = object };

	for (uint32_t i = 0; i < finding->n_fields; i++) {
		struct hl_touched *field = &finding->field[i];

		if (field->object == object && offset >= field->offset &&
		    offset + size <= field->offset + field->size &&
		    (field->size == size || object->named.types))
			return field;
	}
	name_field(findings, &key, offset, size);
	if (finding->n_fields >= MAX_FIELDS) {
		key.name = "(others)";
		key.type = NULL;
		key.offset = 0;
		key.size = object->named.size;
		key.index = UINT32_MAX;
	}
	/* Parts of an array of characters, of what is copied as a whole. */
	for (uint32_t i = 0; i < finding->n_fields; i++) {
		struct hl_touched *field = &finding->field[i];

		if (field->object == object && field->offset == key.offset &&
		    field->size == key.size && key.name && !strcmp(field->name, key.name))
			return field;
	}
	if (!(finding->n_fields & (finding->n_fields - 1))) {
		more = realloc(finding->field,
			       (finding->n_fields ? 2ul * finding->n_fields : 1) * sizeof(*more));
		if (!more)
			return NULL;
		finding->field = more;
	}
	if (!key.name)
		return NULL;
	finding->field[finding->n_fields] = key;
	return &finding->field[finding->n_fields++];
}

static void join(uint32_t *who, uint32_t thread)
{
	*who = !*who || *who == thread ? thread : HL_MANY;
}

static int add_user(struct hl_findings *findings, struct hl_touched *field, uint32_t thread,
		    const struct hl_raw_access *access)
{
	const struct hl_code *code = hl_symbols_code(findings->symbols, access->pc);
	uint32_t group = hl_findings_group(findings, thread);
	struct hl_user *user = NULL, *more;

	if (!code)
		return -ENOMEM;
	for (uint32_t i = 0; i < field->n_users && !user; i++) {
		const struct hl_code *there = field->user[i].code;

		if (field->user[i].group == group && field->user[i].flags == access->flags &&
		    (there == code || (there->line && there->line == code->line &&
				       !strcmp(there->function, code->function) && there->file &&
				       code->file && !strcmp(there->file, code->file))))
			user = &field->user[i];
	}
	if (!user) {
		if (!(field->n_users & (field->n_users - 1))) {
			more = realloc(field->user,
				       (field->n_users ? 2ul * field->n_users : 1) * sizeof(*more));
			if (!more)
				return -ENOMEM;
			field->user = more;
		}
		user = &field->user[field->n_users++];
		*user = (struct hl_user){
			.group = group, .thread = thread, .code = code, .flags = access->flags
		};
	}
	if (user->thread != thread)
		user->thread = 0;
	user->accesses += access->accesses;
	user->transfers += access->transfers;
	user->untrue += access->untrue;
	if (access->from && access->transfers > user->from_transfers) {
		user->from = hl_symbols_code(findings->symbols, access->from);
		user->from_transfers = access->transfers;
	}
	join(access->flags & HL_RAW_WRITE ? &field->writer : &field->reader, thread);
	return 0;
}

static int add_access(struct hl_findings *findings, struct hl_shared *finding, uint32_t object,
		      uint64_t offset, uint32_t thread, const struct hl_raw_access *access)
{
	struct hl_touched *field =
		field_at(findings, finding, &findings->object[object], offset, access->size);

	if (!field)
		return -ENOMEM;
	finding->accesses += access->accesses;
	finding->transfers += access->transfers;
	finding->untrue += access->untrue;
	field->accesses += access->accesses;
	field->transfers += access->transfers;
	field->untrue += access->untrue;
	return add_user(findings, field, thread, access);
}

static int fill_findings(struct finder *finder)
{
	struct hl_findings *findings = finder->findings;
	const struct hl_raw_file *file = findings->file;
	int status = 0;

	for (uint32_t t = 0; t < file->n_threads; t++) {
		uint32_t thread = file->thread[t].raw.id;

		for (uint32_t i = 0; i < file->thread[t].n_accesses && !status; i++) {
			const struct hl_raw_access *access = &file->thread[t].access[i];
			const struct hl_raw_line *line = line_of(file, access->line);
			int64_t object = object_of_access(finder, access);
			uint32_t first = first_of_line(finder, access->line);
			struct hl_shared *finding;

			if (object < 0 || first == UINT32_MAX)
				continue;
			finding = finding_of(finder, first);
			status = finding ? add_access(findings, finding, object,
						      offset_in(finder, object, line,
								line->address + access->offset),
						      thread, access)
					 : -ENOMEM;
		}
		for (uint32_t i = 0; i < file->thread[t].n_handovers && !status; i++) {
			const struct hl_raw_handover *handover = &file->thread[t].handover[i];
			int64_t object = object_of_handover(finder, handover);
			struct hl_shared *finding = object < 0 ? NULL : finding_of(finder, object);
			struct hl_raw_access access = {
				.pc = handover->pc,
				.from = handover->from,
				.flags = handover->flags,
				.accesses = handover->count,
				.transfers = handover->count,
				.untrue = handover->untrue,
				.size = handover->size,
			};

			status = finding ? add_access(findings, finding, object,
						      handover->block_size
							      ? handover->offset
							      : handover->address -
									findings->object[object]
										.named.start,
						      thread, &access)
					 : -ENOMEM;
		}
	}
	return status;
}

/* ---- Lines. ---- */

static int add_other(struct hl_shared *finding, const struct hl_object *object)
{
	const struct hl_object **more;

	for (uint32_t i = 0; i < finding->n_others; i++) {
		if (finding->other[i] == object)
			return 0;
	}
	more = realloc(finding->other, (finding->n_others + 1ul) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	finding->other = more;
	finding->other[finding->n_others++] = object;
	return 0;
}

/* Which line of each finding was passed on most. */
static int rank_lines(struct finder *finder, uint32_t *worst)
{
	struct hl_findings *findings = finder->findings;

	for (uint32_t l = 1; l < findings->file->n_lines; l++) {
		const struct line_facts *facts = &finder->line[l];
		uint32_t first = first_of_line(finder, l), f;
		uint64_t transfers = 0;

		if (first == UINT32_MAX || !finder->finding_of[first])
			continue;
		f = finder->finding_of[first] - 1;
		findings->finding[f].n_lines++;
		for (unsigned i = 0; i < 4 && facts->object[i]; i++) {
			transfers += facts->transfers[i];
			if (facts->object[i] - 1 != first &&
			    add_other(&findings->finding[f],
				      &findings->object[facts->object[i] - 1]))
				return -ENOMEM;
		}
		if (transfers > findings->finding[f].line.transfers) {
			findings->finding[f].line.transfers = transfers;
			findings->finding[f].line.address = findings->file->line[l].address;
			worst[f] = l;
		}
	}
	return 0;
}

static void show_bytes(const struct hl_raw_file *file, struct hl_shown_line *shown, uint32_t thread,
		       const struct hl_raw_access *access)
{
	unsigned grain = file->header.line / 64;

	for (unsigned i = access->offset / grain;
	     i * grain < access->offset + access->size && i < 64u; i++)
		join(access->flags & HL_RAW_WRITE ? &shown->writer[i] : &shown->reader[i], thread);
}

static int show_lines(struct finder *finder)
{
	struct hl_findings *findings = finder->findings;
	const struct hl_raw_file *file = findings->file;
	uint32_t *worst = calloc(findings->n_findings + 1ul, sizeof(*worst));
	int status = worst ? rank_lines(finder, worst) : -ENOMEM;

	for (uint32_t t = 0; t < file->n_threads && !status; t++) {
		for (uint32_t i = 0; i < file->thread[t].n_accesses; i++) {
			const struct hl_raw_access *access = &file->thread[t].access[i];
			uint32_t first = first_of_line(finder, access->line), f;

			if (first == UINT32_MAX || !finder->finding_of[first])
				continue;
			f = finder->finding_of[first] - 1;
			if (worst[f] == access->line)
				show_bytes(file, &findings->finding[f].line, file->thread[t].raw.id,
					   access);
		}
	}
	free(worst);
	return status;
}

/* ---- Putting in order. ---- */

static int descending(uint64_t a, uint64_t b)
{
	return a < b ? 1 : a > b ? -1 : 0;
}

static int by_user(const void *a, const void *b)
{
	const struct hl_user *x = a, *y = b;
	int by = descending(x->transfers, y->transfers);

	if (!by)
		by = descending(x->accesses, y->accesses);
	return by ? by : descending(y->code->pc, x->code->pc);
}

static int by_field(const void *a, const void *b)
{
	const struct hl_touched *x = a, *y = b;
	int by = descending(x->transfers, y->transfers);

	return by ? by : descending(y->offset, x->offset);
}

static int by_finding(const void *a, const void *b)
{
	const struct hl_shared *x = a, *y = b;
	int by = descending(x->transfers, y->transfers);

	return by ? by : x->object < y->object ? -1 : x->object > y->object;
}

static enum hl_sharing judge(uint64_t transfers, uint64_t untrue)
{
	if (untrue * 100 >= transfers * MOSTLY_FALSE)
		return HL_SHARING_FALSE;
	return untrue * 100 <= transfers * MOSTLY_TRUE ? HL_SHARING_TRUE : HL_SHARING_MIXED;
}

static void free_finding(struct hl_shared *finding)
{
	for (uint32_t i = 0; i < finding->n_fields; i++)
		free(finding->field[i].user);
	free(finding->field);
	free(finding->other);
	free(finding->advice);
	free(finding->code);
}

static int settle(struct hl_findings *findings, uint64_t least)
{
	int status = 0;

	if (findings->n_findings)
		qsort(findings->finding, findings->n_findings, sizeof(*findings->finding),
		      by_finding);
	while (findings->n_findings &&
	       findings->finding[findings->n_findings - 1].transfers < least) {
		struct hl_shared *last = &findings->finding[--findings->n_findings];

		findings->n_small += last->transfers != 0;
		findings->small += last->transfers;
		free_finding(last);
	}
	for (uint32_t f = 0; f < findings->n_findings && !status; f++) {
		struct hl_shared *finding = &findings->finding[f];

		finding->sharing = judge(finding->transfers, finding->untrue);
		for (uint32_t i = 0; i < finding->n_fields; i++)
			qsort(finding->field[i].user, finding->field[i].n_users,
			      sizeof(struct hl_user), by_user);
		qsort(finding->field, finding->n_fields, sizeof(*finding->field), by_field);
		status = hl_advise(findings, finding);
	}
	return status;
}

int hl_findings_make(struct hl_findings *findings, const struct hl_raw_file *file,
		     const struct hl_findings_options *options)
{
	struct finder finder = { .findings = findings };
	int status;

	*findings = (struct hl_findings){ .file = file };
	findings->symbols = hl_symbols_open(file, options->debug_dir);
	finder.line = calloc(file->n_lines + 1ul, sizeof(*finder.line));
	status = findings->symbols && finder.line ? make_groups(findings) : -ENOMEM;
	if (!status)
		status = find_objects(&finder);
	/* From here on there are no new ones. */
	finder.finding_of = calloc(findings->n_objects + 1ul, sizeof(*finder.finding_of));
	finder.touches = calloc(findings->n_objects + 1ul, sizeof(*finder.touches));
	if (!finder.finding_of || !finder.touches)
		status = -ENOMEM;
	if (!status)
		status = find_types(&finder);
	if (!status)
		status = fill_findings(&finder);
	if (!status)
		status = show_lines(&finder);
	if (!status)
		status = settle(findings, options->least);
	for (uint32_t i = 0; finder.touches && i < findings->n_objects; i++)
		free(finder.touches[i].at);
	free(finder.touches);
	free(finder.finding_of);
	free(finder.bucket);
	free(finder.line);
	if (status)
		hl_findings_free(findings);
	return status;
}

void hl_findings_free(struct hl_findings *findings)
{
	struct string *string = findings->memory, *next;

	for (uint32_t i = 0; i < findings->n_findings; i++)
		free_finding(&findings->finding[i]);
	for (; string; string = next) {
		next = string->next;
		free(string);
	}
	hl_symbols_close(findings->symbols);
	free(findings->finding);
	free(findings->object);
	free(findings->group);
	free(findings->group_of);
	*findings = (struct hl_findings){ 0 };
}
