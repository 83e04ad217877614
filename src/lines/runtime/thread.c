// SPDX-License-Identifier: MIT
/*
 * Threads: numbers, what each counts, where their stacks are.
 */
#include "runtime.h"
#include "real.h"

#include <limits.h>
#include <link.h>
#include <signal.h>
#include <string.h>
#include <threads.h>
#include <unistd.h>

__thread struct self hl_self __attribute__((tls_model("initial-exec")));
struct thread *hl_threads;
pthread_mutex_t hl_threads_lock = PTHREAD_MUTEX_INITIALIZER;

/* Under hl_threads_lock: numbers of threads, and of threads that ended, oldest first. */
static uint32_t n_ids, n_slots = 1;
static uint16_t free_slot[MAX_THREADS];
static uint32_t first_free, n_free;

/* Numbers are used again as late as possible: a thread that takes one over is taken for the one
 * that had it. */
static uint32_t take_slot(void)
{
	uint32_t slot;

	if (n_slots < MAX_THREADS)
		return n_slots++;
	if (!n_free)
		return 0;
	slot = free_slot[first_free];
	first_free = (first_free + 1) % MAX_THREADS;
	n_free--;
	return slot;
}

static void give_slot(uint32_t slot)
{
	free_slot[(first_free + n_free++) % MAX_THREADS] = slot;
}

/* ---- What a thread counts: two tables with open addressing. ---- */

#define FIRST_SIZE 128
#define MAX_SIZE (1u << 17)

static uint64_t mix(uint64_t a, uint64_t b)
{
	uint64_t h = (a ^ b * 0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9;

	return h ^ h >> 29;
}

static uint64_t hash_access(const struct hl_raw_access *slot)
{
	return mix(slot->pc, (uint64_t)slot->line << 6 | slot->offset);
}

static uint64_t hash_handover(const struct hl_raw_handover *slot)
{
	return mix(slot->pc ^ slot->from << 20,
		   slot->stack ? slot->offset ^ (uint64_t)slot->stack << 40 : slot->address);
}

/* Makes room for one more; false: there is none. */
static bool grow(struct table *table, size_t slot_size, uint64_t (*hash)(const void *))
{
	uint32_t size = table->size ? table->size * 2 : FIRST_SIZE;
	char *old = table->slot, *more;

	if (table->n < table->size / 4 * 3)
		return true;
	if (size > MAX_SIZE)
		return false;
	more = hl_map(size * slot_size);
	if (!more)
		return false;
	for (uint32_t i = 0; i < table->size; i++) {
		uint64_t at;

		if (!*(uint64_t *)(old + i * slot_size))
			continue;
		at = hash(old + i * slot_size) & (size - 1);
		while (*(uint64_t *)(more + at * slot_size))
			at = (at + 1) & (size - 1);
		memcpy(more + at * slot_size, old + i * slot_size, slot_size);
	}
	if (old)
		hl_unmap(old, table->size * slot_size);
	table->slot = more;
	table->size = size;
	return true;
}

static uint64_t hash_any_access(const void *slot)
{
	return hash_access(slot);
}

static uint64_t hash_any_handover(const void *slot)
{
	return hash_handover(slot);
}

struct hl_raw_access *hl_access_slot(struct thread *thread, uintptr_t pc, uint32_t line,
				     unsigned offset, unsigned size, unsigned flags)
{
	struct table *table = &thread->accesses;
	struct hl_raw_access key = {
		.pc = pc, .line = line, .offset = offset, .size = size, .flags = flags
	};
	uint64_t at = hash_access(&key);
	struct hl_raw_access *slot;

	for (; table->size; at++) {
		slot = (struct hl_raw_access *)table->slot + (at & (table->size - 1));
		if (!slot->pc)
			break;
		if (slot->pc == pc && slot->line == line && slot->offset == offset &&
		    slot->size == size && slot->flags == flags)
			return slot;
	}
	if (!grow(table, sizeof(*slot), hash_any_access))
		return NULL;
	for (at = hash_access(&key);; at++) {
		slot = (struct hl_raw_access *)table->slot + (at & (table->size - 1));
		if (!slot->pc)
			break;
	}
	*slot = key;
	table->n++;
	return slot;
}

static bool same_handover(const struct hl_raw_handover *a, const struct hl_raw_handover *b)
{
	return a->pc == b->pc && a->from == b->from && a->stack == b->stack &&
	       a->block_size == b->block_size && a->size == b->size && a->flags == b->flags &&
	       (a->stack ? a->offset == b->offset : a->address == b->address);
}

struct hl_raw_handover *hl_handover_slot(struct thread *thread, const struct hl_raw_handover *key)
{
	struct table *table = &thread->handovers;
	uint64_t at = hash_handover(key);
	struct hl_raw_handover *slot;

	for (; table->size; at++) {
		slot = (struct hl_raw_handover *)table->slot + (at & (table->size - 1));
		if (!slot->pc)
			break;
		if (same_handover(slot, key))
			return slot;
	}
	if (!grow(table, sizeof(*slot), hash_any_handover))
		return NULL;
	for (at = hash_handover(key);; at++) {
		slot = (struct hl_raw_handover *)table->slot + (at & (table->size - 1));
		if (!slot->pc)
			break;
	}
	*slot = *key;
	table->n++;
	return slot;
}

static void free_tables(struct thread *thread)
{
	if (thread->accesses.slot)
		hl_unmap(thread->accesses.slot,
			 thread->accesses.size * sizeof(struct hl_raw_access));
	if (thread->handovers.slot)
		hl_unmap(thread->handovers.slot,
			 thread->handovers.size * sizeof(struct hl_raw_handover));
	thread->accesses = thread->handovers = (struct table){ 0 };
}

/* ---- Beginning and end. ---- */

#define HELD_BYTES (MAX_WATCHED * sizeof(struct held))
#define SIGNAL_STACK (64u << 10)
#define CALLS_BYTES (MAX_CALLS * sizeof(struct call))

static void find_stack(struct thread *thread)
{
	pthread_attr_t attributes;
	void *low;
	size_t size;

	if (pthread_getattr_np(pthread_self(), &attributes))
		return;
	if (!pthread_attr_getstack(&attributes, &low, &size)) {
		thread->stack_low = (uintptr_t)low;
		thread->stack_high = (uintptr_t)low + size;
	}
	pthread_attr_destroy(&attributes);
}

static int add_tls(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct thread *thread = arg;

	if (size < sizeof(*info) || !info->dlpi_tls_data || thread->n_tls == HL_TLS_BLOCKS)
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		if (info->dlpi_phdr[i].p_type == PT_TLS)
			thread->tls[thread->n_tls++] =
				(struct hl_tls){ (uintptr_t)info->dlpi_tls_data,
						 info->dlpi_phdr[i].p_memsz, info->dlpi_addr };
	}
	return 0;
}

