/* SPDX-License-Identifier: MIT */
/*
 * Inside the room: what libelf and libdw would believe of a hostile file and take
 * gigabytes or hours for is looked at before they see it.
 */
#ifndef HL_DEBUGINFO_FENCE_H
#define HL_DEBUGINFO_FENCE_H

#include "die_map.h"
#include "internal.h"

#include <elfutils/libdw.h>

/* Compressed sections of an ELF file, or of the members of an archive, that would grow
 * beyond all measure.  0; -E2BIG. */
int hl_fence_file(int fd, const char *path, struct hl_error *err);

/* Units that share abbreviations, each of which libdw keeps anew for each unit: more
 * than memory can hold when tables overlap.  0; -E2BIG. */
int hl_fence_units(Dwarf *dwarf, const char *path, struct hl_error *err);

/* The tables of lines that a thread has had read, one file after the other. */
struct hl_fence_lines {
	Dwarf *dwarf;
	Elf_Data *data; /* .debug_line; NULL: there is none */
	uint64_t left; /* bytes that the tables of this file may still take */
	struct hl_die_map known; /* tables that were counted, by their addresses */
};

/* Whether libdw may read the source files of the unit.  It runs the whole program of
 * lines for that, so programs that overlap would be run again and again.  1: it may; 0;
 * -ENOMEM. */
int hl_fence_lines(struct hl_fence_lines *lines, Dwarf_Die *unit);

#endif
