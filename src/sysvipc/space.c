/* SPDX-License-Identifier: MIT */
#include "space.h"

#include "sys.h"

#include <errno.h>
#include <limits.h>
#include <sys/file.h>
#include <unistd.h>

#define DIR_VARIABLE "HOTLINE_SYSVIPC_DIR="
#define DEFAULT_DIR "/dev/shm/hotline-sysvipc-"
/* Where there is no /dev/shm, as on Android. */
#define FALLBACK_DIR "/tmp/hotline-sysvipc-"
#define TMPDIR_VARIABLE "TMPDIR="

static char path[PATH_MAX];

static const char *const type_names[HL_IPC_TYPES] = { "sem.", "msg.", "shm." };

/* What the file "ids" holds, for each type. */
struct next_id {
	uint32_t index;
	uint32_t sequence;
};

static size_t length(const char *s)
{
	size_t n = 0;

	while (s[n])
		n++;
	return n;
}

/* What is behind @start in @s, or NULL. */
static const char *behind(const char *s, const char *start)
{
	while (*start)
		if (*s++ != *start++)
			return NULL;
	return s;
}

/* The value of a variable that is set and not empty. */
static const char *variable(const char *name)
{
	const char *value;
	char **at;

	for (at = environ; at && *at; at++) {
		value = behind(*at, name);
		if (value && *value)
			return value;
	}
	return NULL;
}

static size_t put(size_t at, const char *s)
{
	while (*s && at < sizeof(path) - 1)
		path[at++] = *s++;
	path[at] = 0;
	return at;
}

static void put_user(size_t at)
{
	char digits[12];
	unsigned uid = hl_sys_geteuid();
	int n = sizeof(digits) - 1;

	digits[n] = 0;
	do
		digits[--n] = (char)('0' + uid % 10);
	while (uid /= 10);
	put(at, digits + n);
}

/* The user of the beginning: a daemon that becomes another one keeps its objects. */
__attribute__((constructor)) static void choose_path(void)
{
	const char *chosen = variable(DIR_VARIABLE), *tmp;
	struct stat st;
	int fd;

	if (path[0])
		return;
	if (chosen) {
		put(0, chosen);
		return;
	}
	fd = hl_sys_openat(AT_FDCWD, "/dev/shm", O_PATH | O_DIRECTORY, 0);
	if (fd >= 0 && !hl_sys_fstat(fd, &st)) {
		put_user(put(0, DEFAULT_DIR));
	} else {
		tmp = variable(TMPDIR_VARIABLE);
		put_user(tmp ? put(put(0, tmp), "/hotline-sysvipc-") : put(0, FALLBACK_DIR));
	}
	if (fd >= 0)
		hl_sys_close(fd);
}

void hl_ipc_space_choose(const char *directory)
{
	put(0, directory);
}

const char *hl_ipc_space_path(void)
{
	choose_path();
	return path;
}

/* Whoever may rename or remove what is in the directory could give us another's object. */
static int check(int fd)
{
	struct stat st;
	int err = hl_sys_fstat(fd, &st);

	if (err)
		return err;
	if (st.st_uid != 0 && st.st_uid != hl_sys_geteuid() && !(st.st_mode & S_ISVTX))
		return -EACCES;
	if (st.st_mode & (S_IWGRP | S_IWOTH) && !(st.st_mode & S_ISVTX))
		return -EACCES;
	return 0;
}

int hl_ipc_space_open(bool make)
{
	const char *dir = hl_ipc_space_path();
	int fd = hl_sys_openat(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY, 0), err;

	if (fd == -ENOENT && make) {
		err = hl_sys_mkdirat(AT_FDCWD, dir, 0700);
		if (err && err != -EEXIST)
			return err;
		fd = hl_sys_openat(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY, 0);
	}
	if (fd < 0)
		return fd;
	err = check(fd);
	if (err) {
		hl_sys_close(fd);
		return err;
	}
	return fd;
}

int hl_ipc_space_open_locked(void)
{
	int fd = hl_ipc_space_open(true), err;

	if (fd < 0)
		return fd;
	do
		err = hl_sys_flock(fd, LOCK_EX);
	while (err == -EINTR);
	if (err) {
		hl_sys_close(fd);
		return err;
	}
	return fd;
}

