/* SPDX-License-Identifier: MIT */
/*
 * Semaphores: what a set's file holds, and what its parts do for each other.
 *
 * A semaphore is one word: its value, the process that changed it last, and whether it is free, so
 * that whoever changes it alone does so with one compare-and-swap and needs no lock, or whether
 * it changes under the set's lock alone (HL_SEM_LOCKED): while somebody sleeps in the set, and as
 * long as it is used with others in one call or with undo.
 *
 *	sem.c		the file, IPC_CREAT
 *	semop.c		operations, and who sleeps
 *	semtry.c	one transaction over some semaphores, and its journal
 *	semundo.c	the processes that have adjustments, and what becomes of them
 *	semctl.c	semctl()
 */
#ifndef HL_SYSVIPC_SEM_H
#define HL_SYSVIPC_SEM_H

#include <sys/sem.h>

#include "object.h"
#include "sleep.h"

#define HL_SEM_MOST 32000 /* SEMMSL: in a set */
#define HL_SEM_MOST_OPS 500 /* SEMOPM: in a call */
#define HL_SEM_MOST_VALUE 32767 /* SEMVMX */

/*
 * Up to so many semaphores each has a line of its own: 64 bytes instead of 16, 16 KB for the
 * largest such set. In a larger set four share a line.
 */
#define HL_SEM_APART 256

/* The word: bits 0 to 15 the value, 16 HL_SEM_LOCKED, 17 to 23 calm, 32 to 63 the pid. */
#define HL_SEM_VALUE UINT64_C(0xffff)
#define HL_SEM_LOCKED (UINT64_C(1) << 16)
#define HL_SEM_CALM (UINT64_C(1) << 17) /* one call that would not have needed the lock */
#define HL_SEM_CALM_MASK (UINT64_C(0x7f) << 17)
#define HL_SEM_PID_SHIFT 32

struct hl_sem {
	/* Written by every operation on the semaphore. */
	_Atomic(uint64_t) word;
	_Atomic(int64_t) otime;
};

/* One semaphore's part of a transaction: what is to be stored where. */
struct hl_sem_change {
	uint64_t word;
	uint16_t sem;
	int16_t undo;
	uint16_t proc; /* whose adjustment becomes .undo: one more than its number; 0: none */
	uint16_t unused;
};

/* In the set; more are in a place that is touched only then. */
#define HL_SEM_CHANGES_NEAR 20

/* A process with adjustments. */
struct hl_sem_proc {
	/* Under the lock. .pid 0: free, and then its adjustments are all 0. */
	_Atomic(int32_t) pid;
	uint32_t unused;
	_Atomic(uint64_t) start;
};

struct hl_sem_set {
	struct hl_ipc_perm perm;

	/* All of it is written under the lock. */
	HL_CACHELINE_GROUP_BEGIN(transaction) HL_IPC_OWN_LINE;
	_Atomic(uint32_t) journal; /* so many changes are to be carried out, come what may */
	_Atomic(uint32_t) sleeper; /* one more than the slot whose sleeper they were made for */
	_Atomic(uint32_t) asleep; /* sleepers that nobody has woken */
	_Atomic(uint32_t) procs; /* behind the last that is in use */
	struct hl_sem_change near[HL_SEM_CHANGES_NEAR];
	HL_CACHELINE_GROUP_END(transaction);
};

/* Where things are in a file of @n semaphores, behind struct hl_sem_set. */
struct hl_sem_places {
	size_t stride; /* from one semaphore to the next */
	size_t sleepers;
	size_t procs;
	size_t most_procs;
	size_t far; /* changes */
	size_t ops; /* of the sleepers that wait with many */
	size_t rows; /* adjustments, a row a process */
	size_t row_bytes;
	size_t bytes;
};

static inline size_t hl_sem_up(size_t n, size_t to)
{
	return (n + to - 1) & ~(to - 1);
}

static inline size_t hl_sem_stride(uint64_t n)
{
	return n <= HL_SEM_APART ? HL_CACHE_LINE : sizeof(struct hl_sem);
}

