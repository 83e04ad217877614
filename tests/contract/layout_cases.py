#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Types that readers of debug information have got wrong, here and elsewhere, with
`hotline layout`'s answer for each; what several units tell of the same name."""

import os
import shutil
import tempfile

import compilers
import ruler
import tap
from compilers import C, CXX, Compiler

GCC, GXX = Compiler("gcc", C), Compiler("g++", CXX)
CLANG, CLANGXX = Compiler("clang", C), Compiler("clang++", CXX)


def read(compiler, source, *flags, options=()):
    """The types of a source, as the command reads them of its object."""
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "a" + compilers.SUFFIX[compiler.language])
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(source)
        tap.run_ok([*compiler.command, "-w", "-g", *flags, "-c", path, "-o", path + ".o"])
        document = ruler.read(*options, path + ".o")
    tap.equal(document["skipped"], 0, document["first_skipped"])
    return document


def expect(compiler, source, name, size, places, flags=(), **facts):
    compiler.require()
    one = ruler.only(read(compiler, source, *flags), name)
    tap.equal((one["size"], ruler.places(one)), (size, places))
    tap.equal({key: one[key] for key in facts}, facts)


def table(title, by, source, name, size, places, flags=(), **facts):
    for compiler in by:
        tap.add(f"{title}: {compiler.name}", lambda c=compiler: expect(
            c, source, name, size, places, flags, **facts))


BOTH, BOTHXX = (GCC, CLANG), (GXX, CLANGXX)

table("_Atomic members, and padding behind them", BOTH,
      "struct s { _Atomic long a; _Atomic char b; } v;", "s", 16, [("a", 0, 8), ("b", 8, 1)],
      padding=7, holes=0, align=8)
table("_Atomic members in arrays and nested", BOTH,
      "struct s { char c; struct { _Atomic short h[3]; } in; _Atomic(int *) p; } v;", "s", 16,
      [("c", 0, 1), ("in", 2, 6), ("in.h", 2, 6), ("p", 8, 8)], holes=1, align=8)
table("a base class counts", BOTHXX,
      "struct b { virtual void f(); }; void b::f() {} struct d : b { int x; }; d v;", "d", 16,
      [("", 0, 8), ("x", 8, 4)], padding=4)
table("a member of an empty class", BOTHXX, "struct E {}; struct N { E e; int a; }; N v;", "N", 8,
      [("e", 0, 1), ("a", 4, 4)], holes=1, hole_bytes=3)
table("an empty member without an address of its own", BOTHXX,
      "struct E {}; struct N { [[no_unique_address]] E e; int a; }; N v;", "N", 4,
      [("e", 0, 1), ("a", 0, 4)], ("-std=c++20",), holes=0)
table("an empty base takes no room", BOTHXX,
      "struct E {}; struct O : E { union { char c; int v; }; bool has; }; O v;", "O", 8,
      [("", 0, 0), ("c", 0, 1), ("v", 0, 4), ("has", 4, 1)], padding=3, holes=0)
table("a static member of the own type takes no room", BOTHXX,
      "struct X { static X t; static const int n = 3; int q; }; X X::t; X v;", "X", 4,
      [("q", 0, 4)], holes=0)
table("a bit-field, then an int, then a bit-field", BOTH,
      "struct s { long a : 62; int b; long c : 55; } v;", "s", 24,
      [("a", 0, 62), ("b", 8, 4), ("c", 128, 55)], bit_holes=1, holes=1, hole_bytes=4)
for dwarf in (2, 3, 4, 5):
    table(f"packed bit-fields across units, DWARF {dwarf}", BOTH,
          "struct __attribute__((packed)) s"
          " { unsigned char a : 1, b : 3, c : 3; unsigned d : 7, e : 20; } v;",
          "s", 5, [("a", 0, 1), ("b", 1, 3), ("c", 4, 3), ("d", 7, 7), ("e", 14, 20)],
          (f"-gdwarf-{dwarf}",), align=1)
table("qualified and aliased bit-fields", BOTH,
      "typedef unsigned u; typedef const u cu; struct s { volatile unsigned a : 1; u b : 2;"
      " volatile u c : 3; cu d : 4; } v;",
      "s", 4, [("a", 0, 1), ("b", 1, 2), ("c", 3, 3), ("d", 6, 4)])
table("unnamed bit-fields", BOTH, "struct s { unsigned a : 5; unsigned : 6; unsigned b : 8; } v;",
      "s", 4, [("a", 0, 5), ("b", 11, 8)])
table("bit-fields of no width", BOTH, "struct s { unsigned a : 4; unsigned : 0; unsigned b : 4; } v;",
      "s", 8, [("a", 0, 4), ("b", 32, 4)])
table("a flexible array after bit-fields", BOTH,
      "struct s { unsigned a : 3, b : 7; long data[]; }; struct s v;", "s", 8,
      [("a", 0, 3), ("b", 3, 7), ("data", 8, 0)])
table("an aligned flexible array after a byte", BOTH,
      "struct s { long a; char b; char data[] __attribute__((aligned(16))); }; struct s v;", "s", 16,
      [("a", 0, 8), ("b", 8, 1), ("data", 16, 0)], align=16)