static struct thread *new_thread(void)
{
	struct thread *thread = hl_map(sizeof(*thread));

	if (!thread)
		return NULL;
	thread->held = hl_map(HELD_BYTES);
	thread->calls = hl_map(CALLS_BYTES);
	pthread_mutex_lock(&hl_threads_lock);
	thread->slot = thread->held && thread->calls ? take_slot() : 0;
	if (thread->slot) {
		thread->raw.id = ++n_ids;
		thread->next = hl_threads;
		hl_threads = thread;
	}
	pthread_mutex_unlock(&hl_threads_lock);
	if (!thread->slot) {
		if (thread->held)
			hl_unmap(thread->held, HELD_BYTES);
		if (thread->calls)
			hl_unmap(thread->calls, CALLS_BYTES);
		hl_unmap(thread, sizeof(*thread));
		return NULL;
	}
	return thread;
}

/* Room for the handler of a signal that says that the stack is full. */
static void give_signal_stack(struct thread *thread)
{
	stack_t there, own = { .ss_size = SIGNAL_STACK };

	if (sigaltstack(NULL, &there) || !(there.ss_flags & SS_DISABLE))
		return;
	thread->signal_stack = own.ss_sp = hl_map(SIGNAL_STACK);
	if (own.ss_sp)
		sigaltstack(&own, NULL);
}

static void take_signal_stack(struct thread *thread)
{
	stack_t none = { .ss_flags = SS_DISABLE }, there;

	if (!thread->signal_stack)
		return;
	/* The program may have put another in its place. */
	if (!sigaltstack(NULL, &there) && there.ss_sp == thread->signal_stack)
		sigaltstack(&none, NULL);
	hl_unmap(thread->signal_stack, SIGNAL_STACK);
}

static struct thread *enter(uintptr_t start, uint32_t creator)
{
	struct thread *thread;

	hl_self.busy++;
	thread = new_thread();
	if (thread) {
		thread->raw.start = start;
		thread->raw.creator = creator;
		find_stack(thread);
		dl_iterate_phdr(add_tls, thread);
		give_signal_stack(thread);
		thread->self = &hl_self;
		hl_self.thread = thread;
		hl_self.top = thread->calls;
		hl_self.tag = (uint64_t)PRIVATE << (KIND_SHIFT - OWNER_SHIFT) | thread->slot;
	}
	hl_self.busy--;
	return thread;
}

struct thread *hl_thread(void)
{
	if (likely(hl_self.thread))
		return hl_self.thread;
	if (!hl_ready())
		return NULL;
	return hl_self.thread ? hl_self.thread : enter(0, 0);
}

static pthread_key_t at_end;

/* The thread will touch nothing more that is of the program, or hardly anything: destructors of
 * its keys run in several rounds, this one acts in the last. */
