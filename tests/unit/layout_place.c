/* SPDX-License-Identifier: MIT */
/* Where fields are put, and the order that makes the whole smallest. */
#include "layout_types.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "layout/place.h"

enum { LINE = 64, MAX_FIELDS = 16 };

struct fields {
	struct hl_placing placing;
	struct hl_field field[MAX_FIELDS];
};

static void begin(struct fields *f)
{
	*f = (struct fields){ .placing = { .min_align = 1 } };
	f->placing.field = f->field;
}

static struct hl_field *plain(struct fields *f, uint64_t size, uint32_t align)
{
	struct hl_field *field = &f->field[f->placing.n];

	*field = (struct hl_field){
		.member = f->placing.n,
		.size = size,
		.data_size = size,
		.align = align,
	};
	f->placing.n++;
	return field;
}

static struct hl_field *bits(struct fields *f, uint64_t size, unsigned width)
{
	struct hl_field *field = plain(f, size, (uint32_t)size);

	field->bits = (uint16_t)width;
	return field;
}

/* The order of the fields, by the member that each is. */
static void assert_order(const struct fields *f, const char *members)
{
	for (uint32_t i = 0; i < f->placing.n; i++)
		assert_int_equal(f->field[i].member, members[i] - 'a');
}

static void natural_alignment(void **state)
{
	struct fields f;

	(void)state;
	begin(&f);
	plain(&f, 1, 1);
	plain(&f, 8, 8);
	plain(&f, 2, 2);
	plain(&f, 4, 4);
	hl_place(&f.placing, LINE);
	assert_int_equal(f.field[1].bit_offset, 64);
	assert_int_equal(f.field[2].bit_offset, 128);
	assert_int_equal(f.field[3].bit_offset, 160);
	assert_int_equal(f.placing.size, 24);
	assert_int_equal(f.placing.align, 8);
}

/* A bit-field goes to the next bit, but not over a boundary of its type. */
static void bit_fields(void **state)
{
	struct fields f;

	(void)state;
	begin(&f);
	plain(&f, 1, 1);
	bits(&f, 4, 20); /* 8 */
	bits(&f, 4, 5); /* 32: 28 + 5 is more than 32 */
	bits(&f, 8, 30); /* 64: 37 + 30 is more than 64 */
	plain(&f, 1, 1); /* byte 12 */
	hl_place(&f.placing, LINE);
	assert_int_equal(f.field[1].bit_offset, 8);
	assert_int_equal(f.field[2].bit_offset, 32);
	assert_int_equal(f.field[3].bit_offset, 64);
	assert_int_equal(f.field[4].bit_offset, 96);
	assert_int_equal(f.placing.size, 16);
}

static void packed_bit_fields(void **state)
{
	const unsigned width[] = { 1, 3, 3, 7, 20 }, place[] = { 0, 1, 4, 7, 14 };
	struct fields f;

	(void)state;
	begin(&f);
	f.placing.packed = true;
	for (size_t i = 0; i < 5; i++)
		bits(&f, i < 3 ? 1 : 4, width[i])->align = 1;
	hl_place(&f.placing, LINE);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(f.field[i].bit_offset, place[i]);
	assert_int_equal(f.placing.size, 5);
}

static void unnamed_bit_fields(void **state)
{
	struct fields f;

	(void)state;
	begin(&f);
	bits(&f, 4, 5);
	bits(&f, 4, 8)->pad = 6; /* int :6 */
	bits(&f, 4, 4)->flags = HL_FIELD_NEW_UNIT; /* int :0 */
	hl_place(&f.placing, LINE);
	assert_int_equal(f.field[1].bit_offset, 11);
	assert_int_equal(f.field[2].bit_offset, 32);
	assert_int_equal(f.placing.size, 8);
}

static void a_new_line_aligns_the_whole(void **state)
{
	struct fields f;

	(void)state;
	begin(&f);
	plain(&f, 4, 4);
	plain(&f, 4, 4)->flags = HL_FIELD_NEW_LINE;
	hl_place(&f.placing, LINE);
	assert_int_equal(f.field[1].bit_offset, LINE * 8);
	assert_int_equal(f.placing.size, 2 * LINE);
	assert_int_equal(f.placing.align, LINE);
}

/* A derived class puts its members into the tail padding of its base. */
static void tail_padding_of_a_base(void **state)
{
	struct fields f;

	(void)state;
	begin(&f);
	plain(&f, 24, 8)->data_size = 17;
	plain(&f, 1, 1);
	hl_place(&f.placing, LINE);
	assert_int_equal(f.field[1].bit_offset, 17 * 8);
	assert_int_equal(f.placing.size, 24);
}

static void one_move_that_is_enough_is_all(void **state)
{
	struct fields f;

	(void)state;
	begin(&f);
	plain(&f, 4, 4); /* a */
	plain(&f, 8, 8); /* b */
	plain(&f, 8, 8); /* c */
	plain(&f, 4, 4); /* d: into the hole behind a */
	plain(&f, 8, 8); /* e */
	assert_int_equal(hl_place_smallest(&f.placing, LINE), 0);
	assert_order(&f, "adbce");
	assert_int_equal(f.placing.size, 32);
}

