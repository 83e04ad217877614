// SPDX-License-Identifier: MIT
/*
 * Types from bytes.  Most members follow each other as a compiler would place
 * them, so that proposals are made; the others lie anywhere.  A member may be
 * repeated thousands of times, which a few bytes of DWARF can say as well.
 */
#include "target.h"

#include "debuginfo/internal.h"

#include <stdbool.h>
#include <string.h>

#define MOST_TYPES	64u
#define MOST_MEMBERS	20000u

/* Names that the rules on words know, and some that they do not. */
static const char *const names[] = {
	NULL, "a", "lock", "next", "func", "info", "refs", "count", "size", "pad", "ops", "id",
	"cpu", "workers", "state", "atomic", "list_head", "head", "done", "flags", "data",
	"spinlock_t", "__le32", "x<int, 3>", "a b\n*/", "", "key", "map", "tail", "mutex", "spare", "b",
};

#define N_NAMES (sizeof(names) / sizeof(names[0]))

struct bytes {
	const uint8_t *at;
	size_t left;
};

static uint64_t take(struct bytes *in, unsigned n)
{
	uint64_t value = 0;

	while (n--) {
		value <<= 8;
		if (in->left) {
			value |= *in->at++;
			in->left--;
		}
	}
	return value;
}

struct building {
	struct bytes in;
	struct hl_types types;
	struct hl_type type[MOST_TYPES];
	struct hl_member *member;
	hl_type_id defined[MOST_TYPES];
	struct hl_variable variable[8];
};

static const char *take_name(struct bytes *in)
{
	return names[take(in, 1) % N_NAMES];
}

static hl_type_id take_target(struct building *b)
{
	return (hl_type_id)take(&b->in, 1) % b->types.n_types;
}

/* Small as a rule, rarely up to what a file may say. */
static uint64_t take_size(struct bytes *in)
{
	uint8_t how = (uint8_t)take(in, 1);

	if (how < 0xe0)
		return how;
	return how < 0xf8 ? take(in, 2) : take(in, 8) % (HL_MAX_SIZE + 1);
}

static uint64_t natural_place(const struct building *b, const struct hl_member *member,
			      uint64_t end)
{
	uint64_t size = hl_type_size(&b->types, member->type), align = 1;

	while (align < 8 && size && size % (align * 2) == 0)
		align *= 2;
	if (!member->bit_size)
		return (end + align * 8 - 1) / (align * 8) * (align * 8);
	return end % (align * 8) + member->bit_size > align * 8
		? (end + align * 8 - 1) / (align * 8) * (align * 8) : end;
}

static uint64_t member_end(const struct building *b, const struct hl_member *member)
{
	uint64_t size = hl_type_size(&b->types, member->type);

	return member->bit_offset + (member->bit_size ? member->bit_size : size * 8);
}

static struct hl_member take_member(struct building *b, uint8_t *how)
{
	struct hl_member member = { .type = take_target(b), .name = take_name(&b->in) };

	*how = (uint8_t)take(&b->in, 1);
	if (*how & 0x10)
		member.bit_size = (uint16_t)(*how & 0x20 ? take(&b->in, 2) : take(&b->in, 1) % 33);
	if (*how & 0x40)
		member.align_log2 = (uint8_t)(take(&b->in, 1) % 32);
	if (*how & 0x80)
		member.flags = (uint8_t)(take(&b->in, 1) & 0x1f);
	return member;
}

static void place_member(struct building *b, struct hl_member *member, uint8_t how, uint64_t *end)
{
	uint64_t place;

	switch (how & 7) {
	default:
		place = natural_place(b, member, *end);
		break;
	case 5:
		place = *end + take(&b->in, 1) * 8;
		break;
	case 6:
		place = take(&b->in, 2);
		break;
	case 7:
		place = take(&b->in, 8) % (HL_MAX_SIZE * 8 + 1);
		break;
	}
	member->bit_offset = place <= HL_MAX_SIZE * 8 ? place : 0;
	*end = member_end(b, member);
}

static void add_members(struct building *b, struct hl_type *type)
{
	uint32_t n = (uint32_t)take(&b->in, 1), times = 1;
	uint64_t end = 0, most = 0;

	if (n >= 0xe0)		/* few members, many times */
		times = 1u << take(&b->in, 1) % 15;
	n %= 32;
	type->first = b->types.n_members;
	for (uint32_t i = 0; i < n; i++) {
		uint8_t how;
		struct hl_member member = take_member(b, &how);

		for (uint32_t t = 0; t < times && b->types.n_members < MOST_MEMBERS; t++) {
			place_member(b, &member, how, &end);
			b->member[b->types.n_members++] = member;
			most = most < end ? end : most;
		}
	}
	type->count = b->types.n_members - type->first;

	uint8_t how = (uint8_t)take(&b->in, 1);
	uint64_t align = (uint64_t)1 << (how & 7);

	type->size = (most / 8 + align - 1) / align * align;
	if (how >= 0xe0)
		type->size = take_size(&b->in);
	if (type->size > HL_MAX_SIZE)
		type->size = HL_MAX_SIZE;
}

