/* SPDX-License-Identifier: MIT */
/* Which types of objects there are. */
#include "msg.h"
#include "sem.h"
#include "shm.h"

const struct hl_ipc_kind *const hl_ipc_kinds[HL_IPC_TYPES] = {
	[HL_IPC_SEM] = &hl_sem_kind,
	[HL_IPC_MSG] = &hl_msg_kind,
	[HL_IPC_SHM] = &hl_shm_kind,
};
