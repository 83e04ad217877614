// SPDX-License-Identifier: MIT
#include "layout.h"

#include "command.h"
#include "complain.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum key {
	KEY_CHECK = 0x100, KEY_ACCEPT, KEY_WRITE_ACCEPT, KEY_STRICT, KEY_DIFF, KEY_EXPLAIN,
	KEY_COMPILE, KEY_SIZES, KEY_FORMAT, KEY_JSON, KEY_LINE, KEY_PAIR, KEY_FAULT,
	KEY_MIN_SCORE, KEY_TOP, KEY_PROPOSALS, KEY_BTF_BASE, KEY_DEBUG_DIR, KEY_THREADS,
	KEY_COLOUR, KEY_NO_PAGER,
};

static const struct argp_option argp_options[] = {
	{ .doc = "What to show:", .group = 1 },
	{ .name = "all", .key = 'a', .doc = "The picture of every type, with or without faults" },
	{ .name = "top", .key = KEY_TOP, .arg = "N",
	  .doc = "Show the N worst faults; 0 shows all" },
	{ .name = "proposals", .key = KEY_PROPOSALS, .arg = "N",
	  .doc = "Write out the proposals of the first N faults in full" },
	{ .name = "fault", .key = KEY_FAULT, .arg = "NAME[,NAME]",
	  .doc = "Look for these faults only" },
	{ .name = "min-score", .key = KEY_MIN_SCORE, .arg = "N",
	  .doc = "Leave out faults whose score is below N (1 to 1000)" },
	{ .name = "sizes", .key = KEY_SIZES, .doc = "A table of sizes, the largest first" },
	{ .name = "compile", .key = KEY_COMPILE,
	  .doc = "C that compiles to the same layout, with assertions of it" },
	{ .name = "explain", .key = KEY_EXPLAIN, .arg = "FAULT",
	  .doc = "Explain what a fault is and how it is scored, or \"all\" (needs no FILE)" },

	{ .doc = "For a project's checks:", .group = 2 },
	{ .name = "check", .key = KEY_CHECK, .arg = "RULES", .flags = OPTION_ARG_OPTIONAL,
	  .doc = "Exit 0 when no fault but the accepted ones is there and all rules hold, "
		 "1 when not, 2 when that cannot be told" },
	{ .name = "accept", .key = KEY_ACCEPT, .arg = "RULES",
	  .doc = "The file of accepted faults and rules for --check" },
	{ .name = "strict", .key = KEY_STRICT,
	  .doc = "With --check: an accepted fault that is no more fails it" },
	{ .name = "write-accept", .key = KEY_WRITE_ACCEPT, .arg = "RULES",
	  .doc = "Write a file that accepts the faults there are" },
	{ .name = "diff", .key = KEY_DIFF,
	  .doc = "Compare the types of two files: exit 0 when nothing is worse in NEW, "
		 "1 when something is, 2 when that cannot be told" },

	{ .doc = "How to measure:", .group = 3 },
	{ .name = "line", .key = KEY_LINE, .arg = "BYTES",
	  .doc = "The size of a cache line, a power of two (64)" },
	{ .name = "pair", .key = KEY_PAIR,
	  .doc = "Lines travel in pairs: what must not share has to be two lines apart" },
	{ .name = "btf-base", .key = KEY_BTF_BASE, .arg = "FILE",
	  .doc = "The BTF that a module's split BTF builds on (the running kernel's)" },
	{ .name = "debug-dir", .key = KEY_DEBUG_DIR, .arg = "DIR",
	  .doc = "Where separate debug files are (/usr/lib/debug)" },
	{ .name = "threads", .key = KEY_THREADS, .arg = "N",
	  .doc = "How many threads work (as many as there are processors, 8 at most)" },

	{ .doc = "How to show it:", .group = 4 },
	{ .name = "format", .key = KEY_FORMAT, .arg = "FORMAT", .doc = "text, json or sarif" },
	{ .name = "json", .key = KEY_JSON, .doc = "The same as --format json" },
	{ .name = "color", .key = KEY_COLOUR, .arg = "WHEN",
	  .doc = "auto (on a terminal, the default), always or never" },
	{ .name = "colour", .key = KEY_COLOUR, .flags = OPTION_ALIAS | OPTION_HIDDEN },
	{ .name = "no-pager", .key = KEY_NO_PAGER, .doc = "No pager, even on a terminal" },
	{ 0 }
};

