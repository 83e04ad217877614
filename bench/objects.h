/* SPDX-License-Identifier: MIT */
/*
 * The objects that callbacks get: where they lie in memory, and in which order.
 *
 * Cold objects are in no cache when they are handed over: what fills the caches many times
 * over is read before. They lie in memory that all runs share, since each is a process of its
 * own and would spend most of its time on page faults.
 */
#ifndef HL_BENCH_OBJECTS_H
#define HL_BENCH_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Cold objects of 64 bytes that there is place for; a round has half as many at most. */
#define OBJECTS_PLACES (UINT64_C(1) << 21)
#define OBJECTS_MOST (OBJECTS_PLACES / 2)

struct objects {
	void **at; /* n of them, in the order in which they are used */
	uint64_t n;
};

/* Before the runs are started, in the process that starts them: 0 or -ENOMEM. Takes
 * addresses only; memory comes with the first run. */
int objects_reserve(void);
/* Gives back all memory. */
void objects_release(void);

/*
 * In a run: n cold objects of that size, in random order or in that of their addresses, out
 * of `places`, a power of two and twice n at least. The next call gives others, the one after
 * that the first again. Returns 0 or -ENOMEM.
 */
int objects_take(struct objects *objects, uint64_t n, uint64_t places, size_t bytes, bool random);
/* The sum of the words at that offset in some of them, every so many; how many that is. */
uint64_t objects_sum(const struct objects *objects, size_t word);
uint64_t objects_summed(const struct objects *objects);

/* Reads what fills the caches many times over: nothing of before is in them then. */
void objects_evict(void);

/* The same from malloc(), all new; n of any size. */
int objects_allocate(struct objects *objects, uint64_t n, size_t bytes, bool random);
void objects_forget(struct objects *objects);

/* Counts calls by whichever threads; and how many there were. Read when they are over. */
void objects_count_freed(void);
uint64_t objects_freed(void);

/* Random numbers of no great quality. */
static inline uint64_t bench_random(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *state >> 33;
}

#endif
