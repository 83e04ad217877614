// SPDX-License-Identifier: MIT
/*
 * The RCU hash table, by one thread.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <hotline/rcu.h>
#include <hotline/rcuhash.h>

#include "rcu/hash.h"

#define N 20000u

struct entry {
	struct hl_rcu_hash_node node;
	uint64_t key;
	unsigned visits;
};

static struct entry entries[N];

/* ---- Memory that cannot be had ---- */

static bool refuse;

/* In place of the C library's: the table and its lines come from it. */
void *aligned_alloc(size_t align, size_t bytes)
{
	void *at;

	if (!refuse && !posix_memalign(&at, align < sizeof(void *) ? sizeof(void *) : align, bytes))
		return at;
	errno = ENOMEM;
	return NULL;
}

/* ---- Helpers ---- */

static bool same_key(const struct hl_rcu_hash_node *node, const void *key)
{
	return HL_RCU_HASH_ENTRY(node, const struct entry, node)->key == *(const uint64_t *)key;
}

static struct hl_rcu_hash_node *find(struct hl_rcu_hash *table, uint64_t hash, uint64_t key)
{
	struct hl_rcu_hash_node *node;

	hl_rcu_read_lock();
	node = hl_rcu_hash_lookup(table, hash, same_key, &key);
	hl_rcu_read_unlock();
	return node;
}

static uint64_t plain(uint64_t key)
{
	return key;
}

static uint64_t one_for_all(uint64_t key)
{
	(void)key;
	return 42;
}

static uint64_t upper_half(uint64_t key)
{
	return key << 32;
}

static uint64_t top_bits(uint64_t key)
{
	return key << 50;
}

static void add_some(struct hl_rcu_hash *table, uint64_t (*hash)(uint64_t key), unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		entries[i] = (struct entry){ .key = i };
		assert_int_equal(hl_rcu_hash_add(table, hash(i), &entries[i].node), 0);
	}
}

static void all_are_found(struct hl_rcu_hash *table, uint64_t (*hash)(uint64_t key), unsigned from,
			  unsigned n)
{
	for (unsigned i = from; i < n; i++)
		assert_ptr_equal(find(table, hash(i), i), &entries[i].node);
}

static struct hl_rcu_hash *create(size_t expected)
{
	struct hl_rcu_hash *table = hl_rcu_hash_create(expected);

	assert_non_null(table);
	return table;
}

/* Entries of the tests are not freed, so nobody has to wait for readers. */
static void destroy(struct hl_rcu_hash *table)
{
	hl_rcu_hash_destroy(table);
	hl_rcu_barrier();
}

/* ---- Entries one by one ---- */

static void an_empty_table_has_nothing(void **state)
{
	struct hl_rcu_hash *table = create(0);
	struct entry entry = { .key = 1 };

	(void)state;
	assert_null(find(table, 1, 1));
	assert_int_equal(hl_rcu_hash_count(table), 0);
	assert_int_equal(hl_rcu_hash_del(table, &entry.node), -ENOENT);
	assert_int_equal(hl_rcu_hash_replace(table, &entry.node, &entry.node), -ENOENT);
	destroy(table);
	hl_rcu_hash_destroy(NULL);
}

static void an_entry_is_found_until_it_is_taken_out(void **state)
{
	struct hl_rcu_hash *table = create(0);
	struct entry entry = { .key = 7 };

	(void)state;
	assert_int_equal(hl_rcu_hash_add(table, 7, &entry.node), 0);
	assert_ptr_equal(find(table, 7, 7), &entry.node);
	assert_null(find(table, 7, 8));
	assert_null(find(table, 8, 7));
	assert_int_equal(hl_rcu_hash_count(table), 1);
	assert_int_equal(hl_rcu_hash_del(table, &entry.node), 0);
	assert_int_equal(hl_rcu_hash_del(table, &entry.node), -ENOENT);
	assert_null(find(table, 7, 7));
	assert_int_equal(hl_rcu_hash_count(table), 0);
	destroy(table);
}

static void a_key_may_be_there_twice(void **state)
{
	struct hl_rcu_hash *table = create(0);
	struct entry one = { .key = 7 }, other = { .key = 7 };

	(void)state;
	assert_int_equal(hl_rcu_hash_add(table, 7, &one.node), 0);
	assert_int_equal(hl_rcu_hash_add(table, 7, &other.node), 0);
	assert_int_equal(hl_rcu_hash_count(table), 2);
	assert_int_equal(hl_rcu_hash_del(table, &one.node), 0);
	assert_ptr_equal(find(table, 7, 7), &other.node);
	assert_int_equal(hl_rcu_hash_del(table, &other.node), 0);
	destroy(table);
}

