#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random structs: what `hotline layout` says of them is what the compiler did.

    layout_random.py [--seed N] [--count N]

For gcc and clang, 64 and 32 bits, DWARF 4 and 5, each with structs of its own:
the size and alignment of each type and the place of each member are the compiler's;
the C that --compile writes compiles, with its assertions, by both compilers; and
each proposed order compiles to the size that it claims, with the same members.
"""

import argparse
import json
import os
import random
import re
import tempfile

import compilers
import layout
import random_structs
import tap

FLAGS = ["-std=gnu11", "-w", "-Wno-packed-bitfield-compat"]
# A bit-field is set whole; what can be set in it depends on its type.
ALL_ONES = {"_Bool": "1", "enum colour": "(enum colour)-1"}


def _size_of(tag, member):
    return "0" if member.flexible else f"sizeof((({tag} *)0)->{member.name})"


class Batch:
    """Structs compiled by one compiler in one way."""

    def __init__(self, directory, compiler, dwarf, seed, count):
        self.directory = directory
        self.compiler = compiler
        self.dwarf = dwarf
        word_bytes = 4 if "-m32" in compiler.command else 8
        self.structs = random_structs.Generator(random.Random(seed), word_bytes).structs(count)
        self.source = random_structs.source(self.structs)

    def compile(self, name, text, *flags, compiler=None):
        """An object made of the text; what the compiler says to it is a failure."""
        path = os.path.join(self.directory, name)
        with open(path + ".c", "w", encoding="utf-8") as stream:
            stream.write(text)
        tap.run_ok([*(compiler or self.compiler).command, *FLAGS, *flags,
                    "-c", path + ".c", "-o", path + ".o"], timeout=300)
        return path + ".o"

    def subject(self):
        """The object to be read: all structs, each used, so that it is described."""
        uses = "".join(f"{struct.tag} *p_{struct.name};\n" for struct in self.structs)
        return self.compile("subject", self.source + uses, f"-gdwarf-{self.dwarf}")

    # ---- What the compiler itself says. ----

    def truth(self):
        """name -> (size, align, {member: (first bit, bits)}).

        Sizes and offsets are read from an array of numbers, bit-fields from objects
        in which one of them is set, so that nothing needs to be run."""
        numbers, objects, bits = [], [], []
        for struct in self.structs:
            numbers += [f"sizeof({struct.tag})", f"_Alignof({struct.tag})"]
            for member in struct.plain():
                numbers += [f"__builtin_offsetof({struct.tag}, {member.name})",
                            _size_of(struct.tag, member)]
            for member in struct.bit_fields():
                ones = ALL_ONES.get(member.text.rsplit(" ", 1)[0], "-1")
                label = f"b_{struct.name}_{member.name}"
                bits.append(label)
                objects.append(f"__attribute__((section(\"bits\"), used)) const {struct.tag} "
                               f"{label} = {{ .{member.name} = {ones} }};\n")
        text = self.source + "".join(objects) + (
            '__attribute__((section("numbers"), used)) const unsigned long long asked[] = {\n'
            + ",\n".join(numbers) + " };\n")
        return self._read_truth(self.compile("truth", text), bits)

    def _section(self, path, name):
        output = f"{path}.{name}"
        tap.run_ok(["objcopy", "-O", "binary", "-j", name, "--set-section-flags",
                    f"{name}=alloc", path, output])
        with open(output, "rb") as stream:
            return stream.read()

    def _read_truth(self, path, labels):
        numbers = iter(memoryview(self._section(path, "numbers")).cast("Q"))
        starts = {}
        for line in tap.run_ok(["nm", path]).stdout.splitlines():
            value, _, name = line.split()
            starts[name] = int(value, 16)
        raw = self._section(path, "bits") if labels else b""
        found = {}
        for struct in self.structs:
            size, align = next(numbers), next(numbers)
            places = {}
            for member in struct.plain():
                offset, length = next(numbers), next(numbers)
                places[member.name] = (offset * 8, length * 8)
            for member in struct.bit_fields():
                start = starts[f"b_{struct.name}_{member.name}"]
                value = int.from_bytes(raw[start:start + size], "little")
                first = (value & -value).bit_length() - 1
                places[member.name] = (first, value.bit_length() - first)
            found[struct.name] = (size, align, places)
        return found


def _places_read(members):
    """The same from the JSON, where members of unnamed structs and unions have their
    offsets from the start of the outermost."""
    places = {}
    for member in members:
        offset = member["offset"] * 8
        if member["name"] is None:
            places |= _places_read(member.get("members", []))
        elif member["bit_size"] is None:
            places[member["name"]] = (offset, member["size"] * 8)
        else:
            places[member["name"]] = (offset + member["bit_offset"], member["bit_size"])
    return places


def _check_places(batch, document):
    truth = batch.truth()
    read = {one["name"]: one for one in document["types"]}
    tap.equal(sorted(read), sorted(truth), "the types that were found")
    for struct in batch.structs:
        size, align, places = truth[struct.name]
        one = read[struct.name]
        told = _places_read(one["members"])
        tap.equal(one["size"], size, f"size of {struct.definition()}")
        if not struct.uncertain and (batch.dwarf >= 5 or not struct.unnamed):
            tap.equal(one["align"], align, f"alignment of {struct.definition()}")
        tap.equal({name: told.get(name) for name in places}, places,
                  f"places of members in {struct.definition()}")


def _check_compilable(batch, subject, others):
    """Older DWARF tells no alignment, and an unnamed bit-field looks like some."""
    names = [s.name for s in batch.structs if batch.dwarf >= 5 or not s.unnamed]
    result = tap.run_ok([layout.HOTLINE, "layout", "--compile", subject, *names], timeout=300)
    for number, compiler in enumerate(others):
        batch.compile(f"again{number}", result.stdout, compiler=compiler)


def _proposed(batch, fault, struct, number):
    """C that fails to compile unless the proposal is what it says."""
    text = fault["proposal"]["text"]
    name = f"proposal_{number}"
    renamed, times = re.subn(rf"\A{struct.tag} {{", f"{struct.kind} {name} {{", text)
    tap.equal(times, 1, f"a definition of {struct.tag}: {text}")
    members = re.search(r"/\* size: (\d+), cachelines: \d+, members: (\d+) \*/", text)
    tap.equal((int(members[1]), int(members[2])),
              (fault["proposal"]["size"],
               len([m for m in struct.members if m.name or m.inner])), text)
    tag = f"{struct.kind} {name}"
    lines = [renamed,
             f"_Static_assert(sizeof({tag}) == {fault['proposal']['size']}, \"{name}\");"]
    for member in struct.plain():
        lines.append(f"_Static_assert({_size_of(tag, member)} == {_size_of(struct.tag, member)}, "
                     f"\"{name} {member.name}\");")
    uses = " ".join(f"(void)x->{member.name};" for member in struct.bit_fields())
    lines.append(f"void use_{number}({tag} *x) {{ {uses} }}")
    return "\n".join(lines) + "\n"


def _check_proposals(batch, document):
    structs = {struct.name: struct for struct in batch.structs}
    names = {one["id"]: one["name"] for one in document["types"]}
    texts = []
    for fault in document["faults"]:
        proposal = fault["proposal"]
        if not proposal or not proposal["text"]:
            continue
        struct = structs[names[fault["type"]]]
        texts.append(_proposed(batch, fault, struct, len(texts)))
    tap.true(texts, "there is no proposal at all")
    batch.compile("proposals", batch.source + "".join(texts))


def check(compiler, others, dwarf, seed, count):
    for each in (compiler, *others):
        each.require()
    with tempfile.TemporaryDirectory(prefix="hotline-random-") as directory:
        batch = Batch(directory, compiler, dwarf, seed, count)
        subject = batch.subject()
        # Lines of 8 bytes: whatever makes a struct smaller saves one.
        result = tap.run_ok([layout.HOTLINE, "layout", "--format", "json", "--all", "--top", "0",
                             "--line", "8", "--proposals", "1000000", subject], timeout=300)
        document = json.loads(result.stdout)
        _check_places(batch, document)
        _check_compilable(batch, subject, others)
        _check_proposals(batch, document)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2 ** 32))
    parser.add_argument("--count", type=int, default=300)
    options = parser.parse_args()
    print(f"# --seed {options.seed} --count {options.count}")
    by_flags = {}
    for compiler in compilers.all_words():
        if compiler.language == compilers.C:
            by_flags.setdefault(tuple(compiler.command[1:]), []).append(compiler)
    for same_target in by_flags.values():
        for compiler in same_target:
            for dwarf in (4, 5):
                tap.add(f"{options.count} structs, {compiler.name}, DWARF {dwarf}", check,
                        compiler, same_target, dwarf, options.seed, options.count)
    tap.main()


main()
