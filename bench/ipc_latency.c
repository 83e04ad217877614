// SPDX-License-Identifier: MIT
/*
 * What one operation of System V IPC costs: with nobody else about, beside another process, and
 * when two answer each other.
 */
#include "bench/experiments.h"
#include "bench/ipc.h"

#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/clock.h"

/* Semaphores that one call of `sixteen` changes. */
#define SIXTEEN 16
#define MESSAGE_BYTES 64
#define WARM_UP 8

struct message {
	long type;
	char text[MESSAGE_BYTES];
};

static const struct message blank = { .type = 1 };

static void *shared_page(void)
{
	void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

/* ---- One process, one kind of call ---- */

/* Up, then down: ends as it began. */
struct pair {
	const struct ipc_calls *calls;
	int id;
	unsigned n;
	struct sembuf up[SIXTEEN], down[SIXTEEN];
};

static int up_and_down(struct pair *pair, uint64_t loops)
{
	int rc = 0;

	for (uint64_t i = 0; i < loops; i += 2) {
		rc |= pair->calls->semop(pair->id, pair->up, pair->n);
		rc |= pair->calls->semop(pair->id, pair->down, pair->n);
	}
	return rc ? -EPROTO : 0;
}

static void fill(struct pair *pair, unsigned first, unsigned n, short flags)
{
	pair->n = n;
	for (unsigned i = 0; i < n; i++) {
		pair->up[i] = (struct sembuf){ (unsigned short)(first + i), 1, flags };
		pair->down[i] = (struct sembuf){ (unsigned short)(first + i), -1, flags };
	}
}

static int run_pair(struct bench_run *run, const struct bench_row *row, unsigned n, short flags)
{
	struct pair pair = { .calls = row->what };
	uint64_t begun;
	int rc;

	fill(&pair, 0, n, flags);
	pair.id = pair.calls->semget(IPC_PRIVATE, (int)n, 0600);
	if (pair.id < 0)
		return -errno;
	rc = up_and_down(&pair, run->loops / WARM_UP + 2);
	begun = bench_now();
	if (!rc)
		rc = up_and_down(&pair, run->loops);
	run->ns = bench_now() - begun;
	run->done = (run->loops + 1) / 2 * 2;
	if (!rc && pair.calls->semctl(pair.id, 0, GETVAL))
		rc = -EPROTO;
	pair.calls->semctl(pair.id, 0, IPC_RMID);
	return rc;
}

static int run_uncontended(struct bench_run *run, const struct bench_row *row)
{
	return run_pair(run, row, 1, 0);
}

static int run_undo(struct bench_run *run, const struct bench_row *row)
{
	return run_pair(run, row, 1, SEM_UNDO);
}

static int run_sixteen(struct bench_run *run, const struct bench_row *row)
{
	return run_pair(run, row, SIXTEEN, 0);
}

static int run_posix(struct bench_run *run, const struct bench_row *row)
{
	sem_t *sem = shared_page();
	uint64_t begun;
	int rc = 0;

	(void)row;
	if (!sem || sem_init(sem, 1, 0))
		return -errno;
	begun = bench_now();
	for (uint64_t i = 0; i < run->loops; i += 2) {
		rc |= sem_post(sem);
		rc |= sem_wait(sem);
	}
	run->ns = bench_now() - begun;
	run->done = (run->loops + 1) / 2 * 2;
	return rc ? -EPROTO : 0;
}

static int run_exchange(struct bench_run *run, const struct bench_row *row)
{
	static _Atomic(unsigned) word;
	uint64_t begun = bench_now();

	(void)row;
	for (uint64_t i = 0; i < run->loops; i++)
		atomic_exchange_explicit(&word, (unsigned)i, memory_order_acq_rel);
	run->ns = bench_now() - begun;
	run->done = run->loops;
	return 0;
}

static int run_semget(struct bench_run *run, const struct bench_row *row)
{
	const struct ipc_calls *calls = row->what;
	key_t key = (key_t)(0x42000000 | ((unsigned)getpid() & 0xffffff));
	int id = calls->semget(key, 1, IPC_CREAT | 0600), odd = 0;
	uint64_t begun;

	if (id < 0)
		return -errno;
	calls->semget(key, 1, 0600);
	begun = bench_now();
	for (uint64_t i = 0; i < run->loops; i++)
		odd |= calls->semget(key, 1, 0600) ^ id;
	run->ns = bench_now() - begun;
	run->done = run->loops;
	calls->semctl(id, 0, IPC_RMID);
	return odd ? -EPROTO : 0;
}

/* ---- Two processes on two semaphores of a set ---- */

struct two {
	struct pair pair[2];
};

static int side_of_two(void *arg, unsigned side, uint64_t loops)
{
	struct two *two = arg;

	return up_and_down(&two->pair[side], loops);
}

static int run_some_of_two(struct bench_run *run, const struct bench_row *row, unsigned sides)
{
	const struct ipc_calls *calls = row->what;
	int id = calls->semget(IPC_PRIVATE, 2, 0600), rc;
	struct two two;

	if (id < 0)
		return -errno;
	for (unsigned i = 0; i < 2; i++) {
		two.pair[i] = (struct pair){ .calls = calls, .id = id };
		fill(&two.pair[i], i, 1, 0);
	}
	rc = ipc_sides(run, sides, side_of_two, &two);
	/* What a call costs each of them. */
	run->done = (run->loops + 1) / 2 * 2;
	if (!rc && (calls->semctl(id, 0, GETVAL) || calls->semctl(id, 1, GETVAL)))
		rc = -EPROTO;
	calls->semctl(id, 0, IPC_RMID);
	return rc;
}

static int run_two(struct bench_run *run, const struct bench_row *row)
{
	return run_some_of_two(run, row, 2);
}

static int run_one_of_two(struct bench_run *run, const struct bench_row *row)
{
	return run_some_of_two(run, row, 1);
}

static int side_of_two_posix(void *arg, unsigned side, uint64_t loops)
{
	sem_t *sem = (sem_t *)((char *)arg + side * 128);
	int rc = 0;

	for (uint64_t i = 0; i < loops; i += 2) {
		rc |= sem_post(sem);
		rc |= sem_wait(sem);
	}
	return rc ? -EPROTO : 0;
}

static int run_two_posix(struct bench_run *run, const struct bench_row *row)
{
	char *page = shared_page();

	(void)row;
	if (!page || sem_init((sem_t *)page, 1, 0) || sem_init((sem_t *)(page + 128), 1, 0))
		return -errno;
	run->done = (run->loops + 1) / 2 * 2;
	return ipc_sides(run, 2, side_of_two_posix, page);
}

/* ---- Two processes that answer each other; a loop is a round ---- */

struct game {
	const struct ipc_calls *calls;
	int id;
};

static int side_pingpong(void *arg, unsigned side, uint64_t loops)
{
	const struct game *game = arg;
	struct sembuf mine = { (unsigned short)side, -1, 0 };
	struct sembuf theirs = { (unsigned short)!side, 1, 0 };
	int rc = 0;

	for (uint64_t i = 0; i < loops && !rc; i++) {
		if (side)
			rc |= game->calls->semop(game->id, &mine, 1);
		rc |= game->calls->semop(game->id, &theirs, 1);
		if (!side)
			rc |= game->calls->semop(game->id, &mine, 1);
	}
	return rc ? -EPROTO : 0;
}

static int run_pingpong(struct bench_run *run, const struct bench_row *row)
{
	struct game game = { .calls = row->what };
	int rc;

	game.id = game.calls->semget(IPC_PRIVATE, 2, 0600);
	if (game.id < 0)
		return -errno;
	rc = ipc_sides(run, 2, side_pingpong, &game);
	run->done = run->loops;
	game.calls->semctl(game.id, 0, IPC_RMID);
	return rc;
}

static int side_posix_pingpong(void *arg, unsigned side, uint64_t loops)
{
	sem_t *mine = (sem_t *)((char *)arg + side * 128);
	sem_t *theirs = (sem_t *)((char *)arg + !side * 128);
	int rc = 0;

	for (uint64_t i = 0; i < loops && !rc; i++) {
		if (side)
			rc |= sem_wait(mine);
		rc |= sem_post(theirs);
		if (!side)
			rc |= sem_wait(mine);
	}
	return rc ? -EPROTO : 0;
}

static int run_posix_pingpong(struct bench_run *run, const struct bench_row *row)
{
	char *page = shared_page();

	(void)row;
	if (!page || sem_init((sem_t *)page, 1, 0) || sem_init((sem_t *)(page + 128), 1, 0))
		return -errno;
	run->done = run->loops;
	return ipc_sides(run, 2, side_posix_pingpong, page);
}

static int side_line(void *arg, unsigned side, uint64_t loops)
{
	_Atomic(uint64_t) *step = arg;
	uint64_t at = atomic_load_explicit(step, memory_order_relaxed) / 2 * 2;

	for (uint64_t i = 0; i < loops; i++) {
		if (side) {
			while (atomic_load_explicit(step, memory_order_acquire) % 2 == 0)
				bench_relax();
			/* Alone with the line: the other waits for the answer. */
			atomic_fetch_add_explicit(step, 1, memory_order_release);
		} else {
			atomic_store_explicit(step, ++at, memory_order_release);
			++at;
			while (atomic_load_explicit(step, memory_order_acquire) != at)
				bench_relax();
		}
	}
	return 0;
}

static int run_line(struct bench_run *run, const struct bench_row *row)
{
	void *page = shared_page();

	(void)row;
	run->done = run->loops;
	return page ? ipc_sides(run, 2, side_line, page) : -ENOMEM;
}

/* ---- Messages ---- */

static int run_message(struct bench_run *run, const struct bench_row *row)
{
	const struct ipc_calls *calls = row->what;
	int id = calls->msgget(IPC_PRIVATE, 0600);
	struct message out = blank, in;
	uint64_t begun = 0, wrong = 0;

	if (id < 0)
		return -errno;
	for (uint64_t i = 0; i < run->loops + run->loops / WARM_UP; i++) {
		if (i == run->loops / WARM_UP)
			begun = bench_now();
		memcpy(out.text, &i, sizeof(i));
		wrong += calls->msgsnd(id, &out, MESSAGE_BYTES, 0) != 0;
		wrong += calls->msgrcv(id, &in, MESSAGE_BYTES, 0, 0) != MESSAGE_BYTES;
		wrong += memcmp(in.text, &i, sizeof(i)) != 0;
	}
	run->ns = bench_now() - begun;
	run->done = run->loops;
	calls->msgctl(id, IPC_RMID, NULL);
	return wrong ? -EPROTO : 0;
}

static mqd_t open_mq(unsigned n)
{
	struct mq_attr attr = { .mq_maxmsg = 8, .mq_msgsize = MESSAGE_BYTES };
	char name[64];
	mqd_t mq;

	snprintf(name, sizeof(name), "/hotline-bench-%d-%u", getpid(), n);
	mq = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attr);
	if (mq != (mqd_t)-1)
		mq_unlink(name);
	return mq;
}

