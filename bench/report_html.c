// SPDX-License-Identifier: MIT
/*
 * One page that needs nothing but itself.
 */
#include "bench/report.h"

#include "bench/report_plot.h"

#include <errno.h>

struct page {
	struct hl_text *text;
	unsigned n_plots;
	bool no_plots; /* gnuplot is not there */
};

static const char head[] =
	"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	"<meta name=\"viewport\" content=\"width=device-width\">\n"
	"<title>Hotline bench</title>\n<style>\n"
	"body { font: 16px/1.45 sans-serif; color: #222; background: #fff; max-width: 60rem;"
	" margin: 2rem auto; padding: 0 1rem }\n"
	"h2 { margin-top: 2.5rem; border-bottom: 2px solid #ccc } h3 { margin-bottom: .2rem }\n"
	"p { margin: .3rem 0 } .note { color: #555 } .failed { color: #a00 }\n"
	"table { border-collapse: collapse; margin: .6rem 0 } th, td { padding: .15rem .8rem;"
	" text-align: left; border-bottom: 1px solid #ddd }\n"
	"th.n, td.n { text-align: right; font-variant-numeric: tabular-nums }\n"
	".ours { color: #0b6e4f; font-weight: bold } .as-it-was { color: #b3541e }"
	" .peer { color: #3a5a9b } .limit { color: #666 }\n"
	"svg { max-width: 100%; height: auto; display: block }\n"
	"</style>\n</head>\n<body>\n<h1>Hotline bench</h1>\n";

static void escape(struct hl_text *text, const char *string)
{
	for (; *string; string++) {
		switch (*string) {
		case '&':
			hl_text_puts(text, "&amp;");
			break;
		case '<':
			hl_text_puts(text, "&lt;");
			break;
		case '>':
			hl_text_puts(text, "&gt;");
			break;
		default:
			hl_text_putc(text, *string);
		}
	}
}

/* <tag class="class">string</tag> */
static void add(struct hl_text *text, const char *tag, const char *class, const char *string)
{
	hl_text_printf(text, "<%s class=\"%s\">", tag, class);
	escape(text, string);
	hl_text_printf(text, "</%s>\n", tag);
}

static void add_figure(struct hl_text *text, double value)
{
	hl_text_puts(text, "<td class=\"n\">");
	bench_add_figure(text, value);
	hl_text_puts(text, "</td>");
}

static void add_row(struct hl_text *text, const struct bench_scenario *scenario,
		    const struct bench_row *row)
{
	struct bench_stats stats = bench_stats(row->value, row->runs), ratio;

	hl_text_puts(text, "<tr>");
	add(text, "td", bench_kind_name(row->kind), row->name);
	add(text, "td", "", bench_kind_name(row->kind));
	add_figure(text, stats.median);
	add_figure(text, stats.min);
	add_figure(text, stats.max);
	hl_text_puts(text, "<td class=\"n\">");
	if (bench_ratio_to(scenario, row, &ratio))
		bench_add_ratio(text, ratio);
	hl_text_puts(text, "</td></tr>\n");
}

static void add_table(struct hl_text *text, const struct bench_scenario *scenario)
{
	hl_text_puts(text, "<table>\n<tr><th></th><th>kind</th><th class=\"n\">median</th>"
			   "<th class=\"n\">min</th><th class=\"n\">max</th>"
			   "<th class=\"n\">hotline / this</th></tr>\n");
	for (unsigned i = 0; i < scenario->n_rows; i++) {
		if (bench_was_measured(&scenario->row[i]))
			add_row(text, scenario, &scenario->row[i]);
	}
	hl_text_puts(text, "</table>\n");
}

static void add_missing(struct hl_text *text, const struct bench_scenario *scenario)
{
	for (unsigned i = 0; i < scenario->n_rows; i++) {
		const struct bench_row *row = &scenario->row[i];

		if (bench_was_measured(row))
			continue;
		hl_text_printf(text, "<p class=\"%s\">", row->failed ? "failed" : "note");
		escape(text, row->name);
		hl_text_puts(text, row->failed ? " failed: " : ": ");
		escape(text, row->why_not ? row->why_not : "");
		hl_text_puts(text, "</p>\n");
	}
}

static void add_scenario(struct page *page, const struct bench_scenario *scenario)
{
	struct hl_text *text = page->text;

	hl_text_puts(text, "<section>\n");
	add(text, "h3", "", scenario->name);
	hl_text_puts(text, "<p>");
	escape(text, scenario->title);
	hl_text_printf(text, "; %s, %s is better</p>\n", scenario->metric->unit,
		       scenario->metric->higher_is_better ? "higher" : "lower");
	add_table(text, scenario);
	if (!page->no_plots)
		page->no_plots = !bench_add_plot(text, scenario, ++page->n_plots);
	add_missing(text, scenario);
	hl_text_puts(text, "</section>\n");
}

static void add_machine(struct hl_text *text, const struct bench_report *report)
{
	const struct bench_machine *machine = report->machine;

	hl_text_puts(text, "<p>");
	escape(text, machine->model);
	hl_text_printf(text, ", %u processor%s, lines of %u bytes, kernel ", machine->cpus,
		       machine->cpus == 1 ? "" : "s", machine->line_bytes);
	escape(text, machine->kernel);
	hl_text_printf(text, "; hotline %s</p>\n", report->version);
	hl_text_printf(text,
		       "<p class=\"note\">%u run%s of %g ms a row, the rows in turn; ratios are "
		       "taken run by run. The harness itself: %.1f ns to read the clock, %.1f ns "
		       "a call.</p>\n",
		       report->options->runs, report->options->runs == 1 ? "" : "s",
		       (double)report->options->run_ns / 1e6, report->overhead->clock_ns,
		       report->overhead->loop_ns);
}

int bench_report_html(struct hl_text *text, const struct bench_report *report)
{
	struct page page = { .text = text };

	hl_text_puts(text, head);
	add_machine(text, report);
	for (unsigned i = 0; i < report->n_experiments; i++) {
		const struct bench_experiment *experiment = &report->experiment[i];

		hl_text_printf(text, "<h2 id=\"%s\">%s</h2>\n<p>%s (%s)</p>\n", experiment->name,
			       experiment->name, experiment->title, experiment->origin);
		for (unsigned k = 0; k < experiment->n_scenarios; k++)
			add_scenario(&page, &experiment->scenario[k]);
	}
	if (page.no_plots)
		add(text, "p", "note",
		    "There are no plots, because gnuplot could not be run: install gnuplot-nox "
		    "(Debian, Ubuntu) or gnuplot-minimal (Fedora) and run the bench again.");
	hl_text_puts(text, "</body>\n</html>\n");
	return text->failed ? -ENOMEM : 0;
}
