// SPDX-License-Identifier: MIT
#include "progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define SHOW_AFTER	1000	/* milliseconds */
#define SHOW_EVERY	100

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void progress_begin(struct progress *progress, const char *what)
{
	*progress = (struct progress){
		.what = what, .begun = now(), .terminal = isatty(STDERR_FILENO),
	};
}

void progress_show(void *arg, unsigned long done, unsigned long total)
{
	struct progress *progress = arg;
	int64_t t;

	if (!progress->terminal || !total)
		return;
	t = now();
	if (t - progress->begun < SHOW_AFTER || t - progress->shown < SHOW_EVERY)
		return;
	progress->shown = t;
	progress->visible = true;
	fprintf(stderr, "\r\033[Kreading %s: %lu of %lu units, %.0f%%", progress->what, done, total,
		100.0 * done / total);
}

void progress_end(struct progress *progress)
{
	if (progress->visible)
		fputs("\r\033[K", stderr);
}
