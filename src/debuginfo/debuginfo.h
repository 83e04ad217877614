/* SPDX-License-Identifier: MIT */
/*
 * Types from debug information: DWARF (through libdw) and BTF (through libbpf)
 * read into one compact, read-only graph.
 *
 * The room serves the command's rulers (layout, later c2c); it is not part of
 * libhotline and is not installed.  It reads files that may be hostile: every
 * offset and count is checked before it is believed, depth and number are
 * bounded (HL_MAX_*), and what cannot be read is an error with a text, never
 * an empty answer.
 *
 * Threads: hl_types_open() uses threads of its own and joins them before it
 * returns; a struct hl_types is read-only afterwards and may be read by any
 * number of threads at once.  Nothing here is safe in a signal handler.
 *
 * Memory: everything a struct hl_types shows (names, files, records) is owned
 * by it and is valid until hl_types_close().  Names point into the file's own
 * string sections where they can, so the file stays mapped as long.
 */
#ifndef HL_DEBUGINFO_H
#define HL_DEBUGINFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bounds on what a file may ask for.  A type nested deeper, a struct with more
 * members or a size above these is refused with an error. */
#define HL_MAX_DEPTH 200 /* typedefs, arrays, structs by value inside each other */
#define HL_MAX_MEMBERS (1u << 20) /* of one struct */
#define HL_MAX_SIZE ((uint64_t)1 << 48) /* bytes of one object */

/* An index into hl_types.type; 0 is void, always there. */
typedef uint32_t hl_type_id;

enum hl_kind {
	HL_VOID,
	HL_BASE, /* int, float, char, bool, ... */
	HL_ENUM,
	HL_POINTER,
	HL_LVALUE_REF, /* C++ T& */
	HL_RVALUE_REF, /* C++ T&& */
	HL_MEMBER_POINTER, /* C++ T C::* */
	HL_ARRAY, /* one dimension; more dimensions are arrays of arrays */
	HL_FUNCTION, /* target: what it returns; members: its parameters */
	HL_STRUCT,
	HL_CLASS,
	HL_UNION,
	HL_TYPEDEF,
	HL_CONST,
	HL_VOLATILE,
	HL_RESTRICT,
	HL_ATOMIC, /* C11 _Atomic */
	HL_OPAQUE, /* named, of known size at most, nothing else: C++ nullptr_t, Rust ! */
};

/* hl_type.flags */
#define HL_TYPE_DECLARATION 0x01 /* only declared: struct foo; size and members are unknown */
#define HL_TYPE_SIGNED 0x02 /* BASE, ENUM */
#define HL_TYPE_BOOL 0x04 /* BASE */
#define HL_TYPE_FLOAT 0x08 /* BASE */
#define HL_TYPE_CHAR 0x10 /* BASE whose encoding is a character */
#define HL_TYPE_FLEXIBLE 0x20 /* ARRAY without a bound: int a[] */
#define HL_TYPE_VARIADIC 0x20 /* FUNCTION that ends in ... */
#define HL_TYPE_VECTOR 0x40 /* ARRAY that is a GNU vector */
#define HL_TYPE_PACKED 0x80 /* STRUCT..UNION: offsets or size say __attribute__((packed)) */

/* hl_type.language: how the type was written, as far as the file says. */
enum hl_language { HL_LANG_C, HL_LANG_CXX, HL_LANG_RUST, HL_LANG_OTHER };

struct hl_type {
	const char *name; /* NULL: it has none.  C++: unqualified, with template arguments */
	uint64_t size; /* bytes; ARRAY: number of elements; pointers and references: their own
				 * size; ATOMIC: bytes where the compiler made it larger than its target */
	hl_type_id target; /* what it points to, aliases, qualifies, repeats or returns */
	uint32_t first; /* first of its members in hl_types.member ... */
	uint32_t count; /* ... and how many: members, parameters or enumerators */
	uint32_t file; /* where it was declared: index into hl_types.file, 0: not known */
	uint32_t line;
	uint32_t scope; /* C++ namespace or class around it: index into hl_types.file, 0: none */
	uint8_t kind; /* enum hl_kind */
	uint8_t flags; /* HL_TYPE_... */
	uint8_t align_log2; /* explicit alignment (alignas, aligned(N)) is 1 << (align_log2 - 1); 0: none said.
				 * BTF, and DWARF before version 5, do not tell all: what is left is inferred
				 * from holes and sizes when the file is read */
	uint8_t language; /* enum hl_language */
	uint8_t natural_log2; /* the alignment that hl_type_align() answers is 1 << natural_log2 */
	uint16_t tail; /* STRUCT..UNION: bytes behind the last member, virtual bases left out;
			* UINT16_MAX stands for more */
};

/* hl_member.flags */
#define HL_MEMBER_BASE 0x01 /* a C++ base class, name is NULL */
#define HL_MEMBER_VIRTUAL 0x02 /* a C++ virtual base: bit_offset is not known, stands last */
#define HL_MEMBER_VPTR 0x04 /* the compiler's own pointer to the table of virtual functions */
#define HL_MEMBER_VARIANT 0x08 /* Rust: one of several that overlay each other */
#define HL_MEMBER_DISCRIMINANT 0x10 /* Rust: says which variant is there */