table("arrays of no elements in the middle and in a union", BOTH,
      "struct s { int a; char pad[0] __attribute__((aligned(16))); int b; union { char x[0]; int y; };"
      " } v;", "s", 32, [("a", 0, 4), ("pad", 16, 0), ("b", 16, 4), ("x", 20, 0), ("y", 20, 4)],
      align=16)
table("a pad of no bytes and an aligned array of none", BOTH,
      "struct s { int a; char fill[4 - sizeof(int)]; char x[0] __attribute__((aligned(64))); } v;",
      "s", 64, [("a", 0, 4), ("fill", 4, 0), ("x", 64, 0)], align=64)
table("a struct with a flexible tail inside another", BOTH,
      "struct flex { int n; char data[]; }; struct s { int n; struct flex f; int tail; } v;", "s", 12,
      [("n", 0, 4), ("f", 4, 4), ("tail", 8, 4)])
table("arrays of two dimensions", BOTH, "struct s { char c; int a[5][5]; short b[2][3][4]; } v;", "s",
      152, [("c", 0, 1), ("a", 4, 100), ("b", 104, 48)])
table("unions have no holes, structs in them do", BOTH,
      "union u { struct { char a; long b; }; int c; char d[3]; } v;", "u", 16,
      [("a", 0, 1), ("b", 8, 8), ("c", 0, 4), ("d", 0, 3)], holes=0)
table("a packed key in a packed item", BOTH,
      "struct __attribute__((packed)) key { long a, b; char c; };"
      "struct __attribute__((packed)) item { struct key k; struct { long x, y, z; } i; };"
      "struct item v;", "item", 41, [("k", 0, 17), ("i", 17, 24), ("i.x", 17, 8), ("i.y", 25, 8),
                                    ("i.z", 33, 8)], align=1)
table("a packed key and what is not packed behind it", BOTH,
      "struct __attribute__((packed)) key { long a, b; char c; };"
      "struct item { struct key k; int n; }; struct item v;", "item", 24,
      [("k", 0, 17), ("n", 20, 4)], align=4)
table("a name that only a typedef gives", BOTH, "typedef struct { int x, y; } xy; xy v;", "xy", 8,
      [("x", 0, 4), ("y", 4, 4)])
table("names with digits, in and out of a namespace", BOTHXX,
      "class A1 { char x1; }; namespace n { class A1 { long y2; }; } A1 a; n::A1 b;", "n::A1", 8,
      [("y2", 0, 8)])

def virtual_base(compiler):
    """Where a virtual base lies only the complete object knows: null; the others are there."""
    compiler.require()
    source = """struct V { long v; }; struct L : virtual V { int l; }; struct R : virtual V { int r; };
    struct D : L, R { int d; }; D v;"""
    document = read(compiler, source)
    whole, left = ruler.only(document, "D"), ruler.only(document, "L")
    tap.equal((whole["size"], [m["offset"] for m in whole["members"]]), (40, [0, 16, 28]))
    tap.equal((left["size"], [(m["name"], m["offset"]) for m in left["members"]]),
              (24, [("_vptr.L" if compiler is GXX else "_vptr$L", 0), ("l", 8), (None, None)]))
    tap.equal(left["members"][2]["role"], "virtual-base")


tap.add("a virtual base, twice: g++", virtual_base, GXX)
tap.add("a virtual base, twice: clang++", virtual_base, CLANGXX)


def type_text(compiler):
    compiler.require()
    source = """struct s { void (*fn[3])(void); int (*rows)[7]; char **argv; const char *const name;
    int (*(*deep)(char))[2]; volatile int *vp; struct s *next[2]; int (*cb)(const char *, ...); } v;"""
    members = ruler.only(read(compiler, source), "s")["members"]
    tap.equal([m["type"] for m in members],
              ["void (*[3])(void)", "int (*)[7]", "char **", "const char *const",
               "int (*(*)(char))[2]", "volatile int *", "struct s *[2]",
               "int (*)(const char *, ...)"])


tap.add("types in words: gcc", type_text, GCC)
tap.add("types in words: clang", type_text, CLANG)


def pointers_to_members(compiler):
    compiler.require()
    source = "struct B { int x; }; struct s { char c; int B::*data; void (B::*call)(int); int &r; }; s *v;"
    one = ruler.only(read(compiler, source + " int f() { return sizeof(*v) + v->c; }"), "s")
    tap.equal((one["size"], [ruler.place(*leaf)[1:] for leaf in ruler.leaves(one)]),
              (40, [(0, 1), (8, 8), (16, 16), (32, 8)]))


tap.add("pointers to members: g++", pointers_to_members, GXX)
tap.add("pointers to members: clang++", pointers_to_members, CLANGXX)


@tap.case("a library of templates")
def templates():
    GXX.require()
    source = """#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>
struct user { std::map<std::string, std::vector<int>> m; std::optional<int> o; std::shared_ptr<user> p; };
user u;"""
    document = read(GXX, source, "-std=c++17")
    one = ruler.only(document, "user")
    tap.equal((one["size"], ruler.places(one)), (72, [("m", 0, 48), ("o", 48, 8), ("p", 56, 16)]))
    tap.true(len(document["types"]) > 50, f"only {len(document['types'])} types")


