// SPDX-License-Identifier: MIT
/*
 * Types as a C file of its own: what they need first, each type once, names made
 * unique, and assertions that the compiler lays them out as it did.
 */
#include "picture.h"

#include "body.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* No compiler's limit, but no name in a program is as long: those of a damaged file, each
 * a copy with a number behind it, could be. */
#define MAX_IDENTIFIER 2048

/* How deep one type may lead to another; pointers count as well. */
#define MAX_REACH 1000

/* ---- Sets of names that are taken. ---- */

struct name {
	const char *text;
	enum hl_kind kind;
	unsigned next; /* number to try for the next of that name, 0: 2 */
};

struct names {
	struct name *slot; /* open addressing, text NULL: free */
	size_t n, room; /* room is a power of two */
};

static size_t hash_of(const char *text)
{
	size_t hash = 5381;

	while (*text)
		hash = hash * 33 ^ (unsigned char)*text++;
	return hash;
}

/* Where the name is or would be; the set is never full. */
static struct name *find_name(const struct names *names, const char *text)
{
	size_t i = hash_of(text) & (names->room - 1);

	while (names->slot[i].text && strcmp(names->slot[i].text, text) != 0)
		i = (i + 1) & (names->room - 1);
	return &names->slot[i];
}

static int grow_names(struct names *names)
{
	struct names more = { .n = names->n, .room = names->room ? names->room * 2 : 256 };

	more.slot = calloc(more.room, sizeof(*more.slot));
	if (!more.slot)
		return -ENOMEM;
	for (size_t i = 0; i < names->room; i++)
		if (names->slot[i].text)
			*find_name(&more, names->slot[i].text) = names->slot[i];
	free(names->slot);
	*names = more;
	return 0;
}

/* ---- The file being written. ---- */

/* What was reached of a type: its name, or all of it. */
enum { SEEN = 1, WHOLE = 2 };

struct compilable {
	struct hl_text *text;
	const struct hl_types *types;
	struct hl_error *err;
	int error;
	uint8_t *state; /* of each type */
	const char **name; /* of each type: what it is called here, NULL: its own name */
	uint32_t *align; /* of each type: that with which it was written, 0: not yet */
	hl_type_id *seen; /* all types that were reached */
	hl_type_id *plan; /* those to be defined, each after those that it needs */
	uint32_t n_seen, n_plan;
	struct names tags, ordinary; /* the two name spaces of C */
	char **made; /* strings made here */
	size_t n_made, made_room;
	struct hl_placing placing; /* scratch */
};

static int fail(struct compilable *c, int error, const char *what, const char *name)
{
	if (!c->error && c->err)
		snprintf(c->err->text, sizeof(c->err->text), what, name);
	if (!c->error)
		c->error = error;
	return c->error;
}

static int fail_nomem(struct compilable *c)
{
	return fail(c, -ENOMEM, "out of memory%s", "");
}

static bool is_identifier(const char *name)
{
	const char *start = name;

	if (!isalpha((unsigned char)*name) && *name != '_' && *name != '$')
		return false;
	for (; *name; name++)
		if (!isalnum((unsigned char)*name) && *name != '_' && *name != '$')
			return false;
	return name - start <= MAX_IDENTIFIER;
}

static const char *keep_string(struct compilable *c, char *string)
{
	if (string && c->n_made == c->made_room) {
		size_t room = c->made_room ? c->made_room * 2 : 64;
		char **made = realloc(c->made, room * sizeof(*made));

		if (!made) {
			free(string);
			string = NULL;
		} else {
			c->made = made;
			c->made_room = room;
		}
	}
	if (!string) {
		fail_nomem(c);
		return "";
	}
	c->made[c->n_made++] = string;
	return string;
}

static const char *make_name(struct compilable *c, const char *name, unsigned number)
{
	char *made = NULL;

	if (asprintf(&made, "%s__%u", name, number) < 0)
		made = NULL;
	return keep_string(c, made);
}

