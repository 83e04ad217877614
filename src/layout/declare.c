// SPDX-License-Identifier: MIT
#include "declare.h"

#include "picture.h"

#include <string.h>

/* Types that one declaration may be made of.  Function types that take function
 * types that take function types grow without end otherwise. */
#define MAX_STEPS 4096

enum { CONST = 1, VOLATILE = 2, RESTRICT = 4, ATOMIC = 8 };

static unsigned qualifier(enum hl_kind kind)
{
	switch (kind) {
	case HL_CONST:
		return CONST;
	case HL_VOLATILE:
		return VOLATILE;
	case HL_RESTRICT:
		return RESTRICT;
	case HL_ATOMIC:
		return ATOMIC;
	default:
		return 0;
	}
}

/* Strips the qualifiers, not the typedefs, and adds them to the set. */
static hl_type_id strip_qualifiers(const struct hl_types *types, hl_type_id id, unsigned *set)
{
	for (int depth = 0; depth < HL_MAX_DEPTH && qualifier(types->type[id].kind); depth++) {
		*set |= qualifier(types->type[id].kind);
		id = types->type[id].target;
	}
	return id;
}

static bool is_pointer(enum hl_kind kind)
{
	return kind == HL_POINTER || kind == HL_LVALUE_REF || kind == HL_RVALUE_REF ||
	       kind == HL_MEMBER_POINTER;
}

static bool is_vector(const struct hl_type *type)
{
	return type->kind == HL_ARRAY && type->flags & HL_TYPE_VECTOR;
}

/* What a pointer to it writes in parentheses. */
static bool binds_tighter(const struct hl_types *types, hl_type_id id)
{
	unsigned set = 0;
	const struct hl_type *type = &types->type[strip_qualifiers(types, id, &set)];

	return type->kind == HL_FUNCTION || (type->kind == HL_ARRAY && !is_vector(type));
}

static void write_qualifiers(struct hl_text *text, unsigned set, bool cxx)
{
	if (set & ATOMIC)
		hl_text_puts(text, "_Atomic ");
	if (set & CONST)
		hl_text_puts(text, "const ");
	if (set & VOLATILE)
		hl_text_puts(text, "volatile ");
	if (set & RESTRICT)
		hl_text_puts(text, cxx ? "__restrict " : "restrict ");
}

/* Puts the room between the type and what is declared of it. */
static void move_apart(struct hl_declarator *d)
{
	size_t written = d->text->len - d->start;
	char last = written ? d->text->at[d->text->len - 1] : '(';

	if (d->type_width > written)
		hl_text_spaces(d->text, d->type_width - written + 1);
	else if (d->type_width || (last != '*' && last != '(' && last != '&' && last != ' '))
		hl_text_putc(d->text, ' ');
	d->apart = true;
}

/* A blank unless there is one, or what binds from the left. */
static void separate(struct hl_declarator *d)
{
	char last = d->text->len ? d->text->at[d->text->len - 1] : ' ';

	if (last != ' ' && last != '*' && last != '(' && last != '&' && last != ':')
		hl_text_putc(d->text, ' ');
}

const char *hl_keyword(const struct hl_type *type, bool c_only)
{
	switch (type->kind) {
	case HL_CLASS:
		return c_only ? "struct" : "class";
	case HL_UNION:
		return "union";
	case HL_ENUM:
		return "enum";
	default:
		return "struct";
	}
}

void hl_write_enumerator(struct hl_text *text, const struct hl_type *type,
			 const struct hl_member *member)
{
	uint64_t value = member->bit_offset;

	if (type->flags & HL_TYPE_SIGNED && (int64_t)value < 0) {
		hl_text_putc(text, '-');
		value = -value;
	}
	hl_text_u64(text, value);
	if (value > INT64_MAX)
		hl_text_putc(text, 'U');
}

static const char *name_of(const struct hl_declarator *d, hl_type_id id)
{
	const char *name = d->name_of ? d->name_of(d->arg, id) : NULL;

	return name ? name : d->types->type[id].name;
}

static void write_type(struct hl_declarator *d, hl_type_id id, const char *name);