static const char doc[] =
	"Reads the debug information of FILE - an executable, a library, an object, a kernel "
	"module, an archive, a debug file, or BTF - and shows which of its structures waste or "
	"fight over cache lines, worst first.  With TYPEs, shows these in full: "
	"\"struct foo\", foo, ns::foo, or a typedef's name."
	"\v"
	"Examples:\n"
	"  hotline layout build/server                     the worst faults\n"
	"  hotline layout build/server 'struct conn'       one type and what is wrong with it\n"
	"  hotline layout /sys/kernel/btf/vmlinux --top 50\n"
	"  hotline layout --explain straddle\n"
	"  hotline layout --write-accept layout.rules build/server\n"
	"  hotline layout --check=layout.rules build/server\n"
	"  hotline layout --diff old/server build/server\n"
	"  hotline layout --format json --all build/server | jq '.types[].name'\n"
	"\n"
	"Exit status: 0 fine; 1 the file could not be read, or a type was not found; 2 wrong "
	"usage.  hotline-layout(1) has the rules of --check and the form of the JSON.";

/* ---- Values of options. ---- */

static uint64_t number(struct argp_state *state, const char *option, const char *arg,
		       uint64_t least, uint64_t most)
{
	char *end;
	unsigned long long value;

	errno = 0;
	value = strtoull(arg, &end, 10);
	if (*arg < '0' || *arg > '9' || *end || errno || value < least || value > most)
		argp_error(state, "--%s takes a number from %llu to %llu, not \"%s\"", option,
			   (unsigned long long)least, (unsigned long long)most, arg);
	return value;
}

/* The place of the argument in a list of words that ends in NULL. */
static unsigned one_of(struct argp_state *state, const char *option, const char *arg,
		       const char *const *words)
{
	for (unsigned i = 0; words[i]; i++) {
		if (!strcmp(words[i], arg))
			return i;
	}
	argp_error(state, "--%s takes %s, %s or %s, not \"%s\"", option, words[0], words[1],
		   words[2], arg);
	return 0;
}

static void set_line(struct argp_state *state, struct layout_options *options, const char *arg)
{
	unsigned line = number(state, "line", arg, 8, 65536);

	if (line & (line - 1))
		argp_error(state, "--line takes a power of two, not %u", line);
	options->ruler.line = line;
}

static void add_known_faults(FILE *to)
{
	for (int kind = 0; kind < HL_N_FAULTS; kind++)
		fprintf(to, "%s%s", kind ? ", " : "", hl_fault_name(kind));
}

static void unknown_fault(struct argp_state *state, const char *name)
{
	fprintf(state->err_stream, "%s: no fault is called \"%s\"; there are ", state->name, name);
	add_known_faults(state->err_stream);
	fputc('\n', state->err_stream);
	exit(STATUS_USAGE);
}

/* Adds the faults of a list with commas to those that are looked for. */
static void add_faults(struct argp_state *state, struct layout_options *options, char *arg)
{
	for (char *name = strtok(arg, ","); name; name = strtok(NULL, ",")) {
		int kind = hl_fault_by_name(name);

		if (kind < 0)
			unknown_fault(state, name);
		options->kinds |= 1u << kind;
	}
}

/* ---- Modes. ---- */

static const char *const mode_option[] = {
	[LAYOUT_SIZES] = "sizes", [LAYOUT_COMPILE] = "compile", [LAYOUT_CHECK] = "check",
	[LAYOUT_WRITE_ACCEPT] = "write-accept", [LAYOUT_DIFF] = "diff",
	[LAYOUT_EXPLAIN] = "explain",
};

