/* SPDX-License-Identifier: MIT */
/*
 * Shared memory segments: what a segment's file holds.
 *
 * The first HL_SHM_DATA bytes are the object's head and the list of processes that may have it
 * attached; the segment itself is behind. An attached segment is a mapping of that part of the
 * file, so that the kernel does the rest: it lives over fork, ends with exec and death, takes
 * mprotect and munmap, and cannot be written to if it was opened for reading.
 *
 * How many are attached is therefore not counted but looked up, in /proc/PID/maps of those
 * processes that are in the list (shmcount.c). The list may hold too many, never too few: who
 * attaches or is forked puts itself in, and who looks takes out those that have nothing mapped.
 *
 *	shm.c		the file, shmget(), shmctl()
 *	shmat.c		shmat(), shmdt(), what this process has attached
 *	shmcount.c	who has a segment attached
 *	maps.c		the mappings of a process
 */
#ifndef HL_SYSVIPC_SHM_H
#define HL_SYSVIPC_SHM_H

#include <sys/shm.h>

#include "object.h"

/* Where the segment begins: a whole number of pages, whatever their size. */
#define HL_SHM_DATA UINT64_C(65536)
/* The most that is asked for: SHMMAX. */
#define HL_SHM_MOST (UINT64_MAX - (UINT64_C(1) << 24))
#define HL_SHM_PROCESSES 2048

/* In a place of the list: somebody looks whether the process still has it. */
#define HL_SHM_DOUBT UINT32_C(0x80000000)

struct hl_shm_seg {
	struct hl_ipc_perm perm;

	/* Written by who attaches, detaches and calls shmctl(); relaxed, for IPC_STAT. */
	HL_CACHELINE_GROUP_BEGIN(times) HL_CACHELINE_ALIGNED;
	_Atomic(int64_t) atime;
	_Atomic(int64_t) dtime;
	_Atomic(int32_t) lpid;
	_Atomic(uint32_t) crowded; /* there was no room in the list: look at everybody */
	HL_CACHELINE_GROUP_END(times);

	/* Pids, with HL_SHM_DOUBT; 0: free. By compare-and-swap. */
	_Atomic(uint32_t) processes[HL_SHM_PROCESSES] HL_CACHELINE_ALIGNED;
};
HL_CACHELINE_ASSERT_ALIGNED(struct hl_shm_seg, times);
_Static_assert(sizeof(struct hl_shm_seg) <= HL_SHM_DATA, "the head lies over the segment");

static inline struct hl_shm_seg *hl_shm_seg(const struct hl_ipc_object *object)
{
	return (struct hl_shm_seg *)object->perm;
}

static inline uint64_t hl_shm_round(uint64_t bytes)
{
	return (bytes + 4095) & ~UINT64_C(4095);
}

/* The file that a mapping is of. */
struct hl_shm_file {
	uint64_t dev;
	uint64_t ino;
};

/* ---- maps.c ---- */

struct hl_map {
	uintptr_t start, end;
	uint64_t offset;
	struct hl_shm_file file;
};

/*
 * hl_maps_each - calls @each for each mapping of a process, in the order of addresses
 * @pid: or 0: this one
 *
 * Until @each returns other than 0, which is then returned. A negative errno value: the mappings
 * cannot be read.
 */
int hl_maps_each(int32_t pid, int (*each)(const struct hl_map *map, void *arg), void *arg);

/* ---- shmcount.c ---- */

/* The calling process has it attached. In the child of a fork as well: calls nothing but the
 * kernel. */
void hl_shm_enlist(struct hl_shm_seg *seg);

/* How many times it is attached, in all processes; -EACCES and so on: it cannot be told. */
int hl_shm_count(struct hl_ipc_object *object);

/* The file that an object is mapped from; 0 or a negative errno value. */
int hl_shm_file_of(const struct hl_ipc_object *object, struct hl_shm_file *file);

/* If it was removed and nobody has it any more it is gone from now on. Return: whether it is. */
bool hl_shm_end(struct hl_ipc_object *object);

/* ---- The system calls, with negative errno values. ---- */

int hl_shm_get(key_t key, size_t bytes, int flags);
void *hl_shm_at(int id, const void *at, int flags);
int hl_shm_dt(const void *at);
int hl_shm_ctl(int id, int command, struct shmid_ds *arg);

/* One that lives; -EINVAL also if it was removed and the last that had it is gone. */
int hl_shm_find(int id, struct hl_ipc_object **to);

extern const struct hl_ipc_kind hl_shm_kind;

#endif
