// SPDX-License-Identifier: MIT
/*
 * Types that are few bytes of DWARF and much work for whoever looks at them with
 * two nested loops: each must be reported on within the bounds that fuzzing has.
 */
#include "target.h"

#include "debuginfo/internal.h"

#include <string.h>

/* As many as 64 KB can say. */
#define MEMBERS		16000u
#define NAME_BYTES	30000u

struct large {
	struct hl_types types;
	struct hl_type type[64];
	struct hl_member member[16 * MEMBERS];
	hl_type_id defined[64];
};

static const char *const no_files[] = { "" };
static struct large large;

static void begin(void)
{
	memset(&large, 0, sizeof(large));
	large.types = (struct hl_types){
		.type = large.type, .member = large.member, .file = no_files,
		.defined = large.defined, .n_types = 1, .n_files = 1, .n_units = 1,
		.address_size = 8, .max_align_log2 = 4,
	};
}

static hl_type_id add(struct hl_type type)
{
	hl_type_id id = large.types.n_types++;

	if (!type.count)
		type.first = large.types.n_members;
	large.type[id] = type;
	if (hl_kind_is_aggregate(type.kind) && type.name)
		large.defined[large.types.n_defined++] = id;
	return id;
}

static hl_type_id add_base(const char *name, uint64_t size)
{
	return add((struct hl_type){ .kind = HL_BASE, .name = name, .size = size });
}

static hl_type_id begin_struct(const char *name)
{
	return add((struct hl_type){ .kind = HL_STRUCT, .name = name });
}

static void add_member(hl_type_id in, hl_type_id of, const char *name, uint64_t byte,
		       uint16_t bits)
{
	large.member[large.types.n_members++] = (struct hl_member){
		.name = name, .type = of, .bit_offset = byte * 8, .bit_size = bits,
	};
	large.type[in].count++;
}

/* Members of the n types in turn, one behind the other at multiples of `step` bytes. */
static void add_members(hl_type_id in, const hl_type_id *of, const char *const *name, unsigned n,
			uint32_t count, uint64_t step)
{
	for (uint32_t i = 0; i < count; i++)
		add_member(in, of[i % n], name[i % n], i * step, 0);
	large.type[in].size = (count * step + 7) / 8 * 8;
}

static void mixed_members(void)
{
	const char *const name[] = { "lock", "size", "next", "data" };
	hl_type_id of[4] = {
		add_base("spinlock_t", 4), add_base("int", 4), add_base("long", 4),
		add_base("short", 2),
	};

	add_members(begin_struct("mixed"), of, name, 4, MEMBERS, 4);
}

static void holes(void)
{
	const char *const name[] = { "a", "b", "count" };
	hl_type_id of[3] = { add_base("char", 1), add_base("long", 8), add_base("short", 2) };

	for (int i = 0; i < 8; i++)
		add_members(begin_struct("holes"), of, name, 3, 3000, 8);
}

/* A wide struct in a wide struct in ... */
static void wide_nesting(bool named, uint64_t size)
{
	static const char *const names[] = { "a", "b", "c", "d", "e", "f", "g", "h" };
	hl_type_id id = add_base("int", 4);

	for (int depth = 0; depth < 8; depth++) {
		const char *name = named || depth % 2 ? names[depth] : NULL;
		hl_type_id outer = begin_struct(name);

		for (uint32_t i = 0; i < 8000; i++)
			add_member(outer, id, named ? "x" : NULL, 0, 0);
		large.type[outer].size = size;
		id = outer;
	}
	hl_type_id last = begin_struct("last");

	add_member(last, add_base("int", 4), "x", 0, 0);
	add_member(last, id, "y", 56, 0);
	large.type[last].size = 56 + size;
}

static void wide_nesting_named(void)
{
	wide_nesting(true, 24);
}

static void wide_nesting_unnamed(void)
{
	wide_nesting(false, 24);
}

static void wide_bases(void)
{
	hl_type_id id = add_base("int", 4);

	for (int depth = 0; depth < 6; depth++) {
		hl_type_id outer = begin_struct("derived");

		large.type[outer].language = HL_LANG_CXX;
		for (uint32_t i = 0; i < 8000; i++) {
			add_member(outer, id, NULL, i * 4, 0);
			large.member[large.types.n_members - 1].flags =
				depth ? HL_MEMBER_BASE | (i % 2 ? HL_MEMBER_VIRTUAL : 0) : 0;
		}
		large.type[outer].size = 32000;
		id = outer;
	}
}

