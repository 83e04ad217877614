#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The preloaded library stands alone: it calls no function that another one may replace, and
exports the System V functions and nothing else."""

import os
import re

import tap

LIBRARY = os.path.join(os.environ["HOTLINE_BUILD"], "libhotline-sysvipc.so")
MAP = os.path.join(os.environ["HOTLINE_SOURCE"], "src/sysvipc/sysvipc.map")

# What a compiler calls by itself, where errno and the environment are, and what the linker adds.
ALLOWED = {"memcpy", "memmove", "memset", "__errno_location", "environ", "__environ", "_environ",
           "__stack_chk_fail", "__cxa_finalize", "__gmon_start__",
           "_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable"}
# Called once each, and not within an operation: shmat() counts attaches that fork copies, and a
# program that asked for its raw system calls to be caught gets a handler of SIGSYS.
ALLOWED |= {"__register_atfork", "sigaction"}
SYSTEM_V = {"semget", "semop", "semtimedop", "semctl", "msgget", "msgsnd", "msgrcv", "msgctl",
            "shmget", "shmat", "shmdt", "shmctl", "ftok"}


def symbols(which):
    lines = tap.run_ok(["nm", "-D", which, LIBRARY]).stdout.splitlines()
    return {line.split()[-1].split("@")[0] for line in lines}


@tap.case("it calls nothing that a library beside it may replace")
def imports():
    tap.equal(sorted(symbols("--undefined-only") - ALLOWED), [])


@tap.case("it exports what its list says, and that is System V")
def exports():
    with open(MAP, encoding="utf-8") as stream:
        script = re.sub(r"/\*.*?\*/", "", stream.read(), flags=re.S)
    listed = set(re.findall(r"\b(\w+);", script.split("local:")[0]))
    tap.equal(sorted(symbols("--defined-only")), sorted(listed))
    tap.equal(sorted(name for name in listed if name not in SYSTEM_V), [])


tap.main()
