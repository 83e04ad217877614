#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""System V IPC by the library against the kernel's: one table of cases, run on both, compared
line by line. What the kernel answers is the truth; where this kernel has no System V IPC the
cases only have to come to their ends."""

import functools
import os
import re
import shutil
import signal
import tempfile

import tap

BUILD = os.environ["HOTLINE_BUILD"]
PROGRAM = os.path.join(BUILD, "tests", "sysvipc-cases")
DENY = os.path.join(BUILD, "tests", "deny-sysvipc")
LIBRARY = os.path.join(BUILD, "libhotline-sysvipc.so")
CALLS = ("semget,semop,semtimedop,semctl,msgget,msgsnd,msgrcv,msgctl,"
         "shmget,shmat,shmdt,shmctl").split(",")

# Where the library answers otherwise, and why. Each is told apart from a fault by what it
# answers: the lines here.
EXPLAINED = {
    # Linux counts a piece once more that was split off and merged again (LTP's shmat04).
    "shm-protected": ["protected and back: 1", "detached: 0"],
    # Linux takes a process that is stopped out of those that wait, and it fails with EINTR when it
    # goes on; no call tells a library that its process was stopped.
    "sem-stopped-waiter": [
        "stopped: n 1 z 0 value 0", "up: 0", "given to it: n 0 z 0 value 0",
        "taken by another: EAGAIN", "down: 0", "stopped one: exit 0"],
}

MODES = {
    "under the library": [],
    "where the calls fail": [DENY, "enosys"],
    "where the calls are trapped": [DENY, "sigsys"],
}


def split(text):
    """Maps the name of a case to its lines."""
    answers, lines = {}, []
    for line in text.splitlines():
        if line.startswith(" "):
            lines.append(line.strip())
        else:
            lines = answers.setdefault(line, [])
    return answers


@functools.cache
def names():
    return tap.run_ok([PROGRAM, "--list"]).stdout.split()


@functools.cache
def by_kernel():
    """What the kernel answers; None: it has no System V IPC."""
    first = tap.run([PROGRAM, "sem-get"])
    if "ENOSYS" in first.stdout or first.returncode < 0:
        return None
    return split(tap.run([PROGRAM], timeout=240).stdout)


def environment(directory):
    # Cases change their user.
    os.chmod(directory, 0o1777)
    return dict(os.environ, LD_PRELOAD=LIBRARY, HOTLINE_SYSVIPC_DIR=directory)


def in_memory():
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def with_library(launcher, *arguments, timeout=240):
    if not os.path.exists(LIBRARY):
        raise tap.Skip("the library is not built")
    with tempfile.TemporaryDirectory(prefix="hotline-cases-", dir=in_memory()) as directory:
        return tap.run([*launcher, PROGRAM, *arguments], timeout=timeout,
                       env=environment(directory))


@functools.cache
def by_library(mode):
    result = with_library(MODES[mode])
    if result.returncode == 77:
        raise tap.Skip(result.stderr.strip())
    tap.true(result.returncode in (0, 1), f"status {result.returncode}\n{result.stderr}")
    return split(result.stdout)


def compare(mode, name):
    expected, actual = by_kernel(), by_library(mode)
    if expected is None and name not in EXPLAINED:
        tap.true(not any("case" in line for line in actual[name]), "\n".join(actual[name]))
        raise tap.Skip("this kernel has no System V IPC to compare with")
    tap.equal("\n".join(actual.get(name, ["nothing"])),
              "\n".join(EXPLAINED.get(name) or expected[name]))


def launcher_denies(how, expected):
    result = tap.run([DENY, how, PROGRAM, "sem-get", "msg-get", "shm-get"])
    if result.returncode == 77:
        raise tap.Skip(result.stderr.strip())
    for name in ("sem-get", "msg-get", "shm-get"):
        tap.true(any(expected in line for line in split(result.stdout)[name]), result.stdout)


@tap.case("no system call of the twelve is made")
def no_call():
    if not shutil.which("strace"):
        raise tap.Skip("no strace")
    result = with_library(["strace", "-f", "-qq", "-e", "signal=none",
                           "-e", "trace=" + ",".join(CALLS)],
                          "sem-values", "sem-counted", "undo-exec", "msg-types", "shm-counts")
    if result.returncode and re.search("ptrace|PTRACE", result.stderr):
        raise tap.Skip("tracing is not allowed here")
    tap.equal(re.findall(r"\b(?:" + "|".join(CALLS) + r")\(.*", result.stderr), [])


tap.add("the launcher makes the calls fail", launcher_denies, "enosys", "ENOSYS")
tap.add("the launcher makes the calls end the program", launcher_denies, "sigsys",
        f"signal {signal.SIGSYS.value}")
for which in MODES:
    for case in names():
        tap.add(f"{which}: {case}", compare, which, case)
tap.main()
