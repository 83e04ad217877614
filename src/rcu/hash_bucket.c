// SPDX-License-Identifier: MIT
/*
 * A bucket: a line with a lock, six tags and six entries, and lines behind it for what does
 * not fit. Memory ordering: see hash.h.
 */
#include "rcu/hash.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* Looks at a lock that is taken before the processor is given away: the holder keeps it for
 * less than that, unless it was preempted. */
#define SPINS 128u

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb" ::: "memory");
#endif
}

uint64_t hl_bucket_lock(struct hl_bucket *bucket)
{
	for (unsigned spins = 1;; spins++) {
		uint64_t word = atomic_load_explicit(&bucket->word, memory_order_relaxed);

		/* HASH_LOCK, pairs with hl_bucket_unlock() */
		if (!(word & HL_HASH_LOCKED) && atomic_compare_exchange_weak_explicit(
							&bucket->word, &word, word | HL_HASH_LOCKED,
							memory_order_acquire, memory_order_relaxed))
			return word;
		if (spins % SPINS)
			relax();
		else
			sched_yield();
	}
}

void hl_bucket_unlock(struct hl_bucket *bucket, uint64_t word)
{
	/* HASH_LOCK, HASH_MOVED, pair with hl_bucket_lock() and with who reads the word */
	atomic_store_explicit(&bucket->word, word, memory_order_release);
}

struct hl_bucket *hl_bucket_new_line(void)
{
	struct hl_bucket *line = aligned_alloc(_Alignof(struct hl_bucket), sizeof(*line));

	if (line)
		memset(line, 0, sizeof(*line));
	return line;
}

void hl_bucket_free_lines(struct hl_bucket *line)
{
	while (line) {
		struct hl_bucket *next = atomic_load_explicit(&line->next, memory_order_relaxed);

		free(line);
		line = next;
	}
}

/* The next line of a bucket that is locked. Relaxed: the lock orders it. */
static struct hl_bucket *next_line(struct hl_bucket *line)
{
	return atomic_load_explicit(&line->next, memory_order_relaxed);
}

/* The tags of a line of a bucket that is locked; the same. */
static uint64_t tags(struct hl_bucket *line)
{
	return atomic_load_explicit(&line->word, memory_order_relaxed) & HL_HASH_TAGS;
}

static void fill(struct hl_bucket *line, unsigned slot, struct hl_rcu_hash_node *node)
{
	/* HASH_ENTRY, pairs with who loads the slot */
	atomic_store_explicit(&line->slot[slot], node, memory_order_release);
}

static uint64_t with_tag(uint64_t word, unsigned slot, uint64_t tag)
{
	return word | tag << 8 * slot;
}

/* Puts it in a line behind the first; whether there was room. */
static bool put_behind(struct hl_bucket *line, uint64_t tag, struct hl_rcu_hash_node *node)
{
	uint64_t word = tags(line), empty = hl_hash_equal_tags(word, 0);

	if (!empty)
		return false;
	fill(line, hl_hash_slot(empty), node);
	/* HASH_LOCK: readers see the tag; relaxed would do, as the slot has HASH_ENTRY. */
	atomic_store_explicit(&line->word, with_tag(word, hl_hash_slot(empty), tag),
			      memory_order_relaxed);
	return true;
}

int hl_bucket_put(struct hl_bucket *bucket, uint64_t *word, uint64_t mixed,
		  struct hl_rcu_hash_node *node, struct hl_bucket **spare)
{
	uint64_t tag = hl_hash_tag(mixed), empty = hl_hash_equal_tags(*word, 0);
	struct hl_bucket *line = *spare;

	if (empty) {
		fill(bucket, hl_hash_slot(empty), node);
		HL_DELAY(put);
		*word = with_tag(*word, hl_hash_slot(empty), tag);
		return 0;
	}
	for (struct hl_bucket *l = next_line(bucket); l; l = next_line(l)) {
		if (put_behind(l, tag, node))
			return 0;
	}
	if (line)
		*spare = next_line(line);
	else
		line = hl_bucket_new_line();
	if (!line)
		return -ENOMEM;
	atomic_store_explicit(&line->next, next_line(bucket), memory_order_relaxed);
	put_behind(line, tag, node);
	/* HASH_LINE, pairs with who follows it */
	atomic_store_explicit(&bucket->next, line, memory_order_release);
	return 0;
}

_Atomic(struct hl_rcu_hash_node *) *hl_bucket_find(struct hl_bucket *bucket, uint64_t mixed,
						   const struct hl_rcu_hash_node *node)
{
	for (struct hl_bucket *line = bucket; line; line = next_line(line)) {
		uint64_t equal = hl_hash_equal_tags(tags(line), hl_hash_tag(mixed));

		for (; equal; equal &= equal - 1) {
			_Atomic(struct hl_rcu_hash_node *) *slot = &line->slot[hl_hash_slot(equal)];

			if (atomic_load_explicit(slot, memory_order_relaxed) == node)
				return slot;
		}
	}
	return NULL;
}

_Atomic(struct hl_rcu_hash_node *) *hl_bucket_match(struct hl_bucket *bucket, uint64_t mixed,
						    uint64_t hash, hl_rcu_hash_match_fn match,
						    const void *key)
{
	for (struct hl_bucket *line = bucket; line; line = next_line(line)) {
		uint64_t equal = hl_hash_equal_tags(tags(line), hl_hash_tag(mixed));

		for (; equal; equal &= equal - 1) {
			_Atomic(struct hl_rcu_hash_node *) *slot = &line->slot[hl_hash_slot(equal)];
			struct hl_rcu_hash_node *node =
				atomic_load_explicit(slot, memory_order_relaxed);

			if (node->hash == hash && match(node, key))
				return slot;
		}
	}
	return NULL;
}

void hl_bucket_clear(struct hl_bucket *bucket, uint64_t *word,
		     _Atomic(struct hl_rcu_hash_node *) *slot)
{
	struct hl_bucket *line = bucket;
	unsigned i;

	while (slot < &line->slot[0] || slot > &line->slot[HL_HASH_SLOTS - 1])
		line = next_line(line);
	i = (unsigned)(slot - &line->slot[0]);
	HL_DELAY(clear);
	/* Relaxed: readers that have seen the tag find the entry or NULL, either is right. */
	if (line == bucket)
		*word &= ~(UINT64_C(0xff) << 8 * i);
	else
		atomic_store_explicit(&line->word, tags(line) & ~(UINT64_C(0xff) << 8 * i),
				      memory_order_relaxed);
	atomic_store_explicit(slot, NULL, memory_order_relaxed);
}

unsigned hl_bucket_count(struct hl_bucket *bucket)
{
	unsigned n = 0;

	for (struct hl_bucket *line = bucket; line; line = next_line(line))
		n += HL_HASH_SLOTS -
		     (unsigned)__builtin_popcountll(hl_hash_equal_tags(tags(line), 0));
	return n;
}
