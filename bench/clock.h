/* SPDX-License-Identifier: MIT */
/*
 * The clock of the benchmarks, and how to wait without leaving the processor.
 */
#ifndef HL_BENCH_CLOCK_H
#define HL_BENCH_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t bench_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static inline void bench_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb" ::: "memory");
#endif
}

#endif
