// SPDX-License-Identifier: MIT
#include "lines/raw_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* More than the runtime can write: 4096 threads at a time with two full tables would be less. */
#define MAX_BYTES ((uint64_t)4 << 30)

__attribute__((format(printf, 3, 4))) static int fail(struct hl_error *err, int rc,
						      const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(err->text, sizeof(err->text), format, args);
	va_end(args);
	return rc;
}

static int read_all(struct hl_raw_file *file, const char *path, uint64_t *size,
		    struct hl_error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc = 0;
	uint64_t done = 0;
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st))
		rc = fail(err, -errno, "%s: %s", path, strerror(errno));
	else if (!S_ISREG(st.st_mode))
		rc = fail(err, -ENOEXEC, "%s: no regular file", path);
	else if ((uint64_t)st.st_size > MAX_BYTES)
		rc = fail(err, -EFBIG, "%s: larger than any file of hotline c2c", path);
	else if (!(file->bytes = malloc(st.st_size + 8)))
		rc = fail(err, -ENOMEM, "out of memory");
	while (!rc && done < (uint64_t)st.st_size) {
		n = read(fd, (char *)file->bytes + done, st.st_size - done);
		if (n < 0 && errno != EINTR)
			rc = fail(err, -errno, "%s: %s", path, strerror(errno));
		else if (!n)
			break;
		else if (n > 0)
			done += n;
	}
	if (fd >= 0)
		close(fd);
	*size = done;
	return rc;
}

static int check_header(struct hl_raw_file *file, const char *path, uint64_t size,
			struct hl_error *err)
{
	if (size < sizeof(file->header))
		return fail(err, -ENOEXEC, "%s: no file of hotline c2c: too short", path);
	memcpy(&file->header, file->bytes, sizeof(file->header));
	if (memcmp(file->header.magic, HL_RAW_MAGIC, sizeof(file->header.magic)))
		return fail(err, -ENOEXEC, "%s: no file of hotline c2c", path);
	if (file->header.byte_order != 0x01020304)
		return fail(err, -ENOEXEC,
			    "%s: written on a machine with another byte order; "
			    "report it there",
			    path);
	if (file->header.version != HL_RAW_VERSION)
		return fail(err, -ENOEXEC,
			    "%s: of version %u, known is %u: the program was linked "
			    "with another hotline; build it again",
			    path, file->header.version, HL_RAW_VERSION);
	if (file->header.line != 64 && file->header.line != 128)
		return fail(err, -EBADMSG, "%s: damaged: lines of %u bytes", path,
			    file->header.line);
	return 0;
}

/* ---- Pieces. ---- */

/* Room for one more in an array, which doubles at each power of two; NULL: no memory. */
static void *grown(void *array, uint32_t n, size_t size)
{
	return n & (n - 1) ? array : realloc(array, (n ? 2ul * n : 1ul) * size);
}

static int damaged(struct hl_error *err, const char *path, const char *what)
{
	return fail(err, -EBADMSG, "%s: damaged: %s", path, what);
}

static int take_module(struct hl_raw_file *file, const char *path, const char *bytes, uint64_t n,
		       struct hl_error *err)
{
	struct hl_raw_module_read *module, *more, read;

	if (n < sizeof(read.raw) + 1)
		return damaged(err, path, "a module is cut off");
	memcpy(&read.raw, bytes, sizeof(read.raw));
	read.path = bytes + sizeof(read.raw);
	if (read.raw.path_bytes >= n - sizeof(read.raw) || read.path[read.raw.path_bytes] ||
	    read.raw.start > read.raw.end)
		return damaged(err, path, "a module's name or place");
	/* Each dump names them all again. */
	for (uint32_t i = 0; i < file->n_modules; i++) {
		if (file->module[i].raw.start == read.raw.start &&
		    !strcmp(file->module[i].path, read.path))
			return 0;
	}
	more = grown(file->module, file->n_modules, sizeof(*more));
	if (!more)
		return fail(err, -ENOMEM, "out of memory");
	file->module = more;
	module = &more[file->n_modules++];
	*module = read;
	return 0;
}