static void set_mode(struct argp_state *state, struct layout_options *options,
		     enum layout_mode mode)
{
	/* --check --write-accept: what is written is what --check would find. */
	if ((options->mode == LAYOUT_CHECK && mode == LAYOUT_WRITE_ACCEPT) ||
	    (options->mode == LAYOUT_WRITE_ACCEPT && mode == LAYOUT_CHECK))
		mode = LAYOUT_WRITE_ACCEPT;
	else if (options->mode != LAYOUT_REPORT && options->mode != mode)
		argp_error(state, "--%s and --%s do not go together", mode_option[options->mode],
			   mode_option[mode]);
	options->mode = mode;
}

/* "struct foo" need not be one argument. */
static bool is_word_of_kind(const char *arg)
{
	return !strcmp(arg, "struct") || !strcmp(arg, "union") || !strcmp(arg, "class") ||
	       !strcmp(arg, "enum");
}

static void add_name(struct argp_state *state, struct layout_options *options, char *arg)
{
	char *last = options->n_names ? options->name[options->n_names - 1] : NULL;
	char *joined;

	if (options->n_names < 1 + (options->mode == LAYOUT_DIFF) || !is_word_of_kind(last)) {
		options->name[options->n_names++] = arg;
		return;
	}
	if (asprintf(&joined, "%s %s", last, arg) < 0)
		argp_failure(state, STATUS_FAILED, ENOMEM, "reading the arguments");
	else
		options->name[options->n_names - 1] = joined;
}

