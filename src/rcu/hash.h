/* SPDX-License-Identifier: MIT */
/*
 * Inside the room: the buckets of the hash table and the arrays of them.
 *
 * An array is replaced by one of another size bucket by bucket. A bucket that has been
 * moved keeps what was in it, for readers that are about it, and says so: who sees that
 * goes on to the next array. So an entry can be in both, and no reader looks twice.
 *
 * Locking: a bucket's lock protects its tags, its slots and the lines behind it; the
 * holder of a bucket's lock may take that of one in the next array, never the other way
 * round. hl_rcu_hash.moving is taken by trying only, before any bucket's lock, and
 * protects moved, spare and spares, and array.next until it is set.
 *
 * Memory ordering:
 *	HASH_ENTRY	a slot is stored with release after the entry was written, and loaded
 *			with acquire. A reader may have got there by the tag of the slot's last
 *			entry, so the tag does not do: it would see an entry half written.
 *	HASH_LOCK	the word of a bucket is taken with acquire and stored with release: what
 *			the last holder wrote is seen by the next, and by readers of the tags.
 *	HASH_LINE	a line behind a bucket is linked with release and followed with
 *			acquire: without, its tags and slots might be seen from before it was
 *			cleared.
 *	HASH_MOVED	the mark of a moved bucket comes with the release of HASH_LOCK, behind
 *			array.next and what was put there; who sees it with acquire finds both.
 *			Without, an entry that is there all the time could be missed.
 *	HASH_ARRAY	an array is published with release, as current or as next, and loaded
 *			with acquire: its mask and its cleared buckets are seen.
 */
#ifndef HL_RCU_HASH_H
#define HL_RCU_HASH_H

#include <stdatomic.h>

#include <hotline/cacheline.h>
#include <hotline/rcu.h>
#include <hotline/rcuhash.h>

#include "cpu/internal.h"

#define HL_HASH_SLOTS 6u

/* hl_bucket.word: a tag a slot, 0: the slot is empty; and the bits of a first line. */
#define HL_HASH_TAGS UINT64_C(0x0000ffffffffffff)
#define HL_HASH_EACH_TAG UINT64_C(0x0000010101010101)
#define HL_HASH_LOCKED (UINT64_C(1) << 48)
#define HL_HASH_MOVED (UINT64_C(1) << 49)

/* A line: of a bucket the first, or one behind it. */
struct hl_bucket {
	/* Written under the lock of the bucket, which is in its first line; read by all. */
	_Atomic(uint64_t) word;
	_Atomic(struct hl_bucket *) next;
	_Atomic(struct hl_rcu_hash_node *) slot[HL_HASH_SLOTS];
} __attribute__((aligned(64)));
_Static_assert(sizeof(struct hl_bucket) == 64, "a bucket is a line, or half of a longer one");

struct hl_hash_array {
	/* Written before it is published, next once more; read by all. */
	uint64_t mask; /* buckets - 1 */
	_Atomic(struct hl_hash_array *) next; /* where its buckets are moved to */
	void *memory; /* what it lies in, to be freed */
	struct hl_rcu_head rcu;
	struct hl_bucket bucket[] HL_CACHELINE_ALIGNED;
};
_Static_assert(offsetof(struct hl_hash_array, bucket) == HL_CACHE_LINE, "a line before them");

/* Threads count in one of so many lines. */
#define HL_HASH_COUNTERS 16u

struct hl_rcu_hash {
	/* Written when the table has changed its size, read by all. */
	HL_CACHELINE_GROUP_BEGIN(read_mostly) HL_CACHELINE_ALIGNED;
	_Atomic(struct hl_hash_array *) current;
	uint64_t least; /* buckets; written once */
	struct hl_rcu_head rcu; /* when it is destroyed */
	HL_CACHELINE_GROUP_END(read_mostly);

	/* Written by the updates that change the size, tried by all updates meanwhile. */
	HL_CACHELINE_GROUP_BEGIN(resize) HL_CACHELINE_ALIGNED;
	_Atomic(bool) moving; /* somebody does */
	uint64_t moved; /* buckets of the current array */
	struct hl_bucket *spare; /* lines, linked by next, so that moving cannot fail halfway */
	uint64_t spares;
	HL_CACHELINE_GROUP_END(resize);

