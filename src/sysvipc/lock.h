/* SPDX-License-Identifier: MIT */
/*
 * The lock of an object, held for some tens of nanoseconds and by nobody who sleeps.
 *
 * It survives its holder: whoever comes next is told that the last one died, and mends what that
 * one was about (each type of object has its own journal). The word holds the thread id of the
 * holder, which vouches for it (process.h). Who waits spins, then gives the processor away, then
 * sleeps for a while at a time: nobody needs to be woken, so that to give it back is one store.
 */
#ifndef HL_SYSVIPC_LOCK_H
#define HL_SYSVIPC_LOCK_H

#include "process.h"

struct hl_ipc_lock {
	/* Written by whoever takes the lock and gives it back, and by the kernel. */
	_Atomic(uint32_t) word;
};

/* What a holder has to remember. */
struct hl_ipc_holding {
	struct hl_ipc_thread *thread;
	void *vouched_before;
	const void *held_before; /* by a frame that this one, a signal handler, interrupted */
};

enum hl_ipc_taken {
	HL_IPC_TAKEN,
	HL_IPC_TAKEN_FROM_THE_DEAD, /* mend the object first */
	HL_IPC_NOT_TAKEN, /* the calling thread has it: this is a signal handler */
};

enum hl_ipc_taken hl_ipc_lock_slowly(struct hl_ipc_lock *lock, struct hl_ipc_holding *holding);

/* The first half of hl_ipc_lock(), which does not wait: whether the lock was free. If it was not,
 * hl_ipc_lock_slowly() or hl_ipc_lock_forgo() follows. */
static inline bool hl_ipc_lock_try(struct hl_ipc_lock *lock, struct hl_ipc_holding *holding)
{
	struct hl_ipc_thread *thread = hl_ipc_thread();
	uint32_t nobody = 0;

	holding->thread = thread;
	holding->held_before = thread->held;
	/* First, so that a handler that finds our id in the word also finds this. */
	thread->held = lock;
	holding->vouched_before = hl_ipc_vouch(thread, &lock->word);
	/* OBJECT_LOCK, pairs with hl_ipc_unlock(): what the last holder wrote is seen. */
	return atomic_compare_exchange_strong_explicit(&lock->word, &nobody, (uint32_t)thread->tid,
						       memory_order_acquire, memory_order_relaxed);
}

static inline void hl_ipc_lock_forgo(struct hl_ipc_holding *holding)
{
	hl_ipc_unvouch(holding->thread, holding->vouched_before);
	holding->thread->held = holding->held_before;
}

/* In a signal handler that interrupts a holder it fails, at once. */
static inline enum hl_ipc_taken hl_ipc_lock(struct hl_ipc_lock *lock,
					    struct hl_ipc_holding *holding)
{
	if (__builtin_expect(hl_ipc_lock_try(lock, holding), 1))
		return HL_IPC_TAKEN;
	return hl_ipc_lock_slowly(lock, holding);
}

static inline void hl_ipc_unlock(struct hl_ipc_lock *lock, struct hl_ipc_holding *holding)
{
	/* OBJECT_LOCK */
	atomic_store_explicit(&lock->word, 0, memory_order_release);
	hl_ipc_lock_forgo(holding);
}

#endif
