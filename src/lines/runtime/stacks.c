// SPDX-License-Identifier: MIT
/*
 * Numbers for lists of return addresses: where things were allocated.
 */
#include "runtime.h"

#include <string.h>

#define DEPTH 8 /* calls that tell one allocation from another */
#define MAX_STACKS (1u << 16)

struct stack {
	uint64_t hash;
	uint32_t n;
	uint64_t pc[DEPTH];
};

/*
 * Open addressing; the number is the place + 1.
 *
 * SLOT: a slot is filled under the lock and its hash written last, with release; who finds the
 * hash without the lock reads it with acquire and then sees the rest.
 */
static struct stack *stacks;
static pthread_mutex_t stacks_lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t n_stacks;

void hl_stacks_lock(void)
{
	pthread_mutex_lock(&stacks_lock);
}

void hl_stacks_unlock(void)
{
	pthread_mutex_unlock(&stacks_lock);
}

static uint64_t hash_of(const uintptr_t *pc, unsigned n)
{
	uint64_t h = n;

	for (unsigned i = 0; i < n; i++) {
		h = (h ^ pc[i]) * 0x9e3779b97f4a7c15;
		h ^= h >> 32;
	}
	return h ? h : 1;
}

/* The slot with the hash, or the free one where it would be. */
static uint32_t find(uint64_t hash)
{
	uint32_t at = hash >> 40;

	for (;; at++) {
		uint64_t there =
			__atomic_load_n(&stacks[at % MAX_STACKS].hash, __ATOMIC_ACQUIRE); /* SLOT */

		if (there == hash || !there)
			return at % MAX_STACKS;
	}
}

uint32_t hl_stack_of(const uintptr_t *pc, unsigned n)
{
	uint64_t hash = hash_of(pc, n);
	uint32_t at;

	if (!__atomic_load_n(&stacks, __ATOMIC_RELAXED)) {
		pthread_mutex_lock(&stacks_lock);
		if (!stacks)
			__atomic_store_n(&stacks, hl_map(MAX_STACKS * sizeof(*stacks)),
					 __ATOMIC_RELAXED);
		pthread_mutex_unlock(&stacks_lock);
		if (!stacks)
			return 0;
	}
	at = find(hash);
	if (stacks[at].hash == hash)
		return at + 1;
	pthread_mutex_lock(&stacks_lock);
	at = find(hash);
	if (stacks[at].hash != hash) {
		/* The table stays a quarter free, so that a search ends. */
		if (n_stacks >= MAX_STACKS / 4 * 3) {
			pthread_mutex_unlock(&stacks_lock);
			return 0;
		}
		n_stacks++;
		stacks[at].n = n;
		for (unsigned i = 0; i < n; i++)
			stacks[at].pc[i] = pc[i];
		__atomic_store_n(&stacks[at].hash, hash, __ATOMIC_RELEASE); /* SLOT */
	}
	pthread_mutex_unlock(&stacks_lock);
	return at + 1;
}

uint32_t hl_stack_here(uintptr_t pc)
{
	uintptr_t pcs[DEPTH] = { pc };
	struct thread *thread = hl_thread();
	unsigned n = 1;

	if (!thread)
		return 0;
	for (struct call *call = hl_self.top; n < DEPTH && call > thread->calls;)
		pcs[n++] = (--call)->pc;
	return hl_stack_of(pcs, n);
}

void hl_stacks_write(void (*put)(uint32_t id, const uint64_t *pc, uint32_t n))
{
	if (!stacks)
		return;
	for (uint32_t i = 0; i < MAX_STACKS; i++) {
		if (__atomic_load_n(&stacks[i].hash, __ATOMIC_ACQUIRE)) /* SLOT */
			put(i + 1, stacks[i].pc, stacks[i].n);
	}
}