	/* Each line written by some of the threads, summed up now and then. */
	struct {
		_Atomic(int64_t) n;
	} HL_CACHELINE_PAIR_ALIGNED counter[HL_HASH_COUNTERS];
};
HL_CACHELINE_ASSERT_ALIGNED(struct hl_rcu_hash, resize);
HL_CACHELINE_ASSERT_APART(struct hl_rcu_hash, current, moving);
HL_CACHELINE_ASSERT_APART(struct hl_rcu_hash, moving, counter);

/* Spreads over all bits what a caller's hash has in the lower ones. Of the result the lower
 * bits choose the bucket and the topmost are the tag. */
static inline uint64_t hl_hash_mix(uint64_t hash)
{
	hash *= UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 32;
}

static inline uint64_t hl_hash_tag(uint64_t mixed)
{
	uint64_t tag = mixed >> 56;

	return tag ? tag : 1;
}

/* The top bit of each of the six bytes that are equal to the tag. */
static inline uint64_t hl_hash_equal_tags(uint64_t word, uint64_t tag)
{
	const uint64_t low = UINT64_C(0x7f7f7f7f7f7f);
	uint64_t x = (word ^ tag * HL_HASH_EACH_TAG) & HL_HASH_TAGS;

	/* Per byte: its low bits carry into the top one unless all are 0; no carry leaves it. */
	return ~(((x & low) + low) | x | low) & HL_HASH_TAGS;
}

/* The slot of the lowest bit that the above has set. */
static inline unsigned hl_hash_slot(uint64_t equal)
{
	return (unsigned)__builtin_ctzll(equal) / 8;
}

static inline struct hl_bucket *hl_hash_bucket(struct hl_hash_array *array, uint64_t mixed)
{
	return &array->bucket[mixed & array->mask];
}

/* ---- One bucket (hash_bucket.c) ---- */

/* Locks it and returns its word, without the lock. */
uint64_t hl_bucket_lock(struct hl_bucket *bucket);
void hl_bucket_unlock(struct hl_bucket *bucket, uint64_t word);

/* Of a bucket that is locked; *word becomes what to unlock it with. spare: a line for when it
 * is full, taken if it was needed; or none. 0 or -ENOMEM. */
int hl_bucket_put(struct hl_bucket *bucket, uint64_t *word, uint64_t mixed,
		  struct hl_rcu_hash_node *node, struct hl_bucket **spare);
/* The slot of that very node; NULL: it is not there. */
_Atomic(struct hl_rcu_hash_node *) *hl_bucket_find(struct hl_bucket *bucket, uint64_t mixed,
						   const struct hl_rcu_hash_node *node);
/* The slot of a node with that key; NULL: there is none. */
_Atomic(struct hl_rcu_hash_node *) *hl_bucket_match(struct hl_bucket *bucket, uint64_t mixed,
						    uint64_t hash, hl_rcu_hash_match_fn match,
						    const void *key);
/* Empties the slot, which is of this bucket. */
void hl_bucket_clear(struct hl_bucket *bucket, uint64_t *word,
		     _Atomic(struct hl_rcu_hash_node *) *slot);
/* How many entries it has. */
unsigned hl_bucket_count(struct hl_bucket *bucket);
/* A line; NULL: no memory. */
struct hl_bucket *hl_bucket_new_line(void);
/* Frees lines that are linked by next. */
void hl_bucket_free_lines(struct hl_bucket *line);

/* ---- The size of the table (hash_resize.c) ---- */

/* Buckets for so many entries. */
uint64_t hl_hash_buckets_for(uint64_t entries);
struct hl_hash_array *hl_hash_array_new(uint64_t buckets);
/* When nobody can be about it. */
void hl_hash_array_free(struct hl_hash_array *array);
void hl_hash_array_free_rcu(struct hl_hash_array *array);
/* Counts an entry that came or went; and begins to change the size of the table if it is
 * time, or goes on with it. In a read section, with no bucket locked. */
void hl_hash_changed(struct hl_rcu_hash *table, int64_t by);
int64_t hl_hash_sum(const struct hl_rcu_hash *table);

#endif
