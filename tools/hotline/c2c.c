// SPDX-License-Identifier: MIT
/*
 * `hotline c2c PROGRAM`: runs a program that was built with `hotline cc` and reports which lines
 * its threads passed on to each other.
 */
#include "c2c.h"

#include "command.h"
#include "complain.h"
#include "lines/budget.h"
#include "lines/report.h"
#include "output.h"

#include <argp.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Columns that sentences may take where output is to no terminal, and at most. */
#define WIDTH 100
/* Transfers below which an object is not worth a finding. */
#define LEAST 100
#define TOP 10
#define FIELDS 8

#define STATUS_OVER 1 /* --check: the budget is not kept */
#define STATUS_UNKNOWN 2 /* --check: that cannot be told */

enum key {
	KEY_FORMAT = 0x100,
	KEY_JSON,
	KEY_CHECK,
	KEY_TOP,
	KEY_FIELDS,
	KEY_LEAST,
	KEY_KEEP,
	KEY_READ,
	KEY_DEBUG_DIR,
	KEY_LINE,
	KEY_PAIR,
	KEY_COLOUR,
	KEY_NO_PAGER,
};

enum format { FORMAT_TEXT, FORMAT_JSON, FORMAT_SARIF, FORMAT_HTML };

static const struct argp_option argp_options[] = {
	{ .name = "format", .key = KEY_FORMAT, .arg = "FORMAT", .doc = "text, json, sarif or html" },
	{ .name = "json", .key = KEY_JSON, .doc = "The same as --format json" },
	{ .name = "output", .key = 'o', .arg = "FILE", .doc = "Write the report to FILE" },
	{ .name = "check",
	  .key = KEY_CHECK,
	  .arg = "BUDGET",
	  .doc = "Exit 0 when no more lines are passed on than the BUDGET allows, 1 when there are, "
		 "2 when that cannot be told; a file of rules, or how many transfers may be false" },
	{ .name = "top",
	  .key = KEY_TOP,
	  .arg = "N",
	  .doc = "Show the N worst findings; 0 shows all (10)" },
	{ .name = "fields",
	  .key = KEY_FIELDS,
	  .arg = "N",
	  .doc = "Show N fields of each; 0 shows all (8)" },
	{ .name = "least",
	  .key = KEY_LEAST,
	  .arg = "N",
	  .doc = "Leave out objects with fewer than N transfers (100)" },
	{ .name = "keep",
	  .key = KEY_KEEP,
	  .arg = "DIR",
	  .doc = "Keep what was counted in the new directory DIR, for --read" },
	{ .name = "read",
	  .key = KEY_READ,
	  .arg = "DIR",
	  .doc = "Run nothing: report what --keep kept" },
	{ .name = "line",
	  .key = KEY_LINE,
	  .arg = "BYTES",
	  .doc = "The size of a cache line, 64 or 128 (64)" },
	{ .name = "pair",
	  .key = KEY_PAIR,
	  .doc = "Lines travel in pairs, as some processors fetch them: the same as --line 128" },
	{ .name = "debug-dir",
	  .key = KEY_DEBUG_DIR,
	  .arg = "DIR",
	  .doc = "Where separate debug files are (/usr/lib/debug)" },
	{ .name = "color",
	  .key = KEY_COLOUR,
	  .arg = "WHEN",
	  .doc = "auto (on a terminal, the default), always or never" },
	{ .name = "colour", .key = KEY_COLOUR, .flags = OPTION_ALIAS | OPTION_HIDDEN },
	{ .name = "no-pager", .key = KEY_NO_PAGER, .doc = "No pager, even on a terminal" },
	{ 0 }
};

static const char doc[] =
	"Runs PROGRAM, which was built with `hotline cc`, and shows which objects' cache lines its "
	"threads pass on to each other, worst first: fields, who reads and writes them and where, how "
	"much of it is false sharing, and what to do."
	"\v"
	"Examples:\n"
	"  hotline cc gcc -O2 -o server server.c -pthread\n"
	"  hotline c2c ./server --port 8080               the findings, when it ends\n"
	"  hotline c2c --format html -o lines.html ./server\n"
	"  hotline c2c --check lines.budget make check    for CI\n"
	"  hotline c2c --keep run1 ./server; hotline c2c --read run1 --top 0\n"
	"\n"
	"The report goes to standard output; unless it is text, or goes to a FILE, what the program "
	"writes there goes to standard error instead.\n"
	"\n"
	"Exit status: the program's own, 128 + N if signal N ended it; 1 when there is no report; with "
	"--check as said there.  hotline-c2c(1) has the rules of --check and the form of the JSON.";

