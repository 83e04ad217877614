/* SPDX-License-Identifier: MIT */
/*
 * Two threads that begin something together, on two processors if there are two, and stores that
 * take long to be seen: what a litmus test needs.
 */
#ifndef PAIR_H
#define PAIR_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <hotline/cacheline.h>

/* The place that each thread has come to; each on a line of its own. */
struct pair {
	struct {
		atomic_int place HL_CACHELINE_ALIGNED;
	} at[2];
};

/* Keeps the calling thread on the n-th of the processors that the process may use. */
static inline void pair_pin(const cpu_set_t *allowed, int n)
{
	int count = CPU_COUNT(allowed), cpu = 0;
	cpu_set_t one;

	if (count < 2)
		return;
	for (n %= count;; cpu++)
		if (CPU_ISSET(cpu, allowed) && n-- == 0)
			break;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

/* Waits for the other at the place; meanwhile() may say that nothing is held. */
static inline void pair_meet(struct pair *pair, int me, int place, void (*meanwhile)(void))
{
	atomic_store(&pair->at[me].place, place);
	for (unsigned spins = 1; atomic_load(&pair->at[1 - me].place) < place; spins++) {
		if (spins % 1024 == 0)
			sched_yield();
		if (meanwhile)
			meanwhile();
	}
}

/* Up to so many turns, of a register: nothing is stored, for a store would wait for those
 * before it. */
static inline void pair_dawdle(uint32_t *random, uint32_t most)
{
	*random = *random * 1664525 + 1013904223;
	for (uint32_t i = (*random >> 16) % most; i; i--)
		__asm__ volatile("" : "+r"(i));
}

/*
 * Stores reach memory in order, on many processors; so a store behind some that miss every cache
 * is seen by others some hundred nanoseconds late, long after the loads that follow it.
 * pair_flush() before the two meet, pair_jam() just before the store.
 */
#define PAIR_JAM 24
struct pair_jam {
	volatile char line[PAIR_JAM][HL_CACHE_LINE];
} HL_CACHELINE_ALIGNED;

static inline void pair_flush(struct pair_jam *jam)
{
	for (int i = 0; i < PAIR_JAM; i++) {
#if defined(__x86_64__) || defined(__i386__)
		__builtin_ia32_clflush((const void *)jam->line[i]);
#elif defined(__aarch64__)
		__asm__ volatile("dc civac, %0" ::"r"(jam->line[i]) : "memory");
#endif
	}
}

static inline void pair_jam(struct pair_jam *jam)
{
	for (int i = 0; i < PAIR_JAM; i++)
		jam->line[i][0] = 1;
}

#endif
