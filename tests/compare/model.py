# SPDX-License-Identifier: MIT
"""A type as `hotline layout`, pahole and the raw debug information tell it."""


class Member:
    """One member. size: bytes, of a bit-field those of its storage unit; offset: from
    the start of the outermost struct, None for a virtual base; bit: of a bit-field,
    its first bit, counted from offset; hole and bit_hole: what is free behind it.

    inner: the members of a struct or union without a name that it declares. used: of a
    class, the bytes that no other member may lie in. declaration: pahole's text, which
    stands for the name."""

    __slots__ = ("name", "declaration", "offset", "size", "bit", "bits", "hole", "bit_hole",
                 "inner", "used")

    def __init__(self, name, offset, size, bit=None, bits=None, inner=(), hole=0, bit_hole=0,
                 declaration=None, used=None):
        self.name = name
        self.declaration = declaration
        self.offset = offset
        self.size = size
        self.bit = bit
        self.bits = bits
        self.hole = hole
        self.bit_hole = bit_hole
        self.inner = list(inner)
        self.used = used

    def start(self):
        return self.offset * 8 + (self.bit or 0)

    def end(self):
        return self.start() + (self.bits if self.bits is not None else self.size * 8)


class Type:
    """One struct, class or union. What is None is not told, and not compared.
    declared: FILE:LINE. features: what the second reading saw in it, see reasons.py."""

    def __init__(self, kind, name):
        self.kind = "struct" if kind == "class" else kind
        self.name = name
        self.declared = None
        self.language = None
        self.size = None
        self.lines = None
        self.holes = None
        self.hole_bytes = None
        self.bit_holes = None
        self.padding = None
        self.bit_padding = None
        self.free_bits = None
        self.members = []
        self.features = set()

    def key(self):
        return self.kind, self.name


TOTALS = ["size", "lines", "holes", "hole_bytes", "bit_holes", "padding", "bit_padding"]


def _name_differs(a, b):
    """Whether the member a, perhaps with pahole's text alone, is called otherwise than b."""
    if a.declaration is None:
        return (a.name or None) != (b.name or None)
    return bool(b.name) and b.name not in a.declaration


def _member_differences(path, a, b, holes):
    """Yields what is different between lists of members."""
    if len(a) != len(b):
        yield f"{path.rstrip('.')} members".strip(), len(a), len(b)
        return
    for number, (one, other) in enumerate(zip(a, b)):
        here = f"{path}{other.name or f'[{number}]'}"
        if _name_differs(one, other):
            yield f"{here} name", one.name or one.declaration, other.name
        fields = ["offset", "size", "bit", "bits"] + (["hole", "bit_hole"] if holes else [])
        for field in fields:
            mine, yours = getattr(one, field), getattr(other, field)
            if mine != yours:
                yield f"{here} {field}", mine, yours
        yield from _member_differences(here + ".", one.inner, other.inner, holes)


def differences(a, b, holes=True):
    """What is different: a list of (what, in a, in b), empty for equal layouts. Without
    holes, only what debug information says itself: members and sizes."""
    found = []
    for field in TOTALS if holes else ["size"]:
        mine, yours = getattr(a, field), getattr(b, field)
        if mine is not None and yours is not None and mine != yours:
            found.append((field, mine, yours))
    found += _member_differences("", a.members, b.members, holes)
    return found


def free_bits(kind, size, members):
    """Bits behind the first member that no member takes, by marking those that are
    taken. The tail of a class ends where what lies in it begins."""
    if kind == "union":
        return (size - max((m.end() + 7) // 8 for m in members)) * 8 if members else size * 8
    placed = sorted((m for m in members if m.offset is not None), key=lambda m: m.start())
    free, at = 0, placed[0].start() if placed else 0
    for member, following in zip(placed, placed[1:] + [None]):
        end = member.end()
        if following and member.used is not None:
            if member.start() + member.used * 8 <= following.start() < end:
                end = following.start()
        free += max(0, member.start() - at)
        at = max(at, end)
    return free + max(0, size * 8 - at)
