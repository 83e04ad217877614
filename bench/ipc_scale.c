// SPDX-License-Identifier: MIT
/*
 * Semaphores under many: the patterns of the programs that the kernel's own changes were measured
 * with (sem-scalebench, sembench), written anew.
 */
#include "bench/experiments.h"
#include "bench/ipc.h"
#include "bench/ipc_sembench.h"

#include <errno.h>
#include <string.h>

/* One call in so many of `complex` takes in the semaphores of both processes. */
#define COMPLEX_EVERY 16

struct game {
	const struct ipc_calls *calls;
	int id;
	/* Calls that a loop makes. */
	unsigned calls_per_loop;
};

static int side_zero(void *arg, unsigned side, uint64_t loops)
{
	const struct game *game = arg;
	struct sembuf zero = { (unsigned short)side, 0, 0 };
	int rc = 0;

	for (uint64_t i = 0; i < loops; i++)
		rc |= game->calls->semop(game->id, &zero, 1);
	return rc ? -EPROTO : 0;
}

static int side_ping_pong(void *arg, unsigned side, uint64_t loops)
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

static int side_complex(void *arg, unsigned side, uint64_t loops)
{
	const struct game *game = arg;
	struct sembuf zero[] = { { (unsigned short)side, 0, 0 }, { (unsigned short)!side, 0, 0 } };
	int rc = 0;

	for (uint64_t i = 0; i < loops; i++)
		rc |= game->calls->semop(game->id, zero, i % COMPLEX_EVERY ? 1 : 2);
	return rc ? -EPROTO : 0;
}

static int run_sides(struct bench_run *run, const struct bench_row *row, ipc_side_fn side,
		     unsigned calls_per_loop)
{
	struct game game = { .calls = row->what };
	int rc;

	game.id = game.calls->semget(IPC_PRIVATE, 2, 0600);
	if (game.id < 0)
		return -errno;
	rc = ipc_sides(run, 2, side, &game);
	run->done = run->loops * calls_per_loop;
	if (!rc &&
	    (game.calls->semctl(game.id, 0, GETVAL) || game.calls->semctl(game.id, 1, GETVAL)))
		rc = -EPROTO;
	game.calls->semctl(game.id, 0, IPC_RMID);
	return rc;
}

static int run_zero(struct bench_run *run, const struct bench_row *row)
{
	return run_sides(run, row, side_zero, 2);
}

static int run_ping_pong(struct bench_run *run, const struct bench_row *row)
{
	return run_sides(run, row, side_ping_pong, 4);
}

static int run_complex(struct bench_run *run, const struct bench_row *row)
{
	return run_sides(run, row, side_complex, 2);
}

static int run_sembench(struct bench_run *run, const struct bench_row *row)
{
	return bench_sembench(run, row->what);
}

static int run_futexes(struct bench_run *run, const struct bench_row *row)
{
	(void)row;
	return bench_sembench(run, NULL);
}

static void describe(struct bench_experiment *experiment, const struct bench_machine *machine)
{
	const struct {
		const char *name, *title;
		bench_fn run;
	} list[] = {
		{ "wait-for-zero", "two processes, each looks whether its semaphore is zero",
		  run_zero },
		{ "ping-pong", "two processes that wait for each other, operations",
		  run_ping_pong },
		{ "complex", "as wait-for-zero, but one call in 16 looks at both semaphores",
		  run_complex },
	};
	struct bench_scenario *scenario;

	(void)machine;
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		scenario = bench_add_scenario(experiment, list[i].name, list[i].title,
					      &bench_operations_per_second, 2);
		ipc_add_rows(experiment, scenario, list[i].run, false, true);
	}
	scenario = bench_add_scenario(experiment, "sembench",
				      "1024 threads that sleep, woken 512 at a time: wake-ups",
				      &bench_operations_per_second, 1);
	if (scenario) {
		scenario->loops = 100 * SEMBENCH_BATCH;
		scenario->quick_loops = 20 * SEMBENCH_BATCH;
	}
	ipc_add_rows(experiment, scenario, run_sembench, false, true);
	bench_add_row(experiment, scenario,
		      &(struct bench_row){
			      .name = "futex-each", .kind = BENCH_PEER, .run = run_futexes });
}

const struct bench_experiment bench_ipc_scale = {
	.name = "ipc-scale",
	.origin = "O3",
	.title = "semaphores under many processes and threads",
	.describe = describe,
};