static void nothing_moves_when_nothing_is_won(void **state)
{
	struct fields f;

	(void)state;
	begin(&f);
	plain(&f, 1, 1);
	plain(&f, 8, 8);
	plain(&f, 1, 1)->align = 1;
	f.placing.min_align = 64;
	assert_int_equal(hl_place_smallest(&f.placing, LINE), 0);
	assert_order(&f, "abc");
	assert_int_equal(f.placing.size, 64);
}

static void fixed_and_last_fields_stay(void **state)
{
	struct fields f;

	(void)state;
	begin(&f);
	plain(&f, 1, 1)->flags = HL_FIELD_FIXED;
	plain(&f, 8, 8);
	plain(&f, 1, 1);
	plain(&f, 2, 2);
	plain(&f, 0, 4)->flags = HL_FIELD_LAST;
	assert_int_equal(hl_place_smallest(&f.placing, LINE), 0);
	assert_int_equal(f.field[0].member, 0);
	assert_int_equal(f.field[4].member, 4);
	assert_int_equal(f.placing.size, 16);
}

/* Fields that share storage move together, and two runs never come to share any. */
static void runs_of_bit_fields(void **state)
{
	struct fields f;

	(void)state;
	begin(&f);
	bits(&f, 4, 3); /* a */
	bits(&f, 4, 3)->flags = HL_FIELD_WITH_PREVIOUS; /* b */
	plain(&f, 8, 8); /* c */
	bits(&f, 4, 3); /* d */
	plain(&f, 8, 8); /* e */
	assert_int_equal(hl_place_smallest(&f.placing, LINE), 0);
	assert_int_equal(f.placing.size, 24);
	for (uint32_t i = 0; i < 5; i++) {
		if (f.field[i].member == 1)
			assert_int_equal(f.field[i - 1].member, 0);
		if (f.field[i].member == 3 && i && f.field[i - 1].bits)
			assert_true(f.field[i].flags & HL_FIELD_NEW_UNIT);
	}
}

static void no_field_crosses_to_another_line_or_group(void **state)
{
	struct fields f;

	(void)state;
	begin(&f);
	plain(&f, 1, 1); /* a */
	plain(&f, 8, 8); /* b */
	plain(&f, 1, 1); /* c */
	plain(&f, 1, 1)->flags = HL_FIELD_NEW_LINE; /* d */
	plain(&f, 8, 8); /* e */
	plain(&f, 4, 4); /* f */
	plain(&f, 0, 1); /* g: marks a group */
	plain(&f, 1, 1); /* h */
	assert_int_equal(hl_place_smallest(&f.placing, LINE), 0);
	for (uint32_t i = 0; i < 8; i++) {
		assert_true((i < 3) == (f.field[i].member < 3));
		assert_true((i < 6) == (f.field[i].member < 6));
		assert_true((i == 3) == !!(f.field[i].flags & HL_FIELD_NEW_LINE));
	}
	assert_int_equal(f.field[6].member, 6);
	assert_int_equal(f.placing.size, 2 * LINE);
}

static void sizes_that_no_program_has(void **state)
{
	struct fields f;

	(void)state;
	begin(&f);
	for (int i = 0; i < MAX_FIELDS; i++)
		plain(&f, HL_MAX_SIZE, i % 2 ? 1 : 1u << 30);
	assert_int_equal(hl_place_smallest(&f.placing, LINE), 0);
	assert_true(f.placing.size >= HL_MAX_SIZE);
}

/* ---- Least is least: every order of a few fields is tried. ---- */

static uint64_t least_of_all_orders(struct fields *f, uint32_t n)
{
	uint64_t least = UINT64_MAX;

	if (n <= 1) {
		hl_place(&f->placing, LINE);
		return f->placing.size;
	}
	for (uint32_t i = 0; i < n; i++) {
		struct hl_field swapped = f->field[i];

		f->field[i] = f->field[n - 1];
		f->field[n - 1] = swapped;

		uint64_t size = least_of_all_orders(f, n - 1);

		if (size < least)
			least = size;
		swapped = f->field[i];
		f->field[i] = f->field[n - 1];
		f->field[n - 1] = swapped;
	}
	return least;
}

/* Of a type as C has it, its size is a multiple of its alignment. */
static void add_random_field(struct fields *f)
{
	uint32_t align = 1u << (rand() % 5);

	plain(f, (uint64_t)align * (uint64_t)(1 + rand() % 3), align);
	if (rand() % 4 == 0) /* aligned(N) on a member */
		f->field[f->placing.n - 1].align = 1u << (rand() % 7);
	if (f->field[f->placing.n - 1].align < align)
		f->field[f->placing.n - 1].align = align;
}

