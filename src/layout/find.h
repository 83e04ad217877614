/* SPDX-License-Identifier: MIT */
/*
 * Inside the room: what the routines that look for one kind of fault share.
 */
#ifndef HL_LAYOUT_FIND_H
#define HL_LAYOUT_FIND_H

#include "layout/faults.h"
#include "layout/look.h"
#include "layout/place.h"

/* A field at the bottom of nested structs: where it lies in the outermost one. */
struct hl_leaf {
	const struct hl_member *member;
	uint64_t offset, size; /* bytes; a bit-field's are those that it touches */
	uint64_t stride; /* of an array: bytes from element to element; otherwise size */
	uint32_t top; /* the member of the outermost struct that it lies in, from 0 */
	uint32_t up; /* the leaf-to-be that holds it: index into frames, 0: none */
	uint8_t look; /* enum hl_look */
	bool pointer, callback; /* a pointer; one to a function */
};

struct hl_frame {
	const char *name; /* of a member that holds others; NULL: anonymous */
	uint32_t up;
};

/* One type under examination. */
struct hl_find {
	const struct hl_types *types;
	const struct hl_looks *looks;
	hl_type_id id; /* as it is listed */
	const struct hl_type *type; /* the struct, class or union itself */
	unsigned line;
	unsigned apart; /* bytes that keep two things from sharing: a line, or a pair */
	uint32_t align; /* what its address is a multiple of, as it is used */
	bool want_text;
	hl_fault_sink *sink;
	void *arg;

	struct hl_leaf *leaf;
	uint32_t n_leaves, leaves_room;
	struct hl_frame *frame;
	uint32_t n_frames, frames_room;

	struct hl_placing placing; /* as the compiler placed it, behind hl_find_placed() ... */
	bool asked; /* ... which looked ... */
	bool placed; /* ... if that could be reproduced */
	bool reordered; /* just-over proposed another order */

	/* The fault that is being put together. */
	struct hl_text evidence, advice, text, names;
	const char **name;
	uint32_t n_names, names_room;
	int rc; /* -ENOMEM: nothing more is reported */
};

/* Whether .placing is there: made when it is first asked for, which most types never are. */
bool hl_find_placed(struct hl_find *find);

/* Fills .leaf with the fields of the type. */
int hl_find_leaves(struct hl_find *find);
/* Adds "a.b.c" for a leaf. */
void hl_find_path(struct hl_text *text, const struct hl_find *find, const struct hl_leaf *leaf);

/* Whether a byte range that ends before `last + 1` and one that begins at `first` may lie
 * on one line of `apart` bytes at some address that is a multiple of align. */
bool hl_may_share(uint64_t last, uint64_t first, uint64_t align, uint64_t apart);

/* Of `size` bytes at addresses that are multiples of align: the number of positions
 * in a line, and at how many of them the bytes lie on two lines. */
void hl_straddling_positions(uint64_t size, uint64_t align, unsigned line, unsigned *positions,
			     unsigned *straddling);

/* ---- Putting a fault together ---- */

/* C has no way to say that a member without a name begins a line.  Where a field that is
 * marked so has none, another of its group takes its place.  0; -ENOTSUP: there is none. */
int hl_fault_name_groups(const struct hl_find *find, struct hl_placing *proposal);

void hl_fault_member(struct hl_find *find, const struct hl_leaf *leaf);
void hl_fault_member_named(struct hl_find *find, const char *name);
/* Shows the fault to the sink with evidence, advice and members as they stand, and empties
 * them.  A proposal that is given is written out when it is wanted. */
void hl_fault_report(struct hl_find *find, enum hl_fault_kind kind, unsigned score,
		     const struct hl_placing *proposal, const char *const *changed);

/* ---- One routine a fault ---- */

void hl_find_false_isolation(struct hl_find *find);
void hl_find_shared_slots(struct hl_find *find);
void hl_find_straddle(struct hl_find *find);
void hl_find_lock_beside_read_mostly(struct hl_find *find);
void hl_find_just_over(struct hl_find *find);
void hl_find_crossing(struct hl_find *find);
void hl_find_hole(struct hl_find *find);

/* The same for a variable, which has no placing. */
void hl_find_variable_isolation(struct hl_find *find, const struct hl_variable *variable);
void hl_find_variable_slots(struct hl_find *find, const struct hl_variable *variable);
/* size: of the variable as it should be, 0 when that is not known; text is in find->text. */
void hl_fault_report_variable(struct hl_find *find, enum hl_fault_kind kind, unsigned score,
			      const struct hl_variable *variable, uint64_t size);

static inline uint64_t hl_lines(uint64_t bytes, unsigned line)
{
	return (bytes + line - 1) / line;
}

/* True when the struct was laid out by lines already: a member begins one, or the
 * struct holds padding for that. */
bool hl_find_is_grouped(const struct hl_find *find);

/* True for the picture of a file or packet: nobody shares that, and nobody may reorder it.
 * Fields of fixed byte order tell it, or that it is packed and holds only what means the
 * same to another machine. */
bool hl_find_is_format(const struct hl_find *find);
/* Fields of fixed byte order alone. */
bool hl_find_has_byte_order(const struct hl_find *find);

/* A number from 1 to 1000. */
static inline unsigned hl_score(double score)
{
	return score < 1 ? 1 : score > 1000 ? 1000 : (unsigned)score;
}

#endif
