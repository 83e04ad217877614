#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The installed copy, to a program that uses it: what is there, what it exports, and
that it builds and runs with the flags that pkg-config gives, in C and in C++."""

import glob
import os
import re
import shutil
import tempfile

import compilers
import tap
from installed import Copy, read

SOURCE = os.environ["HOTLINE_SOURCE"]
BUILD = os.environ["HOTLINE_BUILD"]

PROGRAM = """
#include <stdio.h>
#include <hotline/cacheline.h>
#include <hotline/version.h>

struct counters {
	unsigned long ours;
	HL_CACHELINE_GUARD(guard);
	unsigned long theirs;
};
HL_CACHELINE_ASSERT_APART(struct counters, ours, theirs);

int main(void)
{
	printf("%s %d.%d.%d\\n", HL_VERSION, HL_VERSION_MAJOR, HL_VERSION_MINOR, HL_VERSION_PATCH);
	return hl_cache_line_size() >= 16 && hl_cache_line_pair_size() >= hl_cache_line_size() ? 0 : 1;
}
"""


def without_comments(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def needed(path):
    """The shared libraries that a file asks for."""
    dynamic = tap.run_ok(["readelf", "-dW", path]).stdout
    return re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)


def program_runs(copy, compiler, static):
    compiler.require()
    libraries = copy.pkg_config("--libs", *(["--static"] if static else []))
    if static:
        libraries = [flag.replace("-lhotline", "-l:libhotline.a") for flag in libraries]
    with tempfile.TemporaryDirectory() as directory:
        source = os.path.join(directory, "program" + compilers.SUFFIX[compiler.language])
        program = os.path.join(directory, "program")
        with open(source, "w", encoding="utf-8") as stream:
            stream.write(PROGRAM)
        tap.run_ok([*compiler.command, compiler.standard, "-Wall", "-Wextra", "-Werror", source,
                    "-o", program, *copy.pkg_config("--cflags"), *libraries])
        tap.equal("libhotline.so.0" in needed(program), not static, "needs the shared library")
        environment = dict(os.environ, LD_LIBRARY_PATH=os.path.dirname(copy.library))
        if static:
            del environment["LD_LIBRARY_PATH"]
        output = tap.run_ok([program], env=environment).stdout
    version = copy.pkg_config("--modversion")[0]
    tap.equal(output, f"{version} {version}\n")


def headers_are_the_public_ones(copy):
    public = [os.path.basename(path) for path in
              glob.glob(os.path.join(SOURCE, "include/hotline/*.h"))]
    tap.equal(sorted(os.listdir(os.path.join(copy.include, "hotline"))),
              sorted(public + ["version.h"]))


def exports_what_is_documented(copy):
    """Three lists are one: the headers, the version script, the library."""
    declared = set()
    for header in glob.glob(os.path.join(copy.include, "hotline/*.h")):
        text = without_comments(read(header))
        declared |= set(re.findall(r"^HL_API\b[^;(]*?(\w+)\(", text, flags=re.M))
        declared |= set(re.findall(r"^extern HL_API\b[^;(]*?(\w+);", text, flags=re.M))
    script = without_comments(read(os.path.join(SOURCE, "src/hotline.map")))
    listed = set(re.findall(r"\b(hl_\w+);", script))
    symbols = tap.run_ok(["nm", "-D", "--defined-only", copy.library]).stdout
    exported = {line.split()[2] for line in symbols.splitlines() if line.split()[1] != "A"}

    tap.true(declared, "no header declares a function")
    tap.equal(sorted(listed), sorted(declared), "src/hotline.map and the headers")
    tap.equal(sorted(exported), sorted(f"{name}@@HOTLINE_0.1" for name in declared),
              "the library and the headers")


def soname_is_versioned(copy):
    dynamic = tap.run_ok(["readelf", "-dW", copy.library]).stdout
    tap.matches(r"\(SONAME\).*\[libhotline\.so\.0\]", dynamic)


def library_needs_little(copy):
    others = [name for name in needed(copy.library)
              if not re.match(r"(libc|libc\.musl.*|ld-linux.*|ld64|liburing)\.so", name)]
    tap.equal(others, [])


def archive_keeps_to_its_prefix(copy):
    """A static library has no hidden symbols: what is global is seen by everybody."""
    symbols = tap.run_ok(["nm", "-g", "--defined-only", copy.archive]).stdout
    names = [fields[2] for fields in map(str.split, symbols.splitlines()) if len(fields) == 3]
    tap.true(names, "no symbol")
    tap.equal([name for name in names if not name.startswith("hl_")], [])


def nothing_knows_the_build_tree(copy):
    for path in [copy.find("hotline.pc"), *glob.glob(os.path.join(copy.include, "hotline/*.h"))]:
        for directory in (BUILD, SOURCE, copy.root):
            tap.true(directory not in read(path), f"{path} contains {directory}")
    tap.true(not re.search(r"RPATH|RUNPATH", tap.run_ok(["readelf", "-dW", copy.library]).stdout),
             "the library has a run path")


def main():
    root = tempfile.mkdtemp(prefix="hotline-install-")
    try:
        copy = Copy(root)
        for compiler in compilers.native():
            for static in (False, True):
                tap.add(f"{compiler.name}: a program with the {'static' if static else 'shared'} "
                        "library", program_runs, copy, compiler, static)
        tap.add("the headers are the public ones", headers_are_the_public_ones, copy)
        tap.add("the exports are what is documented", exports_what_is_documented, copy)
        tap.add("the soname is versioned", soname_is_versioned, copy)
        tap.add("the library needs libc and liburing at most", library_needs_little, copy)
        tap.add("the archive keeps to its prefix", archive_keeps_to_its_prefix, copy)
        tap.add("nothing knows the build tree", nothing_knows_the_build_tree, copy)
        tap.main()
    finally:
        shutil.rmtree(root)


main()
