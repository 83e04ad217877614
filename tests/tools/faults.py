# SPDX-License-Identifier: MIT
"""The fixtures of the faults that `hotline layout` finds, compiled and read once each."""

import glob
import json
import os
import re
import shutil

import compilers
import layout
import tap

_TESTS = os.path.join(os.environ["HOTLINE_SOURCE"], "tests", "fixtures")
FIXTURES = sorted(glob.glob(os.path.join(_TESTS, "faults", "*.c")) +
                  glob.glob(os.path.join(_TESTS, "faults", "*.cc")))
KERNEL = os.path.join(_TESTS, "kernel", "changes.c")
COMPILERS = compilers.all_words()
FLAGS = {compilers.C: ["-std=gnu11"], compilers.CXX: ["-std=c++17"]}

def compilers_for(path, bits):
    """Those for the language of a fixture and a word of that many bits."""
    language = compilers.CXX if path.endswith(".cc") else compilers.C
    flag = [] if bits == "64" else ["-m32"]
    return [c for c in COMPILERS if c.language == language and c.command[1:] == flag]


_objects = {}
_documents = {}


def compiled(compiler, path):
    """The object of a fixture, made once."""
    compiler.require()
    name = re.sub(r"\W", "_", os.path.basename(path) + compiler.name) + ".o"
    if name not in _objects:
        _objects[name] = None
        tap.run_ok([*compiler.command, *FLAGS[compiler.language], "-w", "-g", "-c", path, "-o",
                    layout.path(name)])
        _objects[name] = layout.path(name)
    tap.true(_objects[name], f"{path} does not compile")
    return _objects[name]


def document(path, *options):
    """What the command says of an object, read once."""
    if (path, options) not in _documents:
        _documents[path, options] = json.loads(layout.layout_ok("--json", "--all", *options, path))
    return _documents[path, options]


def to_btf(path):
    """The BTF that pahole makes of an object."""
    if not shutil.which("pahole"):
        raise tap.Skip("no pahole, which makes BTF")
    if not os.path.exists(path + ".btf"):
        tap.run_ok(["pahole", "--btf_encode_detached=" + path + ".btf", path])
    return path + ".btf"
