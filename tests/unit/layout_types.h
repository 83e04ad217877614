/* SPDX-License-Identifier: MIT */
/*
 * Types made by hand, for tests of what is done with them: a graph that is added to
 * type by type and is then read as any other.
 */
#ifndef HL_TESTS_LAYOUT_TYPES_H
#define HL_TESTS_LAYOUT_TYPES_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "debuginfo/debuginfo.h"

enum { MAX_TYPES = 128, MAX_MEMBERS = 256 };

struct graph {
	struct hl_types types;
	struct hl_type type[MAX_TYPES];
	struct hl_member member[MAX_MEMBERS];
	/* There from the start, x86-64's. */
	hl_type_id t_char, t_short, t_int, t_long, t_bool, t_quad;
};

static inline unsigned log2_of_align(uint64_t align)
{
	return (unsigned)__builtin_ctzll(align);
}

static inline hl_type_id add_type(struct graph *graph, struct hl_type type)
{
	hl_type_id id = graph->types.n_types++;

	assert_true(id < MAX_TYPES);
	graph->type[id] = type;
	return id;
}

static inline hl_type_id add_base(struct graph *graph, const char *name, uint64_t size, int flags)
{
	return add_type(graph, (struct hl_type){ .name = name,
						 .kind = HL_BASE,
						 .size = size,
						 .flags = (uint8_t)flags,
						 .natural_log2 = (uint8_t)log2_of_align(size) });
}

static inline hl_type_id add_pointer(struct graph *graph, hl_type_id target)
{
	return add_type(graph, (struct hl_type){ .kind = HL_POINTER,
						 .size = 8,
						 .target = target,
						 .natural_log2 = 3 });
}

static inline hl_type_id add_alias(struct graph *graph, enum hl_kind kind, hl_type_id target,
				   const char *name)
{
	return add_type(graph,
			(struct hl_type){ .kind = (uint8_t)kind,
					  .name = name,
					  .target = target,
					  .natural_log2 = graph->type[target].natural_log2 });
}

static inline hl_type_id add_array(struct graph *graph, hl_type_id element, uint64_t n)
{
	return add_type(graph,
			(struct hl_type){ .kind = HL_ARRAY,
					  .size = n,
					  .target = element,
					  .flags = n ? 0 : HL_TYPE_FLEXIBLE,
					  .natural_log2 = graph->type[element].natural_log2 });
}

/* Begins a type that has members, which add_member() gives it. */
static inline hl_type_id add_with_members(struct graph *graph, enum hl_kind kind, const char *name,
					  uint64_t size, uint32_t align)
{
	return add_type(graph, (struct hl_type){ .kind = (uint8_t)kind,
						 .name = name,
						 .size = size,
						 .first = graph->types.n_members,
						 .natural_log2 = (uint8_t)log2_of_align(align) });
}

/* Adds a member to the type that was begun last. */
static inline struct hl_member *add_member(struct graph *graph, const char *name, hl_type_id type,
					   uint64_t byte)
{
	struct hl_member *member = &graph->member[graph->types.n_members++];
	uint32_t owner = graph->types.n_types - 1;

	assert_true(graph->types.n_members <= MAX_MEMBERS);
	while (!graph->type[owner].first && !hl_kind_is_aggregate(graph->type[owner].kind) &&
	       graph->type[owner].kind != HL_FUNCTION)
		owner--;
	graph->type[owner].count++;
	*member = (struct hl_member){ .name = name, .type = type, .bit_offset = byte * 8 };
	return member;
}

static inline void add_bits(struct graph *graph, const char *name, hl_type_id type, uint64_t bit,
			    unsigned bits)
{
	struct hl_member *member = add_member(graph, name, type, 0);

	member->bit_offset = bit;
	member->bit_size = (uint16_t)bits;
}

static inline void begin_graph(struct graph *graph)
{
	*graph = (struct graph){ .types = { .n_types = 1, .n_members = 1, .address_size = 8 } };
	graph->types.type = graph->type;
	graph->types.member = graph->member;
	graph->t_char = add_base(graph, "char", 1, HL_TYPE_CHAR | HL_TYPE_SIGNED);
	graph->t_short = add_base(graph, "short", 2, HL_TYPE_SIGNED);
	graph->t_int = add_base(graph, "int", 4, HL_TYPE_SIGNED);
	graph->t_long = add_base(graph, "long", 8, HL_TYPE_SIGNED);
	graph->t_bool = add_base(graph, "_Bool", 1, HL_TYPE_BOOL);
	graph->t_quad = add_base(graph, "__int128", 16, HL_TYPE_SIGNED);
}

#endif
