/*
 * SPDX-License-Identifier: MIT
 *
 * The loops of a table, compiled into its file, which says before it includes this:
 *
 *	TABLE			the name of its struct table
 *	struct entry		with the members key and value
 *	table_find(key, hash)	between table_lock() and table_unlock(); the entry or NULL
 *	table_exchange(entry, hash)	puts it in, in place of the one of its key, which it has
 *				freed; 0 or -ENOMEM
 *	table_quiescent()	outside of table_lock(), now and then
 *	table_open(), table_join(), table_leave()
 */
#include "bench/objects.h"
#include "bench/table.h"

#include <errno.h>
#include <stdlib.h>

/* Of lookups. */
#define A_STATE 16u
/* Of keys that are looked up, one in so many is not there. */
#define ABSENT 8u

static struct entry *new_entry(uint64_t key, uint64_t value)
{
	struct entry *entry = malloc(sizeof(*entry));

	if (entry) {
		entry->key = key;
		entry->value = value;
	}
	return entry;
}

static int exchange_one(uint64_t number, uint64_t value)
{
	uint64_t key = table_key(number);
	struct entry *entry = new_entry(key, value);

	return entry ? table_exchange(entry, table_hash(key)) : -ENOMEM;
}

static int table_fill(uint64_t entries)
{
	int rc = 0;

	for (uint64_t i = 0; i < entries && !rc; i++) {
		rc = exchange_one(i, i);
		if (i % A_STATE == 0)
			table_quiescent();
	}
	return rc;
}

static uint64_t table_look_up(uint64_t entries, uint64_t times)
{
	uint64_t seed = times, found = 0, sum = 0;

	for (uint64_t i = 0; i < times; i++) {
		uint64_t number = bench_random(&seed) % entries;
		uint64_t key = table_key(i % ABSENT ? number : number + (UINT64_C(1) << 32));
		const struct entry *entry;

		table_lock();
		entry = table_find(key, table_hash(key));
		if (entry) {
			sum += entry->value;
			found++;
		}
		table_unlock();
		if (i % A_STATE == A_STATE - 1)
			table_quiescent();
	}
	/* Nobody looks at it; the compiler need not know. */
	__asm__ volatile("" : : "r"(sum));
	return found;
}

static int table_update(uint64_t entries, uint64_t times)
{
	static _Thread_local uint64_t seed;
	int rc = 0;

	for (uint64_t i = 0; i < times && !rc; i++)
		rc = exchange_one(bench_random(&seed) % entries, i);
	table_quiescent();
	return rc;
}

const struct table TABLE = {
	.open = table_open,
	.join = table_join,
	.leave = table_leave,
	.fill = table_fill,
	.look_up = table_look_up,
	.update = table_update,
};
