/* SPDX-License-Identifier: MIT */
/*
 * A fence in every thread of the process, paid for by the one that asks for it.
 *
 * membarrier, private expedited, registered once. Where it is absent or refused,
 * hl_barrier_usable() says no, and every sender fences by itself. Should it fail
 * later all the same, a page whose protection changes makes the kernel interrupt
 * every processor that runs a thread of the process, which is a fence there.
 */
#include "internal.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool usable;
static void *page;		/* for the fallback */
static pthread_mutex_t page_lock = PTHREAD_MUTEX_INITIALIZER;

static long membarrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0);
}

static void ask(void)
{
	usable = !membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) &&
		 !membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
	if (!usable)
		return;
	page = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		usable = false;
}

bool hl_barrier_usable(void)
{
	pthread_once(&once, ask);
	return usable;
}

/* A dirty page that loses its permissions: every translation of it must go. */
static void flush_page(void)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);

	pthread_mutex_lock(&page_lock);
	mprotect(page, size, PROT_READ | PROT_WRITE);
	*(volatile char *)page = 1;
	mprotect(page, size, PROT_NONE);
	pthread_mutex_unlock(&page_lock);
}

void hl_barrier_all(void)
{
	hl_fence();
	if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED))
		flush_page();
}
