// SPDX-License-Identifier: MIT
/*
 * Runs a program on a system without System V IPC: deny-sysvipc enosys|sigsys PROGRAM...
 *
 * The twelve system calls fail with ENOSYS, as in a kernel without them, or end the program by
 * SIGSYS, as Android does. Both hold for all that the program starts. Exit status 77: system
 * calls cannot be filtered here.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define USAGE 2
#define SKIP 77
#define NOT_RUN 127

static const int denied[] = {
	SYS_semget,
	SYS_semop,
	SYS_semctl,
	SYS_msgget,
	SYS_msgsnd,
	SYS_msgrcv,
	SYS_msgctl,
	SYS_shmget,
	SYS_shmat,
	SYS_shmdt,
	SYS_shmctl,
#ifdef SYS_semtimedop
	SYS_semtimedop,
#endif
#ifdef SYS_semtimedop_time64
	SYS_semtimedop_time64,
#endif
};

#define N_DENIED (sizeof(denied) / sizeof(denied[0]))

static int deny(unsigned action)
{
	/* The number, a comparison each, "allowed", "denied". */
	struct sock_filter filter[N_DENIED + 3];
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	filter[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < N_DENIED; i++)
		filter[i + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
							     (unsigned)denied[i], N_DENIED - i, 0);
	filter[N_DENIED + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	filter[N_DENIED + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action);
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(int argc, char **argv)
{
	unsigned action;

	if (argc < 3 || (strcmp(argv[1], "enosys") && strcmp(argv[1], "sigsys"))) {
		fprintf(stderr, "usage: deny-sysvipc enosys|sigsys PROGRAM [ARGUMENT...]\n");
		return USAGE;
	}
	action = strcmp(argv[1], "sigsys") ? SECCOMP_RET_ERRNO | ENOSYS : SECCOMP_RET_TRAP;
	if (deny(action)) {
		fprintf(stderr, "deny-sysvipc: system calls cannot be filtered: %s\n",
			strerror(errno));
		return SKIP;
	}
	execvp(argv[2], argv + 2);
	fprintf(stderr, "deny-sysvipc: %s: %s\n", argv[2], strerror(errno));
	return NOT_RUN;
}
