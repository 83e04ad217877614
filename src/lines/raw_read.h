/* SPDX-License-Identifier: MIT */
/*
 * The file of one process, read and checked: every number in it that leads somewhere leads to
 * something that is there.
 */
#ifndef HL_LINES_RAW_READ_H
#define HL_LINES_RAW_READ_H

#include "debuginfo/debuginfo.h"
#include "lines/raw.h"

struct hl_raw_module_read {
	struct hl_raw_module raw;
	const char *path;
};

struct hl_raw_stack_read {
	uint32_t id, n;
	const uint64_t *pc; /* the innermost first */
};

struct hl_raw_thread_read {
	struct hl_raw_thread raw;
	const struct hl_raw_access *access;
	const struct hl_raw_handover *handover;
	uint32_t n_accesses, n_handovers;
};

struct hl_raw_file {
	struct hl_raw_header header;
	struct hl_raw_module_read *module; /* by where they begin */
	struct hl_raw_stack_read *stack; /* by id */
	struct hl_raw_thread_read *thread; /* by id */
	const struct hl_raw_line *line; /* [0] is not used, as in the numbers of accesses */
	uint32_t n_modules, n_stacks, n_threads, n_lines;
	struct hl_raw_end end;
	bool whole; /* the end was written: the process was not killed */
	void *bytes; /* what all of them point into */
};

/* 0; -ENOENT, ... when it cannot be read; -ENOEXEC: it is no such file, or of another machine or
 * version; -EBADMSG: damaged; -ENOMEM.  The reason is in err->text. */
int hl_raw_open(struct hl_raw_file *file, const char *path, struct hl_error *err);
void hl_raw_close(struct hl_raw_file *file);

/* NULL: there is none. */
const struct hl_raw_stack_read *hl_raw_stack(const struct hl_raw_file *file, uint32_t id);
const struct hl_raw_thread_read *hl_raw_thread(const struct hl_raw_file *file, uint32_t id);

#endif
