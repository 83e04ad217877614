/* SPDX-License-Identifier: MIT */
/*
 * Processes that use one set in every way, with undo, and are killed at random points, while others
 * scribble over another set that they share.
 *
 *	stress-sysvipc_kill [SECONDS [SEED [PROCESSES]]]
 *
 * Semaphores 0 and 1 hold tokens that are taken and given back with undo, alone and together, so
 * that when all processes are gone each has what it began with. 2 is a mutex with undo over a word
 * that two must not be in at once. 3 wakes sleepers.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "sysvipc/sem.h"

#define TOKENS 5
#define MOST 256

static int seconds = 4, processes = 32;
static unsigned seed = 1;

static unsigned next_random(unsigned *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

static int op1(int id, int sem, int op, int flags)
{
	struct sembuf one = { (unsigned short)sem, (short)op, (short)flags };

	return hl_sem_op(id, &one, 1, NULL);
}

static int op1_timed(int id, int sem, int op, int flags, long ns)
{
	struct timespec t = { .tv_nsec = ns };
	struct sembuf one = { (unsigned short)sem, (short)op, (short)flags };

	return hl_sem_op(id, &one, 1, &t);
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* What all see, beside the sets. */
struct shared {
	_Atomic(int) inside; /* pid of who has the mutex */
	_Atomic(unsigned long) rounds;
	_Atomic(int) wrong;
};
static struct shared *shared;

static void both(int id, int how)
{
	struct sembuf take[] = { { 0, -1, SEM_UNDO }, { 1, -1, SEM_UNDO } };
	struct sembuf give[] = { { 1, 1, SEM_UNDO }, { 0, 1, SEM_UNDO } };
	struct timespec t = { .tv_nsec = 1000000 };

	if (!hl_sem_op(id, take, 2, how ? &t : NULL))
		hl_sem_op(id, give, 2, NULL);
}

static void mutex(int id)
{
	int me = getpid(), other;

	if (op1(id, 2, -1, SEM_UNDO))
		return;
	/* Who is killed inside leaves its pid; it must be dead before we are let in. */
	other = atomic_exchange(&shared->inside, me);
	if (other && other != me && hl_ipc_alive(other, 0))
		atomic_store(&shared->wrong, other);
	if (atomic_load(&shared->inside) != me)
		atomic_store(&shared->wrong, me);
	atomic_store(&shared->inside, 0);
	op1(id, 2, 1, SEM_UNDO);
}

static void work(int id, unsigned state)
{
	for (;;) {
		switch (next_random(&state) % 7) {
		case 0:
		case 1:
			if (!op1(id, 0, -1, SEM_UNDO))
				op1(id, 0, 1, SEM_UNDO);
			break;
		case 2:
			if (!op1_timed(id, 1, -1, SEM_UNDO, 500000))
				op1(id, 1, 1, SEM_UNDO);
			break;
		case 3:
			both(id, next_random(&state) & 1);
			break;
		case 4:
		case 5:
			mutex(id);
			break;
		default:
			op1_timed(id, 3, -1, 0, 300000);
			op1(id, 3, 1, 0);
			op1(id, 3, -1, IPC_NOWAIT);
		}
		atomic_fetch_add_explicit(&shared->rounds, 1, memory_order_relaxed);
	}
}

static pid_t start(int id, unsigned state)
{
	pid_t pid = fork();

	if (!pid) {
		work(id, state);
		_exit(0);
	}
	return pid;
}

static int make_set(void)
{
	int id = hl_sem_get(IPC_PRIVATE, 4, 0600);

	assert_true(id >= 0);
	assert_int_equal(hl_sem_ctl(id, 0, SETVAL, (void *)TOKENS), 0);
	assert_int_equal(hl_sem_ctl(id, 1, SETVAL, (void *)TOKENS), 0);
	assert_int_equal(hl_sem_ctl(id, 2, SETVAL, (void *)1), 0);
	return id;
}

