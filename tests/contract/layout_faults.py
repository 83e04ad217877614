#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""hotline layout names the faults of the fixtures, and finds none where there is none.

What is wanted stands in the fixtures themselves: tests/fixtures/faults/blocks.h says
how to read it. Each is compiled by gcc and clang, for 64 and for 32 bits; those of the
kernel are read from BTF as well."""

import collections
import os
import re
import shlex

import faults
import tap

WANT = re.compile(r"// want(?P<bits>64|32)?(?P<options>( --\S+)*)(?P<variable> variable)? "
                  r"(?P<name>[\w:<>, ]+): "
                  r"(?P<fault>[a-z-]+)"
                  r"(?: (?P<size>\d+)/(?P<lines>\d+)|(?P<none> -(?= |$)))?"
                  r"(?: \[(?P<members>[^]]*)\])?(?: (?P<evidence>.+))?$")


def wanted(path):
    """What a fixture's comments want: by bits, options and name, a list of matches."""
    found = collections.OrderedDict()
    with open(path, encoding="utf-8") as stream:
        for number, line in enumerate(stream, 1):
            if not line.lstrip("\t /*").startswith("want") or path.endswith("blocks.h"):
                continue
            match = WANT.match(line.strip())
            tap.true(match, f"{path}:{number}: not understood: {line}")
            for bits in [match["bits"]] if match["bits"] else ["64", "32"]:
                key = (bits, match["options"], match["name"])
                found.setdefault(key, []).append(match)
    return found


def subjects(found, name):
    """The types and variables of that name."""
    return [t for t in found["types"]
            if name in (t["name"], f"{t['scope']}::{t['name']}" if t.get("scope") else None)]


def faults_of(found, name):
    ids = {t["id"] for t in subjects(found, name)}
    return [f for f in found["faults"] if f["type"] in ids]


def show(shown):
    return "".join(f"{f['fault']} {f['score']} {f['members']}\n  {f['evidence']}\n  {f['advice']}\n"
                   f"  {f['proposal'] and (f['proposal']['size'], f['proposal']['lines'])}\n"
                   for f in shown) or "nothing\n"


def is_as_wanted(fault, want):
    proposal = fault["proposal"]
    if want["size"] and (not proposal or (proposal["size"], proposal["lines"]) !=
                         (int(want["size"]), int(want["lines"]))):
        return False
    if want["none"] and proposal:
        return False
    members = set((want["members"] or "").split())
    return members <= set(fault["members"]) and \
        bool(re.search(want["evidence"] or "", fault["evidence"]))


def check(found, name, wants, where):
    """The faults of the type are those that are wanted, each as it is wanted, no others."""
    # Variables are listed only where they have a fault.
    tap.true(wants[0]["variable"] or subjects(found, name), f"{where} keeps no {name}")
    found_faults = faults_of(found, name)
    said = f"{where}: {name} has\n{show(found_faults)}"
    kinds = [want["fault"] for want in wants if want["fault"] != "nothing"]
    tap.equal(sorted(f["fault"] for f in found_faults), sorted(kinds), said)
    for want in wants:
        if want["fault"] != "nothing":
            fault = next(f for f in found_faults if f["fault"] == want["fault"])
            tap.true(is_as_wanted(fault, want), f"{said}wanted {want[0]}")


def check_fixture(path, key, wants):
    """By both compilers; a type that only one keeps is an error of the fixture."""
    bits, options, name = key
    for compiler in faults.compilers_for(path, bits):
        check(faults.document(faults.compiled(compiler, path), *shlex.split(options)), name, wants, compiler.name)


def check_btf(path, key, wants):
    """The same from the BTF that pahole makes of the object."""
    bits, options, name = key
    for compiler in faults.compilers_for(path, bits):
        check(faults.document(faults.to_btf(faults.compiled(compiler, path)), *shlex.split(options)), name, wants,
              f"BTF of {compiler.name}")


for kernel_key, kernel_list in wanted(faults.KERNEL).items():
    kernel_name = f"{kernel_key[0]} {kernel_key[2]}: " + ", ".join(w["fault"] for w in kernel_list)
    tap.add("kernel, DWARF: " + kernel_name, check_fixture, faults.KERNEL, kernel_key, kernel_list)
    tap.add("kernel, BTF: " + kernel_name, check_btf, faults.KERNEL, kernel_key, kernel_list)

for fixture in faults.FIXTURES:
    for want_key, want_list in wanted(fixture).items():
        tap.add(f"{os.path.basename(fixture)}: {' '.join(want_key[:2]).strip()} {want_key[2]}: "
                + ", ".join(w["fault"] for w in want_list),
                check_fixture, fixture, want_key, want_list)


if __name__ == "__main__":
    tap.main()
