/* SPDX-License-Identifier: MIT */
/*
 * Transactions over the semaphores of a set.
 *
 * What is to be stored is first written down as changes, each of which names a semaphore, its new
 * word, and the new adjustment of a process if it has one; then .journal says how many there are,
 * which is the moment when the transaction has happened; then they are stored; then .journal is
 * 0 again. Whoever takes the lock from a dead process finds .journal 0, and nothing was done, or
 * stores the changes once more, which changes nothing if they were stored before.
 *
 * All under the set's lock. The stores need no order of their own but the program's: a process that
 * is killed has carried out what comes before the point where it was, and the fence keeps the
 * compiler from moving anything over the two points that matter.
 */
#include "sem.h"

#include "clock.h"

#include <limits.h>

/* In .journal: the changes are in the far place. */
#define FAR UINT32_C(0x80000000)
/* In object->own[1]: this process knows that there is memory in the far place. */
#define FAR_KNOWN (UINT64_C(1) << 63)

static struct hl_sem_change *far_changes(const struct hl_ipc_object *object)
{
	return (struct hl_sem_change *)((char *)object->perm + hl_sem_places(object->n).far);
}

/* Room for @n changes, or NULL: the file system is full. */
static struct hl_sem_change *room_for(struct hl_ipc_object *object, unsigned n)
{
	if (n <= HL_SEM_CHANGES_NEAR)
		return hl_sem_set(object)->near;
	if (!(atomic_load_explicit(&object->own[1], memory_order_relaxed) & FAR_KNOWN)) {
		if (hl_ipc_populate(object, hl_sem_places(object->n).far,
				    HL_SEM_MOST_OPS * sizeof(struct hl_sem_change)))
			return NULL;
		atomic_fetch_or_explicit(&object->own[1], FAR_KNOWN, memory_order_relaxed);
	}
	return far_changes(object);
}

/* Each field is read once, and checked: it is in the file. */
static void carry_out(struct hl_ipc_object *object, const volatile struct hl_sem_change *changes,
		      unsigned n)
{
	char *first = (char *)hl_sem_at(object, 0);
	size_t stride = hl_sem_stride(object->n);
	unsigned procs = hl_sem_procs(object), i;
	uint64_t sems = object->n;

	for (i = 0; i < n; i++) {
		unsigned sem = changes[i].sem, proc = changes[i].proc;

		if (sem >= sems)
			continue;
		if (proc && proc <= procs)
			atomic_store_explicit(hl_sem_undo(object, proc - 1, sem), changes[i].undo,
					      memory_order_relaxed);
		atomic_store_explicit(&((struct hl_sem *)(first + sem * stride))->word,
				      changes[i].word, memory_order_relaxed);
	}
}

static void post(struct hl_ipc_object *object, uint32_t sleeper, struct hl_ipc_wakes *wakes)
{
	if (sleeper && sleeper <= HL_IPC_SLEEPERS)
		hl_ipc_sleeper_post(hl_sem_sleepers(object), (int)sleeper - 1, 0, wakes);
}

/* The transaction happens here. */
static void decide(struct hl_ipc_object *object, const struct hl_sem_change *changes, unsigned n,
		   uint32_t sleeper, struct hl_ipc_wakes *wakes)
{
	struct hl_sem_set *set = hl_sem_set(object);
	uint32_t where = changes == set->near ? 0 : FAR;

	atomic_store_explicit(&set->sleeper, sleeper, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&set->journal, n | where, memory_order_release);
	atomic_signal_fence(memory_order_seq_cst);
	carry_out(object, changes, n);
	post(object, sleeper, wakes);
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&set->journal, 0, memory_order_release);
}

void hl_sem_replay(struct hl_ipc_object *object, struct hl_ipc_wakes *wakes)
{
	struct hl_sem_set *set = hl_sem_set(object);
	uint32_t journal = atomic_load_explicit(&set->journal, memory_order_acquire);
	uint32_t n = journal & ~FAR;
	const struct hl_sem_change *changes = journal & FAR ? far_changes(object) : set->near;

	if (n && n <= (journal & FAR ? HL_SEM_MOST_OPS : HL_SEM_CHANGES_NEAR)) {
		carry_out(object, changes, n);
		post(object, atomic_load_explicit(&set->sleeper, memory_order_relaxed), wakes);
	}
	atomic_store_explicit(&set->journal, 0, memory_order_release);
}

void hl_sem_store(struct hl_ipc_object *object, unsigned sem, uint64_t word, int proc, int undo)
{
	struct hl_sem_change *change = hl_sem_set(object)->near;

	if (proc < 0) {
		atomic_store_explicit(&hl_sem_at(object, sem)->word, word, memory_order_relaxed);
		return;
	}
	*change = (struct hl_sem_change){ .word = word,
					  .sem = (uint16_t)sem,
					  .undo = (int16_t)undo,
					  .proc = (uint16_t)(proc + 1) };
	decide(object, change, 1, 0, NULL);
}

/* What an operation makes of a value: 0, -EAGAIN or -ERANGE. */
static int apply(const struct sembuf *op, int *value)
{
	int result = *value + op->sem_op;

	if (!op->sem_op)
		return *value ? -EAGAIN : 0;
	if (result < 0)
		return -EAGAIN;
	if (result > HL_SEM_MOST_VALUE)
		return -ERANGE;
	*value = result;
	return 0;
}