static void killed_at_random_points(void **unused)
{
	int64_t end = now_ns() + seconds * INT64_C(1000000000), worst = 0, began;
	int id = make_set(), i, kills = 0;
	unsigned long rounds;
	pid_t pids[MOST];

	(void)unused;
	for (i = 0; i < processes; i++)
		pids[i] = start(id, seed + (unsigned)i);
	while (now_ns() < end) {
		struct timespec t = { .tv_nsec = next_random(&seed) % 2000000 };

		nanosleep(&t, NULL);
		i = (int)(next_random(&seed) % (unsigned)processes);
		assert_int_equal(kill(pids[i], SIGKILL), 0);
		assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
		kills++;
		/* Whatever it was in the middle of, the set works: a token comes by. */
		if (kills % 8 == 0) {
			began = now_ns();
			assert_int_equal(op1_timed(id, 0, -1, SEM_UNDO, 999999999), 0);
			worst = now_ns() - began > worst ? now_ns() - began : worst;
			assert_int_equal(op1(id, 0, 1, SEM_UNDO), 0);
		}
		pids[i] = start(id, next_random(&seed));
	}
	rounds = atomic_load(&shared->rounds);
	for (i = 0; i < processes; i++)
		kill(pids[i], SIGKILL);
	for (i = 0; i < processes; i++)
		waitpid(pids[i], NULL, 0);
	printf("# %d killed, %lu rounds, longest wait for a token %ld us\n", kills, rounds,
	       (long)(worst / 1000));
	assert_int_equal(atomic_load(&shared->wrong), 0);
	assert_int_equal(hl_sem_ctl(id, 0, GETVAL, NULL), TOKENS);
	assert_int_equal(hl_sem_ctl(id, 1, GETVAL, NULL), TOKENS);
	assert_int_equal(hl_sem_ctl(id, 2, GETVAL, NULL), 1);
	for (i = 0; i < 4; i++) {
		assert_int_equal(hl_sem_ctl(id, i, GETNCNT, NULL), 0);
		assert_int_equal(hl_sem_ctl(id, i, GETZCNT, NULL), 0);
	}
	assert_int_equal(hl_sem_ctl(id, 0, IPC_RMID, NULL), 0);
}

/* Random bytes all over a set, for ever. */
static void scribble(int id, unsigned state)
{
	struct hl_ipc_object *object;
	volatile unsigned char *bytes;
	struct hl_sem_places at;

	if (hl_ipc_find(HL_IPC_SEM, id, &object))
		_exit(1);
	at = hl_sem_places(object->n);
	bytes = (volatile unsigned char *)object->perm;
	for (;;) {
		size_t where = next_random(&state) % 8 ? next_random(&state) % 2048
						       : next_random(&state) % at.ops;

		bytes[where] = (unsigned char)next_random(&state);
		if (next_random(&state) % 64 == 0)
			bytes[offsetof(struct hl_ipc_perm, live)] = 1;
	}
}

/* Nothing that it is told is true; all the same each call returns and nobody crashes. */
static void scribbled_over(void **unused)
{
	int64_t end = now_ns() + seconds * INT64_C(1000000000);
	unsigned long calls = 0;

	(void)unused;
	while (now_ns() < end) {
		int id = make_set(), i, status;
		pid_t scribbler = fork(), users[2];

		if (!scribbler)
			scribble(id, next_random(&seed));
		for (i = 0; i < 2; i++) {
			users[i] = fork();
			if (!users[i]) {
				unsigned state = seed + (unsigned)i, n = 3000;

				while (n--) {
					op1_timed(id, (int)(next_random(&state) % 5),
						  (int)(next_random(&state) % 5) - 2,
						  next_random(&state) & 1 ? SEM_UNDO : 0, 20000);
					if (n % 64 == 0)
						hl_sem_ctl(id, 0, GETNCNT, NULL);
					if (n % 128 == 0)
						hl_sem_ctl(id, 1, SETVAL, (void *)1);
				}
				exit(0);
			}
		}
		for (i = 0; i < 2; i++) {
			assert_int_equal(waitpid(users[i], &status, 0), users[i]);
			if (!WIFEXITED(status))
				kill(scribbler, SIGKILL);
			assert_true(WIFEXITED(status));
			calls += 3000;
		}
		kill(scribbler, SIGKILL);
		waitpid(scribbler, NULL, 0);
		hl_sem_ctl(id, 0, IPC_RMID, NULL);
	}
	printf("# %lu calls on what was scribbled over\n", calls);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed_at_random_points),
		cmocka_unit_test(scribbled_over),
	};

	if (argc > 1)
		seconds = atoi(argv[1]);
	if (argc > 2)
		seed = (unsigned)strtoul(argv[2], NULL, 0);
	if (argc > 3)
		processes = atoi(argv[3]);
	if (processes < 1 || processes > MOST)
		processes = MOST;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	return cmocka_run_group_tests_name("sysvipc_kill", tests, NULL, NULL);
}
