/* SPDX-License-Identifier: MIT */
/*
 * Cells and the list of messages. All under the queue's lock.
 *
 * A process that is killed has carried out its stores up to the point where it was. The fences keep
 * the compiler from moving anything over the one store that adds a message (LIST_IN: what is in its
 * cells comes before) or takes it out (LIST_OUT: it is freed afterwards).
 */
#include "msg.h"

/* Cells that are given memory at once. */
#define POPULATED_AT_ONCE 256u

static uint32_t load(const _Atomic(uint32_t) *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

static void store(_Atomic(uint32_t) *word, uint32_t value)
{
	atomic_store_explicit(word, value, memory_order_relaxed);
}

struct hl_msg_cell *hl_msg_cell(const struct hl_ipc_object *object, uint32_t ref)
{
	if (__builtin_expect(!ref || ref > HL_MSG_CELLS, 0))
		return NULL;
	return (struct hl_msg_cell *)((char *)object->perm + HL_MSG_FIRST) + (ref - 1);
}

static uint32_t size_of(const struct hl_msg_cell *cell)
{
	uint32_t size = load(&cell->size);

	return size <= HL_MSG_MOST_BYTES ? size : HL_MSG_MOST_BYTES;
}

static unsigned cells_for(uint32_t size)
{
	return size <= HL_MSG_CELL_TEXT ? 1 : (size + HL_MSG_CELL_TEXT - 1) / HL_MSG_CELL_TEXT;
}

/* ---- Cells ---- */

/* One that was never used; 0, with *err: there is none, or no memory for it. */
static uint32_t take_fresh(struct hl_ipc_object *object, int *err)
{
	struct hl_msg_queue *queue = hl_msg_queue(object);
	uint32_t fresh = load(&queue->fresh);
	uint64_t known = atomic_load_explicit(&object->own[0], memory_order_relaxed);

	if (fresh >= HL_MSG_CELLS) {
		*err = -EAGAIN;
		return 0;
	}
	if (fresh >= known) {
		uint64_t upto = (fresh / POPULATED_AT_ONCE + 1) * POPULATED_AT_ONCE;

		*err = hl_ipc_populate(object, HL_MSG_FIRST + known * HL_MSG_CELL_BYTES,
				       (upto - known) * HL_MSG_CELL_BYTES);
		if (*err) {
			*err = -ENOMEM;
			return 0;
		}
		atomic_store_explicit(&object->own[0], upto, memory_order_relaxed);
	}
	store(&queue->fresh, fresh + 1);
	return fresh + 1;
}

static uint32_t take_cell(struct hl_ipc_object *object, int *err)
{
	struct hl_msg_queue *queue = hl_msg_queue(object);
	uint32_t ref = load(&queue->free);
	struct hl_msg_cell *cell = hl_msg_cell(object, ref);

	if (!cell)
		return take_fresh(object, err);
	store(&queue->free, load(&cell->more));
	return ref;
}

static void give_cell(struct hl_ipc_object *object, uint32_t ref)
{
	struct hl_msg_queue *queue = hl_msg_queue(object);
	struct hl_msg_cell *cell = hl_msg_cell(object, ref);

	if (!cell)
		return;
	store(&cell->more, load(&queue->free));
	store(&queue->free, ref);
}

/* The last cells of a text first, so that each knows the one behind it. */
uint32_t hl_msg_write(struct hl_ipc_object *object, int64_t type, const char *text, uint32_t size,
		      int *err)
{
	unsigned n = cells_for(size), i;
	uint32_t more = 0;

	for (i = n; i--;) {
		uint32_t from = i * HL_MSG_CELL_TEXT, ref = take_cell(object, err);
		struct hl_msg_cell *cell = hl_msg_cell(object, ref);

		if (!cell) {
			while (more) {
				uint32_t next = load(&hl_msg_cell(object, more)->more);

				give_cell(object, more);
				more = next;
			}
			return 0;
		}
		__builtin_memcpy(cell->text, text + from,
				 size - from < HL_MSG_CELL_TEXT ? size - from : HL_MSG_CELL_TEXT);
		store(&cell->more, more);
		store(&cell->size, size);
		more = ref;
	}
	atomic_store_explicit(&hl_msg_cell(object, more)->type, type, memory_order_relaxed);
	return more;
}

uint32_t hl_msg_read(const struct hl_ipc_object *object, uint32_t ref, char *text, uint32_t room)
{
	struct hl_msg_cell *cell = hl_msg_cell(object, ref);
	uint32_t size = cell ? size_of(cell) : 0, done;

	if (size > room)
		size = room;
	for (done = 0; done < size; done += HL_MSG_CELL_TEXT) {
		uint32_t left = size - done;

		if (!cell)
			return done;
		__builtin_memcpy(text + done, cell->text,
				 left < HL_MSG_CELL_TEXT ? left : HL_MSG_CELL_TEXT);
		cell = hl_msg_cell(object, load(&cell->more));
	}
	return size;
}

void hl_msg_free(struct hl_ipc_object *object, uint32_t ref)
{
	struct hl_msg_cell *cell = hl_msg_cell(object, ref);
	unsigned n = cell ? cells_for(size_of(cell)) : 0;

	for (; n && cell; n--) {
		uint32_t more = load(&cell->more);

		give_cell(object, ref);
		ref = more;
		cell = hl_msg_cell(object, ref);
	}
}

/* ---- The list ---- */

static void count(struct hl_msg_queue *queue, uint32_t n, uint64_t bytes)
{
	store(&queue->n, n);
	atomic_store_explicit(&queue->bytes, bytes, memory_order_relaxed);
	store(&queue->changes, load(&queue->changes) + 1);
}

void hl_msg_append(struct hl_ipc_object *object, uint32_t ref)
{
	struct hl_msg_queue *queue = hl_msg_queue(object);
	struct hl_msg_cell *cell = hl_msg_cell(object, ref);
	struct hl_msg_cell *last = hl_msg_cell(object, load(&queue->tail));

	store(&cell->next, 0);
	/* LIST_IN */
	atomic_signal_fence(memory_order_seq_cst);
	if (last && load(&queue->head))
		store(&last->next, ref);
	else
		store(&queue->head, ref);
	atomic_signal_fence(memory_order_seq_cst);
	store(&queue->tail, ref);
	count(queue, load(&queue->n) + 1,
	      atomic_load_explicit(&queue->bytes, memory_order_relaxed) + size_of(cell));
}

void hl_msg_unlink(struct hl_ipc_object *object, struct hl_msg_place place)
{
	struct hl_msg_queue *queue = hl_msg_queue(object);
	struct hl_msg_cell *cell = hl_msg_cell(object, place.ref);
	struct hl_msg_cell *before = hl_msg_cell(object, place.before);
	uint64_t bytes = atomic_load_explicit(&queue->bytes, memory_order_relaxed);
	uint32_t n = load(&queue->n), size = size_of(cell);

	store(before ? &before->next : &queue->head, load(&cell->next));
	/* LIST_OUT */
	atomic_signal_fence(memory_order_seq_cst);
	if (load(&queue->tail) == place.ref)
		store(&queue->tail, place.before);
	count(queue, n ? n - 1 : 0, bytes > size ? bytes - size : 0);
}

static bool matches(enum hl_msg_search search, int64_t wanted, int64_t type)
{
	switch (search) {
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

struct hl_msg_place hl_msg_search(const struct hl_ipc_object *object, enum hl_msg_search search,
				  int64_t wanted)
{
	struct hl_msg_place at = { .ref = load(&hl_msg_queue(object)->head) }, found = { 0 };
	int64_t number = search == HL_MSG_NUMBER ? wanted : -1;
	unsigned steps = HL_MSG_CELLS;
	struct hl_msg_cell *cell;

	for (; (cell = hl_msg_cell(object, at.ref)) && steps; steps--) {
		int64_t type = atomic_load_explicit(&cell->type, memory_order_relaxed);

		if (search == HL_MSG_NUMBER ? !number-- : matches(search, wanted, type)) {
			found = at;
			if (search != HL_MSG_LOWEST || type <= 1)
				return found;
			wanted = type - 1;
		}
		at.before = at.ref;
		at.ref = load(&cell->next);
	}
	return found;
}

/* ---- Mending ---- */

struct marks {
	uint64_t word[HL_MSG_CELLS / 64];
};

static bool marked(const struct marks *marks, uint32_t ref)
{
	return marks->word[(ref - 1) / 64] >> (ref - 1) % 64 & 1;
}

static void mark(struct marks *marks, uint32_t ref)
{
	marks->word[(ref - 1) / 64] |= UINT64_C(1) << (ref - 1) % 64;
}

/* Marks all cells of a message. False: it is none, or one of its cells is another's. */
static bool mark_message(const struct hl_ipc_object *object, struct marks *marks, uint32_t ref,
			 uint32_t fresh)
{
	struct hl_msg_cell *cell = hl_msg_cell(object, ref);
	unsigned n, i;
	uint32_t at = ref;

	if (!cell || load(&cell->size) > HL_MSG_MOST_BYTES)
		return false;
	n = cells_for(size_of(cell));
	for (i = 0; i < n; i++) {
		if (!at || at > fresh || marked(marks, at))
			return false;
		at = load(&hl_msg_cell(object, at)->more);
	}
	for (at = ref, i = 0; i < n; i++) {
		/* A chain in a circle ends here as well. */
		if (marked(marks, at))
			return false;
		mark(marks, at);
		at = load(&hl_msg_cell(object, at)->more);
		if (i + 1 < n && (!at || at > fresh))
			return false;
	}
	return true;
}

/* The list up to the first message that is none. */
static void mend_list(struct hl_ipc_object *object, struct marks *marks, uint32_t fresh)
{
	struct hl_msg_queue *queue = hl_msg_queue(object);
	_Atomic(uint32_t) *link = &queue->head;
	uint32_t last = 0, n = 0, ref;
	uint64_t bytes = 0;

	while ((ref = load(link)) != 0) {
		struct hl_msg_cell *cell = hl_msg_cell(object, ref);

		if (!mark_message(object, marks, ref, fresh)) {
			store(link, 0);
			break;
		}
		bytes += size_of(cell);
		n++;
		last = ref;
		link = &cell->next;
	}
	store(&queue->tail, last);
	count(queue, n, bytes);
}

/* What sleepers have in their slots; who was served and not told is told. */
static void mend_slots(struct hl_ipc_object *object, struct marks *marks, uint32_t fresh,
		       struct hl_ipc_wakes *wakes)
{
	struct hl_ipc_sleepers *sleepers = &hl_msg_queue(object)->sleepers;
	uint32_t asleep = 0;
	int slot;

	for (slot = hl_ipc_sleeper_next(sleepers, 0); slot < HL_IPC_SLEEPERS;
	     slot = hl_ipc_sleeper_next(sleepers, slot + 1)) {
		struct hl_ipc_sleeper *sleeper = &sleepers->slots[slot];
		uint64_t cell =
			atomic_load_explicit(&sleeper->own[HL_MSG_CELL], memory_order_relaxed);
		bool sender = atomic_load_explicit(&sleeper->own[HL_MSG_KIND],
						   memory_order_relaxed) == HL_MSG_SENDER;
		bool whole = cell && cell <= fresh &&
			     mark_message(object, marks, (uint32_t)cell, fresh);

		if (cell && !whole)
			atomic_store_explicit(&sleeper->own[HL_MSG_CELL], 0, memory_order_relaxed);
		if (!hl_ipc_sleeper_asleep(sleepers, slot))
			continue;
		/* A sender's is in the list; a receiver has one. */
		if (sender ? !whole : whole)
			hl_ipc_sleeper_post(sleepers, slot, 0, wakes);
		else
			asleep++;
	}
	store(&hl_msg_queue(object)->asleep, asleep);
}

void hl_msg_mend(struct hl_ipc_object *object, struct hl_ipc_wakes *wakes)
{
	struct hl_msg_queue *queue = hl_msg_queue(object);
	uint32_t fresh = load(&queue->fresh), free = 0, ref;
	struct marks marks = { 0 };

	if (fresh > HL_MSG_CELLS)
		fresh = HL_MSG_CELLS;
	/* The dead first: what they were given is free. */
	hl_ipc_sleepers_tend(&queue->sleepers, !hl_ipc_thread()->robust, wakes);
	mend_list(object, &marks, fresh);
	mend_slots(object, &marks, fresh, wakes);
	for (ref = fresh; ref; ref--) {
		if (marked(&marks, ref))
			continue;
		store(&hl_msg_cell(object, ref)->more, free);
		free = ref;
	}
	store(&queue->free, free);
	store(&queue->fresh, fresh);
}
