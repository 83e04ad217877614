/* SPDX-License-Identifier: MIT */
/*
 * Inside the room: reading one DWARF unit into a store.
 */
#ifndef HL_DEBUGINFO_DWARF_READER_H
#define HL_DEBUGINFO_DWARF_READER_H

#include "internal.h"

#include <dwarf.h>
#include <elfutils/libdw.h>

/* Where a thread remembers what it has read: DIE to type, DIE to scope. */
struct hl_die_map {
	struct hl_die_slot {
		const void *die; /* address of the DIE; NULL: free */
		uint32_t value;
	} * slot;
	uint32_t slots, used;
};

int hl_die_map_init(struct hl_die_map *map);
void hl_die_map_free(struct hl_die_map *map);
void hl_die_map_clear(struct hl_die_map *map);
/* The value kept for the DIE, or -1. */
int64_t hl_die_map_get(const struct hl_die_map *map, const void *die);
/* 0 or -ENOMEM. */
int hl_die_map_set(struct hl_die_map *map, const void *die, uint32_t value);

/* Names of the source files of a unit, as the store numbers them. */
struct hl_unit_files {
	Dwarf_CU *cu;
	uint32_t *file; /* by the number that DW_AT_decl_file gives; 0: none */
	size_t n;
};

/* One thread's reading: all that it needs to turn DIEs into types of its store. */
struct hl_dwarf_reader {
	struct hl_store *store;
	struct hl_die_map types; /* DIE to type id */
	struct hl_die_map scopes; /* DIE to scope (C++ and Rust) */
	struct hl_die_map indexed; /* unit DIEs whose scopes are known */
	struct hl_die_map imported; /* unit DIEs of other files (dwz) that were read */
	struct hl_unit_files *files; /* one entry a unit met in this call */
	uint32_t n_files, files_room;
	struct hl_member *scratch; /* members of the structs being read, a stack */
	uint32_t n_scratch, scratch_room;
	uint8_t address_size;
	int rc; /* the first failure: nothing more is read after it */
	const char *why; /* its reason, NULL: no memory */
};

int hl_dwarf_reader_init(struct hl_dwarf_reader *reader, struct hl_store *store);
void hl_dwarf_reader_free(struct hl_dwarf_reader *reader);
/* Reads the types that the unit defines.  `order` is the unit's place among all. */
int hl_dwarf_read_unit(struct hl_dwarf_reader *reader, Dwarf_Die *unit, uint32_t order);

#endif
