# SPDX-License-Identifier: MIT
"""What `hotline layout --all --format json` prints, as types."""

import json
import subprocess

from model import Member, Type


def _member(found):
    return Member(found["name"], found["offset"], found["size"], bit=found["bit_offset"],
                  bits=found["bit_size"], hole=found.get("hole", 0),
                  bit_hole=found.get("bit_hole", 0),
                  inner=[_member(inner) for inner in found.get("members", [])])


def _free_bits(found):
    """The sum of all that is free, as the report tells it; None for a class whose virtual
    bases lie where only the running program knows."""
    if any(m.get("role") == "virtual-base" for m in found["members"]):
        return None
    free = found["padding"] * 8 + found.get("bit_padding", 0)
    return free + sum(m.get("hole", 0) * 8 + m.get("bit_hole", 0) for m in found["members"])


def _type(found):
    one = Type(found["kind"], found["name"])
    one.declared = found["declared"]
    one.language = found["language"]
    for field in ("size", "lines", "holes", "hole_bytes", "bit_holes", "padding"):
        setattr(one, field, found[field])
    one.bit_padding = found.get("bit_padding", 0)
    one.free_bits = _free_bits(found)
    one.members = [_member(member) for member in found["members"]]
    return one


def read(hotline, path):
    """All types, how many entries the reader left out, and what it complained of."""
    result = subprocess.run([hotline, "layout", "--all", "--format", "json", path],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, check=False)
    if result.returncode != 0:
        return [], 0, result.stderr.decode(errors="replace").strip()
    report = json.loads(result.stdout)
    types = [_type(found) for found in report["types"]
             if found["kind"] in ("struct", "class", "union")]
    return types, report["skipped"], None
