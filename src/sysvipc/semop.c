/* SPDX-License-Identifier: MIT */
/*
 * semop() and semtimedop().
 *
 * One operation on a free semaphore is one compare-and-swap on its word. All else is done under the
 * set's lock, which first takes the semaphores that it looks at out of the hands of the others
 * (HL_SEM_LOCKED). Who has to wait is served by whoever makes that possible, in the order in which
 * they came: a value that is given away is never fought for.
 *
 * Locking: the set's lock (perm.lock) is over everything in the set but the words of semaphores that
 * are free. It is never held while a process sleeps or is looked for in /proc.
 *
 * Memory ordering
 *
 * SEM_TURN: the compare-and-swap on a free semaphore's word is acquire and release: who takes what
 *	another gave sees what that one did before. Under the lock, the lock does that (OBJECT_LOCK).
 * SEM_HOLD: hl_sem_hold() sets HL_SEM_LOCKED with acquire, before the value is looked at; a
 *	compare-and-swap that comes later fails, one that came before is seen. Without it a sleeper
 *	misses the value that it waits for. The bit is cleared with release, when nobody sleeps.
 */
#include "sem.h"

#include "clock.h"
#include "user.h"

/* So many calls that need no lock, and a semaphore is free again. */
#define CALM_ENOUGH 16
/* Sleepers that are served in one pass, the oldest first. */
#define SERVED_AT_ONCE 64

/*
 * Spinning: who has to wait looks at the value for a while before it sleeps, if this process may run
 * on two processors. A spin that was rewarded doubles the next one, up to about as long as it takes
 * to sleep and be woken; one that was not halves it; when little is left the next waits sleep at
 * once, but for one in 32, which tries.
 */
#define SPINS_FIRST 128u
#define SPINS_MOST 512u
#define SPINS_LEAST 16u
#define WAITS_WITHOUT 32u
#define SPINS_MASK UINT64_C(0xffff)
#define WAITS_SHIFT 16
#define WAITS_MASK (UINT64_C(0xff) << WAITS_SHIFT)

/* One call, on its way. */
struct call {
	struct hl_ipc_object *object;
	const struct sembuf *ops;
	unsigned n;
	bool undo;
	int32_t pid;
	int64_t until; /* of hl_ipc_now(); INT64_MAX */
};

/* ---- What a sleeper waits for ---- */

/* .own[0] of its slot, with the first three operations behind; more are in the set's .ops. */
#define OPS_NEAR 3
#define WAIT_N_SHIFT 0
#define WAIT_SEM_SHIFT 16
#define WAIT_PROC_SHIFT 32
#define WAIT_ZERO (UINT64_C(1) << 48)

static uint64_t pack_op(const struct sembuf *op)
{
	return (uint64_t)op->sem_num << 32 | (uint64_t)(uint16_t)op->sem_op << 16 |
	       (uint16_t)op->sem_flg;
}

static struct sembuf unpack_op(uint64_t packed)
{
	return (struct sembuf){ .sem_num = (unsigned short)(packed >> 32),
				.sem_op = (short)(packed >> 16),
				.sem_flg = (short)packed };
}

static uint64_t wait_word(const struct sembuf *ops, unsigned n, unsigned blocked, int proc)
{
	return (uint64_t)n << WAIT_N_SHIFT | (uint64_t)ops[blocked].sem_num << WAIT_SEM_SHIFT |
	       (uint64_t)(proc + 1) << WAIT_PROC_SHIFT | (ops[blocked].sem_op ? 0 : WAIT_ZERO);
}

static size_t far_ops_at(const struct hl_ipc_object *object, int slot)
{
	return hl_sem_places(object->n).ops + (size_t)slot * HL_SEM_OPS_BYTES;
}

static _Atomic(uint64_t) *op_place(const struct hl_ipc_object *object, int slot, unsigned n,
				   unsigned i)
{
	if (n <= OPS_NEAR)
		return &hl_sem_sleepers(object)->slots[slot].own[1 + i];
	return (_Atomic(uint64_t) *)((char *)object->perm + far_ops_at(object, slot)) + i;
}