static int take_stack(struct hl_raw_file *file, const char *path, const char *bytes, uint64_t n,
		      struct hl_error *err)
{
	struct hl_raw_stack_read *stack, *more;
	struct hl_raw_stack raw;

	if (n < sizeof(raw))
		return damaged(err, path, "a stack is cut off");
	memcpy(&raw, bytes, sizeof(raw));
	if (raw.n != (n - sizeof(raw)) / sizeof(uint64_t))
		return damaged(err, path, "a stack's depth");
	more = grown(file->stack, file->n_stacks, sizeof(*more));
	if (!more)
		return fail(err, -ENOMEM, "out of memory");
	file->stack = more;
	stack = &more[file->n_stacks++];
	*stack = (struct hl_raw_stack_read){ raw.id, raw.n,
					     (const uint64_t *)(bytes + sizeof(raw)) };
	return 0;
}

/* The thread of a piece: the last one that was begun. */
static struct hl_raw_thread_read *last_thread(struct hl_raw_file *file, uint32_t id)
{
	struct hl_raw_thread_read *last = file->n_threads ? &file->thread[file->n_threads - 1]
							  : NULL;

	return last && last->raw.id == id ? last : NULL;
}

static int take_thread(struct hl_raw_file *file, const char *path, const char *bytes, uint64_t n,
		       struct hl_error *err)
{
	struct hl_raw_thread_read *thread, *more;

	if (n != sizeof(thread->raw))
		return damaged(err, path, "a thread is cut off");
	more = grown(file->thread, file->n_threads, sizeof(*more));
	if (!more)
		return fail(err, -ENOMEM, "out of memory");
	file->thread = more;
	thread = &more[file->n_threads++];
	*thread = (struct hl_raw_thread_read){ 0 };
	memcpy(&thread->raw, bytes, sizeof(thread->raw));
	return 0;
}

static int take_piece(struct hl_raw_file *file, const char *path, const struct hl_raw_piece *piece,
		      const char *bytes, struct hl_error *err)
{
	struct hl_raw_thread_read *thread = last_thread(file, piece->thread);
	uint64_t n = piece->bytes;

	switch (piece->kind) {
	case HL_RAW_MODULE:
		return take_module(file, path, bytes, n, err);
	case HL_RAW_STACK:
		return take_stack(file, path, bytes, n, err);
	case HL_RAW_THREAD:
		return take_thread(file, path, bytes, n, err);
	case HL_RAW_ACCESSES:
		if (!thread || n % sizeof(struct hl_raw_access))
			return damaged(err, path, "accesses of no thread, or cut off");
		thread->access = (const void *)bytes;
		thread->n_accesses = n / sizeof(struct hl_raw_access);
		return 0;
	case HL_RAW_HANDOVERS:
		if (!thread || n % sizeof(struct hl_raw_handover))
			return damaged(err, path, "handovers of no thread, or cut off");
		thread->handover = (const void *)bytes;
		thread->n_handovers = n / sizeof(struct hl_raw_handover);
		return 0;
	case HL_RAW_LINES:
		if (n % sizeof(struct hl_raw_line))
			return damaged(err, path, "lines that are cut off");
		file->line = (const struct hl_raw_line *)bytes - 1;
		file->n_lines = n / sizeof(struct hl_raw_line) + 1;
		return 0;
	case HL_RAW_END:
		if (n != sizeof(file->end))
			return damaged(err, path, "its end");
		memcpy(&file->end, bytes, n);
		file->whole = true;
		return 0;
	default:
		return 0;
	}
}

/* ---- Putting in order what may have been written more than once. ---- */

static int compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int by_start(const void *a, const void *b)
{
	const struct hl_raw_module_read *x = a, *y = b;

	return compare(x->raw.start, y->raw.start);
}

static int by_stack_id(const void *a, const void *b)
{
	const struct hl_raw_stack_read *x = a, *y = b;

	return compare(x->id, y->id);
}

/* The one that was written last ahead: it has been counting the longest. */
static int by_thread_id(const void *a, const void *b)
{
	const struct hl_raw_thread_read *x = a, *y = b;
	int by = compare(x->raw.id, y->raw.id);

	return by ? by : compare(y->raw.accesses, x->raw.accesses);
}

