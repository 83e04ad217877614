/* SPDX-License-Identifier: MIT */
/*
 * Memory for batches.
 *
 * From the system and not from malloc(): the function that gives may have interrupted it, and
 * what a flood needed goes back when it is over. Who invokes leaves an empty batch with the
 * queue that it was of, or here, where the next thread that asks finds it: memory does not
 * pile up with those who free while others ask the system for more.
 *
 * Locking: `lock` protects the pool, for a few instructions.
 */
#include "internal.h"

#include <pthread.h>
#include <sys/mman.h>

/* Empty batches that are kept when a flood is over, a megabyte: the next one would have the system
 * clear as many again. While it lasts, what the backlog may need. */
#define KEEP_AT_REST 32u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct hl_rcu_batch *pool; /* large ones */
static unsigned n_pool;
static _Atomic(uint64_t) n_batches, n_bytes;

void hl_batch_lock(void)
{
	hl_local_irq_disable();
	pthread_mutex_lock(&lock);
}

void hl_batch_unlock(void)
{
	pthread_mutex_unlock(&lock);
	hl_local_irq_enable();
}

static struct hl_rcu_batch *map(size_t bytes, int flags)
{
	struct hl_rcu_batch *batch = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
					  MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	if (batch == MAP_FAILED)
		return NULL;
	batch->bytes = bytes;
	atomic_fetch_add_explicit(&n_batches, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&n_bytes, bytes, memory_order_relaxed);
	return batch;
}

static void unmap(struct hl_rcu_batch *batch)
{
	size_t bytes = batch->bytes;

	atomic_fetch_sub_explicit(&n_batches, 1, memory_order_relaxed);
	atomic_fetch_sub_explicit(&n_bytes, bytes, memory_order_relaxed);
	munmap(batch, bytes);
}

/* Takes one out of the pool if there are more than `left`. */
static struct hl_rcu_batch *take(unsigned left)
{
	struct hl_rcu_batch *batch = NULL;

	hl_batch_lock();
	if (n_pool > left) {
		batch = pool;
		pool = atomic_load_explicit(&batch->next, memory_order_relaxed);
		n_pool--;
	}
	hl_batch_unlock();
	return batch;
}

struct hl_rcu_batch *hl_batch_get(bool large)
{
	struct hl_rcu_batch *batch = large ? take(0) : NULL;

	if (!batch && large)
		batch = map(HL_BATCH_LARGE, MAP_POPULATE);
	if (!batch)
		batch = map(HL_BATCH_SMALL, 0);
	return batch;
}

void hl_batch_put(struct hl_rcu_batch *batch)
{
	bool kept = false;

	if (batch->bytes == HL_BATCH_LARGE) {
		hl_batch_lock();
		kept = n_pool < hl_backlog_most() / HL_BATCH_SLOTS(HL_BATCH_LARGE) + KEEP_AT_REST;
		if (kept) {
			atomic_store_explicit(&batch->next, pool, memory_order_relaxed);
			pool = batch;
			n_pool++;
		}
		hl_batch_unlock();
	}
	if (!kept)
		unmap(batch);
}

void hl_batch_trim(void)
{
	struct hl_rcu_batch *batch;

	while ((batch = take(KEEP_AT_REST)))
		unmap(batch);
}

void hl_batch_unload_queue(struct hl_rcu_queue *queue)
{
	struct hl_rcu_batch *batch = queue->first, *next, *spare = queue->spare;

	for (; batch; batch = next) {
		next = batch->next;
		unmap(batch);
	}
	if (spare)
		unmap(spare);
}

void hl_batch_unload(void)
{
	struct hl_rcu_batch *batch;

	while ((batch = take(0)))
		unmap(batch);
}

uint64_t hl_batch_count(uint64_t *bytes)
{
	*bytes = atomic_load_explicit(&n_bytes, memory_order_relaxed);
	return atomic_load_explicit(&n_batches, memory_order_relaxed);
}
