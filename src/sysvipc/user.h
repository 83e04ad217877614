/* SPDX-License-Identifier: MIT */
/*
 * Is the caller's memory there? The kernel answers EFAULT for a bad pointer, and so does this
 * room, by asking the kernel about each page once: what is good is remembered a thread, so that
 * a call whose arguments lie where the last call's did asks nothing. A page that is taken away
 * between two calls is found out by a fault, as in any other function of the C library.
 */
#ifndef HL_SYSVIPC_USER_H
#define HL_SYSVIPC_USER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HL_USER_PAGE 4096u
#define HL_USER_REMEMBERED 16

/* Pages, by their number, plus one; a thread's own. */
extern _Thread_local uintptr_t hl_user_read_pages[HL_USER_REMEMBERED]
	__attribute__((tls_model("initial-exec")));
extern _Thread_local uintptr_t hl_user_write_pages[HL_USER_REMEMBERED]
	__attribute__((tls_model("initial-exec")));

/* 0 or -EFAULT: may all of @bytes at @from be read, or at @to be written? Asks the kernel. */
int hl_user_ask_read(const void *from, size_t bytes);
int hl_user_ask_write(void *to, size_t bytes);

static inline bool hl_user_known(const uintptr_t *pages, uintptr_t at, size_t bytes)
{
	uintptr_t page = at / HL_USER_PAGE;

	return at % HL_USER_PAGE + bytes <= HL_USER_PAGE &&
	       pages[page % HL_USER_REMEMBERED] == page + 1;
}

static inline int hl_user_readable(const void *from, size_t bytes)
{
	if (__builtin_expect(hl_user_known(hl_user_read_pages, (uintptr_t)from, bytes), 1))
		return 0;
	return hl_user_ask_read(from, bytes);
}

static inline int hl_user_writable(void *to, size_t bytes)
{
	if (__builtin_expect(hl_user_known(hl_user_write_pages, (uintptr_t)to, bytes), 1))
		return 0;
	return hl_user_ask_write(to, bytes);
}

#endif
