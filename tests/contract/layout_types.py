#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What `hotline layout` reads of a type is what the compiler made of it.

The compiler is asked itself: the source is compiled once more, with assertions of
every size, alignment and offset that was read. That needs no run, so it is done for
other processors too; bit-fields, which cannot be asserted, are set and looked for."""

import os
import platform
import tempfile

import compilers
import ruler
import tap
from compilers import C, CXX, Compiler

FIXTURE = {"layouts": C, "bits": C, "classes": CXX}
# Processors that clang compiles for without headers of theirs.
TARGETS = ["aarch64-linux-gnu", "armv7-linux-gnueabihf", "powerpc64le-linux-gnu",
           "powerpc64-linux-gnu", "s390x-linux-gnu", "riscv64-linux-gnu", "i386-linux-gnu",
           "x86_64-linux-gnux32"]
VERSIONS = ["-gdwarf-2", "-gdwarf-3", "-gdwarf-4", "-gdwarf-5"]
FLAGS = {C: ["-std=gnu11"], CXX: ["-std=c++20", "-fno-access-control"]}
QUIET = ["-w", "-Wno-invalid-offsetof"]


def source_of(name):
    return ruler.fixture(name + compilers.SUFFIX[FIXTURE[name]])


def compile_to(directory, compiler, source, *flags):
    output = os.path.join(directory, os.path.basename(source) + ".o")
    tap.run_ok([*compiler.command, *FLAGS[compiler.language], *QUIET, *flags, "-c", source,
                "-o", output])
    return output


def spelled(one, language):
    """The type as the language spells it; None for what has no spelling here."""
    name = ruler.full_name(one)
    if "(anonymous" in name:
        return None
    return f"struct {name}" if language == C and one["kind"] == "struct" else \
        f"union {name}" if language == C else name


def assertions(document, language):
    """Claims of what was read, in C or C++."""
    word = "static_assert" if language == CXX else "_Static_assert"
    align = "alignof" if language == CXX else "_Alignof"
    for one in document["types"]:
        spelling = spelled(one, language)
        if not spelling:
            continue
        yield f'{word}(sizeof({spelling}) == {one["size"]}, "size of {spelling}");'
        yield f'{word}({align}({spelling}) == {one["align"]}, "align of {spelling}");'
        for name, member in ruler.leaves(one):
            if not member["name"] or member["bit_size"] or "role" in member:
                continue
            yield (f'{word}(__builtin_offsetof({spelling}, {name}) == {member["offset"]}, '
                   f'"offset of {spelling} {name}");')
            if member["size"] and not member["type"].endswith("&"):
                yield (f'{word}(sizeof((({spelling} *)0)->{name}) == {member["size"]}, '
                       f'"size of {spelling} {name}");')


def agrees(compiler, name, *flags):
    """All that was read of the fixture's types is what the compiler says itself."""
    source = source_of(name)
    with tempfile.TemporaryDirectory() as directory:
        document = ruler.read(compile_to(directory, compiler, source, *flags))
        tap.equal(document["skipped"], 0, document["first_skipped"])
        claims = list(assertions(document, compiler.language))
        tap.true(len(claims) > 40, f"only {len(claims)} claims")
        with open(os.path.join(directory, "claims" + compilers.SUFFIX[compiler.language]), "w",
                  encoding="utf-8") as stream:
            stream.write(f'#include "{source}"\n' + "\n".join(claims) + "\n")
        tap.run_ok([*compiler.command, *FLAGS[compiler.language], *QUIET, *flags,
                    "-fsyntax-only", stream.name])


def agrees_if_present(compiler, name, *flags):
    compiler.require()
    agrees(compiler, name, *flags)


def agrees_for_target(target, name, *flags):
    compiler = Compiler("clang" if FIXTURE[name] == C else "clang++", FIXTURE[name],
                        ["--target=" + target])
    require_target(compiler)
    agrees(compiler, name, *flags)


