/* SPDX-License-Identifier: MIT */
/*
 * Ours; TABLE is given. By default read sections are of the general scheme; with QUIESCENT
 * threads read by quiescent states.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include <hotline/rcu.h>
#include <hotline/rcuhash.h>

struct entry {
	struct hl_rcu_hash_node node;
	uint64_t key, value;
};

static struct hl_rcu_hash *hash_table;

static int table_open(uint64_t entries)
{
	(void)entries;
	hash_table = hl_rcu_hash_create(0);
	return hash_table ? hl_rcu_barrier() : -ENOMEM;
}

static int table_join(void)
{
#ifdef QUIESCENT
	return hl_rcu_set_quiescent(true);
#else
	return 0;
#endif
}

static void table_leave(void)
{
#ifdef QUIESCENT
	hl_rcu_set_quiescent(false);
#endif
}

static inline void table_lock(void)
{
#ifdef QUIESCENT
	hl_rcu_read_lock_qs();
#else
	hl_rcu_read_lock();
#endif
}

static inline void table_unlock(void)
{
#ifdef QUIESCENT
	hl_rcu_read_unlock_qs();
#else
	hl_rcu_read_unlock();
#endif
}

static inline void table_quiescent(void)
{
#ifdef QUIESCENT
	hl_rcu_quiescent_state();
#endif
}

static bool same_key(const struct hl_rcu_hash_node *node, const void *key)
{
	return HL_RCU_HASH_ENTRY(node, const struct entry, node)->key == *(const uint64_t *)key;
}

static inline const struct entry *table_find(uint64_t key, uint64_t hash)
{
	struct hl_rcu_hash_node *node = hl_rcu_hash_lookup(hash_table, hash, same_key, &key);

	return node ? HL_RCU_HASH_ENTRY(node, const struct entry, node) : NULL;
}

static inline int table_exchange(struct entry *entry, uint64_t hash)
{
	struct hl_rcu_hash_node *old;
	int rc = hl_rcu_hash_add_replace(hash_table, hash, same_key, &entry->key, &entry->node,
					 &old);

	if (!rc && old)
		rc = hl_free_rcu(HL_RCU_HASH_ENTRY(old, struct entry, node));
	return rc;
}

#include "bench/peers/table_loops.h"
