// SPDX-License-Identifier: MIT
/*
 * Concurrency Kit's table, for one thread that updates it, with its epochs.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <ck_epoch.h>
#include <ck_ht.h>
#include <ck_malloc.h>

#include <hotline/cacheline.h>

#define TABLE table_ck_ht

/* Updates, then the callbacks that may run. */
#define A_POLL 64u

struct entry {
	ck_epoch_entry_t entry;
	uint64_t key, value;
};

/* What the table has let go: in front of its memory. */
struct memory {
	ck_epoch_entry_t entry;
	void *padding[2];
};

static ck_ht_t ht;
static ck_epoch_t epoch;
static _Thread_local ck_epoch_record_t *record;
static _Thread_local unsigned updates;

static uint64_t table_hash_of(uint64_t key);

static void free_memory(ck_epoch_entry_t *entry)
{
	free(entry);
}

static void *ht_malloc(size_t bytes)
{
	struct memory *memory = malloc(sizeof(*memory) + bytes);

	return memory ? memory + 1 : NULL;
}

static void ht_free(void *at, size_t bytes, bool defer)
{
	struct memory *memory = (struct memory *)at - 1;

	(void)bytes;
	if (defer)
		ck_epoch_call(record, &memory->entry, free_memory);
	else
		free(memory);
}

static void ht_hash(ck_ht_hash_t *hash, const void *key, size_t bytes, uint64_t seed)
{
	(void)bytes;
	(void)seed;
	hash->value = table_hash_of(*(const uint64_t *)key);
}

static int table_join(void)
{
	record = aligned_alloc(HL_CACHE_LINE_PAIR, (sizeof(*record) + HL_CACHE_LINE_PAIR - 1) &
							   ~(size_t)(HL_CACHE_LINE_PAIR - 1));
	if (!record)
		return -ENOMEM;
	ck_epoch_register(&epoch, record, NULL);
	return 0;
}

static void table_leave(void)
{
	ck_epoch_unregister(record);
}

static int table_open(uint64_t entries)
{
	static struct ck_malloc allocator = { .malloc = ht_malloc, .free = ht_free };

	(void)entries;
	ck_epoch_init(&epoch);
	return ck_ht_init(&ht, CK_HT_MODE_DIRECT, ht_hash, &allocator, 64, 1) ? 0 : -ENOMEM;
}

static inline void table_lock(void)
{
	ck_epoch_begin(record, NULL);
}

static inline void table_unlock(void)
{
	ck_epoch_end(record, NULL);
}

static inline void table_quiescent(void)
{
}

static inline const struct entry *table_find(uint64_t key, uint64_t hash)
{
	ck_ht_hash_t h = { .value = hash };
	ck_ht_entry_t found;

	ck_ht_entry_key_set_direct(&found, key);
	return ck_ht_get_spmc(&ht, h, &found) ? (void *)ck_ht_entry_value_direct(&found) : NULL;
}

static void free_entry(ck_epoch_entry_t *entry)
{
	free(entry);
}

static inline int table_exchange(struct entry *entry, uint64_t hash)
{
	ck_ht_hash_t h = { .value = hash };
	ck_ht_entry_t put;
	struct entry *old;

	ck_ht_entry_set_direct(&put, h, entry->key, (uintptr_t)entry);
	if (!ck_ht_set_spmc(&ht, h, &put))
		return -ENOMEM;
	/* It hands back what was there; nothing, or the same, where there was none. */
	old = ck_ht_entry_empty(&put) ? NULL : (void *)ck_ht_entry_value_direct(&put);
	if (old && old != entry)
		ck_epoch_call(record, &old->entry, free_entry);
	if (++updates % A_POLL == 0)
		ck_epoch_poll(record);
	return 0;
}

#include "bench/peers/table_loops.h"

static uint64_t table_hash_of(uint64_t key)
{
	return table_hash(key);
}
