/* SPDX-License-Identifier: MIT */
/*
 * Memory ordering
 *
 * SLEEPER_RESULT: hl_ipc_sleeper_post() stores .kept and what it did for the sleeper, then .state
 *	with release, then the group's word with release; hl_ipc_sleep() loads the word with
 *	acquire, then .state with acquire. Who sees the new word sees that it is awake; who saw
 *	the old one is refused by the kernel, or is asleep by then and is woken. Without it a
 *	sleeper misses its only call.
 * SLEEPER_SLOT: the owner clears its bit of .used with release when it has read .kept;
 *	hl_ipc_sleeper_take() sets it with acquire. Without it the next owner's fields are
 *	overtaken by the last one's reads.
 */
#include "sleep.h"

#include "clock.h"

/* Somebody comes by so often. */
#define SLICE_NS INT64_C(30000000)
#define LONGEST_SLICE_NS INT64_C(1000000000)

/* Slots that are given memory at once. */
#define POPULATED_AT_ONCE 64u

/* Makes sure, once in each process, that a slot and what is before it may be touched. */
static int populate(struct hl_ipc_object *object, struct hl_ipc_sleepers *sleepers, unsigned slot)
{
	unsigned known = atomic_load_explicit(&object->populated, memory_order_relaxed);
	unsigned n = (slot / POPULATED_AT_ONCE + 1) * POPULATED_AT_ONCE;
	const char *from = known ? (char *)&sleepers->slots[known] : (char *)sleepers->groups;
	int err;

	if (slot < known)
		return 0;
	err = hl_ipc_populate(object, (size_t)(from - (char *)object->perm),
			      (size_t)((char *)&sleepers->slots[n] - from));
	if (!err)
		atomic_store_explicit(&object->populated, n, memory_order_relaxed);
	return err;
}

int hl_ipc_sleeper_take(struct hl_ipc_object *object, struct hl_ipc_sleepers *sleepers)
{
	int word, err;

	for (word = 0; word < HL_IPC_SLEEPERS / 64; word++) {
		_Atomic(uint64_t) *place = &sleepers->used[word];
		uint64_t free = ~atomic_load_explicit(place, memory_order_relaxed);
		int slot;

		if (!free)
			continue;
		slot = word * 64 + __builtin_ctzll(free);
		err = populate(object, sleepers, (unsigned)slot);
		if (err)
			return err;
		/* SLEEPER_SLOT */
		atomic_fetch_or_explicit(place, free & -free, memory_order_acquire);
		return slot;
	}
	return -ENOMEM;
}

void hl_ipc_sleeper_begin(struct hl_ipc_sleepers *sleepers, int slot, struct hl_ipc_thread *thread)
{
	struct hl_ipc_sleeper *sleeper = &sleepers->slots[slot];
	uint64_t ticket = atomic_load_explicit(&sleepers->ticket, memory_order_relaxed);

	atomic_store_explicit(&sleepers->ticket, ticket + 1, memory_order_relaxed);
	atomic_store_explicit(&sleeper->ticket, ticket, memory_order_relaxed);
	atomic_store_explicit(&sleeper->pid, thread->pid, memory_order_relaxed);
	atomic_store_explicit(&sleeper->start, hl_ipc_self()->start, memory_order_relaxed);
	atomic_store_explicit(&sleeper->word, (uint32_t)thread->tid, memory_order_relaxed);
	atomic_store_explicit(&sleeper->state, HL_IPC_ASLEEP, memory_order_release);
}

void hl_ipc_unlock_to_sleep(struct hl_ipc_lock *lock, struct hl_ipc_holding *holding,
			    struct hl_ipc_sleepers *sleepers, int slot)
{
	/* In this order: a lock whose holder is gone is found out by those who want it. */
	hl_ipc_vouch(holding->thread, &sleepers->slots[slot].word);
	/* OBJECT_LOCK, in lock.c */
	atomic_store_explicit(&lock->word, 0, memory_order_release);
	holding->thread->held = holding->held_before;
}

/* How many have a slot below this one. */
static int rank(struct hl_ipc_sleepers *sleepers, int slot)
{
	int word, n = 0;

	for (word = 0; word < slot / 64; word++)
		n += __builtin_popcountll(
			atomic_load_explicit(&sleepers->used[word], memory_order_relaxed));
	return n + __builtin_popcountll(
			   atomic_load_explicit(&sleepers->used[word], memory_order_relaxed) &
			   ((UINT64_C(1) << slot % 64) - 1));
}

static bool is_awake(struct hl_ipc_sleeper *sleeper)
{
	/* SLEEPER_RESULT */
	return atomic_load_explicit(&sleeper->state, memory_order_acquire) != HL_IPC_ASLEEP;
}

