/* SPDX-License-Identifier: MIT */
/*
 * msgsnd() and msgrcv().
 *
 * The caller's memory is touched without the lock: a text is copied from it before, and into it
 * afterwards, so that a fault in it leaves no lock behind.
 *
 * Locking: the queue's lock (perm.lock) is over everything in the queue, and is never held while a
 * process sleeps.
 */
#include "msg.h"

#include "clock.h"
#include "user.h"

#include <limits.h>

/* Turns of a spin: about as long as it takes to sleep and be woken. */
#define SPINS_MOST 512u
#define SPINS_LEAST 16u
#define SPINS_FIRST 128u
/* So many waits sleep at once before another one tries to spin. */
#define WAITS_WITHOUT 32u

/* One call, on its way. */
struct call {
	struct hl_ipc_object *object;
	int flags;
	/* A receiver's. */
	enum hl_msg_search search;
	int64_t type; /* also a sender's */
	uint32_t room;
	/* The message: sent, or received. */
	uint32_t size;
	char *text;
};

static uint64_t own(const struct hl_ipc_sleeper *sleeper, enum hl_msg_own which)
{
	return atomic_load_explicit(&sleeper->own[which], memory_order_relaxed);
}

static void set_own(struct hl_ipc_sleeper *sleeper, enum hl_msg_own which, uint64_t value)
{
	atomic_store_explicit(&sleeper->own[which], value, memory_order_relaxed);
}

static void note_time(_Atomic(int64_t) *at)
{
	int64_t now = hl_ipc_seconds();

	/* Stored only if it changes: the line stays where it is. */
	if (atomic_load_explicit(at, memory_order_relaxed) != now)
		atomic_store_explicit(at, now, memory_order_relaxed);
}

static int32_t own_pid(void)
{
	return atomic_load_explicit(&hl_ipc_self()->pid, memory_order_relaxed);
}

/* ---- Spinning ---- */

/*
 * Who has to wait first looks for a while whether the queue changes, if there are two processors. A
 * spin that was rewarded doubles the next one, one that was not halves it; when little is left the
 * next waits sleep at once, but for one in WAITS_WITHOUT.
 */
static unsigned spins_for(struct hl_ipc_object *object)
{
	uint64_t learnt = atomic_load_explicit(&object->own[1], memory_order_relaxed);
	unsigned spins = (uint32_t)learnt, waits = (uint32_t)(learnt >> 32);

	if (hl_ipc_self()->cpus < 2)
		return 0;
	if (!spins)
		return SPINS_FIRST;
	if (spins > SPINS_LEAST)
		return spins;
	if (waits >= WAITS_WITHOUT)
		return SPINS_FIRST;
	atomic_store_explicit(&object->own[1], (uint64_t)(waits + 1) << 32 | spins,
			      memory_order_relaxed);
	return 0;
}

/* Waits for a while for the queue to change. */
static bool spin(struct hl_ipc_object *object, uint32_t seen)
{
	struct hl_msg_queue *queue = hl_msg_queue(object);
	unsigned spins = spins_for(object), i;
	bool rewarded = false;

	for (i = 0; i < spins && !rewarded; i++) {
		hl_relax();
		rewarded = atomic_load_explicit(&queue->changes, memory_order_relaxed) != seen;
	}
	if (!spins)
		return false;
	spins = rewarded ? spins * 2 : spins / 2;
	if (spins > SPINS_MOST)
		spins = SPINS_MOST;
	if (spins < SPINS_LEAST)
		spins = SPINS_LEAST;
	atomic_store_explicit(&object->own[1], spins, memory_order_relaxed);
	return rewarded;
}

/* ---- The lock ---- */

int hl_msg_lock(struct hl_ipc_object *object, struct hl_ipc_holding *holding)
{
	enum hl_ipc_taken taken = hl_ipc_lock(&object->perm->lock, holding);
	struct hl_ipc_wakes wakes;

	if (__builtin_expect(taken == HL_IPC_TAKEN, 1))
		return 0;
	if (taken == HL_IPC_NOT_TAKEN)
		return -EINTR;
	hl_ipc_wakes_init(&wakes);
	hl_msg_mend(object, &wakes);
	hl_msg_serve(object, &wakes);
	hl_ipc_wake(&hl_msg_queue(object)->sleepers, &wakes);
	return 0;
}

void hl_msg_unlock(struct hl_ipc_object *object, struct hl_ipc_holding *holding)
{
	hl_ipc_unlock(&object->perm->lock, holding);
}

/* ---- Serving; under the lock ---- */

static uint32_t asleep(const struct hl_msg_queue *queue)
{
	return atomic_load_explicit(&queue->asleep, memory_order_relaxed);
}

