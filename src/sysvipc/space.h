/* SPDX-License-Identifier: MIT */
/*
 * The namespace: a directory with one file an object.
 *
 *	sem.17		the object of the type with that index: its id is seq * 32768 + index
 *	sem.k0000abcd	a symbolic link to it, named by its key in hexadecimal; none for IPC_PRIVATE
 *	ids		for each type the next index and its sequence number
 *
 * The same for msg and shm. Names come and go under flock() of the directory, which the kernel
 * gives back when its holder ends. What a holder left half made, the next one that meets it
 * removes: object.h says how it is told.
 */
#ifndef HL_SYSVIPC_SPACE_H
#define HL_SYSVIPC_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#define HL_IPC_INDEX_BITS 15
#define HL_IPC_INDEXES (1 << HL_IPC_INDEX_BITS)
#define HL_IPC_SEQUENCES (1 << (31 - HL_IPC_INDEX_BITS))
#define HL_IPC_NAME_BYTES 16

enum hl_ipc_type { HL_IPC_SEM, HL_IPC_MSG, HL_IPC_SHM, HL_IPC_TYPES };

static inline int hl_ipc_index(int32_t id)
{
	return id & (HL_IPC_INDEXES - 1);
}

/* The directory's path, for messages and for tools. */
const char *hl_ipc_space_path(void);

/* Another directory than the environment says; before any object is used. */
void hl_ipc_space_choose(const char *directory);

/*
 * hl_ipc_space_open - the directory, checked, and made if need be
 *
 * Return: a descriptor that the caller closes, or a negative errno value: -EACCES if others could
 * replace what is in the directory, -ENOENT, and what open() and mkdir() give.
 */
int hl_ipc_space_open(bool make);

/* The same, with the directory's lock held until the descriptor is closed. */
int hl_ipc_space_open_locked(void);

/* "sem.17" and "sem.k0000abcd". */
void hl_ipc_name_index(char name[HL_IPC_NAME_BYTES], enum hl_ipc_type type, int index);
void hl_ipc_name_key(char name[HL_IPC_NAME_BYTES], enum hl_ipc_type type, int32_t key);

/* The index of the object that has the key; -ENOENT. */
int hl_ipc_space_find_key(int dir, enum hl_ipc_type type, int32_t key);

/* The next id of the type; the caller holds the lock. -ENOSPC only if the file cannot be written. */
int hl_ipc_space_next_id(int dir, enum hl_ipc_type type);

/*
 * hl_ipc_space_each - calls @each with the index of each file of the type, in no order
 *
 * Until it returns other than 0, which is then returned. The directory may change meanwhile.
 */
int hl_ipc_space_each(int dir, enum hl_ipc_type type, int (*each)(int index, void *arg), void *arg);

#endif
