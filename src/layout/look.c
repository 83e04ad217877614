// SPDX-License-Identifier: MIT
#include "look.h"

#include "words.h"

#include <stdlib.h>
#include <string.h>

/* ---- Questions about names ---- */

enum hl_per_thread hl_look_per_thread(const char *name)
{
	struct hl_reading reading = hl_read_name(name);

	if (reading.any & W_MAP)
		return HL_PER_THREAD_NOT;
	if (reading.any & W_THREAD || reading.last & W_ROLE)
		return HL_PER_THREAD_SAID;
	return reading.last & W_SLOT ? HL_PER_THREAD_MAYBE : HL_PER_THREAD_NOT;
}

bool hl_look_counted(const char *name)
{
	return hl_read_name(name).any & (W_COUNT | W_REFS);
}

bool hl_look_counts_elements(const char *name)
{
	uint32_t any = hl_read_name(name).any;

	return any & (W_COUNT | W_INDEX) && !(any & (W_TALLY | W_SUM | W_STEADY));
}

bool hl_look_moves_on(const char *name)
{
	return hl_read_name(name).last & W_INDEX;
}

bool hl_look_counts_alone(const char *name)
{
	struct hl_reading reading = hl_read_name(name);

	return reading.words && reading.all & (W_COUNT | W_REFS);
}

bool hl_look_registered(const char *name)
{
	return hl_read_name(name).any & W_REGISTERED;
}

bool hl_look_argument(const char *name)
{
	return hl_read_name(name).any & W_ARGUMENT;
}

const char *hl_look_name(enum hl_look look)
{
	switch (look) {
	case HL_LOOK_LOCK:
		return "lock";
	case HL_LOOK_ATOMIC:
		return "atomic";
	case HL_LOOK_LINK:
		return "link";
	case HL_LOOK_DONE:
		return "completion flag";
	case HL_LOOK_COUNTER:
	case HL_LOOK_TALLY:
		return "counter";
	case HL_LOOK_CONSTANT:
	case HL_LOOK_STEADY:
		return "read-mostly";
	case HL_LOOK_PAD:
		return "padding";
	default:
		return "plain";
	}
}

/* ---- Types ---- */

/* A lock of the kernel's or libc's is no larger than this, debugging included. */
#define LARGEST_LOCK 256
#define LARGEST_LINK 64

struct hl_looks {
	uint8_t *look; /* of each type by itself */
	uint8_t *typedef_log2; /* of each aggregate: alignment of a typedef of it */
	uint8_t *embedded_log2; /* ... alignment that all places where it is embedded share */
	uint8_t *embedded; /* ... and how many there are, 255 at most */
	uint8_t *holds; /* of each aggregate: HL_HOLDS_..., HOLDS_KNOWN */
	uint8_t *member; /* look of each member of a struct, class or union */
};

/* Exact names that no rule on words tells. */
static enum hl_look look_of_known_name(const char *name)
{
	static const struct {
		const char *name;
		enum hl_look look;
	} known[] = {
		{ "pthread_cond_t", HL_LOOK_DONE },
		{ "pthread_barrier_t", HL_LOOK_DONE },
		{ "cnd_t", HL_LOOK_DONE },
		{ "condition_variable", HL_LOOK_DONE },
		{ "completion", HL_LOOK_DONE },
		{ "wait_queue_head", HL_LOOK_DONE },
		{ "wait_queue_head_t", HL_LOOK_DONE },
		{ "swait_queue_head", HL_LOOK_DONE },
		{ "atomic_flag", HL_LOOK_LOCK },
		{ "callback_head", HL_LOOK_LINK },
		{ "rcu_head", HL_LOOK_LINK },
		{ "once_flag", HL_LOOK_DONE },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].name[0] == name[0] && !strcmp(known[i].name, name))
			return known[i].look;
	return HL_LOOK_PLAIN;
}