/* The operations of a sleeper, checked. Return: how many, 0: they make no sense. */
static unsigned read_ops(const struct hl_ipc_object *object, int slot, uint64_t wait,
			 struct sembuf ops[HL_SEM_MOST_OPS])
{
	unsigned n = wait >> WAIT_N_SHIFT & 0xffff, i;

	if (n > HL_SEM_MOST_OPS)
		return 0;
	for (i = 0; i < n; i++) {
		ops[i] = unpack_op(
			atomic_load_explicit(op_place(object, slot, n, i), memory_order_relaxed));
		if (ops[i].sem_num >= object->n)
			return 0;
	}
	return n;
}

static uint64_t wait_of(const struct hl_ipc_object *object, int slot)
{
	return atomic_load_explicit(&hl_sem_sleepers(object)->slots[slot].own[0],
				    memory_order_relaxed);
}

static unsigned waited_sem(uint64_t wait)
{
	return wait >> WAIT_SEM_SHIFT & 0xffff;
}

static int32_t sleeper_pid(const struct hl_ipc_object *object, int slot)
{
	return atomic_load_explicit(&hl_sem_sleepers(object)->slots[slot].pid,
				    memory_order_relaxed);
}

/* ---- Serving ---- */

/* Does it look as if the sleeper can go on? What it waited for has happened, or nearly. */
static bool may_go_on(const struct hl_ipc_object *object, int slot)
{
	uint64_t wait = wait_of(object, slot);
	unsigned n = wait >> WAIT_N_SHIFT & 0xffff, sem = waited_sem(wait), value;

	if (sem >= object->n)
		return true;
	value = hl_sem_value(
		atomic_load_explicit(&hl_sem_at(object, sem)->word, memory_order_relaxed));
	if (wait & WAIT_ZERO)
		return !value;
	if (n == 1) {
		struct sembuf op = unpack_op(
			atomic_load_explicit(op_place(object, slot, 1, 0), memory_order_relaxed));

		return (int)value + op.sem_op >= 0;
	}
	return value > 0;
}

struct candidate {
	uint64_t ticket;
	int slot;
};

/* Puts a sleeper where it belongs among those with the lowest tickets. */
static unsigned insert(struct candidate *list, unsigned n, struct candidate one)
{
	unsigned i = n < SERVED_AT_ONCE ? n : SERVED_AT_ONCE - 1;

	if (n == SERVED_AT_ONCE && list[n - 1].ticket <= one.ticket)
		return n;
	for (; i && list[i - 1].ticket > one.ticket; i--)
		list[i] = list[i - 1];
	list[i] = one;
	return n < SERVED_AT_ONCE ? n + 1 : n;
}

static unsigned collect(struct hl_ipc_object *object, struct candidate list[SERVED_AT_ONCE],
			uint64_t from)
{
	struct hl_ipc_sleepers *sleepers = hl_sem_sleepers(object);
	unsigned n = 0;
	int slot;

	for (slot = hl_ipc_sleeper_next(sleepers, 0); slot < HL_IPC_SLEEPERS;
	     slot = hl_ipc_sleeper_next(sleepers, slot + 1)) {
		struct candidate one = { .slot = slot };

		if (!hl_ipc_sleeper_asleep(sleepers, slot) || !may_go_on(object, slot))
			continue;
		one.ticket =
			atomic_load_explicit(&sleepers->slots[slot].ticket, memory_order_relaxed);
		if (one.ticket >= from)
			n = insert(list, n, one);
	}
	return n;
}

static void one_less_asleep(struct hl_ipc_object *object)
{
	struct hl_sem_set *set = hl_sem_set(object);
	uint32_t n = atomic_load_explicit(&set->asleep, memory_order_relaxed);

	atomic_store_explicit(&set->asleep, n ? n - 1 : 0, memory_order_relaxed);
}

