#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds liburcu's own tests against Hotline and runs them.

    tests/compare/urcu.py BUILD [SOURCE]

SOURCE is a folder with liburcu's source, or a git repository of it, whose HEAD is taken; without
it the source of the Debian package is fetched. Everything goes to BUILD/compare. Headers in
tests/compare/urcu stand in for those that have to do with RCU: memb, mb and bp become the
general scheme, qsbr quiescent states. What has nothing to do with RCU, as atomics and queues,
is liburcu's own. Tests of that alone are listed, not run.

One line a program and run; exit status 1 if one failed."""

import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
READERS = str(os.cpu_count())
TIMEOUT = 60

CONFIG = """#define CONFIG_RCU_SMP 1
#define CONFIG_RCU_TLS __thread
#define CONFIG_RCU_HAVE_CLOCK_GETTIME 1
"""

FLAVOURS = {"membarrier": ["RCU_MEMBARRIER"], "mb": ["RCU_MB"], "bp": ["RCU_BP"],
            "qsbr": ["RCU_QSBR", "TORTURE_QSBR"]}
MODES = ("stress", "perf", "rperf", "uperf")
CALLS = ("callrcu_global", "callrcu_percpu", "callrcu_perthread")

# Not about RCU, and why it is not ours to pass.
ELSEWHERE = {
    "test_arch": "cycle counters and barriers of liburcu's headers",
    "test_uatomic": "liburcu's atomics",
    "test_lfstack": "liburcu's stack",
    "test_wfcqueue": "liburcu's queue",
    "test_wfqueue": "liburcu's queue",
    "test_wfstack": "liburcu's stack",
    "test_get_max_cpuid_from_mask": "how liburcu reads the system's list of processors",
    "test_get_possible_cpus_array_len": "how liburcu reads the system's list of processors",
    "get_cpu_mask_from_sysfs": "how liburcu reads the system's list of processors",
    "get_max_cpuid_from_sysfs": "how liburcu reads the system's list of processors",
    "urcu-asm": "prints assembly, asserts nothing",
}

failed = []


def find_source(work, given):
    """A folder with the source, of whatever was given."""
    if not given:
        return subprocess.run([os.path.join(TOP, "setup/source"), "liburcu", work], check=True,
                              stdout=subprocess.PIPE, text=True).stdout.strip()
    if os.path.isdir(os.path.join(given, "tests/regression")):
        return given
    source = os.path.join(work, "liburcu-git")
    shutil.rmtree(source, ignore_errors=True)
    os.makedirs(source)
    archive = subprocess.run(["git", "-C", given, "archive", "HEAD"], check=True,
                             stdout=subprocess.PIPE).stdout
    subprocess.run(["tar", "-x", "-C", source], input=archive, check=True)
    return source


def report(ok, name, words=""):
    print(f"{'pass' if ok else 'FAIL'}  {name}{': ' + words if words else ''}", flush=True)
    if not ok:
        failed.append(name)


class Builder:
    def __init__(self, build, source, work):
        self.library = os.path.join(build, "libhotline.a")
        self.source = source
        self.work = work
        config = os.path.join(work, "include/urcu")
        os.makedirs(config, exist_ok=True)
        with open(os.path.join(config, "config.h"), "w", encoding="utf-8") as stream:
            stream.write(CONFIG)
        self.includes = [os.path.join(HERE, "urcu"), os.path.join(work, "include"),
                         os.path.join(TOP, "include"), os.path.join(build, "include"),
                         *(os.path.join(source, one) for one in
                           ("include", "src", "tests/utils", "tests/common"))]

    def path(self, *parts):
        return os.path.join(self.source, *parts)

    def compile(self, name, files, defines=(), compiler="cc"):
        """The program; None: it was not built, which is reported."""
        program = os.path.join(self.work, name)
        result = subprocess.run(
            [compiler, "-O2", "-g", "-w", "-D_GNU_SOURCE", "-DHAVE_SCHED_SETAFFINITY",
             *(f"-D{one}" for one in defines), *(f"-I{one}" for one in self.includes),
             *(self.path(one) for one in files), "-x", "none", self.library, "-pthread",
             "-o", program],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if result.returncode:
            errors = [line for line in result.stdout.splitlines() if "error" in line or
                      "undefined" in line]
            report(False, name, "does not build: " + (errors or ["?"])[0])
            return None
        return program


def last_words(output):
    """What a torture measured, or what went wrong."""
    lines = output.splitlines()
    for line in lines:
        if line.startswith(("not ok", "Bail out")):
            return line
    for line in lines:
        if "n_reads" in line:
            return line.lstrip("# ")
    return ""


def run(name, program, *arguments):
    if not program:
        return
    try:
        result = subprocess.run([program, *arguments], stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, check=False,
                                errors="replace", timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        report(False, name, f"did not end in {TIMEOUT} s")
        return
    bad = [line for line in result.stdout.splitlines() if line.startswith("not ok")]
    good = [line for line in result.stdout.splitlines() if line.startswith("ok")]
    words = last_words(result.stdout)
    if result.returncode:
        words = f"exit status {result.returncode} {words}"
    report(not result.returncode and not bad and bool(good), name, words)


def unit(builder):
    tap = "tests/utils/tap.c"
    flavours = [f"tests/unit/test_urcu_multiflavor-{one}.c" for one in ("memb", "mb", "qsbr", "bp")]
    run("test_urcu_multiflavor", builder.compile(
        "test_urcu_multiflavor", ["tests/unit/test_urcu_multiflavor.c", *flavours, tap]))
    run("test_urcu_multiflavor_dynlink", builder.compile(
        "test_urcu_multiflavor_dynlink", ["tests/unit/test_urcu_multiflavor.c", *flavours, tap],
        ["DYNAMIC_LINK_TEST"]))
    run("test_urcu_multiflavor_single_unit", builder.compile(
        "test_urcu_multiflavor_single_unit",
        ["tests/unit/test_urcu_multiflavor_single_unit.c", tap]))
    run("test_build", builder.compile("test_build", ["tests/unit/test_build.c", tap]))
    names = {os.path.splitext(one)[0] for one in os.listdir(builder.path("tests/unit"))
             if one.endswith(".c")}
    for name in sorted(names):
        if name in ELSEWHERE:
            print(f"-     {name}: not about RCU: {ELSEWHERE[name]}")
        elif not name.startswith("test_urcu_multiflavor") and name != "test_build":
            report(False, name, "is not known here")


def regression(builder):
    tap = "tests/utils/tap.c"
    queue = ["src/wfstack.c", "src/compat_futex.c"]
    run("test_urcu_fork", builder.compile("test_urcu_fork",
                                          ["tests/regression/test_urcu_fork.c", tap]))
    for flavour, defines in FLAVOURS.items():
        name = "rcutorture_urcu_" + flavour
        program = builder.compile(name, ["tests/regression/urcutorture.c", tap, *queue], defines)
        for mode in MODES:
            for calls in CALLS:
                run(f"{name} {mode} {calls}", program, READERS, mode, "1", calls)


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: tests/compare/urcu.py BUILD [SOURCE]")
    build = os.path.abspath(sys.argv[1])
    work = os.path.join(build, "compare")
    os.makedirs(work, exist_ok=True)
    source = find_source(work, sys.argv[2] if len(sys.argv) > 2 else None)
    builder = Builder(build, source, work)
    unit(builder)
    regression(builder)
    print(f"{len(failed)} failed" if failed else "all passed")
    return 1 if failed else 0


sys.exit(main())