struct options {
	enum format format;
	char **program;
	const char *output, *budget, *keep, *read, *debug_dir;
	uint32_t top, fields;
	uint64_t least;
	enum colour_when colour;
	bool pager, pair;
};

static uint64_t number(struct argp_state *state, const char *option, const char *arg)
{
	char *end;
	unsigned long long value;

	errno = 0;
	value = strtoull(arg, &end, 10);
	if (*arg < '0' || *arg > '9' || *end || errno || value > UINT32_MAX)
		argp_error(state, "--%s takes a number from 0 to %u, not \"%s\"", option,
			   UINT32_MAX, arg);
	return value;
}

static unsigned one_of(struct argp_state *state, const char *option, const char *arg,
		       const char *const *words, const char *all)
{
	for (unsigned i = 0; words[i]; i++) {
		if (!strcmp(words[i], arg))
			return i;
	}
	argp_error(state, "--%s takes %s, not \"%s\"", option, all, arg);
	return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	static const char *const formats[] = { "text", "json", "sarif", "html", NULL };
	static const char *const lines[] = { "64", "128", NULL };
	static const char *const colours[] = { "auto", "always", "never", NULL };
	struct options *options = state->input;

	switch (key) {
	case KEY_FORMAT:
		options->format =
			one_of(state, "format", arg, formats, "text, json, sarif or html");
		return 0;
	case KEY_JSON:
		options->format = FORMAT_JSON;
		return 0;
	case 'o':
		options->output = arg;
		return 0;
	case KEY_CHECK:
		options->budget = arg;
		return 0;
	case KEY_TOP:
		options->top = number(state, "top", arg);
		return 0;
	case KEY_FIELDS:
		options->fields = number(state, "fields", arg);
		return 0;
	case KEY_LEAST:
		options->least = number(state, "least", arg);
		return 0;
	case KEY_KEEP:
		options->keep = arg;
		return 0;
	case KEY_READ:
		options->read = arg;
		return 0;
	case KEY_LINE:
		options->pair = one_of(state, "line", arg, lines, "64 or 128");
		return 0;
	case KEY_PAIR:
		options->pair = true;
		return 0;
	case KEY_DEBUG_DIR:
		options->debug_dir = arg;
		return 0;
	case KEY_COLOUR:
		options->colour = one_of(state, "color", arg, colours, "auto, always or never");
		return 0;
	case KEY_NO_PAGER:
		options->pager = false;
		return 0;
	case ARGP_KEY_ARG:
		/* All that follows is the program's. */
		options->program = &state->argv[state->next - 1];
		state->next = state->argc;
		return 0;
	case ARGP_KEY_END:
		if (!options->program && !options->read)
			argp_error(state, "a PROGRAM to run is missing");
		if (options->program && options->read)
			argp_error(state, "--read runs no program: leave out \"%s\"",
				   *options->program);
		if (options->keep && options->read)
			argp_error(state, "--keep and --read do not go together");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = argp_options,
	.parser = parse,
	.args_doc = "PROGRAM [ARGUMENT...]\n--read DIR",
	.doc = doc,
};

/* ---- Running. ---- */

/* A directory for the files of the processes; made, absolute.  0 or -1 with a message. */
static int make_directory(const struct options *options, char *directory, size_t room)
{
	const char *temporary = getenv("TMPDIR");
	char *real;

	if (options->keep) {
		if (mkdir(options->keep, 0777)) {
			complain("%s: %s", options->keep,
				 errno == EEXIST ? "is there already; name a new directory"
						 : strerror(errno));
			return -1;
		}
		snprintf(directory, room, "%s", options->keep);
	} else {
		snprintf(directory, room, "%s/hotline-c2c.XXXXXX",
			 temporary && *temporary == '/' ? temporary : "/tmp");
		if (!mkdtemp(directory)) {
			complain("%s: %s", directory, strerror(errno));
			return -1;
		}
	}
	real = realpath(directory, NULL);
	if (!real || strlen(real) >= room) {
		complain("%s: %s", directory, real ? "its path is too long" : strerror(errno));
		free(real);
		return -1;
	}
	strcpy(directory, real);
	free(real);
	return 0;
}

/* Waits for the program's end: its status as a shell would have it, -1 if it could not be run. */
static int run(const struct options *options, const char *directory)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN }, interrupt, quit;
	int status;
	pid_t pid;

	/* Keys that interrupt are for the program: it leaves what it counted. */
	sigaction(SIGINT, &ignore, &interrupt);
	sigaction(SIGQUIT, &ignore, &quit);
	pid = fork();
	if (!pid) {
		signal(SIGPIPE, SIG_DFL);
		sigaction(SIGINT, &interrupt, NULL);
		sigaction(SIGQUIT, &quit, NULL);
		if (options->format != FORMAT_TEXT && !options->output)
			dup2(STDERR_FILENO, STDOUT_FILENO);
		if (!setenv("HOTLINE_C2C", directory, 1) &&
		    !setenv("HOTLINE_C2C_LINE", options->pair ? "128" : "64", 1))
			execvp(options->program[0], options->program);
		complain("%s: %s", options->program[0], strerror(errno));
		_exit(errno == ENOENT ? 127 : 126);
	}
	if (pid < 0) {
		complain("starting %s: %s", options->program[0], strerror(errno));
		return -1;
	}
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -1;
	}
	sigaction(SIGINT, &interrupt, NULL);
	sigaction(SIGQUIT, &quit, NULL);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* ---- Reading what was counted. ---- */

