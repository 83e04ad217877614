/* SPDX-License-Identifier: MIT */
/*
 * Running what has waited: the helper, a CPU's poll and hl_rcu_barrier() come here.
 *
 * What is in a queue passes three places: .taken <= .ready <= .mark <= .given. Calls below .ready
 * may run, those below .mark wait for the grace period .state, and those above for the one
 * after. While the ready ones run, the next grace period goes by.
 *
 * The objects are cold: they were given away a grace period ago. So each is fetched HL_RCU_DISTANCE
 * calls before it is its turn; docs/rcu.md says why that many. .taken is written before a call,
 * so that the child of a fork neither repeats nor loses one; .runs says whether it has
 * returned.
 *
 * Memory ordering
 *
 * RCU_TAKER: .lock is taken with acquire and given back with release: what the last one who
 *	invoked knows of the queue, the next one knows.
 * RCU_DONE: .taken is stored with release, after the calls before have returned, .runs after the
 *	last; hl_rcu_barrier() loads both with acquire: it sees what the calls did.
 * RCU_SOME_RAN: who sleeps until calls have run counts itself into .waiters, fences, and looks at
 *	what has run; who invokes stores that, fences, and looks at the count. Without either
 *	fence the sleep lasts until its time is up.
 * RCU_GIVEN, RCU_RUN, RCU_LINKED, RCU_SPARE: see queue.c
 */
#include "internal.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

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

/* Runs n calls of one function; position: of the first. more: pointers there are behind
 * the first, to be fetched */
static void run_run(struct hl_rcu_queue *queue, uint64_t word, const uintptr_t *pointer, uint64_t n,
		    uint64_t more, uint64_t position)
{
	for (uint64_t i = 0; i < n; i++) {
		if (i + HL_RCU_DISTANCE < more)
			hl_prefetchw((const void *)pointer[i + HL_RCU_DISTANCE]);
		/* RCU_DONE, pairs with hl_queue_done(): those before have returned */
		atomic_store_explicit(&queue->taken, position + i + 1, memory_order_release);
		run_call(word, pointer[i]);
	}
}

/* Runs n calls out of the first batch, run by run. */
static void run_batch(struct hl_rcu_queue *queue, uint64_t n, uint64_t position)
{
	struct hl_rcu_batch *batch = queue->first;
	const uintptr_t *pointer = &batch->pointer[position - batch->base];

	for (uint64_t i = 0; i < n && i < HL_RCU_DISTANCE; i++)
		hl_prefetchw((const void *)pointer[i]);
	atomic_store_explicit(&queue->runs, 1, memory_order_relaxed);
	for (uint64_t i = 0, some; i < n; i += some) {
		/* RCU_RUN, pairs with begin_run() in queue.c */
		uint64_t runs = atomic_load_explicit(&batch->n_runs, memory_order_acquire);

		while (queue->run + 1 < runs &&
		       hl_batch_run(batch, queue->run + 1)->first <= position + i)
			queue->run++;
		some = n - i;
		if (queue->run + 1 < runs &&
		    hl_batch_run(batch, queue->run + 1)->first - (position + i) < some)
			some = hl_batch_run(batch, queue->run + 1)->first - (position + i);
		run_run(queue, hl_batch_run(batch, queue->run)->word, pointer + i, some, n - i,
			position + i);
	}
	/* RCU_DONE, pairs with hl_queue_done() */
	atomic_store_explicit(&queue->runs, 0, memory_order_release);
}

/* The batch is empty, and there is another. */
static void empty(struct hl_rcu_queue *queue, struct hl_rcu_batch *next)
{
	struct hl_rcu_batch *batch = queue->first, *none = NULL;

	queue->first = next;
	queue->run = 0;
	hl_backlog_sub(next->base - batch->base);
	/* RCU_SPARE, pairs with open_batch(): the calls were read */
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

/* Wakes those who sleep until some have run. */
static void tell(struct hl_rcu_queue *queue)
{
	hl_fence(); /* RCU_SOME_RAN, pairs with hl_queue_sleep() */
	if (!atomic_load_explicit(&queue->waiters, memory_order_relaxed))
		return;
	atomic_fetch_add_explicit(&queue->some_ran, 1, memory_order_release);
	syscall(SYS_futex, &queue->some_ran, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

unsigned hl_queue_run(struct hl_rcu_queue *queue, unsigned most)
{
	struct hl_rcu_queue *outer = hl_rcu_running;
	unsigned n = 0;

	hl_rcu_running = queue;
	for (;;) {
		uint64_t taken = atomic_load_explicit(&queue->taken, memory_order_relaxed);
		struct hl_rcu_batch *batch = queue->first, *next;
		uint64_t some = queue->ready - taken;

		if (!some || n == most)
			break;
		/* RCU_GIVEN, pairs with open_batch(): it is there when calls behind are */
		next = atomic_load_explicit(&batch->next, memory_order_acquire);
		if (next && taken == next->base) {
			empty(queue, next);
			continue;
		}
		if (next && some > next->base - taken)
			some = next->base - taken;
		if (some > most - n)
			some = most - n;
		run_batch(queue, some, taken);
		n += (unsigned)some;
	}
	n += run_links(queue);
	hl_rcu_running = outer;
	if (n)
		tell(queue);
	return n;
}

/* ---- Waiting for it ---- */

bool hl_queue_reached(struct hl_rcu_queue *queue, uint64_t given, uint64_t linked)
{
	/* RCU_DONE, pairs with run_links() */
	return (int64_t)(hl_queue_done(queue) - given) >= 0 &&
	       (int64_t)(atomic_load_explicit(&queue->links_done, memory_order_acquire) - linked) >=
		       0;
}

void hl_queue_sleep(struct hl_rcu_queue *queue, uint64_t given, uint64_t linked, int64_t ns)
{
	struct timespec timeout = { .tv_nsec = ns };
	uint32_t some_ran;
	int saved = errno;

	atomic_fetch_add_explicit(&queue->waiters, 1, memory_order_seq_cst);
	some_ran = atomic_load_explicit(&queue->some_ran, memory_order_acquire);
	hl_fence(); /* RCU_SOME_RAN, pairs with tell() */
	if (!hl_queue_reached(queue, given, linked))
		syscall(SYS_futex, &queue->some_ran, FUTEX_WAIT_PRIVATE, some_ran, &timeout, NULL,
			0);
	atomic_fetch_sub_explicit(&queue->waiters, 1, memory_order_relaxed);
	errno = saved;
}
