// SPDX-License-Identifier: MIT
/*
 * A hash from the address of a DIE to a number.
 */
#include "die_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_SLOTS 1024u
/* Above this (4 MB) a map is given back when it is cleared, not kept for the next unit. */
#define MOST_KEPT (1u << 18)

int hl_die_map_init(struct hl_die_map *map)
{
	map->used = 0;
	map->round = 1;
	map->slots = FIRST_SLOTS;
	map->slot = calloc(map->slots, sizeof(*map->slot));
	return map->slot ? 0 : -ENOMEM;
}

void hl_die_map_free(struct hl_die_map *map)
{
	free(map->slot);
	*map = (struct hl_die_map){ 0 };
}

void hl_die_map_clear(struct hl_die_map *map)
{
	struct hl_die_map fresh;

	if (map->slots > MOST_KEPT && !hl_die_map_init(&fresh)) {
		hl_die_map_free(map);
		*map = fresh;
		return;
	}
	map->used = 0;
	if (++map->round)
		return;
	memset(map->slot, 0, map->slots * sizeof(*map->slot));
	map->round = 1;
}

/* The slot of the DIE, or the free one where it would go. */
static struct hl_die_slot *find(const struct hl_die_map *map, const void *die)
{
	uint32_t mask = map->slots - 1;
	uint32_t at = (uint32_t)(((uintptr_t)die * 0x9e3779b97f4a7c15u) >> 32) & mask;

	while (map->slot[at].round == map->round && map->slot[at].die != die)
		at = (at + 1) & mask;
	return &map->slot[at];
}

int64_t hl_die_map_get(const struct hl_die_map *map, const void *die)
{
	const struct hl_die_slot *slot = find(map, die);

	return slot->round == map->round ? (int64_t)slot->value : -1;
}

static int widen(struct hl_die_map *map)
{
	struct hl_die_map wide = { .slots = map->slots * 2, .used = map->used, .round = 1 };

	wide.slot = calloc(wide.slots, sizeof(*wide.slot));
	if (!wide.slot)
		return -ENOMEM;
	for (uint32_t i = 0; i < map->slots; i++) {
		const struct hl_die_slot *slot = &map->slot[i];

		if (slot->round == map->round)
			*find(&wide, slot->die) = (struct hl_die_slot){ slot->die, slot->value, 1 };
	}
	free(map->slot);
	*map = wide;
	return 0;
}

int hl_die_map_set(struct hl_die_map *map, const void *die, uint32_t value)
{
	struct hl_die_slot *slot = find(map, die);

	if (slot->round == map->round) {
		slot->value = value;
		return 0;
	}
	if (map->used >= map->slots / 2) {
		int rc = widen(map);

		if (rc)
			return rc;
		slot = find(map, die);
	}
	map->used++;
	*slot = (struct hl_die_slot){ die, value, map->round };
	return 0;
}
