#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The litmus tests of RCU as an aarch64 program, run by qemu. Where qemu has no
membarrier the room does without, which is the other half of what is tried.

What qemu runs on x86 keeps the order of x86, so this does not show what a weaker processor might
do; it shows that what is compiled for it works, with its own atomics, fences and system calls."""

import glob
import os
import shutil
import tempfile

import tap

SOURCE = os.environ["HOTLINE_SOURCE"]
BUILD = os.environ["HOTLINE_BUILD"]
# Of gcc there is one for aarch64, but Debian does not have it beside gcc-multilib.
COMPILER = "clang"
C_LIBRARY = "/usr/aarch64-linux-gnu"
QEMU = ("qemu-aarch64", "qemu-aarch64-static")
ROOMS = ("cacheline", "cpu", "call", "rcu")

# Prints how many membarriers there were, and whether the room can have them.
PROBE = r"""
#include <stdio.h>
#include <hotline/rcu.h>
#include "cpu/internal.h"

int main(void)
{
	struct hl_rcu_stats stats;

	hl_rcu_read_lock();
	hl_rcu_read_unlock();
	hl_synchronize_rcu();
	hl_rcu_get_stats(&stats);
	printf("usable=%d broadcasts=%d grace_periods=%d\n", hl_barrier_usable(),
	       (int)stats.broadcasts, (int)stats.grace_periods);
	return 0;
}
"""

work = tempfile.TemporaryDirectory()


def qemu():
    for name in QEMU:
        if shutil.which(name):
            return name
    return None


def compile_with_rooms(name, source, *flags):
    """The program: the rooms' sources and one more."""
    if not shutil.which(COMPILER) or not shutil.which("ld.lld"):
        raise tap.Skip("there is no clang with lld: install both")
    if not os.path.exists(f"{C_LIBRARY}/lib/crt1.o"):
        raise tap.Skip(f"there is no {C_LIBRARY}: install libc6-dev-arm64-cross")
    if not qemu():
        raise tap.Skip("there is no qemu-aarch64: install qemu-user")
    program = os.path.join(work.name, name)
    rooms = [one for room in ROOMS for one in sorted(glob.glob(f"{SOURCE}/src/{room}/*.c"))]
    includes = [f"{SOURCE}/tests/cross", f"{SOURCE}/include", f"{BUILD}/include",
                f"{SOURCE}/src"]
    start = [f"{C_LIBRARY}/lib/{name}" for name in ("crt1.o", "crti.o")]
    tap.run_ok([COMPILER, "--target=aarch64-linux-gnu", "-fuse-ld=lld", "-nostdlib",
                "-mno-outline-atomics", "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Werror",
                "-pthread", *flags, *(f"-I{one}" for one in includes),
                "-isystem", f"{C_LIBRARY}/include", *start, source, *rooms,
                f"-L{C_LIBRARY}/lib", "-lc", f"{C_LIBRARY}/lib/crtn.o", "-o", program], timeout=240)
    return program


def passes(program, *arguments):
    result = tap.run([qemu(), "-L", C_LIBRARY, program, *arguments], timeout=240)
    for line in result.stdout.splitlines():
        if line.startswith("# "):
            print(line)
    tap.true("ok 1 - " in result.stdout, "it ran nothing: " + result.stdout + result.stderr)
    tap.equal(result.returncode, 0, result.stdout + result.stderr)


def stress(source, *arguments):
    def run():
        path = os.path.join(SOURCE, "tests", "stress", source)
        passes(compile_with_rooms(source[:-2], path), *arguments)

    return run


@tap.case("with membarrier, or without where qemu has none, a grace period passes")
def probe():
    source = os.path.join(work.name, "probe.c")
    with open(source, "w", encoding="utf-8") as stream:
        stream.write(PROBE)
    words = tap.run_ok([qemu() or "true", "-L", C_LIBRARY,
                        compile_with_rooms("probe", source)]).stdout.strip()
    print("# " + words)
    tap.matches("grace_periods=1$", words)
    tap.matches("^usable=1 broadcasts=1 |^usable=0 broadcasts=[01] ", words)


tap.add("litmus tests", stress("rcu_litmus.c", "5"))
tap.add("what is handed over", stress("rcu_passing.c"))
tap.main()
