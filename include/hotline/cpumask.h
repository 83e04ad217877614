/* SPDX-License-Identifier: MIT */
/*
 * Sets of CPUs.
 *
 * A mask has room for every id there can be (HL_NR_CPUS), wherever it lies: on the
 * stack, in a struct, static. It holds ids of Hotline CPUs, not numbers of
 * processors.
 *
 * Plain data: calls on one mask from several threads need a lock of the caller's,
 * calls that only read it do not. All of them may be used in signal handlers and
 * after fork. An id outside 0 to HL_NR_CPUS - 1 is never in a mask, and setting it
 * does nothing.
 *
 * After the kernel's include/linux/cpumask.h.
 */
#ifndef HOTLINE_CPUMASK_H
#define HOTLINE_CPUMASK_H

#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include <hotline/api.h>

/* How many CPUs there can be at once: their ids are 0 to HL_NR_CPUS - 1. */
#define HL_NR_CPUS 4096

#define HL_PRIV_LONG_BITS ((int)(sizeof(unsigned long) * CHAR_BIT))
#define HL_PRIV_MASK_LONGS (HL_NR_CPUS / HL_PRIV_LONG_BITS)

struct hl_cpumask {
	unsigned long bits[HL_PRIV_MASK_LONGS];
};

HL_BEGIN_DECLS

/* hl_cpumask_clear - empties the mask */
static inline void hl_cpumask_clear(struct hl_cpumask *mask)
{
	memset(mask, 0, sizeof(*mask));
}

/* hl_cpumask_setall - every id there can be */
static inline void hl_cpumask_setall(struct hl_cpumask *mask)
{
	memset(mask, 0xff, sizeof(*mask));
}

/* hl_cpumask_valid - whether there can be a CPU of that id */
static inline bool hl_cpumask_valid(int cpu)
{
	return cpu >= 0 && cpu < HL_NR_CPUS;
}

/* hl_cpumask_set_cpu, hl_cpumask_clear_cpu - adds a CPU, takes it out */
static inline void hl_cpumask_set_cpu(int cpu, struct hl_cpumask *mask)
{
	if (hl_cpumask_valid(cpu))
		mask->bits[cpu / HL_PRIV_LONG_BITS] |= 1ul << cpu % HL_PRIV_LONG_BITS;
}

static inline void hl_cpumask_clear_cpu(int cpu, struct hl_cpumask *mask)
{
	if (hl_cpumask_valid(cpu))
		mask->bits[cpu / HL_PRIV_LONG_BITS] &= ~(1ul << cpu % HL_PRIV_LONG_BITS);
}

/* hl_cpumask_test_cpu - whether the CPU is in the mask */
static inline bool hl_cpumask_test_cpu(int cpu, const struct hl_cpumask *mask)
{
	return hl_cpumask_valid(cpu) &&
	       mask->bits[cpu / HL_PRIV_LONG_BITS] >> cpu % HL_PRIV_LONG_BITS & 1;
}

/*
 * hl_cpumask_next - the lowest id in the mask above `after`
 *
 * Returns HL_NR_CPUS when there is none. after = -1 begins.
 */
static inline int hl_cpumask_next(int after, const struct hl_cpumask *mask)
{
	int cpu = after + 1;

	while (hl_cpumask_valid(cpu)) {
		unsigned long word =
			mask->bits[cpu / HL_PRIV_LONG_BITS] >> cpu % HL_PRIV_LONG_BITS;

		if (word)
			return cpu + __builtin_ctzl(word);
		cpu = (cpu / HL_PRIV_LONG_BITS + 1) * HL_PRIV_LONG_BITS;
	}
	return HL_NR_CPUS;
}

/* hl_cpumask_first - the lowest id; HL_NR_CPUS when the mask is empty */
static inline int hl_cpumask_first(const struct hl_cpumask *mask)
{
	return hl_cpumask_next(-1, mask);
}

static inline bool hl_cpumask_empty(const struct hl_cpumask *mask)
{
	return hl_cpumask_first(mask) == HL_NR_CPUS;
}

/* hl_cpumask_weight - how many CPUs are in the mask */
static inline int hl_cpumask_weight(const struct hl_cpumask *mask)
{
	int weight = 0;

	for (int i = 0; i < HL_PRIV_MASK_LONGS; i++)
		weight += __builtin_popcountl(mask->bits[i]);
	return weight;
}

/* hl_cpumask_and, hl_cpumask_or, hl_cpumask_andnot - sets *to; the three may be the same */
static inline void hl_cpumask_and(struct hl_cpumask *to, const struct hl_cpumask *a,
				  const struct hl_cpumask *b)
{
	for (int i = 0; i < HL_PRIV_MASK_LONGS; i++)
		to->bits[i] = a->bits[i] & b->bits[i];
}

static inline void hl_cpumask_or(struct hl_cpumask *to, const struct hl_cpumask *a,
				 const struct hl_cpumask *b)
{
	for (int i = 0; i < HL_PRIV_MASK_LONGS; i++)
		to->bits[i] = a->bits[i] | b->bits[i];
}

static inline void hl_cpumask_andnot(struct hl_cpumask *to, const struct hl_cpumask *a,
				     const struct hl_cpumask *b)
{
	for (int i = 0; i < HL_PRIV_MASK_LONGS; i++)
		to->bits[i] = a->bits[i] & ~b->bits[i];
}

/* hl_cpumask_equal - whether both hold the same CPUs */
static inline bool hl_cpumask_equal(const struct hl_cpumask *a, const struct hl_cpumask *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* HL_FOR_EACH_CPU - runs what follows for each id in *mask, from the lowest up */
#define HL_FOR_EACH_CPU(cpu, mask)                                             \
	for ((cpu) = hl_cpumask_first(mask); (cpu) < HL_NR_CPUS;               \
	     (cpu) = hl_cpumask_next(cpu, mask))

HL_END_DECLS

#endif
