#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""hotline layout proposes what compiles to the size that it says, and keeps its word.

    layout_proposals.py [--seed N]

Each proposal of the fixtures, of the project's own programs and of random structs whose
members are named like locks, counts and pads is compiled behind the definitions that it
needs: size, alignment, the members of the original, and that apart is what should be."""

import argparse
import collections
import os
import random
import re

import compilers
import faults
import layout
import random_structs
import tap

# Names in C++ are shown without their namespace.
STD = "using namespace std;\n"
QUIET = {compilers.C: ["-w", "-Wno-packed-bitfield-compat"], compilers.CXX: ["-w", "-Wno-invalid-offsetof",
                                             "-fno-access-control"]}
RULERS = [(), ("--line=128",), ("--pair",)]
# Padding that a proposal may drop.
PAD = re.compile(r"pad|padding|spacer|filler", re.I)


def travels(options):
    """Bytes that must not be shared; bytes of a line."""
    line = next((int(o.split("=")[1]) for o in options if o.startswith("--line=")), 64)
    return (2 * line if "--pair" in options else line), line


def flat(members):
    """All that offsetof can be asked about, without what is inside named ones."""
    for member in members:
        if member.get("role"):
            continue
        if member["name"]:
            yield member
        elif "members" in member:
            yield from flat(member["members"])


def walk(members):
    for member in members:
        yield member
        yield from walk(member.get("members", []))


class Proposal:
    """One proposal, in a scope of its own, where it hides the original."""

    def __init__(self, fault, subject, bits, options):
        self.fault = fault
        self.subject = subject
        self.apart, self.line = travels(options)
        self.text = fault["proposal"]["text"]
        self.is_variable = subject["kind"] == "variable"
        self.tag = subject["name"]
        if not self.is_variable and not self.text.startswith("typedef "):
            self.tag = f"{subject['kind']} {subject['name']}"
        self.bits = bits

    def original_align(self, number):
        """Its alignment as the compiler has it, as a constant to be used where it is hidden."""
        return f"enum {{ align_{number} = __alignof__({self.tag}) }};\n"

    def claims(self, number):
        """(what must be true, in words)."""
        proposal = self.fault["proposal"]
        size = f"sizeof({self.tag})"
        yield f"{size} == {proposal['size']}", "its size"
        yield f"({proposal['size']} + {self.line - 1}) / {self.line} == {proposal['lines']}", "lines"
        if self.is_variable:
            yield f"{size} % {self.apart} == 0", "whole lines"
            return
        if self.fault["fault"] != "just-over":  # Narrower may be less aligned.
            # What one packed member leaves of it, DWARF does not say.
            yield f"__alignof__({self.tag}) >= align_{number} || " \
                  f"__alignof__({self.tag}) >= {self.subject['align']}", "its alignment"
        yield from self._claims_of_members()
        yield from getattr(self, "_claims_of_" + self.fault["fault"].replace("-", "_"))()

    def _size_of(self, name):
        return f"sizeof((({self.tag} *)0)->{name})"

    def _offset(self, name):
        return f"__builtin_offsetof({self.tag}, {name})"

    def _claims_of_members(self):
        """Each is there: as it was, or the one that is to be narrower, shorter, padded."""
        may_change = self.fault["fault"] in ("just-over", "shared-slots")
        for member in flat(self.subject["members"]):
            name, size = member["name"], member["size"]
            if name in self.bits or (self.fault["fault"] == "false-isolation" and
                                     PAD.search(name)):
                continue
            if may_change and name in self.fault["members"]:
                narrower = self.fault["fault"] == "just-over"
                yield f"{self._size_of(name)} {'<=' if narrower else '>'} {size}", name
            elif size:
                yield f"{self._size_of(name)} == {size}", f"{name} as it was"
            else:
                yield f"{self._offset(name)} <= {self._offset(name)}", f"{name} is there"

    def _claims_of_straddle(self):
        yield f"__alignof__({self.tag}) >= sizeof({self.tag}) || " \
              f"__alignof__({self.tag}) >= {self.line}", "cannot straddle"

    def _claims_of_just_over(self):
        yield f"sizeof({self.tag}) <= {self.subject['size'] // self.line * self.line}", "no line over"

    def _claims_of_hole(self):
        lines = -(-self.subject["size"] // self.line)
        yield f"(sizeof({self.tag}) + {self.line - 1}) / {self.line} < {lines}", "a line less"

    def _claims_of_crossing(self):
        name = self.fault["members"][0]
        yield f"sizeof({self.tag}) <= {self.subject['size']}", "no larger"
        if "(" in name:
            return
        if "element" not in self.fault["evidence"]:
            yield f"{self._offset(name)} / {self.line} == " \
                  f"({self._offset(name)} + {self._size_of(name)} - 1) / {self.line}", "on one line"
        else:
            yield f"{self._offset(name)} % sizeof((({self.tag} *)0)->{name}[0]) == 0 || " \
                  f"{self._offset(name)} % {self.line} + {self._size_of(name)} <= {self.line}", \
                  "no element crosses"

    def _claims_of_shared_slots(self):
        name = self.fault["members"][0]
        yield f"sizeof((({self.tag} *)0)->{name}[0]) % {self.apart} == 0", "elements of whole lines"
        yield f"{self._offset(name)} % {self.apart} == 0", "from a line on"
        yield f"__alignof__({self.tag}) % {self.apart} == 0", "wherever it is"

    def _apart(self, one, other):
        """The members that they lie in are on different lines."""
        names = [path.split(".")[0] for path in (one, other)]
        if any(re.search(r"[(<]", name) or name in self.bits for name in names):
            return  # Nobody can ask where that is.
        (a, a_end), (b, b_end) = [
            (f"{self._offset(name)} / {self.apart}",
             # Marks of groups have no size.
             f"({self._offset(name)} + ({self._size_of(name)} ?: 1) - 1) / {self.apart}")
            for name in names]
        yield f"{a_end} < {b} || {b_end} < {a}", f"{one} and {other} are apart"

    def _claims_of_lock_beside_read_mostly(self):
        written, *read = self.fault["members"]
        yield f"__alignof__({self.tag}) >= {self.apart}", "begins a line"
        for other in read:
            yield from self._apart(written, other)

    def _claims_of_false_isolation(self):
        yield f"__alignof__({self.tag}) >= {self.apart}", "begins a line"
        groups = [name for name in self.fault["members"] if not PAD.search(name)]
        if len(groups) == 2:
            yield from self._apart(*groups)

    def code(self, word, number):
        lines = ["" if self.is_variable else self.original_align(number),
                 f"void scope{number}(void) {{", self.text]
        for claim, what in self.claims(number):
            lines.append(f'{word}({claim}, "{self.fault["fault"]}: {what}");')
        return "\n".join(lines) + "\n}\n"


def proposals(document, options):
    """Those with a text that is a program's own: what a compiler made cannot be written."""
    by_id = {one["id"]: one for one in document["types"]}
    names = collections.Counter((one["kind"], one["name"]) for one in document["types"])
    # A program may have two types of one name: which is meant, C cannot say.
    twice = re.compile("|".join(rf"\b{kind} {re.escape(name)}\b" for (kind, name), n in names.items()
                                if n > 1 and re.fullmatch(r"\w+", name)) or "(?!)")
    bits = {member["name"] for one in document["types"] for member in walk(one["members"])
            if member["bit_size"]}
    for fault in document["faults"]:
        subject = by_id[fault["type"]]
        if not fault["proposal"] or not fault["proposal"]["text"]:
            continue
        if "<" in subject["name"] or subject.get("scope") or "vptr" in fault["proposal"]["text"] \
                or "(anonymous" in subject["name"] or twice.search(fault["proposal"]["text"]):
            continue
        yield Proposal(fault, subject, bits, options)


