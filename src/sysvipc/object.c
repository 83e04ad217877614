/* SPDX-License-Identifier: MIT */
/*
 * Making, finding and removing objects.
 *
 * Locking: names in the directory, .live of an object that is made or removed and .key change under
 * the directory's lock (space.h). The tables of this process, the retired and the room for struct
 * hl_ipc_object change under hl_ipc_self_lock(), which nests inside the directory's.
 *
 * Who holds the directory's lock and finds a file that is not live has found what a dead process
 * left: it is removed.
 *
 * Memory ordering
 *
 * OBJECT_PUBLISHED: publish() fills struct hl_ipc_object in and stores its address in the tables
 *	with release; who finds it there loads with acquire. Without it a thread uses a mapping of
 *	no size.
 * OBJECT_LIVE: make() fills the file in, then stores .live with release; whoever maps the file loads
 *	it with acquire. Without it another process believes an object that is half made. Removal
 *	stores HL_IPC_REMOVED with release before sleepers are woken.
 */
#include "object.h"

#include "clock.h"

#include <limits.h>
#include <sys/mman.h>

#define ARENA_BYTES 65536
#define KEYS 512
/* For so long nobody is given the addresses of an object that is gone. */
#define RETIRED_NS INT64_C(10000000000)
#define GROUPS 1024

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

struct hl_ipc_object *_Atomic hl_ipc_objects[HL_IPC_TYPES][HL_IPC_INDEXES];

/* The last object that was found by a key that falls here. */
static struct hl_ipc_object *_Atomic keys[HL_IPC_TYPES][KEYS];

/* The oldest first. */
static struct hl_ipc_object *retired, **retired_end = &retired;
static char *arena, *arena_end;

static struct hl_ipc_object *_Atomic *key_place(enum hl_ipc_type type, int32_t key)
{
	return &keys[type][(uint32_t)key * UINT32_C(2654435769) >> 23];
}

/* ---- Who may what ---- */

static bool in_group(uint32_t gid)
{
	gid_t groups[GROUPS];
	long n, i;

	if (hl_sys_getegid() == gid)
		return true;
	n = HL_SYS(SYS_getgroups, GROUPS, groups, 0, 0, 0, 0);
	for (i = 0; i < n; i++)
		if (groups[i] == gid)
			return true;
	return false;
}

