/* SPDX-License-Identifier: MIT */
/*
 * A table of chains behind one lock, which it is given: read_lock(), read_unlock(),
 * write_lock(), write_unlock(), and TABLE. It has as many chains as entries from the start.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

struct entry {
	struct entry *next;
	uint64_t key, value;
};

static struct entry **chain;
static uint64_t chains;

static int table_open(uint64_t entries)
{
	for (chains = 1; chains < entries;)
		chains *= 2;
	chain = calloc(chains, sizeof(*chain));
	return chain ? 0 : -ENOMEM;
}

static int table_join(void)
{
	return 0;
}

static void table_leave(void)
{
}

static inline void table_lock(void)
{
	read_lock();
}

static inline void table_unlock(void)
{
	read_unlock();
}

static inline void table_quiescent(void)
{
}

static inline const struct entry *table_find(uint64_t key, uint64_t hash)
{
	const struct entry *entry = chain[hash & (chains - 1)];

	while (entry && entry->key != key)
		entry = entry->next;
	return entry;
}

static inline int table_exchange(struct entry *entry, uint64_t hash)
{
	struct entry **at = &chain[hash & (chains - 1)], *old;

	write_lock();
	while (*at && (*at)->key != entry->key)
		at = &(*at)->next;
	old = *at;
	entry->next = old ? old->next : NULL;
	*at = entry;
	write_unlock();
	/* Who is let in finds the new one. */
	free(old);
	return 0;
}

#include "bench/peers/table_loops.h"
