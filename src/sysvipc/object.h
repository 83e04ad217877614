/* SPDX-License-Identifier: MIT */
/*
 * An object: a file of the namespace that begins with struct hl_ipc_perm, and, in each process
 * that uses it, a mapping and a struct hl_ipc_object that describes it.
 *
 * What is in the mapping can be changed by whoever may open the file, at any moment. What must
 * not change (how large the object is, how many semaphores it has, which id) is read once, checked,
 * and kept in struct hl_ipc_object; the rest is loaded once into a local, checked, and used.
 *
 * A mapping is never unmapped. When its object is gone it is replaced by empty pages, so that a
 * thread that is still on its way through finds zeroes, and after some seconds the range of
 * addresses serves for another object of the same size.
 */
#ifndef HL_SYSVIPC_OBJECT_H
#define HL_SYSVIPC_OBJECT_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ipc.h>

#include <hotline/cacheline.h>

#include "lock.h"
#include "space.h"

/*
 * HL_LAYOUT_IPC_PERM - 0: the lock beside what is read without it, and the type's own fields
 * behind it on the same line, as it was before; for the bench alone.
 */
#ifndef HL_LAYOUT_IPC_PERM
#define HL_LAYOUT_IPC_PERM 1
#endif
#if HL_LAYOUT_IPC_PERM
#define HL_IPC_OWN_LINE HL_CACHELINE_ALIGNED
#else
#define HL_IPC_OWN_LINE
#endif

#define HL_IPC_MAGIC 0x48493031u /* changes with the layout of any file */

/* Values of .live; any other counts the changes of owner and mode. */
#define HL_IPC_MAKING 0u
#define HL_IPC_REMOVED UINT32_MAX
#define HL_IPC_UNKNOWN (UINT32_MAX - 1) /* in no file: access was not asked for yet */

/* The head of each object's file. */
struct hl_ipc_perm {
	/* Written when the object is made or removed and by IPC_SET; read by every operation. */
	HL_CACHELINE_GROUP_BEGIN(read_mostly) HL_CACHELINE_ALIGNED;
	_Atomic(uint32_t) live;
	uint32_t magic;
	int32_t id;
	_Atomic(int32_t) key; /* IPC_PRIVATE also if it had one and was removed while in use */
	_Atomic(uint32_t) mode;
	_Atomic(uint32_t) uid;
	_Atomic(uint32_t) gid;
	uint32_t cuid;
	uint32_t cgid;
	uint32_t unused;
	uint64_t bytes; /* of the file */
	uint64_t n; /* what the type was asked for: semaphores, bytes of a segment */
	uint64_t pid_namespace; /* in which all pids here are meant */
	HL_CACHELINE_GROUP_END(read_mostly);

	/* Written by whoever locks the object. */
	HL_CACHELINE_GROUP_BEGIN(locked) HL_IPC_OWN_LINE;
	struct hl_ipc_lock lock;
	int32_t cpid; /* who made it, for ipcs */
	uint64_t cstart;
	_Atomic(int64_t) ctime;
	HL_CACHELINE_GROUP_END(locked);
}
#if HL_LAYOUT_IPC_PERM
HL_CACHELINE_ALIGNED
#endif
	;
HL_CACHELINE_ASSERT_SIZE(struct hl_ipc_perm, read_mostly, 64);
#if HL_LAYOUT_IPC_PERM
HL_CACHELINE_ASSERT_ALIGNED(struct hl_ipc_perm, read_mostly);
HL_CACHELINE_ASSERT_ALIGNED(struct hl_ipc_perm, locked);
HL_CACHELINE_ASSERT_APART(struct hl_ipc_perm, live, lock);
#endif

/* How a process knows an object. */
struct hl_ipc_object {
	/* Written before the object is published, and never again while it is used. */
	struct hl_ipc_perm *perm; /* where the file is mapped */
	size_t bytes; /* of the mapping, none of them behind the end of the file */
	uint64_t n; /* perm->n, checked */
	int32_t id;
	int32_t key;
	uint8_t type;
	bool writable; /* false: whoever writes to the mapping gets a fault */
	uintptr_t fixed[4]; /* the type's own, by kind->opened() */

	/* Written by any thread that finds .live changed: what was allowed when it was that. */
	_Atomic(uint32_t) live;
	_Atomic(uint32_t) may; /* of 04 (read) and 02 (alter) */
	_Atomic(int32_t) asker; /* the process that was allowed it: a child asks anew */

	/* Slots of sleepers behind which this process knows memory: see sleep.c. */
	_Atomic(uint32_t) populated;

	/* The type's own, written under hl_ipc_self_lock() or atomically. Zero at first. */
	_Atomic(uint64_t) own[2];

	/* When it was retired, in nanoseconds; and the list of the retired. */
	int64_t retired;
	struct hl_ipc_object *next;
};

