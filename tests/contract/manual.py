#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The manual: every public function is in the NAME of a page of section 3, no page names what is
not there, and every page that is referred to exists."""

import glob
import os
import re

import tap

SOURCE = os.environ["HOTLINE_SOURCE"]
OURS = re.compile(r"\*((?:hl_|hotline)[\w-]*)\*\((\d)\)")


def read(path):
    with open(path, encoding="utf-8") as stream:
        return stream.read()


def pages():
    """Maps (name, section) to the page's text."""
    found = {}
    for path in glob.glob(os.path.join(SOURCE, "man/*.scd")):
        name, section = re.fullmatch(r"(.*)\.(\d)\.scd", os.path.basename(path)).groups()
        found[name, section] = read(path)
    return found


def names(text):
    """What the NAME section lists."""
    line = re.search(r"^# NAME\n\n(.*?) - ", text, flags=re.M)
    return line.group(1).split(", ") if line else []


def exported():
    script = re.sub(r"/\*.*?\*/", "", read(os.path.join(SOURCE, "src/hotline.map")), flags=re.S)
    return set(re.findall(r"\b(hl_(?!priv_)\w+);", script))


@tap.case("every function that is exported has a page, once")
def functions():
    listed = sum((names(text) for (_, section), text in pages().items() if section == "3"), [])
    tap.equal(len(listed), len(set(listed)), "a name is in two pages")
    tap.equal(sorted(exported() - set(listed)), [])


@tap.case("a page names what is there")
def nothing_else():
    headers = "".join(map(read, glob.glob(os.path.join(SOURCE, "include/hotline/*.h"))))
    for (name, section), text in pages().items():
        if section == "3":
            tap.true(name in names(text), f"{name} is not in its own NAME")
            for function in re.findall(r"\*(hl_\w+)\*\(\)", text):
                tap.true(re.search(rf"\b{function}\(", headers), f"{name}: {function}() is nowhere")


@tap.case("no reference dangles")
def references():
    there = pages()
    aliases = {(alias, section) for (_, section), text in there.items() for alias in names(text)}
    for (name, _), text in there.items():
        tap.matches(r"^# SEE ALSO", text, name)
        for reference in OURS.findall(text):
            tap.true(reference in there or reference in aliases, f"{name} refers to {reference}")


@tap.case("the build lists every page")
def built():
    listed = read(os.path.join(SOURCE, "man/meson.build"))
    for name, section in pages():
        tap.true(f"'{name}.{section}'" in listed, f"{name}.{section} is not in man/meson.build")


tap.main()
