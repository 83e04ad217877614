/* SPDX-License-Identifier: MIT */
/*
 * A cache and a file for a test of the page cache, and pages that say what they are.
 */
#ifndef PAGES_H
#define PAGES_H

#include <stdbool.h>
#include <stdint.h>

#include <hotline/pagecache.h>

#define PAGE 4096u

/* The file, in the directory where the test runs, and the cache that the functions use. */
extern char path[64];
extern struct hl_pagecache *cache;

/* Around each test. */
int make_path(void **state);
int remove_path(void **state);

/* With faulty I/O (faulty_io.h), and no writing that nobody asked for. */
void open_with(unsigned frames, uint64_t pages, unsigned flags, unsigned wait_ms);
void close_cache(void);

/* They must succeed. */
void *fix(uint64_t page, unsigned how);
void unfix(void *data);

/* Gives a page a content that says which page it is and when it was written. */
void put(uint64_t page, uint64_t value);
bool holds(const uint64_t *data, uint64_t page, uint64_t value);
void expect(uint64_t page, uint64_t value);
void expect_in_file(uint64_t page, uint64_t value);

/* They must add up. */
struct hl_pagecache_stats stats(void);

#endif
