// SPDX-License-Identifier: MIT
/* SEM_UNDO: what is taken back, when, and for whom. */
#include "cases.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int set_id; /* of the case's set, for children */

static void raise_and_hold(void *arg)
{
	int by = *(int *)arg;

	result("op", sem_op(set_id, 0, by, SEM_UNDO));
	atomic_store(&shared->turn, 1);
	await(&shared->turn, 2);
}

static pid_t holder(int by)
{
	pid_t pid;

	atomic_store(&shared->turn, 0);
	pid = child(raise_and_hold, &by);
	await(&shared->turn, 1);
	return pid;
}

static void let_go(pid_t pid)
{
	atomic_store(&shared->turn, 2);
	reap("holder", pid);
}

static void at_exit(void)
{
	pid_t pid;

	set_id = sem_new(1);
	pid = holder(3);
	result("meanwhile", sem_get(set_id, 0));
	let_go(pid);
	result("after", sem_get(set_id, 0));
	say("pid is the holder's: %d", semctl(set_id, 0, GETPID) == pid);
	sem_remove(set_id);
}

static void at_kill(void)
{
	pid_t pid;

	set_id = sem_new(1);
	sem_set(set_id, 0, 1);
	pid = holder(-1);
	result("meanwhile", sem_get(set_id, 0));
	kill(pid, SIGKILL);
	reap("holder", pid);
	result("after", sem_get(set_id, 0));
	say("pid is the holder's: %d", semctl(set_id, 0, GETPID) == pid);
	sem_remove(set_id);
}

static void clamped(void)
{
	pid_t pid;

	set_id = sem_new(1);
	pid = holder(5);
	result("-3", sem_op(set_id, 0, -3, 0));
	let_go(pid);
	result("not below zero", sem_get(set_id, 0));
	sem_set(set_id, 0, 10);
	pid = holder(-10);
	result("+32767", sem_op(set_id, 0, 32767, 0));
	let_go(pid);
	result("not above the most", sem_get(set_id, 0));
	sem_remove(set_id);
}

static void set_clears(void)
{
	unsigned short all[1] = { 4 };
	pid_t pid;

	set_id = sem_new(1);
	pid = holder(5);
	result("SETVAL", sem_set(set_id, 0, 7));
	let_go(pid);
	result("after", sem_get(set_id, 0));
	pid = holder(5);
	result("SETALL", semctl(set_id, 0, SETALL, (union semun){ .array = all }));
	let_go(pid);
	result("after", sem_get(set_id, 0));
	sem_remove(set_id);
}

int undo_helper(int id)
{
	result("after exec", sem_get(id, 0));
	result("one more", sem_op(id, 0, 1, SEM_UNDO));
	result("now", sem_get(id, 0));
	return 0;
}

static void up_and_exec(void *arg)
{
	char id[16];

	(void)arg;
	result("up", sem_op(set_id, 0, 2, SEM_UNDO));
	snprintf(id, sizeof(id), "%d", set_id);
	execl(program_path, program_path, "--helper", "undo", id, (char *)NULL);
	say("no exec: %s", strerror(errno));
}

static void over_exec(void)
{
	set_id = sem_new(1);
	reap("child", child(up_and_exec, NULL));
	result("after", sem_get(set_id, 0));
	sem_remove(set_id);
}

static void nothing(void *arg)
{
	(void)arg;
}

static void grandchild(void *arg)
{
	(void)arg;
	result("up", sem_op(set_id, 0, 1, SEM_UNDO));
	reap("grandchild", child(nothing, NULL));
	result("after the grandchild", sem_get(set_id, 0));
}

static void by_fork(void)
{
	set_id = sem_new(1);
	reap("child", child(grandchild, NULL));
	result("after the child", sem_get(set_id, 0));
	sem_remove(set_id);
}

static void own_in_child(void *arg)
{
	(void)arg;
	result("child up", sem_op(set_id, 0, 2, SEM_UNDO));
}

