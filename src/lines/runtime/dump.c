// SPDX-License-Identifier: MIT
/*
 * The file: written with system calls alone, since it may be a signal that ends the program.
 *
 * HOTLINE_C2C names the directory; without it nothing is counted.  HOTLINE_C2C_LINE is 128 where lines
 * are of so many bytes.  The file's descriptor is kept
 * out of the program's way and looked at before it is written, since programs close what they do
 * not know.
 */
#include "runtime.h"
#include "real.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t dump_lock = PTHREAD_MUTEX_INITIALIZER;
static char path[4096];
static size_t directory_length;
static int fd = -1;
static dev_t device;
static ino_t inode;
static char buffer[1u << 15];
static size_t used;

void hl_dump_lock(void)
{
	pthread_mutex_lock(&dump_lock);
}

void hl_dump_unlock(void)
{
	pthread_mutex_unlock(&dump_lock);
}

/* ---- Bytes. ---- */

static void flush(void)
{
	size_t done = 0;

	while (done < used) {
		ssize_t n = write(fd, buffer + done, used - done);

		if (n < 0 && errno != EINTR)
			break;
		if (n > 0)
			done += n;
	}
	used = 0;
}

static void put(const void *bytes, size_t n)
{
	const char *from = bytes;

	while (n) {
		size_t room = sizeof(buffer) - used, part = n < room ? n : room;

		REAL(memcpy)(buffer + used, from, part);
		used += part;
		from += part;
		n -= part;
		if (used == sizeof(buffer))
			flush();
	}
}

static void put_piece(enum hl_raw_kind kind, uint32_t thread, uint64_t bytes)
{
	struct hl_raw_piece piece = { .kind = kind, .thread = thread, .bytes = bytes };

	put(&piece, sizeof(piece));
}

/* ---- The file. ---- */

/* A number as text at the end of the path. */
static size_t append_number(size_t at, unsigned long number)
{
	char digits[24];
	unsigned n = 0;

	do
		digits[n++] = '0' + number % 10;
	while (number /= 10);
	while (n)
		path[at++] = digits[--n];
	path[at] = '\0';
	return at;
}

static void keep(int opened)
{
	struct stat st;
	int high = fcntl(opened, F_DUPFD_CLOEXEC, 200);

	if (high >= 0) {
		close(opened);
		opened = high;
	}
	fd = opened;
	if (!fstat(fd, &st)) {
		device = st.st_dev;
		inode = st.st_ino;
	}
}

/* A file that was not there: after exec the same process writes a second one. */
static bool create(void)
{
	struct hl_raw_header header = {
		.magic = HL_RAW_MAGIC,
		.version = HL_RAW_VERSION,
		.byte_order = 0x01020304,
		.pid = getpid(),
		.parent = getppid(),
		.line = LINE_BYTES,
	};
	int opened = -1;

	for (unsigned try = 1; opened < 0 && try < 1000; try++) {
		size_t at = append_number(directory_length, getpid());

		path[at++] = '.';
		append_number(at, try);
		opened = open(path, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (opened < 0 && errno != EEXIST)
			return false;
	}
	if (opened < 0)
		return false;
	keep(opened);
	put(&header, sizeof(header));
	flush();
	return true;
}

/* The program may have closed it, and opened another file in its place. */
static bool still_there(void)
{
	struct stat st;
	int opened;

	if (fd >= 0 && !fstat(fd, &st) && st.st_dev == device && st.st_ino == inode)
		return true;
	opened = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	if (opened < 0)
		return false;
	keep(opened);
	return true;
}

bool hl_dump_init(void)
{
	const char *directory = getenv("HOTLINE_C2C"), *line = getenv("HOTLINE_C2C_LINE");
	size_t n = directory ? strlen(directory) : 0;

	if (!n || *directory != '/' || n > sizeof(path) - 64)
		return false;
	memcpy(path, directory, n);
	path[n++] = '/';
	directory_length = n;
	if (line && !strcmp(line, "128"))
		hl_line = (struct geometry){ .shift = 7, .grain = 1, .mask = 127 };
	return create();
}

void hl_dump_forked(void)
{
	close(fd);
	fd = -1;
	used = 0;
	if (!create())
		hl_on = false;
}

/* ---- Pieces. ---- */

static bool has_hooks(const struct dl_phdr_info *info)
{
	const ElfW(Dyn) *dynamic = NULL;
	const ElfW(Sym) *symbols = NULL;
	const char *strings = NULL;
	size_t n = 0;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			dynamic = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	}
	/* The dynamic linker has put addresses where the file has offsets, but not for itself. */
	for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++) {
		if (dynamic->d_un.d_ptr < info->dlpi_addr)
			continue;
		if (dynamic->d_tag == DT_SYMTAB)
			symbols = (const void *)dynamic->d_un.d_ptr;
		else if (dynamic->d_tag == DT_STRTAB)
			strings = (const void *)dynamic->d_un.d_ptr;
	}
	/* The table of names follows that of symbols in what linkers write. */
	if (symbols && strings && (const char *)symbols < strings)
		n = (size_t)(strings - (const char *)symbols) / sizeof(*symbols);
	for (size_t i = 0; i < n; i++) {
		if (symbols[i].st_shndx == SHN_UNDEF &&
		    !strcmp(strings + symbols[i].st_name, "__tsan_func_entry"))
			return true;
	}
	return false;
}