/* Tries for a sleeper. Return: whether others may go on now who could not. */
static bool serve_one(struct hl_ipc_object *object, int slot, struct hl_ipc_wakes *wakes)
{
	struct hl_ipc_sleepers *sleepers = hl_sem_sleepers(object);
	uint64_t wait = wait_of(object, slot);
	struct sembuf ops[HL_SEM_MOST_OPS];
	unsigned n = read_ops(object, slot, wait, ops), i;
	int proc = (int)(wait >> WAIT_PROC_SHIFT & 0xffff) - 1;
	struct hl_sem_try result;

	for (i = 0; i < n; i++)
		if (ops[i].sem_flg & SEM_UNDO && ops[i].sem_op &&
		    (unsigned)proc >= hl_sem_procs(object))
			n = 0;
	/* Somebody scribbled. */
	if (!n) {
		hl_ipc_sleeper_post(sleepers, slot, -EIDRM, wakes);
		one_less_asleep(object);
		return false;
	}
	result = hl_sem_try(object, ops, n, sleeper_pid(object, slot), proc, slot, wakes);
	if (result.err == -EAGAIN && !(ops[result.blocked].sem_flg & IPC_NOWAIT)) {
		atomic_store_explicit(&sleepers->slots[slot].own[0],
				      wait_word(ops, n, result.blocked, proc),
				      memory_order_relaxed);
		return false;
	}
	if (result.err)
		hl_ipc_sleeper_post(sleepers, slot, result.err, wakes);
	else
		hl_sem_note_time(hl_sem_at(object, ops[0].sem_num), hl_ipc_seconds());
	one_less_asleep(object);
	return result.freed;
}

void hl_sem_serve(struct hl_ipc_object *object, struct hl_ipc_wakes *wakes)
{
	struct hl_sem_set *set = hl_sem_set(object);
	struct candidate list[SERVED_AT_ONCE];
	unsigned rounds = 2 * HL_IPC_SLEEPERS, n, i;
	uint64_t from = 0;

	/* Each round wakes somebody or is the last, as long as nobody scribbles. */
	while (rounds-- && atomic_load_explicit(&set->asleep, memory_order_relaxed)) {
		bool freed = false;

		n = collect(object, list, from);
		for (i = 0; i < n && !freed; i++)
			freed = serve_one(object, list[i].slot, wakes);
		/* From the first again, or behind those who were looked at. */
		if (freed)
			from = 0;
		else if (n == SERVED_AT_ONCE)
			from = list[n - 1].ticket + 1;
		else
			return;
	}
}

void hl_sem_recount(struct hl_ipc_object *object, struct hl_ipc_wakes *wakes)
{
	struct hl_ipc_sleepers *sleepers = hl_sem_sleepers(object);
	uint32_t n = 0;
	int slot;

	hl_ipc_sleepers_tend(sleepers, !hl_ipc_thread()->robust, wakes);
	for (slot = hl_ipc_sleeper_next(sleepers, 0); slot < HL_IPC_SLEEPERS;
	     slot = hl_ipc_sleeper_next(sleepers, slot + 1))
		n += hl_ipc_sleeper_asleep(sleepers, slot);
	atomic_store_explicit(&hl_sem_set(object)->asleep, n, memory_order_relaxed);
}

void hl_sem_dismiss(struct hl_ipc_object *object, struct hl_ipc_wakes *wakes)
{
	struct hl_ipc_sleepers *sleepers = hl_sem_sleepers(object);
	int slot;

	for (slot = hl_ipc_sleeper_next(sleepers, 0); slot < HL_IPC_SLEEPERS;
	     slot = hl_ipc_sleeper_next(sleepers, slot + 1))
		if (hl_ipc_sleeper_asleep(sleepers, slot))
			hl_ipc_sleeper_post(sleepers, slot, -EIDRM, wakes);
	atomic_store_explicit(&hl_sem_set(object)->asleep, 0, memory_order_relaxed);
}

unsigned hl_sem_count(struct hl_ipc_object *object, unsigned sem, bool zero)
{
	struct hl_ipc_sleepers *sleepers = hl_sem_sleepers(object);
	unsigned n = 0;
	int slot;

	for (slot = hl_ipc_sleeper_next(sleepers, 0); slot < HL_IPC_SLEEPERS;
	     slot = hl_ipc_sleeper_next(sleepers, slot + 1)) {
		uint64_t wait = wait_of(object, slot);

		n += hl_ipc_sleeper_asleep(sleepers, slot) && waited_sem(wait) == sem &&
		     !!(wait & WAIT_ZERO) == zero;
	}
	return n;
}

