// SPDX-License-Identifier: MIT
#include "command.h"

#include "bench/experiments.h"
#include "bench/peer.h"
#include "bench/rcu.h"
#include "bench/report.h"
#include "bench/table.h"
#include "complain.h"
#include "output.h"

#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RUNS 15
#define RUN_NS 50000000
#define QUICK_RUNS 5
#define QUICK_LONG_RUNS 3
#define QUICK_RUN_NS 10000000
/* A run takes a moment; after this it hangs. */
#define LIMIT_MS 60000

enum key { KEY_LIST = 0x100, KEY_QUICK, KEY_RUNS, KEY_JSON, KEY_HTML };

struct options {
	bool list, quick;
	unsigned runs; /* 0: not said */
	const char *json, *html;
	char **names; /* of experiments, or EXPERIMENT/SCENARIO; none: all */
	unsigned n_names;
};

static const struct argp_option argp_options[] = {
	{ .name = "list", .key = KEY_LIST, .doc = "List the experiments and what is missing" },
	{ .name = "quick", .key = KEY_QUICK, .doc = "Fewer and shorter runs, for a first look" },
	{ .name = "runs",
	  .key = KEY_RUNS,
	  .arg = "N",
	  .doc = "How often each row runs (15; with --quick 5, or 3 where a run takes long)" },
	{ .name = "json",
	  .key = KEY_JSON,
	  .arg = "FILE",
	  .doc = "Write the figures as JSON; \"-\": to standard output, in place of the table" },
	{ .name = "html",
	  .key = KEY_HTML,
	  .arg = "FILE",
	  .doc = "Write a page with tables and plots, which are gnuplot's" },
	{ 0 }
};

static const char doc[] =
	"Measures on this machine what Hotline's operations cost: beside the layout or design "
	"as it was before, beside other libraries, and beside what the machine allows. The "
	"rows of a table run in turn, and are compared run by run. Without a NAME all "
	"experiments run, which takes some minutes. A NAME is that of an experiment, or of one of "
	"its scenarios, EXPERIMENT/SCENARIO."
	"\v"
	"Examples:\n"
	"  hotline bench --list\n"
	"  hotline bench --quick                        a first look, at all of them\n"
	"  hotline bench call-latency                   one of them, at length\n"
	"  hotline bench call-latency/polling           one of its tables\n"
	"  hotline bench --json figures.json --html page.html\n"
	"  hotline bench --quick --json - csd-align | jq '.experiments[].scenarios[].ratios'\n"
	"\n"
	"Exit status: 0 fine; 1 something could not be measured or written; 2 wrong usage.  "
	"hotline-bench(1) says what the experiments are and has the form of the JSON.";

static unsigned n_known(void)
{
	unsigned n = 0;

	while (bench_experiments[n])
		n++;
	return n;
}

/* ---- The command line ---- */

static void unknown(struct argp_state *state, const char *name)
{
	fprintf(state->err_stream, "%s: no experiment is called \"%s\"; there are ", state->name,
		name);
	for (unsigned i = 0; bench_experiments[i]; i++)
		fprintf(state->err_stream, "%s%s", i ? ", " : "", bench_experiments[i]->name);
	fputc('\n', state->err_stream);
	exit(STATUS_USAGE);
}

/* Whether the name is that of the experiment or of a scenario of it. */
static bool is_of(const char *name, const struct bench_experiment *experiment)
{
	size_t n = strlen(experiment->name);

	return !strncmp(name, experiment->name, n) && (!name[n] || name[n] == '/');
}

static void want(struct argp_state *state, struct options *options, char *name)
{
	unsigned i = 0;

	while (bench_experiments[i] && !is_of(name, bench_experiments[i]))
		i++;
	if (!bench_experiments[i])
		unknown(state, name);
	options->names[options->n_names++] = name;
}