#define HL_SEM_FIRST hl_sem_up(sizeof(struct hl_sem_set), HL_CACHE_LINE)
/* Operations of a sleeper: 8 bytes each. */
#define HL_SEM_OPS_BYTES ((size_t)HL_SEM_MOST_OPS * 8)

struct hl_sem_places hl_sem_places(uint64_t n);

/* What of it is in object->fixed. */
enum {
	HL_SEM_FIXED_ROWS,
	HL_SEM_FIXED_ROW_BYTES,
	HL_SEM_FIXED_PROCS,
	HL_SEM_FIXED_MOST_PROCS,
};

static inline struct hl_sem_set *hl_sem_set(const struct hl_ipc_object *object)
{
	return (struct hl_sem_set *)object->perm;
}

/* @i is below object->n. */
static inline struct hl_sem *hl_sem_at(const struct hl_ipc_object *object, unsigned i)
{
	return (struct hl_sem *)((char *)object->perm + HL_SEM_FIRST +
				 i * hl_sem_stride(object->n));
}

static inline struct hl_ipc_sleepers *hl_sem_sleepers(const struct hl_ipc_object *object)
{
	size_t at = hl_sem_up(HL_SEM_FIRST + object->n * hl_sem_stride(object->n), HL_CACHE_LINE);

	return (struct hl_ipc_sleepers *)((char *)object->perm + at);
}

static inline unsigned hl_sem_value(uint64_t word)
{
	return word & HL_SEM_VALUE;
}

static inline uint64_t hl_sem_with(uint64_t word, unsigned value, int32_t pid)
{
	return (word & (HL_SEM_LOCKED | HL_SEM_CALM_MASK)) | value |
	       (uint64_t)(uint32_t)pid << HL_SEM_PID_SHIFT;
}

/* Stored only if it changes: a line that all only read stays where it is. */
static inline void hl_sem_note_time(struct hl_sem *sem, int64_t seconds)
{
	if (atomic_load_explicit(&sem->otime, memory_order_relaxed) != seconds)
		atomic_store_explicit(&sem->otime, seconds, memory_order_relaxed);
}

/* semop.c */

/*
 * hl_sem_lock - the set's lock, with all in order behind it
 *
 * A transaction that a dead process had decided on is carried out first.
 * Return: 0, or -EINTR: the calling signal handler has interrupted the holder.
 */
int hl_sem_lock(struct hl_ipc_object *object, struct hl_ipc_holding *holding);

static inline void hl_sem_unlock(struct hl_ipc_object *object, struct hl_ipc_holding *holding)
{
	hl_ipc_unlock(&object->perm->lock, holding);
}

/* Takes the semaphore out of the hands of those without the lock. Its word, which stays. */
static inline uint64_t hl_sem_hold(struct hl_sem *sem)
{
	uint64_t word = atomic_load_explicit(&sem->word, memory_order_relaxed);

	if (!(word & HL_SEM_LOCKED))
		word = atomic_fetch_or_explicit(&sem->word, HL_SEM_LOCKED, memory_order_acquire) |
		       HL_SEM_LOCKED;
	return word;
}

/* semtry.c; under the lock. */

/* What a transaction did or why it did not. */
struct hl_sem_try {
	int err; /* 0: done; -EAGAIN: it has to wait; -ERANGE */
	unsigned blocked; /* the operation that has to wait */
	bool freed; /* a value rose or became 0: others may go on */
};

/*
 * hl_sem_try - carries out @n operations, or none of them
 * @proc: whose adjustments they change, or -1
 * @sleeper: the slot whose sleeper they are for, or -1
 *
 * Every .sem_num is below object->n.
 */
struct hl_sem_try hl_sem_try(struct hl_ipc_object *object, const struct sembuf *ops, unsigned n,
			     int32_t pid, int proc, int sleeper, struct hl_ipc_wakes *wakes);

/*
 * hl_sem_try_undo - one operation with an adjustment, if the lock is free and nobody sleeps
 *
 * Without the lock. Return: 0, or any error: it has to be done the long way.
 */