static void set_asleep(struct hl_msg_queue *queue, uint32_t n)
{
	atomic_store_explicit(&queue->asleep, n, memory_order_relaxed);
}

static void post(struct hl_msg_queue *queue, int slot, int result, struct hl_ipc_wakes *wakes)
{
	uint32_t n = asleep(queue);

	hl_ipc_sleeper_post(&queue->sleepers, slot, result, wakes);
	set_asleep(queue, n ? n - 1 : 0);
}

static bool wants(const struct hl_ipc_sleeper *sleeper, int64_t type)
{
	int64_t wanted = (int64_t)own(sleeper, HL_MSG_TYPE);

	switch (own(sleeper, HL_MSG_KIND)) {
	case HL_MSG_ANY:
		return true;
	case HL_MSG_EQUAL:
		return type == wanted;
	case HL_MSG_OTHER:
		return type != wanted;
	case HL_MSG_LOWEST:
		return type <= wanted;
	default:
		return false;
	}
}

static bool fits(const struct hl_msg_queue *queue, uint32_t size)
{
	uint64_t most = atomic_load_explicit(&queue->most, memory_order_relaxed);
	uint64_t bytes = atomic_load_explicit(&queue->bytes, memory_order_relaxed);

	return bytes + size <= most &&
	       (uint64_t)atomic_load_explicit(&queue->n, memory_order_relaxed) + 1 <= most;
}

static uint32_t size_of(const struct hl_ipc_object *object, uint32_t ref)
{
	struct hl_msg_cell *cell = hl_msg_cell(object, ref);

	return cell ? atomic_load_explicit(&cell->size, memory_order_relaxed) : 0;
}

/*
 * The sleeper that has waited longest, from a ticket on, of the receivers of a type, or of the
 * senders for whose message there is room. -1: there is none.
 */
static int oldest(struct hl_ipc_object *object, bool sender, int64_t type, uint64_t *from)
{
	struct hl_msg_queue *queue = hl_msg_queue(object);
	struct hl_ipc_sleepers *sleepers = &queue->sleepers;
	uint64_t lowest = UINT64_MAX;
	int slot, found = -1;

	for (slot = hl_ipc_sleeper_next(sleepers, 0); slot < HL_IPC_SLEEPERS;
	     slot = hl_ipc_sleeper_next(sleepers, slot + 1)) {
		struct hl_ipc_sleeper *sleeper = &sleepers->slots[slot];
		uint64_t ticket = atomic_load_explicit(&sleeper->ticket, memory_order_relaxed);

		if (ticket < *from || ticket >= lowest || !hl_ipc_sleeper_asleep(sleepers, slot))
			continue;
		if (sender ? own(sleeper, HL_MSG_KIND) != HL_MSG_SENDER ||
				     !fits(queue,
					   size_of(object, (uint32_t)own(sleeper, HL_MSG_CELL)))
			   : !wants(sleeper, type))
			continue;
		lowest = ticket;
		found = slot;
	}
	*from = lowest;
	return found;
}

/* Gives a message to the receiver that has waited longest for such a one, if there is any. */
static bool give(struct hl_ipc_object *object, uint32_t ref, int64_t type,
		 struct hl_ipc_wakes *wakes)
{
	struct hl_msg_queue *queue = hl_msg_queue(object);
	uint32_t size = size_of(object, ref);
	unsigned rounds = HL_IPC_SLEEPERS;
	uint64_t from = 0;
	int slot;

	/* As many as there can be, whoever scribbles over the tickets. */
	while (rounds-- && (slot = oldest(object, false, type, &from)) >= 0) {
		struct hl_ipc_sleeper *sleeper = &queue->sleepers.slots[slot];
		uint64_t room = own(sleeper, HL_MSG_ROOM);

		from++;
		if (!(room & HL_MSG_CUT) && size > room) {
			post(queue, slot, -E2BIG, wakes);
			continue;
		}
		set_own(sleeper, HL_MSG_CELL, ref);
		/* LIST_IN: from here on the message is the receiver's. */
		atomic_signal_fence(memory_order_seq_cst);
		atomic_store_explicit(&queue->lrpid,
				      atomic_load_explicit(&sleeper->pid, memory_order_relaxed),
				      memory_order_relaxed);
		note_time(&queue->rtime);
		post(queue, slot, 0, wakes);
		return true;
	}
	return false;
}

/* A message that there is room for: to a receiver, or into the list. */
static void deliver(struct hl_ipc_object *object, uint32_t ref, int64_t type, int32_t pid,
		    struct hl_ipc_wakes *wakes)
{
	struct hl_msg_queue *queue = hl_msg_queue(object);

