// SPDX-License-Identifier: MIT
#include "pagecache/pageset.h"

#include <stdlib.h>

static size_t home(const struct hl_pageset *set, uint64_t page)
{
	return (size_t)((page * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (set->room - 1);
}

static void put(struct hl_pageset *set, uint64_t page)
{
	size_t i = home(set, page);

	while (set->slot[i] && set->slot[i] != page + 1)
		i = (i + 1) & (set->room - 1);
	set->n += !set->slot[i];
	set->slot[i] = page + 1;
}

static bool grow(struct hl_pageset *set)
{
	struct hl_pageset more = { .room = set->room ? 2 * set->room : 64 };

	more.slot = calloc(more.room, sizeof(*more.slot));
	if (!more.slot)
		return false;
	for (size_t i = 0; i < set->room; i++) {
		if (set->slot[i])
			put(&more, set->slot[i] - 1);
	}
	free(set->slot);
	set->slot = more.slot;
	set->room = more.room;
	return true;
}

void hl_pageset_add(struct hl_pageset *set, uint64_t page)
{
	if (set->all)
		return;
	if (2 * (set->n + 1) > set->room && !grow(set)) {
		set->all = true;
		return;
	}
	put(set, page);
}

void hl_pageset_remove(struct hl_pageset *set, uint64_t page)
{
	size_t i, next;

	if (!set->n)
		return;
	i = home(set, page);
	while (set->slot[i] != page + 1) {
		if (!set->slot[i])
			return;
		i = (i + 1) & (set->room - 1);
	}
	set->n--;
	/* What follows and had to pass this slot moves up, so that no search stops early. */
	for (next = (i + 1) & (set->room - 1); set->slot[next];
	     next = (next + 1) & (set->room - 1)) {
		size_t from_home = (next - home(set, set->slot[next] - 1)) & (set->room - 1);

		if (from_home >= ((next - i) & (set->room - 1))) {
			set->slot[i] = set->slot[next];
			i = next;
		}
	}
	set->slot[i] = 0;
}

bool hl_pageset_has(const struct hl_pageset *set, uint64_t page)
{
	size_t i;

	if (set->all || !set->n)
		return set->all;
	for (i = home(set, page); set->slot[i] && set->slot[i] != page + 1;)
		i = (i + 1) & (set->room - 1);
	return set->slot[i];
}

bool hl_pageset_any(const struct hl_pageset *set, uint64_t first, uint64_t n)
{
	if (set->all)
		return true;
	for (size_t i = 0; set->n && i < set->room; i++) {
		if (set->slot[i] && set->slot[i] - 1 >= first && set->slot[i] - 1 - first < n)
			return true;
	}
	return false;
}

void hl_pageset_each(const struct hl_pageset *set, void (*each)(uint64_t page, void *arg),
		     void *arg)
{
	for (size_t i = 0; set->n && i < set->room; i++) {
		if (set->slot[i])
			each(set->slot[i] - 1, arg);
	}
}

void hl_pageset_free(struct hl_pageset *set)
{
	free(set->slot);
	*set = (struct hl_pageset){ 0 };
}