/* Takes the name, or one like it when that is taken, for a type of the kind. */
static const char *take_name(struct compilable *c, struct names *names, const char *name,
			     enum hl_kind kind)
{
	const char *unique = name;

	if (names->n * 2 >= names->room && grow_names(names)) {
		fail_nomem(c);
		return name;
	}

	struct name *first = find_name(names, unique), *slot = first;
	unsigned number = first->next ? first->next : 2;

	for (; slot->text && !c->error; number++) {
		unique = make_name(c, name, number);
		slot = find_name(names, unique);
	}
	if (c->error)
		return name;
	if (slot != first)
		first->next = number;
	*slot = (struct name){ .text = unique, .kind = kind };
	names->n++;
	return unique;
}

/* ---- What is reached, in the order in which C must see it. ---- */

static int check_member(struct compilable *c, const struct hl_type *type,
			const struct hl_member *member)
{
	if (member->flags & (HL_MEMBER_BASE | HL_MEMBER_VPTR | HL_MEMBER_VARIANT))
		return fail(c, -ENOTSUP,
			    "%s has base classes or virtual functions, "
			    "which cannot be written in C",
			    type->name ? type->name : "a class");
	if (member->name && !is_identifier(member->name))
		return fail(c, -ENOTSUP, "the name \"%s\" cannot be written in C", member->name);
	return 0;
}

/* Nothing is written that a compiler would lay out in another way. */
static int check_aggregate(struct compilable *c, hl_type_id id)
{
	const struct hl_type *type = &c->types->type[id];
	const char *name = type->name ? type->name : "(anonymous)";

	if (type->flags & HL_TYPE_DECLARATION)
		return 0;
	if (type->language == HL_LANG_CXX && !type->count)
		return fail(c, -ENOTSUP, "%s is empty, which takes a byte in C++ and none in C",
			    name);
	for (uint32_t i = 0; !c->error && i < type->count; i++)
		check_member(c, type, &c->types->member[type->first + i]);
	if (c->error)
		return c->error;

	int error = hl_placing_explain(&c->placing, c->types, id);

	if (error == -ENOTSUP)
		fail(c, error, "no C gives %s the offsets that it has", name);
	else if (error)
		fail_nomem(c);
	return c->error;
}

static int check_type(struct compilable *c, hl_type_id id)
{
	const struct hl_type *type = &c->types->type[id];

	if (type->language == HL_LANG_RUST || type->language == HL_LANG_OTHER)
		return fail(c, -ENOTSUP, "%s comes from a language that is neither C nor C++",
			    type->name ? type->name : "a type");
	switch (type->kind) {
	case HL_LVALUE_REF:
	case HL_RVALUE_REF:
	case HL_MEMBER_POINTER:
		return fail(c, -ENOTSUP, "%s cannot be written in C",
			    type->kind == HL_MEMBER_POINTER ? "a pointer to a member"
							    : "a reference");
	case HL_STRUCT:
	case HL_CLASS:
	case HL_UNION:
		check_aggregate(c, id);
		break;
	default:
		break;
	}
	if (!c->error && type->name && type->kind != HL_BASE && type->kind != HL_OPAQUE &&
	    !is_identifier(type->name))
		fail(c, -ENOTSUP, "the name \"%s\" cannot be written in C", type->name);
	return c->error;
}

static bool is_tagged(enum hl_kind kind)
{
	return hl_kind_is_aggregate(kind) || kind == HL_ENUM;
}

/* What a declaration in C would do for when it is only pointed to. */
static bool can_wait(const struct hl_type *type)
{
	return hl_kind_is_aggregate(type->kind) && type->name;
}

static void reach(struct compilable *c, hl_type_id id, bool whole, unsigned depth);

