// SPDX-License-Identifier: MIT
#include "lines/symbols.h"

#include "debuginfo/text.h"

/* The member with the byte; of a union the first whose size is that of the access, or the first. */
static const struct hl_member *member_at(const struct hl_types *types, const struct hl_type *type,
					 uint64_t offset, uint64_t size)
{
	const struct hl_member *found = NULL;

	for (uint32_t i = 0; i < type->count; i++) {
		const struct hl_member *member = &types->member[type->first + i];
		uint64_t first = member->bit_offset / 8, bytes = hl_member_size(types, member),
			 last;

		if (member->flags & HL_MEMBER_VIRTUAL)
			continue;
		last = member->bit_size ? (member->bit_offset + member->bit_size - 1) / 8 + 1
					: first + bytes;
		if (offset < first || offset >= last)
			continue;
		if (!found || (type->kind == HL_UNION && bytes == size &&
			       hl_member_size(types, found) != size))
			found = member;
	}
	return found;
}

uint64_t hl_path_at(struct hl_text *text, const struct hl_types *types, hl_type_id id,
		    uint64_t offset, uint64_t size, hl_type_id *member_type, uint64_t *member_size)
{
	uint64_t base = 0;

	for (int depth = 0; depth < HL_MAX_DEPTH; depth++) {
		const struct hl_type *type = &types->type[hl_type_strip(types, id)];
		const struct hl_member *member;

		*member_type = id;
		*member_size = hl_type_size(types, id);
		if (type->kind == HL_ARRAY && !(type->flags & HL_TYPE_VECTOR)) {
			uint64_t each = hl_type_size(types, type->target),
				 i = each ? offset / each : 0;

			/* Of characters, or what covers several elements: the array itself. */
			if (!each || offset % each + size > each)
				break;
			hl_text_printf(text, "[%llu]", (unsigned long long)i);
			base += i * each;
			offset -= i * each;
			id = type->target;
			continue;
		}
		if (!hl_kind_is_aggregate(type->kind))
			break;
		member = member_at(types, type, offset, size);
		if (!member ||
		    (!member->bit_size &&
		     offset + size > member->bit_offset / 8 + hl_member_size(types, member)))
			break;
		if (member->name)
			hl_text_printf(text, ".%s", member->name);
		base += member->bit_offset / 8;
		offset -= member->bit_offset / 8;
		id = member->type;
		if (member->bit_size) {
			*member_type = id;
			*member_size = (member->bit_size + 7) / 8;
			break;
		}
	}
	return base;
}
