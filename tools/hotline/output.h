/* SPDX-License-Identifier: MIT */
/*
 * Standard output: a terminal, with colours and through a pager, or a file or a
 * pipe, plainly.
 */
#ifndef HOTLINE_OUTPUT_H
#define HOTLINE_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum colour_when { COLOUR_AUTO, COLOUR_ALWAYS, COLOUR_NEVER };

struct output {
	int fd;
	pid_t pager;	/* 0: none */
	int error;	/* negative errno of the first write that failed; 0 */
};

/* Whether output to a terminal that knows colours, or what the user wants of it. */
bool output_has_colour(enum colour_when when);
/* Size of the terminal; zeros when output is to none. */
void output_terminal(unsigned *columns, unsigned *rows);

/* Begins output, through a pager if that is wanted and output is to a terminal. */
void output_open(struct output *output, bool want_pager);
/* Writes n bytes: 0, or a negative errno value, from then on.  For hl_report.write. */
int output_write(void *output, const char *bytes, size_t n);
/* Ends output and waits for the pager.  0, or -1 with a message when not all was
 * written; a reader that went away early is no failure. */
int output_close(struct output *output);

#endif
