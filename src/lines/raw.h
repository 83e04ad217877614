/* SPDX-License-Identifier: MIT */
/*
 * The file that a program built with `hotline cc` leaves when it ends: what the runtime
 * (src/lines/runtime/) writes and the report (src/lines/) reads.
 *
 * A header, then pieces, each a struct hl_raw_piece and as many bytes as it says, a multiple
 * of eight.  Pieces of a kind that is not known are passed over.  A thread's pieces come when
 * it ends, and for all that still run when the process does; a thread that is written twice
 * counts as it was written last, since counts only grow.
 *
 * All numbers are in the byte order of the machine that wrote them.
 */
#ifndef HL_LINES_RAW_H
#define HL_LINES_RAW_H

#include <stdint.h>

#define HL_RAW_MAGIC "hotline c2c\n"
#define HL_RAW_VERSION 1

struct hl_raw_header {
	char magic[12];
	uint32_t version;
	uint32_t byte_order; /* 0x01020304 */
	uint32_t pid;
	uint32_t parent;
	uint32_t line; /* bytes of a cache line: 64 or 128 */
};

enum hl_raw_kind {
	HL_RAW_END = 1, /* struct hl_raw_end: the last piece of a whole file */
	HL_RAW_MODULE, /* struct hl_raw_module, then its path */
	HL_RAW_STACK, /* struct hl_raw_stack, then its return addresses */
	HL_RAW_THREAD, /* struct hl_raw_thread */
	HL_RAW_ACCESSES, /* of .thread: struct hl_raw_access each */
	HL_RAW_HANDOVERS, /* of .thread: struct hl_raw_handover each */
	HL_RAW_LINES, /* struct hl_raw_line each, the first of number .thread */
};

struct hl_raw_piece {
	uint32_t kind;
	uint32_t thread;
	uint64_t bytes;
};

#define HL_RAW_HOOKED 0x01 /* the module was built with `hotline cc` */

/* Part of a program or library that lies in memory. */
struct hl_raw_module {
	uint64_t base; /* what is added to the addresses in the file */
	uint64_t start, end; /* of all its segments */
	uint32_t flags; /* HL_RAW_HOOKED */
	uint32_t path_bytes; /* without the zero bytes behind it */
};

/* Where something was allocated: the innermost first. */
struct hl_raw_stack {
	uint32_t id;
	uint32_t n;
};

#define HL_RAW_FRAMES 6 /* first functions of a thread that are kept */

struct hl_raw_thread {
	uint32_t id;
	uint32_t creator; /* the thread that made it */
	uint64_t start; /* its function; 0: the first thread, or not known */
	uint64_t first[HL_RAW_FRAMES]; /* in the functions that it entered first; 0: no more */
	uint64_t accesses; /* all that were seen */
	uint64_t transfers;
	uint64_t lost; /* transfers that no line or handover could be kept for */
};

#define HL_RAW_WRITE 0x01
#define HL_RAW_ATOMIC 0x02 /* one instruction that reads and writes, or is marked as atomic */
#define HL_RAW_RMW 0x04 /* reads and writes */

/* One place of the code that touches the same bytes of the same line. */
struct hl_raw_access {
	uint64_t pc; /* a return address: the instruction is before it */
	uint64_t accesses;
	uint64_t transfers; /* accesses that had to get the line */
	uint64_t untrue; /* ... though nobody else had touched these bytes meanwhile */
	uint64_t from; /* whose write took the line away, mostly; 0: not known */
	uint32_t line; /* number of its struct hl_raw_line */
	uint8_t offset; /* of the bytes in the line */
	uint8_t size;
	uint8_t flags;
	uint8_t from_lead; /* by how much that leads, for the runtime */
};

/* A line passed on that was not passed on often enough to be followed by itself. */
struct hl_raw_handover {
	uint64_t pc;
	uint64_t from;
	uint64_t count;
	uint64_t untrue;
	uint64_t address; /* of the first of them */
	uint64_t block_size; /* heap: bytes of the block; 0: no block of the heap */
	uint64_t offset; /* heap: in the block */
	uint32_t stack; /* heap: where the block was allocated */
	uint8_t size;
	uint8_t flags;
	uint8_t place; /* enum hl_raw_place of the block */
	uint8_t unused;
};

enum hl_raw_place {
	HL_RAW_NOWHERE, /* not known: mapped by somebody who is not watched */
	HL_RAW_HEAP, /* .stack: where it was allocated */
	HL_RAW_MAPPED, /* the same for mmap() */
	HL_RAW_STATIC, /* in a module */
	HL_RAW_ON_STACK, /* of .thread; .stack has no calls, but one frame: see below */
	HL_RAW_TLS, /* of .thread; .start is where its block begins, .size which module */
};

/* The "calls" of a part on the stack: a return address in the function, the frame address of the hook
 * that it called on entry, the frame pointer that it had then. */
#define HL_RAW_FRAME 3

#define HL_RAW_PARTS 5 /* blocks of the smallest kind that a line of 128 bytes can touch */

/* Something that has bytes in a line. */
struct hl_raw_part {
	uint64_t start, size;
	uint32_t stack;
	uint16_t thread;
	uint8_t place; /* enum hl_raw_place */
	uint8_t unused;
};

/* A line that was passed on often. */
struct hl_raw_line {
	uint64_t address;
	uint32_t n_parts; /* 0: a static object */
	uint32_t unused;
	struct hl_raw_part part[HL_RAW_PARTS];
};

struct hl_raw_end {
	uint32_t signal; /* that ended it; 0: none */
	uint32_t n_lines;
	uint64_t lost;
};

#endif
