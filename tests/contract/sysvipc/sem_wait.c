// SPDX-License-Identifier: MIT
/* Semaphores: who waits, who is counted, who is woken, with what. */
#include "cases.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A child that waits, and what it says when it comes back. */
struct waiter {
	const char *name;
	int id;
	struct sembuf op[3];
	size_t n;
	int ms; /* 0: for ever */
	/* Woken ones leave their turn in this word of what is shared; -1: do not. */
	int word;
};

static void wait_and_tell(void *arg)
{
	const struct waiter *w = arg;
	struct timespec timeout = { w->ms / 1000, w->ms % 1000 * 1000000L };
	struct sembuf op[3];

	memcpy(op, w->op, sizeof(op));
	about_to_sleep();
	result(w->name, semtimedop(w->id, op, w->n, w->ms ? &timeout : NULL));
	if (w->word >= 0)
		atomic_store(&shared->word[w->word], atomic_fetch_add(&shared->turn, 1) + 1);
}

/* Started and asleep. */
static pid_t start(const struct waiter *w)
{
	int n = atomic_load(&shared->count) + 1;
	pid_t pid = child(wait_and_tell, (void *)w);

	await_sleeper(pid, n);
	return pid;
}

static void counts(const char *when, int id, int n)
{
	say("%s: n %d z %d value %d", when, semctl(id, n, GETNCNT), semctl(id, n, GETZCNT),
	    sem_get(id, n));
}

static void counted(void)
{
	int id = sem_new(2);
	struct waiter down = { "down", id, { { 0, -1, 0 } }, 1, 0, -1 };
	struct waiter zero = { "zero", id, { { 1, 0, 0 } }, 1, 0, -1 };
	struct waiter both = { "both", id, { { 0, -1, 0 }, { 1, 0, 0 } }, 2, 0, -1 };
	pid_t first, second, third;

	sem_set(id, 1, 1);
	first = start(&down);
	counts("one down, first", id, 0);
	counts("one down, second", id, 1);
	second = start(&zero);
	counts("and zero, first", id, 0);
	counts("and zero, second", id, 1);
	third = start(&both);
	counts("and both, first", id, 0);
	counts("and both, second", id, 1);
	sem_set(id, 1, 0);
	reap("zero", second);
	counts("without zero, first", id, 0);
	counts("without zero, second", id, 1);
	sem_op(id, 0, 1, 0);
	reap("down", first);
	sem_set(id, 1, 2);
	sem_op(id, 0, 1, 0);
	/* It now waits at its second operation. */
	counts("waits at the second, first", id, 0);
	counts("waits at the second, second", id, 1);
	sem_set(id, 1, 0);
	reap("both", third);
	counts("nobody, first", id, 0);
	counts("nobody, second", id, 1);
	sem_remove(id);
}

static void removed(void)
{
	int id = sem_new(2);
	struct waiter down = { "down", id, { { 0, -1, 0 } }, 1, 0, -1 };
	struct waiter timed = { "timed", id, { { 0, -1, 0 } }, 1, 15000, -1 };
	struct waiter two = { "two", id, { { 0, -1, 0 }, { 1, -1, 0 } }, 2, 0, -1 };
	pid_t first = start(&down), second, third;

	result("remove", sem_remove(id));
	reap("down", first);
	id = timed.id = sem_new(2);
	second = start(&timed);
	result("remove", sem_remove(id));
	reap("timed", second);
	id = two.id = sem_new(2);
	third = start(&two);
	result("remove", sem_remove(id));
	reap("two", third);
	result("later", sem_op(id, 0, -1, 0));
}

static void on_signal(int number)
{
	(void)number;
}

static void interrupt_and_tell(void *arg)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };

	sigaction(SIGUSR1, &action, NULL);
	wait_and_tell(arg);
}

static void interrupted(void)
{
	int id = sem_new(1);
	struct waiter down = { "down", id, { { 0, -1, 0 } }, 1, 0, -1 };
	struct waiter timed = { "timed", id, { { 0, -1, 0 } }, 1, 15000, -1 };
	pid_t pid = child(interrupt_and_tell, &down);

	await_sleeper(pid, 1);
	kill(pid, SIGUSR1);
	reap("down", pid);
	counts("after", id, 0);
	pid = child(interrupt_and_tell, &timed);
	await_sleeper(pid, 2);
	kill(pid, SIGUSR1);
	reap("timed", pid);
	counts("after", id, 0);
	result("up", sem_op(id, 0, 1, 0));
	result("down", sem_op(id, 0, -1, IPC_NOWAIT));
	sem_remove(id);
}

static void killed(void)
{
	int id = sem_new(1);
	struct waiter down = { "down", id, { { 0, -1, 0 } }, 1, 0, -1 };
	pid_t first = start(&down), second = start(&down);

	counts("two", id, 0);
	kill(first, SIGKILL);
	reap("first", first);
	counts("one", id, 0);
	result("up", sem_op(id, 0, 1, 0));
	reap("second", second);
	counts("none", id, 0);
	sem_remove(id);
}