static void settle(struct hl_raw_file *file)
{
	uint32_t n = 0;

	if (file->n_modules)
		qsort(file->module, file->n_modules, sizeof(*file->module), by_start);
	if (file->n_stacks)
		qsort(file->stack, file->n_stacks, sizeof(*file->stack), by_stack_id);
	if (file->n_threads)
		qsort(file->thread, file->n_threads, sizeof(*file->thread), by_thread_id);
	for (uint32_t i = 0; i < file->n_threads; i++) {
		if (!i || file->thread[i].raw.id != file->thread[n - 1].raw.id)
			file->thread[n++] = file->thread[i];
	}
	file->n_threads = n;
}

/* Whether the access lies in a line that is there. */
static bool access_holds(const struct hl_raw_file *file, const struct hl_raw_access *access)
{
	return access->size && access->offset + access->size <= (int)file->header.line &&
	       access->transfers <= access->accesses && access->untrue <= access->transfers;
}

static bool parts_hold(const struct hl_raw_line *line)
{
	if (line->n_parts > HL_RAW_PARTS)
		return false;
	for (uint32_t i = 0; i < line->n_parts; i++) {
		if (line->part[i].place > HL_RAW_TLS ||
		    (line->part[i].place != HL_RAW_TLS &&
		     line->part[i].start + line->part[i].size < line->part[i].start))
			return false;
	}
	return true;
}

static int check(struct hl_raw_file *file, const char *path, struct hl_error *err)
{
	for (uint32_t i = 1; i < file->n_lines; i++) {
		if (!parts_hold(&file->line[i]))
			return damaged(err, path, "what is in a line");
	}
	for (uint32_t t = 0; t < file->n_threads; t++) {
		for (uint32_t i = 0; i < file->thread[t].n_accesses; i++) {
			if (!access_holds(file, &file->thread[t].access[i]))
				return damaged(err, path, "an access");
		}
		for (uint32_t i = 0; i < file->thread[t].n_handovers; i++) {
			if (!file->thread[t].handover[i].size)
				return damaged(err, path, "a handover");
		}
	}
	return 0;
}

int hl_raw_open(struct hl_raw_file *file, const char *path, struct hl_error *err)
{
	uint64_t size, at = sizeof(file->header);
	int rc;

	*file = (struct hl_raw_file){ 0 };
	err->text[0] = '\0';
	rc = read_all(file, path, &size, err);
	if (!rc)
		rc = check_header(file, path, size, err);
	/* A piece that is cut off at the end was being written when the process was killed. */
	while (!rc && size - at >= sizeof(struct hl_raw_piece)) {
		struct hl_raw_piece piece;

		memcpy(&piece, (char *)file->bytes + at, sizeof(piece));
		at += sizeof(piece);
		if (piece.bytes % 8)
			rc = damaged(err, path, "a piece of odd length");
		if (rc || piece.bytes > size - at)
			break;
		rc = take_piece(file, path, &piece, (char *)file->bytes + at, err);
		at += piece.bytes;
	}
	if (!rc) {
		settle(file);
		rc = check(file, path, err);
	}
	if (rc)
		hl_raw_close(file);
	return rc;
}

void hl_raw_close(struct hl_raw_file *file)
{
	free(file->module);
	free(file->stack);
	free(file->thread);
	free(file->bytes);
	*file = (struct hl_raw_file){ 0 };
}

const struct hl_raw_stack_read *hl_raw_stack(const struct hl_raw_file *file, uint32_t id)
{
	const struct hl_raw_stack_read key = { .id = id };

	if (!file->n_stacks)
		return NULL;
	return bsearch(&key, file->stack, file->n_stacks, sizeof(key), by_stack_id);
}

const struct hl_raw_thread_read *hl_raw_thread(const struct hl_raw_file *file, uint32_t id)
{
	uint32_t low = 0, high = file->n_threads;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (file->thread[middle].raw.id == id)
			return &file->thread[middle];
		if (file->thread[middle].raw.id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}
