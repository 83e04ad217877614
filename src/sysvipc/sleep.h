/* SPDX-License-Identifier: MIT */
/*
 * Those who sleep in an object, and how they are woken: many by one system call.
 *
 * Sleeper i waits for the word of its group i / 32, with bit i % 32 of the futex's bit set, so
 * that one call wakes any of the 32 and nobody else. Who wakes a sleeper first does its work for
 * it, under the object's lock, and leaves the result in the sleeper's slot.
 *
 * A sleeper vouches for its slot (process.h): when it is killed the slot is marked at once, and it
 * is counted no more. What no mark tells of (another process that died with undo, a waker that
 * died between the result and the call) is looked after by a sleeper: each sleeps for a slice of
 * time that grows with the number of those before it, so that one of them, whoever is left, comes
 * by every 30 ms.
 */
#ifndef HL_SYSVIPC_SLEEP_H
#define HL_SYSVIPC_SLEEP_H

#include "object.h"

#define HL_IPC_SLEEPERS 4096
#define HL_IPC_GROUP 32
#define HL_IPC_GROUPS (HL_IPC_SLEEPERS / HL_IPC_GROUP)

enum hl_ipc_sleeper_state {
	HL_IPC_FREE,
	HL_IPC_ASLEEP,
	HL_IPC_AWAKE, /* hl_ipc_sleeper_result() says why; the owner has not gone yet */
};

struct hl_ipc_sleeper {
	/* Written by its owner under the lock; by who wakes it, the same; by the kernel. */
	_Atomic(uint32_t) word; /* the thread's id, and FUTEX_OWNER_DIED */
	_Atomic(uint32_t) state;
	_Atomic(int32_t) kept; /* see hl_ipc_sleeper_result() */
	_Atomic(int32_t) pid;
	_Atomic(uint64_t) start;
	_Atomic(uint64_t) ticket; /* who came first has the lower one */
	_Atomic(uint64_t) own[4]; /* what it waits for, in the words of the type */
} HL_CACHELINE_ALIGNED;

struct hl_ipc_group_word {
	/* Written by who wakes one of the group; waited for by all of it. */
	_Atomic(uint32_t) word;
} HL_CACHELINE_ALIGNED;

struct hl_ipc_sleepers {
	/* A slot is taken under the lock, and given back by its owner without it. */
	_Atomic(uint64_t) used[HL_IPC_SLEEPERS / 64] HL_CACHELINE_ALIGNED;
	/* Under the lock. */
	_Atomic(uint64_t) ticket HL_CACHELINE_ALIGNED;
	/* From here on nothing is touched before hl_ipc_sleeper_take() has seen to it. */
	struct hl_ipc_group_word groups[HL_IPC_GROUPS];
	struct hl_ipc_sleeper slots[HL_IPC_SLEEPERS];
};

/* What of it a type counts among its reserved bytes. */
#define HL_IPC_SLEEPERS_RESERVED offsetof(struct hl_ipc_sleepers, groups)

/* Whom to wake once the lock is given back; hl_ipc_wakes_init() before the first. */
struct hl_ipc_wakes {
	uint64_t groups[HL_IPC_GROUPS / 64];
	uint32_t bits[HL_IPC_GROUPS];
};

static inline void hl_ipc_wakes_init(struct hl_ipc_wakes *wakes)
{
	unsigned i;

	for (i = 0; i < HL_IPC_GROUPS / 64; i++)
		wakes->groups[i] = 0;
}

/*
 * hl_ipc_sleeper_take - a slot for the calling thread, -ENOSPC or -ENOMEM
 *
 * Under the lock. The caller then fills .own in and calls hl_ipc_sleeper_begin().
 */
int hl_ipc_sleeper_take(struct hl_ipc_object *object, struct hl_ipc_sleepers *sleepers);

/* From now on others see it asleep. Under the lock. */
void hl_ipc_sleeper_begin(struct hl_ipc_sleepers *sleepers, int slot, struct hl_ipc_thread *thread);

/*
 * Gives the lock back in a way that leaves the slot vouched for, not the lock. Who does not need the
 * slot any more calls hl_ipc_unvouch() with what was in @holding->vouched_before.
 */
void hl_ipc_unlock_to_sleep(struct hl_ipc_lock *lock, struct hl_ipc_holding *holding,
			    struct hl_ipc_sleepers *sleepers, int slot);

enum hl_ipc_slept {
	HL_IPC_SLEPT_AWAKE, /* somebody left a result: no lock is needed to take it */
	HL_IPC_SLEPT_SIGNAL,
	HL_IPC_SLEPT_TIMEOUT,
	HL_IPC_SLEPT_SLICE, /* look after the object, then sleep on */
};

/* @until: of hl_ipc_now(), or INT64_MAX. Without the lock. */
enum hl_ipc_slept hl_ipc_sleep(struct hl_ipc_sleepers *sleepers, int slot, int64_t until);

/*
 * hl_ipc_sleeper_result - what the one who woke it left, when it is awake
 *
 * Kept as one less the result, so that the zeroes of a mapping that another thread has retired
 * meanwhile, and what somebody scribbled, are told apart: -EIDRM.
 */
static inline int32_t hl_ipc_sleeper_result(struct hl_ipc_sleepers *sleepers, int slot)
{
	int32_t kept = atomic_load_explicit(&sleepers->slots[slot].kept, memory_order_relaxed);

	return kept >= 1 && kept <= 4096 ? 1 - kept : -EIDRM;
}

/* The owner needs the slot no more. */
void hl_ipc_sleeper_free(struct hl_ipc_sleepers *sleepers, int slot);

/* Under the lock: the sleeper's wait is over; @result is 0 or a negative errno value. It is woken by
 * hl_ipc_wake(). */
void hl_ipc_sleeper_post(struct hl_ipc_sleepers *sleepers, int slot, int32_t result,
			 struct hl_ipc_wakes *wakes);

/* Without the lock. */
void hl_ipc_wake(struct hl_ipc_sleepers *sleepers, const struct hl_ipc_wakes *wakes);

/* The next slot in use from @slot on; HL_IPC_SLEEPERS: there is none. */
static inline int hl_ipc_sleeper_next(struct hl_ipc_sleepers *sleepers, int slot)
{
	while (slot < HL_IPC_SLEEPERS) {
		uint64_t word =
			atomic_load_explicit(&sleepers->used[slot / 64], memory_order_relaxed) >>
			slot % 64;

		if (word)
			return slot + __builtin_ctzll(word);
		slot = (slot / 64 + 1) * 64;
	}
	return HL_IPC_SLEEPERS;
}

static inline bool hl_ipc_sleeper_asleep(struct hl_ipc_sleepers *sleepers, int slot)
{
	struct hl_ipc_sleeper *sleeper = &sleepers->slots[slot];

	return atomic_load_explicit(&sleeper->state, memory_order_relaxed) == HL_IPC_ASLEEP &&
	       !(atomic_load_explicit(&sleeper->word, memory_order_relaxed) & FUTEX_OWNER_DIED);
}

/*
 * hl_ipc_sleepers_tend - frees the slots of the dead and wakes again who was not woken
 * @thorough: asks the system about those of whom no mark tells
 *
 * Under the lock.
 */
void hl_ipc_sleepers_tend(struct hl_ipc_sleepers *sleepers, bool thorough,
			  struct hl_ipc_wakes *wakes);

#endif
