/* SPDX-License-Identifier: MIT */
/* Holes, padding and storage units, where they are hardest to tell. */
#include "layout_types.h"

#include "layout/shape.h"

enum { LINE = 64 };

static struct graph graph;
static struct hl_shape shape;

static int begin(void **state)
{
	(void)state;
	begin_graph(&graph);
	return 0;
}

static int end(void **state)
{
	(void)state;
	hl_shape_free(&shape);
	return 0;
}

static void measure(hl_type_id id)
{
	assert_int_equal(hl_shape_measure(&shape, &graph.types, id, LINE), 0);
}

static void assert_slot(uint32_t i, uint64_t offset, unsigned bit_offset, uint64_t hole,
			unsigned bit_hole)
{
	assert_int_equal(shape.slot[i].offset, offset);
	assert_int_equal(shape.slot[i].bit_offset, bit_offset);
	assert_int_equal(shape.slot[i].hole, hole);
	assert_int_equal(shape.slot[i].bit_hole, bit_hole);
}

/* All that a struct takes is members, holes and padding. */
static void assert_sums_agree(void)
{
	uint64_t bits = shape.sum_members * 8 + shape.sum_bits + shape.hole_bytes * 8 +
			shape.hole_bits + shape.padding * 8 + shape.bit_padding + shape.lead * 8;

	assert_int_equal(bits, shape.size * 8);
}

static void bytes_behind_a_bit_field_are_a_byte_hole(void **state)
{
	hl_type_id id = add_with_members(&graph, HL_STRUCT, "s", 24, 8);

	(void)state;
	add_bits(&graph, "a", graph.t_long, 0, 62);
	add_member(&graph, "b", graph.t_int, 8);
	add_bits(&graph, "c", graph.t_long, 128, 55);
	measure(id);
	assert_slot(0, 0, 0, 0, 2);
	assert_slot(1, 8, 0, 4, 0);
	assert_slot(2, 16, 0, 0, 0);
	assert_int_equal(shape.bit_padding, 9);
	assert_int_equal(shape.padding, 0);
	assert_sums_agree();
}

static void packed_bit_fields_across_units(void **state)
{
	hl_type_id id = add_with_members(&graph, HL_STRUCT, "s", 5, 1);
	const unsigned place[] = { 0, 1, 4, 7, 14 };

	(void)state;
	graph.type[id].flags = HL_TYPE_PACKED;
	add_bits(&graph, "a", graph.t_char, 0, 1);
	add_bits(&graph, "b", graph.t_char, 1, 3);
	add_bits(&graph, "c", graph.t_char, 4, 3);
	add_bits(&graph, "d", graph.t_int, 7, 7);
	add_bits(&graph, "e", graph.t_int, 14, 20);
	measure(id);
	for (uint32_t i = 0; i < 5; i++)
		assert_slot(i, 0, place[i], 0, 0);
	assert_int_equal(shape.bit_padding, 6);
	assert_sums_agree();
}

static void unnamed_bit_fields_were_asked_for(void **state)
{
	hl_type_id id = add_with_members(&graph, HL_STRUCT, "s", 12, 4);

	(void)state;
	add_bits(&graph, "a", graph.t_int, 0, 5);
	add_bits(&graph, "b", graph.t_int, 11, 8); /* behind :6 */
	add_bits(&graph, "c", graph.t_int, 32, 4); /* behind :0 */
	add_member(&graph, "d", graph.t_int, 8);
	measure(id);
	assert_slot(0, 0, 0, 0, 6);
	assert_true(shape.slot[0].asked);
	assert_slot(1, 0, 11, 0, 13);
	assert_true(shape.slot[1].asked);
	assert_slot(2, 4, 0, 0, 28);
	assert_false(shape.slot[2].asked);
	assert_sums_agree();
}

static void a_bit_field_in_the_unit_of_what_is_before_it(void **state)
{
	hl_type_id id = add_with_members(&graph, HL_STRUCT, "s", 8, 4);

	(void)state;
	add_member(&graph, "a", graph.t_char, 0);
	add_bits(&graph, "b", graph.t_int, 8, 3);
	add_member(&graph, "c", graph.t_char, 2);
	add_bits(&graph, "d", graph.t_int, 32, 9);
	measure(id);
	assert_slot(0, 0, 0, 0, 0);
	assert_slot(1, 0, 8, 0, 5);
	assert_slot(2, 2, 0, 1, 0);
	assert_int_equal(shape.bit_padding, 23);
	assert_sums_agree();
}

static void unions_have_no_holes(void **state)
{
	hl_type_id id = add_with_members(&graph, HL_UNION, "u", 8, 4);

	(void)state;
	add_member(&graph, "a", graph.t_char, 0);
	add_member(&graph, "b", graph.t_int, 0);
	add_bits(&graph, "c", graph.t_int, 0, 3);
	measure(id);
	assert_int_equal(shape.holes + shape.bit_holes, 0);
	assert_slot(0, 0, 0, 0, 0);
}