/* ---- The lock ---- */

int hl_sem_lock(struct hl_ipc_object *object, struct hl_ipc_holding *holding)
{
	enum hl_ipc_taken taken = hl_ipc_lock(&object->perm->lock, holding);
	struct hl_ipc_wakes wakes;

	if (__builtin_expect(taken == HL_IPC_TAKEN, 1))
		return 0;
	if (taken == HL_IPC_NOT_TAKEN)
		return -EINTR;
	hl_ipc_wakes_init(&wakes);
	hl_sem_replay(object, &wakes);
	hl_sem_recount(object, &wakes);
	/* It may have died before it served those whom its transaction lets go on. */
	hl_sem_serve(object, &wakes);
	hl_ipc_wake(hl_sem_sleepers(object), &wakes);
	return 0;
}

/* A semaphore that was used alone for a while is free again. */
static void calm_down(struct hl_ipc_object *object, unsigned i)
{
	struct hl_sem *sem = hl_sem_at(object, i);
	uint64_t word = atomic_load_explicit(&sem->word, memory_order_relaxed);

	if (atomic_load_explicit(&hl_sem_set(object)->asleep, memory_order_relaxed))
		return;
	if ((word & HL_SEM_CALM_MASK) >= CALM_ENOUGH * HL_SEM_CALM)
		word &= ~(HL_SEM_CALM_MASK | HL_SEM_LOCKED);
	else
		word += HL_SEM_CALM;
	/* SEM_HOLD */
	atomic_store_explicit(&sem->word, word, memory_order_release);
}

/* ---- Without the lock ---- */

/* -EAGAIN: it has to wait; -EBUSY: it needs the lock. */
static int try_free(struct hl_sem *sem, const struct sembuf *op, int32_t pid)
{
	uint64_t word = atomic_load_explicit(&sem->word, memory_order_acquire);

	for (;;) {
		int value = (int)hl_sem_value(word) + op->sem_op;
		uint64_t next;

		if (word & HL_SEM_LOCKED)
			return -EBUSY;
		if (value < 0 || (!op->sem_op && value))
			return -EAGAIN;
		if (value > HL_SEM_MOST_VALUE)
			return -ERANGE;
		next = hl_sem_with(word, (unsigned)value, pid);
		/* SEM_TURN; nothing to be changed: it was 0, and we have seen it. */
		if (next == word || atomic_compare_exchange_weak_explicit(&sem->word, &word, next,
									  memory_order_acq_rel,
									  memory_order_acquire)) {
			hl_sem_note_time(sem, hl_ipc_seconds());
			return 0;
		}
	}
}

/* ---- Spinning ---- */

static unsigned spins_for(struct hl_ipc_object *object)
{
	uint64_t own = atomic_load_explicit(&object->own[1], memory_order_relaxed);
	unsigned spins = own & SPINS_MASK, waits = (own & WAITS_MASK) >> WAITS_SHIFT;

	if (hl_ipc_self()->cpus < 2)
		return 0;
	/* Stored plus one, so that 0 is "never tried". */
	if (!spins)
		return SPINS_FIRST;
	if (spins > SPINS_LEAST)
		return spins - 1;
	if (waits + 1 < WAITS_WITHOUT) {
		atomic_store_explicit(&object->own[1],
				      (own & ~WAITS_MASK) | (uint64_t)(waits + 1) << WAITS_SHIFT,
				      memory_order_relaxed);
		return 0;
	}
	return SPINS_FIRST;
}

static void learn(struct hl_ipc_object *object, unsigned spins, bool rewarded)
{
	uint64_t own = atomic_load_explicit(&object->own[1], memory_order_relaxed);
	unsigned next = rewarded ? spins * 2 : spins / 2;

	if (next > SPINS_MOST)
		next = SPINS_MOST;
	if (next < SPINS_LEAST)
		next = SPINS_LEAST - 1;
	atomic_store_explicit(&object->own[1], (own & ~(SPINS_MASK | WAITS_MASK)) | (next + 1),
			      memory_order_relaxed);
}

