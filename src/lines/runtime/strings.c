// SPDX-License-Identifier: MIT
/*
 * Functions of libc that read and write the program's memory: libc has no hooks, so its accesses
 * are counted here, a line at a time.
 */
#include "runtime.h"
#include "real.h"

#include <string.h>
#include <strings.h>
#include <wchar.h>

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

static inline void touch(const void *at, size_t size, unsigned flags, uintptr_t pc)
{
	uintptr_t address = (uintptr_t)at;

	while (size) {
		size_t n = LINE_BYTES - (address & LINE_MASK);

		n = n < size ? n : size;
		hl_access(address, n, flags, pc);
		address += n;
		size -= n;
	}
}

#define READS(at, size) touch(at, size, 0, CALLER)
#define WRITES(at, size) touch(at, size, HL_RAW_WRITE, CALLER)

HOOK void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
	READS(from, n);
	WRITES(to, n);
	return REAL(memcpy)(to, from, n);
}

HOOK void *memmove(void *to, const void *from, size_t n)
{
	READS(from, n);
	WRITES(to, n);
	return REAL(memmove)(to, from, n);
}

HOOK void *mempcpy(void *restrict to, const void *restrict from, size_t n)
{
	READS(from, n);
	WRITES(to, n);
	return REAL(mempcpy)(to, from, n);
}

HOOK void *memset(void *to, int byte, size_t n)
{
	WRITES(to, n);
	return REAL(memset)(to, byte, n);
}

HOOK void bzero(void *to, size_t n)
{
	WRITES(to, n);
	REAL(memset)(to, 0, n);
}

HOOK int memcmp(const void *a, const void *b, size_t n)
{
	READS(a, n);
	READS(b, n);
	return REAL(memcmp)(a, b, n);
}

HOOK size_t strlen(const char *at)
{
	size_t n = REAL(strlen)(at);

	READS(at, n + 1);
	return n;
}

HOOK size_t strnlen(const char *at, size_t most)
{
	size_t n = REAL(strnlen)(at, most);

	READS(at, n < most ? n + 1 : n);
	return n;
}

/* Bytes of two strings up to where they differ. */
static size_t alike(const char *a, const char *b, size_t most)
{
	size_t n = 0;

	while (n < most && a[n] == b[n] && a[n])
		n++;
	return n < most ? n + 1 : n;
}

HOOK int strcmp(const char *a, const char *b)
{
	size_t n = alike(a, b, SIZE_MAX);

	READS(a, n);
	READS(b, n);
	return REAL(strcmp)(a, b);
}

HOOK int strncmp(const char *a, const char *b, size_t most)
{
	size_t n = alike(a, b, most);

	READS(a, n);
	READS(b, n);
	return REAL(strncmp)(a, b, most);
}

HOOK char *strcpy(char *restrict to, const char *restrict from)
{
	size_t n = REAL(strlen)(from) + 1;

	READS(from, n);
	WRITES(to, n);
	return REAL(strcpy)(to, from);
}

HOOK char *stpcpy(char *restrict to, const char *restrict from)
{
	size_t n = REAL(strlen)(from) + 1;

	READS(from, n);
	WRITES(to, n);
	return REAL(stpcpy)(to, from);
}

HOOK char *strncpy(char *restrict to, const char *restrict from, size_t n)
{
	size_t used = REAL(strnlen)(from, n);

	READS(from, used < n ? used + 1 : n);
	WRITES(to, n);
	return REAL(strncpy)(to, from, n);
}

HOOK char *strcat(char *restrict to, const char *restrict from)
{
	size_t there = REAL(strlen)(to), n = REAL(strlen)(from) + 1;

	READS(to, there + 1);
	READS(from, n);
	WRITES(to + there, n);
	return REAL(strcat)(to, from);
}

HOOK char *strncat(char *restrict to, const char *restrict from, size_t most)
{
	size_t there = REAL(strlen)(to), n = REAL(strnlen)(from, most);

	READS(to, there + 1);
	READS(from, n < most ? n + 1 : n);
	WRITES(to + there, n + 1);
	return REAL(strncat)(to, from, most);
}

/* What -D_FORTIFY_SOURCE makes of them. */
HOOK void *__memcpy_chk(void *to, const void *from, size_t n, size_t room);
HOOK void *__memmove_chk(void *to, const void *from, size_t n, size_t room);
HOOK void *__memset_chk(void *to, int byte, size_t n, size_t room);

HOOK void *__memcpy_chk(void *to, const void *from, size_t n, size_t room)
{
	READS(from, n);
	WRITES(to, n);
	return REAL(__memcpy_chk)(to, from, n, room);
}

HOOK void *__memmove_chk(void *to, const void *from, size_t n, size_t room)
{
	READS(from, n);
	WRITES(to, n);
	return REAL(__memmove_chk)(to, from, n, room);
}

HOOK void *__memset_chk(void *to, int byte, size_t n, size_t room)
{
	WRITES(to, n);
	return REAL(__memset_chk)(to, byte, n, room);
}

/* What newer compilers call instead. */
HOOK void *__tsan_memcpy(void *to, const void *from, size_t n)
{
	READS(from, n);
	WRITES(to, n);
	return REAL(memcpy)(to, from, n);
}

HOOK void *__tsan_memmove(void *to, const void *from, size_t n)
{
	READS(from, n);
	WRITES(to, n);
	return REAL(memmove)(to, from, n);
}

HOOK void *__tsan_memset(void *to, int byte, size_t n)
{
	WRITES(to, n);
	return REAL(memset)(to, byte, n);
}
