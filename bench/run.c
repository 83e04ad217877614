// SPDX-License-Identifier: MIT
/*
 * One run in a process of its own, which is killed when it takes too long.
 */
#include "bench/harness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/clock.h"

/* What the process tells its parent. */
struct result {
	int rc;
	uint64_t ns, done;
};

static void run_in_child(struct bench_run *run, const struct bench_row *row, int to)
{
	struct result result;

	/* Threads that spin are not to outlive a parent that was killed. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	result.rc = row->run(run, row);
	result.ns = run->ns;
	result.done = run->done;
	_exit(write(to, &result, sizeof(result)) != sizeof(result));
}

/* Waits for the result; what was read, 0: none in time, or it ended without one. */
static ssize_t await(int from, struct result *result, unsigned limit_ms)
{
	uint64_t end = bench_now() + limit_ms * UINT64_C(1000000);
	struct pollfd ready = { .fd = from, .events = POLLIN };

	for (;;) {
		uint64_t now = bench_now();
		int n = now < end ? poll(&ready, 1, (int)((end - now) / 1000000) + 1) : 0;

		if (n > 0)
			return read(from, result, sizeof(*result));
		if (!n || errno != EINTR)
			return -1;
	}
}

/* Puts into words how a run failed; -1. */
static int tell(char **why, ssize_t got, int status, unsigned limit_ms)
{
	int n;

	if (got < 0)
		n = asprintf(why, "did not end within %g s", limit_ms / 1000.0);
	else if (WIFSIGNALED(status))
		n = asprintf(why, "was ended by signal %d (%s)", WTERMSIG(status),
			     strsignal(WTERMSIG(status)));
	else
		n = asprintf(why, "ended without a result, exit status %d", WEXITSTATUS(status));
	if (n < 0)
		*why = NULL;
	return -1;
}

static int collect(struct bench_run *run, pid_t pid, int from, unsigned limit_ms, char **why)
{
	struct result result;
	ssize_t got = await(from, &result, limit_ms);
	int status = 0;

	if (got < 0)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (got != sizeof(result))
		return tell(why, got, status, limit_ms);
	if (result.rc) {
		if (asprintf(why, "%s", strerror(-result.rc)) < 0)
			*why = NULL;
		return -1;
	}
	run->ns = result.ns ? result.ns : 1;
	run->done = result.done ? result.done : 1;
	return 0;
}

int bench_run_row(struct bench_run *run, const struct bench_row *row, unsigned limit_ms, char **why)
{
	int ends[2], rc;
	pid_t pid;

	*why = NULL;
	if (pipe2(ends, O_CLOEXEC)) {
		*why = strdup(strerror(errno));
		return -1;
	}
	fflush(NULL);
	pid = fork();
	if (!pid) {
		close(ends[0]);
		run_in_child(run, row, ends[1]);
	}
	close(ends[1]);
	if (pid < 0) {
		*why = strdup(strerror(errno));
		rc = -1;
	} else {
		rc = collect(run, pid, ends[0], limit_ms, why);
	}
	close(ends[0]);
	return rc;
}
