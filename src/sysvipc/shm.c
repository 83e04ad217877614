/* SPDX-License-Identifier: MIT */
/* The file of a segment; shmget() and shmctl(). */
#include "shm.h"

#include "clock.h"
#include "user.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/vfs.h>

#ifndef MLOCK_ONFAULT
#define MLOCK_ONFAULT 1
#endif

static uint64_t bytes_for(uint64_t n)
{
	return n && n <= HL_SHM_MOST - 2 * HL_SHM_DATA ? HL_SHM_DATA + hl_shm_round(n) : UINT64_MAX;
}

static uint64_t reserved_for(uint64_t n)
{
	(void)n;
	return hl_shm_round(sizeof(struct hl_shm_seg));
}

static int fits(const struct hl_ipc_object *object, uint64_t n)
{
	return n > object->n ? -EINVAL : 0;
}

const struct hl_ipc_kind hl_shm_kind = {
	.bytes = bytes_for,
	.reserved = reserved_for,
	.fits = fits,
};

/* ---- shmget() ---- */

/*
 * Is there room for a segment? Memory is taken page by page as it is touched, and where there is
 * none left a touch ends the process: so that who asks for too much is told so at once.
 */
static int room_for(uint64_t bytes)
{
	int dir = hl_ipc_space_open(true), err;
	struct statfs fs;

	if (dir < 0)
		return dir;
	err = (int)HL_SYS(SYS_fstatfs, dir, &fs, 0, 0, 0, 0);
	hl_sys_close(dir);
	if (err || !fs.f_blocks)
		return 0;
	return bytes / (uint64_t)fs.f_bsize >= fs.f_bavail ? -ENOMEM : 0;
}

int hl_shm_get(key_t key, size_t bytes, int flags)
{
	struct hl_ipc_object *object;
	int err = -ENOENT;

	if (key != IPC_PRIVATE)
		err = hl_ipc_get(HL_IPC_SHM, key, flags & ~IPC_CREAT, bytes, &object);
	if (err == -ENOENT && (key == IPC_PRIVATE || flags & IPC_CREAT)) {
		if (!bytes || bytes > HL_SHM_MOST)
			return -EINVAL;
		err = room_for(bytes);
		if (!err)
			err = hl_ipc_get(HL_IPC_SHM, key, flags, bytes, &object);
	} else if (err != -ENOENT && flags & IPC_CREAT && flags & IPC_EXCL) {
		return -EEXIST;
	}
	return err ? err : object->id;
}

int hl_shm_find(int id, struct hl_ipc_object **to)
{
	int err = hl_ipc_find(HL_IPC_SHM, id, to);

	return !err && hl_shm_end(*to) ? -EINVAL : err;
}

/* ---- shmctl() ---- */

static void fill(struct hl_ipc_object *object, struct shmid_ds *to)
{
	struct hl_shm_seg *seg = hl_shm_seg(object);
	int n = hl_shm_count(object);

	*to = (struct shmid_ds){
		.shm_segsz = object->n,
		.shm_atime = atomic_load_explicit(&seg->atime, memory_order_relaxed),
		.shm_dtime = atomic_load_explicit(&seg->dtime, memory_order_relaxed),
		.shm_ctime = atomic_load_explicit(&seg->perm.ctime, memory_order_relaxed),
		.shm_cpid = seg->perm.cpid,
		.shm_lpid = atomic_load_explicit(&seg->lpid, memory_order_relaxed),
		.shm_nattch = n > 0 ? (shmatt_t)n : 0,
	};
	hl_ipc_stat(object, &to->shm_perm);
}

static int find_index(int index, struct hl_ipc_object **to)
{
	int err = hl_ipc_find_index(HL_IPC_SHM, index, to);

	return !err && hl_shm_end(*to) ? -EINVAL : err;
}

static int stat_seg(int id, int command, struct shmid_ds *to)
{
	struct hl_ipc_object *object;
	int err = command == IPC_STAT ? hl_shm_find(id, &object) : find_index(id, &object);

	if (!err && command != SHM_STAT_ANY)
		err = hl_ipc_check_access(object, 04);
	if (err)
		return err;
	if (hl_user_writable(to, sizeof(*to)))
		return -EFAULT;
	fill(object, to);
	return command == IPC_STAT ? 0 : object->id;
}