/* Whether a pointer leads to the struct itself or to another link, maybe by way of one more. */
static bool is_pointer_to_link(const struct hl_types *types, const struct hl_type *pointer,
			       const struct hl_type *self)
{
	const struct hl_type *what = &types->type[hl_type_strip(types, pointer->target)];

	if (what->kind == HL_POINTER)
		what = &types->type[hl_type_strip(types, what->target)];
	return what == self ||
	       (hl_kind_is_aggregate(what->kind) && hl_read_name(what->name).any & W_LIST);
}

/* True when the struct is made of links alone: it is there to be embedded.  What carries
 * something else as well is an object with a link in it. */
static bool is_all_links(const struct hl_types *types, const struct hl_type *type)
{
	uint32_t links = 0, others = 0;

	for (uint32_t i = 0; i < type->count; i++) {
		const struct hl_type *member =
			&types->type[hl_type_strip(types, types->member[type->first + i].type)];

		if (member->kind == HL_POINTER && is_pointer_to_link(types, member, type))
			links++;
		else if (member->kind == HL_BASE && member->size == types->address_size)
			others++; /* the colour of a red-black tree's node */
		else
			return false;
	}
	return links && others < links && type->count <= 4;
}

/* By the name of the type and of the typedefs in front of it. */
static enum hl_look look_of_names(const struct hl_types *types, hl_type_id id)
{
	const struct hl_type *type = &types->type[id];
	struct hl_reading reading = hl_read_name(type->name);
	enum hl_look known = type->name ? look_of_known_name(type->name) : HL_LOOK_PLAIN;

	if (known != HL_LOOK_PLAIN || !reading.any)
		return known;

	uint64_t size = hl_type_size(types, id);

	if (reading.any & W_ATOMIC && size <= 16)
		return HL_LOOK_ATOMIC;
	if (reading.last & W_REFS && size <= 16)
		return HL_LOOK_ATOMIC;
	if (reading.last & W_LOCK && size && size <= LARGEST_LOCK)
		return HL_LOOK_LOCK;
	if (hl_kind_is_aggregate(type->kind) && reading.any & W_LIST && size <= LARGEST_LINK &&
	    is_all_links(types, type))
		return HL_LOOK_LINK;
	return HL_LOOK_PLAIN;
}

static enum hl_look look_of_type(const struct hl_types *types, hl_type_id id)
{
	bool is_volatile = false;

	for (int depth = 0; depth < HL_MAX_DEPTH; depth++) {
		const struct hl_type *type = &types->type[id];
		enum hl_look look;

		switch (type->kind) {
		case HL_ATOMIC:
			return HL_LOOK_ATOMIC;
		case HL_VOLATILE:
			is_volatile = true;
			break;
		case HL_CONST:
		case HL_RESTRICT:
			break;
		case HL_TYPEDEF:
			look = look_of_names(types, id);
			if (look != HL_LOOK_PLAIN)
				return look;
			break;
		case HL_STRUCT:
		case HL_CLASS:
		case HL_UNION:
			return look_of_names(types, id);
		case HL_BASE:
		case HL_ENUM:
		case HL_POINTER:
			return is_volatile ? HL_LOOK_ATOMIC : HL_LOOK_PLAIN;
		default:
			return HL_LOOK_PLAIN;
		}
		id = type->target;
	}
	return HL_LOOK_PLAIN;
}

static void note_typedef(struct hl_looks *looks, const struct hl_types *types,
			 const struct hl_type *type)
{
	hl_type_id what = hl_type_strip(types, type->target);

	if (type->align_log2 && hl_kind_is_aggregate(types->type[what].kind) &&
	    looks->typedef_log2[what] < type->align_log2 - 1)
		looks->typedef_log2[what] = (uint8_t)(type->align_log2 - 1);
}

