/* SPDX-License-Identifier: MIT */
/*
 * Batches of pages that are filled and drained, compiled once for each layout of a batch.
 */
#ifndef HL_BENCH_BATCHES_H
#define HL_BENCH_BATCHES_H

#include <stddef.h>
#include <stdint.h>

struct batches {
	size_t bytes; /* of a batch */
	unsigned pages; /* that it holds */
	/* The lines that batch number i of an array uses when it is full. */
	unsigned (*lines)(const void *array, size_t i);
	/* Adds the pages to batches of the array, one batch after another in an order that
	 * no prefetcher foresees, and drains each when it is full. Returns how many pages it
	 * drained, each of which it has counted. */
	uint64_t (*fill_and_drain)(void *array, size_t n, uint64_t *page, size_t n_pages,
				   uint64_t batches);
};

extern const struct batches batches_hotline;
extern const struct batches batches_as_it_was;

#endif