static void parent_and_child(void *arg)
{
	(void)arg;
	result("up", sem_op(set_id, 0, 1, SEM_UNDO));
	reap("child", child(own_in_child, NULL));
	result("after the child", sem_get(set_id, 0));
}

static void each_its_own(void)
{
	set_id = sem_new(1);
	reap("parent", child(parent_and_child, NULL));
	result("after both", sem_get(set_id, 0));
	sem_remove(set_id);
}

static void *up_in_thread(void *arg)
{
	(void)arg;
	sem_op(set_id, 0, 3, SEM_UNDO);
	return NULL;
}

static void thread_ends(void *arg)
{
	pthread_t thread;

	(void)arg;
	pthread_create(&thread, NULL, up_in_thread, NULL);
	pthread_join(thread, NULL);
	result("after the thread", sem_get(set_id, 0));
}

static void *outlive(void *arg)
{
	(void)arg;
	atomic_store(&shared->turn, 1);
	await(&shared->turn, 2);
	return NULL;
}

static void leader_ends(void *arg)
{
	pthread_t thread;

	(void)arg;
	sem_op(set_id, 0, 4, SEM_UNDO);
	pthread_create(&thread, NULL, outlive, NULL);
	/* The thread alone: the process goes on. */
	syscall(SYS_exit, 0);
}

static void threads(void)
{
	pid_t pid;

	set_id = sem_new(1);
	reap("child", child(thread_ends, NULL));
	result("after the process", sem_get(set_id, 0));
	pid = child(leader_ends, NULL);
	await(&shared->turn, 1);
	/* Its first thread is gone when it is a zombie that cannot be waited for. */
	result("the first thread is gone", sem_get(set_id, 0));
	atomic_store(&shared->turn, 2);
	reap("child", pid);
	result("the last thread is gone", sem_get(set_id, 0));
	sem_remove(set_id);
}

static void take(void *arg)
{
	(void)arg;
	about_to_sleep();
	result("waiter", sem_op(set_id, 0, -1, 0));
}

static void wakes(void)
{
	pid_t first, second;

	set_id = sem_new(1);
	sem_set(set_id, 0, 1);
	first = holder(-1);
	second = child(take, NULL);
	await_asleep(second);
	kill(first, SIGKILL);
	reap("holder", first);
	reap("waiter", second);
	result("left", sem_get(set_id, 0));
	sem_remove(set_id);
}

static void take_with_undo(void *arg)
{
	(void)arg;
	about_to_sleep();
	result("waiter", sem_op(set_id, 0, -1, SEM_UNDO));
	result("meanwhile", sem_get(set_id, 0));
}

static void of_a_waiter(void)
{
	pid_t pid;

	set_id = sem_new(1);
	pid = child(take_with_undo, NULL);
	await_asleep(pid);
	result("+1", sem_op(set_id, 0, 1, 0));
	reap("waiter", pid);
	result("given back", sem_get(set_id, 0));
	pid = child(take_with_undo, NULL);
	reap("at once", pid);
	sem_set(set_id, 0, 0);
	pid = child(take_with_undo, NULL);
	await_sleeper(pid, 3);
	kill(pid, SIGKILL);
	reap("killed while it waits", pid);
	result("nothing to take back", sem_get(set_id, 0));
	sem_remove(set_id);
}

static void in_range(void *arg)
{
	(void)arg;
	result("+32767", sem_op(set_id, 0, 32767, SEM_UNDO));
	result("-32767 for good", sem_op(set_id, 0, -32767, 0));
	result("+1", sem_op(set_id, 0, 1, SEM_UNDO));
	result("+1", sem_op(set_id, 0, 1, SEM_UNDO));
	result("+1", sem_op(set_id, 0, 1, SEM_UNDO));
	result("value", sem_get(set_id, 0));
	result("+32760 for good", sem_op(set_id, 0, 32760, 0));
	result("-100", sem_op(set_id, 0, -100, SEM_UNDO));
	result("value", sem_get(set_id, 0));
}

static void range(void)
{
	set_id = sem_new(1);
	reap("child", child(in_range, NULL));
	result("after", sem_get(set_id, 0));
	sem_remove(set_id);
}

