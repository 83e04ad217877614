/* SPDX-License-Identifier: MIT */
/*
 * The System V functions, in the place of the C library's. -1 and errno on failure.
 */
#include "msg.h"
#include "sem.h"
#include "shm.h"

#include <stdarg.h>

#include <hotline/api.h>

static int answer(int result)
{
	if (__builtin_expect(result >= 0, 1))
		return result;
	errno = -result;
	return -1;
}

HL_API int semget(key_t key, int n, int flags)
{
	return answer(hl_sem_get(key, n, flags));
}

HL_API int semop(int id, struct sembuf *ops, size_t n)
{
	return answer(hl_sem_op(id, ops, n, NULL));
}

HL_API int semtimedop(int id, struct sembuf *ops, size_t n, const struct timespec *timeout)
{
	return answer(hl_sem_op(id, ops, n, timeout));
}

HL_API int semctl(int id, int sem, int command, ...)
{
	va_list list;
	void *arg;

	/* union semun, whose largest member is a pointer; not every command is given one. */
	va_start(list, command);
	arg = va_arg(list, void *);
	va_end(list);
	return answer(hl_sem_ctl(id, sem, command, arg));
}

HL_API int shmget(key_t key, size_t bytes, int flags)
{
	return answer(hl_shm_get(key, bytes, flags));
}

HL_API void *shmat(int id, const void *at, int flags)
{
	void *got = hl_shm_at(id, at, flags);
	int err = hl_sys_failed(got);

	if (!err)
		return got;
	errno = -err;
	return (void *)-1;
}

HL_API int shmdt(const void *at)
{
	return answer(hl_shm_dt(at));
}

HL_API int shmctl(int id, int command, struct shmid_ds *arg)
{
	return answer(hl_shm_ctl(id, command, arg));
}

HL_API int msgget(key_t key, int flags)
{
	return answer(hl_msg_get(key, flags));
}

HL_API int msgsnd(int id, const void *message, size_t bytes, int flags)
{
	return answer(hl_msg_snd(id, message, bytes, flags));
}

HL_API ssize_t msgrcv(int id, void *message, size_t bytes, long type, int flags)
{
	return answer((int)hl_msg_rcv(id, message, bytes, type, flags));
}

HL_API int msgctl(int id, int command, struct msqid_ds *arg)
{
	return answer(hl_msg_ctl(id, command, arg));
}
