// SPDX-License-Identifier: MIT
/*
 * Our System V functions. Compiled, with the library's source, under names of its own, so that the
 * kernel's can be called from the same program.
 */
#include "bench/ipc.h"

const struct ipc_calls HL_BENCH_IPC = {
	.semget = semget,
	.semop = semop,
	.semtimedop = semtimedop,
	.semctl = semctl,
	.msgget = msgget,
	.msgsnd = msgsnd,
	.msgrcv = msgrcv,
	.msgctl = msgctl,
};