/* Reaches what the type is made of; only what it holds by value must be whole. */
static void reach_parts(struct compilable *c, const struct hl_type *type, bool whole,
			unsigned depth)
{
	bool parts_whole = hl_kind_is_aggregate(type->kind);

	if (type->target)
		reach(c, type->target,
		      type->kind == HL_ARRAY ||
			      (whole && type->kind != HL_POINTER && type->kind != HL_FUNCTION),
		      depth);
	for (uint32_t i = 0; type->kind != HL_ENUM && i < type->count; i++)
		reach(c, c->types->member[type->first + i].type, parts_whole, depth);
}

static void reach(struct compilable *c, hl_type_id id, bool whole, unsigned depth)
{
	const struct hl_type *type = &c->types->type[id];
	uint8_t before = c->state[id];
	uint8_t state = SEEN;

	if (whole || (is_tagged(type->kind) && !can_wait(type)))
		state |= WHOLE;
	if (c->error || (before & state) == state)
		return;
	if (depth > MAX_REACH) {
		fail(c, -E2BIG, "types lead too deep to be written out%s", "");
		return;
	}
	c->state[id] |= state;
	if (!before)
		c->seen[c->n_seen++] = id;
	if ((can_wait(type) && !whole) || check_type(c, id))
		return;
	if (type->kind == HL_TYPEDEF && !before) {
		/* Named before what it names, which may point to itself by that name. */
		reach_parts(c, type, false, depth + 1);
		c->plan[c->n_plan++] = id;
	}
	reach_parts(c, type, whole, depth + 1);
	if (is_tagged(type->kind) && type->name && !(before & WHOLE))
		c->plan[c->n_plan++] = id;
}

/* ---- Names ---- */

static enum hl_kind tag_kind(enum hl_kind kind)
{
	return kind == HL_CLASS ? HL_STRUCT : kind;
}

/* A declaration is that of the definition with its name, or stands alone. */
static void name_declaration(struct compilable *c, hl_type_id id)
{
	const struct hl_type *type = &c->types->type[id];
	const struct name *taken = c->tags.room ? find_name(&c->tags, type->name) : NULL;

	if (!taken || !taken->text || taken->kind != tag_kind(type->kind))
		c->name[id] = take_name(c, &c->tags, type->name, tag_kind(type->kind));
}

/* A base type by a name that C has: from its size where another language named it. */
static const char *base_name(const struct hl_type *type)
{
	static const char *const integers[] = { "unsigned char", "unsigned short", "unsigned int",
						"unsigned long long", "unsigned __int128" };
	static const char *const cxx[] = { "char8_t", "char16_t", "char32_t", "wchar_t" };
	bool is_cxx = !type->name;

	for (size_t i = 0; !is_cxx && i < sizeof(cxx) / sizeof(*cxx); i++)
		is_cxx = !strcmp(type->name, cxx[i]);
	if (type->flags & HL_TYPE_BOOL && type->size == 1)
		return "_Bool";
	if (is_cxx && type->size && type->size <= 16 && !(type->size & (type->size - 1)))
		return integers[__builtin_ctzll(type->size)];
	return NULL;
}

/* Names that compilers have taken for typedefs of their own. */
static bool is_compilers_own(const char *name)
{
	return !strncmp(name, "__builtin_", 10) || !strcmp(name, "__int128_t") ||
	       !strcmp(name, "__uint128_t");
}

static void name_types(struct compilable *c)
{
	for (uint32_t i = 0; i < c->n_seen && !c->error; i++) {
		hl_type_id id = c->seen[i];
		const struct hl_type *type = &c->types->type[id];

		if (type->kind == HL_BASE)
			c->name[id] = base_name(type);
		else if (type->kind == HL_TYPEDEF && type->name)
			c->name[id] = take_name(c, &c->ordinary,
						is_compilers_own(type->name) ? "compilers_own"
									     : type->name,
						HL_TYPEDEF);
		else if (type->kind == HL_OPAQUE)
			c->name[id] = "__UINTPTR_TYPE__";
		else if (is_tagged(type->kind) && type->name &&
			 !(type->flags & HL_TYPE_DECLARATION))
			c->name[id] = take_name(c, &c->tags, type->name, tag_kind(type->kind));
	}
	for (uint32_t i = 0; i < c->n_seen && !c->error; i++) {
		const struct hl_type *type = &c->types->type[c->seen[i]];

		if (is_tagged(type->kind) && type->name && type->flags & HL_TYPE_DECLARATION)
			name_declaration(c, c->seen[i]);
	}
}

