/* SPDX-License-Identifier: MIT */
/* semctl(), command by command, with the kernel's order of checks. */
#include "sem.h"

#include "clock.h"
#include "user.h"

#include <sys/mman.h>

union semun {
	int val;
	void *buf;
};

static uint64_t word_of(const struct hl_ipc_object *object, unsigned sem)
{
	return atomic_load_explicit(&hl_sem_at(object, sem)->word, memory_order_acquire);
}

static int64_t last_time(const struct hl_ipc_object *object)
{
	int64_t last = 0, one;
	unsigned i;

	for (i = 0; i < object->n; i++) {
		one = atomic_load_explicit(&hl_sem_at(object, i)->otime, memory_order_relaxed);
		last = one > last ? one : last;
	}
	return last;
}

static void touch_ctime(struct hl_ipc_object *object)
{
	atomic_store_explicit(&object->perm->ctime, hl_ipc_seconds(), memory_order_relaxed);
}

/* The lock of a set that lives, with what the dead owe paid. @sem: to which semaphore. */
static int lock_tended(struct hl_ipc_object *object, int sem, struct hl_ipc_holding *holding,
		       struct hl_ipc_wakes *wakes)
{
	struct hl_sem_dead dead;
	int err;

	hl_sem_find_dead(object, sem, &dead);
	err = hl_sem_lock(object, holding);
	if (err)
		return err;
	if (hl_ipc_removed(object)) {
		hl_sem_unlock(object, holding);
		return -EIDRM;
	}
	hl_ipc_wakes_init(wakes);
	if (dead.n) {
		hl_sem_bury(object, &dead);
		hl_sem_recount(object, wakes);
		hl_sem_serve(object, wakes);
	}
	return 0;
}

static void unlock_and_wake(struct hl_ipc_object *object, struct hl_ipc_holding *holding,
			    struct hl_ipc_wakes *wakes)
{
	hl_sem_unlock(object, holding);
	hl_ipc_wake(hl_sem_sleepers(object), wakes);
}

/* Pays what the dead owe to a semaphore, or to all, for who is about to look at it. */
static int pay(struct hl_ipc_object *object, int sem)
{
	struct hl_ipc_holding holding;
	struct hl_ipc_wakes wakes;
	struct hl_sem_dead dead;
	int err;

	if (!object->writable || !hl_sem_find_dead(object, sem, &dead))
		return 0;
	err = lock_tended(object, sem, &holding, &wakes);
	if (!err)
		unlock_and_wake(object, &holding, &wakes);
	return err;
}

static int get_one(struct hl_ipc_object *object, int sem, int command)
{
	struct hl_ipc_holding holding;
	struct hl_ipc_wakes wakes;
	int result = pay(object, sem);

	if (result)
		return result;
	switch (command) {
	case GETVAL:
		return (int)hl_sem_value(word_of(object, (unsigned)sem)) & HL_SEM_MOST_VALUE;
	case GETPID:
		return (int)(word_of(object, (unsigned)sem) >> HL_SEM_PID_SHIFT);
	}
	if (!object->writable)
		return (int)hl_sem_count(object, (unsigned)sem, command == GETZCNT);
	result = lock_tended(object, sem, &holding, &wakes);
	if (result)
		return result;
	result = (int)hl_sem_count(object, (unsigned)sem, command == GETZCNT);
	unlock_and_wake(object, &holding, &wakes);
	return result;
}

static int get_all(struct hl_ipc_object *object, unsigned short *to)
{
	struct hl_ipc_holding holding;
	struct hl_ipc_wakes wakes;
	unsigned i;
	int err;

	if (hl_user_writable(to, object->n * sizeof(*to)))
		return -EFAULT;
	/* Where the set may not be locked, each value is right, but not all of one moment. */
	err = object->writable ? lock_tended(object, HL_SEM_OF_ANY, &holding, &wakes) : 0;
	if (err)
		return err;
	for (i = 0; i < object->n; i++) {
		struct hl_sem *sem = hl_sem_at(object, i);
		uint64_t word = object->writable ? hl_sem_hold(sem) : word_of(object, i);

		to[i] = hl_sem_value(word) & HL_SEM_MOST_VALUE;
	}
	if (object->writable)
		unlock_and_wake(object, &holding, &wakes);
	return 0;
}

/* Under the lock. */
static void set_one(struct hl_ipc_object *object, unsigned i, unsigned value, int32_t pid)
{
	struct hl_sem *sem = hl_sem_at(object, i);

	hl_sem_forget_undo(object, i);
	hl_sem_store(object, i, hl_sem_with(hl_sem_hold(sem), value, pid), -1, 0);
}

/* @values: of all semaphores; or NULL, and @value of @sem. */
static int set(struct hl_ipc_object *object, int sem, const unsigned short *values, int value)
{
	int32_t pid = atomic_load_explicit(&hl_ipc_self()->pid, memory_order_relaxed);
	struct hl_ipc_holding holding;
	struct hl_ipc_wakes wakes;
	unsigned i;
	int err;

	/* What the dead owe would be forgotten for this semaphore alone. */
	err = lock_tended(object, HL_SEM_OF_ANY, &holding, &wakes);
	if (err)
		return err;
	if (!values)
		set_one(object, (unsigned)sem, (unsigned)value, pid);
	for (i = 0; values && i < object->n; i++)
		set_one(object, i, values[i], pid);
	touch_ctime(object);
	hl_sem_serve(object, &wakes);
	unlock_and_wake(object, &holding, &wakes);
	return 0;
}

