# SPDX-License-Identifier: MIT
"""Why pahole 1.24 is wrong where it differs, each with a proof by the compiler.

A reason is only asked for when the debug information, read a second way, sides with
Hotline."""


class Reason:
    """features: what a type must have for it, one of them (see Reading); fields: only
    these may be different, if any are named. probe: a source whose assertions say what
    is right, in C or in C++."""

    def __init__(self, name, features, text, probe, language="C", fields=()):
        self.name = name
        self.features = set(features)
        self.text = text
        self.probe = probe
        self.language = language
        self.fields = set(fields)

    def explains(self, features, different):
        named = {what.rsplit(" ", 1)[-1] for what, _, _ in different}
        return bool(self.features & features) and (not self.fields or named <= self.fields)


# The first that explains counts.
REASONS = [
    Reason("_Atomic member", ["atomic"],
           "DW_TAG_atomic_type is not known: the member is left out",
           """
           struct s { _Atomic long a; _Atomic char b; };
           _Static_assert(sizeof(struct s) == 16, "7 bytes of padding");
           _Static_assert(__builtin_offsetof(struct s, b) == 8, "both members are there");
           """),
    Reason("pointer to member", ["member pointer"],
           "taken for a pointer of 4 bytes, or for what it points to",
           """
           struct b { int x; };
           struct s { int b::*data; void (b::*function)(); char c; };
           static_assert(sizeof(int b::*) == sizeof(void *), "one pointer");
           static_assert(sizeof(void (b::*)()) == 2 * sizeof(void *), "two pointers");
           static_assert(__builtin_offsetof(s, c) == 3 * sizeof(void *), "behind both");
           """, "C++"),
    Reason("reference member", ["reference"],
           "a reference takes the room of a pointer, not that of what it refers to",
           """
           struct b { long x[4]; };
           struct s { b &&moved; b &referred; };
           static_assert(sizeof(s) == 2 * sizeof(void *), "two pointers");
           """, "C++"),
    Reason("virtual base", ["virtual base"],
           "its place is an expression, shown as offset 4294967295, in front of the vptr; "
           "its bytes are counted as padding",
           """
           struct b { virtual ~b(); int x; };
           struct s : virtual b { char c; };
           static_assert(sizeof(s) == 2 * sizeof(void *) + sizeof(b), "the base is behind");
           """, "C++"),
    Reason("empty base", ["empty base"],
           "a base without members takes no room: it is given a byte, and holes of 65535",
           """
           struct e {};
           struct s : e { int a; };
           static_assert(sizeof(s) == sizeof(int), "the base takes no room");
           """, "C++"),
    Reason("base class", ["base"],
           "members that lie in the tail of a base make a hole of 65532 bytes, and the base "
           "is left out of the sum",
           """
           struct b { virtual ~b(); int x; };
           struct s : b { char c; };
           static_assert(sizeof(b) == sizeof(s), "c lies in the tail of b, without a hole");
           """, "C++"),
    Reason("member in the place of another", ["overlap"],
           "what has [[no_unique_address]] may lie in the place of another member or in its "
           "tail: no hole of 65528 bytes",
           """
           struct e {};
           union u { [[no_unique_address]] e first; };
           struct s { int *p; [[no_unique_address]] u second; };
           static_assert(sizeof(s) == sizeof(int *), "the second takes no room of its own");
           """, "C++"),
    Reason("member of an empty class", ["empty member"],
           "an object of an empty class has a size of 1, not 0",
           """
           struct e {};
           struct s { e first; int a; };
           static_assert(sizeof(e) == 1, "a byte, and 3 behind it");
           static_assert(__builtin_offsetof(s, a) == 4 && sizeof(s) == 8, "");
           """, "C++"),
    Reason("static member", ["static member"],
           "up to DWARF 4, counted as a member, at offset 0",
           """
           struct s { static const long value; char c; };
           static_assert(sizeof(s) == 1, "it takes no room");
           """, "C++", ["members", "lines"]),
    Reason("const or volatile struct without a name", ["qualified inside"],
           "its members are not shown",
           """
           struct s { int a; volatile struct { char c; int i; } inner; };
           _Static_assert(__builtin_offsetof(struct s, inner.i) == 8, "they are there");
           """, "C", ["members"]),
    Reason("sum of holes left out", ["bit-fields alone"],
           "where all members with a size are bit-fields, the picture has the holes but the "
           "sums below it have not",
           """
           struct s { unsigned char a : 5; signed char b : 8; unsigned int c : 20; };
           _Static_assert(sizeof(struct s) == 8, "33 bits: 2 bytes are free before c");
           """, "C", ["holes", "hole_bytes"]),
    Reason("empty class", ["no members"],
           "a class without members has a size of 1 and so lies in one line, not in none",
           """
           struct e {};
           static_assert(sizeof(e) == 1, "it takes a byte");
           """, "C++", ["lines"]),
]

# Reasons that no compiler need prove.
SAME_NAME = "another type of that name is shown"
CRASH = "not reached"
UNPROVED = {
    SAME_NAME: "of several types of a name pahole shows fewer, each as Hotline has one of them",
    CRASH: "pahole crashes before it",
}


def find(features, different):
    """The reason for these differences of a type with these features, or None."""
    for reason in REASONS:
        if reason.explains(features, different):
            return reason
    return None
