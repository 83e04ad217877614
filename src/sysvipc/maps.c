/* SPDX-License-Identifier: MIT */
/* /proc/PID/maps, read line by line. */
#include "shm.h"

#include "sys.h"

#define BUFFER 8192

/* "/proc/", a number, "/maps"; or of this process. */
static void path_of(char path[32], int32_t pid)
{
	const char *self = "self", *end = "/maps";
	char digits[12];
	unsigned n = 0;

	__builtin_memcpy(path, "/proc/", 6);
	path += 6;
	for (; pid > 0; pid /= 10)
		digits[n++] = (char)('0' + pid % 10);
	if (!n)
		while (*self)
			*path++ = *self++;
	while (n)
		*path++ = digits[--n];
	while ((*path++ = *end++))
		;
}

/* A number up to the character behind it. */
static const char *number(const char *at, unsigned base, uint64_t *to)
{
	for (*to = 0;; at++) {
		unsigned digit = *at >= '0' && *at <= '9'   ? (unsigned)(*at - '0')
				 : *at >= 'a' && *at <= 'f' ? (unsigned)(*at - 'a' + 10)
							    : 99;

		if (digit >= base)
			return at;
		*to = *to * base + digit;
	}
}

/* start-end perms offset major:minor inode path */
static void parse(const char *line, struct hl_map *map)
{
	uint64_t start, end, major, minor;

	line = number(line, 16, &start);
	line = number(line + (*line == '-'), 16, &end);
	while (*line == ' ')
		line++;
	while (*line && *line != ' ')
		line++;
	line = number(line + (*line == ' '), 16, &map->offset);
	line = number(line + (*line == ' '), 16, &major);
	line = number(line + (*line == ':'), 16, &minor);
	number(line + (*line == ' '), 10, &map->file.ino);
	map->file.dev = major << 32 | minor;
	map->start = start;
	map->end = end;
}

struct lines {
	char text[BUFFER + 1];
	size_t n;
	bool skip; /* the rest of a line that was too long */
};

/* Each whole line in the buffer; what is left is moved to its beginning. */
static int each_line(struct lines *lines, int (*each)(const struct hl_map *, void *), void *arg)
{
	size_t at = 0, i;

	for (i = 0; i < lines->n; i++) {
		struct hl_map map;
		int rc;

		if (lines->text[i] != '\n')
			continue;
		lines->text[i] = '\0';
		if (!lines->skip) {
			parse(lines->text + at, &map);
			rc = each(&map, arg);
			if (rc)
				return rc;
		}
		lines->skip = false;
		at = i + 1;
	}
	/* A line that fills the buffer: all that is wanted is at its beginning. */
	if (!at && lines->n == BUFFER) {
		struct hl_map map;

		lines->text[BUFFER] = '\0';
		if (!lines->skip) {
			parse(lines->text, &map);
			lines->n = 0;
			lines->skip = true;
			return each(&map, arg);
		}
		at = BUFFER;
	}
	lines->n -= at;
	__builtin_memmove(lines->text, lines->text + at, lines->n);
	return 0;
}

int hl_maps_each(int32_t pid, int (*each)(const struct hl_map *map, void *arg), void *arg)
{
	struct lines lines;
	char path[32];
	long got;
	int fd, rc = 0;

	lines.n = 0;
	lines.skip = false;
	path_of(path, pid);
	fd = hl_sys_openat(AT_FDCWD, path, O_RDONLY, 0);
	if (fd < 0)
		return fd;
	while (!rc && (got = hl_sys_read(fd, lines.text + lines.n, BUFFER - lines.n)) != 0) {
		if (got == -EINTR)
			continue;
		if (got < 0) {
			rc = (int)got;
			break;
		}
		lines.n += (size_t)got;
		rc = each_line(&lines, each, arg);
	}
	hl_sys_close(fd);
	return rc;
}
