// SPDX-License-Identifier: MIT
/*
 * A hash from the address of a DIE to a number.
 */
#include "die_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_SLOTS 1024u
/* Above this a map is given back when it is cleared, not kept for the next unit. */
#define MOST_KEPT 65536u

int hl_die_map_init(struct hl_die_map *map)
{
	map->used = 0;
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
	if (map->slots > MOST_KEPT) {
		struct hl_die_map fresh;

		if (!hl_die_map_init(&fresh)) {
			hl_die_map_free(map);
			*map = fresh;
			return;
		}
	}
	if (map->used)
		memset(map->slot, 0, map->slots * sizeof(*map->slot));
	map->used = 0;
}

static uint32_t find(const struct hl_die_slot *slot, uint32_t slots, const void *die)
{
	uint32_t at = (uint32_t)(((uintptr_t)die * 0x9e3779b97f4a7c15u) >> 32) & (slots - 1);

	while (slot[at].die && slot[at].die != die)
		at = (at + 1) & (slots - 1);
	return at;
}

int64_t hl_die_map_get(const struct hl_die_map *map, const void *die)
{
	const struct hl_die_slot *slot = &map->slot[find(map->slot, map->slots, die)];

	return slot->die ? (int64_t)slot->value : -1;
}

int hl_die_map_set(struct hl_die_map *map, const void *die, uint32_t value)
{
	if (map->used >= map->slots / 2) {
		uint32_t slots = map->slots * 2;
		struct hl_die_slot *slot = calloc(slots, sizeof(*slot));

		if (!slot)
			return -ENOMEM;
		for (uint32_t i = 0; i < map->slots; i++)
			if (map->slot[i].die)
				slot[find(slot, slots, map->slot[i].die)] = map->slot[i];
		free(map->slot);
		map->slot = slot;
		map->slots = slots;
	}
	struct hl_die_slot *slot = &map->slot[find(map->slot, map->slots, die)];

	if (!slot->die)
		map->used++;
	slot->die = die;
	slot->value = value;
	return 0;
}
