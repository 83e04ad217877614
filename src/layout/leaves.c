// SPDX-License-Identifier: MIT
/*
 * The fields of a struct, those of nested structs included, each with what it
 * looks like.  A nested struct that is known for what it is (a lock, a list
 * head) is one field.
 */
#include "find.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* No struct that a person reads has more; a hostile file might. */
#define MOST_LEAVES 8192u
#define DEEPEST 24

static bool make_room(void *array, uint32_t *room, uint32_t n, size_t size)
{
	if (n < *room)
		return true;

	uint32_t more = *room ? *room * 2 : 64;
	void *at = realloc(*(void **)array, more * size);

	if (!at)
		return false;
	*(void **)array = at;
	*room = more;
	return true;
}

static struct hl_leaf *add_leaf(struct hl_find *find)
{
	if (!make_room(&find->leaf, &find->leaves_room, find->n_leaves, sizeof(*find->leaf))) {
		find->rc = -ENOMEM;
		return NULL;
	}
	return &find->leaf[find->n_leaves++];
}

static uint32_t add_frame(struct hl_find *find, const char *name, uint32_t up)
{
	if (!make_room(&find->frame, &find->frames_room, find->n_frames, sizeof(*find->frame))) {
		find->rc = -ENOMEM;
		return 0;
	}
	find->frame[find->n_frames] = (struct hl_frame){ name, up };
	return find->n_frames++;
}

static void flatten(struct hl_find *find, const struct hl_type *type, uint64_t base, uint32_t top,
		    uint32_t up, int depth);

static bool is_callback(const struct hl_types *types, const struct hl_type *type)
{
	return type->kind == HL_POINTER &&
	       types->type[hl_type_strip(types, type->target)].kind == HL_FUNCTION;
}

static void take_member(struct hl_find *find, const struct hl_member *member, uint64_t base,
			uint32_t top, uint32_t up, int depth)
{
	const struct hl_types *types = find->types;
	const struct hl_type *type = &types->type[hl_type_strip(types, member->type)];
	uint64_t size = hl_member_size(types, member), stride = size;
	uint64_t offset = base + member->bit_offset / 8;
	enum hl_look look = hl_look_of_member(find->looks, types, member);

	if (member->flags & HL_MEMBER_VIRTUAL)
		return;
	if (look == HL_LOOK_PLAIN && hl_kind_is_aggregate(type->kind) && type->count &&
	    depth < DEEPEST) {
		uint32_t frame = add_frame(find, member->name, up);

		if (!find->rc)
			flatten(find, type, offset, top, frame, depth + 1);
		return;
	}
	if (member->bit_size)
		size = stride = (member->bit_offset % 8 + member->bit_size + 7) / 8;
	if (type->kind == HL_ARRAY) {
		stride = hl_type_size(types, type->target);
		if (look == HL_LOOK_PLAIN &&
		    hl_look_is_shared(hl_look_of_type(find->looks, type->target)))
			look = hl_look_of_type(find->looks, type->target);
	}
	struct hl_leaf *leaf = add_leaf(find);

	if (leaf)
		*leaf = (struct hl_leaf){
			.member = member,
			.offset = offset,
			.size = size,
			.stride = stride,
			.top = top,
			.up = up,
			.look = (uint8_t)look,
			.pointer = type->kind == HL_POINTER,
			.callback = is_callback(types, type),
		};
}

static void flatten(struct hl_find *find, const struct hl_type *type, uint64_t base, uint32_t top,
		    uint32_t up, int depth)
{
	for (uint32_t i = 0; i < type->count && !find->rc && find->n_leaves < MOST_LEAVES; i++)
		take_member(find, &find->types->member[type->first + i], base, depth ? top : i, up,
			    depth);
}

int hl_find_leaves(struct hl_find *find)
{
	find->n_leaves = find->n_frames = 0;
	add_frame(find, NULL, 0);
	if (!find->rc)
		flatten(find, find->type, 0, 0, 0, 0);
	return find->rc;
}

static void add_frames(struct hl_text *text, const struct hl_find *find, uint32_t frame, int depth)
{
	if (!frame || depth > DEEPEST)
		return;
	add_frames(text, find, find->frame[frame].up, depth + 1);
	if (find->frame[frame].name) {
		hl_text_puts(text, find->frame[frame].name);
		hl_text_putc(text, '.');
	}
}

void hl_find_path(struct hl_text *text, const struct hl_find *find, const struct hl_leaf *leaf)
{
	const char *name = leaf->member->name;

	add_frames(text, find, leaf->up, 0);
	if (!name && leaf->member->flags & HL_MEMBER_BASE)
		name = hl_type_name(find->types, leaf->member->type);
	hl_text_puts(text, name ? name : "(anonymous)");
}

