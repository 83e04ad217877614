// SPDX-License-Identifier: MIT
/*
 * The loop that ran the kernel's callbacks in 2006: one list of heads, each inside its
 * object. Two things were changed in it at once, and are apart here: the next head is
 * prefetched before the callback of this one is called; and the rest of the list is
 * stored once behind the loop, where it was stored in each turn.
 */
#include "bench/workloads/rcu_batch.h"

#include <stddef.h>

#include <hotline/cacheline.h>

struct head {
	struct head *next;
	void (*func)(struct head *head);
	uint64_t word;
};

/* As the kernel had it, one per CPU. */
struct data {
	struct head *donelist;
	struct head **donetail;
	uint64_t qlen;
};

static struct data data HL_CACHELINE_PAIR_ALIGNED;

static void callback(struct head *head)
{
	head->word++;
}

static void list_add(void *object)
{
	struct head *head = object;

	head->next = NULL;
	head->func = callback;
	*data.donetail = head;
	data.donetail = &head->next;
}

static void list_begin(void)
{
	data.donelist = NULL;
	data.donetail = &data.donelist;
}

/* The compiler may not keep the list in a register: callbacks are unknown to it. */
static inline __attribute__((always_inline)) void run(bool prefetch, bool hoisted)
{
	struct head *list = data.donelist;
	uint64_t count = 0;

	while (list) {
		struct head *next = list->next;

		if (!hoisted)
			*(struct head *volatile *)&data.donelist = next;
		if (prefetch)
			hl_prefetch(next);
		list->func(list);
		list = next;
		count++;
	}
	if (hoisted)
		data.donelist = list;
	data.qlen -= count;
}

static void run_neither(void)
{
	run(false, false);
}

static void run_prefetch(void)
{
	run(true, false);
}

static void run_hoisted(void)
{
	run(false, true);
}

static void run_both(void)
{
	run(true, true);
}

#define LIST(name) \
	const struct batch batch_##name = { \
		.begin = list_begin, \
		.add = list_add, \
		.run = run_##name, \
		.word = offsetof(struct head, word), \
	}
LIST(neither);
LIST(prefetch);
LIST(hoisted);
LIST(both);