enum hl_ipc_slept hl_ipc_sleep(struct hl_ipc_sleepers *sleepers, int slot, int64_t until)
{
	_Atomic(uint32_t) *word = &sleepers->groups[slot / HL_IPC_GROUP].word;
	struct hl_ipc_sleeper *sleeper = &sleepers->slots[slot];

	for (;;) {
		/* SLEEPER_RESULT */
		uint32_t seen = atomic_load_explicit(word, memory_order_acquire);
		int64_t now, slice = SLICE_NS * (1 + rank(sleepers, slot));
		struct timespec end;
		int err;

		if (is_awake(sleeper))
			return HL_IPC_SLEPT_AWAKE;
		now = hl_ipc_now();
		if (slice > LONGEST_SLICE_NS)
			slice = LONGEST_SLICE_NS;
		/* Always with an end: without one the kernel would not return for a signal whose
		 * handler was set with SA_RESTART. */
		end = hl_ipc_timespec(until - now < slice ? until : now + slice);
		err = hl_sys_futex_wait(word, seen, &end, UINT32_C(1) << slot % HL_IPC_GROUP);
		if (is_awake(sleeper))
			return HL_IPC_SLEPT_AWAKE;
		if (err == -EINTR)
			return HL_IPC_SLEPT_SIGNAL;
		if (err == -ETIMEDOUT)
			return hl_ipc_now() >= until ? HL_IPC_SLEPT_TIMEOUT : HL_IPC_SLEPT_SLICE;
	}
}

void hl_ipc_sleeper_free(struct hl_ipc_sleepers *sleepers, int slot)
{
	atomic_store_explicit(&sleepers->slots[slot].state, HL_IPC_FREE, memory_order_relaxed);
	/* SLEEPER_SLOT */
	atomic_fetch_and_explicit(&sleepers->used[slot / 64], ~(UINT64_C(1) << slot % 64),
				  memory_order_release);
}

static void note_wake(struct hl_ipc_wakes *wakes, int slot)
{
	int group = slot / HL_IPC_GROUP;
	uint64_t bit = UINT64_C(1) << group % 64;

	if (!(wakes->groups[group / 64] & bit)) {
		wakes->groups[group / 64] |= bit;
		wakes->bits[group] = 0;
	}
	wakes->bits[group] |= UINT32_C(1) << slot % HL_IPC_GROUP;
}

void hl_ipc_sleeper_post(struct hl_ipc_sleepers *sleepers, int slot, int32_t result,
			 struct hl_ipc_wakes *wakes)
{
	struct hl_ipc_sleeper *sleeper = &sleepers->slots[slot];
	_Atomic(uint32_t) *word = &sleepers->groups[slot / HL_IPC_GROUP].word;

	atomic_store_explicit(&sleeper->kept, 1 - result, memory_order_relaxed);
	/* SLEEPER_RESULT; the word changes under the lock alone. */
	atomic_store_explicit(&sleeper->state, HL_IPC_AWAKE, memory_order_release);
	atomic_store_explicit(word, atomic_load_explicit(word, memory_order_relaxed) + 1,
			      memory_order_release);
	note_wake(wakes, slot);
}

void hl_ipc_wake(struct hl_ipc_sleepers *sleepers, const struct hl_ipc_wakes *wakes)
{
	unsigned word;

	for (word = 0; word < HL_IPC_GROUPS / 64; word++) {
		uint64_t left = wakes->groups[word];

		for (; left; left &= left - 1) {
			unsigned group = word * 64 + (unsigned)__builtin_ctzll(left);

			hl_sys_futex_wake(&sleepers->groups[group].word, HL_IPC_GROUP,
					  wakes->bits[group]);
		}
	}
}

static bool is_dead(struct hl_ipc_sleeper *sleeper, bool thorough)
{
	uint32_t word = atomic_load_explicit(&sleeper->word, memory_order_relaxed);

	if (word & FUTEX_OWNER_DIED)
		return true;
	return thorough && !hl_ipc_thread_alive((int32_t)(word & FUTEX_TID_MASK));
}

void hl_ipc_sleepers_tend(struct hl_ipc_sleepers *sleepers, bool thorough,
			  struct hl_ipc_wakes *wakes)
{
	int slot;

	for (slot = hl_ipc_sleeper_next(sleepers, 0); slot < HL_IPC_SLEEPERS;
	     slot = hl_ipc_sleeper_next(sleepers, slot + 1)) {
		struct hl_ipc_sleeper *sleeper = &sleepers->slots[slot];

		if (is_dead(sleeper, thorough))
			hl_ipc_sleeper_free(sleepers, slot);
		else if (is_awake(sleeper))
			note_wake(wakes, slot);
	}
}