bool hl_may_share(uint64_t last, uint64_t first, uint64_t align, uint64_t apart)
{
	if (first < last)
		return last / apart == first / apart || align < apart;
	if (first - last >= apart)
		return false;
	if (align >= apart)
		return last / apart == first / apart;
	/* The best base for sharing puts `last` as early in a line as it can lie. */
	for (uint64_t base = 0; base < apart; base += align)
		if ((base + last) / apart == (base + first) / apart)
			return true;
	return false;
}

void hl_straddling_positions(uint64_t size, uint64_t align, unsigned line, unsigned *positions,
			     unsigned *straddling)
{
	*positions = *straddling = 0;
	for (uint64_t at = 0; at < line; at += align) {
		++*positions;
		if (at + size > line)
			++*straddling;
	}
}

bool hl_find_is_grouped(const struct hl_find *find)
{
	for (uint32_t i = 0; i < find->type->count; i++) {
		const struct hl_member *member = &find->types->member[find->type->first + i];

		if (member->align_log2 && (uint64_t)1 << (member->align_log2 - 1) >= 64)
			return true;
		/* The kernel's markers of groups take no room. */
		if (!member->bit_size && !(member->flags & HL_MEMBER_BASE) &&
		    !hl_member_size(find->types, member) && i + 1 < find->type->count)
			return true;
	}
	for (uint32_t i = 0; i < find->n_leaves; i++)
		if (find->leaf[i].look == HL_LOOK_PAD && !find->leaf[i].up &&
		    find->leaf[i].size >= find->line / 4)
			return true;
	return false;
}

/* ---- Pictures of files and packets ---- */

/* The digits of 8, 16, 32 or 64 at the start of the text; 0: something else. */
static size_t width_at(const char *text)
{
	static const char *const widths[] = { "8", "16", "32", "64" };

	for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
		size_t n = strlen(widths[i]);

		if (!strncmp(text, widths[i], n) && (!text[n] || !strcmp(text + n, "_t")))
			return n;
	}
	return 0;
}

/* Behind underscores and one of the words, a width: "__le32" with "le". */
static bool is_word_and_width(const char *name, const char *const *word, size_t n_words)
{
	while (*name == '_')
		name++;
	for (size_t i = 0; i < n_words; i++) {
		/* Most names part at once: they are asked for again and again. */
		if (*name != *word[i])
			continue;

		size_t n = strlen(word[i]);

		if (!strncmp(name, word[i], n) && width_at(name + n))
			return true;
	}
	return false;
}

static bool names_byte_order(const char *name)
{
	static const char *const words[] = { "le",     "be",  "rte_le", "rte_be",
					     "virtio", "big", "little" };

	return is_word_and_width(name, words, sizeof(words) / sizeof(words[0]));
}

static bool names_width(const char *name)
{
	static const char *const words[] = { "uint", "int", "u", "s", "u_int" };

	return is_word_and_width(name, words, sizeof(words) / sizeof(words[0]));
}

/* Whether one of the typedefs of a type, up to the type itself, has such a name. */
static bool is_named(const struct hl_types *types, hl_type_id id, bool (*names)(const char *))
{
	for (int depth = 0; depth < HL_MAX_DEPTH; depth++) {
		const struct hl_type *type = &types->type[id];

		if (type->kind == HL_TYPEDEF && type->name && names(type->name))
			return true;
		if (type->kind != HL_TYPEDEF && type->kind != HL_CONST && type->kind != HL_ARRAY)
			return false;
		id = type->target;
	}
	return false;
}

bool hl_find_has_byte_order(const struct hl_find *find)
{
	for (uint32_t i = 0; i < find->n_leaves; i++)
		if (is_named(find->types, find->leaf[i].member->type, names_byte_order))
			return true;
	return false;
}

/* Whether the field means the same to another machine: bytes, integers of a stated width. */
static bool is_portable(const struct hl_find *find, const struct hl_leaf *leaf)
{
	const struct hl_types *types = find->types;
	hl_type_id id = hl_type_strip(types, leaf->member->type);

	for (int depth = 0; types->type[id].kind == HL_ARRAY && depth < HL_MAX_DEPTH; depth++)
		id = hl_type_strip(types, types->type[id].target);
	if (hl_look_is_written(leaf->look) || types->type[id].kind == HL_POINTER)
		return false;
	return types->type[id].size <= 1 || types->type[id].kind == HL_ENUM ||
	       is_named(types, leaf->member->type, names_width);
}

/* What the kernel hands to its users as it stands. */
static bool names_interface(const char *name)
{
	return !strncmp(name, "trace_event_raw_", 16) || !strncmp(name, "compat_", 7);
}

bool hl_find_is_format(const struct hl_find *find)
{
	if (hl_find_has_byte_order(find) || names_interface(hl_type_name(find->types, find->id)))
		return true;
	/* Nobody aligns a format to a line. */
	if (!(find->type->flags & HL_TYPE_PACKED) || find->align >= find->line)
		return false;
	for (uint32_t i = 0; i < find->n_leaves; i++)
		if (!is_portable(find, &find->leaf[i]))
			return false;
	return true;
}