/* The adjustment that an operation leaves: 0 or -ERANGE. */
static int adjust(const struct sembuf *op, int *undo)
{
	*undo -= op->sem_op;
	return *undo < SHRT_MIN || *undo > SHRT_MAX ? -ERANGE : 0;
}

static int load_undo(const struct hl_ipc_object *object, int proc, unsigned sem)
{
	return atomic_load_explicit(hl_sem_undo(object, (unsigned)proc, sem), memory_order_relaxed);
}

/* One operation for the calling thread: without adjustment, one store is enough. */
static inline struct hl_sem_try try_one(struct hl_ipc_object *object, const struct sembuf *op,
					int32_t pid, int proc)
{
	struct hl_sem *sem = hl_sem_at(object, op->sem_num);
	uint64_t word = hl_sem_hold(sem);
	int value = (int)hl_sem_value(word), undo = 0;
	struct hl_sem_try result = { .err = apply(op, &value) };

	if (!result.err && proc >= 0) {
		undo = load_undo(object, proc, op->sem_num);
		result.err = adjust(op, &undo);
	}
	if (result.err)
		return result;
	result.freed = op->sem_op > 0 || !value;
	hl_sem_store(object, op->sem_num, hl_sem_with(word, (unsigned)value, pid), proc, undo);
	return result;
}

/* The change of a semaphore among the @n there are, or NULL. */
static struct hl_sem_change *change_of(struct hl_sem_change *changes, unsigned n, unsigned sem)
{
	while (n--)
		if (changes[n].sem == sem)
			return &changes[n];
	return NULL;
}

/* Room for the change of one more semaphore; its word is in *@word. */
static struct hl_sem_change *begin_change(struct hl_ipc_object *object,
					  struct hl_sem_change *change, unsigned sem,
					  uint64_t *word)
{
	*word = hl_sem_hold(hl_sem_at(object, sem));
	change->sem = (uint16_t)sem;
	change->proc = 0;
	return change;
}

static int change_undo(const struct hl_ipc_object *object, struct hl_sem_change *change,
		       const struct sembuf *op, int proc)
{
	int undo = change->proc ? change->undo : load_undo(object, proc, op->sem_num);
	int err = adjust(op, &undo);

	change->undo = (int16_t)undo;
	change->proc = (uint16_t)(proc + 1);
	return err;
}

struct hl_sem_try hl_sem_try(struct hl_ipc_object *object, const struct sembuf *ops, unsigned n,
			     int32_t pid, int proc, int sleeper, struct hl_ipc_wakes *wakes)
{
	/* Who uses several at once wants them under the lock the next time as well. */
	uint64_t mine = HL_SEM_LOCKED | (uint64_t)(uint32_t)pid << HL_SEM_PID_SHIFT;
	struct hl_sem_try result = { 0 };
	struct hl_sem_change *changes;
	uint64_t met = 0; /* semaphores, modulo 64 */
	unsigned m = 0, i;

	if (n == 1 && sleeper < 0)
		return try_one(object, ops, pid, proc);
	changes = room_for(object, n);
	if (!changes)
		return (struct hl_sem_try){ .err = -ENOMEM };
	for (i = 0; i < n; i++) {
		const struct sembuf *op = &ops[i];
		uint64_t bit = UINT64_C(1) << op->sem_num % 64, word;
		struct hl_sem_change *change = NULL;
		int value;

		if (met & bit)
			change = change_of(changes, m, op->sem_num);
		if (change)
			word = change->word;
		else
			change = begin_change(object, &changes[m++], op->sem_num, &word);
		met |= bit;
		value = (int)hl_sem_value(word);
		result.err = apply(op, &value);
		if (!result.err && op->sem_flg & SEM_UNDO && op->sem_op)
			result.err = change_undo(object, change, op, proc);
		if (result.err) {
			result.blocked = i;
			return result;
		}
		result.freed |= op->sem_op > 0 || !value;
		change->word = mine | (unsigned)value;
	}
	decide(object, changes, m, (uint32_t)(sleeper + 1), wakes);
	return result;
}

int hl_sem_try_undo(struct hl_ipc_object *object, const struct sembuf *op, int32_t pid)
{
	uint64_t own = atomic_load_explicit(&object->own[0], memory_order_relaxed);
	struct hl_sem_set *set = hl_sem_set(object);
	struct hl_ipc_holding holding;
	int err = -EBUSY;

	if (own >> 32 != (uint32_t)pid || !(own & UINT32_MAX))
		return -EBUSY;
	if (!hl_ipc_lock_try(&set->perm.lock, &holding)) {
		hl_ipc_lock_forgo(&holding);
		return -EBUSY;
	}
	if (!atomic_load_explicit(&set->asleep, memory_order_relaxed) && !hl_ipc_removed(object))
		err = try_one(object, op, pid, (int)(own & UINT32_MAX) - 1).err;
	if (!err)
		hl_sem_note_time(hl_sem_at(object, op->sem_num), hl_ipc_seconds());
	hl_ipc_unlock(&set->perm.lock, &holding);
	return err;
}