static int run_mq(struct bench_run *run, const struct bench_row *row)
{
	mqd_t mq = open_mq(0);
	char out[MESSAGE_BYTES] = "", in[MESSAGE_BYTES];
	uint64_t begun = 0, wrong = 0;

	(void)row;
	if (mq == (mqd_t)-1)
		return -errno;
	for (uint64_t i = 0; i < run->loops + run->loops / WARM_UP; i++) {
		if (i == run->loops / WARM_UP)
			begun = bench_now();
		wrong += mq_send(mq, out, MESSAGE_BYTES, 0) != 0;
		wrong += mq_receive(mq, in, MESSAGE_BYTES, NULL) != MESSAGE_BYTES;
	}
	run->ns = bench_now() - begun;
	run->done = run->loops;
	return wrong ? -EPROTO : 0;
}

static int side_messages(void *arg, unsigned side, uint64_t loops)
{
	const struct game *game = arg;
	const struct ipc_calls *calls = game->calls;
	struct message out = blank, in;
	long mine = 1 + side;

	out.type = 1 + !side;
	for (uint64_t i = 0; i < loops; i++) {
		if (side && calls->msgrcv(game->id, &in, MESSAGE_BYTES, mine, 0) != MESSAGE_BYTES)
			return -EPROTO;
		if (calls->msgsnd(game->id, &out, MESSAGE_BYTES, 0))
			return -EPROTO;
		if (!side && calls->msgrcv(game->id, &in, MESSAGE_BYTES, mine, 0) != MESSAGE_BYTES)
			return -EPROTO;
	}
	return 0;
}

