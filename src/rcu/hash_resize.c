// SPDX-License-Identifier: MIT
/*
 * The size of a hash table: when it changes, and how its buckets are moved. Locking and
 * memory ordering: see hash.h.
 *
 * Updates do the work, a few buckets each, so it needs no thread and is done before the
 * next change of size is due. One of them at a time: the others find it taken and go on.
 */
#include "rcu/hash.h"

#include <stdlib.h>
#include <sys/mman.h>

/* The mean number of entries in a bucket at which the table grows, and shrinks; and what
 * it then has at most. With six slots and three entries on the average one in thirty
 * buckets has a second line. */
#define GROW_AT 3
#define SHRINK_BELOW(buckets) ((buckets) / 4 * 3)
#define AFTERWARDS 2
#define LEAST_BUCKETS 8u

/* Buckets moved with each update. A table that doubles has three entries a bucket to come
 * before it doubles again. */
#define MOVES 8u
/* Changes in a counter before the sum is looked at. */
#define MOST_UNSEEN 64u
/* Two huge pages of most machines. */
#define HUGE (UINT64_C(1) << 22)
#define PAGE ((uintptr_t)65536) /* or a part of it */

uint64_t hl_hash_buckets_for(uint64_t entries)
{
	uint64_t buckets = LEAST_BUCKETS;

	while (buckets * AFTERWARDS < entries)
		buckets *= 2;
	return buckets;
}

/* ---- Arrays ---- */

