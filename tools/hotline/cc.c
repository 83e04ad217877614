// SPDX-License-Identifier: MIT
/*
 * `hotline cc COMPILER ARGUMENTS`: the compiler with the hooks of the thread sanitizer and the
 * runtime of `hotline c2c` in the place of the sanitizer's own.
 */
#include "c2c.h"
#include "command.h"
#include "complain.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char help[] =
	"Usage: hotline cc COMPILER [ARGUMENT...]\n"
	"Compiles and links as COMPILER (gcc, g++, clang, clang++) would, so that `hotline c2c` can\n"
	"show which cache lines the threads of the program pass on to each other.\n"
	"\n"
	"Examples:\n"
	"  hotline cc gcc -O2 -o server server.c -pthread\n"
	"  make CC='hotline cc gcc'\n"
	"  ./configure CC='hotline cc gcc' CXX='hotline cc g++'\n"
	"  CC='hotline cc clang' meson setup build\n"
	"  cmake -DCMAKE_C_COMPILER_LAUNCHER='hotline;cc' -DCMAKE_C_LINKER_LAUNCHER='hotline;cc' ...\n"
	"\n"
	"Exit status: the compiler's; 2 when no compiler is given, 127 when it cannot be run.\n"
	"hotline-c2c(1) tells the rest.\n";

/* What the arguments ask for. */
struct wish {
	bool links; /* there is something to link, and nothing that stops before */
	bool stops; /* -c and its kind */
	bool debug; /* some -g is there */
	bool is_static;
	const char *other; /* another sanitizer's option */
};

static bool starts(const char *string, const char *with)
{
	return !strncmp(string, with, strlen(with));
}

static bool is_one_of(const char *arg, const char *const *list)
{
	for (; *list; list++) {
		if (!strcmp(arg, *list))
			return true;
	}
	return false;
}

static void look_at(struct wish *wish, char **argv)
{
	/* Options whose value is an argument of its own, which is no input. */
	static const char *const valued[] = {
		"-o",	       "-I",
		"-L",	       "-D",
		"-U",	       "-x",
		"-T",	       "-u",
		"-z",	       "-l",
		"-A",	       "-G",
		"-B",	       "-MF",
		"-MT",	       "-MQ",
		"-include",    "-imacros",
		"-isystem",    "-iquote",
		"-idirafter",  "-iprefix",
		"-isysroot",   "-Xlinker",
		"-Xassembler", "-Xpreprocessor",
		"-Xclang",     "-mllvm",
		"-target",     "-arch",
		"--param",     "-aux-info",
		"-dumpbase",   "-e",
		"-wrapper",    NULL,
	};
	static const char *const stopping[] = {
		"-c",
		"-S",
		"-E",
		"-M",
		"-MM",
		"-fsyntax-only",
		"-r",
		"--version",
		"--help",
		"-dumpversion",
		"-dumpfullversion",
		"-dumpmachine",
		"-dumpspecs",
		"--print-supported-cpus",
		NULL,
	};
	bool input = false;

	for (; *argv; argv++) {
		const char *arg = *argv;

		if (is_one_of(arg, valued)) {
			if (!argv[1])
				break;
			argv++;
		} else if (is_one_of(arg, stopping) || starts(arg, "-print-") ||
			   starts(arg, "--print-")) {
			wish->stops = true;
		} else if (!strcmp(arg, "-static") || !strcmp(arg, "-static-pie")) {
			wish->is_static = true;
		} else if (starts(arg, "-fsanitize=")) {
			wish->other = arg;
		} else if (!strcmp(arg, "-g0")) {
			wish->debug = false;
		} else if (starts(arg, "-g") && !starts(arg, "-gcc")) {
			wish->debug = true;
		} else if (*arg != '-' || !arg[1]) {
			input = true;
		}
	}
	wish->links = input && !wish->stops;
}

