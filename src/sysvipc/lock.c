/* SPDX-License-Identifier: MIT */
/*
 * Memory ordering
 *
 * OBJECT_LOCK: taken with acquire, given back with release. A dead holder's stores are seen as
 *	well: they are in program order in the memory of the machine by the time that the kernel,
 *	or the one who found the process gone, changes the word.
 */
#include "lock.h"

/* Holders need a hundred nanoseconds, if they have a processor. */
#define SPINS 100
#define YIELDS 8
#define NAP_NS 50000
/* From how many naps on it is asked whether the holder lives. */
#define NAPS_OF_TRUST 10

static bool take(struct hl_ipc_lock *lock, uint32_t *seen, int32_t tid)
{
	/* OBJECT_LOCK */
	return atomic_compare_exchange_strong_explicit(&lock->word, seen, (uint32_t)tid,
						       memory_order_acquire, memory_order_relaxed);
}

static void wait_a_little(unsigned round)
{
	if (round < SPINS && hl_ipc_self()->cpus > 1)
		hl_relax();
	else if (round < SPINS + YIELDS)
		hl_sys_yield();
	else
		hl_sys_nanosleep(NAP_NS);
}

enum hl_ipc_taken hl_ipc_lock_slowly(struct hl_ipc_lock *lock, struct hl_ipc_holding *holding)
{
	struct hl_ipc_thread *thread = holding->thread;
	unsigned round;

	for (round = 0;; round++) {
		uint32_t seen = atomic_load_explicit(&lock->word, memory_order_relaxed);
		uint32_t tid = seen & FUTEX_TID_MASK;
		bool dead = seen & FUTEX_OWNER_DIED;

		if (!seen) {
			if (take(lock, &seen, thread->tid))
				return HL_IPC_TAKEN;
			continue;
		}
		if (tid == (uint32_t)thread->tid) {
			if (holding->held_before == lock) {
				hl_ipc_lock_forgo(holding);
				return HL_IPC_NOT_TAKEN;
			}
			/* It had our id, and is gone. */
			dead = true;
		}
		if (!dead && round >= SPINS + YIELDS + NAPS_OF_TRUST && round % NAPS_OF_TRUST == 0)
			dead = !hl_ipc_thread_alive((int32_t)tid);
		if (dead && take(lock, &seen, thread->tid))
			return HL_IPC_TAKEN_FROM_THE_DEAD;
		wait_a_little(round);
	}
}