@tap.case("names of many thousand characters")
def long_names():
    GXX.require()
    source = "template <typename A, typename B> struct two { A a; B b; };\n"
    name = "char"
    for _ in range(12):
        name = f"two<{name}, {name}>"
    document = read(GXX, source + name + " v;")
    tap.true(max(one["size"] for one in document["types"]) == 4096, "the largest is not there")


# ---- Rust ----

@tap.case("Rust: an enum with its tag and variants where they are")
def rust():
    if not shutil.which("rustc"):
        raise tap.Skip("no rustc")
    source = """
#![allow(dead_code)]
pub enum Shape { Circle(f64), Rect { w: u32, h: u16 }, Unit }
#[repr(C)] pub struct Holder { c: u8, shape: Shape, tail: u16 }
pub struct Mixed { a: u8, b: u64, c: u16 }
#[repr(align(64))] pub struct Line { x: u8 }
pub static HOLDER: Holder = Holder { c: 1, shape: Shape::Unit, tail: 2 };
pub static MIXED: Mixed = Mixed { a: 1, b: 2, c: 3 };
pub static LINE: Line = Line { x: 1 };
fn main() { std::process::exit((HOLDER.c as u64 + MIXED.b + LINE.x as u64) as i32); }
"""
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "a.rs")
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(source)
        tap.run_ok(["rustc", "-g", "--emit=obj", path, "-o", path + ".o"], 120)
        document = ruler.read(path + ".o")
    shape = ruler.only(document, "a::Shape")
    variants = [m for m in shape["members"] if m.get("role") == "variant"]
    tags = [m for m in shape["members"] if m.get("role") == "discriminant"]
    tap.equal((shape["size"], len(tags), len(variants)), (16, 1, 3))
    tap.equal(tags[0]["offset"], 0)
    circle = ruler.only(document, "a::Shape::Circle")
    tap.equal(ruler.places(circle), [("__0", 8, 8)])
    holder = ruler.only(document, "a::Holder")
    tap.equal((holder["size"], ruler.places(holder)),
              (32, [("c", 0, 1), ("shape", 8, 16), ("tail", 24, 2)]))
    mixed = ruler.only(document, "a::Mixed")
    tap.equal(mixed["size"], 16)
    tap.equal(sorted(m["offset"] for m in mixed["members"]), [0, 8, 10])
    tap.equal(ruler.only(document, "a::Line")["align"], 64)


# ---- Several units. ----

def many_units(directory, n):
    """A program of many units with types in common, and others that only share a name."""
    header = os.path.join(directory, "common.h")
    with open(header, "w", encoding="utf-8") as stream:
        stream.write("struct shared { char c; long l; struct shared *next; };\n"
                     "struct slot { long a, b, c; };\n"
                     "static struct slot table[8];\n")
    objects = []
    for i in range(n):
        path = os.path.join(directory, f"u{i}.c")
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(f'#include "common.h"\nstruct conflict {{ char pad[{i + 1}]; int n; }};\n'
                         f"struct own{i} {{ struct shared s; struct conflict c; }} v{i};\n"
                         f"long f{i}(void) {{ return table[0].a + v{i}.s.l; }}\n")
        objects.append(path + ".o")
        tap.run_ok(["gcc", "-g", "-fPIC", "-c", path, "-o", path + ".o"])
    tap.run_ok(["gcc", "-shared", *objects, "-o", os.path.join(directory, "all.so")])
    return os.path.join(directory, "all.so")


@tap.case("the same answer from any number of threads; one name, several structs")
def threads():
    GCC.require()
    with tempfile.TemporaryDirectory() as directory:
        path = many_units(directory, 24)
        first = ruler.run("--threads", "1", path).stdout
        for n in (2, 3, 4, 5, 6, 7, 8):
            tap.equal(ruler.run("--threads", str(n), path).stdout, first, f"{n} threads")
        document = ruler.read(path)
    conflicts = document["by_name"]["conflict"]
    tap.equal([one["size"] for one in conflicts], [(i + 4) // 4 * 4 + 4 for i in range(24)])
    tap.equal([os.path.basename(one["declared"]) for one in conflicts],
              [f"u{i}.c:2" for i in range(24)])
    tap.equal(len(document["by_name"]["shared"]), 1)


@tap.case("the verdict depends on the size of a line")
def lines():
    GCC.require()
    source = """#include <stdatomic.h>
struct s { _Alignas(64) atomic_long a; char pad[56]; atomic_long b; } v;"""
    found = {}
    for line in ("64", "128"):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "l.c")
            with open(path, "w", encoding="utf-8") as stream:
                stream.write(source)
            tap.run_ok(["gcc", "-g", "-c", path, "-o", path + ".o"])
            document = ruler.read("--line", line, path + ".o")
        found[line] = ruler.only(document, "s")["lines"]
    tap.equal(found, {"64": 2, "128": 1})


tap.main()
