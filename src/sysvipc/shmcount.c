/* SPDX-License-Identifier: MIT */
/*
 * Who has a segment attached.
 *
 * Who looks at the list and finds a process with nothing mapped marks its place (HL_SHM_DOUBT),
 * looks once more, and frees the place only if it still has the mark: a process that attaches
 * meanwhile stores its pid over the mark, after it has mapped the segment.
 *
 * Memory ordering
 *
 * SHM_DOUBT: the mark is set by a compare-and-swap with acquire and release, before the mappings are
 *	read again; hl_shm_enlist() stores the pid with the same, after they were made. Either the
 *	one who looks sees the mapping, or its last compare-and-swap fails. Without it a process
 *	that has the segment attached is left out.
 */
#include "shm.h"

#include "sys.h"

/* A number of a device, as /proc has it. */
static uint64_t device(uint64_t dev)
{
	uint64_t major = (dev >> 8 & 0xfff) | (dev >> 32 & ~UINT64_C(0xfff));
	uint64_t minor = (dev & 0xff) | (dev >> 12 & 0xffffff00);

	return major << 32 | minor;
}

int hl_shm_file_of(const struct hl_ipc_object *object, struct hl_shm_file *file)
{
	int fd = hl_ipc_reopen(object, O_RDONLY), err;
	struct stat st;

	if (fd < 0)
		return fd;
	err = hl_sys_fstat(fd, &st);
	hl_sys_close(fd);
	file->dev = device(st.st_dev);
	file->ino = st.st_ino;
	return err;
}

/* ---- The list ---- */

void hl_shm_enlist(struct hl_shm_seg *seg)
{
	uint32_t pid = (uint32_t)hl_sys_getpid();
	unsigned i, free = HL_SHM_PROCESSES;

	for (i = 0; i < HL_SHM_PROCESSES; i++) {
		uint32_t other = atomic_load_explicit(&seg->processes[i], memory_order_relaxed);

		if ((other & ~HL_SHM_DOUBT) == pid)
			break;
		if (!other && free == HL_SHM_PROCESSES)
			free = i;
		/* Nobody is behind two free places: they are given out from the front. */
		if (!other && i > free + 64)
			break;
	}
	if (i < HL_SHM_PROCESSES) {
		uint32_t other = atomic_load_explicit(&seg->processes[i], memory_order_relaxed);

		/* SHM_DOUBT */
		while ((other & ~HL_SHM_DOUBT) == pid)
			if (atomic_compare_exchange_weak_explicit(&seg->processes[i], &other, pid,
								  memory_order_acq_rel,
								  memory_order_relaxed))
				return;
	}
	for (i = free; i < HL_SHM_PROCESSES; i++) {
		uint32_t nobody = 0;

		if (atomic_compare_exchange_strong_explicit(&seg->processes[i], &nobody, pid,
							    memory_order_acq_rel,
							    memory_order_relaxed))
			return;
	}
	atomic_store_explicit(&seg->crowded, 1, memory_order_release);
}

/* ---- Counting ---- */

struct search {
	struct hl_shm_file file;
	int n;
};

static int count_one(const struct hl_map *map, void *arg)
{
	struct search *search = arg;

	if (map->file.ino == search->file.ino && map->file.dev == search->file.dev &&
	    map->offset >= HL_SHM_DATA)
		search->n++;
	return 0;
}

/* How often a process has it mapped; one if that cannot be told of a process that lives. */
static int count_of(uint32_t pid, const struct hl_shm_file *file)
{
	struct search search = { .file = *file };
	int err = hl_maps_each((int32_t)pid, count_one, &search);

	if (!err)
		return search.n;
	return err == -ENOENT || err == -ESRCH || !hl_ipc_alive((int32_t)pid, 0) ? 0 : 1;
}

static int count_listed(struct hl_shm_seg *seg, const struct hl_shm_file *file, bool writable)
{
	int n = 0;
	unsigned i;

	for (i = 0; i < HL_SHM_PROCESSES; i++) {
		uint32_t place = atomic_load_explicit(&seg->processes[i], memory_order_acquire);
		uint32_t pid = place & ~HL_SHM_DOUBT;
		int of_one;

		if (!pid)
			continue;
		of_one = count_of(pid, file);
		n += of_one;
		if (of_one || !writable)
			continue;
		/* SHM_DOUBT */
		place = pid;
		if (!atomic_compare_exchange_strong_explicit(
			    &seg->processes[i], &place, pid | HL_SHM_DOUBT, memory_order_acq_rel,
			    memory_order_relaxed) &&
		    place != (pid | HL_SHM_DOUBT))
			continue;
		of_one = count_of(pid, file);
		n += of_one;
		place = pid | HL_SHM_DOUBT;
		atomic_compare_exchange_strong_explicit(&seg->processes[i], &place,
							of_one ? pid : 0, memory_order_acq_rel,
							memory_order_relaxed);
	}
	return n;
}

/* Directory entries of the kernel. */
struct entry {
	uint64_t ino;
	int64_t next;
	uint16_t bytes;
	uint8_t type;
	char name[];
};

/* All processes there are. */
static int count_everybody(const struct hl_shm_file *file)
{
	int dir = hl_sys_openat(AT_FDCWD, "/proc", O_RDONLY | O_DIRECTORY, 0), n = 0;
	_Alignas(struct entry) char buffer[4096];
	long got, at;

	if (dir < 0)
		return dir;
	while ((got = hl_sys_getdents(dir, buffer, sizeof(buffer))) > 0) {
		for (at = 0; at < got;) {
			struct entry *entry = (struct entry *)(buffer + at);
			const char *name = entry->name;
			uint32_t pid = 0;

			for (; *name >= '0' && *name <= '9'; name++)
				pid = pid * 10 + (uint32_t)(*name - '0');
			if (pid && !*name)
				n += count_of(pid, file);
			at += entry->bytes;
		}
	}
	hl_sys_close(dir);
	return n;
}

int hl_shm_count(struct hl_ipc_object *object)
{
	struct hl_shm_seg *seg = hl_shm_seg(object);
	struct hl_shm_file file;
	int err = hl_shm_file_of(object, &file);

	if (err)
		return err;
	if (atomic_load_explicit(&seg->crowded, memory_order_acquire))
		return count_everybody(&file);
	return count_listed(seg, &file, object->writable);
}

bool hl_shm_end(struct hl_ipc_object *object)
{
	uint32_t mode = atomic_load_explicit(&object->perm->mode, memory_order_relaxed);

	if (!(mode & SHM_DEST) || hl_shm_count(object))
		return false;
	if (!hl_ipc_remove(object))
		hl_ipc_retire(object);
	return true;
}
