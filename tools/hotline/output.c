// SPDX-License-Identifier: MIT
#include "output.h"

#include "complain.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

bool output_has_colour(enum colour_when when)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	if (when != COLOUR_AUTO)
		return when == COLOUR_ALWAYS;
	return isatty(STDOUT_FILENO) && !(no && *no) && term && strcmp(term, "dumb");
}

void output_terminal(unsigned *columns, unsigned *rows)
{
	struct winsize size;

	*columns = *rows = 0;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size))
		return;
	*columns = size.ws_col ? size.ws_col : 80;
	*rows = size.ws_row ? size.ws_row : 24;
}

/* The pager that the user has chosen; NULL: our own choice; "" or "cat": none. */
static const char *chosen_pager(void)
{
	const char *pager = getenv("HOTLINE_PAGER");

	return pager ? pager : getenv("PAGER");
}

/* The environment of the pager: less shows colours and leaves at once when all
 * fits on the screen, unless the user has told it otherwise. */
static char **pager_environment(void)
{
	static char less[] = "LESS=FRX";
	size_t n = 0;
	char **with;

	while (environ[n])
		n++;
	with = calloc(n + 2, sizeof(*with));
	if (with)
		memcpy(with, environ, n * sizeof(*with));
	if (with && !getenv("LESS"))
		with[n] = less;
	return with;
}

/* Starts the pager with `from` as its standard input.  Its pid, or 0. */
static pid_t spawn_pager(int from)
{
	static char sh[] = "sh", c[] = "-c", less[] = "less", frx[] = "-FRX";
	const char *chosen = chosen_pager();
	char *own[] = { less, frx, NULL };
	char *by_shell[] = { sh, c, (char *)chosen, NULL };
	char **environment = pager_environment();
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t usual;
	pid_t pid = 0;

	if (!environment)
		return 0;
	sigemptyset(&usual);
	sigaddset(&usual, SIGPIPE);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigdefault(&attributes, &usual);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, from, STDIN_FILENO);
	if (posix_spawnp(&pid, chosen ? sh : less, &actions, &attributes,
			 chosen ? by_shell : own, environment))
		pid = 0;
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	free(environment);
	return pid;
}

void output_open(struct output *output, bool want_pager)
{
	const char *chosen = chosen_pager();
	int ends[2];

	*output = (struct output){ .fd = STDOUT_FILENO };
	if (!want_pager || !isatty(STDOUT_FILENO) ||
	    (chosen && (!*chosen || !strcmp(chosen, "cat"))) || pipe2(ends, O_CLOEXEC))
		return;
	output->pager = spawn_pager(ends[0]);
	close(ends[0]);
	if (!output->pager) {
		close(ends[1]);
		return;
	}
	output->fd = ends[1];
	/* Keys that interrupt are for the pager while it is there. */
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
}

int output_write(void *to, const char *bytes, size_t n)
{
	struct output *output = to;

	while (n && !output->error) {
		ssize_t written = write(output->fd, bytes, n);

		if (written < 0 && errno != EINTR)
			output->error = -errno;
		if (written > 0) {
			bytes += written;
			n -= written;
		}
	}
	return output->error;
}

static int close_pager(struct output *output)
{
	int status;

	close(output->fd);
	while (waitpid(output->pager, &status, 0) < 0) {
		if (errno != EINTR)
			return 0;
	}
	if (!WIFEXITED(status) || (WEXITSTATUS(status) != 126 && WEXITSTATUS(status) != 127))
		return 0;
	complain("the pager \"%s\" cannot be run; set HOTLINE_PAGER, or use --no-pager",
		 chosen_pager());
	return -1;
}

int output_close(struct output *output)
{
	if (output->pager && close_pager(output))
		return -1;
	/* A file system can have kept the failure for the end. */
	if (!output->pager && !output->error && close(STDOUT_FILENO) && errno != EBADF)
		output->error = -errno;
	if (!output->error || output->error == -EPIPE)
		return 0;
	complain("writing the output: %s", strerror(-output->error));
	return -1;
}