static uint32_t load(const _Atomic(uint32_t) *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

/* The three bits that the mode grants to the caller. */
static uint32_t granted(const struct hl_ipc_perm *perm)
{
	uint32_t mode = load(&perm->mode), uid = hl_sys_geteuid();

	if (!uid)
		return 07;
	if (uid == perm->cuid || uid == load(&perm->uid))
		return mode >> 6 & 07;
	if (in_group(perm->cgid) || in_group(load(&perm->gid)))
		return mode >> 3 & 07;
	return mode & 07;
}

static void note_access(struct hl_ipc_object *object, uint32_t live)
{
	uint32_t may = granted(object->perm);

	if (!object->writable)
		may &= ~02u;
	atomic_store_explicit(&object->may, may, memory_order_relaxed);
	atomic_store_explicit(&object->asker, hl_ipc_self()->pid, memory_order_relaxed);
	atomic_store_explicit(&object->live, live, memory_order_relaxed);
}

int hl_ipc_check_access(struct hl_ipc_object *object, uint32_t what)
{
	note_access(object, atomic_load_explicit(&object->live, memory_order_relaxed));
	return hl_ipc_may(object, what) ? 0 : -EACCES;
}

int hl_ipc_check_owner(const struct hl_ipc_object *object)
{
	uint32_t uid = hl_sys_geteuid();

	return !uid || uid == object->perm->cuid || uid == load(&object->perm->uid) ? 0 : -EPERM;
}

/* Nine bits of System V as nine of the file's: the owner can always remove and IPC_SET, and who
 * may alter must be able to lock. */
static unsigned file_mode(uint32_t mode)
{
	unsigned file = 0600;

	file |= mode & 0020 ? 0060 : mode & 0040;
	file |= mode & 0002 ? 0006 : mode & 0004;
	return file;
}

/* ---- What this process has ---- */

static struct hl_ipc_object *take_from_arena(void)
{
	struct hl_ipc_object *object;

	if ((size_t)(arena_end - arena) < sizeof(*object)) {
		char *more = hl_sys_mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE,
					 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (hl_sys_failed(more))
			return NULL;
		arena = more;
		arena_end = more + ARENA_BYTES;
	}
	object = (struct hl_ipc_object *)arena;
	arena += sizeof(*object);
	return object;
}

/* One that was retired long ago and has as many bytes, or a new one without a mapping. */
static struct hl_ipc_object *take_object(size_t bytes)
{
	int64_t now = retired ? hl_ipc_now() : 0;
	struct hl_ipc_object **place, *object;

	for (place = &retired; (object = *place) && now - object->retired > RETIRED_NS;
	     place = &object->next) {
		if (object->bytes != bytes)
			continue;
		*place = object->next;
		if (!*place)
			retired_end = place;
		return object;
	}
	return take_from_arena();
}

static void retire_locked(struct hl_ipc_object *object)
{
	struct hl_ipc_object *_Atomic *place = key_place(object->type, object->key);

	if (object->retired)
		return;
	if (atomic_load_explicit(place, memory_order_relaxed) == object)
		atomic_store_explicit(place, NULL, memory_order_relaxed);
	place = &hl_ipc_objects[object->type][hl_ipc_index(object->id)];
	if (atomic_load_explicit(place, memory_order_relaxed) == object)
		atomic_store_explicit(place, NULL, memory_order_relaxed);
	hl_sys_mmap(object->perm, object->bytes, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	object->retired = hl_ipc_now();
	object->next = NULL;
	*retired_end = object;
	retired_end = &object->next;
}

void hl_ipc_retire(struct hl_ipc_object *object)
{
	hl_ipc_self_lock();
	retire_locked(object);
	hl_ipc_self_unlock();
}

/* Maps @bytes of a file where an object was before, or anywhere. */
static struct hl_ipc_object *map(int fd, size_t bytes, bool writable)
{
	struct hl_ipc_object *object = take_object(bytes);
	int prot = PROT_READ | (writable ? PROT_WRITE : 0);
	void *at;

	if (!object)
		return NULL;
	at = hl_sys_mmap(object->perm, bytes, prot, MAP_SHARED | (object->perm ? MAP_FIXED : 0), fd,
			 0);
	if (hl_sys_failed(at)) {
		/* It stays among the retired, or is as good as new. */
		if (object->perm) {
			object->next = retired;
			retired = object;
			if (retired_end == &retired)
				retired_end = &object->next;
		} else {
			arena -= sizeof(*object);
		}
		return NULL;
	}
	*object = (struct hl_ipc_object){ .perm = at, .bytes = bytes, .writable = writable };
	atomic_init(&object->live, HL_IPC_UNKNOWN);
	return object;
}

/* The caller has the self lock. */
static void publish(struct hl_ipc_object *object, enum hl_ipc_type type, int32_t id, int32_t key,
		    uint64_t n)
{
	struct hl_ipc_object *_Atomic *place = &hl_ipc_objects[type][hl_ipc_index(id)];
	struct hl_ipc_object *old = atomic_load_explicit(place, memory_order_relaxed);

	object->type = type;
	object->id = id;
	object->key = key;
	object->n = n;
	if (hl_ipc_kinds[type]->opened)
		hl_ipc_kinds[type]->opened(object);
	if (old)
		retire_locked(old);
	/* OBJECT_PUBLISHED */
	atomic_store_explicit(place, object, memory_order_release);
}

/* ---- Files ---- */

/* What is found in a file before it is believed. */
struct looked_at {
	struct hl_ipc_perm *perm;
	size_t bytes;
	uint64_t n;
	int32_t id;
	int32_t key;
	uint32_t live;
};

/*
 * Is it an object of ours, whole, and of this index? -ENOENT: it is not live, -EINVAL: it is
 * something else, -EACCES: of another pid namespace.
 */
static int look(enum hl_ipc_type type, int index, struct looked_at *at)
{
	const struct hl_ipc_kind *kind = hl_ipc_kinds[type];
	uint64_t ours = hl_ipc_self()->pid_namespace;

	/* OBJECT_LIVE */
	at->live = atomic_load_explicit(&at->perm->live, memory_order_acquire);
	at->n = *(volatile uint64_t *)&at->perm->n;
	at->id = *(volatile int32_t *)&at->perm->id;
	at->key = atomic_load_explicit(&at->perm->key, memory_order_relaxed);
	if (at->live == HL_IPC_MAKING || at->live == HL_IPC_REMOVED)
		return -ENOENT;
	if (at->perm->magic != HL_IPC_MAGIC || at->id < 0 || hl_ipc_index(at->id) != index ||
	    kind->bytes(at->n) > at->bytes)
		return -EINVAL;
	if (ours && at->perm->pid_namespace && at->perm->pid_namespace != ours)
		return -EACCES;
	return 0;
}

/* Maps the object at an index and makes it known. @id: the one that it must have, or -1. */
static int open_index(int dir, enum hl_ipc_type type, int index, int32_t id,
		      struct hl_ipc_object **to)
{
	char name[HL_IPC_NAME_BYTES];
	struct hl_ipc_object *object;
	struct looked_at at;
	struct stat st;
	bool writable = true;
	int fd, err;

	hl_ipc_name_index(name, type, index);
	fd = hl_sys_openat(dir, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK, 0);
	if (fd == -EACCES || fd == -EROFS) {
		writable = false;
		fd = hl_sys_openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	}
	if (fd < 0)
		return fd;
	err = hl_sys_fstat(fd, &st);
	if (!err && (!S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(struct hl_ipc_perm)))
		err = S_ISREG(st.st_mode) ? -ENOENT : -EINVAL;
	if (err) {
		hl_sys_close(fd);
		return err;
	}

	hl_ipc_self_lock();
	object = map(fd, (size_t)st.st_size, writable);
	hl_sys_close(fd);
	if (!object) {
		hl_ipc_self_unlock();
		return -ENOMEM;
	}
	at = (struct looked_at){ .perm = object->perm, .bytes = object->bytes };
	err = look(type, index, &at);
	if (!err && id >= 0 && at.id != id)
		err = -EINVAL;
	if (!err) {
		struct hl_ipc_object *known =
			atomic_load_explicit(&hl_ipc_objects[type][index], memory_order_relaxed);

		/* Another thread was faster. */
		if (known && known->id == at.id && !known->retired) {
			object->id = -1;
			object->type = type;
			retire_locked(object);
			object = known;
		} else {
			publish(object, type, at.id, at.key, at.n);
		}
		note_access(object, at.live);
		*to = object;
	} else {
		object->id = -1;
		object->type = type;
		retire_locked(object);
	}
	hl_ipc_self_unlock();
	return err;
}

/* The object of which a table knows, if it is still what it was. */
static int still(struct hl_ipc_object *object)
{
	/* OBJECT_LIVE */
	uint32_t live = atomic_load_explicit(&object->perm->live, memory_order_acquire);

	if (live == HL_IPC_REMOVED || live == HL_IPC_MAKING)
		return -EINVAL;
	if (live != atomic_load_explicit(&object->live, memory_order_relaxed) ||
	    atomic_load_explicit(&object->asker, memory_order_relaxed) != hl_ipc_self()->pid)
		note_access(object, live);
	return 0;
}

static int known_or_open(enum hl_ipc_type type, int index, int32_t id, struct hl_ipc_object **to)
{
	struct hl_ipc_object *object;
	int dir, err;

	/* OBJECT_PUBLISHED */
	object = atomic_load_explicit(&hl_ipc_objects[type][index], memory_order_acquire);
	if (object && (id < 0 || object->id == id) && !still(object)) {
		*to = object;
		return 0;
	}
	dir = hl_ipc_space_open(false);
	if (dir < 0)
		return dir == -ENOENT ? -EINVAL : dir;
	err = open_index(dir, type, index, id, to);
	hl_sys_close(dir);
	return err == -ENOENT || err == -ELOOP ? -EINVAL : err;
}

int hl_ipc_find_slowly(enum hl_ipc_type type, int32_t id, struct hl_ipc_object **to)
{
	return id < 0 ? -EINVAL : known_or_open(type, hl_ipc_index(id), id, to);
}

int hl_ipc_find_index(enum hl_ipc_type type, int index, struct hl_ipc_object **to)
{
	if (index < 0 || index >= HL_IPC_INDEXES)
		return -EINVAL;
	return known_or_open(type, index, -1, to);
}

struct count {
	int highest;
	int n;
};

static int count_one(int index, void *arg)
{
	struct count *count = arg;

	count->highest = index > count->highest ? index : count->highest;
	count->n++;
	return 0;
}

int hl_ipc_highest(enum hl_ipc_type type, int *n)
{
	struct count count = { .highest = -1 };
	int dir = hl_ipc_space_open(false);

	if (dir >= 0) {
		hl_ipc_space_each(dir, type, count_one, &count);
		hl_sys_close(dir);
	}
	*n = count.n;
	return count.highest;
}

/* Takes the names of an object out of the directory, whose lock the caller has. */
static void unlink_names(int dir, enum hl_ipc_type type, int index, int32_t key)
{
	char name[HL_IPC_NAME_BYTES];

	if (key != IPC_PRIVATE && hl_ipc_space_find_key(dir, type, key) == index) {
		hl_ipc_name_key(name, type, key);
		hl_sys_unlinkat(dir, name);
	}
	hl_ipc_name_index(name, type, index);
	hl_sys_unlinkat(dir, name);
}

static void fill_head(struct hl_ipc_perm *perm, int32_t id, int32_t key, uint32_t mode, uint64_t n,
		      uint64_t bytes)
{
	const struct hl_ipc_self *self = hl_ipc_self();

	perm->magic = HL_IPC_MAGIC;
	perm->id = id;
	perm->key = key;
	perm->mode = mode & 0777;
	perm->uid = perm->cuid = hl_sys_geteuid();
	perm->gid = perm->cgid = hl_sys_getegid();
	perm->bytes = bytes;
	perm->n = n;
	perm->pid_namespace = self->pid_namespace;
	perm->cpid = self->pid;
	perm->cstart = self->start;
	perm->ctime = hl_ipc_seconds();
}

/* Makes an empty file for the next id that is free. Return: its descriptor, which the id is beside. */
static int make_file(int dir, enum hl_ipc_type type, int32_t *id)
{
	char name[HL_IPC_NAME_BYTES];
	int tries, fd;

	for (tries = 0; tries < HL_IPC_INDEXES; tries++) {
		struct hl_ipc_object *other;

		*id = hl_ipc_space_next_id(dir, type);
		if (*id < 0)
			return *id;
		hl_ipc_name_index(name, type, hl_ipc_index(*id));
		fd = hl_sys_openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
		if (fd != -EEXIST)
			return fd;
		/* A file that is not live while we hold the lock is a dead process's. */
		if (open_index(dir, type, hl_ipc_index(*id), -1, &other) == -ENOENT &&
		    !hl_sys_unlinkat(dir, name))
			tries--;
	}
	return -ENOSPC;
}

static int make(int dir, enum hl_ipc_type type, int32_t key, uint32_t mode, uint64_t n,
		struct hl_ipc_object **to)
{
	const struct hl_ipc_kind *kind = hl_ipc_kinds[type];
	char name[HL_IPC_NAME_BYTES], link[HL_IPC_NAME_BYTES];
	uint64_t bytes = kind->bytes(n);
	struct hl_ipc_object *object = NULL;
	int32_t id;
	int fd, err;

	if (bytes == UINT64_MAX)
		return -EINVAL;
	fd = make_file(dir, type, &id);
	if (fd < 0)
		return fd;
	err = hl_sys_ftruncate(fd, (int64_t)bytes);
	if (!err)
		err = hl_sys_fallocate(fd, 0, 0, (int64_t)kind->reserved(n));
	if (err == -EOPNOTSUPP)
		err = 0;
	if (!err)
		err = hl_sys_fchmod(fd, file_mode(mode));
	if (!err) {
		hl_ipc_self_lock();
		object = map(fd, bytes, true);
		err = object ? 0 : -ENOMEM;
		if (object) {
			fill_head(object->perm, id, key, mode, n, bytes);
			if (kind->init)
				kind->init(object->perm, n);
			publish(object, type, id, key, n);
		}
		hl_ipc_self_unlock();
	}
	hl_sys_close(fd);
	hl_ipc_name_index(name, type, hl_ipc_index(id));
	if (!err && key != IPC_PRIVATE) {
		hl_ipc_name_key(link, type, key);
		err = hl_sys_symlinkat(name, dir, link);
	}
	if (err) {
		hl_sys_unlinkat(dir, name);
		if (object)
			hl_ipc_retire(object);
		return err == -EFBIG || err == -EDQUOT ? -ENOSPC : err;
	}
	note_access(object, 1);
	/* OBJECT_LIVE */
	atomic_store_explicit(&object->perm->live, 1, memory_order_release);
	*to = object;
	return 0;
}

/* As the kernel does it: what is asked for in @flags must be allowed. */
static int check_existing(struct hl_ipc_object *object, int flags, uint64_t n)
{
	uint32_t asked = (uint32_t)(flags >> 6 | flags >> 3 | flags) & 06;
	int err;

	if (flags & IPC_CREAT && flags & IPC_EXCL)
		return -EEXIST;
	err = hl_ipc_kinds[object->type]->fits(object, n);
	if (err || hl_ipc_may(object, asked))
		return err;
	return hl_ipc_check_access(object, asked);
}

/* The object that has the key, by the directory, whose lock the caller has. -ENOENT. */
static int find_key_locked(int dir, enum hl_ipc_type type, int32_t key, struct hl_ipc_object **to)
{
	char link[HL_IPC_NAME_BYTES];
	int index = hl_ipc_space_find_key(dir, type, key), err;
	struct hl_ipc_object *object;

	if (index < 0)
		return index;
	/* OBJECT_PUBLISHED */
	object = atomic_load_explicit(&hl_ipc_objects[type][index], memory_order_acquire);
	if (object && !still(object) && object->key == key) {
		*to = object;
		return 0;
	}
	err = open_index(dir, type, index, -1, to);
	if (!err && (*to)->key == key)
		return 0;
	if (err && err != -ENOENT)
		return err;
	/* The link leads nowhere, or its object was half made or half removed. */
	if (err)
		unlink_names(dir, type, index, key);
	hl_ipc_name_key(link, type, key);
	hl_sys_unlinkat(dir, link);
	return -ENOENT;
}

int hl_ipc_get(enum hl_ipc_type type, int32_t key, int flags, uint64_t n, struct hl_ipc_object **to)
{
	struct hl_ipc_object *_Atomic *place = key_place(type, key), *object;
	int dir, err = -ENOENT;

	/* OBJECT_PUBLISHED */
	object = atomic_load_explicit(place, memory_order_acquire);
	if (key != IPC_PRIVATE && object && object->key == key && !still(object) &&
	    atomic_load_explicit(&object->perm->key, memory_order_relaxed) == key) {
		*to = object;
		return check_existing(object, flags, n);
	}
	dir = hl_ipc_space_open_locked();
	if (dir < 0)
		return dir;
	if (key != IPC_PRIVATE)
		err = find_key_locked(dir, type, key, to);
	if (!err) {
		hl_sys_close(dir);
		err = check_existing(*to, flags, n);
	} else if (err == -ENOENT && (key == IPC_PRIVATE || flags & IPC_CREAT)) {
		err = make(dir, type, key, (uint32_t)flags, n, to);
		hl_sys_close(dir);
	} else {
		hl_sys_close(dir);
	}
	/* OBJECT_PUBLISHED */
	if (!err && key != IPC_PRIVATE)
		atomic_store_explicit(place, *to, memory_order_release);
	return err;
}

int hl_ipc_reopen(const struct hl_ipc_object *object, int flags)
{
	char name[HL_IPC_NAME_BYTES];
	int dir = hl_ipc_space_open(false), fd;

	if (dir < 0)
		return dir;
	hl_ipc_name_index(name, object->type, hl_ipc_index(object->id));
	fd = hl_sys_openat(dir, name, flags | O_NOFOLLOW, 0);
	hl_sys_close(dir);
	return fd;
}

int hl_ipc_set(struct hl_ipc_object *object, uint32_t uid, uint32_t gid, uint32_t mode)
{
	struct hl_ipc_perm *perm = object->perm;
	uint32_t live;
	int fd, err;

	if (uid == UINT32_MAX || gid == UINT32_MAX)
		return -EINVAL;
	fd = hl_ipc_reopen(object, O_RDONLY);
	if (fd >= 0) {
		/* Who may not give files away may still write down whom the object belongs to. */
		if (!hl_sys_geteuid())
			hl_sys_fchown(fd, uid, gid);
		err = hl_sys_fchmod(fd, file_mode(mode));
		hl_sys_close(fd);
		if (err)
			return err;
	}
	if (!object->writable)
		return -EPERM;
	atomic_store_explicit(&perm->uid, uid, memory_order_relaxed);
	atomic_store_explicit(&perm->gid, gid, memory_order_relaxed);
	atomic_store_explicit(&perm->mode, (load(&perm->mode) & ~0777u) | (mode & 0777),
			      memory_order_relaxed);
	atomic_store_explicit(&perm->ctime, hl_ipc_seconds(), memory_order_relaxed);
	/* OBJECT_LIVE: everybody looks again at what is allowed. Not over a removal. */
	live = load(&perm->live);
	while (live != HL_IPC_REMOVED && live != HL_IPC_MAKING &&
	       !atomic_compare_exchange_weak_explicit(&perm->live, &live,
						      live + 1 >= HL_IPC_UNKNOWN ? 1 : live + 1,
						      memory_order_release, memory_order_relaxed))
		;
	return 0;
}

void hl_ipc_stat(const struct hl_ipc_object *object, struct ipc_perm *to)
{
	const struct hl_ipc_perm *perm = object->perm;

	*to = (struct ipc_perm){
		.__key = atomic_load_explicit(&perm->key, memory_order_relaxed),
		.uid = load(&perm->uid),
		.gid = load(&perm->gid),
		.cuid = perm->cuid,
		.cgid = perm->cgid,
		.mode = load(&perm->mode),
		.__seq = (unsigned short)(object->id >> HL_IPC_INDEX_BITS),
	};
}

int hl_ipc_remove(struct hl_ipc_object *object)
{
	int32_t key;
	int dir;

	if (!object->writable)
		return -EPERM;
	dir = hl_ipc_space_open_locked();
	if (dir < 0)
		return dir;
	if (hl_ipc_removed(object)) {
		hl_sys_close(dir);
		return -EINVAL;
	}
	key = atomic_load_explicit(&object->perm->key, memory_order_relaxed);
	/* OBJECT_LIVE */
	atomic_store_explicit(&object->perm->live, HL_IPC_REMOVED, memory_order_release);
	unlink_names(dir, object->type, hl_ipc_index(object->id), key);
	hl_sys_close(dir);
	return 0;
}

int hl_ipc_unkey(struct hl_ipc_object *object)
{
	char link[HL_IPC_NAME_BYTES];
	int dir = hl_ipc_space_open_locked();
	int32_t key;

	if (dir < 0)
		return dir;
	key = atomic_load_explicit(&object->perm->key, memory_order_relaxed);
	atomic_store_explicit(&object->perm->key, IPC_PRIVATE, memory_order_relaxed);
	if (key != IPC_PRIVATE &&
	    hl_ipc_space_find_key(dir, object->type, key) == hl_ipc_index(object->id)) {
		hl_ipc_name_key(link, object->type, key);
		hl_sys_unlinkat(dir, link);
	}
	hl_sys_close(dir);
	return 0;
}

int hl_ipc_populate(const struct hl_ipc_object *object, size_t at, size_t bytes)
{
	size_t first = at & ~(size_t)4095, behind = (at + bytes + 4095) & ~(size_t)4095;
	int err;

	if (behind > object->bytes)
		behind = object->bytes;
	err = hl_sys_madvise((char *)object->perm + first, behind - first, MADV_POPULATE_WRITE);
	/* Kernels before 5.14 do not know it. */
	return err && err != -EINVAL && err != -ENOSYS ? -ENOSPC : 0;
}