static void stopped(void)
{
	int id = sem_new(1);
	struct waiter down = { "down", id, { { 0, -1, 0 } }, 1, 0, -1 };
	pid_t pid = start(&down);
	int status;

	kill(pid, SIGSTOP);
	waitpid(pid, &status, WUNTRACED);
	counts("stopped", id, 0);
	result("up", sem_op(id, 0, 1, 0));
	counts("given to it", id, 0);
	result("taken by another", sem_op(id, 0, -1, IPC_NOWAIT));
	kill(pid, SIGCONT);
	if (sem_get(id, 0) == 0 && semctl(id, 0, GETNCNT) == 1)
		sem_op(id, 0, 1, 0);
	reap("stopped one", pid);
	sem_remove(id);
}

static void small_passes_big(void)
{
	int id = sem_new(1);
	struct waiter big = { "-3", id, { { 0, -3, 0 } }, 1, 0, 0 };
	struct waiter small = { "-1", id, { { 0, -1, 0 } }, 1, 0, 1 };
	pid_t first = start(&big), second = start(&small);

	counts("both", id, 0);
	result("+1", sem_op(id, 0, 1, 0));
	reap("small", second);
	counts("big alone", id, 0);
	result("+3", sem_op(id, 0, 3, 0));
	reap("big", first);
	counts("none", id, 0);
	say("order: big %d small %d", shared->word[0], shared->word[1]);
	sem_remove(id);
}

static void first_come(void)
{
	int id = sem_new(1);
	struct waiter w[4];
	pid_t pid[4];

	for (int i = 0; i < 4; i++) {
		w[i] = (struct waiter){ "one", id, { { 0, -1, 0 } }, 1, 0, i };
		pid[i] = start(&w[i]);
	}
	for (int i = 0; i < 4; i++) {
		sem_op(id, 0, 1, 0);
		reap("woken", pid[i]);
	}
	say("turns %d %d %d %d", shared->word[0], shared->word[1], shared->word[2],
	    shared->word[3]);
	sem_remove(id);
}

static void all_for_zero(void)
{
	int id = sem_new(1);
	struct waiter w = { "zero", id, { { 0, 0, 0 } }, 1, 0, -1 };
	struct sembuf through[] = { { 0, -1, 0 }, { 0, 1, 0 } };
	pid_t pid[3];

	sem_set(id, 0, 1);
	for (int i = 0; i < 3; i++)
		pid[i] = start(&w);
	counts("three", id, 0);
	result("through zero", semop(id, through, 2));
	counts("still three", id, 0);
	result("-1", sem_op(id, 0, -1, 0));
	for (int i = 0; i < 3; i++)
		reap("woken", pid[i]);
	counts("none", id, 0);
	sem_remove(id);
}

static void chain(void)
{
	int id = sem_new(3);
	struct waiter a = { "a", id, { { 0, -1, 0 }, { 1, 1, 0 } }, 2, 0, -1 };
	struct waiter b = { "b", id, { { 1, -1, 0 }, { 2, 1, 0 } }, 2, 0, -1 };
	struct waiter c = { "c", id, { { 2, -1, 0 } }, 1, 0, -1 };
	pid_t third = start(&c), second = start(&b), first = start(&a);

	result("+1", sem_op(id, 0, 1, 0));
	reap("a", first);
	reap("b", second);
	reap("c", third);
	say("left %d %d %d", sem_get(id, 0), sem_get(id, 1), sem_get(id, 2));
	sem_remove(id);
}

static void set_wakes(void)
{
	int id = sem_new(2);
	struct waiter down = { "down", id, { { 0, -2, 0 } }, 1, 0, -1 };
	struct waiter zero = { "zero", id, { { 1, 0, 0 } }, 1, 0, -1 };
	struct waiter both = { "both", id, { { 0, -1, 0 }, { 1, -1, 0 } }, 2, 0, -1 };
	unsigned short all[2] = { 5, 5 };
	pid_t pid = start(&down);

	result("SETVAL", sem_set(id, 0, 3));
	reap("down", pid);
	counts("after", id, 0);
	sem_set(id, 1, 4);
	pid = start(&zero);
	result("SETVAL", sem_set(id, 1, 0));
	reap("zero", pid);
	sem_set(id, 0, 0);
	pid = start(&both);
	result("SETALL", semctl(id, 0, SETALL, (union semun){ .array = all }));
	reap("both", pid);
	counts("first", id, 0);
	counts("second", id, 1);
	sem_remove(id);
}