	if (!asleep(queue) || !give(object, ref, type, wakes))
		hl_msg_append(object, ref);
	atomic_store_explicit(&queue->lspid, pid, memory_order_relaxed);
	note_time(&queue->stime);
}

void hl_msg_serve(struct hl_ipc_object *object, struct hl_ipc_wakes *wakes)
{
	struct hl_msg_queue *queue = hl_msg_queue(object);
	unsigned rounds = HL_IPC_SLEEPERS;
	uint64_t from = 0;
	int slot;

	while (rounds-- && asleep(queue) && (slot = oldest(object, true, 0, &from)) >= 0) {
		struct hl_ipc_sleeper *sleeper = &queue->sleepers.slots[slot];
		uint32_t ref = (uint32_t)own(sleeper, HL_MSG_CELL);
		struct hl_msg_cell *cell = hl_msg_cell(object, ref);

		from++;
		if (cell)
			deliver(object, ref,
				atomic_load_explicit(&cell->type, memory_order_relaxed),
				atomic_load_explicit(&sleeper->pid, memory_order_relaxed), wakes);
		atomic_signal_fence(memory_order_seq_cst);
		set_own(sleeper, HL_MSG_CELL, 0);
		post(queue, slot, cell ? 0 : -EIDRM, wakes);
	}
}

void hl_msg_dismiss(struct hl_ipc_object *object, struct hl_ipc_wakes *wakes)
{
	struct hl_msg_queue *queue = hl_msg_queue(object);
	int slot;

	for (slot = hl_ipc_sleeper_next(&queue->sleepers, 0); slot < HL_IPC_SLEEPERS;
	     slot = hl_ipc_sleeper_next(&queue->sleepers, slot + 1))
		if (hl_ipc_sleeper_asleep(&queue->sleepers, slot))
			hl_ipc_sleeper_post(&queue->sleepers, slot, -EIDRM, wakes);
	set_asleep(queue, 0);
}

/* ---- Sleeping ---- */

/* Under the lock: the caller's slot, asleep from now on. The lock is given back. */
static int lie_down(const struct call *call, struct hl_ipc_holding *holding)
{
	struct hl_msg_queue *queue = hl_msg_queue(call->object);
	int slot = hl_ipc_sleeper_take(call->object, &queue->sleepers), err = 0;
	struct hl_ipc_sleeper *sleeper;
	uint32_t ref = 0;

	if (slot < 0)
		return slot;
	sleeper = &queue->sleepers.slots[slot];
	if (call->search == HL_MSG_SENDER) {
		ref = hl_msg_write(call->object, call->type, call->text, call->size, &err);
		if (!ref) {
			hl_ipc_sleeper_free(&queue->sleepers, slot);
			return err == -EAGAIN ? -ENOMEM : err;
		}
	}
	set_own(sleeper, HL_MSG_KIND, call->search);
	set_own(sleeper, HL_MSG_TYPE, (uint64_t)call->type);
	set_own(sleeper, HL_MSG_ROOM, call->room | (call->flags & MSG_NOERROR ? HL_MSG_CUT : 0));
	set_own(sleeper, HL_MSG_CELL, ref);
	hl_ipc_sleeper_begin(&queue->sleepers, slot, holding->thread);
	set_asleep(queue, asleep(queue) + 1);
	hl_ipc_unlock_to_sleep(&queue->perm.lock, holding, &queue->sleepers, slot);
	return slot;
}

/* Whether a slot was freed whose owner died with cells. */
static bool dead_with_cells(struct hl_ipc_sleepers *sleepers)
{
	int slot;

	for (slot = hl_ipc_sleeper_next(sleepers, 0); slot < HL_IPC_SLEEPERS;
	     slot = hl_ipc_sleeper_next(sleepers, slot + 1))
		if (atomic_load_explicit(&sleepers->slots[slot].word, memory_order_relaxed) &
			    FUTEX_OWNER_DIED &&
		    own(&sleepers->slots[slot], HL_MSG_CELL))
			return true;
	return false;
}

/* Looks after the dead, and who was not woken. */
static void tend(struct hl_ipc_object *object, struct hl_ipc_wakes *wakes)
{
	struct hl_msg_queue *queue = hl_msg_queue(object);
	uint32_t n = 0;
	int slot;

	if (dead_with_cells(&queue->sleepers)) {
		hl_msg_mend(object, wakes);
	} else {
		hl_ipc_sleepers_tend(&queue->sleepers, !hl_ipc_thread()->robust, wakes);
		for (slot = hl_ipc_sleeper_next(&queue->sleepers, 0); slot < HL_IPC_SLEEPERS;
		     slot = hl_ipc_sleeper_next(&queue->sleepers, slot + 1))
			n += hl_ipc_sleeper_asleep(&queue->sleepers, slot);
		set_asleep(queue, n);
	}
	hl_msg_serve(object, wakes);
}