static void write_unnamed_in_line(struct hl_declarator *d, hl_type_id id)
{
	const struct hl_type *type = &d->types->type[id];

	hl_text_puts(d->text, hl_keyword(type, d->c_only));
	hl_text_puts(d->text, " {");
	for (uint32_t i = 0; i < type->count && ++d->steps < MAX_STEPS; i++) {
		const struct hl_member *member = &d->types->member[type->first + i];

		hl_text_putc(d->text, ' ');
		if (type->kind == HL_ENUM) {
			hl_text_puts(d->text, member->name ? member->name : "");
			hl_text_puts(d->text, " = ");
			hl_write_enumerator(d->text, type, member);
			hl_text_putc(d->text, ',');
			continue;
		}
		write_type(d, member->type, member->name);
		if (member->bit_size) {
			hl_text_putc(d->text, ':');
			hl_text_u64(d->text, member->bit_size);
		}
		hl_text_putc(d->text, ';');
	}
	hl_text_puts(d->text, " }");
}

static void write_unnamed(struct hl_declarator *d, hl_type_id id)
{
	if (d->unnamed) {
		d->unnamed(d->arg, id);
		d->type_width = 0;
		d->start = d->text->len ? d->text->len - 1 : 0;
	} else {
		write_unnamed_in_line(d, id);
	}
}

/* The name of a base type as C has it. */
static void write_base(struct hl_text *text, const char *name)
{
	if (!strncmp(name, "complex ", 8)) {
		hl_text_puts(text, "_Complex ");
		name += 8;
	}
	hl_text_puts(text, name);
}

static void write_specifier(struct hl_declarator *d, hl_type_id id)
{
	const struct hl_type *type = &d->types->type[id];
	const char *name = name_of(d, id);

	switch (type->kind) {
	case HL_STRUCT:
	case HL_CLASS:
	case HL_UNION:
	case HL_ENUM:
		if (!name) {
			write_unnamed(d, id);
			return;
		}
		hl_text_puts(d->text, hl_keyword(type, d->c_only));
		hl_text_putc(d->text, ' ');
		hl_text_puts(d->text, name);
		return;
	case HL_BASE:
		write_base(d->text, name ? name : "char");
		return;
	default:
		hl_text_puts(d->text, name ? name : "void");
	}
}

static void write_left(struct hl_declarator *d, hl_type_id id, unsigned set);

/* What a pointer to a member puts before its star: the class. */
static void write_class(struct hl_declarator *d, const struct hl_type *pointer)
{
	if (!pointer->count)
		return;

	const char *name = name_of(d, d->types->member[pointer->first].type);

	hl_text_puts(d->text, name ? name : "");
	hl_text_puts(d->text, "::");
}

static void write_pointer_left(struct hl_declarator *d, const struct hl_type *pointer, unsigned set)
{
	write_left(d, pointer->target, 0);
	if (binds_tighter(d->types, pointer->target)) {
		if (!d->apart)
			move_apart(d);
		else
			separate(d);
		hl_text_putc(d->text, '(');
	} else {
		separate(d);
	}
	if (pointer->kind == HL_MEMBER_POINTER)
		write_class(d, pointer);
	hl_text_puts(d->text, pointer->kind == HL_LVALUE_REF   ? "&"
			      : pointer->kind == HL_RVALUE_REF ? "&&"
							       : "*");
	if (set) {
		write_qualifiers(d->text, set, pointer->language == HL_LANG_CXX);
		if (!d->text->failed)
			d->text->at[--d->text->len] = '\0';
	}
}

static void write_vector(struct hl_declarator *d, hl_type_id id, unsigned set)
{
	write_left(d, d->types->type[id].target, set);
	hl_text_puts(d->text, " __attribute__((__vector_size__(");
	hl_text_u64(d->text, hl_type_size(d->types, id));
	hl_text_puts(d->text, ")))");
}

/* What stands to the left of the name; `set` are qualifiers of the whole. */
static void write_left(struct hl_declarator *d, hl_type_id id, unsigned set)
{
	id = strip_qualifiers(d->types, id, &set);

	const struct hl_type *type = &d->types->type[id];

	if (d->depth >= HL_MAX_DEPTH || ++d->steps > MAX_STEPS) {
		hl_text_puts(d->text, "void");
		return;
	}
	d->depth++;
	if (is_pointer(type->kind)) {
		write_pointer_left(d, type, set);
	} else if (is_vector(type)) {
		write_vector(d, id, set);
	} else if (type->kind == HL_ARRAY || type->kind == HL_FUNCTION) {
		write_left(d, type->target, type->kind == HL_ARRAY ? set : 0);
	} else {
		write_qualifiers(d->text, set & ~(unsigned)RESTRICT, false);
		write_specifier(d, id);
	}
	d->depth--;
}

