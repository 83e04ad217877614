// SPDX-License-Identifier: MIT
/*
 * Findings in words.
 */
#include "lines/findings.h"

#include "layout/clean.h"

#include <string.h>
#include <unistd.h>

const char *hl_sharing_name(enum hl_sharing sharing)
{
	static const char *const name[] = {
		[HL_SHARING_FALSE] = "false",
		[HL_SHARING_TRUE] = "true",
		[HL_SHARING_MIXED] = "mixed",
	};

	return name[sharing];
}

/* The path as it is from here, where it is below. */
static const char *from_here(const char *file)
{
	static char here[4096];
	size_t n;

	if (!*here && !getcwd(here, sizeof(here) - 1))
		return file;
	n = strlen(here);
	return !strncmp(file, here, n) && file[n] == '/' ? file + n + 1 : file;
}

static void add_place(struct hl_text *text, const char *file, uint32_t line)
{
	hl_clean_add(text, from_here(file));
	if (line)
		hl_text_printf(text, ":%u", line);
}

void hl_code_place(struct hl_text *text, const struct hl_code *code)
{
	if (code->file)
		add_place(text, code->file, code->line);
	else
		hl_clean_add(text, code->function);
}

static void add_type(struct hl_text *text, const struct hl_named_object *named)
{
	const struct hl_type *type = &named->types->type[named->type];

	if (type->kind == HL_STRUCT || type->kind == HL_UNION)
		hl_text_puts(text, type->language == HL_LANG_C
					   ? type->kind == HL_STRUCT ? "struct " : "union "
					   : "");
	hl_text_puts(text, named->name);
}

void hl_object_name(struct hl_text *text, const struct hl_object *object)
{
	const struct hl_named_object *named = &object->named;
	size_t from = text->len;
	uint64_t each;

	switch (object->kind) {
	case HL_OBJECT_STATIC:
		hl_text_puts(text, named->name);
		break;
	case HL_OBJECT_TLS:
		hl_text_printf(text, "thread-local %s", named->name ? named->name : "variables");
		break;
	case HL_OBJECT_STACK:
		hl_text_puts(text, named->name ? named->name : "stack");
		if (object->function)
			hl_text_printf(text, " of %s()", object->function->function);
		break;
	case HL_OBJECT_HEAP:
	case HL_OBJECT_MAPPED:
		if (!named->types) {
			hl_text_printf(text, "%s of %llu bytes",
				       object->kind == HL_OBJECT_HEAP ? "block" : "mapping",
				       (unsigned long long)named->size);
			break;
		}
		add_type(text, named);
		each = hl_type_size(named->types, named->type);
		if (each && each < named->size)
			hl_text_printf(text, "[%llu]", (unsigned long long)(named->size / each));
		break;
	case HL_OBJECT_UNKNOWN:
		hl_text_printf(text, "memory at 0x%llx", (unsigned long long)object->a);
		break;
	}
	hl_clean_from(text, from);
}

/* The place of the program that allocated it: the first that is no library's. */
static const struct hl_code *allocated_at(const struct hl_findings *findings,
					  const struct hl_object *object)
{
	const struct hl_code *first = NULL;

	for (uint32_t i = 0; object->stack && i < object->stack->n; i++) {
		const struct hl_code *code =
			hl_symbols_code(findings->symbols, object->stack->pc[i]);

		if (!code)
			break;
		if (!first)
			first = code;
		if (code->hooked && code->file && strncmp(code->file, "/usr/", 5))
			return code;
	}
	return first;
}

bool hl_object_place(const struct hl_findings *findings, const struct hl_object *object,
		     const char **file, uint32_t *line)
{
	const struct hl_code *code = NULL;

	if (object->kind == HL_OBJECT_HEAP || object->kind == HL_OBJECT_MAPPED)
		code = allocated_at(findings, object);
	else if (object->kind == HL_OBJECT_STACK)
		code = object->function;
	*file = code ? code->file : object->named.file;
	*line = code ? code->line : object->named.line;
	if (*file)
		*file = from_here(*file);
	return *file;
}

void hl_object_where(struct hl_text *text, const struct hl_findings *findings,
		     const struct hl_object *object)
{
	static const char *const kind[] = {
		[HL_OBJECT_STATIC] = "static",	  [HL_OBJECT_HEAP] = "heap",
		[HL_OBJECT_MAPPED] = "mapped",	  [HL_OBJECT_STACK] = "stack",
		[HL_OBJECT_TLS] = "thread-local", [HL_OBJECT_UNKNOWN] = "not known what",
	};
	const struct hl_code *code;
	size_t from = text->len;

	hl_text_puts(text, kind[object->kind]);
	if (object->kind == HL_OBJECT_STACK || object->kind == HL_OBJECT_TLS)
		hl_text_printf(text, " of a thread of %s", findings->group[object->group].name);
	else
		hl_text_printf(text, ", %llu bytes", (unsigned long long)object->named.size);
	if (object->kind == HL_OBJECT_HEAP || object->kind == HL_OBJECT_MAPPED) {
		code = allocated_at(findings, object);
		if (code) {
			hl_text_printf(text, ", from %s (", code->function);
			hl_code_place(text, code);
			hl_text_putc(text, ')');
		}
		if (object->several)
			hl_text_puts(text, ", several");
	} else if (object->named.file) {
		hl_text_puts(text, ", ");
		add_place(text, object->named.file, object->named.line);
	} else if (object->function && object->function->file) {
		hl_text_puts(text, ", ");
		hl_code_place(text, object->function);
	}
	hl_clean_from(text, from);
}