static void leave(void *arg)
{
	static __thread unsigned round;
	struct thread *thread = hl_self.thread, **link = &hl_threads;

	if (!thread)
		return;
	if (++round < PTHREAD_DESTRUCTOR_ITERATIONS) {
		pthread_setspecific(at_end, arg);
		return;
	}
	/* For good: what still runs here is not counted. */
	hl_self.busy = 1;
	hl_self.tag = 0;
	hl_self.thread = NULL;
	thread->self = NULL;
	thread->raw.accesses += hl_self.accesses;
	hl_self.accesses = 0;
	hl_dump_thread(thread);
	hl_forget(thread->stack_low, thread->stack_high - thread->stack_low);
	pthread_mutex_lock(&hl_threads_lock);
	while (*link != thread)
		link = &(*link)->next;
	*link = thread->next;
	give_slot(thread->slot);
	pthread_mutex_unlock(&hl_threads_lock);
	free_tables(thread);
	take_signal_stack(thread);
	hl_unmap(thread->held, HELD_BYTES);
	hl_unmap(thread->calls, CALLS_BYTES);
	hl_unmap(thread, sizeof(*thread));
}

void hl_threads_init(void)
{
	pthread_key_create(&at_end, leave);
}

void hl_threads_forked(void)
{
	struct thread *me = hl_self.thread;

	/* Those of the other threads belong to no thread here; what they counted is in the parent. */
	hl_threads = me;
	hl_self.accesses = 0;
	if (!me)
		return;
	me->next = NULL;
	me->raw.accesses = me->raw.transfers = me->raw.lost = 0;
	free_tables(me);
}

bool hl_tls_part(struct hl_raw_part *part, uintptr_t address)
{
	bool found = false;

	pthread_mutex_lock(&hl_threads_lock);
	for (struct thread *thread = hl_threads; thread && !found; thread = thread->next) {
		for (unsigned i = 0; i < thread->n_tls && !found; i++) {
			const struct hl_tls *tls = &thread->tls[i];

			found = address + LINE_BYTES > tls->start &&
				address < tls->start + tls->size;
			if (found)
				*part = (struct hl_raw_part){ .start = tls->start,
							      .size = tls->module,
							      .thread = thread->raw.id,
							      .place = HL_RAW_TLS };
		}
	}
	pthread_mutex_unlock(&hl_threads_lock);
	return found;
}

struct thread *hl_stack_owner(uintptr_t line, struct call *call)
{
	struct thread *thread;

	call->in = 0;
	pthread_mutex_lock(&hl_threads_lock);
	for (thread = hl_threads; thread; thread = thread->next) {
		if (line >= thread->stack_low && line < thread->stack_high)
			break;
	}
	/* Frames lie one below the other: the first that reaches down to the line. */
	for (uint32_t i = 0; thread && i < MAX_CALLS && thread->calls[i].in && !call->in; i++) {
		if (thread->calls[i].sp <= line + LINE_BYTES - 1)
			*call = thread->calls[i];
	}
	pthread_mutex_unlock(&hl_threads_lock);
	return thread;
}

/* ---- Threads that are made. ---- */

struct start {
	void *(*run)(void *);
	int (*run_c11)(void *);
	void *arg;
	uint32_t creator;
};

static struct start *new_start(void)
{
	struct start *start = hl_ready() ? hl_map(sizeof(*start)) : NULL;

	if (start)
		start->creator = hl_thread() ? hl_thread()->raw.id : 0;
	return start;
}

static struct start begin(struct start *start)
{
	struct start copy = *start;

	hl_unmap(start, sizeof(*start));
	enter(copy.run ? (uintptr_t)copy.run : (uintptr_t)copy.run_c11, copy.creator);
	pthread_setspecific(at_end, hl_self.thread);
	return copy;
}

static void *run(void *arg)
{
	struct start start = begin(arg);

	return start.run(start.arg);
}

static int run_c11(void *arg)
{
	struct start start = begin(arg);

	return start.run_c11(start.arg);
}

HOOK int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
			void *(*function)(void *), void *arg)
{
	struct start *start = new_start();
	int status;

	if (!start)
		return REAL(pthread_create)(thread, attributes, function, arg);
	start->run = function;
	start->arg = arg;
	status = REAL(pthread_create)(thread, attributes, run, start);
	if (status)
		hl_unmap(start, sizeof(*start));
	return status;
}

HOOK int thrd_create(thrd_t *thread, thrd_start_t function, void *arg)
{
	struct start *start = new_start();
	int status;

	if (!start)
		return REAL(thrd_create)(thread, function, arg);
	start->run_c11 = function;
	start->arg = arg;
	status = REAL(thrd_create)(thread, run_c11, start);
	if (status != thrd_success)
		hl_unmap(start, sizeof(*start));
	return status;
}
