# SPDX-License-Identifier: MIT
"""`hotline layout` for tests that look at what it reads."""

import json
import os

import tap

SOURCE = os.environ["HOTLINE_SOURCE"]
HOTLINE = os.path.join(os.environ["HOTLINE_BUILD"], "tools", "hotline", "hotline")


def fixture(name):
    return os.path.join(SOURCE, "tests", "fixtures", "formats", name)


def run(*arguments, timeout=60):
    """Runs the command on the arguments, whatever comes of it."""
    return tap.run([HOTLINE, "layout", "--format", "json", "--all", *arguments], timeout)


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


def refused(pattern, *arguments):
    """A file that cannot be read: a reason, no answer, and a status that is not 0."""
    result = run(*arguments)
    tap.true(result.returncode not in (0,) and result.returncode > 0,
             f"exit status {result.returncode}: {result.stderr}")
    tap.equal(result.stdout, "")
    tap.matches(pattern, result.stderr)


def full_name(one):
    return f"{one['scope']}::{one['name']}" if one["scope"] else one["name"]


def only(document, name):
    """The one type of that name."""
    found = document["by_name"].get(name, [])
    tap.equal(len(found), 1, f"types called {name} among {sorted(document['by_name'])}")
    return found[0]


def places(one):
    """Where the members lie: a list of (name, offset, size), with those of unnamed
    structs and unions in it as their own; a bit-field as (name, first bit, bits)."""
    found = []
    for member in one["members"]:
        if "members" in member:
            found += places(member)
        elif member["bit_size"]:
            found.append((member["name"], member["offset"] * 8 + member["bit_offset"],
                          member["bit_size"]))
        else:
            found.append((member["name"], member["offset"], member["size"]))
    return found
