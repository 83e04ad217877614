/* SPDX-License-Identifier: MIT */
/*
 * A set of page numbers.
 */
#ifndef HL_PAGECACHE_PAGESET_H
#define HL_PAGECACHE_PAGESET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hl_pageset {
	uint64_t *slot; /* page number and one, 0: free */
	size_t room; /* slots, a power of two or 0 */
	size_t n;
	bool all; /* memory ran out: it may be any page */
};

void hl_pageset_add(struct hl_pageset *set, uint64_t page);
void hl_pageset_remove(struct hl_pageset *set, uint64_t page);
bool hl_pageset_has(const struct hl_pageset *set, uint64_t page);
/* Whether one of n pages is in it. */
bool hl_pageset_any(const struct hl_pageset *set, uint64_t first, uint64_t n);
void hl_pageset_free(struct hl_pageset *set);
/* Calls each() with each page that is in it. */
void hl_pageset_each(const struct hl_pageset *set, void (*each)(uint64_t page, void *arg),
		     void *arg);

#endif
