// SPDX-License-Identifier: MIT
/*
 * What the machine allows: an array of pointers to functions and objects, walked with the
 * objects further on prefetched.
 */
#include "bench/workloads/rcu_batch.h"

#include <errno.h>
#include <sys/mman.h>

#include <hotline/cacheline.h>

#include "bench/objects.h"

#define AHEAD 32u

struct entry {
	void (*func)(void *object);
	void *object;
};

static struct entry *array;
static uint64_t n_array;

static void callback(void *object)
{
	++*(uint64_t *)object;
}

static int array_open(void)
{
	array = mmap(NULL, (OBJECTS_MOST + AHEAD) * sizeof(*array), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return array == MAP_FAILED ? -ENOMEM : 0;
}

static void array_begin(void)
{
	n_array = 0;
}

static void array_add(void *object)
{
	array[n_array++] = (struct entry){ callback, object };
}

static void array_run(void)
{
	for (uint64_t i = 0; i < n_array; i++) {
		hl_prefetchw(array[i + AHEAD].object);
		array[i].func(array[i].object);
	}
}

const struct batch batch_array = {
	.open = array_open,
	.begin = array_begin,
	.add = array_add,
	.run = array_run,
};
