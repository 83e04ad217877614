/* SPDX-License-Identifier: MIT */
#include "user.h"

#include "sys.h"

#include <errno.h>

_Thread_local uintptr_t hl_user_read_pages[HL_USER_REMEMBERED];
_Thread_local uintptr_t hl_user_write_pages[HL_USER_REMEMBERED];

/* Operation 0 on the second word (a word that is set to itself or'ed with nothing). */
#define OR_NOTHING ((FUTEX_OP_OR << 28) | (FUTEX_OP_CMP_EQ << 24))

/* A read without effect: the kernel copies the set in before it looks at what to do with it. Not
 * at the page's beginning, which for the first page is NULL: no set. */
static int ask_read(uintptr_t page)
{
	return HL_SYS(SYS_rt_sigprocmask, ~0, page + 8, NULL, 8, 0, 0) == -EFAULT ? -EFAULT : 0;
}

/* A write without effect, atomic for whoever else writes the word. */
static int ask_write(uintptr_t page)
{
	uint32_t nothing = 0;

	return HL_SYS(SYS_futex, &nothing, FUTEX_WAKE_OP_PRIVATE, 0, 0, page, OR_NOTHING) == -EFAULT
		       ? -EFAULT
		       : 0;
}

static int ask(uintptr_t *pages, uintptr_t at, size_t bytes, int (*one)(uintptr_t))
{
	uintptr_t page, last;

	if (!bytes)
		return 0;
	if (at + bytes - 1 < at)
		return -EFAULT;
	last = (at + bytes - 1) / HL_USER_PAGE;
	for (page = at / HL_USER_PAGE; page <= last; page++) {
		if (pages[page % HL_USER_REMEMBERED] == page + 1)
			continue;
		if (one(page * HL_USER_PAGE))
			return -EFAULT;
		pages[page % HL_USER_REMEMBERED] = page + 1;
	}
	return 0;
}

int hl_user_ask_read(const void *from, size_t bytes)
{
	return ask(hl_user_read_pages, (uintptr_t)from, bytes, ask_read);
}

int hl_user_ask_write(void *to, size_t bytes)
{
	return ask(hl_user_write_pages, (uintptr_t)to, bytes, ask_write);
}
