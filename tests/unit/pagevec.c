// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <hotline/pagevec.h>

struct point {
	double x, y, z;
};
HL_DEFINE_BATCH(numbers, uint64_t, HL_BATCH_ITEMS(uint64_t, 1));
HL_DEFINE_BATCH(bytes, uint8_t, HL_BATCH_ITEMS(uint8_t, 2));
HL_DEFINE_BATCH(points, struct point, HL_BATCH_ITEMS(struct point, 8));

struct released {
	unsigned calls, n;
	void *item[HL_PAGEVEC_SIZE];
};

static void note(void **items, unsigned n, void *arg)
{
	struct released *released = arg;

	released->calls++;
	released->n = n;
	memcpy(released->item, items, n * sizeof(*items));
}

static void a_batch_is_whole_lines_and_full_of_them(void **state)
{
	(void)state;
	assert_int_equal(sizeof(struct hl_pagevec) % HL_CACHE_LINE, 0);
	assert_int_equal(_Alignof(struct hl_pagevec), HL_CACHE_LINE);
#if HL_CACHE_LINE == 64
	assert_int_equal(HL_PAGEVEC_SIZE, 15);
	assert_int_equal(sizeof(struct hl_pagevec), 16 * sizeof(void *));
	assert_int_equal(sizeof(struct numbers), 64);
	assert_int_equal(sizeof(struct bytes), 128);
	assert_int_equal(sizeof(struct points), 512);
	assert_int_equal(HL_BATCH_ITEMS(uint8_t, 2), 124);
#endif
}

static void it_fills_to_the_last_place_and_says_how_many_are_left(void **state)
{
	struct hl_pagevec batch;
	int object[HL_PAGEVEC_SIZE];

	(void)state;
	hl_pagevec_init(&batch);
	assert_int_equal(hl_pagevec_space(&batch), HL_PAGEVEC_SIZE);
	for (unsigned i = 0; i < HL_PAGEVEC_SIZE; i++) {
		assert_int_equal(hl_pagevec_count(&batch), i);
		assert_int_equal(hl_pagevec_add(&batch, &object[i]), HL_PAGEVEC_SIZE - 1 - i);
	}
	assert_int_equal(hl_pagevec_space(&batch), 0);
	hl_pagevec_reinit(&batch);
	assert_int_equal(hl_pagevec_count(&batch), 0);
	assert_int_equal(hl_pagevec_space(&batch), HL_PAGEVEC_SIZE);
}

static void what_was_added_first_is_taken_first(void **state)
{
	struct hl_pagevec batch;
	int object[3];
	void *item = NULL;

	(void)state;
	hl_pagevec_init(&batch);
	assert_int_equal(hl_pagevec_take(&batch, &item), 0);
	for (unsigned i = 0; i < 3; i++)
		hl_pagevec_add(&batch, &object[i]);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(hl_pagevec_take(&batch, &item), 1);
		assert_ptr_equal(item, &object[i]);
		assert_int_equal(hl_pagevec_count(&batch), 2 - i);
	}
	assert_int_equal(hl_pagevec_space(&batch), HL_PAGEVEC_SIZE);
}

static void release_hands_over_all_that_is_left_once(void **state)
{
	struct released released = { 0 };
	struct hl_pagevec batch;
	int object[4];
	void *item;

	(void)state;
	hl_pagevec_init(&batch);
	hl_pagevec_release(&batch, note, &released);
	assert_int_equal(released.calls, 0);
	for (unsigned i = 0; i < 4; i++)
		hl_pagevec_add(&batch, &object[i]);
	hl_pagevec_take(&batch, &item);
	hl_pagevec_release(&batch, note, &released);
	assert_int_equal(released.calls, 1);
	assert_int_equal(released.n, 3);
	for (unsigned i = 0; i < 3; i++)
		assert_ptr_equal(released.item[i], &object[i + 1]);
	assert_int_equal(hl_pagevec_count(&batch), 0);
}

static void batches_of_structs_keep_each_member(void **state)
{
	struct points batch;
	struct point point = { 0 };
	unsigned n = 0;

	(void)state;
	points_init(&batch);
	while (points_add(&batch, (struct point){ n, n + 0.5, -(double)n }))
		n++;
	assert_int_equal(n + 1, HL_BATCH_ITEMS(struct point, 8));
	for (unsigned i = 0; i <= n; i++) {
		assert_int_equal(points_take(&batch, &point), 1);
		assert_true(point.x == i && point.y == i + 0.5 && point.z == -(double)i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_batch_is_whole_lines_and_full_of_them),
		cmocka_unit_test(it_fills_to_the_last_place_and_says_how_many_are_left),
		cmocka_unit_test(what_was_added_first_is_taken_first),
		cmocka_unit_test(release_hands_over_all_that_is_left_once),
		cmocka_unit_test(batches_of_structs_keep_each_member),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
