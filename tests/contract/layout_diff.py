#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""hotline layout --diff: what became of types, and whether it is worse."""

import json

import layout
import tap

CALL = "struct call *next; void (*func)(void *); void *info; _Atomic unsigned flags;"


def compare(old, new, *arguments):
    """The result of comparing a struct with these members before and after."""
    files = [layout.build(name, f"struct t {{ {members} }} v;\nstruct same {{ int x; }} s;\n")
             for name, members in (("old", old), ("new", new))]
    return layout.layout("--diff", *arguments, *files)


def changes(old, new, *arguments):
    result = compare(old, new, "--json", *arguments)
    found = json.loads(result.stdout)
    tap.equal(result.returncode, 1 if found["worse"] else 0)
    return {c["type"]: c for c in found["changes"]}


CASES = [
    # Name, before, after, what is worse, what else there is.
    ("nothing", "int a; long b;", "int a; long b;", [], []),
    ("another type of the same size", "int a;", "unsigned a;", [], []),
    ("grew", "int a;", "int a, b;", ["grew"], []),
    ("shrank", "int a, b;", "int a;", [], ["shrank"]),
    ("a line more", "char a[64];", "char a[72];", ["grew", "more-lines"], []),
    ("a line less", "char a[72];", "char a[64];", [], ["shrank", "fewer-lines"]),
    ("a member on another line", "char a[60]; int x; char b[60]; int y;",
     "char a[60]; int y; char b[60]; int x;", [], ["moved"]),
    ("a member moved on its line", "int a, b;", "int b, a;", [], []),
    ("a member that crosses a line", "char a[60]; char x[8]; char b[60];",
     "char a[64]; char x[8]; char b[56];", [], ["moved"]),
    ("a member that crosses a line now", "char a[64]; char x[8]; char b[56];",
     "char a[60]; char x[8]; char b[60];", ["crosses"], ["moved"]),
    ("a member of what has no name", "struct { char a[60]; int x; }; char b[60]; int y;",
     "struct { char a[60]; int y; }; char b[60]; int x;", [], ["moved"]),
    ("a bit-field that grew", "int a:3; char c;", "int a:30; char c;", ["grew"], []),
]


def case(old, new, worse, else_):
    found = changes(old, new, "--fault", "hole")
    if not worse and not else_:
        tap.equal(found, {})
        return
    tap.equal(list(found), ["struct t"])
    tap.equal(sorted(found["struct t"]["what"]), sorted(worse + else_))
    tap.equal(found["struct t"]["worse"], bool(worse))


for case_name, *case_arguments in CASES:
    tap.add(case_name, case, *case_arguments)


@tap.case("a new fault is worse, one less is not")
def faults():
    aligned = CALL.replace("struct call", "struct t") + " int more, pad;"
    plain = aligned.replace(" int more, pad;", " int more; char pad[4];")
    fixed = "_Alignas(64) " + aligned
    found = changes(fixed, plain, "--fault", "straddle")["struct t"]
    tap.true("new-fault" in found["what"] and found["worse"], str(found))
    tap.equal([f["fault"] for f in found["new_faults"]], ["straddle"])
    found = changes(plain, fixed, "--fault", "straddle")["struct t"]
    tap.true("fault-gone" in found["what"], str(found))
    tap.equal(found["new_faults"], [])


@tap.case("what appears or vanishes makes nothing worse")
def appeared():
    old = layout.build("old", "struct a { int x; } a; struct b { int x; } b;")
    new = layout.build("new", f"struct b {{ int x; }} b; struct call {{ {CALL} }} c;")
    result = layout.layout("--diff", "--json", old, new)
    tap.equal(result.returncode, 0)
    found = {c["type"]: c for c in json.loads(result.stdout)["changes"]}
    tap.equal({name: c["what"] for name, c in found.items()},
              {"struct a": ["vanished"], "struct call": ["appeared"]})
    tap.equal((found["struct a"]["new"], found["struct call"]["old"]), (None, None))
    # Its faults are told all the same.
    tap.true("straddle" in [f["fault"] for f in found["struct call"]["new_faults"]], "no fault")
    text = layout.layout("--diff", old, new).stdout
    tap.matches("^vanished  struct a ", text)
    tap.matches("^appeared  struct call ", text)


