/* SPDX-License-Identifier: MIT */
/*
 * Inside the room: the store in which a graph of types is built, and what the
 * readers of the formats (dwarf.c, btf.c) hand to each other.
 */
#ifndef HL_DEBUGINFO_INTERNAL_H
#define HL_DEBUGINFO_INTERNAL_H

#include "debuginfo.h"

#include <stdio.h>
#include <stdlib.h>

#define HL_NO_ORDER UINT64_MAX

/* A definition and its place in the file. */
struct hl_definition {
	uint64_t order;
	hl_type_id id;
};

/* A variable and its place in the file. */
struct hl_placed_variable {
	uint64_t order;
	struct hl_variable variable;
};

/*
 * A store holds each distinct type once: a type whose kind, name, size, target
 * and members equal those of one that is there already gets its id.  Targets
 * are added before what refers to them, so ids of equal types are equal, and a
 * store can be poured into another in one pass in the order of ids.
 *
 * A pointer to a named struct, class or union refers to a HL_TYPE_DECLARATION of
 * that name, never to the definition: the graph has no cycles.
 *
 * One thread owns a store.
 */
struct hl_store {
	struct hl_type *type;
	uint64_t *order; /* of each type: where it was first defined; HL_NO_ORDER: nowhere */
	uint32_t *hash; /* of each type */
	uint32_t n_types, types_room;
	struct hl_member *member;
	uint32_t n_members, members_room;
	uint32_t *bucket; /* ids by hash, open addressing, 0: free; a power of two many */
	uint32_t buckets;
	const char **file;
	uint32_t *file_bucket;
	uint32_t n_files, files_room, file_buckets;
	struct hl_placed_variable *placed; /* until hl_store_sort_variables() */
	struct hl_variable *variable; /* then */
	uint32_t n_variables, variables_room;
	char **chunk; /* memory of the strings that the store made itself */
	uint32_t n_chunks, chunks_room;
	size_t chunk_used;
	uint32_t n_skipped;
	const char *skipped;
	uint64_t skipped_order; /* place of the first that was skipped */
	uint64_t now; /* place of what is being read, for the above */
	bool align_untold; /* the file does not tell all alignment that was asked for */
};

int hl_store_init(struct hl_store *store);
void hl_store_free(struct hl_store *store);
/* The id of the type, which is added when it is new.  type->first is set by the
 * store, type->count says how many members there are.  Negative errno on failure. */
int64_t hl_store_type(struct hl_store *store, const struct hl_type *type,
		      const struct hl_member *members);
/* The type was defined at the given place; the lowest counts. */
void hl_store_defined(struct hl_store *store, hl_type_id id, uint64_t order);
int hl_store_variable(struct hl_store *store, const struct hl_variable *variable, uint64_t order);
/* A copy of the string, owned by the store. */
const char *hl_store_string(struct hl_store *store, const char *bytes, size_t n);
/* The index of a file or scope of that name, which is copied when it is new. */
int64_t hl_store_file(struct hl_store *store, const char *name, size_t n);
/* Something was left out: counts it, and remembers the first. */
void hl_store_skip(struct hl_store *store, const char *what);
/* Adds all that `from` holds to `into`; `from` is emptied but keeps its strings. */
int hl_store_pour(struct hl_store *into, struct hl_store *from);

/* Variables in the order of the file, each once, however many units saw it. */
int hl_store_sort_variables(struct hl_store *store);
/* Numbers types anew, by the definitions and variables, which must be in the order of
 * the file and receive the new numbers.  A store that has no other definitions, and to
 * which nothing is added any more. */
int hl_store_number(struct hl_store *store, struct hl_definition *definition,
		    uint32_t n_definitions);

/* What hl_types_open() returns: the public part first, then all that it owns. */
struct hl_types_whole {
	struct hl_types types;
	struct hl_store store;
	hl_type_id *defined;
	struct hl_store *more; /* stores of other threads, kept for their strings */
	uint32_t n_more;
	void *source; /* what names point into: struct btf, or the DWARF files */
	void (*close_source)(void *source);
};

/* The readers.  Each fills whole->store and .source, and the facts of the target machine. */
int hl_dwarf_read(struct hl_types_whole *whole, const char *path, int fd,
		  const struct hl_types_options *options, struct hl_error *err);
int hl_btf_read(struct hl_types_whole *whole, const char *path, bool raw,
		const struct hl_types_options *options, struct hl_error *err);

/* Works out alignments; type and member are the writable arrays behind types. */
int hl_types_settle(struct hl_types *types, struct hl_type *type, struct hl_member *member,
		    struct hl_error *err);

/* Whether an ELF file has a section of that name with something in it. */
bool hl_elf_has_section(int fd, const char *name);

/* Writes the reason and returns rc. */
int hl_fail(struct hl_error *err, int rc, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
int hl_fail_nomem(struct hl_error *err);

#endif
