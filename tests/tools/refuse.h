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
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <hotline/cpu.h>

static inline int filter_membarrier(unsigned error)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

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
	if (error && filter_membarrier(error)) {
		printf("1..0 # SKIP system calls cannot be filtered: errno %d\n", errno);
		exit(0);
	}
	return 0;
}

#endif