int hl_sem_try_undo(struct hl_ipc_object *object, const struct sembuf *op, int32_t pid);

/* Stores a word and an adjustment, both or neither. @proc: or -1. */
void hl_sem_store(struct hl_ipc_object *object, unsigned sem, uint64_t word, int proc, int undo);

/* Carries out what the journal holds. */
void hl_sem_replay(struct hl_ipc_object *object, struct hl_ipc_wakes *wakes);

/* semundo.c; under the lock. */

/* @proc is below hl_sem_procs(), @sem below object->n. */
static inline _Atomic(int16_t) *hl_sem_undo(const struct hl_ipc_object *object, unsigned proc,
					    unsigned sem)
{
	return (_Atomic(int16_t) *)(object->fixed[HL_SEM_FIXED_ROWS] +
				    proc * object->fixed[HL_SEM_FIXED_ROW_BYTES]) +
	       sem;
}

static inline unsigned hl_sem_procs(const struct hl_ipc_object *object)
{
	uint32_t n = atomic_load_explicit(&hl_sem_set(object)->procs, memory_order_relaxed);

	return n < object->fixed[HL_SEM_FIXED_MOST_PROCS]
		       ? n
		       : (unsigned)object->fixed[HL_SEM_FIXED_MOST_PROCS];
}

/* The slow half of hl_sem_own_proc(). */
int hl_sem_make_proc(struct hl_ipc_object *object);

/* The calling process's number, which it is given if it has none. -ENOSPC: there are too many. */
static inline int hl_sem_own_proc(struct hl_ipc_object *object, int32_t pid)
{
	/* The number plus one, with the pid of the process whose it is. */
	uint64_t own = atomic_load_explicit(&object->own[0], memory_order_relaxed);

	if (__builtin_expect(own >> 32 == (uint32_t)pid && (own & UINT32_MAX), 1))
		return (int)(own & UINT32_MAX) - 1;
	return hl_sem_make_proc(object);
}

/* Processes that have died, found without the lock. */
#define HL_SEM_MOST_DEAD 64
struct hl_sem_dead {
	unsigned n;
	unsigned procs[HL_SEM_MOST_DEAD];
	int32_t pids[HL_SEM_MOST_DEAD];
	uint64_t starts[HL_SEM_MOST_DEAD];
};

/* For hl_sem_find_dead(), in place of a semaphore. */
#define HL_SEM_OF_ANY (-1)
#define HL_SEM_OF_NONE (-2) /* also those whose adjustments are all 0 */

/*
 * hl_sem_find_dead - which processes with adjustments have died?
 * @sem: of this semaphore, or one of the above
 *
 * Without the lock; asks the system about each. Return: whether there is one.
 */
bool hl_sem_find_dead(const struct hl_ipc_object *object, int sem, struct hl_sem_dead *dead);

/* Applies their adjustments, unless somebody has. */
void hl_sem_bury(struct hl_ipc_object *object, const struct hl_sem_dead *dead);

/* Forgets all adjustments of a semaphore. */
void hl_sem_forget_undo(struct hl_ipc_object *object, unsigned sem);

/* semop.c; under the lock. */

/* Lets everybody go on who can, in the order in which they came. */
void hl_sem_serve(struct hl_ipc_object *object, struct hl_ipc_wakes *wakes);

/* Counts anew who sleeps, without the dead, and wakes again who may have missed it. */
void hl_sem_recount(struct hl_ipc_object *object, struct hl_ipc_wakes *wakes);

/* Wakes everybody with an error. */
void hl_sem_dismiss(struct hl_ipc_object *object, struct hl_ipc_wakes *wakes);

/* How many wait for a semaphore to rise (@zero false) or to become 0. */
unsigned hl_sem_count(struct hl_ipc_object *object, unsigned sem, bool zero);

/* The system calls, with negative errno values. */
int hl_sem_get(key_t key, int n, int flags);
int hl_sem_op(int id, struct sembuf *ops, size_t n, const struct timespec *timeout);
int hl_sem_ctl(int id, int sem, int command, void *arg);

extern const struct hl_ipc_kind hl_sem_kind;

#endif
