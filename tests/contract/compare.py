#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`hotline layout` against pahole, on what is at hand: see tests/compare/README.md."""

import os
import shutil
import sys
import tempfile

import compilers
import tap

SOURCE = os.environ["HOTLINE_SOURCE"]
HOTLINE = os.path.join(os.environ["HOTLINE_BUILD"], "tools/hotline/hotline")
COMPARE = os.path.join(SOURCE, "tests", "compare")
KERNEL = "/sys/kernel/btf/vmlinux"
# The faults of other versions of pahole are not these.
KNOWN = "v1.24"

directory = tempfile.TemporaryDirectory(prefix="hotline-compare-")


def compare(path):
    if not shutil.which("pahole"):
        raise tap.Skip("no pahole")
    version = tap.run(["pahole", "--version"]).stdout.strip()
    if version != KNOWN:
        raise tap.Skip(f"pahole {version}: the faults that are known are those of {KNOWN}")
    print(*("# " + line for line in tap.run_ok(
        [sys.executable, os.path.join(COMPARE, "pahole.py"), "--hotline", HOTLINE, path],
        timeout=240).stdout.splitlines()), sep="\n")


def kernel():
    if not os.access(KERNEL, os.R_OK):
        raise tap.Skip(f"no {KERNEL}")
    compare(KERNEL)


def cases(compiler, version):
    compiler.require()
    suffix, standard = (".c", "gnu11") if compiler.language == compilers.C else (".cc", "c++20")
    path = os.path.join(directory.name, f"cases-{compiler.name}-{version}.o")
    tap.run_ok([*compiler.command, "-w", f"-std={standard}", f"-gdwarf-{version}", "-c",
                os.path.join(COMPARE, "cases" + suffix), "-o", path])
    compare(path)


tap.add("all types of the running kernel", kernel)
tap.add("all types of the command itself", compare, HOTLINE)
for one in compilers.native():
    for dwarf in (4, 5):
        tap.add(f"the cases, {one.name}, DWARF {dwarf}", cases, one, dwarf)

tap.main()
