/* SPDX-License-Identifier: MIT */
/*
 * Inside the room: reading one DWARF unit into a store.
 */
#ifndef HL_DEBUGINFO_DWARF_READER_H
#define HL_DEBUGINFO_DWARF_READER_H

#include "die_map.h"
#include "fence.h"
#include "internal.h"

#include <dwarf.h>
#include <elfutils/libdw.h>

/* Names of the source files of a unit, as the store numbers them. */
struct hl_unit_files {
	Dwarf_CU *cu;
	uint32_t *file; /* by the number that DW_AT_decl_file gives; 0: none */
	size_t n;
};

/* A unit of the file that several programs share (dwz -m), which a unit imports. */
struct hl_import {
	uint64_t order; /* where it was imported first */
	Dwarf_Off offset; /* of the unit's DIE in that file */
	uint32_t module;
};

struct hl_dwarf_reader;

/* Finds a type by its signature where libdw knows nothing of its unit: in a package.
 * By name alone if that is enough.  0: it is not there. */
typedef hl_type_id hl_by_signature(struct hl_dwarf_reader *reader, const void *signature,
				   bool by_name, int depth);

/* One thread's reading: all that it needs to turn DIEs into types of its store. */
struct hl_dwarf_reader {
	struct hl_store *store;
	struct hl_die_map types; /* DIE to type id, of the unit being read */
	struct hl_die_map scopes; /* DIE to scope (C++ and Rust) */
	struct hl_die_map indexed; /* unit DIEs whose scopes are known */
	struct hl_die_map imported; /* unit DIEs that are among the imports */
	struct hl_import *imports;
	uint32_t n_imports, imports_room;
	struct hl_unit_files *files; /* one entry a unit met in this call */
	uint32_t n_files, files_room;
	struct hl_member *scratch; /* members of the structs being read, a stack */
	uint32_t n_scratch, scratch_room;
	Dwarf_CU *language_unit; /* the unit whose language was asked for last */
	enum hl_language language;
	uint32_t module; /* of the file, whose units are being read */
	enum hl_language partial_language; /* of units that tell none (dwz) */
	Dwarf_Die *skeleton; /* has the names of files for a split unit; NULL: none */
	hl_by_signature *by_signature; /* NULL: none */
	void *package; /* for it */
	struct hl_fence_lines lines;
	uint8_t address_size;
	bool all_variables; /* as in hl_types_options */
	int rc; /* the first failure: nothing more is read after it */
	const char *why; /* its reason, NULL: no memory */
};

int hl_dwarf_reader_init(struct hl_dwarf_reader *reader, struct hl_store *store);
void hl_dwarf_reader_free(struct hl_dwarf_reader *reader);
/* Reads the types that the unit defines.  `order` is the place of its first definition
 * among all; the next ones count up from there.  A unit of a file that several programs
 * share (dwz) is read with what it imports there. */
int hl_dwarf_read_unit(struct hl_dwarf_reader *reader, Dwarf_Die *unit, uint64_t order,
		       bool shared);
/* Reads one type, or only its name, in the middle of reading a unit. */
hl_type_id hl_dwarf_read_type(struct hl_dwarf_reader *reader, Dwarf_Die *die, bool by_name,
			      int depth);
/* Handles of units are about to end: forgets what is known by them. */
void hl_dwarf_forget(struct hl_dwarf_reader *reader, Dwarf *dwarf);
enum hl_language hl_dwarf_language(Dwarf_Die *unit);

#endif
