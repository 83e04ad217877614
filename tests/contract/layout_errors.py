#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What `hotline layout` cannot read it says, with a status that is not 0: never a crash,
a hang or an empty answer."""

import os
import random
import tempfile

import ruler
import tap

SOURCE = """
struct inner { char c; long l; };
struct outer { int a : 3; struct inner in[4]; union { double d; char s[9]; } u; };
struct outer o;
int main(void) { return o.a; }
"""
_directory = tempfile.TemporaryDirectory()
WORK = _directory.name


def path(name):
    return os.path.join(WORK, name)


def write(name, content):
    with open(path(name), "wb") as stream:
        stream.write(content)
    return path(name)


def build(name, source, *flags):
    write(name + ".c", source.encode())
    tap.run_ok(["gcc", *flags, path(name + ".c"), "-o", path(name)])
    return path(name)


@tap.case("a file that is not there, a directory, an empty file, a text")
def no_object():
    ruler.refused("No such file", path("nowhere"))
    ruler.refused("directory", WORK)
    ruler.refused("empty", write("empty", b""))
    ruler.refused("neither ELF.*nor BTF", write("text", b"struct foo { int a; };\n"))
    ruler.refused("neither ELF.*nor BTF", write("byte", b"\x7f"))


@tap.case("a file that may not be read")
def unreadable():
    if os.geteuid() == 0:
        raise tap.Skip("root may read everything")
    os.chmod(build("secret", SOURCE, "-g"), 0)
    ruler.refused("Permission denied", path("secret"))


@tap.case("devices and pipes do not make it wait")
def devices():
    os.mkfifo(path("pipe"))
    ruler.refused("regular file", path("pipe"), timeout=10)
    for device in ("/dev/zero", "/dev/null", "/dev/tty"):
        ruler.refused(device, device, timeout=10)


@tap.case("no debug information: how to get some")
def without_debug():
    ruler.refused("-g.*dbgsym", build("plain", SOURCE))
    ruler.refused("-g.*dbgsym", build("plain.o", SOURCE, "-c"))


@tap.case("no type that is used: which flag keeps them")
def unused():
    source = "struct unused { int a; }; int n = sizeof(struct unused); int main(void) { return n; }"
    ruler.refused("-fno-eliminate-unused-debug-types", build("unused", source, "-g"))
    kept = build("kept", source, "-g", "-fno-eliminate-unused-debug-types")
    tap.equal(ruler.only(ruler.read(kept), "unused")["size"], 4)


@tap.case("an object of a processor whose relocations are not known: says so")
def foreign():
    try:
        write("foreign.c", SOURCE.encode())
        made = tap.run(["clang", "--target=hexagon", "-g", "-c", path("foreign.c"), "-o",
                        path("foreign.o")])
    except FileNotFoundError:
        raise tap.Skip("no clang") from None
    if made.returncode:
        raise tap.Skip("clang knows no hexagon")
    result = ruler.run(path("foreign.o"))
    if result.returncode:
        ruler.refused("cannot be read", path("foreign.o"))


def survives(name, content):
    """Whatever is in the file: types or a reason, in time."""
    write(name, content)
    result = ruler.run(path(name), timeout=20)
    tap.true(result.returncode in (0, 1), f"exit status {result.returncode}: {result.stderr}")
    if result.returncode:
        tap.equal(result.stdout, "")
        tap.matches(".", result.stderr)
    else:
        tap.matches('"name"', result.stdout)


def truncated(name, *flags):
    with open(build(name, SOURCE, *flags), "rb") as stream:
        whole = stream.read()
    steps = sorted({*range(0, min(len(whole), 256), 16), *range(0, len(whole), len(whole) // 50),
                    len(whole) - 1})
    for length in steps:
        survives("short", whole[:length])


def damaged(name, *flags):
    """Bytes in what follows the code are overwritten at random."""
    with open(build(name, SOURCE, *flags), "rb") as stream:
        whole = stream.read()
    chance = random.Random(7)
    for _ in range(60):
        broken = bytearray(whole)
        for _ in range(chance.choice([1, 4, 40])):
            broken[chance.randrange(64, len(broken))] = chance.randrange(256)
        survives("broken", broken)


for kind, kind_flags in (("program", ["-g"]), ("object", ["-g", "-c"]),
                         ("compressed", ["-g", "-gz", "-c"]), ("dwarf4", ["-gdwarf-4", "-c"]),
                         ("types", ["-g", "-fdebug-types-section", "-c"])):
    tap.add(f"cut short: {kind}", truncated, kind, *kind_flags)
    tap.add(f"damaged: {kind}", damaged, kind + "2", *kind_flags)


def section_removed(section):
    build("whole", SOURCE, "-g")
    tap.run_ok(["objcopy", "--remove-section", section, path("whole"), path("less")])
    with open(path("less"), "rb") as stream:
        survives("less", stream.read())


for one in (".debug_abbrev", ".debug_str", ".debug_info", ".debug_line", ".debug_line_str",
            ".symtab"):
    tap.add(f"without {one}", section_removed, one)

tap.main()
