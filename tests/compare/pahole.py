#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares `hotline layout` with pahole, for every struct, union and class of files.

Compared are, of each type: size, number of lines, number and bytes of holes, bit
holes, padding and bit padding; of each member, those of unnamed inner structs too:
name, offset, size, place and width in bits, and what is free behind it.

Where the two differ, a third decides: the debug information itself, read a second
way (BTF from its bytes, DWARF as readelf prints it), which has the sizes and
offsets that the compiler gave. Where it sides with Hotline, the reason is looked for
among the known faults of pahole (reasons.py), each of which a compiled probe proves.
The second reading looks at all types, also those that pahole agrees on. Besides, all
types of a C program are written out with `hotline layout --compile`, whose assertions
of each size and offset gcc and clang must find true.

Exit status: 0 when no type of Hotline's is wrong and all differences are explained,
1 when not, 2 when something that is needed is missing."""

import argparse
import collections
import os
import shutil
import subprocess
import sys
import tempfile

import model
import ours
import pahole_text
import reading
import reasons

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COMPILERS = {"C": ["gcc", "clang"], "C++": ["g++", "clang++"]}


class Result:
    """What became of the types of one file."""

    def __init__(self, path):
        self.path = path
        self.types = 0
        self.equal = 0
        self.second = 0         # types that the second reading has just so
        self.pictures = 0       # that pahole printed
        self.wrong = collections.Counter()      # reason: types of pahole's
        self.examples = {}      # reason: (type, differences)
        self.bad = []           # what is wrong or not explained, in words
        self.remarks = []       # what compilers said of all types, and the like

    def explained(self):
        return sum(self.wrong.values())


def grouped(types):
    groups = collections.defaultdict(list)
    for one in types:
        groups[one.key()].append(one)
    return groups


def nearest(one, candidates):
    """The candidate that is most like the type, and the differences."""
    best = None
    for candidate in candidates:
        different = model.differences(candidate, one)
        if best is None or len(different) < len(best[1]):
            best = candidate, different
        if not different:
            break
    return best or (None, None)


def agrees(second, one):
    """Whether the second reading has the type just as Hotline has it."""
    if model.differences(second, one, holes=False) or second.lines != one.lines:
        return False
    return None in (one.free_bits, second.free_bits) or one.free_bits == second.free_bits


def describe(one, different):
    words = ", ".join(f"{what}: {theirs} / {ours}" for what, theirs, ours in different[:4])
    more = f" and {len(different) - 4} more" if len(different) > 4 else ""
    return f"{one.kind} {one.name} ({one.declared or 'no file'}): {words}{more}"


class Comparison:
    def __init__(self, path, hotline, errors):
        self.result = Result(path)
        btf = is_btf(path)
        mine, skipped, complaint = ours.read(hotline, path)
        second = reading.read_btf(path) if btf else reading.read_dwarf(path)
        pictures, self.status = pahole_text.read(path, btf, errors)
        self.mine = grouped(mine)
        self.second = grouped(second.types())
        self.pictures = grouped(pictures)
        self.result.types = len(mine)
        self.result.pictures = len(pictures)
        if skipped:
            self.bad(f"Hotline left out {skipped} entries")
        if complaint:
            (self.bad if pictures else self.result.remarks.append)(complaint)
        elif not pictures:
            self.bad(f"pahole shows nothing, exit status {self.status}")

    def bad(self, words):
        self.result.bad.append(words)

    def run(self):
        for key, types in self.mine.items():
            for one in types:
                self.type(one, self.second.get(key, []), self.pictures.get(key, []))
        for key, types in self.second.items():
            for one in types:
                if not any(agrees(one, other) for other in self.mine.get(key, [])):
                    self.bad(f"only in the second reading: {describe(one, [])}")
        for key, pictures in self.pictures.items():
            if key not in self.mine:
                self.bad(f"only pahole has {describe(pictures[0], [])}")
        return self.result

    def type(self, one, seconds, pictures):
        second = next((s for s in seconds if agrees(s, one)), None)
        picture, different = nearest(one, pictures)
        if second:
            self.result.second += 1
        elif seconds:
            closest = nearest(one, seconds)[0]
            told = model.differences(closest, one, holes=False) or [
                ("free bits", closest.free_bits, one.free_bits)]
            self.bad(f"the second reading differs: {describe(one, told)}")
        else:
            self.bad(f"not in the second reading: {describe(one, [])}")
        if picture and not different:
            self.result.equal += 1
            return
        self.explain(one, second, different)

    def explain(self, one, second, different):
        name = None
        if different is None:
            if self.status and second:
                name = reasons.CRASH
                different = []
        elif second:
            reason = reasons.find(second.features, different)
            name = reason.name if reason else self.same_name(one)
        if name is None:
            self.bad("pahole does not show " + describe(one, []) if different is None else
                     "not explained (pahole / Hotline): " + describe(one, different))
            return
        self.result.wrong[name] += 1
        self.result.examples.setdefault(name, describe(one, different))

    def same_name(self, one):
        """Several types may have one name, of which pahole shows fewer: then each that
        it shows is as one of ours."""
        mine, pictures = self.mine[one.key()], self.pictures[one.key()]
        if len(mine) > 1 and all(any(not model.differences(picture, other) for other in mine)
                                 for picture in pictures):
            return reasons.SAME_NAME
        return None


def is_btf(path):
    with open(path, "rb") as stream:
        return stream.read(2) in (b"\x9f\xeb", b"\xeb\x9f")


def compile_text(compiler, text, language):
    """What the compiler has against the source; an empty string for nothing."""
    name = "x." + {"C": "c", "C++": "cc"}[language]
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, name)
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
        result = subprocess.run([compiler, "-w", "-fsyntax-only", path], stderr=subprocess.PIPE,
                                encoding="utf-8", errors="replace", check=False)
    if result.returncode == 0:
        return ""
    return "\n".join(line for line in result.stderr.splitlines() if "error" in line) or "it failed"


def compile_all(hotline, result):
    """Has the compilers check the size and the offsets of all types, where C can say them."""
    written = subprocess.run([hotline, "layout", "--compile", result.path],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                             errors="replace", check=False)
    if written.returncode != 0:
        result.remarks.append("not C: " + written.stderr.strip().split(": ")[-1])
        return
    count = written.stdout.count("_Static_assert(")
    for compiler in COMPILERS["C"]:
        if not shutil.which(compiler):
            continue
        complaint = compile_text(compiler, written.stdout, "C")
        if complaint:
            result.bad.append(f"{compiler} refuses what --compile writes: {complaint[:400]}")
        else:
            result.remarks.append(f"{compiler} proves {count} assertions")


def prove(name):
    """What the compilers say to the probe of a reason, and whether they agree with it."""
    if name in reasons.UNPROVED:
        return reasons.UNPROVED[name], True
    reason = next(r for r in reasons.REASONS if r.name == name)
    said, good = [], True
    for compiler in COMPILERS[reason.language]:
        if shutil.which(compiler):
            complaint = compile_text(compiler, reason.probe, reason.language)
            good = good and not complaint
            said.append(f"{compiler} {'disagrees: ' + complaint if complaint else 'agrees'}")
    return f"{reason.text} [{', '.join(said) or 'no compiler here'}]", good


def report_file(result, limit):
    print(f"{result.path}")
    print(f"  types {result.types}, second reading agrees on {result.second}, "
          f"equal to pahole {result.equal}, pahole wrong {result.explained()}, "
          f"unexplained {len(result.bad)}")
    for name, count in result.wrong.most_common():
        print(f"  {count:6} {name}, as {result.examples[name]}")
    for words in result.remarks:
        print(f"  {words}")
    for words in result.bad[:limit]:
        print(f"  ! {words}")
    if len(result.bad) > limit:
        print(f"  ! and {len(result.bad) - limit} more")
    print(flush=True)


def report_all(results):
    """The table, and the reasons; false when a probe does not hold."""
    row = "{:32} {:>7} {:>7} {:>7} {:>12} {:>10} {:>11}"
    print(row.format("file", "types", "second", "equal", "pahole wrong", "ours wrong",
                     "unexplained"))
    for r in results:
        wrong = sum("second reading" in words for words in r.bad)
        print(row.format(r.path[-32:], r.types, r.second, r.equal,
                         r.explained(), wrong, len(r.bad) - wrong))
    total = collections.Counter()
    for r in results:
        total += r.wrong
    good = True
    if total:
        print("\nWhere pahole is wrong:")
    for name, count in total.most_common():
        text, proved = prove(name)
        good = good and proved
        print(f"  {count:6} {name}: {text}")
    return good


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hotline", default=os.path.join(ROOT, "build", "hotline"),
                        help="the command (build/hotline)")
    parser.add_argument("--show", type=int, default=20, metavar="N",
                        help="what is unexplained, N lines a file (20)")
    parser.add_argument("files", nargs="+", metavar="FILE", help="with DWARF, or raw BTF")
    arguments = parser.parse_args()
    for tool in ("pahole", "readelf"):
        if not shutil.which(tool):
            print(f"pahole.py: needs {tool}", file=sys.stderr)
            sys.exit(2)
    results = []
    with tempfile.TemporaryFile() as errors:
        for path in arguments.files:
            result = Comparison(path, arguments.hotline, errors).run()
            if result.types:
                compile_all(arguments.hotline, result)
            report_file(result, arguments.show)
            results.append(result)
    good = report_all(results)
    sys.exit(0 if good and not any(r.bad for r in results) else 1)


if __name__ == "__main__":
    main()