struct processes {
	struct hl_lines_process *at;
	uint32_t n;
	bool damaged; /* one could not be read */
};

static int by_version(const struct dirent **a, const struct dirent **b)
{
	return strverscmp((*a)->d_name, (*b)->d_name);
}

static int is_raw(const struct dirent *entry)
{
	return entry->d_name[0] >= '0' && entry->d_name[0] <= '9';
}

static int read_process(struct processes *processes, const struct options *options,
			const char *path)
{
	const struct hl_findings_options how = { .least = options->least,
						 .debug_dir = options->debug_dir };
	struct hl_lines_process *process = &processes->at[processes->n];
	struct hl_error err;
	int status = hl_raw_open(&process->file, path, &err);

	if (status) {
		complain("%s", err.text);
		processes->damaged = true;
		return status == -ENOMEM ? status : 0;
	}
	status = hl_findings_make(&process->findings, &process->file, &how);
	if (status) {
		complain_of(status, path);
		hl_raw_close(&process->file);
		return status;
	}
	processes->n++;
	return 0;
}

static int read_processes(struct processes *processes, const struct options *options,
			  const char *directory)
{
	struct dirent **entry;
	char path[PATH_MAX + NAME_MAX];
	int n = scandir(directory, &entry, is_raw, by_version), status = 0;

	if (n < 0) {
		complain("%s: %s", directory, strerror(errno));
		return -1;
	}
	processes->at = calloc(n + 1, sizeof(*processes->at));
	if (!processes->at)
		status = -ENOMEM;
	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", directory, entry[i]->d_name);
		if (!status)
			status = read_process(processes, options, path);
		free(entry[i]);
	}
	free(entry);
	return status;
}

static void free_processes(struct processes *processes)
{
	for (uint32_t i = 0; i < processes->n; i++) {
		hl_findings_free(&processes->at[i].findings);
		hl_raw_close(&processes->at[i].file);
	}
	free(processes->at);
}

static void remove_directory(const char *directory)
{
	struct dirent **entry;
	char path[PATH_MAX + NAME_MAX];
	int n = scandir(directory, &entry, is_raw, NULL);

	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", directory, entry[i]->d_name);
		unlink(path);
		free(entry[i]);
	}
	if (n >= 0)
		free(entry);
	rmdir(directory);
}

/* ---- Reporting. ---- */

static int write_report(const struct options *options, const struct hl_lines_report *report)
{
	switch (options->format) {
	case FORMAT_JSON:
		return hl_lines_report_json(report);
	case FORMAT_SARIF:
		return hl_lines_report_sarif(report);
	case FORMAT_HTML:
		return hl_lines_report_html(report);
	default:
		return hl_lines_report_text(report);
	}
}

static int open_output(const struct options *options, struct output *output)
{
	if (!options->output) {
		output_open(output, options->pager && options->format == FORMAT_TEXT);
		return 0;
	}
	*output = (struct output){
		.fd = open(options->output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666),
	};
	if (output->fd >= 0)
		return 0;
	complain("%s: %s", options->output, strerror(errno));
	return -1;
}

static int close_output(const struct options *options, struct output *output)
{
	if (!options->output)
		return output_close(output);
	if (close(output->fd) && !output->error)
		output->error = -errno;
	if (output->error)
		complain_of(output->error, options->output);
	return output->error ? -1 : 0;
}