def require_target(compiler):
    """Skips when the compiler knows nothing of the target."""
    try:
        result = tap.run([*compiler.command, "-fsyntax-only", "-x", "c", os.devnull])
    except FileNotFoundError:
        raise tap.Skip(f"no {compiler.command[0]}") from None
    if result.returncode != 0:
        raise tap.Skip(f"{compiler.name}: no such target")


for one_compiler in compilers.all_words():
    for fixture in FIXTURE:
        if FIXTURE[fixture] == one_compiler.language:
            for dwarf in VERSIONS:
                tap.add(f"{fixture}: {one_compiler.name} {dwarf}", agrees_if_present, one_compiler,
                        fixture, dwarf)
for gcc, fixture in (("gcc", "layouts"), ("g++", "classes")):
    tap.add(f"{fixture}: {gcc}, a DWARF that tells no alignment", agrees_if_present,
            Compiler(gcc, FIXTURE[fixture]), fixture, "-gdwarf-3", "-gstrict-dwarf")
for one_target in TARGETS:
    for fixture in FIXTURE:
        tap.add(f"{fixture}: {one_target}", agrees_for_target, one_target, fixture, "-gdwarf-5")


# ---- Bit-fields. ----

def probe(document):
    """A program that prints where each bit-field is: its first bit and its bits."""
    yield '#include "stdio.h"'
    yield '#include "string.h"'
    yield ("static void show(const char *name, const unsigned char *at, unsigned n) {"
           " unsigned first = 0, bits = 0;"
           " for (unsigned i = n * 8; i-- > 0;) if (at[i / 8] >> i % 8 & 1) { first = i; bits++; }"
           ' printf("%s %u %u\\n", name, first, bits); }')
    yield "int main(void) {"
    for one in document["types"]:
        for path, member in ruler.leaves(one):
            if member["bit_size"]:
                yield (f"{{ union {{ {spelled(one, C)} s; unsigned char b[64]; }} u;"
                       f" memset(&u, 0, sizeof(u)); u.s.{path} = -1;"
                       f' show("{one["name"]}.{path}", u.b, sizeof(u.s)); }}')
    yield "return 0; }"


def bits_agree(compiler, *flags):
    compiler.require()
    source = source_of("bits")
    with tempfile.TemporaryDirectory() as directory:
        document = ruler.read(compile_to(directory, compiler, source, *flags))
        program = os.path.join(directory, "probe")
        with open(program + ".c", "w", encoding="utf-8") as stream:
            stream.write(f'#include "{source}"\n' + "\n".join(probe(document)))
        tap.run_ok([*compiler.command, *QUIET, stream.name, "-o", program])
        try:
            said = tap.run_ok([program]).stdout.splitlines()
        except OSError as error:
            raise tap.Skip(f"programs of {compiler.name} do not run here: {error.strerror}") from None
        read = ["%s.%s %d %d" % (one["name"], *ruler.place(path, member))
                for one in document["types"] for path, member in ruler.leaves(one)
                if member["bit_size"]]
        tap.true(len(read) > 30, f"only {len(read)} bit-fields")
        tap.equal("\n".join(read), "\n".join(said))


def bits_same_in_every_version(target):
    """The old way to tell places of bit-fields and the new one: for a processor whose
    programs cannot be run, big-endian ones among them."""
    compiler = Compiler("clang", C, ["--target=" + target])
    require_target(compiler)
    with tempfile.TemporaryDirectory() as directory:
        answers = []
        for version in VERSIONS:
            document = ruler.read(compile_to(directory, compiler, source_of("bits"), version))
            answers.append({one["name"]: ruler.places(one) for one in document["types"]})
        for version, answer in zip(VERSIONS, answers):
            tap.equal(answer, answers[-1], version)


for one_compiler in compilers.all_words():
    if one_compiler.language == C:
        for dwarf in VERSIONS:
            tap.add(f"places of bit-fields: {one_compiler.name} {dwarf}", bits_agree, one_compiler,
                    dwarf)
for one_target in TARGETS:
    tap.add(f"places of bit-fields: {one_target}, every DWARF", bits_same_in_every_version,
            one_target)

if platform.machine() not in ("x86_64", "aarch64"):
    print("# the expectations of this test are those of 64-bit Linux")
tap.main()
