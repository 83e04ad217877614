// SPDX-License-Identifier: MIT
#include "bench/ipc.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hotline/cpu.h>

#include "bench/clock.h"

/* The part of the loops that goes before, untimed. */
#define WARM_UP 8

const struct ipc_calls ipc_kernel = {
	.semget = semget,
	.semop = semop,
	.semtimedop = semtimedop,
	.semctl = semctl,
	.msgget = msgget,
	.msgsnd = msgsnd,
	.msgrcv = msgrcv,
	.msgctl = msgctl,
};

const char *ipc_why_not(const struct ipc_calls *calls)
{
	int id = calls->semget(IPC_PRIVATE, 1, 0600);

	if (id < 0)
		return errno == ENOSYS ? "this kernel has no System V IPC"
				       : "no semaphores can be made: see ipcs -l and hotline ipcs";
	calls->semctl(id, 0, IPC_RMID);
	return NULL;
}

static void meet(struct ipc_shared *shared, unsigned all)
{
	/* Release and acquire: what each has prepared is there for the others. */
	atomic_fetch_add_explicit(&shared->ready, 1, memory_order_release);
	while (atomic_load_explicit(&shared->ready, memory_order_acquire) < all &&
	       !atomic_load_explicit(&shared->error, memory_order_relaxed))
		bench_relax();
}

struct sides {
	struct ipc_shared *shared;
	struct bench_run *run;
	unsigned n;
	ipc_side_fn side;
	void *arg;
};

static int run_side(const struct sides *sides, unsigned i)
{
	struct ipc_shared *shared = sides->shared;
	int rc = hl_cpu_pin(sides->run->processor[i]);
	uint64_t begun;

	meet(shared, sides->n);
	if (!rc)
		rc = sides->side(sides->arg, i, sides->run->loops / WARM_UP + 1);
	if (rc)
		atomic_store_explicit(&shared->error, rc, memory_order_relaxed);
	meet(shared, 2 * sides->n);
	begun = bench_now();
	if (!rc)
		rc = sides->side(sides->arg, i, sides->run->loops);
	atomic_store_explicit(&shared->side[i].ns, bench_now() - begun, memory_order_relaxed);
	if (rc)
		atomic_store_explicit(&shared->error, rc, memory_order_relaxed);
	return rc;
}

int ipc_sides(struct bench_run *run, unsigned n, ipc_side_fn side, void *arg)
{
	struct sides sides = { .run = run, .n = n, .side = side, .arg = arg };
	int rc;

	sides.shared = mmap(NULL, sizeof(*sides.shared), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (sides.shared == MAP_FAILED)
		return -errno;
	for (unsigned i = 1; i < n; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return -errno;
		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			_exit(run_side(&sides, i) != 0);
		}
	}
	rc = run_side(&sides, 0);
	for (unsigned i = 1; i < n; i++) {
		int status;

		if (wait(&status) < 0 || status)
			rc = rc ? rc : -EPROTO;
	}
	for (unsigned i = 0; i < n; i++) {
		uint64_t ns = atomic_load_explicit(&sides.shared->side[i].ns, memory_order_relaxed);

		if (ns > run->ns)
			run->ns = ns;
	}
	return rc;
}

static void add(struct bench_experiment *experiment, struct bench_scenario *scenario,
		const char *name, enum bench_kind kind, bench_fn run, const struct ipc_calls *calls)
{
	bench_add_row(experiment, scenario,
		      &(struct bench_row){
			      .name = name,
			      .kind = kind,
			      .run = run,
			      .what = calls,
			      .why_not = (char *)ipc_why_not(calls),
		      });
}

void ipc_add_rows(struct bench_experiment *experiment, struct bench_scenario *scenario,
		  bench_fn run, bool packed, bool kernel)
{
	add(experiment, scenario, "hotline", BENCH_OURS, run, &ipc_hotline);
	if (packed)
		add(experiment, scenario, "packed", BENCH_AS_IT_WAS, run, &ipc_packed);
	if (kernel)
		add(experiment, scenario, "kernel", BENCH_PEER, run, &ipc_kernel);
}