/* Under the lock: what a sleeper was given, into call->text. */
static int collect(struct call *call, struct hl_ipc_sleeper *sleeper)
{
	uint32_t ref = (uint32_t)own(sleeper, HL_MSG_CELL);
	struct hl_msg_cell *cell = hl_msg_cell(call->object, ref);

	if (call->search == HL_MSG_SENDER)
		return 0;
	if (!cell)
		return -EIDRM;
	call->type = atomic_load_explicit(&cell->type, memory_order_relaxed);
	call->size = hl_msg_read(call->object, ref, call->text, call->room);
	set_own(sleeper, HL_MSG_CELL, 0);
	hl_msg_free(call->object, ref);
	return 0;
}

/* Under the lock: what a sleeper that gives up has left. */
static void take_back(struct call *call, struct hl_ipc_sleeper *sleeper)
{
	struct hl_msg_queue *queue = hl_msg_queue(call->object);
	uint32_t ref = (uint32_t)own(sleeper, HL_MSG_CELL), n = asleep(queue);

	set_own(sleeper, HL_MSG_CELL, 0);
	if (ref)
		hl_msg_free(call->object, ref);
	set_asleep(queue, n ? n - 1 : 0);
}

/* What comes of a sleep; -EBUSY: it goes on. */
static int look_after(struct call *call, int slot, enum hl_ipc_slept slept)
{
	struct hl_msg_queue *queue = hl_msg_queue(call->object);
	struct hl_ipc_sleeper *sleeper = &queue->sleepers.slots[slot];
	struct hl_ipc_holding holding;
	struct hl_ipc_wakes wakes;
	int result = -EBUSY;

	hl_ipc_wakes_init(&wakes);
	if (hl_msg_lock(call->object, &holding))
		return -EBUSY;
	if (slept == HL_IPC_SLEPT_SLICE && !hl_ipc_removed(call->object))
		tend(call->object, &wakes);
	if (atomic_load_explicit(&sleeper->state, memory_order_relaxed) != HL_IPC_ASLEEP) {
		result = hl_ipc_sleeper_result(&queue->sleepers, slot);
		if (!result)
			result = collect(call, sleeper);
	} else if (hl_ipc_removed(call->object)) {
		result = -EIDRM;
	} else if (slept == HL_IPC_SLEPT_SIGNAL) {
		take_back(call, sleeper);
		result = -EINTR;
	}
	if (result != -EBUSY)
		hl_ipc_sleeper_free(&queue->sleepers, slot);
	hl_msg_unlock(call->object, &holding);
	hl_ipc_wake(&queue->sleepers, &wakes);
	return result;
}

static int sleep_until_done(struct call *call, struct hl_ipc_holding *holding, int slot)
{
	struct hl_msg_queue *queue = hl_msg_queue(call->object);
	int result;

	do
		result = look_after(call, slot, hl_ipc_sleep(&queue->sleepers, slot, INT64_MAX));
	while (result == -EBUSY);
	hl_ipc_unvouch(holding->thread, holding->vouched_before);
	return result;
}

/* ---- Sending and receiving ---- */

/* Under the lock. -EAGAIN: there is no room. */
static int try_send(struct call *call, struct hl_ipc_wakes *wakes)
{
	int err = -EAGAIN;
	uint32_t ref;

	if (!fits(hl_msg_queue(call->object), call->size))
		return -EAGAIN;
	ref = hl_msg_write(call->object, call->type, call->text, call->size, &err);
	if (!ref)
		return err;
	deliver(call->object, ref, call->type, own_pid(), wakes);
	return 0;
}

/* Under the lock. -ENOMSG: there is none. */
static int try_receive(struct call *call, struct hl_ipc_wakes *wakes)
{
	struct hl_msg_queue *queue = hl_msg_queue(call->object);
	struct hl_msg_place place = hl_msg_search(call->object, call->search, call->type);
	struct hl_msg_cell *cell = hl_msg_cell(call->object, place.ref);
	uint32_t size;

	if (!cell)
		return -ENOMSG;
	size = size_of(call->object, place.ref);
	if (size > HL_MSG_MOST_BYTES)
		return -EIDRM;
	if (size > call->room && !(call->flags & MSG_NOERROR))
		return -E2BIG;
	if (call->flags & MSG_COPY && size > call->room)
		return -EINVAL;
	call->type = atomic_load_explicit(&cell->type, memory_order_relaxed);
	call->size = hl_msg_read(call->object, place.ref, call->text, call->room);
	if (call->flags & MSG_COPY)
		return 0;
	hl_msg_unlink(call->object, place);
	hl_msg_free(call->object, place.ref);
	atomic_store_explicit(&queue->lrpid, own_pid(), memory_order_relaxed);
	note_time(&queue->rtime);
	if (asleep(queue))
		hl_msg_serve(call->object, wakes);
	return 0;
}