static void a_unique_key_is_there_once(void **state)
{
	struct hl_rcu_hash *table = create(0);
	struct entry one = { .key = 7 }, other = { .key = 7 }, same_hash = { .key = 8 };
	struct hl_rcu_hash_node *existing = NULL;

	(void)state;
	assert_int_equal(hl_rcu_hash_add_unique(table, 7, same_key, &one.key, &one.node, &existing),
			 0);
	assert_null(existing);
	assert_int_equal(hl_rcu_hash_add_unique(table, 7, same_key, &other.key, &other.node,
						&existing),
			 -EEXIST);
	assert_ptr_equal(existing, &one.node);
	assert_int_equal(hl_rcu_hash_add_unique(table, 7, same_key, &other.key, &other.node, NULL),
			 -EEXIST);
	assert_int_equal(hl_rcu_hash_add_unique(table, 7, same_key, &same_hash.key, &same_hash.node,
						NULL),
			 0);
	assert_int_equal(hl_rcu_hash_count(table), 2);
	destroy(table);
}

static void an_entry_takes_the_place_of_another(void **state)
{
	struct hl_rcu_hash *table = create(0);
	struct entry one = { .key = 7 }, other = { .key = 7 }, third = { .key = 7 };
	struct hl_rcu_hash_node *old = &third.node;

	(void)state;
	assert_int_equal(hl_rcu_hash_add_replace(table, 7, same_key, &one.key, &one.node, &old), 0);
	assert_null(old);
	assert_int_equal(hl_rcu_hash_add_replace(table, 7, same_key, &one.key, &other.node, &old),
			 0);
	assert_ptr_equal(old, &one.node);
	assert_ptr_equal(find(table, 7, 7), &other.node);
	assert_int_equal(hl_rcu_hash_replace(table, &one.node, &third.node), -ENOENT);
	assert_int_equal(hl_rcu_hash_replace(table, &other.node, &third.node), 0);
	assert_ptr_equal(find(table, 7, 7), &third.node);
	assert_int_equal(hl_rcu_hash_count(table), 1);
	destroy(table);
}

/* ---- Many ---- */

static void the_table_grows_and_shrinks(void **state)
{
	struct hl_rcu_hash *table = create(0);
	size_t least = hl_rcu_hash_buckets(table);

	(void)state;
	for (unsigned i = 0; i < N; i++) {
		entries[i] = (struct entry){ .key = i };
		assert_int_equal(hl_rcu_hash_add(table, i, &entries[i].node), 0);
		/* Whatever is being moved. */
		if (i % 97 == 0)
			all_are_found(table, plain, i > 500 ? i - 500 : 0, i + 1);
	}
	all_are_found(table, plain, 0, N);
	assert_int_equal(hl_rcu_hash_count(table), N);
	assert_in_range(hl_rcu_hash_buckets(table), N / 6, N * 2);
	for (unsigned i = 0; i < N; i++) {
		assert_int_equal(hl_rcu_hash_del(table, &entries[i].node), 0);
		assert_null(find(table, i, i));
		if (i % 97 == 0)
			all_are_found(table, plain, i + 1, i + 500 < N ? i + 500 : N);
	}
	assert_int_equal(hl_rcu_hash_count(table), 0);
	assert_in_range(hl_rcu_hash_buckets(table), least, least * 16);
	destroy(table);
}

static void it_has_room_for_what_is_expected(void **state)
{
	struct hl_rcu_hash *table = create(N);
	size_t buckets = hl_rcu_hash_buckets(table);

	(void)state;
	add_some(table, plain, N);
	assert_int_equal(hl_rcu_hash_buckets(table), buckets);
	for (unsigned i = 0; i < N; i++)
		assert_int_equal(hl_rcu_hash_del(table, &entries[i].node), 0);
	assert_int_equal(hl_rcu_hash_buckets(table), buckets);
	destroy(table);
}

static void hashes_need_not_be_mixed(void **state)
{
	static uint64_t (*const hash[])(uint64_t key) = { plain, upper_half, top_bits };

	(void)state;
	for (unsigned i = 0; i < sizeof(hash) / sizeof(hash[0]); i++) {
		struct hl_rcu_hash *table = create(0);

		add_some(table, hash[i], 4096);
		all_are_found(table, hash[i], 0, 4096);
		destroy(table);
	}
}

