/* SPDX-License-Identifier: MIT */
/*
 * Inside the room: what the words of a name say.
 */
#ifndef HL_LAYOUT_WORDS_H
#define HL_LAYOUT_WORDS_H

#include <stdint.h>

#define W_LOCK 0x00001 /* lock, when it is the last word */
#define W_ATOMIC 0x00002 /* atomic, wherever it stands */
#define W_REFS 0x00004 /* number of users */
#define W_LINK 0x00008 /* what links: next, prev */
#define W_DONE 0x00010 /* completion */
#define W_COUNT 0x00020 /* counted up, or the number of what is there */
#define W_STEADY 0x00040 /* set once, read often */
#define W_PAD 0x00080 /* filler */
#define W_THREAD 0x00100 /* one a thread or CPU */
#define W_OPS 0x00200 /* table of operations */
#define W_LIST 0x00400 /* a type of this name with pointers only is a link */
#define W_MAP 0x00800 /* leads from one thing to another: prio_to_cpu */
#define W_INDEX 0x01000 /* place in a ring or deque that moves on */
#define W_ARGUMENT 0x02000 /* what a callback is given */
#define W_PENDING 0x04000 /* completion, when it is the whole name */
#define W_SLOT 0x08000 /* one a thread, or a place in a table */
#define W_TALLY 0x10000 /* events that are only ever counted up */
#define W_SUM 0x20000 /* a count of more than the elements of an array */
#define W_ROLE 0x40000 /* one a thread, when it is the last word */
#define W_REGISTERED 0x80000 /* said once, to be called later */

/* The words of a name: what any of them says, what the last, what all of them. */
struct hl_reading {
	uint32_t any, last, all;
	unsigned words;
};

/* Splits at underscores, at other signs and where lower case turns to upper.  NULL: no words. */
struct hl_reading hl_read_name(const char *name);

#endif
