/* SPDX-License-Identifier: MIT */
/*
 * The adjustments of SEM_UNDO.
 *
 * A process that has adjustments in a set has a place in it, by its pid and the time it began, and a
 * row of one number a semaphore. exec changes neither, so that the new program goes on with them;
 * a child of fork has another pid. They are applied by the process itself when it exits, and by
 * whoever finds it dead (process.h): who would have to wait or reads a value looks first.
 *
 * Places and rows are written under the set's lock, and a row's numbers together with the
 * semaphore's word in one transaction. A place whose .pid is 0 has a row of zeroes.
 */
#include "sem.h"

#include "clock.h"

/* Sets in which this process has had a place, by their index. */
static _Atomic(int) lowest = HL_IPC_INDEXES, highest = -1;

static struct hl_sem_proc *proc_at(const struct hl_ipc_object *object, unsigned proc)
{
	return (struct hl_sem_proc *)object->fixed[HL_SEM_FIXED_PROCS] + proc;
}

static int load_undo(const struct hl_ipc_object *object, unsigned proc, unsigned sem)
{
	return atomic_load_explicit(hl_sem_undo(object, proc, sem), memory_order_relaxed);
}

static void note_index(int index)
{
	if (index < atomic_load_explicit(&lowest, memory_order_relaxed))
		atomic_store_explicit(&lowest, index, memory_order_relaxed);
	if (index > atomic_load_explicit(&highest, memory_order_relaxed))
		atomic_store_explicit(&highest, index, memory_order_relaxed);
}

/* What hl_sem_own_proc() looks at. */
static int remembered(const struct hl_ipc_object *object, int32_t pid)
{
	uint64_t own = atomic_load_explicit(&object->own[0], memory_order_relaxed);

	return own >> 32 == (uint32_t)pid ? (int)(own & UINT32_MAX) - 1 : -1;
}

static void remember(struct hl_ipc_object *object, int32_t pid, int proc)
{
	atomic_store_explicit(&object->own[0], (uint64_t)(uint32_t)pid << 32 | (uint32_t)(proc + 1),
			      memory_order_relaxed);
}

/* A place for the process, that it has or that is free; the number behind the last if neither. */
static unsigned look_for(const struct hl_ipc_object *object, int32_t pid, uint64_t start)
{
	unsigned n = hl_sem_procs(object), free = n, i;

	for (i = 0; i < n; i++) {
		struct hl_sem_proc *proc = proc_at(object, i);
		int32_t owner = atomic_load_explicit(&proc->pid, memory_order_relaxed);

		if (owner == pid &&
		    atomic_load_explicit(&proc->start, memory_order_relaxed) == start)
			return i;
		if (!owner && free == n)
			free = i;
	}
	return free;
}

int hl_sem_make_proc(struct hl_ipc_object *object)
{
	const struct hl_ipc_self *self = hl_ipc_self();
	int32_t pid = atomic_load_explicit(&self->pid, memory_order_relaxed);
	struct hl_sem_places at = hl_sem_places(object->n);
	struct hl_sem_proc *proc;
	unsigned i;

	i = look_for(object, pid, self->start);
	if (i >= at.most_procs)
		return -ENOSPC;
	if (hl_ipc_populate(object, at.procs + i * sizeof(*proc), sizeof(*proc)) ||
	    hl_ipc_populate(object, at.rows + i * at.row_bytes, at.row_bytes))
		return -ENOMEM;
	proc = proc_at(object, i);
	atomic_store_explicit(&proc->start, self->start, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&proc->pid, pid, memory_order_release);
	if (i >= hl_sem_procs(object))
		atomic_store_explicit(&hl_sem_set(object)->procs, i + 1, memory_order_release);
	remember(object, pid, (int)i);
	note_index(hl_ipc_index(object->id));
	return (int)i;
}

static bool has_undo(const struct hl_ipc_object *object, unsigned proc, int sem)
{
	unsigned i;

	if (sem == HL_SEM_OF_NONE)
		return true;
	if (sem >= 0)
		return load_undo(object, proc, (unsigned)sem) != 0;
	for (i = 0; i < object->n; i++)
		if (load_undo(object, proc, i))
			return true;
	return false;
}

