// SPDX-License-Identifier: MIT
#include "delay.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>

static atomic_uint next_seed;
static __thread uint64_t state;

void delay_seed(unsigned seed)
{
	atomic_store(&next_seed, seed);
}

static uint32_t next_random(void)
{
	if (!state)
		state = (uint64_t)atomic_fetch_add(&next_seed, 1) * 2654435761u + 1;
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33);
}

void delay_here(void)
{
	uint32_t what = next_random();

	if (what % 16 == 0)
		sched_yield();
	else if (what % 16 == 1)
		for (volatile unsigned i = 0; i < what / 16 % 4096; i++)
			;
}
