/* SPDX-License-Identifier: MIT */
/*
 * Processes that send to and receive from one queue and are killed at random points; afterwards the
 * queue holds what it says, message by message. In the second test a neighbour writes random bytes
 * into the file meanwhile: nobody crashes or hangs.
 *
 *	stress-sysvipc_msg_kill [SECONDS [SEED [PROCESSES]]]
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "sysvipc/msg.h"

#define MOST 256
#define BYTES 300

static int seconds = 4, processes = 32;
static unsigned seed = 1;

struct message {
	long type;
	uint32_t check, size;
	unsigned char text[BYTES];
};

struct shared {
	_Atomic(unsigned long) rounds;
	_Atomic(int) wrong;
};
static struct shared *shared;

static unsigned next_random(unsigned *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static uint32_t check_of(const struct message *m)
{
	uint32_t sum = (uint32_t)m->type * 31 + m->size;

	for (uint32_t i = 0; i < m->size && i < BYTES; i++)
		sum = sum * 33 + m->text[i];
	return sum;
}

static int send(int id, unsigned *state, int flags)
{
	struct message m = { .type = 1 + next_random(state) % 4,
			     .size = next_random(state) % BYTES };

	for (uint32_t i = 0; i < m.size; i++)
		m.text[i] = (unsigned char)(i * m.size);
	m.check = check_of(&m);
	return hl_msg_snd(id, &m, 8 + m.size, flags);
}

static int receive(int id, long type, int flags)
{
	struct message m;
	ssize_t n = hl_msg_rcv(id, &m, sizeof(m) - sizeof(long), type, flags);

	if (n >= 0 && (n != 8 + (ssize_t)m.size || m.check != check_of(&m)))
		return -EPROTO;
	return n < 0 ? (int)n : 0;
}

static void live(int id, unsigned state, bool scribbled)
{
	for (;;) {
		/* Mostly without waiting: or all would soon wait for each other. */
		int flags = next_random(&state) % 4 ? IPC_NOWAIT : 0;
		long type = (long)(next_random(&state) % 7) - 3;
		int err = next_random(&state) % 2 ? send(id, &state, flags)
						  : receive(id, type, flags);

		if (err == -EPROTO && !scribbled)
			atomic_fetch_add(&shared->wrong, 1);
		if (err == -EIDRM && !scribbled)
			_exit(0);
		atomic_fetch_add(&shared->rounds, 1);
	}
}

static pid_t start(int id, unsigned state, bool scribbled)
{
	pid_t pid = fork();

	if (!pid) {
		alarm((unsigned)seconds + 60);
		live(id, state, scribbled);
	}
	return pid;
}

/* Kills one after the other and starts another in its place. */
static void kill_for_a_while(int id, bool scribbled, int *crashed)
{
	int64_t end = now_ns() + seconds * INT64_C(1000000000);
	pid_t pid[MOST];
	unsigned state = seed;
	int status;

	for (int i = 0; i < processes; i++)
		pid[i] = start(id, next_random(&state), scribbled);
	while (now_ns() < end) {
		int i = (int)(next_random(&state) % (unsigned)processes);
		struct timespec nap = { .tv_nsec = next_random(&state) % 1000000 };

		nanosleep(&nap, NULL);
		kill(pid[i], SIGKILL);
		waitpid(pid[i], &status, 0);
		*crashed += WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL;
		pid[i] = start(id, next_random(&state), scribbled);
	}
	for (int i = 0; i < processes; i++) {
		kill(pid[i], SIGKILL);
		waitpid(pid[i], &status, 0);
		*crashed += WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL;
	}
}

static void killed_at_random(void **state)
{
	int id = hl_msg_get(IPC_PRIVATE, 0600), crashed = 0;
	unsigned random = seed;
	struct msqid_ds stat;
	int64_t begun;

	(void)state;
	assert_true(id >= 0);
	kill_for_a_while(id, false, &crashed);
	assert_int_equal(crashed, 0);
	assert_int_equal(atomic_load(&shared->wrong), 0);

	/* The next one that comes is not kept waiting. */
	begun = now_ns();
	receive(id, 0, IPC_NOWAIT);
	assert_true(now_ns() - begun < 100000000);
	assert_int_equal(hl_msg_ctl(id, IPC_STAT, &stat), 0);
	for (unsigned long left = stat.msg_qnum; left; left--)
		assert_int_equal(receive(id, 0, IPC_NOWAIT), 0);
	assert_int_equal(receive(id, 0, IPC_NOWAIT), -ENOMSG);
	assert_int_equal(hl_msg_ctl(id, IPC_STAT, &stat), 0);
	assert_int_equal(stat.__msg_cbytes, 0);
	while (!send(id, &random, IPC_NOWAIT))
		;
	assert_int_equal(hl_msg_ctl(id, IPC_STAT, &stat), 0);
	assert_true(stat.__msg_cbytes > stat.msg_qbytes - 8 - BYTES);
	assert_int_equal(hl_msg_ctl(id, IPC_RMID, NULL), 0);
	print_message("# %lu operations\n", atomic_load(&shared->rounds));
}

/* All but the head, which says which object it is, and that it lives. */
static void scribble(int id, unsigned random)
{
	struct hl_ipc_object *object;
	size_t from = offsetof(struct hl_msg_queue, head);

	if (hl_ipc_find(HL_IPC_MSG, id, &object))
		_exit(1);
	for (;;) {
		size_t span = next_random(&random) % 4 ? 4096 : HL_MSG_FIRST + 65536 - from;
		volatile unsigned char *at = (unsigned char *)object->perm + from;

		at[next_random(&random) % span] = (unsigned char)next_random(&random);
		if (next_random(&random) % 64 == 0)
			usleep(1);
	}
}

static void scribbled_over(void **state)
{
	int id = hl_msg_get(IPC_PRIVATE, 0600), crashed = 0, status;
	pid_t scribbler = fork();
	int64_t begun = now_ns();

	(void)state;
	if (!scribbler)
		scribble(id, seed);
	kill_for_a_while(id, true, &crashed);
	kill(scribbler, SIGKILL);
	waitpid(scribbler, &status, 0);
	assert_int_equal(crashed, 0);
	assert_true(now_ns() - begun < (seconds + 20) * INT64_C(1000000000));
	hl_msg_ctl(id, IPC_RMID, NULL);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed_at_random),
		cmocka_unit_test(scribbled_over),
	};

	if (argc > 1)
		seconds = atoi(argv[1]);
	if (argc > 2)
		seed = (unsigned)atoi(argv[2]);
	if (argc > 3)
		processes = atoi(argv[3]) < MOST ? atoi(argv[3]) : MOST;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
