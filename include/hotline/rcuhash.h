/* SPDX-License-Identifier: MIT */
/*
 * A hash table that is read under RCU, and grows and shrinks by itself.
 *
 * Lookups take no lock, never wait and never start over: they cost the line of a bucket
 * and that of the entry, and where there is no such entry, as a rule, the line of the
 * bucket alone. Updates lock one bucket, whose lock is in its line; they may come from any
 * number of threads. The table changes its size a few buckets with each update, beside
 * lookups and updates.
 *
 * An entry is a struct of the caller's with a struct hl_rcu_hash_node in it, which lookups
 * return. The caller computes the hash of its keys: 64 bits, or fewer in the lower ones. It
 * need not be mixed well, but keys of the same hash cost each other. Where keys come from
 * an adversary use a hash with a secret, as SipHash.
 *
 *	struct route { struct hl_rcu_hash_node node; struct hl_rcu_head rcu; ... };
 *
 *	hl_rcu_read_lock();
 *	node = hl_rcu_hash_lookup(table, hash(&key), same_key, &key);
 *	if (node)
 *		use(HL_RCU_HASH_ENTRY(node, struct route, node));
 *	hl_rcu_read_unlock();
 *
 * Who has taken an entry out frees it after a grace period: hl_call_rcu(), hl_free_rcu(), or
 * hl_synchronize_rcu() and free(). Until then it may not go into a table again.
 *
 * What a lookup finds: an entry that is in the table from before the lookup until after
 * it, also while the table changes its size; one that is added or taken out meanwhile
 * may be found or not. Where the entry of a key is only ever put in with
 * hl_rcu_hash_add_unique() and exchanged with hl_rcu_hash_add_replace() or
 * hl_rcu_hash_replace(), there is one or none at each moment, and exchanging leaves
 * no moment without.
 *
 * Ordering: what was written to an entry before it was put in is seen by who finds it.
 *
 * Threads: every function may be called by any thread, online or not, inside of read
 * sections as well. Updates may wait shortly for another update to the same bucket: they
 * are not for signal handlers, nor for functions that interrupt an updating thread (see
 * hl_local_irq_disable()). Lookups may be called there, inside a read section.
 *
 * Fork: the child may look up; it may update only if no other thread of the parent was
 * updating the table in that moment.
 */
#ifndef HOTLINE_RCUHASH_H
#define HOTLINE_RCUHASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hotline/api.h>
#include <hotline/rcu.h>

HL_BEGIN_DECLS

/* Inside an entry. Written by the library when the entry is put in. */
struct hl_rcu_hash_node {
	uint64_t hash;
};

/* HL_RCU_HASH_ENTRY - the struct of that type which the node is the member of */
#define HL_RCU_HASH_ENTRY(node, type, member) ((type *)((char *)(node)-offsetof(type, member)))

struct hl_rcu_hash;

/*
 * Whether the entry of the node has that key. Called inside a read section, or with a
 * bucket locked: for entries whose hash is the same. It may not change the table.
 */
typedef bool (*hl_rcu_hash_match_fn)(const struct hl_rcu_hash_node *node, const void *key);

/*
 * hl_rcu_hash_create - an empty table
 * @expected: how many entries it has room for from the start and does not shrink below; 0:
 *	little
 *
 * Returns the table, to be given to hl_rcu_hash_destroy(), or NULL with errno ENOMEM.
 */
HL_API struct hl_rcu_hash *hl_rcu_hash_create(size_t expected);

/*
 * hl_rcu_hash_destroy - gives back a table
 *
 * Its entries are the caller's. Nobody updates it meanwhile or begins to read it; read
 * sections that have begun may go on, since its memory is freed after a grace period. Does
 * not wait for one and may be called inside of read sections. NULL does nothing.
 */
HL_API void hl_rcu_hash_destroy(struct hl_rcu_hash *table);

/*
 * hl_rcu_hash_lookup - an entry with that key, or NULL
 *
 * Called inside a read section, which the entry must not be used after. Of several
 * entries with the key it returns any.
 */
HL_API struct hl_rcu_hash_node *hl_rcu_hash_lookup(const struct hl_rcu_hash *table, uint64_t hash,
						   hl_rcu_hash_match_fn match, const void *key);

/*
 * hl_rcu_hash_add - puts an entry in, whether there are others with its key or not
 *
 * Returns 0, or -ENOMEM: the bucket is full and there is no memory for another line.
 */
HL_API int hl_rcu_hash_add(struct hl_rcu_hash *table, uint64_t hash, struct hl_rcu_hash_node *node);

/*
 * hl_rcu_hash_add_unique - puts an entry in if there is none with its key
 * @existing: NULL, or where to store the one that there is; to be used inside of the
 *	read section that the call is made in
 *
 * Returns 0, -EEXIST or -ENOMEM.
 */
HL_API int hl_rcu_hash_add_unique(struct hl_rcu_hash *table, uint64_t hash,
				  hl_rcu_hash_match_fn match, const void *key,
				  struct hl_rcu_hash_node *node,
				  struct hl_rcu_hash_node **existing);

/*
 * hl_rcu_hash_add_replace - puts an entry in, in place of one with its key if there is one
 * @old: where to store that one, or NULL where there was none; the caller has it freed
 *	after a grace period
 *
 * Returns 0 or -ENOMEM.
 */
HL_API int hl_rcu_hash_add_replace(struct hl_rcu_hash *table, uint64_t hash,
				   hl_rcu_hash_match_fn match, const void *key,
				   struct hl_rcu_hash_node *node, struct hl_rcu_hash_node **old);

/*
 * hl_rcu_hash_replace - exchanges an entry for another one of the same hash
 *
 * Returns 0: the old one is the caller's, to be freed after a grace period; -ENOENT: it is
 * not in the table, another thread may have taken it out.
 */
HL_API int hl_rcu_hash_replace(struct hl_rcu_hash *table, struct hl_rcu_hash_node *old,
			       struct hl_rcu_hash_node *node);

/*
 * hl_rcu_hash_del - takes an entry out
 *
 * Of several threads that take out the same one, one gets 0 and has it freed after a grace
 * period; the others get -ENOENT. They call it inside the read section in which they found
 * the entry.
 */
HL_API int hl_rcu_hash_del(struct hl_rcu_hash *table, struct hl_rcu_hash_node *node);

/*
 * hl_rcu_hash_for_each - calls a function for the entries, until it returns true
 *
 * Takes a read section of its own around each bucket. Entries that are there all the time are
 * visited once each, also while the table changes its size; others once or not at all, but
 * that one taken out and put in again meanwhile may come twice. The function may
 * update the table. Returns whether it returned true.
 */
HL_API bool hl_rcu_hash_for_each(struct hl_rcu_hash *table,
				 bool (*func)(struct hl_rcu_hash_node *node, void *arg), void *arg);

/* hl_rcu_hash_count - how many entries there are; while others update it, about so many */
HL_API size_t hl_rcu_hash_count(const struct hl_rcu_hash *table);

/* hl_rcu_hash_buckets - how many buckets there are, of six entries and 64 bytes each */
HL_API size_t hl_rcu_hash_buckets(const struct hl_rcu_hash *table);

HL_END_DECLS

#endif
