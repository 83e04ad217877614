/* SPDX-License-Identifier: MIT */
/*
 * What a process's file says: which objects' lines were passed on between which threads, from
 * where, and how much of it for no other reason than where the bytes lie.
 */
#ifndef HL_LINES_FINDINGS_H
#define HL_LINES_FINDINGS_H

#include "debuginfo/text.h"
#include "lines/raw_read.h"
#include "lines/symbols.h"

enum hl_sharing {
	HL_SHARING_FALSE, /* hardly anybody wanted bytes that others had written */
	HL_SHARING_TRUE, /* nearly everybody did */
	HL_SHARING_MIXED,
};

/* Threads that run the same function. */
struct hl_group {
	const char *name;
	uint32_t n_threads;
	uint64_t accesses, transfers;
};

enum hl_object_kind {
	HL_OBJECT_STATIC,
	HL_OBJECT_HEAP,
	HL_OBJECT_MAPPED,
	HL_OBJECT_STACK,
	HL_OBJECT_TLS,
	HL_OBJECT_UNKNOWN,
};

/* An object; of the heap all those of one size from one place. */
struct hl_object {
	enum hl_object_kind kind;
	uint64_t a, b; /* what tells it from others */
	struct hl_named_object
		named; /* .name NULL: it has none; .types NULL: its type is not known */
	const struct hl_raw_stack_read *stack; /* where it was allocated; NULL: not known */
	uint32_t group; /* STACK, TLS: whose */
	const struct hl_code *function; /* STACK: in which function; NULL: not known */
	uint64_t instance; /* where the one lies whose line is shown */
	bool several; /* more than one of them was met */
};

/* One place of the code that touches a field, in threads of one group. */
struct hl_user {
	uint32_t group;
	uint32_t thread; /* 0: several */
	const struct hl_code *code;
	uint8_t flags; /* HL_RAW_WRITE, ... */
	uint64_t accesses, transfers, untrue;
	const struct hl_code *from; /* whose write took the line away, mostly; NULL: not known */
	uint64_t from_transfers; /* of what that was told for */
};

struct hl_touched {
	const struct hl_object *object;
	const char *name; /* "hits", "used[3]", "+24" */
	const char *type; /* NULL: not known */
	uint64_t offset, size; /* in the object */
	uint32_t index; /* of the element of the outermost array; UINT32_MAX: in none */
	uint64_t accesses, transfers, untrue;
	struct hl_user *user; /* the one with the most transfers first */
	uint32_t n_users;
	uint32_t writer, reader; /* the thread; 0: none; HL_MANY */
};

#define HL_MANY UINT32_MAX

/* The line of a finding that was passed on most, in 64 parts of a byte each, or of two. */
struct hl_shown_line {
	uint64_t address;
	uint64_t transfers;
	uint32_t writer[64], reader[64]; /* thread; 0: none; HL_MANY */
};

struct hl_shared {
	const struct hl_object *object;
	enum hl_sharing sharing;
	uint64_t accesses, transfers, untrue;
	uint32_t n_lines;
	struct hl_touched *field; /* the one with the most transfers first */
	uint32_t n_fields;
	const struct hl_object **other; /* objects that share its lines */
	uint32_t n_others;
	struct hl_shown_line line; /* .transfers 0: no line was passed on often enough */
	char *advice; /* what to do; never NULL */
	char *code; /* the struct as it could be; NULL: no proposal */
	uint64_t new_size; /* of it */
};

struct hl_findings {
	const struct hl_raw_file *file;
	struct hl_symbols *symbols;
	struct hl_group *group;
	uint32_t n_groups;
	uint32_t *group_of; /* by index of the file's threads */
	struct hl_object *object;
	uint32_t n_objects;
	struct hl_shared *finding; /* worst first */
	uint32_t n_findings;
	uint64_t accesses, transfers, untrue; /* of all, findings or not */
	uint64_t lost;
	uint32_t n_small; /* objects with too few transfers to be shown */
	uint64_t small; /* transfers of these */
	void *memory; /* of strings */
};

struct hl_findings_options {
	uint64_t least; /* transfers that an object must have */
	const char *debug_dir; /* as in struct hl_types_options */
};

/* 0 or -ENOMEM.  The file must stay as long. */
int hl_findings_make(struct hl_findings *findings, const struct hl_raw_file *file,
		     const struct hl_findings_options *options);
void hl_findings_free(struct hl_findings *findings);

/* The index of the thread's group. */
uint32_t hl_findings_group(const struct hl_findings *findings, uint32_t thread);

/* Adds "used", "struct stats", "block of 24 bytes". */
void hl_object_name(struct hl_text *text, const struct hl_object *object);
/* Adds "static, 128 bytes, f.c:3", "heap, 24 bytes, from main (f.c:9)". */
void hl_object_where(struct hl_text *text, const struct hl_findings *findings,
		     const struct hl_object *object);
/* The file and line that say where it comes from; false: not known. */
bool hl_object_place(const struct hl_findings *findings, const struct hl_object *object,
		     const char **file, uint32_t *line);
/* Adds "f.c:12", as it is seen from the current directory. */
void hl_code_place(struct hl_text *text, const struct hl_code *code);
const char *hl_sharing_name(enum hl_sharing sharing);

/* Inside: what to do about a finding (advice.c).  0 or -ENOMEM. */
int hl_advise(struct hl_findings *findings, struct hl_shared *finding);

#endif
