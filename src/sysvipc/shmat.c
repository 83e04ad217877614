/* SPDX-License-Identifier: MIT */
/*
 * shmat() and shmdt(), and the segments that this process knows.
 *
 * Locking: the list of known segments is read and written under hl_ipc_self_lock(). The child of a
 * fork, which has one thread, reads it without.
 */
#include "shm.h"

#include "clock.h"

#include <pthread.h>
#include <sys/mman.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define ARENA_BYTES 16384
/* Pieces that one shmdt() unmaps at once. */
#define PIECES 32

/* A segment that this process has had attached, or one of its parents. */
struct known {
	struct known *next;
	struct hl_shm_file file; /* .ino 0: free */
	uint64_t bytes; /* rounded */
	int32_t id;
	/* The head of the file: a mapping of its own, which stays when the object is retired. */
	struct hl_shm_seg *seg;
	bool writable;
};

static struct known *all_known;
static char *arena, *arena_end;

/* ---- What is known ---- */

static struct known *find(const struct hl_shm_file *file)
{
	struct known *known;

	for (known = all_known; known; known = known->next)
		if (known->file.ino == file->ino && known->file.dev == file->dev)
			return known;
	return NULL;
}

static void note_fork(void)
{
	struct known *known;

	for (known = all_known; known; known = known->next)
		if (known->file.ino && known->writable)
			hl_shm_enlist(known->seg);
}

static struct known *new_known(void)
{
	static const struct hl_shm_file none;
	struct known *known = find(&none);

	if (known)
		return known;
	if ((size_t)(arena_end - arena) < sizeof(*known)) {
		char *more = hl_sys_mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE,
					 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (hl_sys_failed(more))
			return NULL;
		if (!arena)
			pthread_atfork(NULL, NULL, note_fork);
		arena = more;
		arena_end = more + ARENA_BYTES;
	}
	known = (struct known *)arena;
	arena += sizeof(*known);
	*known = (struct known){ .next = all_known };
	all_known = known;
	return known;
}

/* Under the self lock: what is known of the file, which is made known if need be. */
static struct known *make_known(const struct hl_ipc_object *object, const struct hl_shm_file *file,
				int fd, bool writable)
{
	struct known *known = find(file);
	int prot = PROT_READ | (writable ? PROT_WRITE : 0);
	void *seg;

	if (known)
		return known;
	seg = hl_sys_mmap(NULL, sizeof(struct hl_shm_seg), prot, MAP_SHARED, fd, 0);
	if (hl_sys_failed(seg))
		return NULL;
	known = new_known();
	if (!known) {
		hl_sys_munmap(seg, sizeof(struct hl_shm_seg));
		return NULL;
	}
	known->seg = seg;
	known->writable = writable;
	known->bytes = hl_shm_round(object->n);
	known->id = object->id;
	known->file.dev = file->dev;
	__atomic_store_n(&known->file.ino, file->ino, __ATOMIC_SEQ_CST);
	return known;
}

static void forget(struct known *known)
{
	known->file.dev = 0;
	/* Before it is unmapped: a child that is forked now looks at all that have a number. */
	__atomic_store_n(&known->file.ino, 0, __ATOMIC_SEQ_CST);
	hl_sys_munmap(known->seg, sizeof(struct hl_shm_seg));
}

/* ---- shmat() ---- */

/* Where to, or a negative errno value. */
static int place(const void *at, int flags, uintptr_t *to)
{
	uintptr_t address = (uintptr_t)at;

	if (address % 4096 && !(flags & SHM_RND))
		return -EINVAL;
	address &= ~(uintptr_t)4095;
	if (!address && flags & SHM_REMAP)
		return -EINVAL;
	*to = address;
	return 0;
}

/* Who may execute: the one bit that files and segments do not have in common here. */
static int check_access(struct hl_ipc_object *object, int flags)
{
	uint32_t what = flags & SHM_RDONLY ? 04 : 06;

	return hl_ipc_check_access(object, flags & SHM_EXEC ? what | 01 : what);
}

static void *map(int fd, uintptr_t at, uint64_t bytes, int flags)
{
	int prot = PROT_READ | (flags & SHM_RDONLY ? 0 : PROT_WRITE) |
		   (flags & SHM_EXEC ? PROT_EXEC : 0);
	int how = MAP_SHARED;
	void *got;

	if (at)
		how |= flags & SHM_REMAP ? MAP_FIXED : MAP_FIXED_NOREPLACE;
	got = hl_sys_mmap((void *)at, bytes, prot, how, fd, (int64_t)HL_SHM_DATA);
	if (hl_sys_failed(got) == -EEXIST)
		return (void *)-EINVAL;
	/* A kernel that takes the address for a wish. */
	if (at && !hl_sys_failed(got) && (uintptr_t)got != at) {
		hl_sys_munmap(got, bytes);
		return (void *)-EINVAL;
	}
	return got;
}