static unsigned number_of_runs(struct argp_state *state, const char *arg)
{
	char *end;
	unsigned long n = strtoul(arg, &end, 10);

	if (*arg < '0' || *arg > '9' || *end || n < 1 || n > 10000)
		argp_error(state, "--runs takes a number from 1 to 10000, not \"%s\"", arg);
	return (unsigned)n;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case KEY_LIST:
		options->list = true;
		return 0;
	case KEY_QUICK:
		options->quick = true;
		return 0;
	case KEY_RUNS:
		options->runs = number_of_runs(state, arg);
		return 0;
	case KEY_JSON:
		options->json = arg;
		return 0;
	case KEY_HTML:
		options->html = arg;
		return 0;
	case ARGP_KEY_ARG:
		want(state, options, arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = argp_options,
	.parser = parse,
	.args_doc = "[NAME...]\n--list",
	.doc = doc,
};

/* ---- --list ---- */

static void list_peer(const char *name, enum bench_kind kind, const char *why_not)
{
	if (kind == BENCH_PEER)
		printf("  %-16s %s\n", name, why_not ? why_not : "built in");
}

static int list(void)
{
	printf("Experiments:\n");
	for (unsigned i = 0; bench_experiments[i]; i++)
		printf("  %-16s %s  %s\n", bench_experiments[i]->name, bench_experiments[i]->origin,
		       bench_experiments[i]->title);
	printf("\nCompared with:\n");
	for (const struct peer *peer = bench_peers; peer->name; peer++)
		list_peer(peer->name, peer->kind, peer->why_not);
	for (const struct rcu_peer *peer = bench_rcu_peers; peer->name; peer++)
		list_peer(peer->name, peer->kind, peer->why_not);
	for (const struct table_peer *peer = bench_table_peers; peer->name; peer++)
		list_peer(peer->name, peer->kind, peer->why_not);
	return STATUS_FINE;
}

/* ---- Measuring ---- */

static void show_progress(void *arg, const struct bench_experiment *experiment,
			  const struct bench_scenario *scenario, const struct bench_row *row,
			  unsigned run, unsigned runs)
{
	(void)arg;
	fprintf(stderr, "\r\033[K%s %s: ", experiment->name, scenario->name);
	if (run)
		fprintf(stderr, "run %u of %u, %s", run, runs, row->name);
	else
		fprintf(stderr, "finding how long to run, %s", row->name);
}

/* Whether it was asked for: as a whole, or at least a scenario of it. */
static bool is_wanted(const struct options *options, const struct bench_experiment *experiment)
{
	for (unsigned i = 0; i < options->n_names; i++)
		if (is_of(options->names[i], experiment))
			return true;
	return !options->n_names;
}

static bool is_scenario(const char *name, const char *experiment, const char *scenario)
{
	size_t n = strlen(experiment);

	return !strncmp(name, experiment, n) && name[n] == '/' && !strcmp(name + n + 1, scenario);
}

static bool wants_scenario(const void *arg, const char *experiment, const char *scenario)
{
	const struct options *options = arg;

	for (unsigned i = 0; i < options->n_names; i++)
		if (!strcmp(options->names[i], experiment) ||
		    is_scenario(options->names[i], experiment, scenario))
			return true;
	return !options->n_names;
}

/* Whether all scenarios that were named are there; says which are, otherwise. */
static bool has_wanted(const struct options *options, const struct bench_experiment *experiment,
		       const struct bench_machine *machine)
{
	for (unsigned i = 0; i < options->n_names; i++) {
		const char *name = options->names[i];
		struct bench_experiment all = *experiment;
		unsigned k = 0;

		if (!is_of(name, experiment) || !strcmp(name, experiment->name))
			continue;
		while (k < experiment->n_scenarios &&
		       !is_scenario(name, experiment->name, experiment->scenario[k].name))
			k++;
		if (k < experiment->n_scenarios)
			continue;
		all.scenario = NULL;
		all.n_scenarios = 0;
		all.wants = NULL;
		all.describe(&all, machine);
		fprintf(stderr, "hotline bench: there is no %s; %s has ", name, experiment->name);
		for (k = 0; k < all.n_scenarios; k++)
			fprintf(stderr, "%s%s", k ? ", " : "", all.scenario[k].name);
		fputc('\n', stderr);
		bench_free(&all);
		return false;
	}
	return true;
}

/* The experiments that were asked for, to be freed; NULL: no memory. */
static struct bench_experiment *chosen(const struct options *options, unsigned *n)
{
	struct bench_experiment *all = calloc(n_known(), sizeof(*all));

	*n = 0;
	for (unsigned i = 0; all && bench_experiments[i]; i++) {
		if (!is_wanted(options, bench_experiments[i]))
			continue;
		all[*n] = *bench_experiments[i];
		all[*n].wants = wants_scenario;
		all[(*n)++].wants_arg = options;
	}
	return all;
}

/* 0, -ENOMEM, or -EINVAL and says why: a scenario that was named is not there. */
static int measure_one(struct bench_experiment *experiment, const struct bench_machine *machine,
		       const struct options *options, const struct bench_options *how)
{
	experiment->describe(experiment, machine);
	if (experiment->no_memory)
		return -ENOMEM;
	if (!has_wanted(options, experiment, machine))
		return -EINVAL;
	return bench_measure(experiment, machine, how);
}

static int measure(struct bench_report *report, struct bench_experiment *experiment,
		   const struct options *options, struct bench_overhead *overhead)
{
	int rc = bench_measure_overhead(overhead, report->machine, report->options);

	for (unsigned i = 0; !rc && i < report->n_experiments; i++)
		rc = measure_one(&experiment[i], report->machine, options, report->options);
	if (report->options->progress)
		fputs("\r\033[K", stderr);
	if (rc == -ENOMEM)
		complain_of(rc, "measuring");
	return rc;
}

/* Whether all that could be measured was; says what was not. */
static bool nothing_failed(const struct bench_report *report)
{
	bool fine = true;

	for (unsigned i = 0; i < report->n_experiments; i++) {
		const struct bench_experiment *experiment = &report->experiment[i];

		for (unsigned k = 0; k < experiment->n_scenarios; k++) {
			const struct bench_scenario *scenario = &experiment->scenario[k];

			for (unsigned r = 0; r < scenario->n_rows; r++) {
				const struct bench_row *row = &scenario->row[r];

				if (!row->failed)
					continue;
				complain("%s %s: %s %s", experiment->name, scenario->name,
					 row->name, row->why_not ? row->why_not : "failed");
				fine = false;
			}
		}
	}
	return fine;
}

/* ---- Writing ---- */

static int write_text(const struct hl_text *text)
{
	struct output output;

	output_open(&output, false);
	output_write(&output, text->at, text->len);
	return output_close(&output);
}

static int write_file(const char *path, const struct hl_text *text)
{
	FILE *to = fopen(path, "we");

	if (to && fwrite(text->at, 1, text->len, to) == text->len && !fclose(to))
		return 0;
	complain("%s: %s", path, strerror(errno));
	return -1;
}

/* Before minutes are spent on figures for it. Leaves what is in the file. */
static bool can_write(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);

	if (fd >= 0)
		close(fd);
	else
		complain("%s: %s", path, strerror(errno));
	return fd >= 0;
}