/* A member of an empty class takes a byte, a base that is empty none. */
static void empty_classes(void **state)
{
	hl_type_id empty = add_with_members(&graph, HL_STRUCT, "empty", 1, 1);
	hl_type_id holder = add_with_members(&graph, HL_STRUCT, "holder", 8, 4);

	(void)state;
	graph.type[empty].tail = 1;
	add_member(&graph, "e", empty, 0);
	add_member(&graph, "a", graph.t_int, 4);

	hl_type_id derived = add_with_members(&graph, HL_STRUCT, "derived", 4, 4);

	add_member(&graph, NULL, empty, 0)->flags = HL_MEMBER_BASE;
	add_member(&graph, "a", graph.t_int, 0);

	hl_type_id shared = add_with_members(&graph, HL_STRUCT, "shared", 4, 4);

	add_member(&graph, "e", empty, 0); /* [[no_unique_address]] */
	add_member(&graph, "a", graph.t_int, 0);
	measure(holder);
	assert_int_equal(shape.slot[0].size, 1);
	assert_slot(0, 0, 0, 3, 0);
	assert_sums_agree();
	measure(derived);
	assert_int_equal(shape.slot[0].size, 0);
	assert_int_equal(shape.holes, 0);
	assert_sums_agree();
	measure(shared);
	assert_int_equal(shape.holes, 0);
	assert_sums_agree();
}

/* A derived class's first member may lie in its base's tail padding. */
static void tail_padding_of_a_base(void **state)
{
	hl_type_id base = add_with_members(&graph, HL_STRUCT, "base", 24, 8);

	(void)state;
	add_member(&graph, "v", graph.t_long, 0);
	add_member(&graph, "a", graph.t_long, 8);
	add_member(&graph, "c", graph.t_char, 16);
	graph.type[base].tail = 7;

	hl_type_id derived = add_with_members(&graph, HL_STRUCT, "derived", 32, 8);

	add_member(&graph, NULL, base, 0)->flags = HL_MEMBER_BASE;
	add_member(&graph, "d", graph.t_char, 17);
	add_member(&graph, "e", graph.t_long, 24);
	measure(derived);
	assert_slot(0, 0, 0, 0, 0);
	assert_slot(1, 17, 0, 6, 0);
	assert_int_equal(shape.sum_members, 26);
	assert_sums_agree();
}

/* Rust lays members out in another order than that of the source, and variants over
 * each other. */
static void members_out_of_order(void **state)
{
	hl_type_id id = add_with_members(&graph, HL_STRUCT, "s", 16, 8);

	(void)state;
	graph.type[id].language = HL_LANG_RUST;
	add_member(&graph, "a", graph.t_char, 12);
	add_member(&graph, "b", graph.t_long, 0);
	add_member(&graph, "c", graph.t_int, 8);
	add_member(&graph, "d", graph.t_int, 8)->flags = HL_MEMBER_VARIANT;
	measure(id);
	assert_int_equal(shape.holes, 0);
	assert_int_equal(shape.padding, 3);
	assert_sums_agree();
}

static void a_virtual_base_has_no_place(void **state)
{
	hl_type_id base = add_with_members(&graph, HL_STRUCT, "base", 8, 8);

	(void)state;
	add_member(&graph, "v", graph.t_long, 0);

	hl_type_id derived = add_with_members(&graph, HL_STRUCT, "derived", 24, 8);

	graph.type[derived].language = HL_LANG_CXX;
	add_member(&graph, "vptr", graph.t_long, 0)->flags = HL_MEMBER_VPTR;
	add_member(&graph, "k", graph.t_int, 8);
	add_member(&graph, NULL, base, 0)->flags = HL_MEMBER_BASE | HL_MEMBER_VIRTUAL;
	measure(derived);
	assert_int_equal(shape.holes, 0);
	assert_int_equal(shape.padding, 4);
}

static void lines_and_flexible_arrays(void **state)
{
	hl_type_id tail = add_array(&graph, graph.t_long, 0);
	hl_type_id id = add_with_members(&graph, HL_STRUCT, "s", 8, 8);

	(void)state;
	add_member(&graph, "n", graph.t_char, 0);
	add_member(&graph, "tail", tail, 8);
	measure(id);
	assert_slot(0, 0, 0, 7, 0);
	assert_int_equal(shape.padding, 0);
	assert_int_equal(shape.lines, 1);
	assert_sums_agree();
}

/* What a damaged file may say: overlaps, members beyond the end, huge units. */
static void nonsense_gives_no_giant_holes(void **state)
{
	hl_type_id huge = add_base(&graph, "huge", HL_MAX_SIZE, 0);
	hl_type_id id = add_with_members(&graph, HL_STRUCT, "s", 16, 8);

	(void)state;
	add_member(&graph, "a", graph.t_long, 8);
	add_member(&graph, "b", graph.t_long, 4);
	add_member(&graph, "c", huge, HL_MAX_SIZE - 1);
	add_bits(&graph, "d", huge, UINT64_MAX - 7, 16);
	add_member(&graph, "e", 0, 3);
	measure(id);
	assert_true(shape.padding <= shape.size);
	assert_int_equal(shape.lead, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(bytes_behind_a_bit_field_are_a_byte_hole, begin),
		cmocka_unit_test_setup(packed_bit_fields_across_units, begin),
		cmocka_unit_test_setup(unnamed_bit_fields_were_asked_for, begin),
		cmocka_unit_test_setup(a_bit_field_in_the_unit_of_what_is_before_it, begin),
		cmocka_unit_test_setup(unions_have_no_holes, begin),
		cmocka_unit_test_setup(empty_classes, begin),
		cmocka_unit_test_setup(tail_padding_of_a_base, begin),
		cmocka_unit_test_setup(members_out_of_order, begin),
		cmocka_unit_test_setup(a_virtual_base_has_no_place, begin),
		cmocka_unit_test_setup(lines_and_flexible_arrays, begin),
		cmocka_unit_test_setup(nonsense_gives_no_giant_holes, begin),
	};

	return cmocka_run_group_tests(tests, NULL, end);
}