bool hl_sem_find_dead(const struct hl_ipc_object *object, int sem, struct hl_sem_dead *dead)
{
	int32_t own = atomic_load_explicit(&hl_ipc_self()->pid, memory_order_relaxed);
	unsigned n = hl_sem_procs(object), i;

	dead->n = 0;
	for (i = 0; i < n && dead->n < HL_SEM_MOST_DEAD; i++) {
		struct hl_sem_proc *proc = proc_at(object, i);
		int32_t pid = atomic_load_explicit(&proc->pid, memory_order_acquire);
		uint64_t start = atomic_load_explicit(&proc->start, memory_order_relaxed);

		if (!pid || pid == own || !has_undo(object, i, sem) || hl_ipc_alive(pid, start))
			continue;
		dead->procs[dead->n] = i;
		dead->pids[dead->n] = pid;
		dead->starts[dead->n++] = start;
	}
	return dead->n;
}

static void apply_undo(struct hl_ipc_object *object, unsigned proc)
{
	struct hl_sem_proc *place = proc_at(object, proc);
	int32_t pid = atomic_load_explicit(&place->pid, memory_order_relaxed);
	bool any = false;
	unsigned i;

	for (i = 0; i < object->n; i++) {
		int undo = load_undo(object, proc, i), value;
		uint64_t word;

		if (!undo)
			continue;
		word = hl_sem_hold(hl_sem_at(object, i));
		value = (int)hl_sem_value(word) + undo;
		if (value < 0)
			value = 0;
		if (value > HL_SEM_MOST_VALUE)
			value = HL_SEM_MOST_VALUE;
		hl_sem_store(object, i, hl_sem_with(word, (unsigned)value, pid), (int)proc, 0);
		any = true;
	}
	if (any)
		hl_sem_note_time(hl_sem_at(object, 0), hl_ipc_seconds());
	atomic_store_explicit(&place->pid, 0, memory_order_release);
}

void hl_sem_bury(struct hl_ipc_object *object, const struct hl_sem_dead *dead)
{
	unsigned i;

	for (i = 0; i < dead->n; i++) {
		struct hl_sem_proc *proc = proc_at(object, dead->procs[i]);

		if (atomic_load_explicit(&proc->pid, memory_order_relaxed) == dead->pids[i] &&
		    atomic_load_explicit(&proc->start, memory_order_relaxed) == dead->starts[i])
			apply_undo(object, dead->procs[i]);
	}
}

void hl_sem_forget_undo(struct hl_ipc_object *object, unsigned sem)
{
	unsigned n = hl_sem_procs(object), i;

	for (i = 0; i < n; i++)
		if (load_undo(object, i, sem))
			atomic_store_explicit(hl_sem_undo(object, i, sem), 0, memory_order_relaxed);
}

static void leave(struct hl_ipc_object *object, int32_t pid)
{
	struct hl_ipc_holding holding;
	struct hl_ipc_wakes wakes;
	int proc = remembered(object, pid);

	if (proc < 0 || hl_ipc_removed(object) || hl_sem_lock(object, &holding))
		return;
	hl_ipc_wakes_init(&wakes);
	apply_undo(object, (unsigned)proc);
	remember(object, pid, -1);
	hl_sem_serve(object, &wakes);
	hl_sem_unlock(object, &holding);
	hl_ipc_wake(hl_sem_sleepers(object), &wakes);
}

/* exit(), by whichever thread is the last. Those who end in another way are found dead. */
__attribute__((destructor)) static void leave_all(void)
{
	int last = atomic_load_explicit(&highest, memory_order_relaxed), i;
	int32_t pid = atomic_load_explicit(&hl_ipc_self()->pid, memory_order_relaxed);

	for (i = atomic_load_explicit(&lowest, memory_order_relaxed); i <= last; i++) {
		struct hl_ipc_object *object =
			atomic_load_explicit(&hl_ipc_objects[HL_IPC_SEM][i], memory_order_acquire);

		if (object)
			leave(object, pid);
	}
}
