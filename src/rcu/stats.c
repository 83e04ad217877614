/* SPDX-License-Identifier: MIT */
/*
 * Numbers for whoever watches.
 */
#include "internal.h"

struct hl_rcu_counters hl_rcu_counters;

static uint64_t value(_Atomic(uint64_t) *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

static void add_queue(struct hl_rcu_stats *stats, struct hl_rcu_queue *queue)
{
	/* In this order: what has run was given. */
	uint64_t links_done = value(&queue->links_done);
	uint64_t done = hl_queue_done(queue);
	uint64_t given = value(&queue->given), linked = value(&queue->linked);

	stats->backlog += given - done + linked - links_done;
	stats->invoked += done - HL_RCU_START + links_done;
	stats->linked += linked;
}

void hl_rcu_get_stats(struct hl_rcu_stats *stats)
{
	*stats = (struct hl_rcu_stats){
		.grace_periods = hl_gp_count(),
		.broadcasts = value(&hl_rcu_counters.broadcasts),
		.wakeups = value(&hl_rcu_counters.wakeups),
		.hurried = value(&hl_rcu_counters.hurried),
		.slowed = value(&hl_rcu_counters.slowed),
	};
	stats->batches = hl_batch_count(&stats->batch_bytes);
	HL_FOR_EACH_RCU_QUEUE(t, queue)
	add_queue(stats, queue);
	add_queue(stats, hl_queue_of_all());
}
