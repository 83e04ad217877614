/* SPDX-License-Identifier: MIT */
/*
 * How far a long reading is, on standard error when that is a terminal.
 */
#ifndef HOTLINE_PROGRESS_H
#define HOTLINE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	const char *what;	/* the file that is read */
	int64_t begun, shown;	/* milliseconds */
	bool terminal, visible;
};

void progress_begin(struct progress *progress, const char *what);
/* For hl_types_options.progress: shows itself only after a second. */
void progress_show(void *progress, unsigned long done, unsigned long total);
/* Leaves no trace. */
void progress_end(struct progress *progress);

#endif