@tap.case("text: the count, sizes, lines, members that moved; what is worse first")
def text():
    old = layout.build("old", "struct a { char c[60]; int x; long y; } a; struct b { int x; } b;"
                       "struct z { int x; } z;")
    new = layout.build("new", "struct a { char c[60]; char d; int x; char e[3]; } a;"
                       "struct b { char x; } b; struct z { int x; } z;")
    result = layout.layout("--diff", old, new)
    tap.equal(result.returncode, 0)
    tap.matches(r"old\.o -> .*new\.o: 2 types changed, 1 did not$", result.stdout)
    tap.matches(r"^shrank  struct b  size 4 -> 1, lines 1  new\.c:1$", result.stdout)
    tap.matches(r"^ +x moved from line 0 to line 1 \(offset 60 -> 64\)$", result.stdout)
    back = layout.layout("--diff", new, old)
    tap.equal(back.returncode, 1)
    tap.matches(r"^grew  struct b  size 1 -> 4, lines 1  old\.c:1$", back.stdout)
    tap.true(back.stdout.index("struct b ") < back.stdout.index("struct a "), back.stdout)


@tap.case("the same file twice: nothing")
def same():
    path = layout.build("old", "struct a { int x; } a;")
    result = layout.layout("--diff", path, path)
    tap.equal(result.returncode, 0)
    tap.matches("0 types changed, 1 did not", result.stdout)
    tap.equal(json.loads(layout.layout_ok("--diff", "--json", path, path))["changes"], [])


@tap.case("types of one name are told apart by their file")
def same_name():
    def both(name, first, second):
        one = layout.build("one", f"struct twin {{ {first} }} t;")
        two = layout.build("two", f"struct twin {{ {second} }} u;")
        path = layout.path(name + ".o")
        tap.run_ok(["gcc", "-r", "-nostdlib", "-o", path, one, two])
        return path

    old = both("old", "int a;", "long a, b;")
    new = both("new", "int a;", "long a, b, c;")
    found, = json.loads(layout.layout("--diff", "--json", old, new).stdout)["changes"]
    tap.equal((found["declared"], found["old"]["size"], found["new"]["size"]),
              ("two.c:1", 16, 24))


@tap.case("with types, only these")
def some():
    old = layout.build("old", "struct a { int x; } a; struct b { int x; } b;")
    new = layout.build("new", "struct a { int x; } a; struct b { int x, y; } b;")
    tap.equal(layout.layout("--diff", old, new, "a").returncode, 0)
    tap.equal(layout.layout("--diff", old, new, "struct", "b").returncode, 1)
    layout.fails(2, "no type gone in either file", "--diff", old, new, "a", "gone")
    new = layout.build("new", "struct a { int x; } a; struct c { int x; } c;")
    result = layout.layout("--diff", old, new, "c")
    tap.equal(result.returncode, 0)
    tap.matches("appeared  struct c", result.stdout)


@tap.case("lines are those of --line")
def lines():
    tap.equal(changes("char a[64];", "char a[72];", "--line", "128")["struct t"]["what"],
              ["grew"])


@tap.case("the same for any number of threads")
def threads():
    old = layout.build("old", "".join(f"struct s{i} {{ char a; long b; }} v{i};\n"
                                      for i in range(1000)))
    new = layout.build("new", "".join(f"struct s{i} {{ long b; char a[{1 + i % 80}]; }} v{i};\n"
                                      for i in range(1000)))
    outputs = {layout.layout("--diff", "--threads", n, old, new).stdout for n in (1, 2, 8)}
    tap.equal(len(outputs), 1)


@tap.case("what cannot be told")
def cannot_tell():
    path = layout.build("old", "struct a { int x; } a;")
    tap.equal(layout.fails(2, "two files: OLD NEW", "--diff", path), "")
    tap.equal(layout.fails(2, "nothing-there", "--diff", path, "nothing-there"), "")
    tap.equal(layout.fails(2, "nothing-there", "--diff", "nothing-there", path), "")
    tap.equal(layout.fails(2, "formats text and json", "--diff", "--format", "sarif", path,
                           path), "")
    plain = layout.build("plain", "int main(void) { return 0; }", flags=["-g0"])
    layout.fails(2, "-g", "--diff", path, plain)
    layout.fails(2, "do not go together", "--diff", "--check", path, path)


tap.main()
