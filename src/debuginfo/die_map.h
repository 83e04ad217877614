/* SPDX-License-Identifier: MIT */
/*
 * Inside the room: a hash from addresses, of DIEs as a rule, to numbers.
 */
#ifndef HL_DEBUGINFO_DIE_MAP_H
#define HL_DEBUGINFO_DIE_MAP_H

#include <stdint.h>

/* Where a thread remembers what it has read: DIE to type, DIE to scope. */
struct hl_die_slot {
	const void *die; /* address of the DIE */
	uint32_t value;
	uint32_t round; /* in use if it is that of the map */
};

struct hl_die_map {
	struct hl_die_slot *slot;
	uint32_t slots, used;
	uint32_t round; /* grows when the map is cleared; never 0 */
};

int hl_die_map_init(struct hl_die_map *map);
void hl_die_map_free(struct hl_die_map *map);
void hl_die_map_clear(struct hl_die_map *map);
/* The value kept for the DIE, or -1. */
int64_t hl_die_map_get(const struct hl_die_map *map, const void *die);
/* 0 or -ENOMEM. */
int hl_die_map_set(struct hl_die_map *map, const void *die, uint32_t value);

#endif
