#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""RCU in a library that is loaded late: behind many others that use thread-local storage, and
again and again; and what a leak checker sees when the program ends."""

import os
import tempfile

import compilers
import tap
from installed import Copy

STORAGE = "__thread char storage_%d[2000]; char *use_%d(void) { return storage_%d; }\n"

PROGRAM = r"""
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hotline/rcu.h>

static int ran, works;

static void count(void *info)
{
	(void)info;
	ran++;
}

static int threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	int n = 0;

	for (struct dirent *task; (task = readdir(tasks));)
		n += task->d_name[0] != '.';
	closedir(tasks);
	return n;
}

static int lines_of_map(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	int n = 0, c;

	while ((c = fgetc(maps)) != EOF)
		n += c == '\n';
	fclose(maps);
	return n;
}

static void *use(void *library)
{
	int (*call)(void *, void (*)(void *)) = dlsym(library, "hl_call_rcu_ptr");
	int (*release)(void *) = dlsym(library, "hl_free_rcu");
	int (*barrier)(void) = dlsym(library, "hl_rcu_barrier");
	int (*synchronize)(void) = dlsym(library, "hl_synchronize_rcu");
	int before = ran;

	for (int i = 0; i < 1000; i++)
		if (call(NULL, count) || release(malloc(10)))
			return NULL;
	if (barrier() || synchronize() || ran != before + 1000)
		return NULL;
	works++;
	return NULL;
}

int main(int argc, char **argv)
{
	int maps = 0;

	for (int i = 2; i < argc; i++)
		if (!dlopen(argv[i], RTLD_NOW)) {
			fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
	for (int i = 0; i < 100; i++) {
		void *library = dlopen(argv[1], RTLD_NOW);
		pthread_t thread;

		if (!library) {
			fprintf(stderr, "%s\n", dlerror());
			return 2;
		}
		if (pthread_create(&thread, NULL, use, library))
			return 3;
		pthread_join(thread, NULL);
		use(library);
		dlclose(library);
		if (dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD))
			return 4; /* it is still there */
		if (threads() != 1)
			return 5;
		if (i == 10)
			maps = lines_of_map();
	}
	if (lines_of_map() > maps + 4)
		return 6;
	return works == 200 ? 0 : 7;
}
"""

LEAKS = r"""
#include <stdlib.h>
#include <hotline/rcu.h>

int main(void)
{
	hl_rcu_read_lock();
	hl_rcu_read_unlock();
	for (int i = 0; i < 10000; i++)
		hl_free_rcu(malloc(20));
	return hl_rcu_barrier();
}
"""


def build(compiler, directory, name, text, *options):
    source, made = os.path.join(directory, name + ".c"), os.path.join(directory, name)
    with open(source, "w", encoding="utf-8") as stream:
        stream.write(text)
    tap.run_ok([*compiler.command, source, "-o", made, *options])
    return made


def c_compiler():
    return next(compiler for compiler in compilers.native() if compiler.language == compilers.C)


@tap.case("loaded behind sixty libraries with thread-local storage, a hundred times")
def late():
    compiler = c_compiler()
    compiler.require()
    with tempfile.TemporaryDirectory() as directory:
        copy = Copy(os.path.join(directory, "root"))
        storage = [build(compiler, directory, f"libstorage{i}.so", STORAGE % (i, i, i), "-shared", "-fPIC")
                   for i in range(60)]
        program = build(compiler, directory, "program", PROGRAM, "-D_GNU_SOURCE", "-I" + copy.include,
                        "-pthread", "-ldl")
        result = tap.run([program, os.path.realpath(copy.library), *storage])
        tap.equal(result.returncode, 0, result.stderr)


@tap.case("a program that waits for all calls leaks nothing")
def leaks():
    compiler = c_compiler()
    compiler.require()
    with tempfile.TemporaryDirectory() as directory:
        copy = Copy(os.path.join(directory, "root"))
        program = build(compiler, directory, "program", LEAKS, "-fsanitize=address", "-I" + copy.include,
                        copy.archive, "-pthread")
        result = tap.run([program])
        tap.equal(result.returncode, 0, result.stderr)


tap.main()