/* What can only be said when all options are known. */
static void check_usage(struct argp_state *state, const struct layout_options *options)
{
	bool has_rules = options->mode == LAYOUT_CHECK || options->mode == LAYOUT_WRITE_ACCEPT;

	if (options->mode == LAYOUT_EXPLAIN)
		return;
	if (!options->n_names)
		argp_error(state, "a FILE is missing");
	if (options->mode == LAYOUT_DIFF && options->n_names < 2)
		argp_error(state, "--diff takes two files: OLD NEW");
	if (!has_rules && options->accept)
		argp_error(state, "--accept goes with --check or --write-accept");
	if (options->strict && options->mode != LAYOUT_CHECK)
		argp_error(state, "--strict goes with --check");
	if (options->format == LAYOUT_SARIF && options->mode == LAYOUT_DIFF)
		argp_error(state, "--diff has the formats text and json");
	if (options->format != LAYOUT_TEXT &&
	    (options->mode == LAYOUT_SIZES || options->mode == LAYOUT_COMPILE ||
	     options->mode == LAYOUT_WRITE_ACCEPT))
		argp_error(state, "--%s has no format but text (--format json --all has all types)",
			   mode_option[options->mode]);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	static const char *const formats[] = { "text", "json", "sarif", NULL };
	static const char *const whens[] = { "auto", "always", "never", NULL };
	struct layout_options *options = state->input;

	switch (key) {
	case 'a':
		options->all = true;
		return 0;
	case KEY_TOP:
		options->top = number(state, "top", arg, 0, UINT32_MAX);
		return 0;
	case KEY_PROPOSALS:
		options->proposals = number(state, "proposals", arg, 0, UINT32_MAX);
		return 0;
	case KEY_FAULT:
		add_faults(state, options, arg);
		return 0;
	case KEY_MIN_SCORE:
		options->min_score = number(state, "min-score", arg, 1, 1000);
		return 0;
	case KEY_SIZES:
		set_mode(state, options, LAYOUT_SIZES);
		return 0;
	case KEY_COMPILE:
		set_mode(state, options, LAYOUT_COMPILE);
		return 0;
	case KEY_EXPLAIN:
		set_mode(state, options, LAYOUT_EXPLAIN);
		if (strcmp(arg, "all") && hl_fault_by_name(arg) < 0)
			unknown_fault(state, arg);
		options->explain = arg;
		return 0;
	case KEY_CHECK:
		set_mode(state, options, LAYOUT_CHECK);
		if (arg)
			options->accept = arg;
		return 0;
	case KEY_ACCEPT:
		options->accept = arg;
		return 0;
	case KEY_WRITE_ACCEPT:
		set_mode(state, options, LAYOUT_WRITE_ACCEPT);
		options->write_accept = arg;
		return 0;
	case KEY_STRICT:
		options->strict = true;
		return 0;
	case KEY_DIFF:
		set_mode(state, options, LAYOUT_DIFF);
		return 0;
	case KEY_LINE:
		set_line(state, options, arg);
		return 0;
	case KEY_PAIR:
		options->ruler.pair = true;
		return 0;
	case KEY_BTF_BASE:
		options->types.btf_base = arg;
		return 0;
	case KEY_DEBUG_DIR:
		options->types.debug_dir = arg;
		return 0;
	case KEY_THREADS:
		options->types.threads = number(state, "threads", arg, 1, 1024);
		return 0;
	case KEY_FORMAT:
		options->format = one_of(state, "format", arg, formats);
		return 0;
	case KEY_JSON:
		options->format = LAYOUT_JSON;
		return 0;
	case KEY_COLOUR:
		options->colour = one_of(state, "color", arg, whens);
		return 0;
	case KEY_NO_PAGER:
		options->pager = false;
		return 0;
	case ARGP_KEY_ARG:
		add_name(state, options, arg);
		return 0;
	case ARGP_KEY_END:
		check_usage(state, options);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = argp_options,
	.parser = parse,
	.args_doc = "FILE [TYPE...]\n--diff OLD NEW [TYPE...]\n--explain FAULT",
	.doc = doc,
};

static void explain(struct output *output, enum hl_fault_kind kind)
{
	struct hl_text text = HL_TEXT_INIT;

	hl_text_printf(&text, "%s: %s\n\n%s\n", hl_fault_name(kind), hl_fault_title(kind),
		       hl_fault_explanation(kind));
	if (text.failed)
		output->error = -ENOMEM;
	else
		output_write(output, text.at, text.len);
	hl_text_free(&text);
}

static int explain_command(const struct layout_options *options)
{
	int only = hl_fault_by_name(options->explain);
	struct output output;

	output_open(&output, options->pager);
	for (int kind = 0; kind < HL_N_FAULTS; kind++) {
		if (only >= 0 && kind != only)
			continue;
		if (only < 0 && kind)
			output_write(&output, "\n", 1);
		explain(&output, kind);
	}
	return output_close(&output) ? STATUS_FAILED : STATUS_FINE;
}

static int run(const struct layout_options *options)
{
	switch (options->mode) {
	case LAYOUT_EXPLAIN:
		return explain_command(options);
	case LAYOUT_CHECK:
	case LAYOUT_WRITE_ACCEPT:
		return layout_check(options);
	case LAYOUT_DIFF:
		return layout_diff(options);
	default:
		return layout_report(options);
	}
}

/* Frees the names that were put together of two arguments. */
static void free_names(struct layout_options *options, int argc, char **argv)
{
	for (uint32_t i = 0; i < options->n_names; i++) {
		bool given = false;

		for (int k = 0; k < argc && !given; k++)
			given = options->name[i] == argv[k];
		if (!given)
			free(options->name[i]);
	}
	free(options->name);
}

int layout_command(int argc, char **argv)
{
	struct layout_options options = {
		.ruler = { .line = 64 },
		.top = -1,
		.proposals = -1,
		.pager = true,
	};
	int status = STATUS_USAGE;

	options.name = calloc(argc + 1, sizeof(*options.name));
	if (!options.name) {
		complain_of(-ENOMEM, "reading the arguments");
		return STATUS_FAILED;
	}
	if (!argp_parse(&argp, argc, argv, 0, NULL, &options)) {
		if (!options.kinds)
			options.kinds = (1u << HL_N_FAULTS) - 1;
		status = run(&options);
	}
	free_names(&options, argc, argv);
	return status;
}
