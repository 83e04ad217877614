/* SPDX-License-Identifier: MIT */
/*
 * Inside the room: DWARF package files (.dwp), which hold many split units.
 */
#ifndef HL_DEBUGINFO_DWP_H
#define HL_DEBUGINFO_DWP_H

#include "dwarf_reader.h"

struct hl_dwp;

bool hl_dwp_is_package(int fd);
int hl_dwp_open(struct hl_dwp **out, const char *path, struct hl_error *err);
/* Reads all units into the reader's store, numbered from `order`; adds their number to *units. */
int hl_dwp_read(struct hl_dwp *package, struct hl_dwarf_reader *reader, uint32_t order,
		uint32_t *units, struct hl_error *err);
void hl_dwp_close(struct hl_dwp *package);

#endif
