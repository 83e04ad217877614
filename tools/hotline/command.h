/* SPDX-License-Identifier: MIT */
/*
 * The commands behind `hotline`, one file each; main.c lists them.
 */
#ifndef HOTLINE_COMMAND_H
#define HOTLINE_COMMAND_H

struct command {
	const char *name;
	const char *title;	/* one line for --help */
	/* argv[0] is "hotline NAME", for messages.  Returns the exit status. */
	int (*run)(int argc, char **argv);
};

int bench_command(int argc, char **argv);
int c2c_command(int argc, char **argv);
int cc_command(int argc, char **argv);
int ipc_command(int argc, char **argv);
int ipcmk_command(int argc, char **argv);
int ipcrm_command(int argc, char **argv);
int ipcs_command(int argc, char **argv);
int layout_command(int argc, char **argv);
int run_command(int argc, char **argv);

/* Exit statuses that all commands share. */
#define STATUS_FINE	0
#define STATUS_FAILED	1	/* what was asked for could not be done */
#define STATUS_USAGE	2	/* it could not be understood */

#endif
