// SPDX-License-Identifier: MIT
/*
 * The hash table: what its callers see. Locking and memory ordering: see hash.h.
 */
#include "rcu/hash.h"

#include <errno.h>
#include <stdlib.h>

struct hl_rcu_hash *hl_rcu_hash_create(size_t expected)
{
	struct hl_rcu_hash *table = aligned_alloc(_Alignof(struct hl_rcu_hash), sizeof(*table));
	struct hl_hash_array *array;

	if (!table)
		return NULL;
	*table = (struct hl_rcu_hash){ .least = hl_hash_buckets_for(expected) };
	array = hl_hash_array_new(table->least);
	if (!array) {
		free(table);
		errno = ENOMEM;
		return NULL;
	}
	atomic_init(&table->current, array);
	return table;
}

static void free_callback(struct hl_rcu_head *head)
{
	free((char *)head - offsetof(struct hl_rcu_hash, rcu));
}

void hl_rcu_hash_destroy(struct hl_rcu_hash *table)
{
	struct hl_hash_array *array, *next;

	if (!table)
		return;
	/* Relaxed: nobody changes it any more. */
	array = atomic_load_explicit(&table->current, memory_order_relaxed);
	next = atomic_load_explicit(&array->next, memory_order_relaxed);
	hl_bucket_free_lines(table->spare);
	hl_hash_array_free_rcu(array);
	if (next)
		hl_hash_array_free_rcu(next);
	hl_call_rcu(&table->rcu, free_callback);
}

/* ---- Reading ---- */

/* HASH_ARRAY, pairs with begin() and finish() */
static struct hl_hash_array *current(const struct hl_rcu_hash *table)
{
	return atomic_load_explicit(&table->current, memory_order_acquire);
}

static struct hl_hash_array *next(struct hl_hash_array *array)
{
	return atomic_load_explicit(&array->next, memory_order_acquire);
}

/* HASH_LOCK and HASH_MOVED, pair with hl_bucket_unlock() */
static uint64_t read_word(struct hl_bucket *line)
{
	return atomic_load_explicit(&line->word, memory_order_acquire);
}

/* HASH_LINE, pairs with hl_bucket_put() */
static struct hl_bucket *next_line(struct hl_bucket *line)
{
	return atomic_load_explicit(&line->next, memory_order_acquire);
}

/* HASH_ENTRY, pairs with fill() and exchange(). NULL: it went after its tag was read. */
static struct hl_rcu_hash_node *entry(struct hl_bucket *line, unsigned slot)
{
	return atomic_load_explicit(&line->slot[slot], memory_order_acquire);
}

struct hl_rcu_hash_node *hl_rcu_hash_lookup(const struct hl_rcu_hash *table, uint64_t hash,
					    hl_rcu_hash_match_fn match, const void *key)
{
	const uint64_t mixed = hl_hash_mix(hash), tag = hl_hash_tag(mixed);
	struct hl_hash_array *array = current(table);
	struct hl_bucket *line = hl_hash_bucket(array, mixed);
	uint64_t word = read_word(line);

	while (__builtin_expect(word & HL_HASH_MOVED, 0)) {
		array = next(array);
		line = hl_hash_bucket(array, mixed);
		word = read_word(line);
	}
	for (;;) {
		uint64_t equal = hl_hash_equal_tags(word, tag);

		HL_DELAY(look);
		for (; equal; equal &= equal - 1) {
			struct hl_rcu_hash_node *node = entry(line, hl_hash_slot(equal));

			if (node && node->hash == hash && match(node, key))
				return node;
		}
		line = next_line(line);
		if (__builtin_expect(!line, 1))
			return NULL;
		word = read_word(line);
	}
}

/* ---- Updating ---- */

/* A bucket that is locked. */
struct place {
	struct hl_bucket *bucket;
	uint64_t mixed;
	uint64_t word; /* to unlock it with */
};

/* Locks the bucket in which entries of that hash are. In a read section. */
static struct place lock_place(struct hl_rcu_hash *table, uint64_t hash)
{
	struct place place = { .mixed = hl_hash_mix(hash) };
	struct hl_hash_array *array = current(table);

	for (;;) {
		place.bucket = hl_hash_bucket(array, place.mixed);
		place.word = hl_bucket_lock(place.bucket);
		if (!(place.word & HL_HASH_MOVED))
			return place;
		hl_bucket_unlock(place.bucket, place.word);
		array = next(array);
	}
}

/* Unlocks it after the number of entries has changed by so many. */
static void leave(struct hl_rcu_hash *table, struct place *place, int64_t by)
{
	hl_bucket_unlock(place->bucket, place->word);
	if (by)
		hl_hash_changed(table, by);
}

static int put(struct place *place, uint64_t hash, struct hl_rcu_hash_node *node)
{
	struct hl_bucket *spare = NULL;

	node->hash = hash;
	return hl_bucket_put(place->bucket, &place->word, place->mixed, node, &spare);
}

static struct hl_rcu_hash_node *exchange(_Atomic(struct hl_rcu_hash_node *) *slot,
					 struct hl_rcu_hash_node *node)
{
	/* Relaxed: the bucket is locked. */
	struct hl_rcu_hash_node *old = atomic_load_explicit(slot, memory_order_relaxed);

	/* HASH_ENTRY, pairs with entry() */
	atomic_store_explicit(slot, node, memory_order_release);
	return old;
}