static int put_module(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct hl_raw_module module = { .base = info->dlpi_addr, .start = UINTPTR_MAX };
	const char *name = info->dlpi_name;
	char self[4096];
	size_t room;

	(void)size;
	(void)arg;
	if (!*name) {
		ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

		self[n > 0 ? n : 0] = '\0';
		name = self;
	}
	for (int i = 0; i < info->dlpi_phnum; i++) {
		uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

		if (info->dlpi_phdr[i].p_type != PT_LOAD)
			continue;
		if (start < module.start)
			module.start = start;
		if (start + info->dlpi_phdr[i].p_memsz > module.end)
			module.end = start + info->dlpi_phdr[i].p_memsz;
	}
	module.path_bytes = strlen(name);
	module.flags = has_hooks(info) ? HL_RAW_HOOKED : 0;
	room = (module.path_bytes + 8) & ~(size_t)7;
	put_piece(HL_RAW_MODULE, 0, sizeof(module) + room);
	put(&module, sizeof(module));
	put(name, module.path_bytes);
	put("\0\0\0\0\0\0\0", room - module.path_bytes);
	return 0;
}

static void put_stack(uint32_t id, const uint64_t *pc, uint32_t n)
{
	struct hl_raw_stack stack = { .id = id, .n = n };

	put_piece(HL_RAW_STACK, 0, sizeof(stack) + n * sizeof(*pc));
	put(&stack, sizeof(stack));
	put(pc, n * sizeof(*pc));
}

/* Each slot that is used, for tables whose slots begin with what is never zero. */
static void put_table(enum hl_raw_kind kind, uint32_t thread, const struct table *table,
		      size_t slot)
{
	uint32_t n = 0;

	/* One that still runs may add some meanwhile: only as many as were counted. */
	for (uint32_t i = 0; i < table->size; i++)
		n += *(uint64_t *)((char *)table->slot + i * slot) != 0;
	if (!n)
		return;
	put_piece(kind, thread, n * slot);
	for (uint32_t i = 0; i < table->size && n; i++) {
		const char *at = (char *)table->slot + i * slot;

		if (*(uint64_t *)at) {
			put(at, slot);
			n--;
		}
	}
}

static void put_thread(struct thread *thread)
{
	struct hl_raw_thread raw = thread->raw;

	if (thread->self)
		raw.accesses += thread->self->accesses;
	put_piece(HL_RAW_THREAD, raw.id, sizeof(raw));
	put(&raw, sizeof(raw));
	put_table(HL_RAW_ACCESSES, raw.id, &thread->accesses, sizeof(struct hl_raw_access));
	put_table(HL_RAW_HANDOVERS, raw.id, &thread->handovers, sizeof(struct hl_raw_handover));
}

static void put_lines(void)
{
	uint32_t n = atomic_load_explicit(&hl_n_watched, memory_order_relaxed);

	put_piece(HL_RAW_LINES, 1, (uint64_t)(n - 1) * sizeof(struct hl_raw_line));
	for (uint32_t i = 1; i < n; i++) {
		struct hl_raw_line line = { .address = hl_watched[i].address,
					    .n_parts = hl_watched[i].n_parts };

		REAL(memcpy)(line.part, hl_watched[i].part, sizeof(line.part));
		put(&line, sizeof(line));
	}
}

/* ---- When. ---- */

/* Threads that are inside the runtime come out soon, and others do not come in. One that was hit
 * by the signal in there does not: it is not waited for long. */
static void wait_for_others(void)
{
	for (struct thread *thread = hl_threads; thread; thread = thread->next) {
		for (unsigned i = 0; i < 10000 && thread != hl_self.thread && thread->self &&
				     __atomic_load_n(&thread->self->busy, __ATOMIC_RELAXED);
		     i++)
			sched_yield();
	}
}

/* The same for locks: who holds one may have been stopped by the signal we are in. */
static bool lock_soon(pthread_mutex_t *lock)
{
	for (unsigned i = 0; i < 10000; i++) {
		if (!pthread_mutex_trylock(lock))
			return true;
		sched_yield();
	}
	return false;
}

void hl_dump_thread(struct thread *thread)
{
	hl_dump_lock();
	if (still_there()) {
		put_thread(thread);
		flush();
	}
	hl_dump_unlock();
}

void hl_dump_modules(void)
{
	if (!hl_on)
		return;
	hl_self.busy++;
	hl_dump_lock();
	if (still_there()) {
		dl_iterate_phdr(put_module, NULL);
		flush();
	}
	hl_dump_unlock();
	hl_self.busy--;
}

void hl_dump(int signal)
{
	struct hl_raw_end end = { .signal = signal };
	bool locked = lock_soon(&dump_lock), threads_locked;

	hl_self.busy++;
	hl_on = false;
	threads_locked = lock_soon(&hl_threads_lock);
	wait_for_others();
	if (still_there()) {
		dl_iterate_phdr(put_module, NULL);
		hl_stacks_write(put_stack);
		for (struct thread *thread = hl_threads; thread; thread = thread->next)
			put_thread(thread);
		put_lines();
		end.n_lines = atomic_load_explicit(&hl_n_watched, memory_order_relaxed) - 1;
		put_piece(HL_RAW_END, 0, sizeof(end));
		put(&end, sizeof(end));
		flush();
	}
	hl_on = true;
	if (threads_locked)
		pthread_mutex_unlock(&hl_threads_lock);
	hl_self.busy--;
	if (locked)
		hl_dump_unlock();
}