static int run_messages(struct bench_run *run, const struct bench_row *row)
{
	struct game game = { .calls = row->what };
	int rc;

	game.id = game.calls->msgget(IPC_PRIVATE, 0600);
	if (game.id < 0)
		return -errno;
	rc = ipc_sides(run, 2, side_messages, &game);
	run->done = run->loops;
	game.calls->msgctl(game.id, IPC_RMID, NULL);
	return rc;
}

static int side_mqs(void *arg, unsigned side, uint64_t loops)
{
	mqd_t *mq = arg;
	char text[MESSAGE_BYTES] = "";

	for (uint64_t i = 0; i < loops; i++) {
		if (side && mq_receive(mq[1], text, MESSAGE_BYTES, NULL) < 0)
			return -EPROTO;
		if (mq_send(mq[!side], text, MESSAGE_BYTES, 0))
			return -EPROTO;
		if (!side && mq_receive(mq[0], text, MESSAGE_BYTES, NULL) < 0)
			return -EPROTO;
	}
	return 0;
}

static int run_mqs(struct bench_run *run, const struct bench_row *row)
{
	mqd_t mq[2] = { open_mq(0), open_mq(1) };

	(void)row;
	if (mq[0] == (mqd_t)-1 || mq[1] == (mqd_t)-1)
		return -errno;
	run->done = run->loops;
	return ipc_sides(run, 2, side_mqs, mq);
}

