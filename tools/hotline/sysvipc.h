/* SPDX-License-Identifier: MIT */
/*
 * The library that `hotline run` preloads, and what of a program it can reach.
 */
#ifndef HOTLINE_SYSVIPC_H
#define HOTLINE_SYSVIPC_H

/* Where the library is: beside this command or in its prefix; to be freed. NULL, with a message:
 * nowhere. */
char *sysvipc_library(void);

/* The path of a program, looked for in PATH as a shell does; to be freed. NULL, with a message. */
char *find_program(const char *name);

/*
 * Says on standard output what of a program the library will not reach, a line each. How many
 * obstacles there are, or -1 with a message.
 */
int sysvipc_check(const char *path);

#endif
