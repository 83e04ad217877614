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


def build(copy, text, static, directory):
    compiler = compilers.Compiler("gcc", compilers.C)
    compiler.require()
    libraries = copy.pkg_config("--libs", *(["--static"] if static else []))
    if static:
        libraries = [flag.replace("-lhotline", "-l:libhotline.a") for flag in libraries]
    source, program = os.path.join(directory, "p.c"), os.path.join(directory, "p")
    with open(source, "w", encoding="utf-8") as stream:
        stream.write(text)
    tap.run_ok([*compiler.command, "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", source,
                "-o", program, *copy.pkg_config("--cflags"), *libraries, "-pthread"])
    return program


def environment(copy):
    return dict(os.environ, LD_LIBRARY_PATH=os.path.dirname(copy.library))


def builds_and_runs(copy, text, static):
    with tempfile.TemporaryDirectory() as directory:
        program = build(copy, text, static, directory)
        tap.run_ok([program], timeout=240, env=environment(copy))


def some_texts(enough):
    """What there is to read on a machine that has Python: its own library."""
    texts, size = [], 0
    for path in sorted(glob.glob(os.path.join(os.path.dirname(os.__file__), "**", "*.py"),
                                 recursive=True)):
        texts.append(path)
        size += os.path.getsize(path)
        if size > enough:
            break
    return texts


def word_index_finds_what_sort_counts(copy):
    texts = some_texts(16 << 20)
    # As the example has it: letters and underscores, two or more, 20 of them at most.
    # A text may end within its last line.
    counted = tap.run_ok(["sh", "-c", "for text in \"$@\"; do cat \"$text\"; echo; done | "
                          "tr -cs A-Za-z_ '\\n' | grep .. | cut -c1-20 | sort | uniq -c",
                          "sh", *texts],
                         env=dict(os.environ, LC_ALL="C")).stdout.split()
    times = dict(zip(counted[1::2], map(int, counted[0::2])))
    if sum(times.values()) < 700000:
        raise tap.Skip(f"{len(texts)} texts are not more than 16 MB of index")
    often = sorted(times, key=times.get)
    words = [*often[:200], *often[-200:], *often[::len(often) // 200 + 1], "nowhere_to_be_found"]
    with tempfile.TemporaryDirectory() as directory:
        program = build(copy, read(os.path.join(SOURCE, "examples/word_index.c")), False, directory)
        asked = [part for word in words for part in ("-w", word)]
        printed = tap.run_ok([program, *asked, *texts], timeout=240, cwd=directory,
                             env=environment(copy)).stdout.splitlines()
        about = re.match(r"(\d+) words in \d+ pages \(([\d.]+) MB\)", printed[0])
        tap.equal(int(about.group(1)), sum(times.values()))
        tap.true(float(about.group(2)) > 20, "all of it was in memory: " + printed[0])
        tap.equal(dict(line.split() for line in printed[-len(words):]),
                  {word: str(times.get(word, 0)) for word in words})
        failed = tap.run([program, "/nowhere/at/all"], cwd=directory, env=environment(copy))
        tap.equal((failed.returncode, failed.stderr),
                  (1, "word_index: /nowhere/at/all: No such file or directory\n"))


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
        tap.add("word_index.c finds each word of real texts as often as sort and uniq count it",
                word_index_finds_what_sort_counts, copy)
        for path in sorted(glob.glob(os.path.join(SOURCE, "man/*.3.scd"))):
            for block in in_manual(path):
                tap.add(f"the program in {os.path.basename(path)[:-4]}", builds_and_runs, copy,
                        program_text(block), False)
        tap.add("every page of section 3 has a program", every_page_has_one)
        tap.main()
    finally:
        shutil.rmtree(root)


main()
