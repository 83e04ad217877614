/* SPDX-License-Identifier: MIT */
/*
 * The runtime behind -fsanitize=thread's hooks: who holds which line of memory.
 *
 * What is counted.  Each thread stands for a CPU with a cache that never overflows.  A line is
 * modified in one cache or shared by several; an access that finds it neither so is a transfer,
 * as it would be by MESI.  Nothing is slept for and no lock of the program is looked at.
 *
 * The directory.  Each line of memory has a struct cell in a table that is reserved once for the
 * whole address space and costs memory only where it is used.  A line that one thread uses stays
 * PRIVATE: its accesses cost a look at the cell.  A line that is passed on is a handover, counted
 * by place of the code and by object, and the third time it becomes WATCHED: a struct watched
 * with the state of the protocol, and in each thread a count for each place of the code that
 * touches it.  Lines that are only read by all are READ and cost no more than private ones.
 *
 * Ordering.  Two threads that race in the program race here, too.  The cell and the state of a
 * watched line are changed by compare-and-swap, relaxed: each word is whole by itself and what it
 * leads to (a struct watched) was filled before its index was published.
 *
 * PUBLISH: the cell that makes a line watched is written with release; who reads a watched index
 * from a cell reads it relaxed and then the struct through that index, a data dependency, but for
 * the compiler, which cannot know: the structs are zero before, and a thread that saw zeros would
 * find version 0 and count a transfer too many, no more.
 *
 * The rest (masks, last writer) tells who and where; a value that is lost in a race makes one
 * transfer appear as coming from elsewhere.  No count that is reported depends on it.
 */
#ifndef HL_LINES_RUNTIME_H
#define HL_LINES_RUNTIME_H

#include "lines/raw.h"

#include <hotline/cacheline.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Lines of the machine that we run on, for our own structs. */
#define OWN_LINE 64

/* Lines that are counted: of 64 bytes, or of 128.  Masks have 64 bits for a line, so that a bit stands
 * for two bytes of the longer.  Set once, before anything is counted. */
struct geometry {
	unsigned shift, grain; /* log2 of the bytes of a line, of a bit */
	uintptr_t mask; /* of an address in its line */
};
extern struct geometry hl_line;

#define LINE_SHIFT (hl_line.shift)
#define LINE_MASK (hl_line.mask)
#define LINE_BYTES (hl_line.mask + 1)

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
/* Exported although all else is hidden. */
#define HOOK __attribute__((visibility("default")))
#define CALLER ((uintptr_t)__builtin_return_address(0))

/* ---- The directory (directory.c). ---- */

/*
 * A cell's word:
 *	63..62	kind
 *	61..50	the thread that has the line, or wrote it last	(PRIVATE, READ)
 *	49..48	how often it was passed on			(PRIVATE, READ)
 *	47..0	where it was written last; 0: not at all	(PRIVATE, READ)
 *	31..0	index of its struct watched			(WATCHED)
 */
enum kind { FREE, PRIVATE, READ, WATCHED };

#define KIND_SHIFT 62
#define OWNER_SHIFT 50
#define PASSED_SHIFT 48
#define PASSED_MASK ((uint64_t)3 << PASSED_SHIFT)
#define PC_MASK (((uint64_t)1 << PASSED_SHIFT) - 1)
#define MAX_THREADS 4096 /* numbers that the owner's bits can hold */

struct cell {
	_Atomic uint64_t word;
	_Atomic uint64_t written; /* PRIVATE, READ: the bytes that the owner has written */
};

/* Times that a line is passed on before it is watched. */
#define HANDOVERS 3

#define MAX_WATCHED (1u << 17)

/*
 * The state: version << 16 | owner << 1 | exclusive.  The version counts the writes that took
 * the line from others.
 */
#define EXCLUSIVE 1u

