// SPDX-License-Identifier: MIT
#include "bench/objects.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <hotline/cacheline.h>

#define LEAST_BYTES 8u
#define POOL_BYTES (UINT64_C(1) << 28)
/* Many times what caches hold that one processor can have to itself. */
#define SWEPT_BYTES (UINT64_C(1) << 26)
#define COUNTERS 64u
/* Looked at to see whether callbacks ran: few, since that warms them. */
#define SUM_STEP 61u

static char *pool; /* shared by all runs */
static char *swept;
static unsigned half; /* of the pool: which is next */
static uint64_t shuffle_seed = 0x9e3779b97f4a7c15;

static void *map(uint64_t bytes, int how)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, how | MAP_ANONYMOUS | MAP_NORESERVE,
			-1, 0);

	return at == MAP_FAILED ? NULL : at;
}

int objects_reserve(void)
{
	if (pool)
		return 0;
	pool = map(POOL_BYTES, MAP_SHARED);
	swept = map(SWEPT_BYTES, MAP_PRIVATE);
	if (!pool || !swept) {
		objects_release();
		return -ENOMEM;
	}
	/* Not for its speed: runs inherit it, and a page of it costs each of them a fault. */
	madvise(swept, SWEPT_BYTES, MADV_HUGEPAGE);
	memset(swept, 1, SWEPT_BYTES);
	return 0;
}

void objects_release(void)
{
	if (pool)
		munmap(pool, POOL_BYTES);
	if (swept)
		munmap(swept, SWEPT_BYTES);
	pool = swept = NULL;
}

void objects_evict(void)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < SWEPT_BYTES; i += HL_CACHE_LINE)
		sum += *(volatile uint64_t *)(swept + i);
	(void)sum;
}

static void shuffle(void **at, uint64_t n)
{
	uint64_t seed = shuffle_seed;

	for (uint64_t i = n; i > 1; i--) {
		uint64_t k = bench_random(&seed) % i;
		void *other = at[k];

		at[k] = at[i - 1];
		at[i - 1] = other;
	}
}

/*
 * The place of a number in a permutation of all numbers of so many bits: each step can be
 * undone, so no two get the same place. There is no pattern in it that a prefetcher would
 * see, and no array that would have to be shuffled in each run.
 */
static uint64_t permuted(uint64_t x, unsigned bits)
{
	const uint64_t mask = (UINT64_C(1) << bits) - 1;

	for (unsigned round = 0; round < 3; round++) {
		x = (x * UINT64_C(0x9e3779b97f4a7c15) + 0x7f4a7c15) & mask;
		x ^= x >> (bits / 2 + 1);
	}
	return x & mask;
}

int objects_take(struct objects *objects, uint64_t n, uint64_t places, size_t bytes, bool random)
{
	uint64_t place_bytes = LEAST_BYTES, first;
	unsigned bits = 0;

	while (place_bytes < bytes)
		place_bytes *= 2;
	while ((UINT64_C(1) << bits) < places)
		bits++;
	if (places * place_bytes > POOL_BYTES || n > places / 2)
		return -EINVAL;
	objects->at = malloc(n * sizeof(*objects->at));
	if (!objects->at)
		return -ENOMEM;
	objects->n = n;
	first = half++ % 2 * n;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t place = random ? permuted(first + i, bits) : first + i;

		objects->at[i] = pool + place * place_bytes;
		/* Its page: a mapping that is there does not do. Where a hypervisor keeps page
		 * tables in step, it is the first write of a process that costs. */
		*(volatile char *)objects->at[i] += 0;
	}
	objects_evict();
	return 0;
}

uint64_t objects_sum(const struct objects *objects, size_t word)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < objects->n; i += SUM_STEP)
		sum += *(uint64_t *)((char *)objects->at[i] + word);
	return sum;
}

uint64_t objects_summed(const struct objects *objects)
{
	return (objects->n + SUM_STEP - 1) / SUM_STEP;
}

int objects_allocate(struct objects *objects, uint64_t n, size_t bytes, bool random)
{
	objects->n = n;
	objects->at = malloc(n * sizeof(*objects->at));
	if (!objects->at)
		return -ENOMEM;
	for (uint64_t i = 0; i < n; i++) {
		objects->at[i] = malloc(bytes);
		if (!objects->at[i])
			return -ENOMEM;
		*(uint64_t *)objects->at[i] = 0;
	}
	if (random)
		shuffle(objects->at, n);
	objects_evict();
	return 0;
}

void objects_forget(struct objects *objects)
{
	free(objects->at);
	objects->at = NULL;
}

/* ---- What was freed ---- */

/* Each written by one thread. */
static struct counter {
	uint64_t n HL_CACHELINE_PAIR_ALIGNED;
} counter[COUNTERS];
static _Atomic(unsigned) counters;
static _Thread_local struct counter *mine;

void objects_count_freed(void)
{
	if (!mine)
		mine = &counter[atomic_fetch_add_explicit(&counters, 1, memory_order_relaxed) %
				COUNTERS];
	mine->n++;
}

uint64_t objects_freed(void)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < COUNTERS; i++)
		sum += counter[i].n;
	return sum;
}