static void pids(void)
{
	int id = sem_new(2);
	struct waiter down = { "down", id, { { 0, -1, 0 }, { 1, 1, 0 } }, 2, 0, -1 };
	pid_t pid = start(&down);
	int first;

	sem_op(id, 0, 1, 0);
	reap("down", pid);
	/* Whoever is woken has done its operations itself, or they were done for it. */
	first = semctl(id, 0, GETPID);
	say("first: %s", first == pid ? "the waiter" : first == getpid() ? "who woke" : "nobody");
	say("second: %s", semctl(id, 1, GETPID) == pid ? "the waiter" : "another");
	result("zero", sem_op(id, 0, 0, 0));
	say("after zero: %s", semctl(id, 0, GETPID) == getpid() ? "who looked" : "as before");
	sem_remove(id);
}

static void too_late(void)
{
	int id = sem_new(1);
	struct waiter over = {
		"over", id, { { 0, -1, 0 }, { 0, 32767, 0 }, { 0, 5, 0 } }, 3, 0, -1
	};
	pid_t pid = start(&over);

	/* What it waited for has come, and what follows is too much. */
	result("+1", sem_op(id, 0, 1, 0));
	reap("over", pid);
	counts("after", id, 0);
	sem_remove(id);
}

static void nowait_later(void)
{
	int id = sem_new(2);
	struct waiter w = { "w", id, { { 0, -1, 0 }, { 1, -1, IPC_NOWAIT } }, 2, 0, -1 };
	pid_t pid = start(&w);

	result("+1", sem_op(id, 0, 1, 0));
	reap("w", pid);
	say("left %d %d", sem_get(id, 0), sem_get(id, 1));
	sem_remove(id);
}

static void exits(void *arg)
{
	(void)arg;
}

static void forked(void)
{
	int id = sem_new(1);
	pid_t pid;

	sem_op(id, 0, 5, 0);
	pid = child(exits, NULL);
	reap("child", pid);
	result("value", sem_get(id, 0));
	sem_remove(id);
}

struct thread {
	int id;
	_Atomic(int) rc;
};

static void *wait_in_thread(void *arg)
{
	struct thread *t = arg;

	about_to_sleep();
	atomic_store(&t->rc, sem_op(t->id, 0, -1, 0) ? errno : 0);
	return NULL;
}

static void threads(void)
{
	struct thread t[3];
	pthread_t thread[3];
	int id = sem_new(1), fine = 0;

	for (int i = 0; i < 3; i++) {
		t[i].id = id;
		t[i].rc = -1;
		pthread_create(&thread[i], NULL, wait_in_thread, &t[i]);
	}
	while (semctl(id, 0, GETNCNT) < 3)
		usleep(100);
	counts("three threads", id, 0);
	sem_op(id, 0, 3, 0);
	for (int i = 0; i < 3; i++) {
		pthread_join(thread[i], NULL);
		fine += t[i].rc == 0;
	}
	say("fine: %d", fine);
	counts("none", id, 0);
	sem_remove(id);
}

static void ping(void *arg)
{
	int id = *(int *)arg;

	for (int i = 0; i < 500; i++) {
		sem_op(id, 0, -1, 0);
		sem_op(id, 1, 1, 0);
	}
}

static void ping_pong(void)
{
	int id = sem_new(2), failed = 0;
	pid_t pid = child(ping, &id);

	for (int i = 0; i < 500; i++) {
		failed += sem_op(id, 0, 1, 0) != 0;
		failed += sem_op(id, 1, -1, 0) != 0;
	}
	reap("child", pid);
	say("failed %d, left %d %d", failed, sem_get(id, 0), sem_get(id, 1));
	sem_remove(id);
}

static void lock_often(void *arg)
{
	int id = *(int *)arg;

	for (int i = 0; i < 2000; i++) {
		sem_op(id, 0, -1, SEM_UNDO);
		shared->word[0] = shared->word[0] + 1;
		sem_op(id, 0, 1, SEM_UNDO);
	}
}

static void exclusion(void)
{
	int id = sem_new(1);
	pid_t pid[4];

	sem_set(id, 0, 1);
	for (int i = 0; i < 4; i++)
		pid[i] = child(lock_often, &id);
	for (int i = 0; i < 4; i++)
		reap("child", pid[i]);
	say("sum %d, left %d", shared->word[0], sem_get(id, 0));
	sem_remove(id);
}

const struct ipc_case sem_wait_cases[] = {
	{ "sem-counted", counted },
	{ "sem-removed", removed },
	{ "sem-interrupted", interrupted },
	{ "sem-killed-waiter", killed },
	{ "sem-stopped-waiter", stopped },
	{ "sem-small-passes-big", small_passes_big },
	{ "sem-first-come", first_come },
	{ "sem-all-for-zero", all_for_zero },
	{ "sem-chain", chain },
	{ "sem-set-wakes", set_wakes },
	{ "sem-pids", pids },
	{ "sem-too-late", too_late },
	{ "sem-nowait-later", nowait_later },
	{ "sem-forked", forked },
	{ "sem-threads", threads },
	{ "sem-ping-pong", ping_pong },
	{ "sem-exclusion", exclusion },
	{ NULL, NULL },
};
