#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The programs of examples/ and those in the manual, built against an installed copy as a user
would build them, with the shared library and with the archive, and run."""

import glob
import os
import re
import shutil
import tempfile

import compilers
import tap
from installed import Copy, read

SOURCE = os.environ["HOTLINE_SOURCE"]


def in_manual(path):
    """The programs in a page."""
    return [block for block in re.findall(r"^```\n(.*?)^```$", read(path), flags=re.M | re.S)
            if "int main(" in block]


def program_text(block):
    """As the page shows it: scdoc takes a backslash off."""
    return block.replace("\\\\", "\\")


def builds_and_runs(copy, text, static):
    compiler = compilers.Compiler("gcc", compilers.C)
    compiler.require()
    libraries = copy.pkg_config("--libs", *(["--static"] if static else []))
    if static:
        libraries = [flag.replace("-lhotline", "-l:libhotline.a") for flag in libraries]
    with tempfile.TemporaryDirectory() as directory:
        source, program = os.path.join(directory, "p.c"), os.path.join(directory, "p")
        with open(source, "w", encoding="utf-8") as stream:
            stream.write(text)
        tap.run_ok([*compiler.command, "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", source,
                    "-o", program, *copy.pkg_config("--cflags"), *libraries, "-pthread"])
        tap.run_ok([program], timeout=240,
                   env=dict(os.environ, LD_LIBRARY_PATH=os.path.dirname(copy.library)))


def every_page_has_one():
    for path in glob.glob(os.path.join(SOURCE, "man/*.3.scd")):
        tap.true(in_manual(path), f"{path} has no program")


def main():
    root = tempfile.mkdtemp(prefix="hotline-examples-")
    try:
        copy = Copy(root)
        for path in sorted(glob.glob(os.path.join(SOURCE, "examples/*.c"))):
            for static in (False, True):
                tap.add(f"{os.path.basename(path)}, {'archive' if static else 'shared library'}",
                        builds_and_runs, copy, read(path), static)
        for path in sorted(glob.glob(os.path.join(SOURCE, "man/*.3.scd"))):
            for block in in_manual(path):
                tap.add(f"the program in {os.path.basename(path)[:-4]}", builds_and_runs, copy,
                        program_text(block), False)
        tap.add("every page of section 3 has a program", every_page_has_one)
        tap.main()
    finally:
        shutil.rmtree(root)


main()
