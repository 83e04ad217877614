# SPDX-License-Identifier: MIT
"""What pahole prints, as types."""

import re
import subprocess

from model import Member, Type

# Every type once: those of no name that a typedef names, those inside classes and
# functions; data members alone; -I: where each is declared.
OPTIONS = ["--anon_include", "--show_private_classes", "--show_only_data_members",
           "--show_decl_info"]

DECLARED = re.compile(r"/\* <(\w+)> (.*) \*/$")
OPENS = re.compile(r"(typedef )?(struct|union|class)(?: (.+?))??(?: : .+)? \{$")
CLOSES = re.compile(r"\}(.*);$")
MEMBER = re.compile(r"(.*?);(?: \*/)?\s*/\*\s*(-?\d+)(?::\s*(\d+))?\s+(\d+) \*/$")
HOLE = re.compile(r"/\* XXX (\d+) (byte|bit)s? hole")
NUMBER = {
    "size": re.compile(r"/\* size: (\d+)"),
    "lines": re.compile(r"cachelines: (\d+)"),
    "holes": re.compile(r"(?<!bit )(?<!forced )holes: (\d+)"),
    "hole_bytes": re.compile(r"sum holes: (\d+)"),
    "bit_holes": re.compile(r", bit holes: (\d+)"),
    "padding": re.compile(r"/\* padding: (\d+)"),
    "bit_padding": re.compile(r"bit_padding: (\d+)"),
}
ATTRIBUTE = re.compile(r"__attribute__\(\(.*?\)\)+")


class _Picture:
    """The lines of one type, as they come."""

    def __init__(self, kind, name, declared):
        self.type = Type(kind, name)
        self.type.declared = declared
        # One list of members for each struct that is open, the innermost last;
        # None for an enum, whose lines are no members.
        self.open = [self.type.members]
        if kind != "union":
            # What pahole does not mention is none.
            for field in NUMBER:
                setattr(self.type, field, 0)

    def line(self, line):
        """Takes a line; true when it was the last."""
        text = line.strip()
        if text.startswith("}") and len(self.open) == 1:
            if not self.type.name:
                self.type.name = ATTRIBUTE.sub("", CLOSES.match(text)[1]).strip() or None
            return True
        if text.endswith("{"):
            self.open.append(None if text.startswith("enum") else [])
        elif text.startswith("/* XXX"):
            self.hole(text)
        elif text.startswith(("/* size:", "/* sum", "/* padding:", "/* bit_padding:")):
            if len(self.open) == 1:
                self.totals(text)
        else:
            self.member(text)
        return False

    def hole(self, text):
        found = HOLE.match(text)
        if found and self.open[-1]:
            field = "hole" if found[2] == "byte" else "bit_hole"
            setattr(self.open[-1][-1], field, int(found[1]))

    def totals(self, text):
        for field, pattern in NUMBER.items():
            found = pattern.search(text)
            if found:
                setattr(self.type, field, int(found[1]))

    def member(self, text):
        found = MEMBER.match(text)
        inner = ()
        if text.startswith("}"):
            inner = self.open.pop() or ()
        if not found or self.open[-1] is None:
            return
        declaration = ATTRIBUTE.sub("", found[1])
        if declaration.startswith("} *"):
            inner = ()      # that struct lies elsewhere
        bits = re.search(r":(\d+)$", declaration.strip()) if found[3] else None
        self.open[-1].append(Member(
            None, int(found[2]), int(found[4]), inner=inner, declaration=declaration,
            bit=int(found[3]) if found[3] else None, bits=int(bits[1]) if bits else None))


def _run(path, options, errors):
    return subprocess.run(["pahole", *options, path], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=errors, encoding="utf-8",
                          errors="backslashreplace", check=False)


def _tell_union_sizes(types, path, options, errors):
    """The pictures of unions do not say their sizes. The table of sizes does, but for
    those without a name of their own, of which it has more than are shown."""
    sizes = {}
    for line in _run(path, [*options, "--sizes", "--unions"], errors).stdout.splitlines():
        if line.count("\t") >= 2:
            name, size, _ = line.rsplit("\t", 2)
            sizes.setdefault(name, []).append(int(size))
    for union in types:
        if union.kind == "union" and sizes.get(union.name):
            union.size = sizes[union.name].pop(0)


def parse(lines):
    types = []
    picture = declared = None
    for line in lines:
        if picture:
            if picture.line(line):
                types.append(picture.type)
                picture = None
            continue
        found = DECLARED.match(line)
        if found:
            declared = found[2]
        found = OPENS.match(line)
        if found:
            picture = _Picture(found[2], found[3], declared)
    return types


def read(path, btf, errors):
    """All types that pahole prints, and its exit status. What it says on standard
    error, often thousands of lines, goes to the file `errors`."""
    options = ["-F", "btf" if btf else "dwarf", *OPTIONS]
    result = _run(path, options, errors)
    types = parse(result.stdout.splitlines())
    if any(t.kind == "union" for t in types):
        _tell_union_sizes(types, path, options, errors)
    return types, result.returncode