static int set_all(struct hl_ipc_object *object, const unsigned short *from)
{
	size_t bytes = object->n * sizeof(*from);
	unsigned short *values;
	unsigned i;
	int err = 0;

	if (hl_user_readable(from, bytes))
		return -EFAULT;
	values = hl_sys_mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			     0);
	if (hl_sys_failed(values))
		return -ENOMEM;
	/* A copy: another thread may write to the caller's. */
	__builtin_memcpy(values, from, bytes);
	for (i = 0; i < object->n; i++)
		if (values[i] > HL_SEM_MOST_VALUE)
			err = -ERANGE;
	if (!err)
		err = set(object, 0, values, 0);
	hl_sys_munmap(values, bytes);
	return err;
}

static void fill(const struct hl_ipc_object *object, struct semid_ds *to)
{
	*to = (struct semid_ds){
		.sem_otime = last_time(object),
		.sem_ctime = atomic_load_explicit(&object->perm->ctime, memory_order_relaxed),
		.sem_nsems = object->n,
	};
	hl_ipc_stat(object, &to->sem_perm);
}

/* IPC_STAT with an id, SEM_STAT and SEM_STAT_ANY with an index. */
static int stat_set(int id, int command, struct semid_ds *to)
{
	struct hl_ipc_object *object;
	int err = command == IPC_STAT ? hl_ipc_find(HL_IPC_SEM, id, &object)
				      : hl_ipc_find_index(HL_IPC_SEM, id, &object);

	if (err)
		return err;
	if (command != SEM_STAT_ANY) {
		err = hl_ipc_check_access(object, 04);
		if (err)
			return err;
	}
	if (hl_user_writable(to, sizeof(*to)))
		return -EFAULT;
	pay(object, HL_SEM_OF_ANY);
	fill(object, to);
	return command == IPC_STAT ? 0 : object->id;
}

static int set_perm(struct hl_ipc_object *object, const struct semid_ds *from)
{
	int err = hl_ipc_check_owner(object);

	return err ? err
		   : hl_ipc_set(object, from->sem_perm.uid, from->sem_perm.gid,
				from->sem_perm.mode);
}

static int remove_set(struct hl_ipc_object *object)
{
	struct hl_ipc_holding holding;
	struct hl_ipc_wakes wakes;
	int err = hl_ipc_check_owner(object);

	if (!err)
		err = hl_ipc_remove(object);
	if (err)
		return err;
	/* Nobody lies down any more; who is down is told. */
	hl_ipc_wakes_init(&wakes);
	if (!hl_sem_lock(object, &holding)) {
		hl_sem_dismiss(object, &wakes);
		unlock_and_wake(object, &holding, &wakes);
	}
	hl_ipc_retire(object);
	return 0;
}

static int info(int command, struct seminfo *to)
{
	int sets, highest;

	if (hl_user_writable(to, sizeof(*to)))
		return -EFAULT;
	highest = hl_ipc_highest(HL_IPC_SEM, &sets);
	*to = (struct seminfo){
		.semmap = 1024000000,
		.semmni = HL_IPC_INDEXES,
		.semmns = 1024000000,
		.semmnu = 1024000000,
		.semmsl = HL_SEM_MOST,
		.semopm = HL_SEM_MOST_OPS,
		.semume = HL_SEM_MOST_OPS,
		.semusz = 20,
		.semvmx = HL_SEM_MOST_VALUE,
		.semaem = HL_SEM_MOST_VALUE,
	};
	if (command == SEM_INFO) {
		int index;

		to->semusz = sets;
		to->semaem = 0;
		for (index = 0; index <= highest; index++) {
			struct hl_ipc_object *object;

			if (!hl_ipc_find_index(HL_IPC_SEM, index, &object))
				to->semaem += (int)object->n;
		}
	}
	return highest < 0 ? 0 : highest;
}

static int with_object(struct hl_ipc_object *object, int sem, int command, void *arg)
{
	int err;

	switch (command) {
	case IPC_RMID:
		return remove_set(object);
	case IPC_SET:
		if (hl_user_readable(arg, sizeof(struct semid_ds)))
			return -EFAULT;
		return set_perm(object, arg);
	case GETALL:
	case SETALL:
		err = hl_ipc_check_access(object, command == SETALL ? 02 : 04);
		if (err)
			return err;
		return command == GETALL ? get_all(object, arg) : set_all(object, arg);
	case SETVAL:
		if (sem < 0 || (unsigned)sem >= object->n)
			return -EINVAL;
		err = hl_ipc_check_access(object, 02);
		return err ? err : set(object, sem, NULL, ((union semun){ .buf = arg }).val);
	default:
		err = hl_ipc_check_access(object, 04);
		if (err)
			return err;
		if (sem < 0 || (unsigned)sem >= object->n)
			return -EINVAL;
		return get_one(object, sem, command);
	}
}

int hl_sem_ctl(int id, int sem, int command, void *arg)
{
	struct hl_ipc_object *object;
	int value = ((union semun){ .buf = arg }).val, err;

	if (id < 0)
		return -EINVAL;
	switch (command) {
	case IPC_INFO:
	case SEM_INFO:
		return info(command, arg);
	case IPC_STAT:
	case SEM_STAT:
	case SEM_STAT_ANY:
		return stat_set(id, command, arg);
	case SETVAL:
		if (value < 0 || value > HL_SEM_MOST_VALUE)
			return -ERANGE;
		break;
	case IPC_RMID:
	case IPC_SET:
	case GETALL:
	case SETALL:
	case GETVAL:
	case GETPID:
	case GETNCNT:
	case GETZCNT:
		break;
	default:
		return -EINVAL;
	}
	err = hl_ipc_find(HL_IPC_SEM, id, &object);
	return err ? err : with_object(object, sem, command, arg);
}
