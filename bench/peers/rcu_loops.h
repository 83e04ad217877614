/*
 * SPDX-License-Identifier: MIT
 *
 * The loops of a scheme, compiled into its file, which says before it includes this:
 *
 *	SCHEME			the name of its struct rcu_scheme
 *	SCHEME_WORD		where objects have their word: behind what it keeps in them
 *	scheme_lock(), _unlock(), _quiescent()
 *	scheme_call(object, frees)	has scheme_ran(object) or scheme_freed(object)
 *					called after a grace period
 *	scheme_poll()		the caller's part, between calls
 *	scheme_open(), _join(), _leave(), _sleep(), _wake(), _synchronize(), _barrier()
 *
 * and maybe SCHEME_EXPEDITED, a function.
 */
#include "bench/objects.h"
#include "bench/rcu.h"

#include <errno.h>
#include <stdlib.h>

/* So many calls, then the caller's part once. */
#define CALLS_A_POLL 64u
/* So many sections, then a quiescent state. */
#define SECTIONS_A_STATE 16u

static void scheme_read(const uint64_t *word, uint64_t sections)
{
	for (uint64_t i = 0; i < sections; i++) {
		scheme_lock();
		(void)*(const volatile uint64_t *)word;
		scheme_unlock();
	}
}

static void scheme_state(void)
{
	scheme_quiescent();
}

static inline __attribute__((always_inline)) void call_all(void *const *object, uint64_t n,
							   bool frees, bool poll)
{
	for (uint64_t i = 0; i < n; i++) {
		scheme_call(object[i], frees);
		if (poll && i % CALLS_A_POLL == CALLS_A_POLL - 1)
			scheme_poll();
	}
}

static void scheme_call_all(void *const *object, uint64_t n, bool frees)
{
	if (frees)
		call_all(object, n, true, false);
	else
		call_all(object, n, false, false);
}

static void scheme_call_and_poll(void *const *object, uint64_t n, bool frees)
{
	if (frees)
		call_all(object, n, true, true);
	else
		call_all(object, n, false, true);
}

/* ---- Descriptors ---- */

static void *new_file(uint64_t number)
{
	char *file = malloc(DESCRIPTOR_BYTES);

	if (file)
		*(uint64_t *)(file + SCHEME_WORD) = number;
	return file;
}

static int scheme_reopen(struct descriptors *descriptors, uint64_t times)
{
	uint64_t seed = times;

	for (uint64_t i = 0; i < times; i++) {
		_Atomic(void *) *slot = &descriptors->file[bench_random(&seed) % descriptors->n];
		void *file = new_file(i), *old;

		if (!file)
			return -ENOMEM;
		/* One thread alone writes the table. */
		old = atomic_load_explicit(slot, memory_order_relaxed);
		/* REOPEN, pairs with scheme_look_up(): what is in the file comes first. */
		atomic_store_explicit(slot, file, memory_order_release);
		if (old)
			scheme_call(old, true);
		if (i % CALLS_A_POLL == CALLS_A_POLL - 1)
			scheme_poll();
	}
	return 0;
}

static void scheme_look_up(struct descriptors *descriptors, uint64_t times)
{
	static _Thread_local uint64_t seed;

	for (uint64_t i = 0; i < times; i++) {
		_Atomic(void *) *slot = &descriptors->file[bench_random(&seed) % descriptors->n];
		const char *file;

		scheme_lock();
		/* REOPEN, pairs with scheme_reopen() */
		file = atomic_load_explicit(slot, memory_order_acquire);
		if (file)
			(void)*(const volatile uint64_t *)(file + SCHEME_WORD);
		scheme_unlock();
		if (i % SECTIONS_A_STATE == SECTIONS_A_STATE - 1)
			scheme_quiescent();
	}
}

const struct rcu_scheme SCHEME = {
	.least_bytes = SCHEME_WORD + sizeof(uint64_t),
	.word = SCHEME_WORD,
	.open = scheme_open,
	.join = scheme_join,
	.leave = scheme_leave,
	.sleep = scheme_sleep,
	.wake = scheme_wake,
	.read = scheme_read,
	.quiescent = scheme_state,
	.synchronize = scheme_synchronize,
#ifdef SCHEME_EXPEDITED
	.expedited = SCHEME_EXPEDITED,
#endif
	.call = scheme_call_all,
	.call_and_poll = scheme_call_and_poll,
	.barrier = scheme_barrier,
	.reopen = scheme_reopen,
	.look_up = scheme_look_up,
};
