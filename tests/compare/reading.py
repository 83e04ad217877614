# SPDX-License-Identifier: MIT
"""The debug information read a second way, without Hotline's reader and without
elfutils and libbpf: BTF from its bytes, DWARF from what readelf prints of it."""

import re
import struct
import subprocess

from model import Member, Type, free_bits

AGGREGATES = ("struct", "class", "union")
QUALIFIERS = ("typedef", "const", "volatile", "restrict", "atomic", "tag")
MAX_UNIT = 64   # bytes; larger declared types of bit-fields have no storage unit


class Raw:
    """A type as the file has it. members: [(name, bit offset or None, type, bits, role)],
    role None, "base" or "virtual"; for arrays, size is the number of elements.
    static: it has a member of C++'s that is none of the object's."""

    __slots__ = ("kind", "name", "size", "target", "members", "declared", "declaration",
                 "language", "static")

    def __init__(self, kind, name=None, size=None, target=None):
        self.kind = kind
        self.name = name
        self.size = size
        self.target = target
        self.members = []
        self.declared = None
        self.declaration = False
        self.language = None
        self.static = False


class Reading:
    """All raw types of a file by their number, and questions about them."""

    def __init__(self, raw, address_size):
        self.raw = raw
        self.address_size = address_size
        self._sizes = {}
        self._used = {}

    def strip(self, number):
        kinds = set()
        for _ in range(64):
            raw = self.raw.get(number)
            if raw is None or raw.kind not in QUALIFIERS:
                break
            kinds.add(raw.kind)
            number = raw.target
        return number, kinds

    def without_qualifiers(self, number):
        while number in self.raw and self.raw[number].kind in ("const", "volatile", "atomic"):
            number = self.raw[number].target
        return number

    def size(self, number):
        if number not in self._sizes:
            self._sizes[number] = 0     # of a type inside itself
            self._sizes[number] = self._size_of(number)
        return self._sizes[number]

    def _size_of(self, number):
        raw = self.raw.get(number)
        if raw is None:
            return 0
        if raw.kind == "array":
            return (raw.size or 0) * self.size(raw.target)
        if raw.size is not None:
            return raw.size
        if raw.kind in QUALIFIERS or raw.kind == "enum":
            return self.size(raw.target)
        if raw.kind in ("pointer", "reference"):
            return self.address_size
        if raw.kind == "member pointer":
            target = self.raw.get(self.strip(raw.target)[0])
            return self.address_size * (2 if target and target.kind == "function" else 1)
        return 0

    def used(self, number):
        """Bytes of a class up to the end of its last member."""
        raw = self.raw.get(self.strip(number)[0])
        if raw is None or raw.kind not in AGGREGATES:
            return self.size(number)
        if number not in self._used:
            self._used[number] = 0
            end = 0
            for _, at, target, bits, role in raw.members:
                if at is None:
                    continue
                length = self.used(target) if role == "base" else self.size(target)
                end = max(end, at + (bits if bits is not None else 8 * length))
            self._used[number] = min((end + 7) // 8, raw.size or 0)
        return self._used[number]

    def has_virtual_base(self, number):
        raw = self.raw.get(self.strip(number)[0])
        return raw is not None and any(
            role == "virtual" or (role and self.has_virtual_base(target))
            for _, _, target, _, role in raw.members)

    def is_empty(self, number):
        """Whether it is a class, or an array of them, that has nothing in it."""
        number = self.strip(number)[0]
        raw = self.raw.get(number)
        if raw is not None and raw.kind == "array":
            return self.is_empty(raw.target)
        return (raw is not None and raw.kind in AGGREGATES and not raw.declaration
                and raw.size == 1 and self.used(number) == 0)

    def unnamed(self, number):
        """The struct or union without a name that a member declares, perhaps as an
        array; None for all else. A typedef's is declared elsewhere."""
        while True:
            raw = self.raw.get(number)
            if raw is None:
                return None
            if raw.kind in AGGREGATES:
                return None if raw.name else raw
            if raw.kind not in ("array", "const", "volatile", "atomic", "restrict"):
                return None
            number = raw.target

    def member(self, name, at, target, bits, role, base, features):
        raw = self.raw.get(self.strip(target)[0])
        empty = self.is_empty(target)
        size = 0 if role and empty else self.size(target)
        self._note_features(target, bits, role, empty, features)
        if at is None:
            return Member(name, None, size)
        if bits is not None:
            unit = size if 0 < size <= MAX_UNIT else 1
            offset = at // (unit * 8) * unit
            return Member(name, base + offset, unit, bit=at - offset * 8, bits=bits)
        at += base * 8
        inner = self.unnamed(target)
        if inner and self.without_qualifiers(target) != target:
            features.add("qualified inside")
        return Member(name, at // 8, size,
                      used=self.used(target) if raw and raw.kind in AGGREGATES else None,
                      inner=self.members(inner, at // 8, features) if inner else ())

    def _note_features(self, target, bits, role, empty, features):
        number, qualifiers = self.strip(target)
        raw = self.raw.get(number)
        while raw is not None and raw.kind == "array":
            number, more = self.strip(raw.target)
            qualifiers |= more
            raw = self.raw.get(number)
        features |= qualifiers & {"atomic"}
        if role:
            features.add("base")
            if role == "virtual" or self.has_virtual_base(number):
                features.add("virtual base")
        if bits is not None:
            features.add("bit-field")
        if empty:
            features.add("empty base" if role else "empty member")
        if raw is not None and raw.kind in ("member pointer", "reference", "opaque"):
            features.add(raw.kind)

    def members(self, raw, base, features):
        """Virtual bases last: they lie behind all else."""
        ordered = sorted(raw.members, key=lambda member: member[4] == "virtual")
        return [self.member(*member, base, features) for member in ordered]

    def type(self, number, name, line_bytes=64):
        raw = self.raw[number]
        found = Type(raw.kind, name)
        found.declared = raw.declared
        found.language = raw.language
        found.size = raw.size or 0
        found.lines = -(-found.size // line_bytes)
        found.members = self.members(raw, 0, found.features)
        if "virtual base" not in found.features:
            # Their place only the running program knows.
            found.free_bits = free_bits(raw.kind, found.size, found.members)
        if not raw.members:
            found.features.add("no members")
        if raw.static:
            found.features.add("static member")
        if raw.kind != "union" and overlaps(found.members):
            found.features.add("overlap")
        if not any(m.bits is None and m.size for m in found.members):
            found.features.add("bit-fields alone")
        return found

    def types(self):
        """Each struct, class and union that has a name of its own or through a typedef."""
        typedefs = {}
        for raw in self.raw.values():
            if raw.kind == "typedef":
                typedefs.setdefault(self.without_qualifiers(raw.target), raw.name)
        for number, raw in self.raw.items():
            name = raw.name or typedefs.get(number)
            if raw.kind in AGGREGATES and name and not raw.declaration:
                yield self.type(number, name)


def overlaps(members):
    """Whether a member lies in the place of one before it, as only classes without
    members, and in the tails of others, can."""
    placed = [m for m in members if m.offset is not None]
    return any(one.start() < before.end() for before, one in zip(placed, placed[1:]))


# ---- BTF ----

_BTF_KINDS = {1: "base", 2: "pointer", 3: "array", 4: "struct", 5: "union", 6: "enum",
              7: "declaration", 8: "typedef", 9: "volatile", 10: "const", 11: "restrict",
              12: "function", 13: "function", 14: "variable", 15: "section", 16: "base",
              17: "remark", 18: "tag", 19: "enum"}


def read_btf(path):
    with open(path, "rb") as stream:
        data = stream.read()
    order = "<" if data[:2] == b"\x9f\xeb" else ">"
    (magic, _, _, header, type_at, type_len, string_at, string_len) = struct.unpack_from(
        order + "HBBIIIII", data)
    if magic != 0xeb9f:
        raise ValueError(f"{path} is no BTF")
    strings = data[header + string_at:header + string_at + string_len]

    def name(at):
        return strings[at:strings.index(b"\0", at)].decode("utf-8", "backslashreplace") or None

    raw = {}
    at, end = header + type_at, header + type_at + type_len
    number = 0
    while at < end:
        number += 1
        name_at, info, size = struct.unpack_from(order + "III", data, at)
        at += 12
        kind, count, flag = info >> 24 & 0x1f, info & 0xffff, info >> 31
        one = raw[number] = Raw(_BTF_KINDS[kind], name(name_at))
        if kind in (1, 4, 5, 6, 15, 16, 19):
            one.size = size
        else:
            one.target = size
        if kind == 1:
            at += 4
        elif kind == 3:
            one.target, _, one.size = struct.unpack_from(order + "III", data, at)
            at += 12
        elif kind in (4, 5):
            for _ in range(count):
                member, target, offset = struct.unpack_from(order + "III", data, at)
                at += 12
                bits = (offset >> 24 or None) if flag else None
                one.members.append((name(member), offset & 0xffffff if flag else offset,
                                    target, bits, None))
        elif kind in (14, 17):
            at += 4
        else:
            at += count * {6: 8, 13: 8, 15: 12, 19: 12}.get(kind, 0)
    return Reading(raw, 8)


# ---- DWARF ----

_TAGS = {"structure": "struct", "class": "class", "union": "union", "typedef": "typedef",
         "const": "const", "volatile": "volatile", "restrict": "restrict", "atomic": "atomic",
         "pointer": "pointer", "reference": "reference", "rvalue_reference": "reference",
         "ptr_to_member": "member pointer", "array": "array", "enumeration": "enum",
         "base": "base", "subroutine": "function", "unspecified": "opaque"}
_DIE = re.compile(r" <([0-9a-f]+)><([0-9a-f]+)>: Abbrev Number: \d+ \(DW_TAG_(\w+)\)")
_ATTRIBUTE = re.compile(r"\s+<[0-9a-f]+>\s+DW_AT_(\w+)\s*: (.*)")
_WANTED = {"name", "byte_size", "type", "decl_line", "data_member_location", "bit_size",
           "bit_offset", "data_bit_offset", "declaration", "upper_bound", "count",
           "language", "virtuality", "external"}


def _number(text):
    """The value of an attribute; None for what is no constant."""
    found = re.match(r"(0x[0-9a-f]+|-?\d+)\b", text)
    if found and "location list" not in text:
        return int(found[1], 0)
    found = re.search(r"DW_OP_plus_uconst: (\d+)\)", text)
    return int(found[1]) if found else None


def _text(text):
    """A string; in front of it, readelf says where it is kept."""
    return re.sub(r"^\((?:alt )?(?:indirect|indexed) [^)]*\): ", "", text).rstrip()


def _bit_place(attributes, size, big_endian):
    """Where a member begins in bits; None: only the running program knows."""
    if "data_bit_offset" in attributes:
        return _number(attributes["data_bit_offset"])
    at = _number(attributes["data_member_location"]) if "data_member_location" in attributes else 0
    if at is None:
        return None
    if "bit_offset" not in attributes:
        return at * 8
    # Up to DWARF 3: counted from the most significant bit of the storage unit.
    unit = _number(attributes.get("byte_size", "")) or size
    left = _number(attributes["bit_offset"])
    if left >= 1 << 63:
        left -= 1 << 64
    if big_endian:
        return at * 8 + left
    return at * 8 + unit * 8 - left - _number(attributes["bit_size"])


class _Dwarf:
    """Puts types together from DIEs in the order of the file."""

    def __init__(self, big_endian):
        self.raw = {}
        self.big_endian = big_endian
        self.address_size = 8
        self.language = None
        # The DIEs that are open, the outermost first: their Raw or None.
        self.open = []
        self.late = []      # members whose places need sizes of types that come later

    def die(self, depth, at, tag, attributes):
        del self.open[depth:]
        while len(self.open) < depth:
            self.open.append(None)
        parent = self.open[depth - 1] if depth else None
        self.open.append(self.take(parent, at, tag, attributes))

    def take(self, parent, at, tag, attributes):
        if tag in ("compile_unit", "partial_unit", "type_unit"):
            self.language = attributes.get("language", "")
        kind = _TAGS.get(tag.removesuffix("_type"))
        if kind and (tag.endswith("_type") or tag == "typedef"):
            return self.take_type(at, kind, attributes)
        if parent is None:
            return None
        if tag == "subrange_type" and parent.kind == "array":
            self.take_dimension(parent, attributes)
        elif parent.kind in AGGREGATES and tag in ("member", "inheritance"):
            self.take_member(parent, tag, attributes)
        return None

    def take_type(self, at, kind, attributes):
        one = self.raw[at] = Raw(kind, _text(attributes["name"]) if "name" in attributes else None)
        if kind != "array" and "byte_size" in attributes:
            one.size = _number(attributes["byte_size"])
        if "specification" in attributes and not one.name:
            declared = self.raw.get(_reference(attributes["specification"]))
            one.name = declared.name if declared else None
        one.target = _reference(attributes.get("type"))
        one.declaration = "declaration" in attributes
        one.declared = _number(attributes.get("decl_line", ""))
        one.language = self.language
        return one

    @staticmethod
    def take_dimension(parent, attributes):
        count = _number(attributes.get("count", ""))
        upper = _number(attributes.get("upper_bound", ""))
        if count is None:
            count = upper + 1 if upper is not None and upper < 1 << 62 else 0
        parent.size = count if parent.size is None else parent.size * count

    def take_member(self, parent, tag, attributes):
        if "external" in attributes or (tag == "member" and "declaration" in attributes):
            parent.static = True
            return
        role = None
        if tag == "inheritance":
            role = "virtual" if "virtuality" in attributes else "base"
        parent.members.append(None)
        self.late.append((parent, len(parent.members) - 1, role, attributes))

    def reading(self):
        found = Reading(self.raw, self.address_size)
        for parent, index, role, attributes in self.late:
            target = _reference(attributes.get("type"))
            place = _bit_place(attributes, found.size(target), self.big_endian)
            parent.members[index] = (
                _text(attributes["name"]) if "name" in attributes else None,
                None if role == "virtual" else place, target,
                _number(attributes.get("bit_size", "")), role)
        return found


def _reference(text):
    found = re.match(r"<0x([0-9a-f]+)>", text or "")
    return int(found[1], 16) if found else None


def read_dwarf(path):
    header = subprocess.run(["readelf", "-h", path], env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"},
                            stdout=subprocess.PIPE, text=True, check=True).stdout
    dwarf = _Dwarf("big endian" in header)
    dwarf.address_size = 8 if "ELF64" in header else 4
    with subprocess.Popen(["readelf", "--debug-dump=info", path],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          encoding="utf-8", errors="backslashreplace") as process:
        current = None
        for line in process.stdout:
            found = _DIE.match(line)
            if found:
                if current:
                    dwarf.die(*current)
                current = (int(found[1], 16), int(found[2], 16), found[3], {})
            elif current:
                found = _ATTRIBUTE.match(line)
                if found and found[1] in _WANTED:
                    current[3][found[1]] = found[2].strip()
        if current:
            dwarf.die(*current)
    return dwarf.reading()
