#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The system calls that calls make, counted by strace: none where the target polls, one each
where it sleeps, and membarrier as often as CPUs change how they hear, not as calls are made."""

import os
import re
import shutil
import tempfile

import tap

PROBE = os.path.join(os.environ["HOTLINE_BUILD"], "tests", "calls-probe")
# What a membarrier is for: registering, a first try, and CPUs that come, sleep and go.
FEW = 40


def counted(*arguments):
    """Runs the probe; maps the name of a system call to how often it was made."""
    if not shutil.which("strace"):
        raise tap.Skip("no strace")
    with tempfile.TemporaryDirectory() as directory:
        log = os.path.join(directory, "log")
        result = tap.run(["strace", "-f", "-c", "-o", log, PROBE, *arguments], timeout=240)
        if result.returncode and re.search("ptrace|PTRACE", result.stderr):
            raise tap.Skip("tracing is not allowed here")
        tap.equal(result.returncode, 0, result.stdout + result.stderr)
        with open(log, encoding="utf-8") as stream:
            lines = [line.split() for line in stream]
    return {fields[-1]: int(fields[3]) for fields in lines
            if len(fields) >= 5 and re.match(r"[\d.]+$", fields[0]) and fields[3].isdigit()
            and fields[-1] != "total"}


def not_with_the_calls(few, many, names):
    for name in names:
        tap.true(many.get(name, 0) <= few.get(name, 0) + FEW,
                 f"{name}: {few.get(name, 0)} for few calls, {many.get(name, 0)} for many")


@tap.case("a million calls to a CPU that polls make no system call")
def polling():
    few, many = counted("polling", "1000"), counted("polling", "1000000")
    not_with_the_calls(few, many, ["membarrier", "futex", "write", "read", "tgkill", "epoll_wait"])


@tap.case("a CPU that slept once and polls again is not woken")
def slept_once():
    few, many = counted("slept-once", "1000"), counted("slept-once", "100000")
    not_with_the_calls(few, many, ["membarrier", "futex", "write", "tgkill"])


@tap.case("polls after the eventfd was armed do not read it")
def armed_once():
    few, many = counted("armed-once", "1000"), counted("armed-once", "100000")
    not_with_the_calls(few, many, ["membarrier", "futex", "write", "read", "tgkill"])


@tap.case("calls to a CPU that sleeps each time need no membarrier each")
def idle():
    few, many = counted("idle", "100"), counted("idle", "3000")
    not_with_the_calls(few, many, ["membarrier"])
    tap.true(many.get("futex", 0) <= 2 * 3000 + few.get("futex", 0) + FEW,
             f"{many.get('futex')} futex calls for 3000 wake-ups")


@tap.case("64 CPUs that fall asleep and wake in turn make a membarrier each at most")
def oscillating():
    many = counted("oscillate", "200")
    tap.true(many.get("membarrier", 0) <= 64 * 3 + FEW, f"{many.get('membarrier')} membarriers")


@tap.case("membarrier is registered, then private and expedited, and never another")
def commands():
    if not shutil.which("strace"):
        raise tap.Skip("no strace")
    result = tap.run(["strace", "-f", "-e", "trace=membarrier", PROBE, "idle", "10"])
    if result.returncode:
        raise tap.Skip("tracing is not allowed here")
    used = re.findall(r"membarrier\((\w+)", result.stderr)
    tap.equal(used[:1], ["MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED"])
    tap.equal(set(used[1:]), {"MEMBARRIER_CMD_PRIVATE_EXPEDITED"})


tap.main()
