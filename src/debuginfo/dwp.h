/* SPDX-License-Identifier: MIT */
/*
 * Inside the room: DWARF package files (.dwp), which hold many split units.
 */
#ifndef HL_DEBUGINFO_DWP_H
#define HL_DEBUGINFO_DWP_H

#include "dwarf_reader.h"

/* A package, as one thread has it open. */
struct hl_dwp;

bool hl_dwp_is_package(int fd);
int hl_dwp_open(struct hl_dwp **out, const char *path, struct hl_error *err);
void hl_dwp_close(struct hl_dwp *package);

/* Units of the package: first those that were compiled, then those of types. */
uint32_t hl_dwp_units(const struct hl_dwp *package);
uint32_t hl_dwp_first_type_unit(const struct hl_dwp *package);
Elf *hl_dwp_elf(const struct hl_dwp *package);
/* Reads a unit into the reader's store. */
int hl_dwp_read_unit(struct hl_dwp *package, uint32_t unit, struct hl_dwarf_reader *reader,
		     uint64_t order, struct hl_error *err);
/* The same for the split unit that the skeleton stands for; 1: it is not there. */
int hl_dwp_read_split(struct hl_dwp *package, Dwarf_Die *skeleton, struct hl_dwarf_reader *reader,
		      uint64_t order, struct hl_error *err);

#endif
