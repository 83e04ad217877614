/* SPDX-License-Identifier: MIT */
/*
 * A fence in every thread of the process, paid for by the one that asks for it.
 *
 * membarrier, private expedited, registered once. Where it is absent or refused,
 * hl_barrier_usable() says no, and every sender fences by itself.
 *
 * Should it fail later all the same (a filter of system calls that came since, no memory),
 * two things together stand in for it. A page that was written and goes away makes the
 * kernel interrupt every processor that runs a thread of the process, which is a fence
 * there - but not where the hardware tells the others of it (arm64, newer x86). So a
 * millisecond passes as well: a store buffer empties within microseconds, and a thread that
 * loses its processor leaves nothing in it.
 */
#include "internal.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool usable;

static long membarrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0);
}

static void ask(void)
{
	usable = !membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) &&
		 !membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

bool hl_barrier_usable(void)
{
	pthread_once(&once, ask);
	return usable;
}

static void without_membarrier(void)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	struct timespec left = { .tv_nsec = 1000000 };
	char *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page != MAP_FAILED) {
		*(volatile char *)page = 1;
		munmap(page, size);
	}
	while (nanosleep(&left, &left))
		;
}

void hl_barrier_all(void)
{
	int saved = errno;

	hl_fence();
	if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED))
		without_membarrier();
	errno = saved;
}
