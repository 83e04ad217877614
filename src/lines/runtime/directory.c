// SPDX-License-Identifier: MIT
/*
 * The directory: what becomes of an access that is no plain hit.
 */
#include "runtime.h"

#include <errno.h>
#include <sys/mman.h>

struct geometry hl_line = { .shift = 6, .mask = 63 };
struct cell *hl_cells;
struct watched *hl_watched;
_Atomic uint32_t hl_n_watched = 1;

/* Parts of lines are looked up, and watched lines made, by one thread at a time. */
static pthread_mutex_t watching = PTHREAD_MUTEX_INITIALIZER;

/* Cells for 47 bits of addresses. */
#define CELLS_BYTES ((sizeof(struct cell) << 47) >> 6)

static void *reserve(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		return NULL;
	/* A large page would make a little-used table cost what it does not hold. */
	madvise(at, bytes, MADV_NOHUGEPAGE);
	madvise(at, bytes, MADV_DONTDUMP);
	return at;
}

int hl_directory_init(void)
{
	hl_watched = reserve(MAX_WATCHED * sizeof(*hl_watched));
	hl_cells = reserve(CELLS_BYTES);
	return hl_watched && hl_cells ? 0 : -ENOMEM;
}

void hl_directory_lock(void)
{
	pthread_mutex_lock(&watching);
}

void hl_directory_unlock(void)
{
	pthread_mutex_unlock(&watching);
}

void *hl_map(size_t bytes)
{
	return reserve(bytes);
}

void hl_unmap(void *at, size_t bytes)
{
	munmap(at, bytes);
}

static uintptr_t round_up(uintptr_t value, uintptr_t power)
{
	return (value + power - 1) & ~(power - 1);
}

static unsigned owner_of(uint64_t word)
{
	return (word >> OWNER_SHIFT) & (MAX_THREADS - 1);
}

static uint64_t cell_word(enum kind kind, unsigned owner, unsigned passed, uintptr_t pc)
{
	return (uint64_t)kind << KIND_SHIFT | (uint64_t)owner << OWNER_SHIFT |
	       (uint64_t)passed << PASSED_SHIFT | (pc & PC_MASK);
}

/* ---- Watched lines. ---- */

static unsigned owner_of_state(uint64_t state)
{
	return (state >> 1) & (MAX_THREADS - 1);
}

static uint32_t version_of(uint64_t state)
{
	return state >> 16;
}

static uint64_t state_of(uint32_t version, unsigned owner, unsigned exclusive)
{
	return (uint64_t)version << 16 | (uint64_t)owner << 1 | exclusive;
}

