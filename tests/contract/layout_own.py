#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The project's own public headers and library hold before hotline layout --check.

Whoever finds a fault here has three ways: mend the layout, teach the rule that it is
none, or, in the library, accept it in src/hotline.layout with the reason beside it."""

import glob
import os

import compilers
import layout
import tap

SOURCE = os.environ["HOTLINE_SOURCE"]
BUILD = os.environ["HOTLINE_BUILD"]
HEADERS = sorted(glob.glob(os.path.join(SOURCE, "include", "hotline", "*.h")))
RULES = os.path.join(SOURCE, "src", "hotline.layout")
# All types are kept, used or not.
KEEP = {"gcc": ["-fno-eliminate-unused-debug-types"], "clang": ["-fstandalone-debug"]}
# A type of the unit's own: there may be headers without a struct.
PROBE = "struct probe { long of_this_unit; } probe;\n"


def holds(path, check, *options):
    result = layout.layout(check, *options, path)
    tap.equal((result.returncode, result.stderr), (0, ""), result.stdout)


def headers_hold(compiler, *options):
    compiler.require()
    tap.true(HEADERS, "no public header")
    source = "".join(f"#include <hotline/{os.path.basename(header)}>\n" for header in HEADERS)
    name = "own" + compiler.name.replace(" ", "")
    layout.write(name + ".c", source + PROBE)
    keep = KEEP.get(compiler.command[0], [])
    tap.run_ok([*compiler.command, compiler.standard, "-g", *keep, "-c", name + ".c", "-o",
                name + ".o", "-I", os.path.join(SOURCE, "include"), "-I",
                os.path.join(BUILD, "include")], cwd=layout.WORK)
    holds(layout.path(name + ".o"), "--check", *options)


for one in compilers.all_words():
    if one.language == compilers.C:
        tap.add(f"public headers: {one.name}", headers_hold, one)
        tap.add(f"public headers: {one.name}, lines in pairs", headers_hold, one, "--pair")


@tap.case("the library")
def library():
    path = os.path.join(BUILD, "libhotline.so")
    # Those that were accepted are there.
    holds(path, f"--check={RULES}", "--strict")


tap.main()
