// SPDX-License-Identifier: MIT
/*
 * hotline run: a program with Hotline's libraries in front of the system's.
 */
#include "command.h"

#include "complain.h"
#include "sysvipc.h"

#include <argp.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* As a shell and env(1) have it. */
#define STATUS_CANNOT_RUN 126
#define STATUS_NOT_FOUND 127

enum key { KEY_SYSVIPC = 0x100, KEY_NAMESPACE, KEY_RAW };

struct options {
	bool sysvipc, raw;
	const char *space;
	char **program; /* and its arguments; NULL: none was given */
};

static const struct argp_option argp_options[] = {
	{ .name = "sysvipc",
	  .key = KEY_SYSVIPC,
	  .doc = "System V semaphores, message queues and shared memory by Hotline's library, not "
		 "by the kernel" },
	{ .name = "namespace",
	  .key = KEY_NAMESPACE,
	  .arg = "DIR",
	  .doc = "Where its objects are; programs with the same DIR share them (one of your own "
		 "below /dev/shm)" },
	{ .name = "raw-syscalls",
	  .key = KEY_RAW,
	  .doc = "Also those calls that the program makes without the C library" },
	{ 0 }
};

static const char doc[] =
	"Runs PROGRAM with Hotline's System V IPC. Nothing is rebuilt, and what the program starts "
	"has it as well."
	"\v"
	"Examples:\n"
	"  hotline run --sysvipc fakeroot-sysv dpkg-buildpackage\n"
	"  hotline run --sysvipc --namespace /dev/shm/test postgres -D data\n"
	"  hotline ipc check postgres                   what of it will be covered?\n"
	"\n"
	"Exit status: PROGRAM's; 2 wrong usage; 126 PROGRAM cannot be run, or not with the library; "
	"127 there is no such PROGRAM.";

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case KEY_SYSVIPC:
		options->sysvipc = true;
		return 0;
	case KEY_NAMESPACE:
		options->space = arg;
		return 0;
	case KEY_RAW:
		options->raw = true;
		return 0;
	case ARGP_KEY_ARG:
		/* All that follows is the program's. */
		options->program = state->argv + state->next - 1;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_END:
		if (!options->sysvipc)
			argp_error(state, "say with what to run it: --sysvipc");
		if (!options->program)
			argp_error(state, "a PROGRAM is missing");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = argp_options,
	.parser = parse,
	.args_doc = "--sysvipc PROGRAM [ARGUMENT...]",
	.doc = doc,
};

/* In front of what is preloaded already, unless it is there. */
static int preload(const char *library)
{
	const char *before = getenv("LD_PRELOAD");
	char *all = NULL;
	int rc;

	/* The dynamic linker takes both for the end of a name. */
	if (strpbrk(library, " :")) {
		complain("%s: a path with a space or a colon cannot be preloaded; install hotline "
			 "elsewhere",
			 library);
		return -1;
	}
	if (!before || !*before)
		return setenv("LD_PRELOAD", library, 1);
	if (strstr(before, library))
		return 0;
	if (asprintf(&all, "%s:%s", library, before) < 0)
		return -1;
	rc = setenv("LD_PRELOAD", all, 1);
	free(all);
	return rc;
}

/* The program may change its directory. */
static int choose_namespace(const char *directory)
{
	char *path;
	int rc;

	if (mkdir(directory, 0700) && errno != EEXIST) {
		complain("%s: %s", directory, strerror(errno));
		return -1;
	}
	path = realpath(directory, NULL);
	if (!path) {
		complain("%s: %s", directory, strerror(errno));
		return -1;
	}
	rc = setenv("HOTLINE_SYSVIPC_DIR", path, 1);
	free(path);
	return rc;
}

static int prepare(const struct options *options)
{
	char *library = sysvipc_library();
	int rc = library ? preload(library) : -1;

	free(library);
	if (!rc && options->space)
		rc = choose_namespace(options->space);
	if (!rc && options->raw)
		rc = setenv("HOTLINE_SYSVIPC_RAW", "1", 1);
	return rc;
}

int run_command(int argc, char **argv)
{
	struct options options = { 0 };
	int error;

	if (argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &options))
		return STATUS_USAGE;
	if (prepare(&options))
		return STATUS_CANNOT_RUN;
	/* main() ignores it for the command's own sake. */
	signal(SIGPIPE, SIG_DFL);
	execvp(options.program[0], options.program);
	error = errno;
	complain("%s: %s", options.program[0], strerror(error));
	return error == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_RUN;
}
