// SPDX-License-Identifier: MIT
/*
 * What the machine allows: pointers written to an array and, when all are there, each
 * called for with the ones further on prefetched. No grace period, no readers.
 */
#include <errno.h>
#include <sys/mman.h>

#include <hotline/cacheline.h>

#include "bench/peers/rcu_scheme.h"

#define SCHEME scheme_array
#define SCHEME_WORD ((size_t)0)

#define AHEAD 32u
#define FREES ((uintptr_t)1)

static uintptr_t *array;
static uint64_t n_array;

static int scheme_open(void)
{
	array = mmap(NULL, (OBJECTS_MOST + AHEAD) * sizeof(*array), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return array == MAP_FAILED ? -ENOMEM : 0;
}

static int scheme_join(void)
{
	return 0;
}

static void scheme_leave(void)
{
}

static void scheme_sleep(void)
{
}

static void scheme_wake(void)
{
}

static inline void scheme_lock(void)
{
}

static inline void scheme_unlock(void)
{
}

static inline void scheme_quiescent(void)
{
}

static void scheme_synchronize(void)
{
}

static void scheme_barrier(void)
{
	for (uint64_t i = 0; i < n_array; i++) {
		void *object = (void *)(array[i] & ~FREES);

		hl_prefetchw((void *)(array[i + AHEAD] & ~FREES));
		if (array[i] & FREES)
			scheme_freed(object);
		else
			scheme_ran(object, SCHEME_WORD);
	}
	n_array = 0;
}

static inline void scheme_call(void *object, bool frees)
{
	array[n_array++] = (uintptr_t)object | (frees ? FREES : 0);
	if (n_array == OBJECTS_MOST)
		scheme_barrier();
}

static inline void scheme_poll(void)
{
}

#include "bench/peers/rcu_loops.h"
