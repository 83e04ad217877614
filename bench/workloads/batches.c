// SPDX-License-Identifier: MIT
/*
 * The page cache's way with a batch: pages are added until it is full, then each is
 * looked at. HL_LAYOUT_PAGEVEC decides what a batch is.
 */
#include "bench/batches.h"

#include <hotline/pagevec.h>

/* Coprime to every number of batches that the experiment has. */
#define STRIDE 7919

#if HL_LAYOUT_PAGEVEC
#define BATCH(what) hl_pagevec##what
#define BATCH_SIZE HL_PAGEVEC_SIZE
#else
/* As it was before 2004; the functions are compiled from the same source. */
#define BATCH(what) as_it_was##what
#define BATCH_SIZE 16
struct as_it_was {
	unsigned long nr;
	unsigned long taken;
	void *item[BATCH_SIZE];
};
HL_PRIV_BATCH_FUNCTIONS(as_it_was, void *, BATCH_SIZE);
#endif

static unsigned lines(const void *array, size_t i)
{
	const struct BATCH() *batch = (const struct BATCH() *)array + i;
	uintptr_t first = (uintptr_t)batch;
	uintptr_t last = (uintptr_t)(batch->item + BATCH_SIZE) - 1;

	/* The counters are somewhere in between, in either layout. */
	return (unsigned)(last / HL_CACHE_LINE - first / HL_CACHE_LINE + 1);
}

static void count(void **items, unsigned n, void *arg)
{
	for (unsigned i = 0; i < n; i++)
		++*(uint64_t *)items[i];
	*(uint64_t *)arg += n;
}

static uint64_t fill_and_drain(void *array, size_t n, uint64_t *page, size_t n_pages,
			       uint64_t batches)
{
	struct BATCH() *batch = array;
	uint64_t drained = 0;
	size_t next = 0, at = 0;

	while (batches--) {
		struct BATCH() *one = &batch[at];

		BATCH(_init)(one);
		while (BATCH(_add)(one, &page[next++ % n_pages]))
			;
		BATCH(_release)(one, count, &drained);
		at = (at + STRIDE) % n;
	}
	return drained;
}

const struct batches BENCH_BATCHES = {
	.bytes = sizeof(struct BATCH()),
	.pages = BATCH_SIZE,
	.lines = lines,
	.fill_and_drain = fill_and_drain,
};
