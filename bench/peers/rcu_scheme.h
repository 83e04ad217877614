/* SPDX-License-Identifier: MIT */
/*
 * What callbacks do, for all schemes.
 */
#ifndef HL_BENCH_RCU_SCHEME_H
#define HL_BENCH_RCU_SCHEME_H

#include <stdint.h>
#include <stdlib.h>

#include "bench/objects.h"

static inline void scheme_ran(void *object, size_t word)
{
	++*(uint64_t *)((char *)object + word);
}

static inline void scheme_freed(void *object)
{
	objects_count_freed();
	free(object);
}

#endif