static int carry_out(struct call *call)
{
	struct hl_msg_queue *queue = hl_msg_queue(call->object);
	int (*try)(struct call *, struct hl_ipc_wakes *) =
		call->search == HL_MSG_SENDER ? try_send : try_receive;
	int again = call->search == HL_MSG_SENDER ? -EAGAIN : -ENOMSG;
	struct hl_ipc_holding holding;
	struct hl_ipc_wakes wakes;
	bool may_spin = true;

	hl_ipc_wakes_init(&wakes);
	for (;;) {
		uint32_t changes;
		int err, slot;

		if (hl_msg_lock(call->object, &holding))
			return -EINTR;
		err = hl_ipc_removed(call->object) ? -EIDRM : try(call, &wakes);
		if (err != again || call->flags & IPC_NOWAIT) {
			hl_msg_unlock(call->object, &holding);
			hl_ipc_wake(&queue->sleepers, &wakes);
			return err;
		}
		if (may_spin) {
			changes = atomic_load_explicit(&queue->changes, memory_order_relaxed);
			hl_msg_unlock(call->object, &holding);
			may_spin = spin(call->object, changes);
			continue;
		}
		slot = lie_down(call, &holding);
		if (slot < 0) {
			hl_msg_unlock(call->object, &holding);
			return slot;
		}
		return sleep_until_done(call, &holding, slot);
	}
}

int hl_msg_snd(int id, const void *message, size_t bytes, int flags)
{
	const struct msgbuf_head {
		long type;
		char text[];
	} *user = message;
	char text[HL_MSG_MOST_BYTES];
	struct call call = { .flags = flags, .search = HL_MSG_SENDER, .text = text };
	int err;

	if (hl_user_readable(user, sizeof(user->type)))
		return -EFAULT;
	call.type = *(const volatile long *)&user->type;
	if (bytes > HL_MSG_MOST_BYTES || id < 0 || call.type < 1)
		return -EINVAL;
	if (bytes && hl_user_readable(user->text, bytes))
		return -EFAULT;
	__builtin_memcpy(text, user->text, bytes);
	call.size = (uint32_t)bytes;
	err = hl_ipc_find(HL_IPC_MSG, id, &call.object);
	if (!err && !hl_ipc_may(call.object, 02))
		err = -EACCES;
	return err ? err : carry_out(&call);
}

static enum hl_msg_search search_for(int64_t *type, int flags)
{
	if (flags & MSG_COPY)
		return HL_MSG_NUMBER;
	if (!*type)
		return HL_MSG_ANY;
	if (*type < 0) {
		*type = *type == LONG_MIN ? LONG_MAX : -*type;
		return HL_MSG_LOWEST;
	}
	return flags & MSG_EXCEPT ? HL_MSG_OTHER : HL_MSG_EQUAL;
}

ssize_t hl_msg_rcv(int id, void *message, size_t bytes, long type, int flags)
{
	struct msgbuf_head {
		long type;
		char text[];
	} *user = message;
	char text[HL_MSG_MOST_BYTES];
	struct call call = { .flags = flags, .type = type, .text = text };
	int err;

	if (id < 0 || (long)bytes < 0)
		return -EINVAL;
	if (flags & MSG_COPY && (flags & MSG_EXCEPT || !(flags & IPC_NOWAIT)))
		return -EINVAL;
	call.search = search_for(&call.type, flags);
	call.room = bytes < HL_MSG_MOST_BYTES ? (uint32_t)bytes : HL_MSG_MOST_BYTES;
	err = hl_ipc_find(HL_IPC_MSG, id, &call.object);
	if (!err && !hl_ipc_may(call.object, 04))
		err = -EACCES;
	if (!err && !call.object->writable)
		err = -EACCES;
	if (!err)
		err = carry_out(&call);
	if (err)
		return err;
	if (hl_user_writable(user, sizeof(user->type) + call.size))
		return -EFAULT;
	user->type = call.type;
	__builtin_memcpy(user->text, text, call.size);
	return (ssize_t)call.size;
}
