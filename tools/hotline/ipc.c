// SPDX-License-Identifier: MIT
/*
 * hotline ipc check: what of a program the library will not reach.
 */
#include "command.h"

#include "complain.h"
#include "sysvipc.h"

#include <argp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct options {
	char **programs; /* NULL at the end */
	bool check;
};

static const char doc[] =
	"check: will PROGRAM be covered by hotline run --sysvipc? Says which calls it makes, and "
	"what stands in the way: linked statically, setuid, calls without the C library."
	"\v"
	"Examples:\n"
	"  hotline ipc check fakeroot-sysv postgres\n"
	"\n"
	"Exit status: 0 covered; 1 not, or not all of it; 2 wrong usage or no such PROGRAM.";

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		if (!options->check) {
			if (strcmp(arg, "check"))
				argp_error(state, "no such thing to do: %s", arg);
			options->check = true;
			return 0;
		}
		options->programs = state->argv + state->next - 1;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_END:
		if (!options->programs)
			argp_error(state, options->check ? "a PROGRAM is missing"
							 : "say what to do: check");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.parser = parse,
	.args_doc = "check PROGRAM...",
	.doc = doc,
};

static int check(char **programs)
{
	int status = STATUS_FINE;

	for (; *programs; programs++) {
		char *path = find_program(*programs);
		int obstacles = path ? sysvipc_check(path) : -1;

		free(path);
		if (obstacles < 0)
			status = STATUS_USAGE;
		else if (obstacles && status == STATUS_FINE)
			status = STATUS_FAILED;
	}
	return status;
}

int ipc_command(int argc, char **argv)
{
	struct options options = { 0 };

	if (argp_parse(&argp, argc, argv, 0, NULL, &options))
		return STATUS_USAGE;
	return check(options.programs);
}