/* Looks for a while whether an operation could be done. */
static bool spin(struct hl_ipc_object *object, const struct sembuf *op)
{
	struct hl_sem *sem = hl_sem_at(object, op->sem_num);
	unsigned spins = spins_for(object), i;

	for (i = 0; i < spins; i++) {
		int value =
			(int)hl_sem_value(atomic_load_explicit(&sem->word, memory_order_relaxed));

		if (op->sem_op ? value + op->sem_op >= 0 : !value) {
			learn(object, spins, true);
			return true;
		}
		hl_relax();
	}
	if (spins)
		learn(object, spins, false);
	return false;
}

/* ---- With it ---- */

static int write_ops(const struct call *call, int slot)
{
	unsigned i;

	if (call->n > OPS_NEAR &&
	    hl_ipc_populate(call->object, far_ops_at(call->object, slot), call->n * 8))
		return -ENOMEM;
	for (i = 0; i < call->n; i++)
		atomic_store_explicit(op_place(call->object, slot, call->n, i),
				      pack_op(&call->ops[i]), memory_order_relaxed);
	return 0;
}

/* Under the lock: the caller's slot, asleep from now on. The lock is given back. */
static int lie_down(const struct call *call, struct hl_ipc_holding *holding, unsigned blocked,
		    int proc)
{
	struct hl_ipc_sleepers *sleepers = hl_sem_sleepers(call->object);
	struct hl_sem_set *set = hl_sem_set(call->object);
	int slot = hl_ipc_sleeper_take(call->object, sleepers), err;

	if (slot < 0)
		return slot;
	err = write_ops(call, slot);
	if (err) {
		hl_ipc_sleeper_free(sleepers, slot);
		return err;
	}
	atomic_store_explicit(&sleepers->slots[slot].own[0],
			      wait_word(call->ops, call->n, blocked, proc), memory_order_relaxed);
	hl_ipc_sleeper_begin(sleepers, slot, holding->thread);
	atomic_store_explicit(&set->asleep,
			      atomic_load_explicit(&set->asleep, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	hl_ipc_unlock_to_sleep(&set->perm.lock, holding, sleepers, slot);
	return slot;
}

/* Looks after the dead and whoever can go on; under the lock. */
static void tend(struct hl_ipc_object *object, const struct hl_sem_dead *dead,
		 struct hl_ipc_wakes *wakes)
{
	hl_sem_bury(object, dead);
	hl_sem_recount(object, wakes);
	hl_sem_serve(object, wakes);
}

/*
 * What has to be done when the sleeper was not woken by anybody: what it is told, or -EBUSY: it
 * sleeps on.
 */
static int look_after(const struct call *call, int slot, enum hl_ipc_slept slept)
{
	struct hl_ipc_object *object = call->object;
	struct hl_ipc_sleepers *sleepers = hl_sem_sleepers(object);
	struct hl_ipc_sleeper *sleeper = &sleepers->slots[slot];
	struct hl_ipc_holding holding;
	struct hl_ipc_wakes wakes;
	struct hl_sem_dead dead;
	int result = -EBUSY;

	hl_ipc_wakes_init(&wakes);
	dead.n = 0;
	if (slept != HL_IPC_SLEPT_SIGNAL)
		hl_sem_find_dead(object, HL_SEM_OF_ANY, &dead);
	if (hl_sem_lock(object, &holding))
		return -EBUSY;
	if (slept != HL_IPC_SLEPT_SIGNAL && !hl_ipc_removed(object))
		tend(object, &dead, &wakes);
	if (atomic_load_explicit(&sleeper->state, memory_order_relaxed) != HL_IPC_ASLEEP) {
		result = hl_ipc_sleeper_result(sleepers, slot);
	} else if (hl_ipc_removed(object)) {
		result = -EIDRM;
	} else if (slept != HL_IPC_SLEPT_SLICE) {
		result = slept == HL_IPC_SLEPT_SIGNAL ? -EINTR : -EAGAIN;
		one_less_asleep(object);
	}
	if (result != -EBUSY)
		hl_ipc_sleeper_free(sleepers, slot);
	hl_sem_unlock(object, &holding);
	hl_ipc_wake(sleepers, &wakes);
	return result;
}

static int sleep_until_done(const struct call *call, int slot)
{
	struct hl_ipc_sleepers *sleepers = hl_sem_sleepers(call->object);
	int result;

	for (;;) {
		enum hl_ipc_slept slept = hl_ipc_sleep(sleepers, slot, call->until);

		if (slept == HL_IPC_SLEPT_AWAKE) {
			result = hl_ipc_sleeper_result(sleepers, slot);
			hl_ipc_sleeper_free(sleepers, slot);
			return result;
		}
		result = look_after(call, slot, slept);
		if (result != -EBUSY)
			return result;
	}
}

/* Under the lock, which is given back: the operations are done. */
static void done(const struct call *call, struct hl_ipc_holding *holding, bool freed)
{
	struct hl_ipc_object *object = call->object;
	struct hl_ipc_wakes wakes;

	hl_sem_note_time(hl_sem_at(object, call->ops[0].sem_num), hl_ipc_seconds());
	if (freed && atomic_load_explicit(&hl_sem_set(object)->asleep, memory_order_relaxed)) {
		hl_ipc_wakes_init(&wakes);
		hl_sem_serve(object, &wakes);
		hl_sem_unlock(object, holding);
		hl_ipc_wake(hl_sem_sleepers(object), &wakes);
		return;
	}
	if (call->n == 1 && !call->undo)
		calm_down(object, call->ops[0].sem_num);
	hl_sem_unlock(object, holding);
}

/* The number of this process in the set, under the lock; room is made if there is none. */
static int own_proc(struct hl_ipc_object *object, struct hl_ipc_holding *holding)
{
	int32_t pid = holding->thread->pid;
	int proc = hl_sem_own_proc(object, pid);
	struct hl_sem_dead dead;

	if (proc != -ENOSPC)
		return proc;
	hl_sem_unlock(object, holding);
	hl_sem_find_dead(object, HL_SEM_OF_NONE, &dead);
	if (hl_sem_lock(object, holding))
		return -EINTR;
	hl_sem_bury(object, &dead);
	return hl_sem_own_proc(object, pid);
}

/* Applies what dead processes owe to the semaphore. Return: whether there was any. */
static bool bury_for(struct hl_ipc_object *object, unsigned sem)
{
	struct hl_ipc_holding holding;
	struct hl_ipc_wakes wakes;
	struct hl_sem_dead dead;

	if (!hl_sem_find_dead(object, (int)sem, &dead) || hl_sem_lock(object, &holding))
		return false;
	hl_ipc_wakes_init(&wakes);
	tend(object, &dead, &wakes);
	hl_sem_unlock(object, &holding);
	hl_ipc_wake(hl_sem_sleepers(object), &wakes);
	return true;
}

/* Under the lock, which is given back. -EBUSY: once more. */
static int try_locked(const struct call *call, bool *may_spin)
{
	struct hl_ipc_object *object = call->object;
	struct hl_ipc_holding holding;
	struct hl_sem_try result;
	const struct sembuf *blocked;
	int proc = -1, slot, err;

	if (hl_sem_lock(object, &holding))
		return -EINTR;
	if (hl_ipc_removed(object)) {
		hl_sem_unlock(object, &holding);
		return -EINVAL;
	}
	if (call->undo) {
		proc = own_proc(object, &holding);
		if (proc < 0) {
			hl_sem_unlock(object, &holding);
			return proc;
		}
	}
	result = hl_sem_try(object, call->ops, call->n, call->pid, proc, -1, NULL);
	if (!result.err) {
		done(call, &holding, result.freed);
		return 0;
	}
	blocked = &call->ops[result.blocked];
	if (result.err != -EAGAIN || blocked->sem_flg & IPC_NOWAIT) {
		hl_sem_unlock(object, &holding);
		if (result.err == -EAGAIN && bury_for(object, blocked->sem_num))
			return -EBUSY;
		return result.err;
	}
	if (*may_spin) {
		hl_sem_unlock(object, &holding);
		*may_spin = spin(object, blocked);
		return -EBUSY;
	}
	slot = lie_down(call, &holding, result.blocked, proc);
	if (slot < 0) {
		hl_sem_unlock(object, &holding);
		return slot;
	}
	err = sleep_until_done(call, slot);
	hl_ipc_unvouch(holding.thread, holding.vouched_before);
	return err;
}

static int op_slowly(const struct call *call)
{
	const struct sembuf *op = call->ops;
	bool alone = call->n == 1 && !call->undo, may_spin = true;
	int err;

	for (;;) {
		if (alone) {
			err = try_free(hl_sem_at(call->object, op->sem_num), op, call->pid);
			if (err != -EBUSY && (err != -EAGAIN || op->sem_flg & IPC_NOWAIT)) {
				if (err == -EAGAIN && bury_for(call->object, op->sem_num))
					continue;
				return err;
			}
			if (err == -EAGAIN && may_spin) {
				may_spin = spin(call->object, op);
				if (may_spin)
					continue;
			}
		}
		err = try_locked(call, &may_spin);
		if (err != -EBUSY)
			return err;
	}
}

static int check_ops(struct call *call)
{
	unsigned alter = 0, i;

	for (i = 0; i < call->n; i++) {
		const struct sembuf *op = &call->ops[i];

		if (op->sem_num >= call->object->n)
			return -EFBIG;
		alter |= op->sem_op != 0;
		call->undo |= op->sem_op && op->sem_flg & SEM_UNDO;
	}
	return hl_ipc_may(call->object, alter ? 02 : 04) ? 0 : -EACCES;
}

static int op_many(int id, struct sembuf *user, size_t n, int64_t until)
{
	struct sembuf ops[HL_SEM_MOST_OPS];
	struct call call = { .ops = ops, .until = until };
	int err;

	if (n < 1 || id < 0)
		return -EINVAL;
	if (n > HL_SEM_MOST_OPS)
		return -E2BIG;
	if (hl_user_readable(user, n * sizeof(*user)))
		return -EFAULT;
	__builtin_memcpy(ops, user, n * sizeof(*user));
	call.n = (unsigned)n;
	call.pid = atomic_load_explicit(&hl_ipc_self()->pid, memory_order_relaxed);
	err = hl_ipc_find(HL_IPC_SEM, id, &call.object);
	if (!err)
		err = check_ops(&call);
	return err ? err : op_slowly(&call);
}

static int read_timeout(const struct timespec *timeout, int64_t *until)
{
	struct timespec t;
	int64_t now;

	if (hl_user_readable(timeout, sizeof(*timeout)))
		return -EFAULT;
	t = *timeout;
	if (t.tv_sec < 0 || t.tv_nsec < 0 || t.tv_nsec >= 1000000000)
		return -EINVAL;
	now = hl_ipc_now();
	*until = t.tv_sec > (INT64_MAX - now) / 1000000000 - 1
			 ? INT64_MAX
			 : now + t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
	return 0;
}

int hl_sem_op(int id, struct sembuf *ops, size_t n, const struct timespec *timeout)
{
	struct call call = { .until = INT64_MAX, .n = 1 };
	struct sembuf op;
	int err;

	if (timeout) {
		err = read_timeout(timeout, &call.until);
		if (err)
			return err;
	}
	if (n != 1)
		return op_many(id, ops, n, call.until);
	if (hl_user_readable(ops, sizeof(op)))
		return -EFAULT;
	op = *ops;
	err = hl_ipc_find(HL_IPC_SEM, id, &call.object);
	if (err)
		return err;
	if (op.sem_num >= call.object->n)
		return -EFBIG;
	if (!hl_ipc_may(call.object, op.sem_op ? 02 : 04))
		return -EACCES;
	call.pid = atomic_load_explicit(&hl_ipc_self()->pid, memory_order_relaxed);
	call.undo = op.sem_op && op.sem_flg & SEM_UNDO;
	err = call.undo ? hl_sem_try_undo(call.object, &op, call.pid)
			: try_free(hl_sem_at(call.object, op.sem_num), &op, call.pid);
	if (!err)
		return 0;
	call.ops = &op;
	return op_slowly(&call);
}