/* A member of a struct, class or union; a parameter (type alone matters); an
 * enumerator (bit_offset holds its value as two's complement).  Static members
 * take no room and are not kept.  Members stand in the order of the source, in
 * C and C++ that of their offsets. */
struct hl_member {
	const char *name; /* NULL: anonymous struct or union, base class, unnamed parameter */
	uint64_t bit_offset; /* from the start of the struct, in memory order: byte * 8 + bit */
	hl_type_id type;
	uint16_t bit_size; /* 0: not a bit-field */
	uint8_t align_log2; /* explicit alignment, as in struct hl_type, told or inferred */
	uint8_t flags;
};

/* A variable with a fixed address (global, static) of a type whose layout a
 * ruler may have something to say about: an array, or one that was aligned.
 * With hl_types_options.all_variables every one, and those of threads. */
struct hl_variable {
	const char *name;
	hl_type_id type;
	uint32_t file, line;
	uint8_t align_log2;
	bool tls; /* each thread has one; only with all_variables */
	uint64_t address; /* in the file's own addresses, of a thread's in its block; only with
			   * all_variables, 0 otherwise */
};

struct hl_types {
	const struct hl_type *type; /* all types; type[0] is void */
	const struct hl_member *member;
	const char *const *file; /* names of source files and of scopes; file[0] is "" */
	/* What a ruler reports on: each struct, class and union that is defined and
	 * has a name of its own or through a typedef, once, in the order of the file.
	 * An unnamed one stands here as the HL_TYPEDEF that names it first. */
	const hl_type_id *defined;
	const struct hl_variable *variable;
	uint32_t n_types, n_members, n_files, n_defined, n_variables;

	uint8_t address_size; /* bytes of a pointer */
	bool big_endian;
	bool from_btf; /* BTF tells no source files */
	bool align_untold; /* not all alignment that was asked for is told: some is inferred */
	uint8_t max_align_log2; /* scalars are aligned to 1 << this at most (i386: 2) */
	uint16_t machine; /* ELF e_machine, 0: not known */
	uint32_t n_units; /* compilation units read */
	uint32_t n_skipped; /* things met and left out (unknown tags, bad values) */
	const char *skipped; /* the first of them, in words; NULL when none */
};

struct hl_types_options {
	const char *btf_base; /* split BTF of a module: its base; NULL: the running kernel's */
	const char *debug_dir; /* where separate debug files are; NULL: /usr/lib/debug */
	bool all_variables; /* with their addresses, for who wants to know what lies at one */
	unsigned threads; /* 0: as many as there are processors, 8 at most */
	void (*progress)(void *arg, unsigned long done, unsigned long total); /* NULL: none; called
				 * in the thread that called hl_types_open(), units done and in all */
	void *progress_arg;
};

/* Why something failed, in words that say what to do. */
struct hl_error {
	char text[512];
};

/*
 * Reads the types of a file: an executable, shared library, object, kernel
 * module, static archive, separate debug file, split or compressed DWARF, raw
 * BTF or an ELF file with a .BTF section.
 *
 * Returns 0 and the types in *out, to be closed with hl_types_close(); or
 *   -ENOENT, -EACCES, ...	the file cannot be opened
 *   -ENOEXEC	it is no file of a kind that is known here, or a pipe or device
 *   -ENODATA	it holds no type information (the text says how to get some)
 *   -EBADMSG	it is damaged
 *   -E2BIG	it asks for more than the bounds above
 *   -ENOMEM
 * with the reason in err->text.
 */
int hl_types_open(struct hl_types **out, const char *path, const struct hl_types_options *options,
		  struct hl_error *err);
void hl_types_close(struct hl_types *types);

/* ---- Questions about one type.  All follow typedefs and qualifiers where that
 * is what the question means, stop at HL_MAX_DEPTH, and never fail. ---- */

/* The type behind typedefs and qualifiers (const, volatile, restrict, _Atomic). */
hl_type_id hl_type_strip(const struct hl_types *types, hl_type_id id);

/* Bytes that an object of the type takes; 0 for what has no size. */
uint64_t hl_type_size(const struct hl_types *types, hl_type_id id);

/* Alignment in bytes (a power of two, at least 1) that the compiler gives an
 * object of the type: the explicit one, or the natural one that follows from
 * the members; 1 for packed structs.  Where DWARF or BTF do not say, it is
 * inferred from offsets and size. */
uint32_t hl_type_align(const struct hl_types *types, hl_type_id id);

/* The same for a member: its own explicit alignment counts as well. */
uint32_t hl_member_align(const struct hl_types *types, const struct hl_member *member);

/* Bytes of a member that is not a bit-field; of a bit-field, of its declared type. */
uint64_t hl_member_size(const struct hl_types *types, const struct hl_member *member);

static inline bool hl_kind_is_aggregate(enum hl_kind kind)
{
	return kind == HL_STRUCT || kind == HL_CLASS || kind == HL_UNION;
}

/* The name a report calls the type by: its own, or for an unnamed one that of
 * its typedef (pass the HL_TYPEDEF's id); never NULL, "(anonymous)" at worst. */
const char *hl_type_name(const struct hl_types *types, hl_type_id id);

#endif
