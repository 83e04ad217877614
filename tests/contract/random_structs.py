# SPDX-License-Identifier: MIT
"""Random structs in C: everything that has a say in where a member lies.

    structs = Generator(random.Random(seed), word_bytes=8).structs(300)
    text = source(structs)
"""

import re

SCALARS = ["char", "signed char", "unsigned char", "short", "unsigned short", "int",
           "unsigned int", "long", "unsigned long", "long long", "unsigned long long",
           "float", "double", "long double", "_Bool", "enum colour", "enum tiny",
           "void *", "char *", "struct elsewhere *", "size_type", "fn_type *"]
ONLY_64 = ["__int128", "unsigned __int128"]
BIT_TYPES = [("unsigned char", 8), ("signed char", 8), ("unsigned short", 16), ("short", 16),
             ("int", 32), ("unsigned int", 32), ("long long", 64), ("unsigned long long", 64),
             ("_Bool", 1), ("enum colour", 32), ("bits_type", 32)]
DECLARATORS = ["int (*{})(void)", "void (*{}[3])(int, char *)", "int (*{})[5]",
               "const char *const {}", "int *volatile {}", "int (*(*{})(int))(char, ...)",
               "const volatile int {}", "struct elsewhere *(*{})(const struct elsewhere *)"]

PRELUDE = """\
enum colour { RED, GREEN, BLUE = 1000000 };
enum tiny { TINY_A, TINY_B } __attribute__((packed));
typedef __SIZE_TYPE__ size_type;
typedef unsigned int bits_type;
typedef int fn_type(int, void *);
struct elsewhere;
"""


class Member:
    """One line of a struct: text is its declaration, without the semicolon.

    names: what can be asked about by offsetof. bits: (name, width) of a bit-field.
    inner: the members of an unnamed struct or union.
    """

    def __init__(self, text, name=None, bits=None, inner=(), flexible=False):
        self.text = text
        self.name = name
        self.bits = bits
        self.inner = list(inner)
        self.flexible = flexible


class Struct:
    """uncertain: something is packed that does not show in the offsets, so that the
    alignment of the whole cannot be told from debug information. unnamed: it has
    unnamed bit-fields, which look like alignment where alignment is not told.
    aligned: the most that anything in it may be aligned to."""

    def __init__(self, number, kind, members, attributes, before=()):
        self.name = f"s{number}"
        self.kind = kind
        self.members = members
        self.attributes = attributes
        self.flexible = any(member.flexible for member in members)
        text = self.definition()
        self.unnamed = bool(re.search(r" :\d", text))
        inner = set(re.findall(r"\bs\d+\b", text)) - {self.name}
        self.uncertain = "packed" in text
        self.aligned = _most_aligned(text)
        for struct in before:
            if struct.name in inner:
                self.aligned = max(self.aligned, struct.aligned)
                self.uncertain |= struct.uncertain
                self.unnamed |= struct.unnamed

    @property
    def tag(self):
        return f"{self.kind} {self.name}"

    def definition(self):
        lines = "".join(f"\t{member.text};\n" for member in self.members)
        return f"{self.tag} {{\n{lines}}}{self.attributes};\n"

    def plain(self):
        """Members that offsetof can be asked about, those of unnamed ones too."""
        return [m for m in _flat(self.members) if m.name and not m.bits]

    def bit_fields(self):
        return [m for m in _flat(self.members) if m.bits]

    def own(self):
        """Its own named members, in order."""
        return [m for m in self.members if m.name]


def _most_aligned(text):
    return max([16, *map(int, re.findall(r"aligned\((\d+)\)", text))])


def _flat(members):
    for member in members:
        if member.inner:
            yield from _flat(member.inner)
        else:
            yield member