static void note_embedded(struct hl_looks *looks, const struct hl_types *types,
			  const struct hl_member *member)
{
	hl_type_id what = hl_type_strip(types, member->type);
	uint64_t offset = member->bit_offset / 8;
	unsigned log2 = offset ? (unsigned)__builtin_ctzll(offset) : 12;

	if (!hl_kind_is_aggregate(types->type[what].kind))
		return;
	if (!looks->embedded[what] || log2 < looks->embedded_log2[what])
		looks->embedded_log2[what] = (uint8_t)(log2 < 12 ? log2 : 12);
	/* An offset of 0 fits every alignment and so speaks for none. */
	if (offset && looks->embedded[what] < UINT8_MAX)
		looks->embedded[what]++;
}

uint32_t hl_looks_used_align(const struct hl_looks *looks, hl_type_id id)
{
	uint32_t align = (uint32_t)1 << looks->typedef_log2[id];

	if (looks->embedded[id] >= 3 && align < (uint32_t)1 << looks->embedded_log2[id])
		align = (uint32_t)1 << looks->embedded_log2[id];
	return align;
}

/* The type of the elements of an array of however many dimensions; of all else, itself. */
static hl_type_id element_of(const struct hl_types *types, hl_type_id id)
{
	for (int depth = 0; depth < HL_MAX_DEPTH; depth++) {
		hl_type_id what = hl_type_strip(types, id);

		if (types->type[what].kind != HL_ARRAY)
			break;
		id = types->type[what].target;
	}
	return id;
}

bool hl_look_is_by_type(const struct hl_looks *looks, const struct hl_types *types,
			const struct hl_member *member)
{
	return hl_look_of_type(looks, element_of(types, member->type)) != HL_LOOK_PLAIN;
}

enum hl_look hl_look_of_type(const struct hl_looks *looks, hl_type_id id)
{
	return (enum hl_look)looks->look[id];
}

/* ---- Members ---- */

static bool is_const(const struct hl_types *types, hl_type_id id)
{
	for (int depth = 0; depth < HL_MAX_DEPTH; depth++) {
		const struct hl_type *type = &types->type[id];

		if (type->kind == HL_CONST)
			return true;
		if (type->kind != HL_TYPEDEF && type->kind != HL_VOLATILE &&
		    type->kind != HL_RESTRICT && type->kind != HL_ARRAY)
			return false;
		id = type->target;
	}
	return false;
}

/* A link leads to another of the same kind; what leads elsewhere by that name is a place in
 * some list.  The struct around an unnamed one is not known. */
static bool may_link(const struct hl_types *types, const struct hl_type *pointee,
		     const struct hl_type *container)
{
	if (pointee == container || pointee == &types->type[0] || !container->name)
		return true;
	/* It may be declared in one place and defined in another. */
	return pointee->name && !strcmp(pointee->name, container->name);
}

static enum hl_look look_of_pointer(const struct hl_types *types, const struct hl_type *pointer,
				    const char *name, const struct hl_type *container)
{
	hl_type_id what = hl_type_strip(types, pointer->target);
	const struct hl_type *pointee = &types->type[what];
	struct hl_reading reading = hl_read_name(name);

	if (pointee->kind == HL_FUNCTION)
		return HL_LOOK_CONSTANT;
	if (hl_kind_is_aggregate(pointee->kind)) {
		if (hl_read_name(pointee->name).last & W_OPS)
			return HL_LOOK_CONSTANT;
		if (is_const(types, pointer->target))
			return HL_LOOK_CONSTANT;
	}
	if (reading.any & W_OPS)
		return HL_LOOK_CONSTANT;
	if (reading.any & W_LINK)
		return may_link(types, pointee, container) ? HL_LOOK_LINK : HL_LOOK_PLAIN;
	/* const char *name; a key may be a pointer as well. */
	return reading.last & W_STEADY ? HL_LOOK_STEADY : HL_LOOK_PLAIN;
}

static enum hl_look look_of_integer(const char *name, const struct hl_type *type, bool bits)
{
	struct hl_reading reading = hl_read_name(name);
	/* "need_lock" and the like are answers, not locks. */
	bool whole = !bits && !(type->flags & HL_TYPE_BOOL) && type->size >= 4;