def compile_claims(compiler, name, definitions, found):
    """All claims at once; each that fails is named by the compiler."""
    word = "static_assert" if compiler.language == compilers.CXX else "_Static_assert"
    path = layout.write(name + compilers.SUFFIX[compiler.language],
                        definitions + "".join(one.code(word, number)
                                              for number, one in enumerate(found)))
    tap.run_ok([*compiler.command, *faults.FLAGS[compiler.language], *QUIET[compiler.language],
                "-fsyntax-only", path], timeout=300)


def check_fixture(path, bits, options, least):
    for compiler in faults.compilers_for(path, bits):
        document = faults.document(faults.compiled(compiler, path), *options)
        found = list(proposals(document, options))
        tap.true(len(found) >= least, f"only {len(found)} proposals")
        compile_claims(compiler, "fixture", f'#include "{path}"\n' + STD * path.endswith(".cc"), found)


for fixture in [*faults.FIXTURES, faults.KERNEL]:
    for fixture_bits in ("64", "32"):
        for ruler in RULERS:
            tap.add(f"{os.path.basename(fixture)}, {fixture_bits} bits {' '.join(ruler)}",
                    check_fixture, fixture, fixture_bits, ruler, 0 if ruler else 1)


# ---- Programs, by the definitions that --compile writes. ----

