/* SPDX-License-Identifier: MIT */
/*
 * The same tests on a system that refuses membarrier: as the setup of a group of tests. It
 * does nothing, but in programs that are compiled with
 *
 *	-DREFUSE_MEMBARRIER=ENOSYS	there is none: refused from the beginning
 *	-DREFUSE_MEMBARRIER_LATER=EINVAL	it fails after a CPU has been online
 *
 * Skips all tests where system calls cannot be filtered.
 */
#ifndef REFUSE_H
#define REFUSE_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <hotline/cpu.h>

#include "filter.h"

static inline int refuse_membarrier(void **state)
{
	unsigned error = 0;

	(void)state;
#if defined(REFUSE_MEMBARRIER)
	error = REFUSE_MEMBARRIER;
#elif defined(REFUSE_MEMBARRIER_LATER)
	error = REFUSE_MEMBARRIER_LATER;
	if (hl_cpu_online(0) < 0 || hl_cpu_offline())
		return -1;
#endif
	if (error && filter_call(SYS_membarrier, error)) {
		printf("1..0 # SKIP system calls cannot be filtered: errno %d\n", errno);
		exit(0);
	}
	return 0;
}

#endif