static void write_right(struct hl_declarator *d, hl_type_id id);

/* The first parameter of a member function, `this`, is not written. */
static bool is_this(const struct hl_types *types, const struct hl_type *pointer,
		    const struct hl_member *parameter)
{
	const struct hl_type *first = &types->type[hl_type_strip(types, parameter->type)];

	return pointer->count && first->kind == HL_POINTER &&
	       hl_type_strip(types, first->target) ==
		       hl_type_strip(types, types->member[pointer->first].type);
}

static void write_parameters(struct hl_declarator *d, const struct hl_type *function,
			     const struct hl_type *member_pointer)
{
	const struct hl_member *parameter = &d->types->member[function->first];
	uint32_t i = member_pointer && function->count &&
		     is_this(d->types, member_pointer, parameter);
	bool variadic = function->flags & HL_TYPE_VARIADIC, first = true;

	hl_text_putc(d->text, '(');
	if (i == function->count && !variadic)
		hl_text_puts(d->text, "void");
	for (; i < function->count && d->steps < MAX_STEPS; i++, first = false) {
		if (!first)
			hl_text_puts(d->text, ", ");
		write_type(d, parameter[i].type, NULL);
	}
	if (variadic && !first)
		hl_text_puts(d->text, ", ...");
	hl_text_putc(d->text, ')');
}

static void write_array_right(struct hl_declarator *d, const struct hl_type *array)
{
	hl_text_putc(d->text, '[');
	if (!(array->flags & HL_TYPE_FLEXIBLE) || d->no_open_arrays)
		hl_text_u64(d->text, array->size);
	hl_text_putc(d->text, ']');
	write_right(d, array->target);
}

static void write_pointer_right(struct hl_declarator *d, const struct hl_type *pointer)
{
	unsigned set = 0;
	const struct hl_type *target =
		&d->types->type[strip_qualifiers(d->types, pointer->target, &set)];

	if (!binds_tighter(d->types, pointer->target)) {
		write_right(d, pointer->target);
		return;
	}
	hl_text_putc(d->text, ')');
	if (target->kind == HL_ARRAY) {
		write_array_right(d, target);
	} else {
		write_parameters(d, target, pointer->kind == HL_MEMBER_POINTER ? pointer : NULL);
		write_right(d, target->target);
	}
}

/* What stands to the right of the name. */
static void write_right(struct hl_declarator *d, hl_type_id id)
{
	unsigned set = 0;
	const struct hl_type *type = &d->types->type[strip_qualifiers(d->types, id, &set)];

	if (d->depth >= HL_MAX_DEPTH || ++d->steps > MAX_STEPS)
		return;
	d->depth++;
	if (is_pointer(type->kind)) {
		write_pointer_right(d, type);
	} else if (is_vector(type)) {
		write_right(d, type->target);
	} else if (type->kind == HL_ARRAY) {
		write_array_right(d, type);
	} else if (type->kind == HL_FUNCTION) {
		write_parameters(d, type, NULL);
		write_right(d, type->target);
	}
	d->depth--;
}

/* A whole declaration inside another: a parameter, a member of an unnamed struct. */
static void write_type(struct hl_declarator *d, hl_type_id id, const char *name)
{
	struct hl_declarator outer = *d;

	d->type_width = 0;
	hl_declarator_write(d, id, name);
	d->type_width = outer.type_width;
	d->start = outer.start;
	d->apart = outer.apart;
}

void hl_declarator_write(struct hl_declarator *d, hl_type_id id, const char *name)
{
	d->start = d->text->len;
	d->apart = false;
	write_left(d, id, 0);
	if (name && *name) {
		if (!d->apart)
			move_apart(d);
		else
			separate(d);
		hl_text_puts(d->text, name);
	}
	write_right(d, id);
}

void hl_declare(struct hl_text *text, const struct hl_types *types, hl_type_id id, const char *name)
{
	struct hl_declarator d = { .text = text, .types = types };

	hl_declarator_write(&d, id, name);
}
