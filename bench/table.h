/* SPDX-License-Identifier: MIT */
/*
 * What rcu-hash compares: hash tables that some threads look keys up in while others
 * exchange entries. One file each in peers/, ours among them; their loops are compiled
 * into each out of peers/table_loops.h.
 */
#ifndef HL_BENCH_TABLE_H
#define HL_BENCH_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/harness.h"

struct table {
	/* Once, for so many entries; then a thread that will use it, and when it ends. 0 or a negative errno
	 * value. */
	int (*open)(uint64_t entries);
	int (*join)(void);
	void (*leave)(void);
	/* Puts in the keys of 0 to entries - 1. */
	int (*fill)(uint64_t entries);
	/* Looks up keys at random, so many; one in eight is not there. How many were found, and
	 * adds up their values. */
	uint64_t (*look_up)(uint64_t entries, uint64_t times);
	/* Exchanges entries at random for new ones, and has the old ones freed. 0 or -ENOMEM. */
	int (*update)(uint64_t entries, uint64_t times);
};

struct table_peer {
	const char *name;
	enum bench_kind kind;
	const struct table *table; /* NULL: its library was not there */
	const char *why_not; /* and how to get it */
};

/* All there are; the list ends in one without a name. */
extern const struct table_peer bench_table_peers[];

/* The key of that number; there is no pattern in them. Those from 2^32 on are in no table. */
static inline uint64_t table_key(uint64_t number)
{
	uint64_t key = number * UINT64_C(0xbf58476d1ce4e5b9) + 1;

	key ^= key >> 29;
	return key * UINT64_C(0x94d049bb133111eb);
}

/* The hash, the same for all. */
static inline uint64_t table_hash(uint64_t key)
{
	key ^= key >> 32;
	key *= UINT64_C(0xd6e8feb86659fd93);
	return key ^ key >> 32;
}

#endif