static void entries_of_one_hash_are_all_found(void **state)
{
	struct hl_rcu_hash *table = create(0);

	(void)state;
	add_some(table, one_for_all, 500);
	all_are_found(table, one_for_all, 0, 500);
	assert_null(find(table, 42, 500));
	for (unsigned i = 0; i < 500; i += 2)
		assert_int_equal(hl_rcu_hash_del(table, &entries[i].node), 0);
	for (unsigned i = 0; i < 500; i++)
		assert_ptr_equal(find(table, 42, i), i % 2 ? &entries[i].node : NULL);
	assert_int_equal(hl_rcu_hash_count(table), 250);
	destroy(table);
}

/* ---- All of them ---- */

static bool count_visit(struct hl_rcu_hash_node *node, void *arg)
{
	(void)arg;
	HL_RCU_HASH_ENTRY(node, struct entry, node)->visits++;
	return false;
}

static void each_is_visited_once_at_every_size(void **state)
{
	struct hl_rcu_hash *table = create(0);
	unsigned n = 0;

	(void)state;
	/* One more each time: also halfway through every move. */
	while (n < 2000) {
		entries[n] = (struct entry){ .key = n };
		assert_int_equal(hl_rcu_hash_add(table, n, &entries[n].node), 0);
		n++;
		if (n % 7)
			continue;
		for (unsigned i = 0; i < n; i++)
			entries[i].visits = 0;
		assert_false(hl_rcu_hash_for_each(table, count_visit, NULL));
		for (unsigned i = 0; i < n; i++)
			assert_int_equal(entries[i].visits, 1);
	}
	while (n) {
		assert_int_equal(hl_rcu_hash_del(table, &entries[--n].node), 0);
		if (n % 7)
			continue;
		for (unsigned i = 0; i < n; i++)
			entries[i].visits = 0;
		hl_rcu_hash_for_each(table, count_visit, NULL);
		for (unsigned i = 0; i < n; i++)
			assert_int_equal(entries[i].visits, 1);
	}
	destroy(table);
}

static bool stop_at_third(struct hl_rcu_hash_node *node, void *arg)
{
	(void)node;
	return ++*(unsigned *)arg == 3;
}

static void a_visit_ends_when_it_is_told(void **state)
{
	struct hl_rcu_hash *table = create(0);
	unsigned visits = 0;

	(void)state;
	add_some(table, plain, 100);
	assert_true(hl_rcu_hash_for_each(table, stop_at_third, &visits));
	assert_int_equal(visits, 3);
	destroy(table);
}

static bool take_out(struct hl_rcu_hash_node *node, void *table)
{
	assert_int_equal(hl_rcu_hash_del(table, node), 0);
	return false;
}

static void all_are_taken_out_while_they_are_visited(void **state)
{
	struct hl_rcu_hash *table = create(0);

	(void)state;
	add_some(table, plain, N);
	hl_rcu_hash_for_each(table, take_out, table);
	assert_int_equal(hl_rcu_hash_count(table), 0);
	for (unsigned i = 0; i < N; i++)
		assert_null(find(table, i, i));
	destroy(table);
}

/* Adds what makes the table grow, in the middle of a visit. */
static bool let_grow(struct hl_rcu_hash_node *node, void *table)
{
	static unsigned next;
	struct entry *entry = HL_RCU_HASH_ENTRY(node, struct entry, node);

	entry->visits++;
	if (entry->key >= 100)
		return false;
	if (entry->key == 0)
		next = 0;
	for (unsigned i = 0; i < 50 && next < 5000; i++, next++) {
		entries[100 + next] = (struct entry){ .key = 100 + next };
		assert_int_equal(hl_rcu_hash_add(table, 100 + next, &entries[100 + next].node), 0);
	}
	return false;
}

static void a_visit_goes_on_while_the_table_grows(void **state)
{
	struct hl_rcu_hash *table = create(0);

	(void)state;
	add_some(table, plain, 100);
	hl_rcu_hash_for_each(table, let_grow, table);
	assert_true(hl_rcu_hash_count(table) > 1000);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(entries[i].visits, 1);
	for (unsigned i = 100; i < hl_rcu_hash_count(table); i++)
		assert_true(entries[i].visits <= 1);
	destroy(table);
}

/* ---- Ends ---- */

static void a_table_may_be_destroyed_in_a_section(void **state)
{
	struct hl_rcu_hash *table = create(0);

	(void)state;
	add_some(table, plain, 1000);
	hl_rcu_read_lock();
	hl_rcu_hash_destroy(table);
	/* A reader that was there before. */
	for (uint64_t i = 0; i < 1000; i++)
		assert_non_null(hl_rcu_hash_lookup(table, i, same_key, &i));
	hl_rcu_read_unlock();
	hl_rcu_barrier();
}