	if (reading.any & W_REFS && whole)
		return HL_LOOK_ATOMIC;
	if (reading.last & W_LOCK && whole)
		return HL_LOOK_LOCK;
	/* "done" and "is_done", not "done_list" nor "qs_pending". */
	if (reading.last & W_DONE || (reading.words == 1 && reading.any & W_PENDING))
		return HL_LOOK_DONE;
	if (reading.last & W_STEADY)
		return HL_LOOK_STEADY;
	if (reading.last & W_TALLY && whole && !(reading.any & W_STEADY))
		return HL_LOOK_TALLY;
	if (reading.any & W_COUNT || reading.last & W_INDEX)
		return HL_LOOK_COUNTER;
	if (reading.any & W_STEADY)
		return HL_LOOK_STEADY;
	return HL_LOOK_PLAIN;
}

static bool is_padding(const struct hl_types *types, const struct hl_type *array, const char *name)
{
	const struct hl_type *element = &types->type[hl_type_strip(types, array->target)];

	return element->kind == HL_BASE && !(element->flags & HL_TYPE_FLOAT) &&
	       hl_read_name(name).any & W_PAD;
}

static enum hl_look look_of_member(const struct hl_looks *looks, const struct hl_types *types,
				   const struct hl_type *container, const struct hl_member *member)
{
	enum hl_look look = hl_look_of_type(looks, member->type);
	hl_type_id what = hl_type_strip(types, member->type);
	const struct hl_type *type = &types->type[what];

	if (type->kind == HL_ARRAY && is_padding(types, type, member->name))
		return HL_LOOK_PAD;
	if (look != HL_LOOK_PLAIN)
		return look;
	if (member->flags & HL_MEMBER_VPTR || is_const(types, member->type))
		return HL_LOOK_CONSTANT;
	switch (type->kind) {
	case HL_POINTER:
		return look_of_pointer(types, type, member->name, container);
	case HL_BASE:
	case HL_ENUM:
		if (type->flags & HL_TYPE_FLOAT)
			return HL_LOOK_PLAIN;
		return look_of_integer(member->name, type, member->bit_size);
	case HL_STRUCT:
		/* kuid_t and its kind: a struct around one integer. */
		if (type->count == 1 && type->size <= 8)
			return look_of_integer(member->name, type, false);
		return HL_LOOK_PLAIN;
	default:
		return HL_LOOK_PLAIN;
	}
}

static bool is_callback(const struct hl_types *types, const struct hl_member *member)
{
	const struct hl_type *type = &types->type[hl_type_strip(types, member->type)];

	return type->kind == HL_POINTER &&
	       types->type[hl_type_strip(types, type->target)].kind == HL_FUNCTION;
}

/* Whether a member is a link, or a struct around one: a node with its key. */
static bool holds_link(const struct hl_looks *looks, const struct hl_types *types,
		       const struct hl_member *member, int depth)
{
	const struct hl_type *type = &types->type[hl_type_strip(types, member->type)];

	if (looks->member[member - types->member] == HL_LOOK_LINK ||
	    hl_look_of_type(looks, member->type) == HL_LOOK_LINK)
		return true;
	if (type->kind != HL_STRUCT || type->size > LARGEST_LINK || depth == 2)
		return false;
	for (uint32_t i = 0; i < type->count; i++)
		if (holds_link(looks, types, &types->member[type->first + i], depth + 1))
			return true;
	return false;
}

/* The one callback of what is queued (a timer, a piece of work) is written each time that
 * it is queued: it is no table of operations that everybody reads. */
static void note_message(struct hl_looks *looks, const struct hl_types *types,
			 const struct hl_type *type)
{
	uint32_t callbacks = 0, callback = 0;
	bool linked = false;

	for (uint32_t i = 0; i < type->count; i++) {
		if (!is_callback(types, &types->member[type->first + i]))
			continue;
		callback = type->first + i;
		callbacks++;
	}
	for (uint32_t i = 0; callbacks == 1 && !linked && i < type->count; i++)
		linked = holds_link(looks, types, &types->member[type->first + i], 0);
	if (linked && looks->member[callback] == HL_LOOK_CONSTANT)
		looks->member[callback] = HL_LOOK_PLAIN;
}

