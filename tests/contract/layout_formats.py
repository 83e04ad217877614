#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`hotline layout` finds the types of every kind of file that holds some: objects and
what is linked of them, archives, separate and split debug information, compressed and
deduplicated DWARF, link-time optimization, BTF."""

import contextlib
import glob
import os
import platform
import shutil
import struct
import subprocess
import tempfile

import ruler
import tap

HEADER = """
struct shared { int a; long b; };
typedef struct { int x, y; } xy;
"""
A = """
#include "types.h"
struct only_a { char c; struct shared s; };
struct irq_info { int line; };
struct only_a a;
struct irq_info a_irq;
xy a_xy;
int b(void);
int main(void) { return a.c + a_irq.line + a_xy.x + b(); }
"""
B = """
#include "types.h"
struct only_b { struct shared s; char c; };
struct irq_info { char name[16]; long line; };
struct only_b b_;
struct irq_info b_irq;
xy b_xy;
int b(void) { return b_.c + b_irq.line + b_xy.y; }
"""
# Of each type: its size and the places of its members, on a 64-bit machine.
SHARED = (16, [("a", 0, 4), ("b", 8, 8)])
ONLY_A = (24, [("c", 0, 1), ("s", 8, 16)])
ONLY_B = (24, [("s", 0, 16), ("c", 16, 1)])
XY = (8, [("x", 0, 4), ("y", 4, 4)])
IRQ_A = (4, [("line", 0, 4)])
IRQ_B = (24, [("name", 0, 16), ("line", 16, 8)])
IN_A = {"shared": [SHARED], "only_a": [ONLY_A], "xy": [XY], "irq_info": [IRQ_A]}
IN_B = {"shared": [SHARED], "only_b": [ONLY_B], "xy": [XY], "irq_info": [IRQ_B]}
IN_BOTH = {"shared": [SHARED], "only_a": [ONLY_A], "only_b": [ONLY_B], "xy": [XY],
           "irq_info": [IRQ_A, IRQ_B]}


def need(*tools):
    for tool in tools:
        if not shutil.which(tool):
            raise tap.Skip(f"no {tool}")


class Work:
    """A directory with the sources in it, in which commands are run."""

    def __init__(self, directory):
        self.directory = directory
        for name, text in (("types.h", HEADER), ("a.c", A), ("b.c", B)):
            self.write(name, text)

    def path(self, name):
        return os.path.join(self.directory, name)

    def write(self, name, content):
        with open(self.path(name), "w" if isinstance(content, str) else "wb") as stream:
            stream.write(content)
        return self.path(name)

    def run(self, *command):
        need(command[0])
        return tap.run_ok(command, cwd=self.directory)

    def objects(self, compiler, *flags):
        for name in ("a", "b"):
            self.run(compiler, *flags, "-c", name + ".c", "-o", name + ".o")

    def program(self, compiler, *flags):
        self.objects(compiler, *flags)
        self.run(compiler, *flags, "a.o", "b.o", "-o", "program")

    def holds(self, name, expected, *options):
        """The file holds these types, as they are, and no others."""
        document = ruler.read(*options, self.path(name))
        found = {name: [(one["size"], ruler.places(one)) for one in types]
                 for name, types in document["by_name"].items()}
        tap.equal(found, expected)
        tap.equal(document["skipped"], 0, document["first_skipped"])
        return document


@contextlib.contextmanager
def work():
    with tempfile.TemporaryDirectory() as directory:
        yield Work(directory)


# ---- Objects and what is made of them. ----

def each_kind(compiler, *flags):
    with work() as at:
        at.program(compiler, *flags)
        at.holds("a.o", IN_A)
        at.holds("program", IN_BOTH)
        at.run(compiler, *flags, "-shared", "-fPIC", "a.c", "b.c", "-o", "library.so")
        at.holds("library.so", IN_BOTH)
        at.run("ld", "-r", "a.o", "b.o", "-o", "both.o")
        at.holds("both.o", IN_BOTH)
        at.run("ar", "rcs", "library.a", "a.o", "b.o")
        at.holds("library.a", IN_BOTH)


for cc in ("gcc", "clang"):
    for version in (2, 3, 4, 5):
        tap.add(f"object, program, library, ld -r, archive: {cc}, DWARF {version}", each_kind, cc,
                "-g", f"-gdwarf-{version}")
    tap.add(f"the same optimized, a section a function: {cc}", each_kind, cc, "-g", "-O2",
            "-ffunction-sections", "-fdata-sections")
    for kind in ("zlib", "zlib-gnu") if cc == "gcc" else ("zlib",):
        tap.add(f"the same with sections compressed by {kind}: {cc}", each_kind, cc, "-g",
                f"-gz={kind}")
for version in (4, 5):
    tap.add(f"the same with type units, DWARF {version}: gcc", each_kind, "gcc", "-g",
            f"-gdwarf-{version}", "-fdebug-types-section")
    tap.add(f"the same with type units, DWARF {version}: clang", each_kind, "clang", "-g",
            f"-gdwarf-{version}", "-fdebug-types-section")


@tap.case("an archive with members that are no objects, and with no debug information")
def archive_mixed():
    with work() as at:
        at.objects("gcc", "-g")
        at.write("readme", "not an object")
        at.run("gcc", "-c", "b.c", "-o", "plain.o")
        at.run("ar", "rcs", "library.a", "readme", "a.o", "plain.o")
        at.holds("library.a", IN_A)


@tap.case("a thin archive is told apart")
def archive_thin():
    with work() as at:
        at.objects("gcc", "-g")
        at.run("ar", "rcsT", "thin.a", "a.o", "b.o")
        ruler.refused("thin archive.*members", at.path("thin.a"))


# ---- Separate debug files. ----

def split_off(at, *options):
    """Moves the debug information of the program into program.debug."""
    at.run("objcopy", "--only-keep-debug", "program", "program.debug")
    at.run("objcopy", "--strip-debug", *options, "program")


@tap.case("separate debug file: named itself, and beside its program by debuglink")
def debuglink():
    with work() as at:
        at.program("gcc", "-g", "-Wl,--build-id=none")
        split_off(at, "--add-gnu-debuglink=program.debug")
        at.holds("program.debug", IN_BOTH)
        at.holds("program", IN_BOTH)
        os.mkdir(at.path(".debug"))
        os.rename(at.path("program.debug"), at.path(".debug/program.debug"))
        at.holds("program", IN_BOTH)
        os.rename(at.path(".debug/program.debug"), at.path("elsewhere"))
        ruler.refused("dbgsym", at.path("program"))


@tap.case("separate debug file: by debuglink under --debug-dir, along the program's path")
def debuglink_directory():
    with work() as at:
        at.program("gcc", "-g", "-Wl,--build-id=none")
        split_off(at, "--add-gnu-debuglink=program.debug")
        place = at.path("debug") + os.path.realpath(at.directory)
        os.makedirs(place)
        os.rename(at.path("program.debug"), os.path.join(place, "program.debug"))
        at.holds("program", IN_BOTH, "--debug-dir", at.path("debug"))


@tap.case("separate debug file: by build-id under --debug-dir")
def build_id():
    with work() as at:
        at.program("gcc", "-g", "-Wl,--build-id=0x" + 5 * "01234567")
        split_off(at)
        os.makedirs(at.path("debug/.build-id/01"))
        os.rename(at.path("program.debug"),
                  at.path("debug/.build-id/01/234567" + 4 * "01234567" + ".debug"))
        at.holds("program", IN_BOTH, "--debug-dir", at.path("debug"))
        ruler.refused("dbgsym", at.path("program"))


@tap.case("separate debug file: one that is not the program's is not believed")
def debuglink_stale():
    with work() as at:
        at.program("gcc", "-g", "-Wl,--build-id=none")
        split_off(at, "--add-gnu-debuglink=program.debug")
        at.run("gcc", "-g", "-c", "b.c", "-o", "program.debug")
        ruler.refused("dbgsym", at.path("program"))


# ---- Split DWARF. ----

SPLIT = [(cc, version, types) for cc in ("gcc", "clang") for version in (4, 5)
         for types in ([], ["-fdebug-types-section"])]


def split_dwarf(compiler, version, types):
    with work() as at:
        at.program(compiler, "-g", f"-gdwarf-{version}", "-gsplit-dwarf", *types)
        at.holds("a.o", IN_A)
        at.holds("program", IN_BOTH)
        at.holds("a.dwo", IN_A)
        os.remove(at.path("b.dwo"))
        document = ruler.read(at.path("program"))
        tap.equal(sorted(document["by_name"]), sorted(IN_A))
        tap.equal(document["skipped"], 1)
        tap.matches(r"b\.dwo", document["first_skipped"])
        os.remove(at.path("a.dwo"))
        ruler.refused(r"a\.dwo", at.path("program"))


def package(compiler, version, types, packer):
    with work() as at:
        need(packer)
        at.program(compiler, "-g", f"-gdwarf-{version}", "-gsplit-dwarf", *types)
        pack(at, packer)
        at.holds("program.dwp", IN_BOTH)
        for name in glob.glob(at.path("*.dwo")):
            os.remove(name)
        at.holds("program", IN_BOTH)
        os.rename(at.path("program.dwp"), at.path("other.dwp"))
        at.holds("other.dwp", IN_BOTH)
        ruler.refused(r"a\.dwo.*dwp", at.path("program"))


def pack(at, packer):
    """Packs what belongs to the program. Packers fail or hang on what they do not know."""
    try:
        result = tap.run([packer, "-e", "program", "-o", "program.dwp"], 10, cwd=at.directory)
        status = f"exit status {result.returncode}"
    except subprocess.TimeoutExpired:
        status = "no end"
    if status != "exit status 0":
        raise tap.Skip(f"{packer} cannot pack this: {status}")


PACKERS = ["dwp", "llvm-dwp"]

for cc, version, types in SPLIT:
    name = f"{cc}, DWARF {version}" + (", type units" if types else "")
    tap.add(f"split: {name}", split_dwarf, cc, version, types)
    for packer in PACKERS:
        tap.add(f"package: {name}, by {packer}", package, cc, version, types, packer)


# ---- Deduplicated DWARF. ----

def dwz_single(version):
    with work() as at:
        need("dwz")
        at.program("gcc", "-g", f"-gdwarf-{version}")
        at.run("dwz", "program")
        at.holds("program", IN_BOTH)


def dwz_shared(version):
    """What programs share is moved to a third file; what is there of others is not ours."""
    with work() as at:
        need("dwz")
        common = "".join(f"struct common{i} {{ long a{i}; char b{i}; }} c{i};\n" for i in range(40))
        others = "".join(f"struct others{i} {{ int a{i}; long b{i}; }} o{i};\n" for i in range(40))
        at.write("types.h", HEADER + common)
        at.write("others.h", others)
        for name in ("x", "y"):
            at.write(name + ".c", '#include "types.h"\n#include "others.h"\n'
                     f"struct only_{name} {{ int o; struct shared s; }} own;\n"
                     "int main(void) { return own.o; }\n")
        at.write("z.c", A.replace("int b(void);", "").replace("+ b()", ""))
        for name in ("x", "y", "z"):
            at.run("gcc", "-g", f"-gdwarf-{version}", name + ".c", "-o", name)
        at.run("dwz", "-m", "shared.debug", "x", "y", "z")
        tap.true(os.path.exists(at.path("shared.debug")), "nothing was shared")
        every = {f"common{i}" for i in range(40)} | {"shared"}
        more = {f"others{i}" for i in range(40)}
        for name, wanted in (("x", every | more | {"only_x"}), ("y", every | more | {"only_y"}),
                             ("z", every | {"only_a", "irq_info", "xy"})):
            document = ruler.read(at.path(name))
            tap.equal(set(document["by_name"]), wanted, name)
            tap.equal(document["skipped"], 0)
            tap.equal(ruler.places(ruler.only(document, "common7")),
                      [("a7", 0, 8), ("b7", 8, 1)])
            for threads in range(2, 9):
                again = ruler.read("--threads", str(threads), at.path(name))
                tap.equal(again, document, f"{name}, {threads} threads")
        os.remove(at.path("shared.debug"))
        ruler.refused(r"shared\.debug", at.path("x"))


for version in (4, 5):
    tap.add(f"dwz, DWARF {version}", dwz_single, version)
    tap.add(f"dwz -m, DWARF {version}", dwz_shared, version)


# ---- The same of a C++ program in other forms. ----

TEMPLATES = """
#include <functional>
#include <map>
#include <string>
#include <vector>
namespace NAME {
struct Own { std::map<std::string, std::vector<int>> m; std::function<int(int)> f; };
Own own;
int use(std::string s) { own.m[s].push_back(1); return own.f(3); }
}
"""


def cxx_program(at, compiler, *flags):
    at.write("main.cc", "int main() { return 0; }")
    for name in ("one", "two"):
        at.write(name + ".cc", TEMPLATES.replace("NAME", name))
    at.run(compiler, "-std=c++17", *flags, "one.cc", "two.cc", "main.cc", "-o", "program")


def summary(document):
    """All types, without what depends on where they were found."""
    return sorted((ruler.full_name(one), one["kind"], one["size"], one["align"], one["declared"],
                   str(one["members"])) for one in document["types"])


@tap.case("C++: dwz changes nothing")
def cxx_dwz():
    with work() as at:
        need("dwz")
        cxx_program(at, "g++", "-g")
        before = summary(ruler.read(at.path("program")))
        tap.true(len(before) > 50, f"only {len(before)} types")
        at.run("dwz", "program")
        tap.equal(summary(ruler.read(at.path("program"))), before)


def cxx_package(compiler, packer, version, *flags):
    with work() as at:
        cxx_program(at, compiler, "-g", f"-gdwarf-{version}", "-gsplit-dwarf", *flags)
        before = ruler.read(at.path("program"))
        need(packer)
        pack(at, packer)
        for name in glob.glob(at.path("*.dwo")):
            os.remove(name)
        for threads in ("1", "2", "5"):
            after = ruler.read("--threads", threads, at.path("program"))
            tap.equal(after["skipped"], 0, after["first_skipped"])
            tap.equal(summary(after), summary(before), f"{threads} threads")


for version, compiler, packer in ((4, "g++", "dwp"), (5, "clang++", "llvm-dwp")):
    tap.add(f"C++: a package has what its parts had, DWARF {version}", cxx_package, compiler,
            packer, version)
    tap.add(f"C++: the same with type units, DWARF {version}", cxx_package, compiler, packer,
            version, "-fdebug-types-section")


# ---- Link-time optimization. ----

def lto(compiler, *flags):
    with work() as at:
        at.program(compiler, "-g", "-O2", "-flto", *flags)
        at.holds("program", IN_BOTH)
        at.run(compiler, "-g", "-O2", "-flto", *flags, "-shared", "-fPIC", "a.c", "b.c", "-o",
               "library.so")
        at.holds("library.so", IN_BOTH)


tap.add("link-time optimization: gcc", lto, "gcc")
tap.add("link-time optimization: clang", lto, "clang", "-fuse-ld=lld")


# ---- BTF. ----

def names(document, *wanted):
    for name in wanted:
        tap.true(name in document["by_name"], f"{name} is not among {sorted(document['by_name'])}")


@tap.case("BTF: a section of an object, and raw")
def btf():
    with work() as at:
        need("pahole")
        at.objects("gcc", "-g")
        at.run("pahole", "-J", "b.o")
        at.run("objcopy", "-O", "binary", "--only-section=.BTF", "--set-section-flags",
               ".BTF=alloc", "b.o", "raw")
        at.run("objcopy", "--strip-debug", "b.o", "stripped.o")
        at.holds("raw", IN_B)
        at.holds("stripped.o", IN_B)


@tap.case("BTF: clang for bpf")
def btf_bpf():
    with work() as at:
        at.run("clang", "--target=bpf", "-g", "-c", "b.c", "-o", "b.o")
        at.run("llvm-objcopy", "--strip-debug", "--keep-section=.BTF", "b.o", "only.o")
        at.holds("b.o", IN_B)
        at.holds("only.o", IN_B)


@tap.case("BTF: split off a base, with the base and without")
def btf_split():
    with work() as at:
        need("pahole")
        at.run("gcc", "-g", "-c", "a.c", "-o", "base.o")
        at.run("pahole", "-J", "base.o")
        at.run("objcopy", "-O", "binary", "--only-section=.BTF", "--set-section-flags",
               ".BTF=alloc", "base.o", "base")
        at.objects("gcc", "-g")
        at.run("pahole", "-J", "--btf_base", "base", "b.o")
        at.run("objcopy", "-O", "binary", "--only-section=.BTF", "--set-section-flags",
               ".BTF=alloc", "b.o", "raw")
        own = {name: IN_B[name] for name in ("only_b", "irq_info")}
        at.holds("raw", own, "--btf-base", at.path("base"))
        at.run("objcopy", "--strip-debug", "b.o", "stripped.o")
        at.holds("stripped.o", own, "--btf-base", at.path("base"))
        at.holds("stripped.o", own, "--btf-base", at.path("base.o"))
        ruler.refused("base", "--btf-base", at.path("nowhere"), at.path("raw"))


class Btf:
    """Writes BTF, in the byte order and of the kinds that are asked for."""

    def __init__(self, order="<"):
        self.order = order
        self.strings = b"\0"
        self.types = b""
        self.n = 0

    def pack(self, *numbers):
        return struct.pack(f"{self.order}{len(numbers)}I", *(n & 0xffffffff for n in numbers))

    def string(self, text):
        if not text:
            return 0
        self.strings += text.encode() + b"\0"
        return len(self.strings) - len(text) - 1

    def add(self, name, kind, size_or_type, *rest, vlen=0, kflag=0):
        self.types += self.pack(self.string(name), kflag << 31 | kind << 24 | vlen, size_or_type,
                                *rest)
        self.n += 1
        return self.n

    def integer(self, name, size, encoding=1):
        return self.add(name, 1, size, encoding << 24 | size * 8)

    def members(self, name, size, *members, kind=4, kflag=0):
        rest = [word for member in members for word in (self.string(member[0]), *member[1:])]
        return self.add(name, kind, size, *rest, vlen=len(members), kflag=kflag)

    def image(self):
        head = struct.pack(self.order + "HBB", 0xeb9f, 1, 0)
        return head + self.pack(24, 0, len(self.types), len(self.types), len(self.strings)) + \
            self.types + self.strings


def btf_kinds(order):
    """Kinds that came late: floats, tags of declarations and types, enums of 64 bits;
    and what is older: forward declarations, functions, variables, sections."""
    btf = Btf(order)
    integer = btf.integer("int", 4)
    flt = btf.add("float", 16, 4)
    enum = btf.members("big", 8, ("NEGATIVE", -4, -1), ("BIG", 1, 2), kind=19, kflag=1)
    small = btf.members("small", 4, ("A", -4), kind=6, kflag=1)
    forward = btf.add("opaque", 7, 0)
    user = btf.add("user", 18, integer)
    pointer = btf.add("", 2, user)
    proto = btf.add("", 13, integer, 0, pointer, vlen=1)
    function = btf.add("call", 12, proto)
    opaque = btf.add("", 2, forward)
    whole = btf.members("late", 40, ("f", flt, 0), ("e", enum, 64), ("s", small, 128),
                        ("p", pointer, 192), ("o", opaque, 256))
    btf.add("tag", 17, whole, 0xffffffff)
    variable = btf.add("v", 14, whole, 1)
    btf.members(".data", 40, ("", variable, 0), kind=15)
    btf.add("weak", 5, 8, btf.string("bits"), integer, 3 << 24 | 5, vlen=1, kflag=1)
    tap.true(function, "")
    with work() as at:
        document = at.holds(os.path.basename(at.write("raw", btf.image())), {
            "late": [(40, [("f", 0, 4), ("e", 8, 8), ("s", 16, 4), ("p", 24, 8), ("o", 32, 8)])],
            "weak": [(8, [("bits", 5, 3)])]})
        members = ruler.only(document, "late")["members"]
        tap.equal([m["type"] for m in members],
                  ["float", "enum big", "enum small", "int *", "struct opaque *"])


tap.add("BTF: all kinds, little-endian", btf_kinds, "<")
tap.add("BTF: all kinds, big-endian", btf_kinds, ">")


@tap.case("BTF: a kind that is not known is refused")
def btf_unknown_kind():
    btf = Btf()
    integer = btf.integer("int", 4)
    btf.members("known", 4, ("a", integer, 0))
    btf.add("strange", 25, 0)
    with work() as at:
        ruler.refused("kind newer", at.write("raw", btf.image()))


@tap.case("BTF: alignment is inferred, nested flexible arrays stay where they are")
def btf_alignment():
    source = """
    struct plain { char c; long l; };
    struct line { char c; int i __attribute__((aligned(64))); };
    struct whole { char c; } __attribute__((aligned(128)));
    struct flexible { unsigned a : 3; unsigned b : 7; long data[]; };
    struct small { long a; char b; int data[]; };
    struct __attribute__((packed, aligned(4))) packed { char c; long l; char d; };
    struct holder { char c; struct whole w; char d; };
    struct plain a; struct line b; struct whole c; struct flexible d; struct small e;
    struct packed f; struct holder g;
    """
    with work() as at:
        need("pahole")
        at.write("b.c", source)
        at.objects("gcc", "-g")
        at.run("pahole", "-J", "b.o")
        at.run("objcopy", "--strip-debug", "b.o", "stripped.o")
        document = ruler.read(at.path("stripped.o"))
        tap.equal({one["name"]: one["align"] for one in document["types"]},
                  {"plain": 8, "line": 64, "whole": 128, "flexible": 8, "small": 8, "packed": 4,
                   "holder": 128})
        tap.equal(ruler.places(ruler.only(document, "flexible"))[2], ("data", 8, 0))
        tap.equal(ruler.places(ruler.only(document, "small"))[2], ("data", 12, 0))


@tap.case("BTF: the running kernel's")
def btf_kernel():
    path = "/sys/kernel/btf/vmlinux"
    if not os.access(path, os.R_OK):
        raise tap.Skip("this kernel shows no BTF")
    document = ruler.read(path)
    names(document, "task_struct", "list_head", "page", "file")
    tap.equal(ruler.only(document, "list_head")["size"], 2 * struct.calcsize("P"))
    tap.true(len(document["types"]) > 1000, "fewer types than a kernel has")


if platform.machine() not in ("x86_64", "aarch64"):
    print("# the sizes expected here are those of 64-bit Linux")
tap.main()
