/* SPDX-License-Identifier: MIT */
/*
 * A disk for the page cache that loses power: what was written and not synced is there after it
 * or not, sector by sector, so that pages are torn as well. And a sync that fails forgets, as
 * the kernel's does: what it was for is lost or not, and the next says yes.
 */
#ifndef MODEL_DISK_H
#define MODEL_DISK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "pagecache/io.h"

#define MODEL_SECTOR 512u
#define MODEL_DISKS 2u

/* Makes the file and the disk that is to be used in its place; zeroes, synced. */
void model_disk_make(unsigned disk, const char *path, size_t bytes);
void model_disk_free(unsigned disk);

/* For all disks: power fails at this I/O from now, 0: not. Everything fails from then on. */
void model_disk_fail_power_at(unsigned long n, unsigned seed);
/* One sync in so many fails; 0: none. */
extern _Atomic(unsigned) model_sync_fails_one_in;
/* I/Os since model_disk_fail_power_at(), and syncs that failed by chance. */
extern _Atomic(unsigned long) model_ios, model_failed_syncs;
bool model_disk_has_no_power(void);

/* Power comes back: the contents are what got to the disk. Nobody may be using it. How many
 * sectors' writes were lost. */
unsigned long model_disk_recover(unsigned disk);
const void *model_disk_contents(unsigned disk);

extern const struct hl_io model_disk_io;

#endif
