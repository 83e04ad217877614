/* SPDX-License-Identifier: MIT */
/* The file of a queue; msgget() and msgctl(). */
#include "msg.h"

#include "clock.h"
#include "user.h"

static uint64_t bytes_for(uint64_t n)
{
	return n ? UINT64_MAX : HL_MSG_FILE_BYTES;
}

static uint64_t reserved_for(uint64_t n)
{
	(void)n;
	return offsetof(struct hl_msg_queue, sleepers) + HL_IPC_SLEEPERS_RESERVED;
}

static void init(struct hl_ipc_perm *perm, uint64_t n)
{
	struct hl_msg_queue *queue = (struct hl_msg_queue *)perm;

	(void)n;
	atomic_init(&queue->most, HL_MSG_QUEUE_BYTES);
}

static int fits(const struct hl_ipc_object *object, uint64_t n)
{
	(void)object;
	(void)n;
	return 0;
}

const struct hl_ipc_kind hl_msg_kind = {
	.bytes = bytes_for,
	.reserved = reserved_for,
	.init = init,
	.fits = fits,
};

int hl_msg_get(key_t key, int flags)
{
	struct hl_ipc_object *object;
	int err = hl_ipc_get(HL_IPC_MSG, key, flags, 0, &object);

	return err ? err : object->id;
}

static void fill(const struct hl_ipc_object *object, struct msqid_ds *to)
{
	struct hl_msg_queue *queue = hl_msg_queue(object);

	*to = (struct msqid_ds){
		.msg_stime = atomic_load_explicit(&queue->stime, memory_order_relaxed),
		.msg_rtime = atomic_load_explicit(&queue->rtime, memory_order_relaxed),
		.msg_ctime = atomic_load_explicit(&queue->perm.ctime, memory_order_relaxed),
		.__msg_cbytes = atomic_load_explicit(&queue->bytes, memory_order_relaxed),
		.msg_qnum = atomic_load_explicit(&queue->n, memory_order_relaxed),
		.msg_qbytes = atomic_load_explicit(&queue->most, memory_order_relaxed),
		.msg_lspid = atomic_load_explicit(&queue->lspid, memory_order_relaxed),
		.msg_lrpid = atomic_load_explicit(&queue->lrpid, memory_order_relaxed),
	};
	hl_ipc_stat(object, &to->msg_perm);
}

static int stat_queue(int id, int command, struct msqid_ds *to)
{
	struct hl_ipc_object *object;
	int err = command == IPC_STAT ? hl_ipc_find(HL_IPC_MSG, id, &object)
				      : hl_ipc_find_index(HL_IPC_MSG, id, &object);

	if (!err && command != MSG_STAT_ANY)
		err = hl_ipc_check_access(object, 04);
	if (err)
		return err;
	if (hl_user_writable(to, sizeof(*to)))
		return -EFAULT;
	fill(object, to);
	return command == IPC_STAT ? 0 : object->id;
}

/* What all queues hold, in MSG_INFO's misused members. */
static void sum_up(struct msginfo *to, int queues, int highest)
{
	int index;

	to->msgpool = queues;
	to->msgmap = to->msgtql = 0;
	for (index = 0; index <= highest; index++) {
		struct hl_ipc_object *object;
		struct msqid_ds stat;

		if (hl_ipc_find_index(HL_IPC_MSG, index, &object))
			continue;
		fill(object, &stat);
		to->msgmap += (int)stat.msg_qnum;
		to->msgtql += (int)stat.__msg_cbytes;
	}
}

static int info(int command, struct msginfo *to)
{
	int queues, highest;

	if (hl_user_writable(to, sizeof(*to)))
		return -EFAULT;
	highest = hl_ipc_highest(HL_IPC_MSG, &queues);
	*to = (struct msginfo){
		.msgpool = HL_IPC_INDEXES * (HL_MSG_QUEUE_BYTES / 1024),
		.msgmap = HL_MSG_QUEUE_BYTES,
		.msgmax = HL_MSG_MOST_BYTES,
		.msgmnb = HL_MSG_QUEUE_BYTES,
		.msgmni = HL_IPC_INDEXES,
		.msgssz = 16,
		.msgtql = HL_MSG_QUEUE_BYTES,
		.msgseg = 0xffff,
	};
	if (command == MSG_INFO)
		sum_up(to, queues, highest);
	return highest < 0 ? 0 : highest;
}

static int set(struct hl_ipc_object *object, const struct msqid_ds *user)
{
	struct hl_msg_queue *queue = hl_msg_queue(object);
	struct msqid_ds from = *user;
	struct hl_ipc_holding holding;
	struct hl_ipc_wakes wakes;
	int err = hl_ipc_check_owner(object);

	if (!err && from.msg_qbytes > HL_MSG_QUEUE_BYTES && hl_sys_geteuid())
		err = -EPERM;
	if (!err)
		err = hl_ipc_set(object, from.msg_perm.uid, from.msg_perm.gid, from.msg_perm.mode);
	if (!err)
		err = hl_msg_lock(object, &holding);
	if (err)
		return err;
	hl_ipc_wakes_init(&wakes);
	atomic_store_explicit(&queue->most, from.msg_qbytes, memory_order_relaxed);
	hl_msg_serve(object, &wakes);
	hl_msg_unlock(object, &holding);
	hl_ipc_wake(&queue->sleepers, &wakes);
	return 0;
}

static int remove_queue(struct hl_ipc_object *object)
{
	struct hl_ipc_holding holding;
	struct hl_ipc_wakes wakes;
	int err = hl_ipc_check_owner(object);

	if (!err)
		err = hl_ipc_remove(object);
	if (err)
		return err;
	hl_ipc_wakes_init(&wakes);
	if (!hl_msg_lock(object, &holding)) {
		hl_msg_dismiss(object, &wakes);
		hl_msg_unlock(object, &holding);
		hl_ipc_wake(&hl_msg_queue(object)->sleepers, &wakes);
	}
	hl_ipc_retire(object);
	return 0;
}

int hl_msg_ctl(int id, int command, struct msqid_ds *arg)
{
	struct hl_ipc_object *object;
	int err;

	if (id < 0 || command < 0)
		return -EINVAL;
	switch (command) {
	case IPC_INFO:
	case MSG_INFO:
		return info(command, (struct msginfo *)arg);
	case IPC_STAT:
	case MSG_STAT:
	case MSG_STAT_ANY:
		return stat_queue(id, command, arg);
	case IPC_SET:
		if (hl_user_readable(arg, sizeof(*arg)))
			return -EFAULT;
		break;
	case IPC_RMID:
		break;
	default:
		return -EINVAL;
	}
	err = hl_ipc_find(HL_IPC_MSG, id, &object);
	if (err)
		return err;
	return command == IPC_RMID ? remove_queue(object) : set(object, arg);
}