/* Maps it and writes down that it is attached. */
static void *attach(struct hl_ipc_object *object, uintptr_t at, int flags)
{
	struct hl_shm_seg *seg = hl_shm_seg(object);
	/* Whoever opened it for reading can never make the mapping writable. */
	int fd = hl_ipc_reopen(object, flags & SHM_RDONLY ? O_RDONLY : O_RDWR), head;
	struct hl_shm_file file;
	struct known *known;
	void *got;

	if (fd < 0)
		return (void *)(long)(fd == -ENOENT ? -EIDRM : fd);
	got = (void *)(long)hl_shm_file_of(object, &file);
	if (hl_sys_failed(got)) {
		hl_sys_close(fd);
		return got == (void *)-ENOENT ? (void *)-EIDRM : got;
	}
	/* To the head also writes who only reads the segment, if it may. */
	head = flags & SHM_RDONLY ? hl_ipc_reopen(object, O_RDWR) : fd;
	hl_ipc_self_lock();
	got = map(fd, at, hl_shm_round(object->n), flags);
	known = hl_sys_failed(got) ? NULL
				   : make_known(object, &file, head < 0 ? fd : head, head >= 0);
	hl_ipc_self_unlock();
	if (!hl_sys_failed(got) && !known) {
		hl_sys_munmap(got, hl_shm_round(object->n));
		got = (void *)-ENOMEM;
	}
	if (head >= 0 && head != fd)
		hl_sys_close(head);
	hl_sys_close(fd);
	if (hl_sys_failed(got) || !object->writable)
		return got;
	hl_shm_enlist(seg);
	atomic_store_explicit(&seg->atime, hl_ipc_seconds(), memory_order_relaxed);
	atomic_store_explicit(&seg->lpid, hl_sys_getpid(), memory_order_relaxed);
	return got;
}

void *hl_shm_at(int id, const void *at, int flags)
{
	struct hl_ipc_object *object;
	uintptr_t to;
	int err;

	if (id < 0)
		return (void *)-EINVAL;
	err = place(at, flags, &to);
	if (!err)
		err = hl_shm_find(id, &object);
	if (!err)
		err = check_access(object, flags);
	return err ? (void *)(long)err : attach(object, to, flags);
}

/* ---- shmdt() ---- */

struct detach {
	uintptr_t at;
	struct known *known; /* of what is found there */
	unsigned n, others; /* pieces in the range, and elsewhere */
	struct {
		uintptr_t start, end;
	} piece[PIECES];
};

/* The first mapping from the address on that begins at it, as an offset in a segment; then all
 * of the same segment, as far as it reaches, that lie where that one would have them. */
static int look_at(const struct hl_map *map, void *arg)
{
	struct detach *detach = arg;
	bool fits = map->start >= detach->at && map->offset >= HL_SHM_DATA &&
		    map->offset - HL_SHM_DATA == map->start - detach->at;
	struct known *known = map->offset >= HL_SHM_DATA ? find(&map->file) : NULL;

	if (!known || !map->file.ino)
		return 0;
	if (!detach->known && fits)
		detach->known = known;
	if (known != detach->known)
		return 0;
	if (fits && map->start - detach->at < known->bytes && detach->n < PIECES) {
		detach->piece[detach->n].start = map->start;
		detach->piece[detach->n++].end = map->end;
	} else {
		detach->others++;
	}
	return 0;
}

/* The segment is mapped before the address as well. */
static int look_before(const struct hl_map *map, void *arg)
{
	struct detach *detach = arg;

	if (map->start >= detach->at)
		return 1;
	detach->others += map->offset >= HL_SHM_DATA && find(&map->file) == detach->known;
	return 0;
}

/* Under the self lock: unmaps what there is. 0: it was attached there. */
static int detach_pieces(struct detach *detach)
{
	unsigned i;

	do {
		int err;

		detach->n = detach->others = 0;
		err = hl_maps_each(0, look_at, detach);
		if (err || !detach->known)
			return err ? err : -EINVAL;
		for (i = 0; i < detach->n; i++)
			hl_sys_munmap((void *)detach->piece[i].start,
				      detach->piece[i].end - detach->piece[i].start);
	} while (detach->n == PIECES);
	hl_maps_each(0, look_before, detach);
	return 0;
}

static void note_times(struct hl_shm_seg *seg)
{
	atomic_store_explicit(&seg->dtime, hl_ipc_seconds(), memory_order_relaxed);
	atomic_store_explicit(&seg->lpid, hl_sys_getpid(), memory_order_relaxed);
}

int hl_shm_dt(const void *at)
{
	struct detach detach = { .at = (uintptr_t)at };
	struct hl_ipc_object *object;
	bool removed = false;
	int32_t id = -1;
	int err;

	if (detach.at % 4096)
		return -EINVAL;
	hl_ipc_self_lock();
	err = detach_pieces(&detach);
	if (!err) {
		struct known *known = detach.known;

		id = known->id;
		removed = atomic_load_explicit(&known->seg->perm.mode, memory_order_relaxed) &
			  SHM_DEST;
		if (known->writable)
			note_times(known->seg);
		if (!detach.others)
			forget(known);
	}
	hl_ipc_self_unlock();
	/* The last one puts out the light. */
	if (!err && removed && !hl_ipc_find(HL_IPC_SHM, id, &object))
		hl_shm_end(object);
	return err;
}