/* ---- */

static const char *mq_why_not(void)
{
	mqd_t mq = open_mq(9);

	if (mq == (mqd_t)-1)
		return "no POSIX message queue can be made here";
	mq_close(mq);
	return NULL;
}

static void add_row(struct bench_experiment *experiment, struct bench_scenario *scenario,
		    const char *name, enum bench_kind kind, bench_fn run, const char *why_not)
{
	bench_add_row(experiment, scenario,
		      &(struct bench_row){
			      .name = name,
			      .kind = kind,
			      .run = run,
			      .why_not = (char *)why_not,
		      });
}

static void describe(struct bench_experiment *experiment, const struct bench_machine *machine)
{
	const struct {
		const char *name, *title;
		unsigned threads;
		bench_fn run, posix, limit;
		const char *posix_name, *limit_name;
	} list[] = {
		{ "uncontended", "a semop up or down, nobody else about", 1, run_uncontended,
		  run_posix, run_exchange, "posix-sem", "exchange" },
		{ "undo", "the same with SEM_UNDO", 1, run_undo, NULL, run_exchange, NULL,
		  "exchange" },
		{ "sixteen", "a semop over 16 semaphores", 1, run_sixteen, NULL, NULL, NULL, NULL },
		{ "two-semaphores", "two processes on two semaphores of a set, a semop of each", 2,
		  run_two, run_two_posix, NULL, "posix-sem", NULL },
		{ "pingpong", "two processes that wait for each other's semop, a round", 2,
		  run_pingpong, run_posix_pingpong, run_line, "posix-sem", "ping-pong" },
		{ "message", "64 bytes sent and received, nobody else about", 1, run_message,
		  run_mq, run_exchange, "posix-mq", "exchange" },
		{ "message-pingpong", "64 bytes there and back between two processes", 2,
		  run_messages, run_mqs, run_line, "posix-mq", "ping-pong" },
		{ "semget", "the id of a set that exists, by its key", 1, run_semget, NULL, NULL,
		  NULL, NULL },
	};

	(void)machine;
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		struct bench_scenario *scenario =
			bench_add_scenario(experiment, list[i].name, list[i].title,
					   &bench_ns_per_call, list[i].threads);

		ipc_add_rows(experiment, scenario, list[i].run, false, true);
		if (list[i].run == run_two)
			bench_add_row(experiment, scenario,
				      &(struct bench_row){
					      .name = "hotline-alone",
					      .kind = BENCH_OURS,
					      .run = run_one_of_two,
					      .what = &ipc_hotline,
					      .why_not = (char *)ipc_why_not(&ipc_hotline),
				      });
		if (list[i].posix)
			add_row(experiment, scenario, list[i].posix_name, BENCH_PEER, list[i].posix,
				list[i].posix == run_mq || list[i].posix == run_mqs ? mq_why_not()
										    : NULL);
		if (list[i].limit)
			add_row(experiment, scenario, list[i].limit_name, BENCH_LIMIT,
				list[i].limit, NULL);
	}
}

const struct bench_experiment bench_ipc_latency = {
	.name = "ipc-latency",
	.origin = "O3",
	.title = "what one operation of System V IPC costs",
	.describe = describe,
};