struct watched {
	/* Written by whoever gets the line, read at each access: one line moves for one that moves. */
	_Atomic uint64_t state;
	_Atomic uint64_t written; /* bytes that the owner wrote since it has the line */
	_Atomic uint64_t read; /* bytes that others read since */
	_Atomic uint64_t from; /* where the owner's first write was */
	/* Written once, before it is published. */
	uint64_t address;
	uint32_t n_parts;
	/* Bytes that the owners before wrote, and that others then read, by version. */
#define HISTORY 8
	_Alignas(OWN_LINE) struct {
		_Atomic uint64_t written, read;
	} history[HISTORY];
	/* Written once. */
	_Alignas(OWN_LINE) struct hl_raw_part part[HL_RAW_PARTS];
};
_Static_assert(offsetof(struct watched, history) == OWN_LINE, "the state has a line");
_Static_assert(offsetof(struct watched, part) == 3 * OWN_LINE, "the history has two lines");

/* What a thread knows of a watched line: the version that it has, and the transfer that got it. */
struct held {
	uint32_t version;
	bool owned; /* by a write of its own */
	bool untrue; /* the transfer was for bytes that nobody else had touched, so far */
	uint8_t offset, size, flags; /* of the access that it was for, */
	uintptr_t pc; /* which has it counted */
	uint64_t seen; /* bytes read since */
	uint64_t fresh; /* bytes that others had touched: who comes for one of them needed the line */
};

extern struct cell *hl_cells;
extern struct watched *hl_watched; /* [0] is not used */
extern _Atomic uint32_t hl_n_watched;

static inline struct cell *cell_of(uintptr_t address)
{
	/* Addresses of user space, whatever a wild pointer says. */
	return &hl_cells[(address & (((uintptr_t)1 << 47) - 1)) >> LINE_SHIFT];
}

/* The bytes of a line that an access takes, which stays within it. */
static inline uint64_t mask_of(uintptr_t address, unsigned size)
{
	unsigned first = (address & LINE_MASK) >> hl_line.grain;
	unsigned last = ((address & LINE_MASK) + size - 1) >> hl_line.grain;

	return ~(uint64_t)0 >> (63 - ((last - first) & 63)) << first;
}

/* 0, or a negative errno value. */
int hl_directory_init(void);
void hl_directory_lock(void);
void hl_directory_unlock(void);
/* An access that the fast path below has not settled; may cross lines. */
void hl_access_slow(uintptr_t address, size_t size, unsigned flags, uintptr_t pc);
/* The object ends its life: what is known of its lines is forgotten. */
void hl_forget(uintptr_t start, size_t size);
/* One begins: the lines that it shares with others are watched anew. */
void hl_new_object(uintptr_t start, size_t size);

/* ---- Threads (thread.c). ---- */

/* A call on the thread's own stack of calls. */
struct call {
	uintptr_t pc; /* where it returns to */
	uintptr_t in; /* somewhere in the function that was called */
	uintptr_t sp; /* where its frame ends */
	uintptr_t bp; /* its frame pointer, if it has one */
};

#define MAX_CALLS 4096
#define HL_TLS_BLOCKS 8

struct table {
	void *slot;
	uint32_t n, size; /* a power of two; 0: none yet */
};

struct thread {
	/* Written by the thread itself alone. */
	struct hl_raw_thread raw;
	uint32_t slot; /* 1 .. MAX_THREADS - 1 */
	unsigned n_first;
	struct table accesses, handovers;
	struct held *held; /* by index of struct watched */
	struct call *calls;
	uintptr_t stack_low, stack_high;
	struct hl_tls {
		uintptr_t start, size, module;
	} tls[HL_TLS_BLOCKS]; /* its own variables, by module */
	unsigned n_tls;
	void *signal_stack; /* NULL: the program has one */
	struct self *self;
	/* Under hl_threads_lock. */
	struct thread *next;
};

/* What the hooks need of the thread, at hand. */
struct self {
	uint64_t tag; /* PRIVATE and the thread's number, as in a cell; 0: not known yet */
	uint64_t accesses;
	struct call *top; /* the next free call */
	struct thread *thread;
	unsigned busy; /* inside the runtime: accesses are not counted; read by who writes the file */
};