#define HOLDS_KNOWN 0x80

static uint8_t held_by_look(enum hl_look look)
{
	return (uint8_t)((hl_look_is_written(look) ? HL_HOLDS_WRITTEN : 0) |
			 (hl_look_is_shared(look) ? HL_HOLDS_SHARED : 0) |
			 (hl_look_is_counted(look) ? HL_HOLDS_COUNTED : 0));
}

/* Each type is looked at once, however often it is inside others. */
static uint8_t note_held(struct hl_looks *looks, const struct hl_types *types, hl_type_id id,
			 int depth)
{
	const struct hl_type *type = &types->type[id];

	if (looks->holds[id] & HOLDS_KNOWN || depth == HL_MAX_DEPTH)
		return looks->holds[id];
	looks->holds[id] = HOLDS_KNOWN | held_by_look(looks->look[id]);
	for (uint32_t i = 0; i < type->count; i++) {
		const struct hl_member *member = &types->member[type->first + i];
		hl_type_id inner = element_of(types, member->type);

		looks->holds[id] |= held_by_look(looks->member[type->first + i]) |
				    held_by_look(hl_look_of_type(looks, inner));
		inner = hl_type_strip(types, inner);
		if (hl_kind_is_aggregate(types->type[inner].kind))
			looks->holds[id] |= note_held(looks, types, inner, depth + 1);
	}
	return looks->holds[id];
}

bool hl_looks_hold(const struct hl_looks *looks, const struct hl_types *types, hl_type_id id,
		   unsigned what)
{
	hl_type_id element = element_of(types, id);

	return (held_by_look(hl_look_of_type(looks, element)) |
		looks->holds[hl_type_strip(types, element)]) &
	       what;
}

/* ---- All of a file, once ---- */

struct hl_looks *hl_looks_build(const struct hl_types *types)
{
	struct hl_looks *looks = calloc(1, sizeof(*looks));
	size_t n = types->n_types;
	uint8_t *bytes = looks ? calloc(5 * n + types->n_members, 1) : NULL;

	if (!bytes) {
		free(looks);
		return NULL;
	}
	*looks = (struct hl_looks){
		.look = bytes,
		.typedef_log2 = bytes + n,
		.embedded_log2 = bytes + 2 * n,
		.embedded = bytes + 3 * n,
		.holds = bytes + 4 * n,
		.member = bytes + 5 * n,
	};
	for (hl_type_id id = 0; id < n; id++)
		looks->look[id] = (uint8_t)look_of_type(types, id);
	for (hl_type_id id = 0; id < n; id++) {
		const struct hl_type *type = &types->type[id];

		if (type->kind == HL_TYPEDEF)
			note_typedef(looks, types, type);
		if (!hl_kind_is_aggregate(type->kind))
			continue;
		for (uint32_t i = 0; i < type->count; i++) {
			const struct hl_member *member = &types->member[type->first + i];

			looks->member[type->first + i] =
				(uint8_t)look_of_member(looks, types, type, member);
			if (type->kind != HL_UNION)
				note_embedded(looks, types, member);
		}
		note_message(looks, types, type);
	}
	for (hl_type_id id = 0; id < n; id++)
		if (hl_kind_is_aggregate(types->type[id].kind))
			note_held(looks, types, id, 0);
	return looks;
}

void hl_looks_free(struct hl_looks *looks)
{
	if (!looks)
		return;
	free(looks->look);
	free(looks);
}

enum hl_look hl_look_of_member(const struct hl_looks *looks, const struct hl_types *types,
			       const struct hl_member *member)
{
	return (enum hl_look)looks->member[member - types->member];
}
