// SPDX-License-Identifier: MIT
#include "command.h"

#include "complain.h"

#include <argp.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct command commands[] = {
	{ "bench", "what Hotline costs on this machine, beside the limit and the peers",
	  bench_command },
	{ "c2c", "runs a program and shows which cache lines its threads pass on", c2c_command },
	{ "cc", "compiles a program so that `hotline c2c` can look into it", cc_command },
	{ "ipc", "which programs Hotline's System V IPC covers, and what they left", ipc_command },
	{ "ipcmk", "makes System V objects", ipcmk_command },
	{ "ipcrm", "removes System V objects", ipcrm_command },
	{ "ipcs", "the System V objects of programs that run so, and who made them", ipcs_command },
	{ "layout", "which structures of a program waste or fight over cache lines",
	  layout_command },
	{ "run", "a program with Hotline's System V IPC in place of the kernel's", run_command },
};

#define N_COMMANDS	(sizeof(commands) / sizeof(commands[0]))

const char *argp_program_version = "hotline " HL_VERSION;
error_t argp_err_exit_status = STATUS_USAGE;

/* The command that was asked for. */
struct choice {
	const struct command *command;
	int at;		/* its place in argv */
	bool help;	/* `hotline help COMMAND` */
};

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < N_COMMANDS; i++) {
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	}
	return NULL;
}

static void unknown_command(struct argp_state *state, const char *name)
{
	fprintf(stderr, "%s: no command %s; there is", state->name, name);
	for (size_t i = 0; i < N_COMMANDS; i++)
		fprintf(stderr, "%s %s", i ? "," : "", commands[i].name);
	fprintf(stderr, " (%s --help tells more)\n", state->name);
	exit(STATUS_USAGE);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct choice *choice = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		if (!choice->help && !strcmp(arg, "help")) {
			choice->help = true;
			return 0;
		}
		choice->command = find_command(arg);
		if (!choice->command)
			unknown_command(state, arg);
		choice->at = state->next - 1;
		/* All that follows is the command's. */
		state->next = state->argc;
		return 0;
	case ARGP_KEY_END:
		if (choice->help && !choice->command)
			argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
		if (!choice->command)
			argp_error(state, "a command is missing");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* The list of commands, below the options. */
static char *help_filter(int key, const char *text, void *input)
{
	char *list = NULL;
	size_t len;
	FILE *to;

	(void)input;
	if (key != ARGP_KEY_HELP_POST_DOC)
		return (char *)text;
	to = open_memstream(&list, &len);
	if (!to)
		return (char *)text;
	fputs("Commands:\n", to);
	for (size_t i = 0; i < N_COMMANDS; i++)
		fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].title);
	fputs("\nhotline COMMAND --help says how each is used, with examples.\n", to);
	return fclose(to) ? (char *)text : list;
}

static const struct argp argp = {
	.parser = parse,
	.args_doc = "COMMAND [ARGUMENT...]",
	.doc = "Hotline keeps hot cache lines where they are used: these commands show which "
	       "lines travel between CPUs, and which structures make them.\v ",
	.help_filter = help_filter,
};

/* --help and --version go through stdio, which says at the end whether all was written. */
static void check_stdio(void)
{
	if (!ferror(stdout) && !fflush(stdout))
		return;
	if (errno != EPIPE) {
		complain("writing the output: %s", strerror(errno));
		_exit(STATUS_FAILED);
	}
}

int main(int argc, char **argv)
{
	struct choice choice = { 0 };
	static char help[] = "--help";
	char *asking[] = { NULL, help, NULL };
	char name[64];

	/* A reader that has seen enough is no reason to die; writes say so. */
	signal(SIGPIPE, SIG_IGN);
	atexit(check_stdio);
	if (argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &choice))
		return STATUS_USAGE;
	snprintf(name, sizeof(name), "hotline %s", choice.command->name);
	complain_as(name);
	if (choice.help) {
		asking[0] = name;
		return choice.command->run(2, asking);
	}
	argv[choice.at] = name;
	return choice.command->run(argc - choice.at, argv + choice.at);
}