static void without_memory_nothing_is_lost(void **state)
{
	struct hl_rcu_hash *table = create(0);
	unsigned added = 0;
	int rc;

	(void)state;
	refuse = true;
	errno = 0;
	assert_null(hl_rcu_hash_create(0));
	assert_int_equal(errno, ENOMEM);
	/* Its buckets cannot have lines behind them: until one of them is full. */
	for (;; added++) {
		entries[added] = (struct entry){ .key = added };
		rc = hl_rcu_hash_add(table, added, &entries[added].node);
		if (rc)
			break;
	}
	assert_int_equal(rc, -ENOMEM);
	assert_true(added >= HL_HASH_SLOTS);
	assert_int_equal(hl_rcu_hash_count(table), added);
	all_are_found(table, plain, 0, added);
	assert_null(find(table, added, added));
	assert_int_equal(hl_rcu_hash_add_unique(table, added, same_key, &entries[added].key,
						&entries[added].node, NULL),
			 -ENOMEM);
	refuse = false;
	for (unsigned i = added; i < 1000; i++) {
		entries[i] = (struct entry){ .key = i };
		assert_int_equal(hl_rcu_hash_add(table, i, &entries[i].node), 0);
	}
	all_are_found(table, plain, 0, 1000);
	destroy(table);
}

static void without_memory_moving_waits(void **state)
{
	struct hl_rcu_hash *table = create(0);
	uint64_t refused = 0;

	(void)state;
	/* Now and then there is none: in the middle of moves, too, and of buckets that are
	 * longer than a line. */
	for (unsigned i = 0; i < 6000; i++) {
		int rc;

		refuse = i % 50 < 25;
		entries[i] = (struct entry){ .key = i };
		rc = hl_rcu_hash_add(table, i % 3 ? i : 42, &entries[i].node);
		if (rc) {
			assert_int_equal(rc, -ENOMEM);
			refused++;
			refuse = false;
			assert_int_equal(hl_rcu_hash_add(table, i % 3 ? i : 42, &entries[i].node),
					 0);
		}
	}
	refuse = false;
	assert_true(refused);
	for (unsigned i = 0; i < 6000; i++)
		assert_ptr_equal(find(table, i % 3 ? i : 42, i), &entries[i].node);
	for (unsigned i = 0; i < 6000; i++) {
		refuse = i % 50 < 25;
		assert_int_equal(hl_rcu_hash_del(table, &entries[i].node), 0);
	}
	refuse = false;
	assert_int_equal(hl_rcu_hash_count(table), 0);
	destroy(table);
}

/* ---- Inside ---- */

static void tags_are_compared_at_once(void **state)
{
	(void)state;
	for (unsigned tag = 0; tag < 256; tag++) {
		for (unsigned other = 0; other < 256; other++) {
			/* In the even slots; the bits above are not tags. */
			uint64_t word = tag * UINT64_C(0x000100010001) |
					other * UINT64_C(0x010001000100) | HL_HASH_MOVED;
			uint64_t expected = tag == other ? UINT64_C(0x808080808080)
							 : UINT64_C(0x008000800080);

			assert_int_equal(hl_hash_equal_tags(word, tag), expected);
		}
	}
	assert_int_equal(hl_hash_slot(UINT64_C(0x800000000000)), 5);
	assert_int_equal(hl_hash_slot(UINT64_C(0x800000000080)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_table_has_nothing),
		cmocka_unit_test(an_entry_is_found_until_it_is_taken_out),
		cmocka_unit_test(a_key_may_be_there_twice),
		cmocka_unit_test(a_unique_key_is_there_once),
		cmocka_unit_test(an_entry_takes_the_place_of_another),
		cmocka_unit_test(the_table_grows_and_shrinks),
		cmocka_unit_test(it_has_room_for_what_is_expected),
		cmocka_unit_test(hashes_need_not_be_mixed),
		cmocka_unit_test(entries_of_one_hash_are_all_found),
		cmocka_unit_test(each_is_visited_once_at_every_size),
		cmocka_unit_test(a_visit_ends_when_it_is_told),
		cmocka_unit_test(all_are_taken_out_while_they_are_visited),
		cmocka_unit_test(a_visit_goes_on_while_the_table_grows),
		cmocka_unit_test(a_table_may_be_destroyed_in_a_section),
		cmocka_unit_test(without_memory_nothing_is_lost),
		cmocka_unit_test(without_memory_moving_waits),
		cmocka_unit_test(tags_are_compared_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