static void add_plain_members(struct building *b, struct hl_type *type, uint32_t n)
{
	type->first = b->types.n_members;
	for (; n && b->types.n_members < MOST_MEMBERS; n--) {
		struct hl_member member = { .type = take_target(b) };

		if (type->kind == HL_ENUM)
			member.name = take_name(&b->in);
		if (type->kind == HL_ENUM)
			member.bit_offset = take(&b->in, 2) - 1;
		b->member[b->types.n_members++] = member;
	}
	type->count = b->types.n_members - type->first;
}

static void add_type(struct building *b, hl_type_id id)
{
	struct hl_type *type = &b->type[id];

	type->kind = (uint8_t)(1 + take(&b->in, 1) % HL_OPAQUE);
	/* Half of them structs: the rest is there to be held by them. */
	if (take(&b->in, 1) & 1)
		type->kind = HL_STRUCT;
	type->name = take_name(&b->in);
	type->language = (uint8_t)(take(&b->in, 1) % 8 ? HL_LANG_C : take(&b->in, 1) % 4);
	switch (type->kind) {
	case HL_STRUCT:
	case HL_CLASS:
	case HL_UNION:
		if (take(&b->in, 1) >= 0xf0)
			type->flags = HL_TYPE_DECLARATION;
		else
			add_members(b, type);
		break;
	case HL_ENUM:
		type->size = take_size(&b->in);
		type->flags = (uint8_t)(take(&b->in, 1) & HL_TYPE_SIGNED);
		add_plain_members(b, type, (uint32_t)take(&b->in, 1) % 16);
		break;
	case HL_BASE:
	case HL_OPAQUE:
		type->size = (uint64_t)1 << take(&b->in, 1) % 5;
		type->flags = (uint8_t)(take(&b->in, 1) &
					(HL_TYPE_SIGNED | HL_TYPE_BOOL | HL_TYPE_FLOAT | HL_TYPE_CHAR));
		break;
	case HL_ARRAY:
		type->target = take_target(b);
		type->size = take_size(&b->in);
		type->flags = (uint8_t)(take(&b->in, 1) & (HL_TYPE_FLEXIBLE | HL_TYPE_VECTOR));
		break;
	case HL_FUNCTION:
		type->target = take_target(b);
		type->flags = (uint8_t)(take(&b->in, 1) & HL_TYPE_VARIADIC);
		add_plain_members(b, type, (uint32_t)take(&b->in, 1) % 8);
		break;
	case HL_MEMBER_POINTER:
		add_plain_members(b, type, 1);
		/* fall through */
	case HL_POINTER:
	case HL_LVALUE_REF:
	case HL_RVALUE_REF:
		type->size = b->types.address_size;
		/* fall through */
	default:
		type->target = take_target(b);
	}
	if (type->name && !*type->name)
		type->name = NULL;
	if (take(&b->in, 1) >= 0xe0)
		type->align_log2 = (uint8_t)(take(&b->in, 1) % 32);
}

static void list_defined(struct building *b)
{
	for (hl_type_id id = 1; id < b->types.n_types; id++)
		if (hl_kind_is_aggregate(b->type[id].kind) && b->type[id].name &&
		    !(b->type[id].flags & HL_TYPE_DECLARATION))
			b->defined[b->types.n_defined++] = id;
}

static void add_variables(struct building *b)
{
	uint32_t n = (uint32_t)take(&b->in, 1) % 8;

	for (uint32_t i = 0; i < n; i++) {
		const char *name = take_name(&b->in);

		b->variable[i] = (struct hl_variable){
			.name = name ? name : "variable", .type = take_target(b),
			.align_log2 = (uint8_t)(take(&b->in, 1) % 32),
		};
	}
	b->types.n_variables = n;
}

struct hl_types *fuzz_build_types(const uint8_t *data, size_t size)
{
	static const char *const files[] = { "", "file.c", "outer::inner" };
	struct building *b = calloc(1, sizeof(*b));
	struct hl_error err;

	FUZZ_CHECK(b);
	b->member = calloc(MOST_MEMBERS, sizeof(*b->member));
	FUZZ_CHECK(b->member);
	b->in = (struct bytes){ data, size };

	uint8_t machine = (uint8_t)take(&b->in, 1);

	b->types = (struct hl_types){
		.type = b->type, .member = b->member, .file = files, .defined = b->defined,
		.variable = b->variable, .n_files = 3, .n_units = 1,
		.address_size = machine & 1 ? 4 : 8, .from_btf = machine & 2,
		.max_align_log2 = machine & 1 ? 2 : 4,
	};
	b->types.n_types = 2 + (uint32_t)take(&b->in, 1) % (MOST_TYPES - 2);
	for (hl_type_id id = 1; id < b->types.n_types; id++)
		add_type(b, id);
	add_variables(b);
	list_defined(b);
	if (hl_types_settle(&b->types, b->type, b->member, &err)) {
		fuzz_free_types(&b->types);
		return NULL;
	}
	return &b->types;
}

void fuzz_free_types(struct hl_types *types)
{
	struct building *b = (struct building *)((char *)types - offsetof(struct building, types));

	free(b->member);
	free(b);
}
