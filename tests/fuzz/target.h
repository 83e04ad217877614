/* SPDX-License-Identifier: MIT */
/*
 * What the fuzz targets share.  A target is one function over bytes, in libFuzzer's
 * form; three things drive it:
 *
 *   replay.c	plainly, over files: the regression test of `make check`, and under
 *		AFL++ `afl-fuzz -i SEEDS -o OUT -- fuzz-file-replay @@`
 *   libFuzzer	linked with -fsanitize=fuzzer: `make fuzz`
 *
 *   file.c	a file of any kind, from opening to the last line of a report
 *   graph.c	types made from the bytes directly: what reports do with what no
 *		compiler writes, thousands of members included
 *   rules.c	a file of rules for --check
 */
#ifndef HL_FUZZ_TARGET_H
#define HL_FUZZ_TARGET_H

#include "debuginfo/debuginfo.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What must hold whatever the input; a target is no library and may abort. */
#define FUZZ_CHECK(what)								\
	do {										\
		if (!(what)) {								\
			fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__,		\
				__LINE__, #what);					\
			abort();							\
		}									\
	} while (0)

/* Checks what readers of a graph rely on: ids, ranges, bounds. */
void fuzz_check_types(const struct hl_types *types);

/* Does with the types one of the things that the command can do, drawn by the seed;
 * all of them if fuzz_all_parts is set. */
void fuzz_report(const struct hl_types *types, unsigned seed);
extern bool fuzz_all_parts;

/* Always the same for the same bytes. */
unsigned fuzz_seed(const uint8_t *data, size_t size);

/* The bounds of the tests without a fuzzer: 10 s of processor time between these two
 * calls, after which a signal ends the program, and 512 MB in all; more with sanitizers. */
void fuzz_watch(bool begin);
/* Prints the line of the test with that number. */
bool fuzz_memory_is_bounded(size_t number);

/* Types made from bytes; NULL when they are such as hl_types_open() refuses. */
struct hl_types *fuzz_build_types(const uint8_t *data, size_t size);
void fuzz_free_types(struct hl_types *types);

#endif
