// SPDX-License-Identifier: MIT
#include "layout/members.h"

#include <stdlib.h>
#include <string.h>

/* A hostile file can put the same struct inside itself by way of others so often
 * that it would take for ever to name all members: the budget ends that. */
struct walk {
	const struct hl_types *types;
	bool (*visit)(void *arg, const struct hl_named *named);
	void *arg;
	uint32_t budget;
};

static bool each(struct walk *walk, hl_type_id id, uint64_t bit_offset, unsigned depth)
{
	const struct hl_types *types = walk->types;
	const struct hl_type *type = &types->type[hl_type_strip(types, id)];

	if (!hl_kind_is_aggregate(type->kind) || depth > HL_MAX_DEPTH)
		return true;
	for (uint32_t i = 0; i < type->count; i++) {
		const struct hl_member *member = &types->member[type->first + i];
		struct hl_named named = {
			.name = member->name,
			.type = member->type,
			.bit_offset = bit_offset + member->bit_offset,
			.bits = member->bit_size ? member->bit_size :
						   hl_member_size(types, member) * 8,
		};

		if (!walk->budget)
			return false;
		walk->budget--;
		if (member->flags & HL_MEMBER_VIRTUAL)
			continue;
		if (member->flags & HL_MEMBER_BASE)
			named.name = hl_type_name(types, member->type);
		if (named.name) {
			if (!walk->visit(walk->arg, &named))
				return false;
		} else if (!each(walk, member->type, named.bit_offset, depth + 1)) {
			return false;
		}
	}
	return true;
}

void hl_named_each(const struct hl_types *types, hl_type_id id,
		   bool (*visit)(void *arg, const struct hl_named *named), void *arg)
{
	struct walk walk = { types, visit, arg, HL_MAX_MEMBERS };

	each(&walk, id, 0, 0);
}

struct wanted {
	const struct hl_types *types;
	const char *name;
	size_t len;
	uint64_t bit_offset;	/* of the struct that is searched */
	unsigned depth;
	struct walk walk;
	struct hl_named found;
	bool is_found;
};

static bool same_name(void *arg, const struct hl_named *named)
{
	struct wanted *wanted = arg;

	if (strncmp(named->name, wanted->name, wanted->len) || named->name[wanted->len])
		return true;
	wanted->found = *named;
	wanted->is_found = true;
	return false;
}

static bool find_in(struct wanted *wanted, hl_type_id id);

/* Looks behind each base class; members that the class itself names hide these. */
static bool find_in_bases(struct wanted *wanted, const struct hl_type *type)
{
	uint64_t outer = wanted->bit_offset;

	if (wanted->depth >= HL_MAX_DEPTH || !wanted->walk.budget)
		return false;
	for (uint32_t i = 0; i < type->count; i++) {
		const struct hl_member *member = &wanted->types->member[type->first + i];

		if (!(member->flags & HL_MEMBER_BASE) || member->flags & HL_MEMBER_VIRTUAL)
			continue;
		wanted->bit_offset = outer + member->bit_offset;
		wanted->depth++;
		if (find_in(wanted, member->type))
			return true;
		wanted->depth--;
	}
	wanted->bit_offset = outer;
	return false;
}

static bool find_in(struct wanted *wanted, hl_type_id id)
{
	each(&wanted->walk, id, wanted->bit_offset, 0);
	if (wanted->is_found)
		return true;

	const struct hl_type *type = &wanted->types->type[hl_type_strip(wanted->types, id)];

	return hl_kind_is_aggregate(type->kind) && find_in_bases(wanted, type);
}

/* Takes "[3]" off the path: from the array to its element. */
static bool index_into(const struct hl_types *types, struct hl_named *found, const char **path)
{
	const struct hl_type *array = &types->type[hl_type_strip(types, found->type)];
	char *end;
	unsigned long long index = strtoull(*path + 1, &end, 0);

	if (array->kind != HL_ARRAY || end == *path + 1 || *end != ']')
		return false;
	if (!(array->flags & HL_TYPE_FLEXIBLE) && array->size && index >= array->size)
		return false;
	found->type = array->target;
	found->bits = hl_type_size(types, array->target) * 8;
	if (found->bits && index > HL_MAX_SIZE / found->bits)
		return false;
	found->bit_offset += index * found->bits;
	*path = end + 1;
	return true;
}

bool hl_named_find(const struct hl_types *types, hl_type_id id, const char *path,
		   struct hl_named *found)
{
	*found = (struct hl_named){ .type = id };
	for (;;) {
		struct wanted wanted = {
			.types = types,
			.name = path,
			.len = strcspn(path, ".["),
			.bit_offset = found->bit_offset,
			.walk = { types, same_name, &wanted, HL_MAX_MEMBERS },
		};

		if (!wanted.len || !find_in(&wanted, found->type))
			return false;
		*found = wanted.found;
		path += wanted.len;
		while (*path == '[') {
			if (!index_into(types, found, &path))
				return false;
		}
		if (!*path)
			return true;
		if (*path++ != '.')
			return false;
	}
}