static int info(struct shminfo *to)
{
	int n, highest;

	if (hl_user_writable(to, sizeof(*to)))
		return -EFAULT;
	highest = hl_ipc_highest(HL_IPC_SHM, &n);
	*to = (struct shminfo){
		.shmmax = HL_SHM_MOST,
		.shmmin = 1,
		.shmmni = HL_IPC_INDEXES,
		.shmseg = HL_IPC_INDEXES,
		.shmall = HL_SHM_MOST,
	};
	return highest < 0 ? 0 : highest;
}

/* Pages that a segment has been given so far. */
static uint64_t resident(const struct hl_ipc_object *object)
{
	int fd = hl_ipc_reopen(object, O_RDONLY);
	struct stat st = { 0 };

	if (fd < 0)
		return 0;
	hl_sys_fstat(fd, &st);
	hl_sys_close(fd);
	return (uint64_t)st.st_blocks * 512 / 4096;
}

static int used(struct shm_info *to)
{
	int n, highest = hl_ipc_highest(HL_IPC_SHM, &n), index;

	if (hl_user_writable(to, sizeof(*to)))
		return -EFAULT;
	*to = (struct shm_info){ .used_ids = n };
	for (index = 0; index <= highest; index++) {
		struct hl_ipc_object *object;

		if (find_index(index, &object))
			continue;
		to->shm_tot += hl_shm_round(object->n) / 4096;
		to->shm_rss += resident(object);
	}
	return highest < 0 ? 0 : highest;
}

/* 01000 and 02000, beside the mode. */
static void set_flag(struct hl_ipc_object *object, uint32_t flag, bool on)
{
	if (on)
		atomic_fetch_or_explicit(&object->perm->mode, flag, memory_order_relaxed);
	else
		atomic_fetch_and_explicit(&object->perm->mode, ~flag, memory_order_relaxed);
}

static int remove_seg(struct hl_ipc_object *object)
{
	int err = hl_ipc_check_owner(object);

	if (err)
		return err;
	if (!object->writable)
		return -EPERM;
	if (!hl_shm_count(object)) {
		err = hl_ipc_remove(object);
		if (!err)
			hl_ipc_retire(object);
		return err;
	}
	set_flag(object, SHM_DEST, true);
	err = hl_ipc_unkey(object);
	/* The last may have detached it before it could see the flag. */
	if (!err)
		hl_shm_end(object);
	return err;
}

/* Keeps what is touched in memory, as long as this process lives. */
static int lock_seg(struct hl_ipc_object *object, bool on)
{
	char *at = (char *)object->perm + HL_SHM_DATA;
	struct rlimit limit = { 0 };
	int err = hl_ipc_check_owner(object);

	if (err)
		return err;
	HL_SYS(SYS_prlimit64, 0, RLIMIT_MEMLOCK, NULL, &limit, 0, 0);
	if (on && hl_sys_geteuid() && !limit.rlim_cur)
		return -EPERM;
	if (!object->writable)
		return -EPERM;
	if (on)
		HL_SYS(SYS_mlock2, at, hl_shm_round(object->n), MLOCK_ONFAULT, 0, 0, 0);
	else
		HL_SYS(SYS_munlock, at, hl_shm_round(object->n), 0, 0, 0, 0);
	set_flag(object, SHM_LOCKED, on);
	return 0;
}

static int set_perm(struct hl_ipc_object *object, const struct shmid_ds *from)
{
	int err = hl_ipc_check_owner(object);

	return err ? err
		   : hl_ipc_set(object, from->shm_perm.uid, from->shm_perm.gid,
				from->shm_perm.mode);
}

int hl_shm_ctl(int id, int command, struct shmid_ds *arg)
{
	struct hl_ipc_object *object;
	int err;

	if (id < 0 || command < 0)
		return -EINVAL;
	switch (command) {
	case IPC_INFO:
		return info((struct shminfo *)arg);
	case SHM_INFO:
		return used((struct shm_info *)arg);
	case IPC_STAT:
	case SHM_STAT:
	case SHM_STAT_ANY:
		return stat_seg(id, command, arg);
	case IPC_SET:
		if (hl_user_readable(arg, sizeof(*arg)))
			return -EFAULT;
		break;
	case IPC_RMID:
	case SHM_LOCK:
	case SHM_UNLOCK:
		break;
	default:
		return -EINVAL;
	}
	err = hl_shm_find(id, &object);
	if (err)
		return err;
	if (command == IPC_SET)
		return set_perm(object, arg);
	return command == IPC_RMID ? remove_seg(object) : lock_seg(object, command == SHM_LOCK);
}
