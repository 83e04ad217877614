#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Takes the orders out of src/rcu, one at a time, and shows that a test notices.

    tests/mutants.py BUILD [--tsan BUILD-TSAN] [--only NAME...]

Each mutant is one piece of one file changed in a copy; what is not changed comes from BUILD's
libhotline.a. `litmus` and `no_membarrier` run stress/rcu_litmus.c, which sees stores that
are late; `passing` runs stress/rcu_passing.c under ThreadSanitizer, which sees a missing acquire
or release on any processor. A mutant that nothing can notice here says why instead.

One line a mutant; exit status 1 if one that should be noticed was not, or does not apply any
more. Two processors are needed: with one, no store is late."""

import argparse
import os
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RUNS = 8  # each looks for a moment that may not come; so again, until it does
TIMEOUT = 100

GP, THREAD, QUEUE = "src/rcu/gp.c", "src/rcu/thread.c", "src/rcu/queue.c"
INVOKE, HELPER = "src/rcu/invoke.c", "src/rcu/helper.c"
HEADER = "include/hotline/rcu.h"

# Arguments for short runs, of which there are several.
SHORT = {"litmus": ["15"], "no_membarrier": ["15"], "passing": []}

# name, file, what is there, what comes instead, who notices
SEEN = [
    ("RCU_READER-membarrier", GP, "hl_barrier_all(); /* RCU_READER", "; /* RCU_READER", "litmus"),
    ("RCU_READER-heed", THREAD, "hl_fence(); /* RCU_PARKED and RCU_READER", "; /* ",
     "no_membarrier"),
    ("RCU_PARKED-look", HEADER, "__atomic_load_n(&reader->heed, __ATOMIC_RELAXED) != 0", "0",
     "litmus"),
    ("RCU_RESUME-resume", THREAD, "hl_fence(); /* RCU_RESUME", "; /* ", "litmus"),
    ("RCU_STATE-state", GP, "hl_fence(); /* RCU_STATE, pairs with begin() */", ";", "litmus"),
    ("RCU_PARKED-begin", GP, "hl_fence(); /* RCU_STATE, RCU_PARKED, RCU_RESUME */", ";", "litmus"),
    ("RCU_STATE-early", GP, "(begun_now() + 1) & HL_NUMBER_MASK", "begun_now()", "litmus"),
    # In these two the store is moved behind the load by hand, and further than a processor does.
    ("RCU_BOX-asleep", HELPER, "!atomic_load_explicit(&helper.box, memory_order_seq_cst) &&",
     "!atomic_load_explicit(&helper.box, memory_order_seq_cst) &&\n"
     "({ atomic_store(&helper.asleep, 0); for (volatile int i = 0; i < 3000; i++); "
     "atomic_store(&helper.asleep, 1); 1; }) &&", "litmus"),
    ("RCU_NOTIFY-last-look", HELPER,
     "atomic_store_explicit(&queue->notify, 1, memory_order_seq_cst);",
     "for (volatile int i = 0; i < 3000; i++);\n"
     "atomic_store_explicit(&queue->notify, 1, memory_order_relaxed); return true;", "litmus"),
    ("RCU_END-unlock", HEADER, "reader->word - 1, __ATOMIC_RELEASE",
     "reader->word - 1, __ATOMIC_RELAXED", "passing"),
    ("RCU_END-passed", GP, "&reader->word, __ATOMIC_ACQUIRE", "&reader->word, __ATOMIC_RELAXED",
     "passing"),
    ("RCU_QUIET-announce", THREAD, "&self->reader.quiescent, word, __ATOMIC_RELEASE",
     "&self->reader.quiescent, word, __ATOMIC_RELAXED", "passing"),
    ("RCU_QUIET-passed", GP, "&reader->quiescent, __ATOMIC_ACQUIRE",
     "&reader->quiescent, __ATOMIC_RELAXED", "passing"),
    ("RCU_OVER-end", GP, "atomic_store_explicit(&gp.ended, number, memory_order_release)",
     "atomic_store_explicit(&gp.ended, number, memory_order_relaxed)", "passing"),
    ("RCU_OVER-done", GP, "atomic_load_explicit(&gp.ended, memory_order_acquire)",
     "atomic_load_explicit(&gp.ended, memory_order_relaxed)", "passing"),
    ("RCU_NUMBER-begin", GP, "WORD_OF(number), __ATOMIC_RELEASE",
     "WORD_OF(number), __ATOMIC_RELAXED", "passing"),
    ("RCU_NUMBER-lock", HEADER, "&hl_priv_rcu_number.word, __ATOMIC_ACQUIRE",
     "&hl_priv_rcu_number.word, __ATOMIC_RELAXED", "passing"),
    ("RCU_NUMBER-announce", THREAD, "&hl_priv_rcu_number.word, __ATOMIC_ACQUIRE",
     "&hl_priv_rcu_number.word, __ATOMIC_RELAXED", "passing"),
    ("RCU_GIVEN-put", QUEUE, "&queue->given, position + 1, memory_order_release",
     "&queue->given, position + 1, memory_order_relaxed", "passing"),
    ("RCU_SPARE-empty", INVOKE, "&queue->spare, &none, batch,\n\t\t\t\t\t\t     "
     "memory_order_release", "&queue->spare, &none, batch, memory_order_relaxed", "passing"),
    ("RCU_SPARE-room", QUEUE, "&queue->spare, NULL, memory_order_acquire",
     "&queue->spare, NULL, memory_order_relaxed", "passing"),
    ("RCU_DONE-run", INVOKE, "&queue->runs, 0, memory_order_release",
     "&queue->runs, 0, memory_order_relaxed", "passing"),
    ("RCU_DONE-barrier", QUEUE, "&queue->runs, memory_order_acquire",
     "&queue->runs, memory_order_relaxed", "passing"),
    ("RCU_TAKER-take", INVOKE, "&queue->lock, 1, memory_order_acquire",
     "&queue->lock, 1, memory_order_relaxed", "passing"),
    ("RCU_TAKER-give-back", INVOKE, "&queue->lock, 0, memory_order_release",
     "&queue->lock, 0, memory_order_relaxed", "passing"),
    ("RCU_THREAD-make", THREAD, "&threads, made, memory_order_release",
     "&threads, made, memory_order_relaxed", "passing"),
    ("RCU_THREAD-walk", THREAD, "&threads, memory_order_acquire", "&threads, memory_order_relaxed",
     "passing"),
]

# The same, and why nothing notices.
UNSEEN = [
    ("RCU_READER-crowd", THREAD, "hl_fence(); /* RCU_READER, pairs", ";",
     "the addition before it is a fence on x86"),
    ("RCU_PARK-unpark", GP, "if (any)\n\t\t\tunpark_readers();", "",
     "the reader finds the mark with its next section; it then only fences once more"),
    ("RCU_GIVEN-collect", INVOKE, "&queue->given, memory_order_acquire", "",
     "a grace period later .given is loaded with acquire again, before anything runs"),
    ("RCU_GIVEN-next", QUEUE, "&full->next, batch, memory_order_release", "",
     ".given, stored behind it, says the same again"),
    ("RCU_LINKED-push", QUEUE, "memory_order_release, memory_order_relaxed))\n\t\t;", "",
     "needs a system without memory, which ThreadSanitizer cannot do with; on x86 the exchange "
     "is a fence"),
    ("RCU_SLEEP-end", GP, "hl_fence(); /* RCU_SLEEP", "", "costs time only: the sleep has an end"),
    ("RCU_SLOWED", QUEUE, "memory_order_seq_cst) && may_go_on()", "",
     "costs time only: the sleep has an end"),
]

COMMON = ["-O2", "-g", "-w", "-std=gnu11", "-D_GNU_SOURCE", "-pthread"]


def includes(*first):
    folders = [*first, "include", "src", "src/rcu", "tests/stress"]
    return [f"-I{os.path.join(TOP, one)}" for one in folders]


class Kind:
    """A test program, and how it is built."""

    def __init__(self, source, build, flags=()):
        self.source = os.path.join(TOP, "tests/stress", source)
        self.build = build
        self.flags = [*COMMON, *flags]

    def compile(self, work, changed):
        """The program with the changed file in it; None changed: as it is."""
        program = os.path.join(work, "test")
        paths = includes(os.path.join(work, "include"), os.path.join(self.build, "include"))
        files = [changed] if changed and changed.endswith(".c") else []
        subprocess.run(["cc", *self.flags, *paths, self.source, *files,
                        os.path.join(self.build, "libhotline.a"), "-lcmocka", "-o", program],
                       check=True)
        return program

    def fails(self, program, *arguments):
        """How the program failed; empty: it did not."""
        environment = {**os.environ, "TSAN_OPTIONS": "report_signal_unsafe=0 halt_on_error=1"}
        try:
            result = subprocess.run([program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                    text=True, check=False, timeout=TIMEOUT, env=environment)
        except subprocess.TimeoutExpired:
            return f"did not end in {TIMEOUT} s"
        if not result.returncode:
            return ""
        for mark in ("WARNING: ThreadSanitizer: ", "[  FAILED  ] "):
            for line in reversed(result.stdout.splitlines()):
                if mark in line and "test(s)" not in line:
                    return line.split(mark)[1].split(" (pid")[0].strip()
        return f"exit status {result.returncode}"


def mutate(work, path, old, new):
    """The path of a copy with the change; None: what is to be changed is not there once."""
    with open(os.path.join(TOP, path), encoding="utf-8") as stream:
        text = stream.read()
    if text.count(old) != 1:
        return None
    changed = os.path.join(work, path)
    os.makedirs(os.path.dirname(changed), exist_ok=True)
    with open(changed, "w", encoding="utf-8") as stream:
        stream.write(text.replace(old, new))
    return changed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build")
    parser.add_argument("--tsan")
    parser.add_argument("--only", dest="names", nargs="+", default=[])
    options = parser.parse_args()
    build = os.path.abspath(options.build)
    kinds = {"litmus": Kind("rcu_litmus.c", build),
             "no_membarrier": Kind("rcu_litmus.c", build, ["-DREFUSE_MEMBARRIER=ENOSYS"])}
    if options.tsan:
        kinds["passing"] = Kind("rcu_passing.c", os.path.abspath(options.tsan),
                                ["-fsanitize=thread"])
    failed = 0

    def report(ok, name, words):
        nonlocal failed
        failed += not ok
        print(f"{'seen' if ok else 'FAIL'}  {name}: {words}", flush=True)

    def folder(name):
        path = os.path.join(build, "mutants", name)
        os.makedirs(path, exist_ok=True)
        return path

    if len(os.sched_getaffinity(0)) < 2:
        print("skipped: with one processor no store is late")
        return 77
    for name, kind in kinds.items():
        if not options.names:
            words = kind.fails(kind.compile(folder(name), None))
            if words:
                report(False, name, "fails as it is: " + words)
    for name, path, old, new, kind in SEEN:
        if options.names and name not in options.names:
            continue
        if kind not in kinds:
            print(f"-     {name}: not tried: needs --tsan")
            continue
        work = folder(name)
        changed = mutate(work, path, old, new)
        if not changed:
            report(False, name, f"does not apply to {path} any more")
            continue
        program = kinds[kind].compile(work, changed)
        for attempt in range(1, RUNS + 1):
            words = kinds[kind].fails(program, *SHORT[kind])
            if words:
                report(True, name, f"{kind}, run {attempt}: {words}")
                break
        else:
            report(False, name, f"{kind} does not notice in {RUNS} runs")
    for name, path, old, new, why in UNSEEN:
        if options.names and name not in options.names:
            continue
        if mutate(folder(name), path, old, new):
            print(f"-     {name}: not to be seen: {why}")
        else:
            report(False, name, f"does not apply to {path} any more")
    print(f"{failed} failed" if failed else "all that can be seen are seen")
    return 1 if failed else 0


sys.exit(main())