static void in_several(void *arg)
{
	struct sembuf op[] = {
		{ 0, 2, SEM_UNDO }, { 1, 3, 0 }, { 0, -1, SEM_UNDO }, { 2, 4, SEM_UNDO }
	};
	struct sembuf fails[] = { { 0, 5, SEM_UNDO }, { 1, -100, IPC_NOWAIT } };

	(void)arg;
	result("several", semop(set_id, op, 4));
	result("fails", semop(set_id, fails, 2));
	say("meanwhile %d %d %d", sem_get(set_id, 0), sem_get(set_id, 1), sem_get(set_id, 2));
}

static void several(void)
{
	set_id = sem_new(3);
	reap("child", child(in_several, NULL));
	say("after %d %d %d", sem_get(set_id, 0), sem_get(set_id, 1), sem_get(set_id, 2));
	sem_remove(set_id);
}

static void removed_set(void *arg)
{
	int id = sem_new(1), other = sem_new(1);

	(void)arg;
	sem_op(id, 0, 1, SEM_UNDO);
	sem_op(other, 0, 1, SEM_UNDO);
	sem_remove(id);
	shared->word[0] = other;
}

static void removed(void)
{
	reap("child", child(removed_set, NULL));
	result("the other set", sem_get(shared->word[0], 0));
	sem_remove(shared->word[0]);
}

static void many_sets_in_child(void *arg)
{
	int *id = arg;

	for (int i = 0; i < 50; i++)
		sem_op(id[i], i % 3, i + 1, SEM_UNDO);
	kill(getpid(), SIGKILL);
}

static void many_sets(void)
{
	int id[50], wrong = 0;

	for (int i = 0; i < 50; i++)
		id[i] = sem_new(3);
	reap("child", child(many_sets_in_child, id));
	for (int i = 0; i < 50; i++) {
		wrong += sem_get(id[i], i % 3) != 0;
		sem_remove(id[i]);
	}
	say("wrong %d", wrong);
}

static void lock_and_die(void *arg)
{
	(void)arg;
	sem_op(set_id, 0, -1, SEM_UNDO);
	kill(getpid(), SIGKILL);
}

static void again_and_again(void)
{
	set_id = sem_new(1);
	sem_set(set_id, 0, 1);
	for (int i = 0; i < 100; i++) {
		int status;

		waitpid(child(lock_and_die, NULL), &status, 0);
	}
	result("after a hundred deaths", sem_get(set_id, 0));
	sem_remove(set_id);
}

static void vfork_and_exec(void *arg)
{
	char id[16];
	pid_t pid;
	int status;

	(void)arg;
	snprintf(id, sizeof(id), "%d", set_id);
	result("up", sem_op(set_id, 0, 5, SEM_UNDO));
	pid = vfork();
	if (!pid) {
		execl(program_path, program_path, "--helper", "undo", id, (char *)NULL);
		_exit(1);
	}
	waitpid(pid, &status, 0);
	say("status %d", status);
	result("after the other program", sem_get(set_id, 0));
}

static void by_vfork(void)
{
	set_id = sem_new(1);
	reap("child", child(vfork_and_exec, NULL));
	result("after", sem_get(set_id, 0));
	sem_remove(set_id);
}

const struct ipc_case undo_cases[] = {
	{ "undo-exit", at_exit },
	{ "undo-kill", at_kill },
	{ "undo-clamped", clamped },
	{ "undo-set-clears", set_clears },
	{ "undo-exec", over_exec },
	{ "undo-fork", by_fork },
	{ "undo-each-its-own", each_its_own },
	{ "undo-threads", threads },
	{ "undo-wakes", wakes },
	{ "undo-of-a-waiter", of_a_waiter },
	{ "undo-range", range },
	{ "undo-several", several },
	{ "undo-removed", removed },
	{ "undo-many-sets", many_sets },
	{ "undo-again-and-again", again_and_again },
	{ "undo-vfork", by_vfork },
	{ NULL, NULL },
};
