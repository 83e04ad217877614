// SPDX-License-Identifier: MIT
/*
 * hotline ipc: what of a program the library will not reach; objects that nobody needs any more.
 */
#include "command.h"

#include "complain.h"
#include "ipc_objects.h"
#include "sysvipc.h"

#include <argp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum key { KEY_DRY = 0x100 };

struct options {
	char **programs; /* NULL at the end */
	bool check, gc, dry;
};

static const struct argp_option argp_options[] = {
	{ .name = "dry-run", .key = KEY_DRY, .doc = "gc: only say what would be freed" },
	IPC_NAMESPACE_OPTION,
	{ 0 }
};

static const char doc[] =
	"check: will PROGRAM be covered by hotline run --sysvipc? Says which calls it makes, and "
	"what stands in the way: linked statically, setuid, calls without the C library.\n"
	"gc: frees the objects whose creator and last users are dead, and that nobody waits for or "
	"has attached."
	"\v"
	"Examples:\n"
	"  hotline ipc check fakeroot-sysv postgres\n"
	"  hotline ipc gc --dry-run\n"
	"\n"
	"Exit status: 0 covered; 1 not, or not all of it; 2 wrong usage or no such PROGRAM.";

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case KEY_DRY:
		options->dry = true;
		return 0;
	case IPC_KEY_NAMESPACE:
		hl_ipc_look_in(arg);
		return 0;
	case ARGP_KEY_ARG:
		if (options->gc)
			argp_error(state, "gc takes no %s", arg);
		if (!options->check) {
			options->check = !strcmp(arg, "check");
			options->gc = !strcmp(arg, "gc");
			if (!options->check && !options->gc)
				argp_error(state, "no such thing to do: %s; there is check, gc",
					   arg);
			return 0;
		}
		options->programs = state->argv + state->next - 1;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_END:
		if (!options->programs && !options->gc)
			argp_error(state, options->check ? "a PROGRAM is missing"
							 : "say what to do: check, gc");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = argp_options,
	.parser = parse,
	.args_doc = "check PROGRAM...\ngc",
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
	return options.gc ? ipc_gc(options.dry) : check(options.programs);
}