typedef int (*report_fn)(struct hl_text *text, const struct bench_report *report);

/* path: where to, NULL: standard output. */
static int write_report(report_fn make, const struct bench_report *report, const char *path)
{
	struct hl_text text = HL_TEXT_INIT;
	int rc = make(&text, report);

	if (rc)
		complain_of(rc, "writing the report");
	else
		rc = path ? write_file(path, &text) : write_text(&text);
	hl_text_free(&text);
	return rc;
}

/* Whether JSON goes to standard output, in place of the table. */
static bool json_only(const struct options *options)
{
	return options->json && !strcmp(options->json, "-");
}

static bool can_write_all(const struct options *options)
{
	return (!options->html || can_write(options->html)) &&
	       (!options->json || json_only(options) || can_write(options->json));
}

static int write_reports(const struct options *options, const struct bench_report *report)
{
	int rc = 0;

	if (options->html)
		rc |= write_report(bench_report_html, report, options->html);
	if (options->json && !json_only(options))
		rc |= write_report(bench_report_json, report, options->json);
	rc |= write_report(json_only(options) ? bench_report_json : bench_report_text, report,
			   NULL);
	return rc;
}

static int run(const struct options *options)
{
	struct bench_machine machine;
	struct bench_overhead overhead = { 0 };
	struct bench_options how = {
		.runs = options->runs	 ? options->runs
			: options->quick ? QUICK_RUNS
					 : RUNS,
		.long_runs = options->runs    ? options->runs
			     : options->quick ? QUICK_LONG_RUNS
					      : RUNS,
		.run_ns = options->quick ? QUICK_RUN_NS : RUN_NS,
		.quick = options->quick,
		.limit_ms = LIMIT_MS,
		.progress = isatty(STDERR_FILENO) ? show_progress : NULL,
	};
	struct bench_report report = {
		.version = HL_VERSION,
		.machine = &machine,
		.options = &how,
		.overhead = &overhead,
	};
	struct bench_experiment *experiment = chosen(options, &report.n_experiments);
	int rc = bench_machine_read(&machine);

	report.experiment = experiment;
	if (!experiment || rc)
		complain_of(-ENOMEM, "measuring");
	else
		rc = measure(&report, experiment, options, &overhead);
	if (experiment && !rc) {
		rc = write_reports(options, &report);
		if (!nothing_failed(&report))
			rc = -1;
	}
	for (unsigned i = 0; experiment && i < report.n_experiments; i++)
		bench_free(&experiment[i]);
	free(experiment);
	bench_machine_free(&machine);
	if (rc == -EINVAL)
		return STATUS_USAGE;
	return experiment && !rc ? STATUS_FINE : STATUS_FAILED;
}

int bench_command(int argc, char **argv)
{
	struct options options = { .names = calloc((size_t)argc + 1, sizeof(char *)) };
	int status = STATUS_USAGE;

	if (!options.names) {
		complain_of(-ENOMEM, "reading the arguments");
		return STATUS_FAILED;
	}
	if (!argp_parse(&argp, argc, argv, 0, NULL, &options)) {
		if (options.list)
			status = list();
		else
			status = can_write_all(&options) ? run(&options) : STATUS_FAILED;
	}
	free(options.names);
	return status;
}
