/* SPDX-License-Identifier: MIT */
/*
 * Message queues: what a queue's file holds, and what its parts do for each other.
 *
 * A message lies in one or more cells of 128 bytes; 104 bytes of text fit into its first. Messages
 * are a list in the order in which they came; cells that were used and are free are a list; those
 * above .fresh were never used, so that a queue takes no more memory than it needed at its fullest.
 *
 * One store adds a message to the list and one takes it out. All else in the queue follows from the
 * list and from the slots of those who sleep, and is made anew (hl_msg_mend) when the lock is taken
 * from a dead process: nothing has to be written down before it is done.
 *
 * Who sends looks for a receiver that sleeps and gives it the message, past the list; who makes
 * room puts into the list what a sleeping sender has left in its slot. So a message is never woken
 * for twice, and goes to whom Linux would give it.
 *
 *	msg.c		the file, msgget(), msgctl()
 *	msgcell.c	cells, the list, and how they are mended
 *	msgop.c		msgsnd(), msgrcv(), who sleeps
 */
#ifndef HL_SYSVIPC_MSG_H
#define HL_SYSVIPC_MSG_H

#include <sys/msg.h>

#include "object.h"
#include "sleep.h"

#ifndef MSG_COPY
#define MSG_COPY 040000
#endif

#define HL_MSG_MOST_BYTES 8192 /* MSGMAX: of a message */
#define HL_MSG_QUEUE_BYTES 16384 /* MSGMNB: of a queue, at first */
#define HL_MSG_CELLS 131072
#define HL_MSG_CELL_BYTES 128
#define HL_MSG_CELL_TEXT 104

/* Cells are named by their number plus one; 0: none. */
struct hl_msg_cell {
	/* Written under the lock. */
	_Atomic(uint32_t) next; /* the message behind this one */
	_Atomic(uint32_t) more; /* the next cell of the message; of the free ones */
	_Atomic(int64_t) type;
	_Atomic(uint32_t) size;
	uint32_t unused;
	char text[HL_MSG_CELL_TEXT];
} __attribute__((aligned(HL_MSG_CELL_BYTES)));
_Static_assert(sizeof(struct hl_msg_cell) == HL_MSG_CELL_BYTES, "a cell is two lines");

struct hl_msg_queue {
	struct hl_ipc_perm perm;

	/* All of it is written under the lock. */
	HL_CACHELINE_GROUP_BEGIN(list) HL_IPC_OWN_LINE;
	_Atomic(uint32_t) head;
	_Atomic(uint32_t) tail;
	_Atomic(uint32_t) free;
	_Atomic(uint32_t) fresh; /* so many cells have been used */
	_Atomic(uint32_t) n;
	_Atomic(uint32_t) asleep; /* those that nobody has woken */
	_Atomic(uint32_t) changes; /* who spins waits for another number */
	_Atomic(int32_t) lspid;
	_Atomic(int32_t) lrpid;
	uint32_t unused;
	_Atomic(uint64_t) bytes;
	_Atomic(uint64_t) most; /* msg_qbytes */
	HL_CACHELINE_GROUP_END(list);

	HL_CACHELINE_GROUP_BEGIN(times) HL_IPC_OWN_LINE;
	_Atomic(int64_t) stime;
	_Atomic(int64_t) rtime;
	HL_CACHELINE_GROUP_END(times);

	struct hl_ipc_sleepers sleepers;
};
HL_CACHELINE_ASSERT_SIZE(struct hl_msg_queue, list, 56);

/* Where the cells begin. */
#define HL_MSG_FIRST ((sizeof(struct hl_msg_queue) + 4095) & ~(size_t)4095)
#define HL_MSG_FILE_BYTES (HL_MSG_FIRST + (size_t)HL_MSG_CELLS * HL_MSG_CELL_BYTES)

static inline struct hl_msg_queue *hl_msg_queue(const struct hl_ipc_object *object)
{
	return (struct hl_msg_queue *)object->perm;
}

/* What a sleeper's slot says, in .own. */
enum hl_msg_own {
	HL_MSG_KIND, /* enum hl_msg_search, or HL_MSG_SENDER */
	HL_MSG_TYPE, /* what a receiver looks for */
	HL_MSG_ROOM, /* bytes that a receiver has, with HL_MSG_CUT */
	HL_MSG_CELL, /* a sender's message; one that a receiver was given; or 0 */
};
#define HL_MSG_CUT (UINT64_C(1) << 63)

enum hl_msg_search {
	HL_MSG_ANY,
	HL_MSG_EQUAL,
	HL_MSG_OTHER,
	HL_MSG_LOWEST, /* of those up to the type */
	HL_MSG_NUMBER, /* the one at this place, counted from 0 */
	HL_MSG_SENDER,
};

/* ---- msgcell.c; under the lock ---- */

/* The cell, or NULL: somebody scribbled. */
struct hl_msg_cell *hl_msg_cell(const struct hl_ipc_object *object, uint32_t ref);

/* Cells for so many bytes, with the type and text in them; 0, with *err set: there are none. */
uint32_t hl_msg_write(struct hl_ipc_object *object, int64_t type, const char *text, uint32_t size,
		      int *err);

/* Up to @room bytes of a message. Return: how many. */
uint32_t hl_msg_read(const struct hl_ipc_object *object, uint32_t ref, char *text, uint32_t room);

void hl_msg_free(struct hl_ipc_object *object, uint32_t ref);

void hl_msg_append(struct hl_ipc_object *object, uint32_t ref);

/* Where a message is in the list. */
struct hl_msg_place {
	uint32_t before, ref;
};

/* The first that matches; .ref 0: none does. */
struct hl_msg_place hl_msg_search(const struct hl_ipc_object *object, enum hl_msg_search search,
				  int64_t type);

/* Takes it out of the list; its cells are the caller's. */
void hl_msg_unlink(struct hl_ipc_object *object, struct hl_msg_place place);

/* Makes lists and counts anew from what is certain. */
void hl_msg_mend(struct hl_ipc_object *object, struct hl_ipc_wakes *wakes);

/* ---- msgop.c ---- */

/* The queue's lock with all in order behind it. 0 or -EINTR: see hl_sem_lock(). */
int hl_msg_lock(struct hl_ipc_object *object, struct hl_ipc_holding *holding);
void hl_msg_unlock(struct hl_ipc_object *object, struct hl_ipc_holding *holding);

/* Lets senders go on for whom there is room; under the lock. */
void hl_msg_serve(struct hl_ipc_object *object, struct hl_ipc_wakes *wakes);

/* Wakes everybody with an error; under the lock. */
void hl_msg_dismiss(struct hl_ipc_object *object, struct hl_ipc_wakes *wakes);

/* The system calls, with negative errno values. */
int hl_msg_get(key_t key, int flags);
int hl_msg_snd(int id, const void *message, size_t bytes, int flags);
ssize_t hl_msg_rcv(int id, void *message, size_t bytes, long type, int flags);
int hl_msg_ctl(int id, int command, struct msqid_ds *arg);

extern const struct hl_ipc_kind hl_msg_kind;

#endif
