/* SPDX-License-Identifier: MIT */
/*
 * What a field looks like: a lock, a counter, a link, a constant.  Debug
 * information does not say who writes a field; its type and, where that is a
 * plain integer or pointer, its name do so well enough to rank what a person
 * should look at first.
 */
#ifndef HL_LAYOUT_LOOK_H
#define HL_LAYOUT_LOOK_H

#include "debuginfo/debuginfo.h"

enum hl_look {
	HL_LOOK_PLAIN,
	HL_LOOK_LOCK, /* spinlock, mutex, semaphore, sequence counter */
	HL_LOOK_ATOMIC, /* _Atomic, atomic_t, std::atomic, reference count, volatile */
	HL_LOOK_LINK, /* of a list, queue or tree */
	HL_LOOK_DONE, /* flag or wait queue by which one thread tells another */
	HL_LOOK_COUNTER, /* integer that is a number of something, or moves on in a ring */
	HL_LOOK_TALLY, /* integer that is counted up with every event: packets, hits */
	HL_LOOK_CONSTANT, /* read-mostly for sure: const, function or operations pointer */
	HL_LOOK_STEADY, /* read-mostly by name: size, id, mode */
	HL_LOOK_PAD, /* array put there to keep others off */
};

/* What was found out once about all types of a file. */
struct hl_looks;

/* NULL: no memory.  Freed with hl_looks_free(). */
struct hl_looks *hl_looks_build(const struct hl_types *types);
void hl_looks_free(struct hl_looks *looks);

/* The alignment with which the struct, class or union is used although its own
 * type has less: that of a typedef of it, or one that all of at least three
 * places where it is embedded share; 1 otherwise. */
uint32_t hl_looks_used_align(const struct hl_looks *looks, hl_type_id id);

/* Whether the type by itself is such a thing: spinlock_t, struct list_head. */
enum hl_look hl_look_of_type(const struct hl_looks *looks, hl_type_id id);

/* What is anywhere inside a type. */
#define HL_HOLDS_WRITTEN 0x01 /* hl_look_is_written() */
#define HL_HOLDS_SHARED 0x02 /* hl_look_is_shared() */
#define HL_HOLDS_COUNTED 0x04 /* hl_look_is_counted() */

/* Whether one of these is in the type, or in the elements of an array, or is it. */
bool hl_looks_hold(const struct hl_looks *looks, const struct hl_types *types, hl_type_id id,
		   unsigned what);

enum hl_look hl_look_of_member(const struct hl_looks *looks, const struct hl_types *types,
			       const struct hl_member *member);

enum hl_per_thread {
	HL_PER_THREAD_NOT,
	HL_PER_THREAD_MAYBE, /* slots, shards: of threads or of a table */
	HL_PER_THREAD_SAID, /* workers, per_cpu */
};

/* Whether the name speaks of one thing a thread or CPU. */
enum hl_per_thread hl_look_per_thread(const char *name);
/* Whether the name is that of something counted; and of nothing else: counts, used. */
bool hl_look_counted(const char *name);
bool hl_look_counts_alone(const char *name);
/* Whether the name is that of a number of elements, or of a place among them; and whether
 * that moves on: head, tail. */
bool hl_look_counts_elements(const char *name);
bool hl_look_moves_on(const char *name);
/* Whether the name is that of a type that is said once to somebody who calls back. */
bool hl_look_registered(const char *name);
/* Whether the name is that of what a callback is given. */
bool hl_look_argument(const char *name);

/* Whether the member looks so by its type, and not by the name of a plain integer alone. */
bool hl_look_is_by_type(const struct hl_looks *looks, const struct hl_types *types,
			const struct hl_member *member);

/* "lock", "atomic", ... for evidence. */
const char *hl_look_name(enum hl_look look);

static inline bool hl_look_is_written(enum hl_look look)
{
	return look == HL_LOOK_LOCK || look == HL_LOOK_ATOMIC;
}

static inline bool hl_look_is_counted(enum hl_look look)
{
	return look == HL_LOOK_COUNTER || look == HL_LOOK_TALLY;
}

static inline bool hl_look_is_shared(enum hl_look look)
{
	return look == HL_LOOK_LOCK || look == HL_LOOK_ATOMIC || look == HL_LOOK_LINK ||
	       look == HL_LOOK_DONE;
}

#endif
