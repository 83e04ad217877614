/* SPDX-License-Identifier: MIT */
/*
 * Inside the room: from a file to the DWARF handles of what is in it.
 */
#ifndef HL_DEBUGINFO_DWARF_SOURCE_H
#define HL_DEBUGINFO_DWARF_SOURCE_H

#include "internal.h"

#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>

/* Handles that are ended together, and the ELF images (or NULL) that they stand on. */
struct hl_dwarf_handles {
	struct hl_dwarf_handle {
		Dwarf *dwarf;
		Elf *elf;
	} * at;
	uint32_t n, room;
};

/* Opens one more handle over the image, which is taken over if `own` says so, also
 * when that fails.  NULL: no memory, or no DWARF in it. */
Dwarf *hl_dwarf_handles_open(struct hl_dwarf_handles *handles, Elf *elf, bool own);
void hl_dwarf_handles_end(struct hl_dwarf_handles *handles);

/* An image in which the units that an object keeps in sections of their own, one a type
 * (gcc -fdebug-types-section), stand in one section with the others, as a linker would
 * put them.  NULL when there are none or there is no memory. */
Elf *hl_elf_with_type_units(Elf *elf);

/* Takes the rows out of the line tables of an image that libdwfl opened, in memory:
 * what is left are the names of source files. */
void hl_cut_line_tables(Elf *elf);

struct hl_dwarf_source {
	Dwfl *dwfl;
	char *debug_path;
	Dwfl_Callbacks callbacks;
	struct hl_dwarf_handles own; /* beside those of libdwfl */
	Dwarf **module; /* of the file, or of each member of an archive */
	uint32_t n_modules;
	uint64_t info_bytes; /* of .debug_info in all modules */
	uint32_t n_failed; /* modules with DWARF that cannot be read */
	char why[200]; /* the reason for the first of them */
};

/* Opens the file and its separate debug file.  A file without DWARF has no modules. */
int hl_dwarf_source_open(struct hl_dwarf_source *source, const char *path, int fd,
			 const struct hl_types_options *options, struct hl_error *err);
void hl_dwarf_source_close(struct hl_dwarf_source *source);

#endif