static int report(const struct options *options, const struct processes *processes,
		  const struct hl_over_budget *over, uint32_t n_over)
{
	struct output output;
	struct hl_lines_report report = {
		.program = options->program ? options->program[0] : options->read,
		.version = HL_VERSION,
		.process = processes->at,
		.n_processes = processes->n,
		.over = over,
		.n_over = n_over,
		.budget = options->budget,
		.top = options->top,
		.fields = options->fields,
		.write = output_write,
		.write_arg = &output,
	};
	unsigned columns, rows;
	int status;

	output_terminal(&columns, &rows);
	report.width = columns > 40 && columns < WIDTH ? columns : WIDTH;
	report.colour = !options->output && output_has_colour(options->colour);
	if (open_output(options, &output))
		return -1;
	status = write_report(options, &report);
	if (status && status != output.error)
		complain_of(status, "writing the report");
	else
		status = 0;
	return close_output(options, &output) || status ? -1 : 0;
}

/* The budget as it is given: a number, or what is in the file. */
static int read_budget(const struct options *options, struct hl_budget **budget)
{
	size_t digits = strspn(options->budget, "0123456789"), n = strlen(options->budget);
	struct hl_error err = { "" };
	char text[1u << 16];
	int status;

	if (!digits || options->budget[digits]) {
		FILE *from = fopen(options->budget, "re");

		if (!from) {
			complain("%s: %s", options->budget, strerror(errno));
			return -1;
		}
		n = fread(text, 1, sizeof(text), from);
		if (ferror(from) || n == sizeof(text)) {
			complain("%s: %s", options->budget,
				 ferror(from) ? strerror(errno) : "too long");
			fclose(from);
			return -1;
		}
		fclose(from);
	} else {
		memcpy(text, options->budget, n);
	}
	status = hl_budget_parse(budget, text, n, options->budget, &err);
	if (status && *err.text)
		complain("%s", err.text);
	else if (status)
		complain_of(status, options->budget);
	return status;
}

/* What the run was, and whether it is within the budget: 0, 1 or 2 as for --check. */
static int tell(const struct options *options, const struct processes *processes,
		struct hl_budget *budget)
{
	static const struct hl_over_budget none;
	const struct hl_over_budget *over = NULL;
	uint32_t n_over = 0;

	if (!processes->n) {
		complain(
			options->read
				? "%s: nothing that `hotline c2c --keep` kept"
				: "%s was not built with `hotline cc`, or counted nothing: build it with "
				  "\"hotline cc gcc ...\" (hotline cc --help)",
			options->read ? options->read : options->program[0]);
		return STATUS_UNKNOWN;
	}
	if (budget && hl_budget_check(budget, processes->at, processes->n, &over, &n_over)) {
		complain_of(-ENOMEM, "checking the budget");
		return STATUS_UNKNOWN;
	}
	if (report(options, processes, budget && !over ? &none : over, n_over) ||
	    processes->damaged)
		return STATUS_UNKNOWN;
	return n_over ? STATUS_OVER : STATUS_FINE;
}

static int run_and_tell(const struct options *options, struct hl_budget *budget)
{
	struct processes processes = { 0 };
	char directory[PATH_MAX];
	int program = 0, told = STATUS_UNKNOWN;

	if (!options->read && make_directory(options, directory, sizeof(directory)))
		return budget ? STATUS_UNKNOWN : STATUS_FAILED;
	if (!options->read)
		program = run(options, directory);
	/* A program that could not be run has said so. */
	if (program >= 0 && program != 127 && program != 126 &&
	    !read_processes(&processes, options, options->read ? options->read : directory))
		told = tell(options, &processes, budget);
	free_processes(&processes);
	if (!options->read && !options->keep)
		remove_directory(directory);
	if (budget)
		return told;
	return told == STATUS_FINE || program == 127 || program == 126 ? program : STATUS_FAILED;
}

int c2c_command(int argc, char **argv)
{
	struct options options = {
		.top = TOP,
		.fields = FIELDS,
		.least = LEAST,
		.pager = true,
	};
	struct hl_budget *budget = NULL;
	int status;

	if (argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &options))
		return STATUS_USAGE;
	if (options.budget && read_budget(&options, &budget))
		return STATUS_UNKNOWN;
	status = run_and_tell(&options, budget);
	hl_budget_free(budget);
	return status;
}