static const char *name_of(void *arg, hl_type_id id)
{
	return ((const struct compilable *)arg)->name[id];
}

static uint32_t align_of(void *arg, hl_type_id id)
{
	return ((const struct compilable *)arg)->align[id];
}

/* Enumerators are named as they are written: one unnamed enum may stand in two places. */
static const char *enumerator(void *arg, const struct hl_member *member)
{
	struct compilable *c = arg;

	if (!member->name || !is_identifier(member->name))
		return take_name(c, &c->ordinary, "enumerator", HL_ENUM);
	return take_name(c, &c->ordinary, member->name, HL_ENUM);
}

/* ---- Writing ---- */

static const char *called(const struct compilable *c, hl_type_id id)
{
	return c->name[id] ? c->name[id] : hl_type_name(c->types, id);
}

/* "struct foo", or "foo" for a typedef. */
static void write_reference(struct compilable *c, hl_type_id id)
{
	const struct hl_type *type = &c->types->type[id];

	if (is_tagged(type->kind)) {
		hl_text_puts(c->text, hl_keyword(type, true));
		hl_text_putc(c->text, ' ');
	}
	hl_text_puts(c->text, called(c, id));
}

static void write_head(struct compilable *c)
{
	hl_text_puts(c->text, "/* Written by hotline layout for a target with pointers of ");
	hl_text_u64(c->text, c->types->address_size);
	hl_text_puts(c->text, " bytes. */\n"
			      "#undef linux\n#undef unix\n#undef i386\n\n");
	for (uint32_t i = 0; i < c->n_seen; i++) {
		if (!can_wait(&c->types->type[c->seen[i]]))
			continue;
		write_reference(c, c->seen[i]);
		hl_text_puts(c->text, ";\n");
	}
	hl_text_putc(c->text, '\n');
}

static void write_assert(struct compilable *c, hl_type_id id, const char *what, const char *member,
			 uint64_t value)
{
	hl_text_puts(c->text, "_Static_assert(");
	hl_text_puts(c->text, what);
	hl_text_putc(c->text, '(');
	write_reference(c, id);
	if (member) {
		hl_text_puts(c->text, ", ");
		hl_text_puts(c->text, member);
	}
	hl_text_puts(c->text, ") == ");
	hl_text_u64(c->text, value);
	hl_text_puts(c->text, ", \"");
	hl_text_puts(c->text, called(c, id));
	if (member) {
		hl_text_putc(c->text, '.');
		hl_text_puts(c->text, member);
	}
	hl_text_puts(c->text, "\");\n");
}

/* The members of unnamed ones belong to the struct around them. */
static void write_offset_asserts(struct compilable *c, hl_type_id outer, hl_type_id id,
				 uint64_t base, unsigned depth)
{
	const struct hl_type *type = &c->types->type[hl_type_strip(c->types, id)];

	for (uint32_t i = 0; i < type->count && depth < HL_MAX_DEPTH; i++) {
		const struct hl_member *member = &c->types->member[type->first + i];
		uint64_t offset = base + member->bit_offset / 8;

		if (member->bit_size)
			continue;
		if (member->name)
			write_assert(c, outer, "__builtin_offsetof", member->name, offset);
		else
			write_offset_asserts(c, outer, member->type, offset, depth + 1);
	}
}

static void write_asserts(struct compilable *c, hl_type_id id)
{
	const struct hl_type *type = &c->types->type[hl_type_strip(c->types, id)];

	write_assert(c, id, "sizeof", NULL, hl_type_size(c->types, id));
	if (!hl_kind_is_aggregate(type->kind))
		return;
	/* Of what is packed inside, an alignment that no one told may be another. */
	if (type->align_log2 && !hl_placing_explain(&c->placing, c->types, id) &&
	    c->placing.align == hl_type_align(c->types, id))
		write_assert(c, id, "_Alignof", NULL, c->placing.align);
	write_offset_asserts(c, id, id, 0, 0);
}