int hl_rcu_hash_add(struct hl_rcu_hash *table, uint64_t hash, struct hl_rcu_hash_node *node)
{
	struct place place;
	int rc;

	hl_rcu_read_lock();
	place = lock_place(table, hash);
	rc = put(&place, hash, node);
	leave(table, &place, !rc);
	hl_rcu_read_unlock();
	return rc;
}

int hl_rcu_hash_add_unique(struct hl_rcu_hash *table, uint64_t hash, hl_rcu_hash_match_fn match,
			   const void *key, struct hl_rcu_hash_node *node,
			   struct hl_rcu_hash_node **existing)
{
	_Atomic(struct hl_rcu_hash_node *) *slot;
	struct place place;
	int rc;

	hl_rcu_read_lock();
	place = lock_place(table, hash);
	slot = hl_bucket_match(place.bucket, place.mixed, hash, match, key);
	rc = slot ? -EEXIST : put(&place, hash, node);
	if (slot && existing)
		*existing = atomic_load_explicit(slot, memory_order_relaxed);
	leave(table, &place, !rc);
	hl_rcu_read_unlock();
	return rc;
}

int hl_rcu_hash_add_replace(struct hl_rcu_hash *table, uint64_t hash, hl_rcu_hash_match_fn match,
			    const void *key, struct hl_rcu_hash_node *node,
			    struct hl_rcu_hash_node **old)
{
	_Atomic(struct hl_rcu_hash_node *) *slot;
	struct place place;
	int rc = 0;

	*old = NULL;
	hl_rcu_read_lock();
	place = lock_place(table, hash);
	slot = hl_bucket_match(place.bucket, place.mixed, hash, match, key);
	if (slot) {
		node->hash = hash;
		*old = exchange(slot, node);
	} else {
		rc = put(&place, hash, node);
	}
	leave(table, &place, !slot && !rc);
	hl_rcu_read_unlock();
	return rc;
}

int hl_rcu_hash_replace(struct hl_rcu_hash *table, struct hl_rcu_hash_node *old,
			struct hl_rcu_hash_node *node)
{
	_Atomic(struct hl_rcu_hash_node *) *slot;
	struct place place;

	hl_rcu_read_lock();
	place = lock_place(table, old->hash);
	slot = hl_bucket_find(place.bucket, place.mixed, old);
	if (slot) {
		node->hash = old->hash;
		exchange(slot, node);
	}
	leave(table, &place, 0);
	hl_rcu_read_unlock();
	return slot ? 0 : -ENOENT;
}

int hl_rcu_hash_del(struct hl_rcu_hash *table, struct hl_rcu_hash_node *node)
{
	_Atomic(struct hl_rcu_hash_node *) *slot;
	struct place place;

	hl_rcu_read_lock();
	place = lock_place(table, node->hash);
	slot = hl_bucket_find(place.bucket, place.mixed, node);
	if (slot)
		hl_bucket_clear(place.bucket, &place.word, slot);
	leave(table, &place, slot ? -1 : 0);
	hl_rcu_read_unlock();
	return slot ? 0 : -ENOENT;
}

/* ---- All of them ---- */

/* The entries whose mixed hash ends in index, below a mask: those of one bucket of an
 * array that need not be there any more. */
struct visit {
	bool (*func)(struct hl_rcu_hash_node *node, void *arg);
	void *arg;
	uint64_t index, mask;
};

static bool visit_lines(struct hl_bucket *line, const struct visit *visit)
{
	for (; line; line = next_line(line)) {
		for (unsigned i = 0; i < HL_HASH_SLOTS; i++) {
			struct hl_rcu_hash_node *node = entry(line, i);

			if (node && (hl_hash_mix(node->hash) & visit->mask) == visit->index &&
			    visit->func(node, visit->arg))
				return true;
		}
	}
	return false;
}

/* Those of an array that can be in the bucket of that index in one of that mask. */
static bool visit_array(struct hl_hash_array *array, uint64_t index, uint64_t mask,
			const struct visit *visit)
{
	for (uint64_t i = index & array->mask; i <= array->mask; i += mask + 1) {
		struct hl_bucket *bucket = &array->bucket[i];
		bool moved = read_word(bucket) & HL_HASH_MOVED;

		if (moved ? visit_array(next(array), i, array->mask, visit)
			  : visit_lines(bucket, visit))
			return true;
	}
	return false;
}

bool hl_rcu_hash_for_each(struct hl_rcu_hash *table,
			  bool (*func)(struct hl_rcu_hash_node *node, void *arg), void *arg)
{
	struct visit visit = { .func = func, .arg = arg };
	bool stopped = false;

	hl_rcu_read_lock();
	visit.mask = current(table)->mask;
	hl_rcu_read_unlock();
	for (; visit.index <= visit.mask && !stopped; visit.index++) {
		hl_rcu_read_lock();
		stopped = visit_array(current(table), visit.index, visit.mask, &visit);
		hl_rcu_read_unlock();
	}
	return stopped;
}

size_t hl_rcu_hash_count(const struct hl_rcu_hash *table)
{
	return (size_t)hl_hash_sum(table);
}

size_t hl_rcu_hash_buckets(const struct hl_rcu_hash *table)
{
	size_t buckets;

	hl_rcu_read_lock();
	buckets = current(table)->mask + 1;
	hl_rcu_read_unlock();
	return buckets;
}
