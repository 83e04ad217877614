/* SPDX-License-Identifier: MIT */
/*
 * Inside the room: the numbers that scores are made of, for the code and for what
 * --explain says of it.
 */
#ifndef HL_LAYOUT_WEIGHTS_H
#define HL_LAYOUT_WEIGHTS_H

/* A number as text. */
#define HL_W_TEXT_OF(n) #n
#define HL_W_TEXT(n) HL_W_TEXT_OF(n)

/* Of a type in a header below /usr. */
#define HL_W_FOREIGN 0.25

#define HL_W_THIN_PAD 850
#define HL_W_CLOSE_GROUPS 800
#define HL_W_OPEN_END 750
#define HL_W_ALIGNED_POINTER 700
#define HL_W_OPEN_VARIABLE 500
#define HL_W_UNMEANT_PAD 400 /* a pad between fields that nobody seems to write */

#define HL_W_SLOT_STRUCT 850
#define HL_W_SLOT_ATOMIC 800
#define HL_W_SLOT_COUNT 700
#define HL_W_SLOT_MAYBE 700 /* structs in slots, shards, lanes */
#define HL_W_SLOT_QUIET 300 /* structs in which nothing looks written */
#define HL_W_GUESS_LOCK 350 /* nothing speaks of threads */
#define HL_W_GUESS_ATOMIC 200
#define HL_W_GUESS_COUNT 120
#define HL_W_SLOT_LARGE 0.6
#define HL_W_SLOT_MANY 0.4
#define HL_W_MANY_SLOTS 256

#define HL_W_MESSAGE 700 /* link, callback, argument and little else */
#define HL_W_ANSWERED 650 /* flag, callback, argument */
#define HL_W_QUEUED 500 /* link, callback and an argument, a flag or an atomic */
#define HL_W_ATOMIC_LINK 500 /* atomic or lock with a link or flag */
#define HL_W_FLAG_CALLBACK 450
#define HL_W_ATOMIC 400
#define HL_W_LINK_FLAG 350
#define HL_W_LINK_CALLBACK 300
#define HL_W_FLAG 250
#define HL_W_LINK 150
#define HL_W_MESSAGE_FIELDS 7
#define HL_W_BY_NAME 0.7
#define HL_W_REGISTERED 0.5
#define HL_W_INNER 0.5
#define HL_W_ALLOCATED 0.4

#define HL_W_BESIDE 280
#define HL_W_BESIDE_STRONG 120
#define HL_W_BESIDE_WEAK 30
#define HL_W_TALLY 180
#define HL_W_TALLY_STRONG 60
#define HL_W_TALLY_WEAK 15
#define HL_W_MOST_STRONG 3
#define HL_W_MOST_WEAK 5
#define HL_W_TABLE 0.6
#define HL_W_TABLE_CALLBACKS 6
#define HL_W_INSEPARABLE 0.5

#define HL_W_OVER 700
#define HL_W_OVER_ORDER 60
#define HL_W_OVER_PRIVATE 0.6

#define HL_W_CROSS_WRITTEN 420
#define HL_W_CROSS_SCALAR 330
#define HL_W_CROSS_HOLDER 300
#define HL_W_CROSS_FLAG 250
#define HL_W_CROSS_PLAIN 80
#define HL_W_CROSS_UNALIGNED 0.6
#define HL_W_CROSS_FORMAT 0.5

#define HL_W_HOLE 500
#define HL_W_HOLE_TOLD 0.4

#endif