static char *put_type(char *name, enum hl_ipc_type type)
{
	__builtin_memcpy(name, type_names[type], 4);
	return name + 4;
}

void hl_ipc_name_index(char name[HL_IPC_NAME_BYTES], enum hl_ipc_type type, int index)
{
	char *at = put_type(name, type), digits[12];
	int n = 0;

	do
		digits[n++] = (char)('0' + index % 10);
	while (index /= 10);
	while (n)
		*at++ = digits[--n];
	*at = 0;
}

void hl_ipc_name_key(char name[HL_IPC_NAME_BYTES], enum hl_ipc_type type, int32_t key)
{
	char *at = put_type(name, type);
	int shift;

	*at++ = 'k';
	for (shift = 28; shift >= 0; shift -= 4)
		*at++ = "0123456789abcdef"[(uint32_t)key >> shift & 15];
	*at = 0;
}

/* "sem.17" of the type: 17; -ENOENT for any other name. */
static int index_of(const char *name, size_t n, enum hl_ipc_type type)
{
	int index = 0;
	size_t i;

	if (n < 5 || n > 9 || !behind(name, type_names[type]))
		return -ENOENT;
	for (i = 4; i < n; i++) {
		if (name[i] < '0' || name[i] > '9')
			return -ENOENT;
		index = index * 10 + name[i] - '0';
	}
	return index < HL_IPC_INDEXES ? index : -ENOENT;
}

int hl_ipc_space_find_key(int dir, enum hl_ipc_type type, int32_t key)
{
	char name[HL_IPC_NAME_BYTES], target[HL_IPC_NAME_BYTES];
	long n;

	hl_ipc_name_key(name, type, key);
	n = hl_sys_readlinkat(dir, name, target, sizeof(target));
	if (n < 0)
		return n == -EINVAL ? -ENOENT : (int)n;
	return index_of(target, (size_t)n, type);
}

/* Not made by an open() that finds it: in a directory for all, Linux refuses that to others. */
static int open_ids(int dir)
{
	int fd = hl_sys_openat(dir, "ids", O_RDWR | O_NOFOLLOW, 0);

	if (fd != -ENOENT)
		return fd;
	fd = hl_sys_openat(dir, "ids", O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	/* Whoever may enter the directory; the numbers are believed of nobody. */
	if (fd >= 0)
		hl_sys_fchmod(fd, 0666);
	return fd;
}

int hl_ipc_space_next_id(int dir, enum hl_ipc_type type)
{
	int64_t at = (int64_t)(type * sizeof(struct next_id));
	struct next_id next = { 0 };
	int fd = open_ids(dir), id;
	long n;

	if (fd < 0)
		return fd;
	n = hl_sys_pread(fd, &next, sizeof(next), at);
	/* Whatever was in the file. */
	next.index %= HL_IPC_INDEXES;
	next.sequence %= HL_IPC_SEQUENCES;
	id = (int)(next.sequence << HL_IPC_INDEX_BITS | next.index);
	if (++next.index == HL_IPC_INDEXES) {
		next.index = 0;
		next.sequence = (next.sequence + 1) % HL_IPC_SEQUENCES;
	}
	if (n >= 0)
		n = hl_sys_pwrite(fd, &next, sizeof(next), at);
	hl_sys_close(fd);
	if (n < 0)
		return (int)n;
	return n == sizeof(next) ? id : -ENOSPC;
}

struct entry {
	uint64_t inode;
	int64_t next;
	unsigned short bytes;
	unsigned char kind;
	char name[];
};

int hl_ipc_space_each(int dir, enum hl_ipc_type type, int (*each)(int index, void *arg), void *arg)
{
	_Alignas(struct entry) char room[2048];
	long n, at;

	HL_SYS(SYS_lseek, dir, 0, SEEK_SET, 0, 0, 0);
	while ((n = hl_sys_getdents(dir, room, sizeof(room))) > 0) {
		for (at = 0; at < n;) {
			const struct entry *entry = (const struct entry *)(room + at);
			int index = index_of(entry->name, length(entry->name), type), err;

			at += entry->bytes;
			if (index < 0)
				continue;
			err = each(index, arg);
			if (err)
				return err;
		}
	}
	return (int)n;
}