class Generator:
    def __init__(self, rng, word_bytes):
        self.rng = rng
        self.scalars = SCALARS + (ONLY_64 if word_bytes == 8 else [])
        self.done = []
        self.counter = 0

    def structs(self, count):
        for number in range(count):
            self.done.append(self._struct(number))
        return self.done

    def _chance(self, percent):
        return self.rng.randrange(100) < percent

    def _name(self):
        self.counter += 1
        return f"m{self.counter}"

    def _struct(self, number):
        kind = "union" if self._chance(8) else "struct"
        packed = self._chance(12)
        members = self._members(self.rng.randrange(1, 18), 0, kind, packed)
        if kind == "struct" and self._chance(8):
            element = self.rng.choice(["char", "int", "long", "void *", "double"])
            name = self._name()
            members.append(Member(f"{element} {name}[]", name, flexible=True))
        least = 1 if packed else Struct(number, kind, members, "", self.done).aligned
        attributes = ["packed"] if packed else []
        if self._chance(10):
            attributes.append(f"aligned({self._power(least)})")
        text = f" __attribute__(({', '.join(attributes)}))" if attributes else ""
        return Struct(number, kind, members, text, self.done)

    def _power(self, least):
        """A power of two for an aligned attribute. One that asks for less than there is
        has no effect, but clang tells it all the same, gcc only where it has one."""
        return max(least, 1 << self.rng.randrange(1, 8))

    def _members(self, count, depth, kind, packed):
        members = []
        while len(members) < count:
            if self._chance(22):
                members += self._run(kind, packed)
            elif depth < 3 and self._chance(9):
                members.append(self._inline(depth))
            else:
                members.append(self._plain(kind))
        if not any(m.name or m.inner for m in members):
            members.append(self._plain(kind))
        return members

    def _attribute(self, least, kind):
        """Packed has an effect in a union, too, but none that anything but gcc tells."""
        if self._chance(5):
            return f" __attribute__((aligned({self._power(least)})))"
        if kind == "struct" and self._chance(3):
            return " __attribute__((packed))"
        return ""

    def _plain(self, kind):
        name = self._name()
        shape = self.rng.randrange(100)
        least = 16
        if shape < 12:
            text = self.rng.choice(DECLARATORS).format(name)
        elif shape < 24 and self.done:
            inner = self.rng.choice(self.done)
            while inner.flexible:
                inner = self.rng.choice(self.done + [self._small()])
            text = f"{inner.tag} {name}" + ("[2]" if self._chance(15) else "")
            least = inner.aligned
        elif shape < 40:
            text = f"{self.rng.choice(self.scalars)} {name}[{self.rng.randrange(1, 9)}]"
        elif shape < 43:
            text = f"{self.rng.choice(self.scalars)} {name}[{self.rng.randrange(1, 4)}][3]"
        elif shape < 45:
            text = f"int {name}[0]"
        elif shape < 47:
            text = f"float {name} __attribute__((vector_size(16)))"
        else:
            text = f"{self.rng.choice(self.scalars)} {name}"
        return Member(text + self._attribute(least, kind), name)

    def _small(self):
        """One of the first structs, so that sizes do not grow without bound."""
        return self.rng.choice([s for s in self.done if not s.flexible] or [self._last_resort()])

    def _last_resort(self):
        struct = Struct(10 ** 6 + len(self.done), "struct", [Member("int only", "only")], "")
        self.done.append(struct)
        return struct

    def _inline(self, depth):
        kind = self.rng.choice(["struct", "union"])
        packed = self._chance(8)
        inner = self._members(self.rng.randrange(1, 6), depth + 1, kind, packed)
        # Of a packed struct inside another clang tells the alignment of its members.
        packed = packed and Struct(0, kind, inner, "", self.done).aligned == 16
        body = " ".join(f"{member.text};" for member in inner)
        attributes = " __attribute__((packed))" if packed else ""
        if self._chance(50):
            return Member(f"{kind} {{ {body} }}{attributes}", inner=inner)
        name = self._name()
        array = "[2]" if self._chance(15) else ""
        return Member(f"{kind} {{ {body} }}{attributes} {name}{array}", name)

    def _run(self, kind, packed):
        """Bit-fields in a row. In packed structs none is as wide as its type: clang 14
        describes these as if they were no bit-fields, at a byte where they are not."""
        members = []
        for _ in range(self.rng.randrange(1, 6)):
            base, most = self.rng.choice(BIT_TYPES)
            roll = self.rng.randrange(100)
            if kind == "struct" and roll < 6:
                members.append(Member(f"{base} :0"))
            elif kind == "struct" and roll < 16:
                members.append(Member(f"{base} :{self.rng.randrange(1, most + 1)}"))
            else:
                name = self._name()
                width = self.rng.randrange(1, max(2, most + (not packed)))
                members.append(Member(f"{base} {name}:{width}", name, (name, width)))
        return members


def source(structs):
    return PRELUDE + "".join(struct.definition() for struct in structs)
