// SPDX-License-Identifier: MIT
/*
 * What it costs that the lock of an object lies beside what every operation reads (O3).
 */
#include "bench/experiments.h"
#include "bench/ipc.h"
#include "bench/ipc_sembench.h"

#include <errno.h>
#include <stddef.h>

/* A small field, so that the object's own lines count, and not the scheduler alone. */
#define FEW_THREADS 16
#define FEW_BATCH 8

static int run_sembench(struct bench_run *run, const struct bench_row *row)
{
	return bench_sembench_of(run, row->what, FEW_THREADS, FEW_BATCH);
}

struct game {
	const struct ipc_calls *calls;
	int id;
};

/* One process needs the lock all the time, the other only reads the head of the set. */
static int side_beside(void *arg, unsigned side, uint64_t loops)
{
	const struct game *game = arg;
	struct sembuf up[] = { { 0, 1, 0 }, { 1, 1, 0 } }, down[] = { { 0, -1, 0 }, { 1, -1, 0 } };
	struct sembuf zero = { 2, 0, 0 };
	int rc = 0;

	for (uint64_t i = 0; i < loops; i += 2) {
		if (side) {
			rc |= game->calls->semop(game->id, &zero, 1);
			rc |= game->calls->semop(game->id, &zero, 1);
		} else {
			rc |= game->calls->semop(game->id, up, 2);
			rc |= game->calls->semop(game->id, down, 2);
		}
	}
	return rc ? -EPROTO : 0;
}

static int run_beside(struct bench_run *run, const struct bench_row *row)
{
	struct game game = { .calls = row->what };
	int rc;

	game.id = game.calls->semget(IPC_PRIVATE, 3, 0600);
	if (game.id < 0)
		return -errno;
	rc = ipc_sides(run, 2, side_beside, &game);
	run->done = run->loops;
	game.calls->semctl(game.id, 0, IPC_RMID);
	return rc;
}

static void describe(struct bench_experiment *experiment, const struct bench_machine *machine)
{
	struct bench_scenario *scenario;

	(void)machine;
	scenario = bench_add_scenario(experiment, "beside",
				      "one process locks the set, one only reads its head; the "
				      "slower one",
				      &bench_ns_per_call, 2);
	ipc_add_rows(experiment, scenario, run_beside, true, true);
	scenario = bench_add_scenario(experiment, "sembench",
				      "16 threads that sleep, woken 8 at a time: wake-ups",
				      &bench_operations_per_second, 2);
	ipc_add_rows(experiment, scenario, run_sembench, true, true);
}

const struct bench_experiment bench_ipc_perm = {
	.name = "ipc-perm",
	.origin = "O3",
	.title = "the lock of a System V object on a line of its own, and beside what is read",
	.describe = describe,
};
