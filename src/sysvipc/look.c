/* SPDX-License-Identifier: MIT */
#include "look.h"

#include "msg.h"
#include "sem.h"
#include "shm.h"

static unsigned count_asleep(struct hl_ipc_sleepers *sleepers)
{
	unsigned n = 0;
	int slot;

	for (slot = hl_ipc_sleeper_next(sleepers, 0); slot < HL_IPC_SLEEPERS;
	     slot = hl_ipc_sleeper_next(sleepers, slot + 1))
		n += hl_ipc_sleeper_asleep(sleepers, slot);
	return n;
}

static void look_at_sem(struct hl_ipc_object *object, struct hl_ipc_look *to)
{
	struct semid_ds stat;
	int32_t last = 0;
	unsigned i;

	if (!hl_sem_ctl(object->id, 0, IPC_STAT, &stat))
		to->last[0] = stat.sem_otime;
	to->n = object->n;
	to->waiters = count_asleep(hl_sem_sleepers(object));
	for (i = 0; i < object->n && !to->user_lives; i++) {
		uint64_t word = atomic_load_explicit(&hl_sem_at(object, i)->word,
						     memory_order_relaxed);
		int32_t pid = (int32_t)(word >> HL_SEM_PID_SHIFT);

		to->user_lives = pid && pid != last && hl_ipc_alive(pid, 0);
		last = pid;
	}
}

static void look_at_msg(struct hl_ipc_object *object, struct hl_ipc_look *to)
{
	struct msqid_ds stat;

	to->waiters = count_asleep(&hl_msg_queue(object)->sleepers);
	if (hl_msg_ctl(object->id, IPC_STAT, &stat))
		return;
	to->n = stat.msg_qnum;
	to->bytes = stat.__msg_cbytes;
	to->last[0] = stat.msg_stime;
	to->last[1] = stat.msg_rtime;
	to->last_pid[0] = stat.msg_lspid;
	to->last_pid[1] = stat.msg_lrpid;
}

static void look_at_shm(struct hl_ipc_object *object, struct hl_ipc_look *to)
{
	struct shmid_ds stat;

	to->n = object->n;
	if (hl_shm_ctl(object->id, IPC_STAT, &stat))
		return;
	to->attached = (unsigned)stat.shm_nattch;
	to->last[0] = stat.shm_atime;
	to->last[1] = stat.shm_dtime;
	to->last_pid[0] = to->last_pid[1] = stat.shm_lpid;
}

int hl_ipc_look(enum hl_ipc_type type, int index, struct hl_ipc_look *to)
{
	struct hl_ipc_object *object;
	struct ipc_perm perm;
	unsigned i;
	int err = hl_ipc_find_index(type, index, &object);

	if (!err && type == HL_IPC_SHM && hl_shm_end(object))
		err = -EINVAL;
	if (err)
		return err;
	hl_ipc_stat(object, &perm);
	*to = (struct hl_ipc_look){
		.type = type,
		.id = object->id,
		.key = perm.__key,
		.uid = perm.uid,
		.gid = perm.gid,
		.cuid = perm.cuid,
		.cgid = perm.cgid,
		.mode = perm.mode,
		.creator = object->perm->cpid,
		.creator_lives = hl_ipc_alive(object->perm->cpid, object->perm->cstart),
		.changed = atomic_load_explicit(&object->perm->ctime, memory_order_relaxed),
	};
	if (type == HL_IPC_SEM)
		look_at_sem(object, to);
	else if (type == HL_IPC_MSG)
		look_at_msg(object, to);
	else
		look_at_shm(object, to);
	for (i = 0; i < 2; i++)
		to->user_lives |= to->last_pid[i] && hl_ipc_alive(to->last_pid[i], 0);
	return 0;
}

int hl_ipc_look_highest(enum hl_ipc_type type)
{
	int n;

	return hl_ipc_highest(type, &n);
}

int hl_ipc_look_remove(enum hl_ipc_type type, int id)
{
	if (type == HL_IPC_SEM)
		return hl_sem_ctl(id, 0, IPC_RMID, NULL);
	return type == HL_IPC_MSG ? hl_msg_ctl(id, IPC_RMID, NULL) : hl_shm_ctl(id, IPC_RMID, NULL);
}

int hl_ipc_look_make(enum hl_ipc_type type, int32_t key, uint64_t n, int flags)
{
	if (type == HL_IPC_SEM)
		return hl_sem_get(key, n > HL_SEM_MOST ? HL_SEM_MOST + 1 : (int)n, flags);
	return type == HL_IPC_MSG ? hl_msg_get(key, flags) : hl_shm_get(key, n, flags);
}

int hl_ipc_look_key(enum hl_ipc_type type, int32_t key)
{
	return hl_ipc_look_make(type, key, 0, 0);
}

void hl_ipc_look_in(const char *directory)
{
	hl_ipc_space_choose(directory);
}