static uint64_t load(const _Atomic uint64_t *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

static void store(_Atomic uint64_t *word, uint64_t value)
{
	atomic_store_explicit(word, value, memory_order_relaxed);
}

/* Sets bits, without taking the line when they are set. */
static void set_bits(_Atomic uint64_t *word, uint64_t bits)
{
	if (bits & ~load(word))
		atomic_fetch_or_explicit(word, bits, memory_order_relaxed);
}

/* The bytes that were written by those who had the line after version `since`, and with `reads` those
 * that were read meanwhile. */
static uint64_t touched_since(const struct watched *line, uint32_t since, uint32_t version,
			      bool reads)
{
	uint64_t bytes = load(&line->written) | (reads ? load(&line->read) : 0);

	for (uint32_t v = version - 1, n = 0; v != since && n < HISTORY; v--, n++) {
		bytes |= load(&line->history[v % HISTORY].written);
		if (reads)
			bytes |= load(&line->history[v % HISTORY].read);
	}
	return bytes;
}

/* A transfer turns out to have been needed, when the line is still here and its other bytes are. */
static void needed(struct thread *thread, uint32_t index, struct held *held)
{
	struct hl_raw_access *access =
		hl_access_slot(thread, held->pc, index, held->offset, held->size, held->flags);

	held->untrue = false;
	if (access && access->untrue)
		access->untrue--;
}

/* A read of a watched line: whether it was a transfer. */
static bool read_watched(struct watched *line, struct held *held, unsigned me, uint64_t mask,
			 uintptr_t *from)
{
	uint64_t state = load(&line->state);

	if (state & EXCLUSIVE && owner_of_state(state) == me)
		return false;
	if (held->version == version_of(state)) {
		if (mask & ~held->seen) {
			held->seen |= mask;
			if (owner_of_state(state) != me)
				set_bits(&line->read, mask);
		}
		return false;
	}
	held->fresh = touched_since(line, held->version, version_of(state), false);
	held->owned = false;
	held->untrue = !(mask & held->fresh);
	held->version = version_of(state);
	held->seen = mask;
	*from = load(&line->from);
	set_bits(&line->read, mask);
	/* If that fails somebody else has read it, or written it: then we read it before. */
	if (state & EXCLUSIVE)
		atomic_compare_exchange_strong_explicit(&line->state, &state,
							state & ~(uint64_t)EXCLUSIVE,
							memory_order_relaxed, memory_order_relaxed);
	return true;
}

/* What others had to do with since we had the line alone. */
static void judge_write(const struct watched *line, struct held *held, uint64_t mask,
			uint64_t state)
{
	bool needed_before = false;

	if (held->version != version_of(state)) {
		/* Others took it from us, or read it before they did. */
		held->fresh = touched_since(line, held->version, version_of(state), true);
		if (held->owned && version_of(state) - held->version <= HISTORY)
			held->fresh |= load(&line->history[held->version % HISTORY].read);
	} else if (held->owned) {
		held->fresh = load(&line->read);
	} else {
		/* We read it, after those who wrote it; what we read is among what was read. */
		needed_before = !held->untrue;
		held->fresh |= load(&line->written) | (load(&line->read) & ~held->seen);
	}
	held->owned = true;
	held->untrue = !needed_before && !(mask & held->fresh);
}

static bool write_watched(struct watched *line, struct held *held, unsigned me, uint64_t mask,
			  uintptr_t pc, uintptr_t *from)
{
	uint64_t state = load(&line->state), next;
	uint32_t version;

	do {
		if (state & EXCLUSIVE && owner_of_state(state) == me) {
			set_bits(&line->written, mask);
			return false;
		}
		version = version_of(state) + 1;
		next = state_of(version, me, EXCLUSIVE);
	} while (!atomic_compare_exchange_weak_explicit(
		&line->state, &state, next, memory_order_relaxed, memory_order_relaxed));
	judge_write(line, held, mask, state);
	*from = load(&line->from);
	store(&line->history[version_of(state) % HISTORY].written, load(&line->written));
	store(&line->history[version_of(state) % HISTORY].read, load(&line->read));
	store(&line->written, mask);
	store(&line->read, 0);
	store(&line->from, pc);
	held->version = version;
	held->seen = mask;
	return true;
}

/* Which of the places that took the line away leads: exact where one has more than half. */
static void count_from(struct hl_raw_access *access, uintptr_t from)
{
	if (access->from == from) {
		access->from_lead += access->from_lead < UINT8_MAX;
	} else if (access->from_lead) {
		access->from_lead--;
	} else {
		access->from = from;
		access->from_lead = 1;
	}
}

static void access_watched(struct thread *thread, uint32_t index, uintptr_t address, unsigned size,
			   unsigned flags, uintptr_t pc)
{
	struct watched *line = &hl_watched[index];
	unsigned offset = address & LINE_MASK;
	struct hl_raw_access *access = hl_access_slot(thread, pc, index, offset, size, flags);
	struct held *held = &thread->held[index];
	uint64_t mask = mask_of(address, size);
	uintptr_t from = 0;
	bool moved;

	if (flags & HL_RAW_WRITE)
		moved = write_watched(line, held, thread->slot, mask, pc, &from);
	else
		moved = read_watched(line, held, thread->slot, mask, &from);
	if (access)
		access->accesses++;
	if (!moved) {
		if (unlikely(held->untrue && mask & held->fresh))
			needed(thread, index, held);
		return;
	}
	thread->raw.transfers++;
	if (!access) {
		held->untrue = false;
		thread->raw.lost++;
		return;
	}
	access->transfers++;
	access->untrue += held->untrue;
	count_from(access, from);
	held->pc = pc;
	held->offset = offset;
	held->size = size;
	held->flags = flags;
}

/* What is in the line, as far as it can be told. */
static void find_parts(struct watched *line)
{
	struct thread *owner;
	struct call call;

	/* A thread's own variables lie above its stack, which they are told to belong to. */
	if (hl_tls_part(line->part, line->address)) {
		line->n_parts = 1;
		return;
	}
	owner = hl_stack_owner(line->address, &call);
	if (owner) {
		const uintptr_t frame[HL_RAW_FRAME] = { call.in, call.sp, call.bp };

		line->part[0] = (struct hl_raw_part){
			.start = owner->stack_low,
			.size = owner->stack_high - owner->stack_low,
			.stack = call.in ? hl_stack_of(frame, HL_RAW_FRAME) : 0,
			.thread = owner->raw.id,
			.place = HL_RAW_ON_STACK,
		};
		line->n_parts = 1;
		return;
	}
	line->n_parts = hl_heap_parts(line->part, line->address);
}

static bool same_parts(const struct watched *a, const struct watched *b)
{
	if (a->address != b->address || a->n_parts != b->n_parts)
		return false;
	for (uint32_t i = 0; i < a->n_parts; i++) {
		if (a->part[i].start != b->part[i].start || a->part[i].size != b->part[i].size ||
		    a->part[i].stack != b->part[i].stack || a->part[i].place != b->part[i].place)
			return false;
	}
	return true;
}

/*
 * The index of a struct for the line; 0: there is none left.  The one that it had before a block
 * in it was freed goes on where the same things are in the line as then: else an allocator that
 * gives the same block out again and again would use them all up.
 */
static uint32_t new_watched(uintptr_t address, uint64_t word, uint64_t written)
{
	static uint32_t by_address[1u << 14];
	uint32_t index = atomic_load_explicit(&hl_n_watched, memory_order_relaxed);
	uint32_t *last = &by_address[(address >> LINE_SHIFT) * 0x9e3779b97f4a7c15 >> 50],
		 before = *last;
	struct watched *line = &hl_watched[index];
	uint64_t state;

	if (index >= MAX_WATCHED)
		return 0;
	line->address = address & ~LINE_MASK;
	find_parts(line);
	if (before && same_parts(line, &hl_watched[before])) {
		/* What is held of it is of no worth: the block was another's meanwhile. */
		state = load(&hl_watched[before].state);
		store(&hl_watched[before].state,
		      state_of(version_of(state) + 1, owner_of(word), 0));
		return before;
	}
	store(&line->written, written);
	store(&line->from, word & PC_MASK);
	store(&line->state, state_of(1, owner_of(word),
				     (word >> KIND_SHIFT) == PRIVATE && written ? EXCLUSIVE : 0));
	*last = index;
	atomic_store_explicit(&hl_n_watched, index + 1, memory_order_relaxed);
	return index;
}

/* Makes the line watched; the cell's word then, or before when it cannot be. */
static uint64_t watch(struct cell *cell, uintptr_t address, uint64_t word)
{
	uint64_t written = load(&cell->written);
	uint32_t index;

	pthread_mutex_lock(&watching);
	word = load(&cell->word);
	if ((word >> KIND_SHIFT) == WATCHED) {
		pthread_mutex_unlock(&watching);
		return word;
	}
	/* What was written to a line that was watched before is not known. */
	if (!owner_of(word))
		written = 0;
	index = new_watched(address, word, written);
	if (index) {
		word = (uint64_t)WATCHED << KIND_SHIFT | index;
		atomic_store_explicit(&cell->word, word, memory_order_release); /* PUBLISH */
	}
	pthread_mutex_unlock(&watching);
	return word;
}

/* ---- Lines that are passed on for the first times. ---- */

static void count_handover(struct thread *thread, uintptr_t address, unsigned size, unsigned flags,
			   uintptr_t pc, uint64_t word, uint64_t written)
{
	struct hl_raw_handover key = {
		.pc = pc,
		.from = word & PC_MASK,
		.address = address,
		.size = size > 64 ? 64 : size,
		.flags = flags,
	};
	struct hl_raw_part part;
	struct hl_raw_handover *slot;

	if (hl_heap_block(&part, address)) {
		key.block_size = part.size;
		key.offset = address - part.start;
		key.stack = part.stack;
		key.place = part.place;
	}
	slot = hl_handover_slot(thread, &key);
	thread->raw.transfers++;
	if (!slot) {
		thread->raw.lost++;
		return;
	}
	slot->count++;
	slot->untrue += !(mask_of(address, size) & written);
}

/* An access to a line that is not watched and not simply ours; false: look again. */
static bool access_cell(struct thread *thread, struct cell *cell, uint64_t word, uintptr_t address,
			unsigned size, unsigned flags, uintptr_t pc)
{
	uint64_t mask = mask_of(address, size), written = load(&cell->written), next;
	unsigned passed = (word & PASSED_MASK) >> PASSED_SHIFT;
	bool writes = flags & HL_RAW_WRITE, mine = owner_of(word) == thread->slot;
	enum kind kind = word >> KIND_SHIFT;
	uintptr_t from = word & PC_MASK;

	if (kind == FREE) {
		next = cell_word(PRIVATE, thread->slot, 0, writes ? pc : 0);
	} else if (kind == PRIVATE && mine) {
		/* Only bytes that were not written before bring us here. */
		next = cell_word(PRIVATE, thread->slot, passed, writes ? pc : from);
	} else if (kind == READ && !writes) {
		return true;
	} else if (!writes) {
		/* Others read what was written: that moves it; what was only read, it does not. */
		next = cell_word(READ, owner_of(word),
				 from && passed < HANDOVERS ? passed + 1 : passed, from);
	} else {
		next = cell_word(PRIVATE, thread->slot, passed < HANDOVERS ? passed + 1 : passed,
				 pc);
	}
	if (!atomic_compare_exchange_strong_explicit(&cell->word, &word, next, memory_order_relaxed,
						     memory_order_relaxed))
		return false;
	if (writes) {
		bool goes_on = kind == PRIVATE && mine;

		store(&cell->written, goes_on ? written | mask : mask);
	} else if (kind == FREE) {
		store(&cell->written, 0);
	}
	if (kind != FREE && !(kind == PRIVATE && mine) && (writes || from))
		count_handover(thread, address, size, flags, pc, word, written);
	return true;
}

static void access_line(struct thread *thread, uintptr_t address, unsigned size, unsigned flags,
			uintptr_t pc)
{
	struct cell *cell = cell_of(address);

	for (;;) {
		uint64_t word = load(&cell->word);
		bool passes_on = owner_of(word) != thread->slot && (word >> KIND_SHIFT) != FREE &&
				 ((word >> KIND_SHIFT) == PRIVATE || flags & HL_RAW_WRITE);

		if ((word >> KIND_SHIFT) != WATCHED && passes_on &&
		    (word & PASSED_MASK) >> PASSED_SHIFT >= HANDOVERS)
			word = watch(cell, address, word);
		if ((word >> KIND_SHIFT) == WATCHED) {
			access_watched(thread, (uint32_t)word, address, size, flags, pc);
			return;
		}
		if (access_cell(thread, cell, word, address, size, flags, pc))
			return;
	}
}

void hl_access_slow(uintptr_t address, size_t size, unsigned flags, uintptr_t pc)
{
	struct thread *thread;

	if (hl_self.busy || !size)
		return;
	thread = hl_thread();
	if (!thread || !hl_on)
		return;
	hl_self.busy++;
	while (size) {
		size_t n = LINE_BYTES - (address & LINE_MASK);

		if (n > size)
			n = size;
		access_line(thread, address, n, flags, pc);
		address += n;
		size -= n;
	}
	hl_self.busy--;
}

/* ---- Objects that come and go. ---- */

/* Tables above this are given back to the kernel rather than written. */
#define CLEAR_BY_PAGE (1u << 16)

static void clear(struct cell *first, struct cell *end)
{
	uintptr_t from = round_up((uintptr_t)first, 4096), to = (uintptr_t)end & ~(uintptr_t)4095;

	if ((uintptr_t)end - (uintptr_t)first >= CLEAR_BY_PAGE &&
	    !madvise((void *)from, to - from, MADV_DONTNEED)) {
		clear(first, (struct cell *)from);
		clear((struct cell *)to, end);
		return;
	}
	for (; first < end; first++) {
		/* Most are free, or were never used: their page need not be written. */
		if (load(&first->word))
			store(&first->word, 0);
	}
}

/* A line that only begins or ends in the object: others in it keep what they have, but if it is
 * watched it must be watched anew, since what is in it is no longer the same. */
static void unwatch(uintptr_t address)
{
	struct cell *cell = cell_of(address);
	uint64_t word = load(&cell->word);

	if ((word >> KIND_SHIFT) != WATCHED)
		return;
	atomic_compare_exchange_strong_explicit(&cell->word, &word,
						cell_word(READ, 0, HANDOVERS, 0),
						memory_order_relaxed, memory_order_relaxed);
}

void hl_new_object(uintptr_t start, size_t size)
{
	uintptr_t last = start + size - 1;

	if (!hl_cells || !size)
		return;
	if (start & LINE_MASK)
		unwatch(start);
	if ((last + 1) & LINE_MASK && last >> LINE_SHIFT != start >> LINE_SHIFT)
		unwatch(last);
}

void hl_forget(uintptr_t start, size_t size)
{
	uintptr_t first = round_up(start, LINE_BYTES), end = (start + size) & ~LINE_MASK;

	if (!hl_cells || !size)
		return;
	hl_new_object(start, size);
	if (first < end)
		clear(cell_of(first), cell_of(end - 1) + 1);
}