/* The same name a great many times, which C cannot have. */
static void equal_names(void)
{
	hl_type_id mode = add((struct hl_type){ .kind = HL_ENUM, .name = "mode", .size = 4 });

	for (uint32_t i = 0; i < MEMBERS; i++)
		add_member(mode, 0, "SAME", i, 0);
	hl_type_id holder = begin_struct("holder");

	add_member(holder, mode, "mode", 0, 0);
	large.type[holder].size = 4;
}

static void long_names(void)
{
	static char name[NAME_BYTES];
	hl_type_id of;

	memset(name, 'a', sizeof(name) - 1);
	of = add_base(name, 4);
	const char *member = name;

	add_members(begin_struct(name), &of, &member, 1, MEMBERS, 4);
}

static void many_bit_fields(void)
{
	hl_type_id word = add_base("int", 4), byte = add_base("char", 1);

	for (int run = 2; run < 8; run++) {
		hl_type_id id = begin_struct("bits");

		for (uint32_t i = 0; i < MEMBERS; i++) {
			uint64_t bit = i * 9;

			add_member(id, i % (MEMBERS / run) ? word : byte, "b", 0,
				   i % (MEMBERS / run) ? 7 : 0);
			large.member[large.types.n_members - 1].bit_offset = bit / 8 * 8;
		}
		large.type[id].size = MEMBERS * 9 / 8 + 1;
	}
}

/* Markers of groups make as many sections that are searched through. */
static void many_sections(void)
{
	hl_type_id of[] = { add_base("a", 1), add_base("b", 8), add_base("c", 2), add_base("d", 16),
			    add_base("e", 4), add_base("f", 8), add_base("marker", 0) };
	const char *const name[] = { "a", "b", "c", "d", "e", "f", "marker" };
	const uint64_t at[] = { 0, 8, 16, 32, 48, 56, 64 };
	hl_type_id id = begin_struct("sections");

	for (uint32_t i = 0; i < MEMBERS; i++)
		add_member(id, of[i % 7], name[i % 7], i / 7 * 64 + at[i % 7], 0);
	large.type[id].size = (MEMBERS / 7 + 1) * 64;
}

static void many_slots(void)
{
	hl_type_id count = add_base("int", 4);
	hl_type_id array = add((struct hl_type){ .kind = HL_ARRAY, .target = count, .size = 8 });
	const char *const name[] = { "cpu_count" };

	add_members(begin_struct("slots"), &array, name, 1, MEMBERS, 32);
}

/* Names that lead through many types to where they end. */
static void long_chains(void)
{
	hl_type_id id = add_base("int", 4);

	for (int i = 0; i < 50; i++)
		id = add((struct hl_type){ .kind = i % 2 ? HL_TYPEDEF : HL_CONST, .target = id,
					   .name = i % 2 ? "alias" : NULL });

	const char *const name[] = { "x" };

	add_members(begin_struct("chains"), &id, name, 1, MEMBERS, 4);
}

static void functions(void)
{
	hl_type_id id = add_base("int", 4);

	for (int depth = 0; depth < 8; depth++) {
		hl_type_id outer = add((struct hl_type){ .kind = HL_FUNCTION, .target = id });

		for (uint32_t i = 0; i < 3000; i++)
			add_member(outer, id, NULL, 0, 0);
		id = add((struct hl_type){ .kind = HL_POINTER, .target = outer, .size = 8 });
	}
	const char *const name[] = { "call" };

	add_members(begin_struct("functions"), &id, name, 1, 20, 8);
}

static const struct {
	const char *name;
	void (*make)(void);
} test[] = {
	{ "mixed members", mixed_members },
	{ "holes", holes },
	{ "wide nesting, named", wide_nesting_named },
	{ "wide nesting, unnamed", wide_nesting_unnamed },
	{ "wide bases", wide_bases },
	{ "equal names", equal_names },
	{ "long names", long_names },
	{ "many bit-fields", many_bit_fields },
	{ "many sections", many_sections },
	{ "many slots", many_slots },
	{ "long chains", long_chains },
	{ "functions", functions },
};

#define N_TESTS (sizeof(test) / sizeof(test[0]))

int main(int argc, char **argv)
{
	struct hl_error err;
	bool small;

	fuzz_all_parts = true;
	for (size_t i = 0; i < N_TESTS; i++) {
		if (argc > 1 && strcmp(argv[1], test[i].name))
			continue;
		begin();
		test[i].make();
		fuzz_watch(true);
		FUZZ_CHECK(!hl_types_settle(&large.types, large.type, large.member, &err));
		fuzz_check_types(&large.types);
		fuzz_report(&large.types, 0);
		fuzz_watch(false);
		printf("ok %zu - %s\n", i + 1, test[i].name);
		fflush(stdout);
	}
	small = fuzz_memory_is_bounded(N_TESTS + 1);
	printf("1..%zu\n", N_TESTS + 1);
	return small ? 0 : 1;
}