def compile_all(name, path, options, compiler_list, least):
    result = layout.layout("--compile", path)
    if "defines no struct" in result.stderr:
        raise tap.Skip("it has no struct of its own yet")
    if "cannot be written in C" in result.stderr:
        raise tap.Skip("types of a sanitizer's runtime, which are C++, are in it")
    tap.equal((result.returncode, result.stderr), (0, ""))
    definitions = result.stdout
    found = list(proposals(faults.document(path, *options), options))
    tap.true(len(found) >= least, f"only {len(found)} proposals")
    for compiler in compiler_list:
        compile_claims(compiler, name, definitions, found)


def check_own(path):
    if not os.path.exists(path):
        raise tap.Skip(f"no {path}")
    for options in RULERS:
        compile_all("own", path, options, faults.compilers_for("x.c", "64"), 0)


for program in ("tools/hotline/hotline", "libhotline.so"):
    tap.add(program, check_own, os.path.join(os.environ["HOTLINE_BUILD"], program))


# ---- Random structs, with names that say something. ----

WORDS = ["lock", "refcount", "next", "done", "count", "pad", "id", "size", "head", "tail", "hits",
         "workers", "slots", "name", "ops", "value", "data", "buffer", "x", "flags"]


def with_names(structs, choose):
    """Names like f3_lock for f3, in the texts and wherever else they are kept."""
    for struct in structs:
        for member in struct.members:
            for one in [member, *member.inner]:
                old = one.name or (one.bits[0] if one.bits else None)
                if not old:
                    continue
                new = f"{old}_{choose.choice(WORDS)}"
                member.text = re.sub(rf"\b{old}\b", new, member.text)
                if one is not member:
                    one.text = re.sub(rf"\b{old}\b", new, one.text)


def check_random(compiler, seed):
    compiler.require()
    choose = random.Random(seed)
    word_bytes = 4 if "-m32" in compiler.command else 8
    structs = random_structs.Generator(choose, word_bytes).structs(300)
    with_names(structs, choose)
    source = random_structs.source(structs)
    uses = "".join(f"{struct.tag} *p_{struct.name};\n" for struct in structs)
    name = "random" + re.sub(r"\W", "_", compiler.name)
    layout.write(name + ".c", source + uses)
    tap.run_ok([*compiler.command, *faults.FLAGS[compilers.C], *QUIET[compilers.C], "-g", "-c", name + ".c", "-o", name + ".o"],
               cwd=layout.WORK)
    for options in [*RULERS, ("--line=16",)]:
        found = list(proposals(faults.document(layout.path(name + ".o"), *options), options))
        tap.true(found, "there is no proposal at all")
        for each in faults.compilers_for("x.c", "32" if word_bytes == 4 else "64"):
            compile_claims(each, "claims", source, found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2 ** 32))
    options = parser.parse_args()
    print(f"# --seed {options.seed}")
    for compiler in faults.COMPILERS:
        if compiler.language == compilers.C:
            tap.add(f"300 random structs, {compiler.name}", check_random, compiler, options.seed)
    tap.main()


main()
