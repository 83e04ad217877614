/* SPDX-License-Identifier: MIT */
/*
 * What a tool wants to know of an object: what the System V calls tell, and who made it.
 */
#ifndef HL_SYSVIPC_LOOK_H
#define HL_SYSVIPC_LOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "space.h"

struct hl_ipc_look {
	enum hl_ipc_type type;
	int32_t id;
	int32_t key;
	uint32_t uid, gid, cuid, cgid;
	uint32_t mode; /* with SHM_DEST and SHM_LOCKED */
	int32_t creator; /* its pid */
	bool creator_lives;
	bool user_lives; /* one of those who last did something with it */
	int64_t changed; /* ctime */
	uint64_t n; /* semaphores, messages, or bytes of a segment */
	uint64_t bytes; /* in the queue; most of it */
	unsigned waiters;
	unsigned attached; /* segments */
	/* The last semop; msgsnd and msgrcv; shmat and shmdt: seconds since 1970, 0: never. */
	int64_t last[2];
	int32_t last_pid[2]; /* 0: nobody, or not known */
};

/* The object at an index; -EINVAL: there is none, or what opening it gives. */
int hl_ipc_look(enum hl_ipc_type type, int index, struct hl_ipc_look *to);

/* The highest index in use; -1: none is. */
int hl_ipc_look_highest(enum hl_ipc_type type);

/* IPC_RMID; makes one of the type with @n semaphores or bytes: its id. Negative errno values. */
int hl_ipc_look_remove(enum hl_ipc_type type, int id);
int hl_ipc_look_make(enum hl_ipc_type type, int32_t key, uint64_t n, int flags);

/* The id of the object with a key. */
int hl_ipc_look_key(enum hl_ipc_type type, int32_t key);

/* Uses another directory than the environment says. Before all else. */
void hl_ipc_look_in(const char *directory);

#endif
