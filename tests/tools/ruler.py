# SPDX-License-Identifier: MIT
"""`hotline layout` for tests that look at what it reads."""

import json
import os

import layout
import tap

SOURCE = os.environ["HOTLINE_SOURCE"]


def fixture(name):
    return os.path.join(SOURCE, "tests", "fixtures", "formats", name)


def run(*arguments, timeout=60):
    """Runs the command on the arguments, whatever comes of it."""
    return tap.run([layout.HOTLINE, "layout", "--format", "json", "--all", *arguments], timeout)


def read(*arguments):
    """All that the command says of a file, with the types by name in "by_name": a
    list, in the order of the file, since a name can stand for several types."""
    result = run(*arguments)
    tap.equal(result.returncode, 0, result.stderr)
    document = json.loads(result.stdout)
    by_name = document["by_name"] = {}
    for one in document["types"]:
        by_name.setdefault(full_name(one), []).append(one)
    return document


def refused(pattern, *arguments, timeout=60):
    """A file that cannot be read: a reason, no answer, and a status that is not 0."""
    result = run(*arguments, timeout=timeout)
    tap.true(result.returncode > 0, f"exit status {result.returncode}: {result.stderr}")
    tap.equal(result.stdout, "")
    tap.matches(pattern, result.stderr)


def full_name(one):
    return f"{one['scope']}::{one['name']}" if one["scope"] else one["name"]


def only(document, name):
    """The one type of that name."""
    found = document["by_name"].get(name, [])
    tap.equal(len(found), 1, f"types called {name} among {sorted(document['by_name'])}")
    return found[0]


def leaves(one, path=""):
    """All (path, member) of a type: members of structs that it declares itself as
    "outer.inner", those of unnamed ones by their name alone."""
    for member in one["members"]:
        name = path + (member["name"] or "")
        if "members" not in member or member["type"].endswith("]"):
            yield name, member
        elif member["name"]:
            yield name, member
            yield from leaves(member, name + ".")
        else:
            yield from leaves(member, path)


def place(path, member):
    """(path, offset, size); of a bit-field (path, first bit, bits)."""
    if member["bit_size"]:
        return (path, member["offset"] * 8 + member["bit_offset"], member["bit_size"])
    return (path, member["offset"], member["size"])


def places(one):
    return [place(*leaf) for leaf in leaves(one)]
