# SPDX-License-Identifier: MIT
"""What the tests of `hotline cc` and `hotline c2c` have in common: programs whose sharing is known.

Threads meet at a barrier after each round, so that lines are passed on however many processors
there are: what a program must show does not depend on when its threads run.
"""

import json
import os
import tempfile

import tap

HOTLINE = os.path.join(os.environ["HOTLINE_BUILD"], "tools/hotline/hotline")

_directory = tempfile.TemporaryDirectory(prefix="hotline-c2c-")
WORK = _directory.name

# Four threads run round(), ROUNDS times each with a barrier between; main() sets up before.
ROUNDS = 150
PRELUDE = """
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define THREADS 4
static pthread_barrier_t meet;
static void set_up(void);
static void __attribute__((noinline)) round_of(long me, int turn);
static void *worker(void *arg)
{
	for (int turn = 0; turn < %d; turn++) {
		pthread_barrier_wait(&meet);
		round_of((long)arg, turn);
	}
	return NULL;
}
int main(void)
{
	pthread_t thread[THREADS];

	pthread_barrier_init(&meet, NULL, THREADS);
	set_up();
	for (long i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, worker, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	return 0;
}
""" % ROUNDS


def path(name):
    return os.path.join(WORK, name)


def write(name, text):
    with open(path(name), "w", encoding="utf-8") as stream:
        stream.write(text)
    return path(name)


def cc(*arguments, timeout=120):
    """Runs `hotline cc` in the test's directory; must succeed."""
    return tap.run_ok([HOTLINE, "cc", *map(str, arguments)], cwd=WORK, timeout=timeout)


def build(name, source, compiler="gcc", flags=("-O1",), suffix=".c"):
    """Builds the program `name` of one source with hooks; its path."""
    write(name + suffix, source)
    cc(compiler, *flags, "-pthread", "-o", name, name + suffix)
    return path(name)


def c2c(*arguments, timeout=120, **options):
    return tap.run([HOTLINE, "c2c", *map(str, arguments)], cwd=WORK, timeout=timeout, **options)


def report(*arguments, status=0, **options):
    """Runs `hotline c2c --json`; the document."""
    result = c2c("--json", "--top", "0", *arguments, **options)
    tap.equal(result.returncode, status, result.stdout + result.stderr)
    return json.loads(result.stdout)


def findings(*arguments, **options):
    """The findings of the only process."""
    processes = report(*arguments, **options)["processes"]
    tap.equal(len(processes), 1)
    return processes[0]["findings"]


def finding(found, name):
    """The one of that object."""
    named = [f for f in found if f["object"]["name"] == name]
    tap.equal(len(named), 1, f"findings for {name} among {[f['object']['name'] for f in found]}")
    return named[0]


def fields(of):
    """The names of its fields that were passed on."""
    return {field["name"] for field in of["fields"] if field["transfers"]}