extern __thread struct self hl_self __attribute__((tls_model("initial-exec")));

/* The thread, made known if it is not; NULL: it cannot be, or is inside the runtime. */
struct thread *hl_thread(void);
/* Whether the address is in a variable of a thread's own. */
bool hl_tls_part(struct hl_raw_part *part, uintptr_t address);
/* Threads there are, for who holds the lock. */
extern struct thread *hl_threads;
extern pthread_mutex_t hl_threads_lock;
/* The thread on whose stack the line is, and the call that has it in its frame, if that can be
 * told; else call->in is 0.  NULL: on none. */
struct thread *hl_stack_owner(uintptr_t line, struct call *call);
/* In the child of fork: no thread but this one, and nothing counted. */
void hl_threads_forked(void);
void hl_threads_init(void);

/* The table's slot for a key; the functions below know its type.  NULL: full. */
struct hl_raw_access *hl_access_slot(struct thread *thread, uintptr_t pc, uint32_t line,
				     unsigned offset, unsigned size, unsigned flags);
struct hl_raw_handover *hl_handover_slot(struct thread *thread, const struct hl_raw_handover *key);

/* ---- The heap (heap.c). ---- */

void hl_heap_init(void);
/* What has bytes in the line: at most HL_RAW_PARTS.  How many there are. */
unsigned hl_heap_parts(struct hl_raw_part *part, uintptr_t line);
/* The block that holds the address. */
bool hl_heap_block(struct hl_raw_part *part, uintptr_t address);
void hl_heap_lock(void);
void hl_heap_unlock(void);
/* Memory for the runtime itself, which the program's heap does not see; NULL: none. */
void *hl_map(size_t bytes);
void hl_unmap(void *at, size_t bytes);

/* ---- Stacks (stacks.c). ---- */

void hl_stacks_lock(void);
void hl_stacks_unlock(void);
/* A number for the calls that led here; 0: not known. */
uint32_t hl_stack_here(uintptr_t pc);
/* A number for one return address. */
uint32_t hl_stack_of(const uintptr_t *pc, unsigned n);
void hl_stacks_write(void (*put)(uint32_t id, const uint64_t *pc, uint32_t n));

/* ---- The file (dump.c). ---- */

/* Whether a file is wanted, and could be made. */
bool hl_dump_init(void);
void hl_dump_lock(void);
void hl_dump_unlock(void);
/* Writes a thread that ends. */
void hl_dump_thread(struct thread *thread);
/* Writes all; what is written again later counts. */
void hl_dump(int signal);
/* The child of fork has a file of its own. */
void hl_dump_forked(void);
/* Libraries are about to come or go. */
void hl_dump_modules(void);

/* ---- Beginning and end (life.c). ---- */

/* Makes the runtime ready, once, from whatever hook comes first.  Whether it is. */
bool hl_ready(void);
extern bool hl_on;

/* The access of a hook.  Small enough to be in each. */
static inline __attribute__((always_inline)) void hl_access(uintptr_t address, unsigned size,
							    unsigned flags, uintptr_t pc)
{
	uint64_t word;
	struct cell *cell;

	hl_self.accesses++;
	if (unlikely(!hl_self.tag)) {
		hl_access_slow(address, size, flags, pc);
		return;
	}
	cell = cell_of(address);
	word = atomic_load_explicit(&cell->word, memory_order_relaxed);
	if (likely((word >> OWNER_SHIFT) == hl_self.tag)) {
		if (likely((address & LINE_MASK) + size <= LINE_BYTES) &&
		    (!(flags & HL_RAW_WRITE) ||
		     !(mask_of(address, size) &
		       ~atomic_load_explicit(&cell->written, memory_order_relaxed))))
			return;
	} else if ((word >> KIND_SHIFT) == READ && !(flags & HL_RAW_WRITE)) {
		if (likely((address & LINE_MASK) + size <= LINE_BYTES))
			return;
	}
	hl_access_slow(address, size, flags, pc);
}

#endif