/* A lookup in a large table misses the TLB as well as the cache. Refused: as it was. */
static void ask_for_huge_pages(struct hl_hash_array *array, size_t bytes)
{
	uintptr_t begin = ((uintptr_t)array + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
	uintptr_t end = ((uintptr_t)array + bytes) & ~(uintptr_t)(PAGE - 1);

	madvise((void *)begin, end - begin, MADV_HUGEPAGE);
}

struct hl_hash_array *hl_hash_array_new(uint64_t buckets)
{
	size_t bytes = sizeof(struct hl_hash_array) + buckets * sizeof(struct hl_bucket);
	/* Large ones come from the system cleared, and page by page as they are touched. */
	char *memory = calloc(1, bytes + HL_CACHE_LINE - 1);
	struct hl_hash_array *array;

	if (!memory)
		return NULL;
	array = (struct hl_hash_array *)(((uintptr_t)memory + HL_CACHE_LINE - 1) &
					 ~(uintptr_t)(HL_CACHE_LINE - 1));
	array->mask = buckets - 1;
	array->memory = memory;
	if (bytes >= HUGE)
		ask_for_huge_pages(array, bytes);
	return array;
}

void hl_hash_array_free(struct hl_hash_array *array)
{
	for (uint64_t i = 0; i <= array->mask; i++)
		hl_bucket_free_lines(
			atomic_load_explicit(&array->bucket[i].next, memory_order_relaxed));
	free(array->memory);
}

static void free_callback(struct hl_rcu_head *head)
{
	hl_hash_array_free(
		(struct hl_hash_array *)((char *)head - offsetof(struct hl_hash_array, rcu)));
}

void hl_hash_array_free_rcu(struct hl_hash_array *array)
{
	hl_call_rcu(&array->rcu, free_callback);
}

/* ---- Moving ---- */

/* Lines for n entries in the worst case, so that nothing need be taken back. */
static bool have_spares(struct hl_rcu_hash *table, uint64_t entries)
{
	uint64_t lines = (entries + HL_HASH_SLOTS - 1) / HL_HASH_SLOTS;

	while (table->spares < lines) {
		struct hl_bucket *line = hl_bucket_new_line();

		if (!line)
			return false;
		atomic_store_explicit(&line->next, table->spare, memory_order_relaxed);
		table->spare = line;
		table->spares++;
	}
	return true;
}

static void put_in_next(struct hl_rcu_hash *table, struct hl_hash_array *to,
			struct hl_rcu_hash_node *node)
{
	uint64_t mixed = hl_hash_mix(node->hash);
	struct hl_bucket *bucket = hl_hash_bucket(to, mixed), *before = table->spare;
	uint64_t word = hl_bucket_lock(bucket);

	hl_bucket_put(bucket, &word, mixed, node, &table->spare);
	hl_bucket_unlock(bucket, word);
	table->spares -= table->spare != before;
}

/* Whether it was moved; not: there was no memory. */
static bool move_bucket(struct hl_rcu_hash *table, struct hl_hash_array *from,
			struct hl_hash_array *to, uint64_t index)
{
	struct hl_bucket *bucket = &from->bucket[index];
	uint64_t word = hl_bucket_lock(bucket);
	unsigned entries = hl_bucket_count(bucket);
	/* The buckets that a smaller one is split up into are empty until it is. */
	bool fits = to->mask > from->mask && entries <= HL_HASH_SLOTS;

	if (!fits && !have_spares(table, entries)) {
		hl_bucket_unlock(bucket, word);
		return false;
	}
	for (struct hl_bucket *line = bucket; line;
	     line = atomic_load_explicit(&line->next, memory_order_relaxed)) {
		HL_DELAY(move);
		for (unsigned i = 0; i < HL_HASH_SLOTS; i++) {
			struct hl_rcu_hash_node *node =
				atomic_load_explicit(&line->slot[i], memory_order_relaxed);

			if (node)
				put_in_next(table, to, node);
		}
	}
	HL_DELAY(moved);
	/* HASH_MOVED, pairs with who reads the word */
	hl_bucket_unlock(bucket, word | HL_HASH_MOVED);
	return true;
}

static void finish(struct hl_rcu_hash *table, struct hl_hash_array *from, struct hl_hash_array *to)
{
	/* HASH_ARRAY, pairs with who loads it */
	atomic_store_explicit(&table->current, to, memory_order_release);
	table->moved = 0;
	hl_bucket_free_lines(table->spare);
	table->spare = NULL;
	table->spares = 0;
	hl_hash_array_free_rcu(from);
}

static void move_some(struct hl_rcu_hash *table, struct hl_hash_array *from,
		      struct hl_hash_array *to)
{
	for (unsigned i = 0; i < MOVES && table->moved <= from->mask; i++) {
		if (!move_bucket(table, from, to, table->moved))
			return;
		table->moved++;
	}
	if (table->moved > from->mask)
		finish(table, from, to);
}

/* ---- When ---- */

int64_t hl_hash_sum(const struct hl_rcu_hash *table)
{
	int64_t sum = 0;

	for (unsigned i = 0; i < HL_HASH_COUNTERS; i++)
		sum += atomic_load_explicit(&table->counter[i].n, memory_order_relaxed);
	return sum < 0 ? 0 : sum;
}

/* The number of buckets that a table of that many should have. */
static uint64_t wanted(const struct hl_rcu_hash *table, uint64_t buckets)
{
	uint64_t entries = (uint64_t)hl_hash_sum(table), fitting = hl_hash_buckets_for(entries);

	if (fitting < table->least)
		fitting = table->least;
	if (entries > buckets * GROW_AT)
		return fitting;
	/* Twice of what fits: an entry more or less would not change it back at once. */
	if (entries < SHRINK_BELOW(buckets) && fitting < buckets)
		return fitting;
	return buckets;
}

static void begin(struct hl_rcu_hash *table, struct hl_hash_array *array)
{
	uint64_t buckets = wanted(table, array->mask + 1);

	if (buckets == array->mask + 1)
		return;
	/* HASH_ARRAY, pairs with who loads it. Without memory for it the table stays as it
	 * is, until an update tries again. */
	atomic_store_explicit(&array->next, hl_hash_array_new(buckets), memory_order_release);
}

static void resize(struct hl_rcu_hash *table)
{
	struct hl_hash_array *array, *next;

	/* Acquire, pairs with the release below: what the last one did. It is looked at first,
	 * so that its line is not taken from who moves. */
	if (atomic_load_explicit(&table->moving, memory_order_relaxed) ||
	    atomic_exchange_explicit(&table->moving, true, memory_order_acquire))
		return;
	/* Relaxed: changed by who has taken it alone. */
	array = atomic_load_explicit(&table->current, memory_order_relaxed);
	next = atomic_load_explicit(&array->next, memory_order_relaxed);
	if (next)
		move_some(table, array, next);
	else
		begin(table, array);
	atomic_store_explicit(&table->moving, false, memory_order_release);
}

static unsigned my_counter(void)
{
	static _Atomic(unsigned) threads;
	static _Thread_local unsigned mine; /* plus one; 0: none yet */

	if (!mine)
		mine = 1 + atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) %
				   HL_HASH_COUNTERS;
	return mine - 1;
}

void hl_hash_changed(struct hl_rcu_hash *table, int64_t by)
{
	/* HASH_ARRAY, pairs with finish() */
	struct hl_hash_array *array = atomic_load_explicit(&table->current, memory_order_acquire);
	uint64_t unseen = (array->mask + 1) / 8;
	int64_t n = by + atomic_fetch_add_explicit(&table->counter[my_counter()].n, by,
						   memory_order_relaxed);

	if (unseen > MOST_UNSEEN)
		unseen = MOST_UNSEEN;
	/* Relaxed: only whether there is one; who moves loads it again. */
	if (!((uint64_t)n & (unseen - 1)) ||
	    atomic_load_explicit(&array->next, memory_order_relaxed))
		resize(table);
}