static void no_order_is_smaller(void **state)
{
	(void)state;
	srand(1);
	for (int round = 0; round < 2000; round++) {
		struct fields f, all;
		uint32_t n = 2 + (uint32_t)rand() % 5;

		begin(&f);
		while (f.placing.n < n)
			add_random_field(&f);
		all = f;
		all.placing.field = all.field;
		assert_int_equal(hl_place_smallest(&f.placing, LINE), 0);
		assert_int_equal(f.placing.size, least_of_all_orders(&all, n));
	}
}

/* Without over-aligned members and bit-fields there is an order without a hole. */
static void many_fields_without_a_hole(void **state)
{
	(void)state;
	srand(2);
	for (int round = 0; round < 2000; round++) {
		struct fields f;
		uint64_t sum = 0;
		uint32_t most = 1;

		begin(&f);
		while (f.placing.n < MAX_FIELDS) {
			uint32_t align = 1u << (rand() % 5);
			struct hl_field *field =
				plain(&f, align * (1 + (uint64_t)rand() % 4), align);

			sum += field->size;
			most = field->align > most ? field->align : most;
		}
		assert_int_equal(hl_place_smallest(&f.placing, LINE), 0);
		assert_int_equal(f.placing.size, (sum + most - 1) / most * most);
	}
}

/* ---- From types to fields ---- */

static void fields_of_a_struct(void **state)
{
	static struct graph graph;
	struct hl_placing placing;

	(void)state;
	begin_graph(&graph);

	hl_type_id tail = add_array(&graph, graph.t_char, 0);
	hl_type_id id = add_with_members(&graph, HL_STRUCT, "s", 24, 8);

	add_member(&graph, "a", graph.t_char, 0);
	add_member(&graph, "b", graph.t_long, 8);
	add_bits(&graph, "c", graph.t_int, 128, 3);
	add_bits(&graph, "d", graph.t_int, 131, 9);
	add_member(&graph, "tail", tail, 18);
	assert_int_equal(hl_placing_of(&placing, &graph.types, id), 0);
	assert_int_equal(placing.size, 24);
	assert_true(placing.field[3].flags & HL_FIELD_WITH_PREVIOUS);
	assert_true(placing.field[4].flags & HL_FIELD_LAST);
	assert_int_equal(hl_place_smallest(&placing, LINE), 0);
	assert_int_equal(placing.size, 16);
	assert_int_equal(placing.field[4].member, graph.type[id].first + 4);
	hl_placing_free(&placing);
}

/* BTF tells no alignment: it is the smallest that explains the hole. */
static void alignment_that_a_hole_explains(void **state)
{
	static struct graph graph;
	struct hl_placing placing;

	(void)state;
	begin_graph(&graph);
	graph.types.from_btf = true;
	graph.types.align_untold = true;

	hl_type_id id = add_with_members(&graph, HL_STRUCT, "s", 128, 64);

	add_member(&graph, "a", graph.t_int, 0);
	add_member(&graph, "b", graph.t_int, 64);
	assert_int_equal(hl_placing_of(&placing, &graph.types, id), 0);
	assert_int_equal(placing.field[1].align, 64);
	assert_int_equal(placing.align, 64);
	hl_placing_free(&placing);
}

static void what_cannot_be_placed_is_refused(void **state)
{
	static struct graph graph;
	struct hl_placing placing;

	(void)state;
	begin_graph(&graph);

	hl_type_id overlaid = add_with_members(&graph, HL_STRUCT, "overlaid", 8, 4);

	add_member(&graph, "a", graph.t_int, 0);
	add_member(&graph, "b", graph.t_int, 2);

	hl_type_id either = add_with_members(&graph, HL_UNION, "either", 4, 4);

	add_member(&graph, "a", graph.t_int, 0);

	hl_type_id padded = add_with_members(&graph, HL_STRUCT, "padded", 12, 4);

	add_member(&graph, "a", graph.t_int, 0);
	add_member(&graph, "b", graph.t_int, 8);
	assert_int_equal(hl_placing_of(&placing, &graph.types, overlaid), -ENOTSUP);
	assert_int_equal(hl_placing_of(&placing, &graph.types, either), -ENOTSUP);
	assert_int_equal(hl_placing_of(&placing, &graph.types, padded), -ENOTSUP);
	assert_null(placing.field);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(natural_alignment),
		cmocka_unit_test(bit_fields),
		cmocka_unit_test(packed_bit_fields),
		cmocka_unit_test(unnamed_bit_fields),
		cmocka_unit_test(a_new_line_aligns_the_whole),
		cmocka_unit_test(tail_padding_of_a_base),
		cmocka_unit_test(one_move_that_is_enough_is_all),
		cmocka_unit_test(nothing_moves_when_nothing_is_won),
		cmocka_unit_test(fixed_and_last_fields_stay),
		cmocka_unit_test(runs_of_bit_fields),
		cmocka_unit_test(no_field_crosses_to_another_line_or_group),
		cmocka_unit_test(sizes_that_no_program_has),
		cmocka_unit_test(no_order_is_smaller),
		cmocka_unit_test(many_fields_without_a_hole),
		cmocka_unit_test(fields_of_a_struct),
		cmocka_unit_test(alignment_that_a_hole_explains),
		cmocka_unit_test(what_cannot_be_placed_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
