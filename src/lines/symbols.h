/* SPDX-License-Identifier: MIT */
/*
 * Addresses of a process that has ended, as names: code by function, file and line; static
 * objects; types, through the debug information of the modules that it had loaded.
 */
#ifndef HL_LINES_SYMBOLS_H
#define HL_LINES_SYMBOLS_H

#include "lines/raw_read.h"

struct hl_symbols;

/* NULL: no memory.  The file must stay as long. */
struct hl_symbols *hl_symbols_open(const struct hl_raw_file *file, const char *debug_dir);
void hl_symbols_close(struct hl_symbols *symbols);

/* A place of the code.  Strings are valid until the symbols are closed. */
struct hl_code {
	uint64_t pc;
	const char *function; /* never NULL: "0x1234" at worst */
	const char *file; /* NULL: not known */
	uint32_t line;
	bool hooked; /* in a module built with `hotline cc` */
};

/* Of the call that returns to pc.  What was inlined from a header of the system goes under the
 * place that it was inlined at.  NULL: no memory. */
const struct hl_code *hl_symbols_code(struct hl_symbols *symbols, uint64_t pc);
/* The same for the address of a function. */
const struct hl_code *hl_symbols_function(struct hl_symbols *symbols, uint64_t address);

/* The first function of the program's own that was inlined into a library's template at pc, and
 * where it is declared: the lambda in std::thread's.  NULL: none, or no memory. */
const struct hl_code *hl_symbols_inlined(struct hl_symbols *symbols, uint64_t pc);

/* An object, or part of memory, that has a name or a type. */
struct hl_named_object {
	const char *name;
	uint64_t start, size; /* of a thread's: in its block */
	const struct hl_types *types; /* NULL: of no known type */
	hl_type_id type;
	const char *file;
	uint32_t line;
};

bool hl_symbols_static(struct hl_symbols *symbols, uint64_t address,
		       struct hl_named_object *object);
/* A variable of threads, by the base of its module and its place in the module's block. */
bool hl_symbols_tls(struct hl_symbols *symbols, uint64_t base, uint64_t offset,
		    struct hl_named_object *object);

/* The variable of a function at an address on the stack, by the function's frame as the raw file has
 * it (HL_RAW_FRAME). */
bool hl_symbols_local(struct hl_symbols *symbols, const uint64_t *frame, uint64_t address,
		      struct hl_named_object *object);

/* The module that the address is in; NULL: none. */
const struct hl_raw_module_read *hl_symbols_module(struct hl_symbols *symbols, uint64_t address);

/* Bytes that code touched in a block of unknown type. */
struct hl_touch {
	uint64_t pc;
	uint64_t offset;
	uint32_t size;
};

/*
 * The type of a block of `size` bytes, as far as the code that touches and allocates it tells: a
 * struct that such code has pointers to, whose size fits the block and whose members lie where
 * the accesses do; else one that static pointers point to; else the only one of that size.
 * False: none, or several as likely.
 */
bool hl_symbols_block_type(struct hl_symbols *symbols, uint64_t size, const struct hl_touch *touch,
			   uint32_t n, const uint64_t *pc, uint32_t n_pcs,
			   struct hl_named_object *object);

/* The member at a byte of the type: adds "[3].hits" and tells the member's type; `size` is that of
 * the access, which the member must hold as a whole.  The offset of the member in the object. */
struct hl_text;
uint64_t hl_path_at(struct hl_text *text, const struct hl_types *types, hl_type_id type,
		    uint64_t offset, uint64_t size, hl_type_id *member, uint64_t *member_size);

#endif