static void write_definition(struct compilable *c, hl_type_id id)
{
	struct hl_body body = {
		.text = c->text,
		.types = c->types,
		.arg = c,
		.name_of = name_of,
		.enumerator = enumerator,
		.align_of = align_of,
	};

	if (hl_body_write(&body, id, NULL))
		fail_nomem(c);
	if (hl_kind_is_aggregate(c->types->type[id].kind) &&
	    !hl_placing_explain(&c->placing, c->types, id))
		c->align[id] = c->placing.align;
}

static void write_typedef(struct compilable *c, hl_type_id id)
{
	const struct hl_type *type = &c->types->type[id];
	const struct hl_type *target = &c->types->type[type->target];

	hl_text_puts(c->text, "typedef ");
	if (is_tagged(target->kind) && !target->name) {
		write_definition(c, type->target);
		hl_text_putc(c->text, ' ');
		hl_text_puts(c->text, called(c, id));
	} else {
		struct hl_declarator d = {
			.text = c->text,
			.types = c->types,
			.arg = c,
			.name_of = name_of,
			.c_only = true,
			.no_open_arrays = true,
		};

		hl_declarator_write(&d, type->target, called(c, id));
	}
	if (type->align_log2)
		hl_text_printf(c->text, " __attribute__((__aligned__(%u)))",
			       1u << (type->align_log2 - 1));
	hl_text_puts(c->text, ";\n");
}

static void write_planned(struct compilable *c, hl_type_id id)
{
	const struct hl_type *type = &c->types->type[id];

	if (type->kind == HL_TYPEDEF) {
		write_typedef(c, id);
		return;
	}
	if (type->flags & HL_TYPE_DECLARATION && type->kind != HL_ENUM)
		return;
	write_definition(c, id);
	hl_text_puts(c->text, ";\n");
	if (!(type->flags & HL_TYPE_DECLARATION))
		write_asserts(c, id);
	hl_text_putc(c->text, '\n');
}

static int write_file(struct compilable *c, const hl_type_id *ids, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		reach(c, ids[i], true, 0);
	if (!c->error)
		name_types(c);
	if (c->error)
		return c->error;
	write_head(c);
	for (uint32_t i = 0; i < c->n_plan && !c->error; i++)
		write_planned(c, c->plan[i]);
	for (uint32_t i = 0; i < n; i++)
		if (c->types->type[ids[i]].kind == HL_TYPEDEF)
			write_asserts(c, ids[i]);
	return c->error;
}

int hl_compilable(struct hl_text *text, const struct hl_types *types, const hl_type_id *ids,
		  uint32_t n, struct hl_error *err)
{
	struct compilable c = { .text = text, .types = types, .err = err };

	c.state = calloc(types->n_types, sizeof(*c.state));
	c.name = calloc(types->n_types, sizeof(*c.name));
	c.align = calloc(types->n_types, sizeof(*c.align));
	c.seen = calloc(types->n_types, sizeof(*c.seen));
	c.plan = calloc(types->n_types, sizeof(*c.plan));
	if (!c.state || !c.name || !c.align || !c.seen || !c.plan || grow_names(&c.tags) ||
	    grow_names(&c.ordinary))
		fail_nomem(&c);
	else
		write_file(&c, ids, n);
	if (!c.error && text->failed)
		fail_nomem(&c);
	for (size_t i = 0; i < c.n_made; i++)
		free(c.made[i]);
	free(c.made);
	free(c.tags.slot);
	free(c.ordinary.slot);
	free(c.plan);
	free(c.seen);
	free(c.align);
	free(c.name);
	free(c.state);
	hl_placing_free(&c.placing);
	return c.error;
}
