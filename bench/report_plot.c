// SPDX-License-Identifier: MIT
/*
 * Plots by gnuplot: a point and a range for each row of a scenario.
 */
#include "bench/report_plot.h"

#include "bench/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* What gnuplot draws in. */
#define WIDTH 760
#define HEIGHT_BASE 70
#define HEIGHT_ROW 24
/* Figures that are further apart than this get a logarithmic axis. */
#define LINEAR_SPREAD 20

static unsigned n_measured(const struct bench_scenario *scenario)
{
	unsigned n = 0;

	for (unsigned i = 0; i < scenario->n_rows; i++)
		n += bench_was_measured(&scenario->row[i]);
	return n;
}

static void add_settings(struct hl_text *script, const struct bench_scenario *scenario,
			 unsigned number)
{
	unsigned n = n_measured(scenario);

	hl_text_printf(script,
		       "set terminal svg noenhanced name 'plot%u' size %u,%u font 'sans-serif,12' "
		       "background '#ffffff'\n",
		       number, WIDTH, HEIGHT_BASE + HEIGHT_ROW * n);
	hl_text_printf(script,
		       "unset key\nset border 1\nset grid xtics lc '#dddddd'\n"
		       "set xtics nomirror\nset ytics nomirror scale 0\n"
		       "set yrange [%u.5:0.5]\n"
		       "set xlabel '%s (%s is better): median and range'\n",
		       n, scenario->metric->unit,
		       scenario->metric->higher_is_better ? "higher" : "lower");
}

/* The rows as gnuplot's data, and the axes that fit them. */
static void add_data(struct hl_text *script, const struct bench_scenario *scenario)
{
	double least = 0, most = 0;
	unsigned n = 0;

	hl_text_puts(script, "$rows << END\n");
	for (unsigned i = 0; i < scenario->n_rows; i++) {
		const struct bench_row *row = &scenario->row[i];
		struct bench_stats stats;

		if (!bench_was_measured(row))
			continue;
		stats = bench_stats(row->value, row->runs);
		hl_text_printf(script, "%u \"%s\" %.6g %.6g %.6g %d\n", ++n, row->name,
			       stats.median, stats.min, stats.max, (int)row->kind + 1);
		if (n == 1 || stats.min < least)
			least = stats.min;
		if (stats.max > most)
			most = stats.max;
	}
	hl_text_puts(script, "END\n");
	if (most > least * LINEAR_SPREAD)
		hl_text_puts(script, "set logscale x\nset format x '%.0s%c'\n");
	else
		hl_text_printf(script, "set xrange [0:*]\nset format x '%s'\n",
			       most < 10000 ? "%g" : "%.1s%c");
}

static void add_script(struct hl_text *script, const struct bench_scenario *scenario,
		       unsigned number)
{
	/* In the order of enum bench_kind; the same colours as on the page. */
	static const char *const colours[] = { "#0b6e4f", "#b3541e", "#3a5a9b", "#666666" };

	add_settings(script, scenario, number);
	add_data(script, scenario);
	for (unsigned i = 0; i < sizeof(colours) / sizeof(colours[0]); i++)
		hl_text_printf(script, "set linetype %u lc '%s'\n", i + 1, colours[i]);
	hl_text_puts(script, "plot $rows using 3:1:4:5:6:ytic(2) with xerrorbars pt 7 ps 0.8 lw 2 "
			     "lc variable\n");
}

/* Writes all of it to a file without a name; its descriptor, or -1. */
static int store(const struct hl_text *script)
{
	FILE *file = tmpfile();
	int fd = file ? dup(fileno(file)) : -1;

	if (fd >= 0 && (fwrite(script->at, 1, script->len, file) != script->len || fflush(file) ||
			lseek(fd, 0, SEEK_SET))) {
		close(fd);
		fd = -1;
	}
	if (file)
		fclose(file);
	return fd;
}

/* gnuplot's answer to a script, to be freed; NULL: it could not be run. */
static char *draw(const struct hl_text *script)
{
	char command[64], *answer = NULL;
	size_t len = 0;
	int fd = store(script), c;
	FILE *from, *to;

	if (fd < 0)
		return NULL;
	snprintf(command, sizeof(command), "gnuplot <&%d 2>/dev/null", fd);
	from = popen(command, "re");
	to = open_memstream(&answer, &len);
	while (from && to && (c = getc(from)) != EOF)
		putc(c, to);
	if (to && fclose(to))
		len = 0;
	if (!from || pclose(from) || !len) {
		free(answer);
		answer = NULL;
	}
	close(fd);
	return answer;
}

/* Adds the drawing without what stands before it and without the names of its
 * namespaces, which it does not need inside a page. */
static void add_drawing(struct hl_text *text, const char *answer)
{
	const char *at = strstr(answer, "<svg"), *name;

	while (at && (name = strstr(at, "xmlns")) != NULL) {
		const char *end = strchr(name, '"');

		end = end ? strchr(end + 1, '"') : NULL;
		if (!end)
			break;
		hl_text_add(text, at, (size_t)(name - at));
		at = end + 1;
	}
	if (at)
		hl_text_puts(text, at);
}

bool bench_add_plot(struct hl_text *text, const struct bench_scenario *scenario, unsigned number)
{
	struct hl_text script = HL_TEXT_INIT;
	char *answer;

	if (!n_measured(scenario))
		return true;
	add_script(&script, scenario, number);
	answer = script.failed ? NULL : draw(&script);
	if (answer)
		add_drawing(text, answer);
	hl_text_free(&script);
	free(answer);
	return answer;
}
