/* SPDX-License-Identifier: MIT */
/*
 * liburcu's lock-free table, for either of its flavours: URCU(name), URCU_FLAVOUR and TABLE
 * are given. It changes its size by itself, in a thread that comes behind when a table is
 * filled fast; so it begins with the size that it will have.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <urcu/rculfhash.h>

struct entry {
	struct cds_lfht_node node;
	struct rcu_head head;
	uint64_t key, value;
};

static struct cds_lfht *lfht;

static int table_open(uint64_t entries)
{
	lfht = cds_lfht_new_flavor(entries, 1, 0, CDS_LFHT_AUTO_RESIZE | CDS_LFHT_ACCOUNTING,
				   &URCU_FLAVOUR, NULL);
	return lfht && URCU(get_default_call_rcu_data)() ? 0 : -ENOMEM;
}

static int table_join(void)
{
	URCU(register_thread)();
	return 0;
}

static void table_leave(void)
{
	URCU(unregister_thread)();
}

static inline void table_lock(void)
{
	URCU(read_lock)();
}

static inline void table_unlock(void)
{
	URCU(read_unlock)();
}

static inline void table_quiescent(void)
{
	URCU(quiescent_state)();
}

static int same_key(struct cds_lfht_node *node, const void *key)
{
	return ((const struct entry *)node)->key == *(const uint64_t *)key;
}

static inline const struct entry *table_find(uint64_t key, uint64_t hash)
{
	struct cds_lfht_iter iter;

	cds_lfht_lookup(lfht, hash, same_key, &key, &iter);
	return (const struct entry *)cds_lfht_iter_get_node(&iter);
}

static void free_entry(struct rcu_head *head)
{
	free((char *)head - offsetof(struct entry, head));
}

static inline int table_exchange(struct entry *entry, uint64_t hash)
{
	struct cds_lfht_node *old;

	cds_lfht_node_init(&entry->node);
	URCU(read_lock)();
	old = cds_lfht_add_replace(lfht, hash, same_key, &entry->key, &entry->node);
	URCU(read_unlock)();
	if (old)
		URCU(call_rcu)(&((struct entry *)old)->head, free_entry);
	return 0;
}

#include "bench/peers/table_loops.h"