/* What a type of object has to say of its files. */
struct hl_ipc_kind {
	/* The size of a file for @n, and how much of it is touched without hl_ipc_populate(). */
	uint64_t (*bytes)(uint64_t n);
	uint64_t (*reserved)(uint64_t n);
	/* Fills a new file, of zeroes but for the head, in. May be NULL. */
	void (*init)(struct hl_ipc_perm *perm, uint64_t n);
	/* Fills object->fixed in; everything else about the mapping is there. May be NULL. */
	void (*opened)(struct hl_ipc_object *object);
	/* 0, or the error for who asks for an object of @n that exists. */
	int (*fits)(const struct hl_ipc_object *object, uint64_t n);
};

/* sem.c, msg.c and shm.c, in the order of enum hl_ipc_type; NULL: not there. */
extern const struct hl_ipc_kind *const hl_ipc_kinds[HL_IPC_TYPES];

extern struct hl_ipc_object *_Atomic hl_ipc_objects[HL_IPC_TYPES][HL_IPC_INDEXES];

/*
 * hl_ipc_get - the object with the key, or a new one
 * @flags: IPC_CREAT, IPC_EXCL and the nine bits of the mode
 *
 * Return: 0, or -ENOENT, -EEXIST, -EACCES, -EINVAL, -ENOSPC, -ENOMEM, and what the namespace's
 * directory gives.
 */
int hl_ipc_get(enum hl_ipc_type type, int32_t key, int flags, uint64_t n,
	       struct hl_ipc_object **to);

/* The slow half of hl_ipc_find(). */
int hl_ipc_find_slowly(enum hl_ipc_type type, int32_t id, struct hl_ipc_object **to);

/*
 * hl_ipc_find - the object with the id, which lives
 *
 * Return: 0, or -EINVAL: there is none; -EACCES: its file may not be opened, or its pids are of
 * another pid namespace; -ENOMEM. No system call if this process has used it before.
 */
static inline int hl_ipc_find(enum hl_ipc_type type, int32_t id, struct hl_ipc_object **to)
{
	struct hl_ipc_object *object;

	/* OBJECT_PUBLISHED, pairs with publish() in object.c. */
	object =
		atomic_load_explicit(&hl_ipc_objects[type][hl_ipc_index(id)], memory_order_acquire);
	if (__builtin_expect(
		    object && object->id == id &&
			    atomic_load_explicit(&object->perm->live, memory_order_acquire) ==
				    atomic_load_explicit(&object->live, memory_order_relaxed) &&
			    atomic_load_explicit(&object->asker, memory_order_relaxed) ==
				    atomic_load_explicit(&hl_ipc_self()->pid, memory_order_relaxed),
		    1)) {
		*to = object;
		return 0;
	}
	return hl_ipc_find_slowly(type, id, to);
}

/* The object at an index, whatever its id: for SEM_STAT and its like. -EINVAL: none. */
int hl_ipc_find_index(enum hl_ipc_type type, int index, struct hl_ipc_object **to);

/* The highest index in use, -1 if none is; how many there are in *@count. */
int hl_ipc_highest(enum hl_ipc_type type, int *count);

/* Is it gone? For whoever has slept. */
static inline bool hl_ipc_removed(const struct hl_ipc_object *object)
{
	uint32_t live = atomic_load_explicit(&object->perm->live, memory_order_acquire);

	return live == HL_IPC_REMOVED || live == HL_IPC_MAKING;
}

/* What the caller was allowed when it was last asked: 04 to read, 02 to alter. */
static inline bool hl_ipc_may(const struct hl_ipc_object *object, uint32_t what)
{
	return (atomic_load_explicit(&object->may, memory_order_relaxed) & what) == what;
}

/* Asks again, for the credentials of this moment; 0 or -EACCES. Makes system calls. */
int hl_ipc_check_access(struct hl_ipc_object *object, uint32_t what);

/* 0, or -EPERM: the caller is neither owner nor creator nor root. */
int hl_ipc_check_owner(const struct hl_ipc_object *object);

/* Owner, group and mode by IPC_SET, after hl_ipc_check_owner(). */
int hl_ipc_set(struct hl_ipc_object *object, uint32_t uid, uint32_t gid, uint32_t mode);

void hl_ipc_stat(const struct hl_ipc_object *object, struct ipc_perm *to);

/*
 * hl_ipc_remove - takes the object out of the world, after hl_ipc_check_owner()
 *
 * From then on it is found by nobody; who has it sees hl_ipc_removed(). The caller then wakes
 * those who sleep, and calls hl_ipc_retire(). -EINVAL: somebody else was faster.
 */
int hl_ipc_remove(struct hl_ipc_object *object);

/* Takes its key away: it is found by its id alone, until it is removed. */
int hl_ipc_unkey(struct hl_ipc_object *object);

/* This process needs the object no more. The caller has not the self lock. */
void hl_ipc_retire(struct hl_ipc_object *object);

/* A new descriptor of the object's file, which the caller closes. */
int hl_ipc_reopen(const struct hl_ipc_object *object, int flags);

/*
 * hl_ipc_populate - makes sure that there is memory behind part of the mapping
 *
 * Where the file system is full, a page of a sparse file that is touched for the first time ends
 * the process. 0 or -ENOSPC; a system call.
 */
int hl_ipc_populate(const struct hl_ipc_object *object, size_t at, size_t bytes);

#endif
