/* SPDX-License-Identifier: MIT */
/*
 * Running what has waited: the helper, a CPU's poll and hl_rcu_barrier() come here.
 *
 * What is in a queue passes three places: .taken <= .ready <= .mark <= .given. Calls below .ready
 * may run, those below .mark wait for the grace period .state, and those above for the one
 * after. While the ready ones run, the next grace period goes by.
 *
 * The objects are cold: they were given away a grace period ago. So each is fetched HL_RCU_DISTANCE
 * calls before it is its turn; docs/rcu.md says why that many. .taken is written before a call
 * and .done after it, so that the child of a fork neither repeats nor loses a call.
 *
 * Memory ordering
 *
 * RCU_TAKER: .lock is taken with acquire and given back with release: what the last one who
 *	invoked knows of the queue, the next one knows.
 * RCU_DONE: .done is stored with release, after the call; hl_rcu_barrier() loads it with
 *	acquire: it sees what the calls did.
 * RCU_GIVEN, RCU_LINKED, RCU_SPARE: see queue.c
 */
#include "internal.h"

/* Another is for measuring alone. */
#ifndef HL_RCU_DISTANCE
#define HL_RCU_DISTANCE 32u
#endif

__thread struct hl_rcu_queue *hl_rcu_running;

bool hl_queue_trylock(struct hl_rcu_queue *queue)
{
	return !atomic_load_explicit(&queue->lock, memory_order_relaxed) &&
	       !atomic_exchange_explicit(&queue->lock, 1, memory_order_acquire); /* RCU_TAKER */
}

void hl_queue_unlock(struct hl_rcu_queue *queue)
{
	atomic_store_explicit(&queue->lock, 0, memory_order_release); /* RCU_TAKER */
}

/* ---- What is ready ---- */

/* Takes the heads that were linked, in the order in which they were given. Under a lock that
 * fork takes, so that the child finds them in one place or the other. */
static void collect_links(struct hl_rcu_queue *queue)
{
	struct hl_rcu_head *last;

	hl_batch_lock();

	/* RCU_LINKED, pairs with link_head() */
	last = atomic_exchange_explicit(&queue->links, NULL, memory_order_acquire);
	while (last) {
		struct hl_rcu_head *before = last->next;

		last->next = queue->links_waiting;
		queue->links_waiting = last;
		last = before;
	}
	hl_batch_unlock();
}

static void links_become_ready(struct hl_rcu_queue *queue)
{
	struct hl_rcu_head **end = &queue->links_ready;

	hl_batch_lock();
	while (*end)
		end = &(*end)->next;
	*end = queue->links_waiting;
	queue->links_waiting = NULL;
	hl_batch_unlock();
}

void hl_queue_collect(struct hl_rcu_queue *queue)
{
	if (queue->waiting && hl_gp_done(queue->state)) {
		queue->ready = queue->mark;
		if (queue->links_waiting)
			links_become_ready(queue);
		queue->waiting = false;
	}
	if (queue->waiting)
		return;
	/* RCU_GIVEN, pairs with put() */
	queue->mark = atomic_load_explicit(&queue->given, memory_order_acquire);
	if (atomic_load_explicit(&queue->links, memory_order_relaxed))
		collect_links(queue);
	if (queue->mark != queue->ready || queue->links_waiting) {
		queue->state = hl_gp_state();
		queue->waiting = true;
	}
}

/* ---- Running ---- */

static void run_call(uint64_t word, uintptr_t pointer)
{
	if (word & HL_CALL_HEAD)
		((void (*)(struct hl_rcu_head *))(uintptr_t)(word & ~HL_CALL_HEAD))(
			(struct hl_rcu_head *)pointer);
	else
		((void (*)(void *))(uintptr_t)word)((void *)pointer);
}

/* Runs n calls that lie side by side; position: of the first. */
static void run_calls(struct hl_rcu_queue *queue, const struct hl_rcu_call *call, uint64_t n,
		      uint64_t position)
{
	for (uint64_t i = 0; i < n && i < HL_RCU_DISTANCE; i++)
		hl_prefetchw((const void *)call[i].pointer);
	for (uint64_t i = 0; i < n; i++) {
		if (i + HL_RCU_DISTANCE < n)
			hl_prefetchw((const void *)call[i + HL_RCU_DISTANCE].pointer);
		atomic_store_explicit(&queue->taken, position + i + 1, memory_order_relaxed);
		run_call(call[i].word, call[i].pointer);
		/* RCU_DONE, pairs with hl_rcu_barrier() */
		atomic_store_explicit(&queue->done, position + i + 1, memory_order_release);
	}
}

/* The batch is empty, and there is another. */
static void empty(struct hl_rcu_queue *queue)
{
	struct hl_rcu_batch *batch = queue->first, *none = NULL;

	/* RCU_GIVEN, pairs with make_room() */
	queue->first = atomic_load_explicit(&batch->next, memory_order_acquire);
	hl_backlog_sub(batch->size);
	/* RCU_SPARE, pairs with make_room(): the calls were read */
	if (!atomic_compare_exchange_strong_explicit(&queue->spare, &none, batch,
						     memory_order_release, memory_order_relaxed))
		hl_batch_put(batch);
}

static unsigned run_links(struct hl_rcu_queue *queue)
{
	unsigned n = 0;

	while (queue->links_ready) {
		struct hl_rcu_head *head = queue->links_ready;

		queue->links_ready = head->next;
		head->func(head);
		/* RCU_DONE, pairs with hl_rcu_barrier() */
		atomic_fetch_add_explicit(&queue->links_done, 1, memory_order_release);
		n++;
	}
	return n;
}

unsigned hl_queue_run(struct hl_rcu_queue *queue, unsigned most)
{
	struct hl_rcu_queue *outer = hl_rcu_running;
	unsigned n = 0;

	hl_rcu_running = queue;
	for (;;) {
		uint64_t taken = atomic_load_explicit(&queue->taken, memory_order_relaxed);
		struct hl_rcu_batch *batch = queue->first;
		uint64_t some = queue->ready - taken;

		if (!some || n == most)
			break;
		if (taken - batch->base == batch->size) {
			empty(queue);
			continue;
		}
		if (some > batch->base + batch->size - taken)
			some = batch->base + batch->size - taken;
		if (some > most - n)
			some = most - n;
		run_calls(queue, &batch->call[taken - batch->base], some, taken);
		n += (unsigned)some;
	}
	n += run_links(queue);
	hl_rcu_running = outer;
	return n;
}
