// SPDX-License-Identifier: MIT
#include "progress.h"

#include "debuginfo/text.h"
#include "layout/clean.h"

#include <stdio.h>
#include <string.h>
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

/* On one line: the file's name alone, as much of it as fits. */
static void show(const char *path, unsigned long done, unsigned long total)
{
	const char *slash = strrchr(path, '/');
	struct hl_text name = HL_TEXT_INIT;

	hl_clean_add(&name, slash && slash[1] ? slash + 1 : path);
	fprintf(stderr, "\r\033[Kreading %.40s: %lu of %lu units, %.0f%%",
		name.failed || !name.at ? "" : name.at, done, total, 100.0 * done / total);
	hl_text_free(&name);
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
	show(progress->what, done, total);
}

void progress_end(struct progress *progress)
{
	if (progress->visible)
		fputs("\r\033[K", stderr);
}