/* ---- Which compiler it is. ---- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* What `COMPILER --version` says, for a compiler that is called cc or c++. */
static bool says_clang(char *const *compiler, int n)
{
	char *argv[n + 2], said[256];
	size_t used = 0;
	int ends[2];
	ssize_t got;
	pid_t pid;

	memcpy(argv, compiler, n * sizeof(*argv));
	argv[n] = (char[]){ "--version" };
	argv[n + 1] = NULL;
	if (pipe(ends))
		return false;
	pid = fork();
	if (!pid) {
		dup2(ends[1], STDOUT_FILENO);
		close(ends[0]);
		close(ends[1]);
		execvp(argv[0], argv);
		_exit(127);
	}
	close(ends[1]);
	while (pid > 0 && used < sizeof(said) - 1 &&
	       (got = read(ends[0], said + used, sizeof(said) - 1 - used)) > 0)
		used += got;
	said[used] = '\0';
	close(ends[0]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	return strstr(said, "clang") != NULL;
}

/* `n` arguments name the compiler: one, or those that stand in front of it as well. */
static bool is_clang(char *const *compiler, int n)
{
	const char *name = base_name(compiler[n - 1]);

	if (strstr(name, "clang"))
		return true;
	if (strstr(name, "gcc") || strstr(name, "g++"))
		return false;
	return says_clang(compiler, n);
}

static int words_of_compiler(char **argv)
{
	static const char *const before[] = { "ccache", "sccache", "distcc", "icecc", NULL };

	return argv[1] && is_one_of(base_name(argv[0]), before) ? 2 : 1;
}

/* ---- The call. ---- */

#define MORE_ARGUMENTS 10

struct call {
	char **argv;
	int n;
};

static void add(struct call *call, const char *arg)
{
	call->argv[call->n++] = (char *)arg;
}

/* Where libraries are found without being told. */
static bool is_system_directory(const char *directory)
{
	return starts(directory, "/usr/lib") || starts(directory, "/lib");
}

static int compile(struct call *call, char **argv, const struct wish *wish, const char *directory)
{
	int words = words_of_compiler(argv);
	bool clang = is_clang(argv, words);
	char *specs, *search, *run_path;

	if (asprintf(&specs, "-specs=%s/hotline-c2c.specs", directory) < 0 ||
	    asprintf(&search, "-L%s", directory) < 0 ||
	    asprintf(&run_path, "-Wl,-rpath,%s", directory) < 0) {
		complain_of(-ENOMEM, argv[0]);
		return STATUS_FAILED;
	}
	for (int i = 0; i < words; i++)
		add(call, argv[i]);
	if (clang) {
		add(call, "-fsanitize=thread");
		/* Where nothing is linked, that would be an option without use. */
		if (wish->links)
			add(call, "-fno-sanitize-link-runtime");
	} else {
		add(call, specs);
	}
	if (!wish->debug)
		add(call, "-g");
	if (wish->links) {
		/* In front of all other libraries, also where those that seem unused are dropped. */
		add(call, search);
		add(call, "-Wl,--push-state,--no-as-needed");
		add(call, "-lhotline-c2c");
		add(call, "-Wl,--pop-state");
		if (!is_system_directory(directory))
			add(call, run_path);
	}
	for (argv += words; *argv; argv++)
		add(call, *argv);
	add(call, NULL);
	execvp(call->argv[0], call->argv);
	complain("%s: %s", call->argv[0], strerror(errno));
	return 127;
}

int cc_command(int argc, char **argv)
{
	char directory[PATH_MAX];
	struct wish wish = { 0 };
	struct call call = { 0 };
	int status;

	if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-?"))) {
		fputs(help, stdout);
		return STATUS_FINE;
	}
	if (argc < 2 || argv[1][0] == '-') {
		complain("name a compiler: hotline cc gcc -O2 -o program program.c "
			 "(hotline cc --help tells more)");
		return STATUS_USAGE;
	}
	look_at(&wish, argv + 1 + words_of_compiler(argv + 1));
	if (wish.other) {
		complain(
			"%s cannot be had together with the hooks that are used here: leave it out",
			wish.other);
		return STATUS_USAGE;
	}
	if (wish.links && wish.is_static) {
		complain(
			"a static program leaves no place for the runtime, which is a shared library: "
			"leave out -static");
		return STATUS_USAGE;
	}
	if (c2c_find_runtime(directory, sizeof(directory)))
		return STATUS_FAILED;
	call.argv = calloc(argc + MORE_ARGUMENTS, sizeof(*call.argv));
	if (!call.argv) {
		complain_of(-ENOMEM, "reading the arguments");
		return STATUS_FAILED;
	}
	status = compile(&call, argv + 1, &wish, directory);
	free(call.argv);
	return status;
}
