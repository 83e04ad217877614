#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""hotline layout: its options, its output in all forms, its messages, its exit statuses."""

import json
import os
import re
import subprocess

import layout
import tap

# One type straddles, one has holes that cost a line, one is in order.
SOURCE = r"""
#include <stdatomic.h>

struct call { struct call *next; void (*func)(void *); void *info; atomic_uint flags; };
struct wasteful { char a; long b; char c; long d; char e; long f; char g; long h; char i; };
struct fine { long a, b; };
struct nested {
	char first;
	union { long whole; struct { int low, high; }; };
	int bits : 3, : 4;
	unsigned more : 9;
	struct fine inner[2];
	int (*table[3])(const char *, ...);
};
typedef struct { int x, y; } xy;
typedef struct fine fine_t;
enum colour { RED = -4, GREEN };
union both { int i; char c[5]; };
struct wide { _Alignas(64) long a; enum colour tint; };

struct call a; struct wasteful b; fine_t c; struct nested d; xy e; union both g;
struct wide w;
"""

OBJECT = layout.build("a", SOURCE)
TYPES = ["both", "call", "fine", "nested", "wasteful", "wide", "xy"]

# Many types, so that there is more output than a pipe takes.
MANY = layout.build("many", "".join(
    f"struct many{i} {{ struct many{i} *next; void (*func)(void *); int flags; }} v{i};\n"
    for i in range(4000)))


def document(*arguments):
    """The JSON of a run, each object as a list of pairs where order matters."""
    return json.loads(layout.layout_ok("--json", *arguments))


def ordered(*arguments):
    return json.loads(layout.layout_ok("--json", *arguments), object_pairs_hook=list)


def names(types):
    return sorted(t["name"] for t in types)


# ---- The command around it ----

def hotline(*arguments, **options):
    return tap.run([layout.HOTLINE, *arguments], env=layout.environment(), **options)


@tap.case("hotline --version and --help")
def front():
    version = hotline("--version")
    tap.equal(version.returncode, 0)
    tap.matches(r"^hotline \d+\.\d+\.\d+$", version.stdout)
    for arguments in (["--help"], ["help"]):
        result = hotline(*arguments)
        tap.equal(result.returncode, 0)
        tap.matches(r"^  layout +\S", result.stdout)


@tap.case("hotline without a command, or with one that is none")
def no_command():
    tap.equal(hotline().returncode, 2)
    tap.matches("a command is missing", hotline().stderr)
    result = hotline("lay-out")
    tap.equal(result.returncode, 2)
    tap.matches("no command lay-out; there is bench, c2c, ", result.stderr)


@tap.case("hotline layout --help has examples and each option")
def help_text():
    text = layout.layout_ok("--help")
    tap.equal(hotline("help", "layout").stdout, text)
    tap.matches("^Examples:", text)
    for option in ("all top proposals fault min-score sizes compile explain check accept strict "
                   "write-accept diff line pair btf-base debug-dir threads format json color "
                   "no-pager").split():
        tap.matches(rf"--{option}\b", text)
    tap.equal(layout.layout("--version").stdout, hotline("--version").stdout)


# ---- Messages and exit statuses ----

USAGE = [
    ("no file", [], "a FILE is missing"),
    ("unknown option", ["--bogus", OBJECT], "bogus"),
    ("--line 48", ["--line", "48", OBJECT], "a power of two, not 48"),
    ("--line 0", ["--line", "0", OBJECT], "from 8 to 65536"),
    ("--line x", ["--line", "x", OBJECT], 'not "x"'),
    ("--top -1", ["--top=-1", OBJECT], 'not "-1"'),
    ("--top of 12 digits", ["--top", "999999999999", OBJECT], "from 0 to 4294967295"),
    ("--threads 0", ["--threads", "0", OBJECT], "from 1"),
    ("--min-score 2000", ["--min-score", "2000", OBJECT], "from 1 to 1000"),
    ("--format xml", ["--format", "xml", OBJECT], "text, json or sarif"),
    ("--color maybe", ["--color", "maybe", OBJECT], "auto, always or never"),
    ("--fault nonsense", ["--fault", "hole,nonsense", OBJECT], "nonsense.*there are.*straddle"),
    ("--explain nonsense", ["--explain", "nonsense"], "nonsense.*there are.*straddle"),
    ("two modes", ["--sizes", "--check", OBJECT], "--sizes and --check do not go together"),
    ("--accept alone", ["--accept", "x", OBJECT], "--accept goes with --check"),
    ("--strict alone", ["--strict", OBJECT], "--strict goes with --check"),
    ("--sizes as JSON", ["--sizes", "--json", OBJECT], "no format but text"),
    ("--compile as SARIF", ["--compile", "--format", "sarif", OBJECT], "no format but text"),
]


def wrong_usage(arguments, message):
    tap.equal(layout.fails(2, message, *arguments), "")


for case_name, case_arguments, case_message in USAGE:
    tap.add("wrong usage: " + case_name, wrong_usage, case_arguments, case_message)


@tap.case("a file that cannot be read")
def unreadable():
    with open(OBJECT, "rb") as stream:
        whole = stream.read()
    with open(layout.path("short.o"), "wb") as stream:
        stream.write(whole[:100])
    layout.write("text", "not a program\n")
    layout.write("empty", "")
    for name in ("nothing-there", ".", "text", "empty", "short.o"):
        tap.equal(layout.fails(1, "^hotline layout: " + re.escape(name), name), "")


@tap.case("a file without permission")
def permission():
    if os.geteuid() == 0:
        raise tap.Skip("root may read everything")
    path = layout.write("secret", "x")
    os.chmod(path, 0)
    layout.fails(1, "Permission denied", path)


@tap.case("a program without debug information, or without a struct")
def no_types():
    plain = layout.build("plain", "int main(void) { return 0; }", flags=["-g0"])
    layout.fails(1, "-g", plain)
    bare = layout.build("bare", "struct unused { int a; }; int n = sizeof(struct unused);")
    layout.fails(1, "-fno-eliminate-unused-debug-types", bare)
    kept = layout.build("kept", "struct unused { int a; }; int n = sizeof(struct unused);",
                        flags=["-fno-eliminate-unused-debug-types"])
    tap.matches(r"^struct unused \{", layout.layout_ok(kept, "unused"))


@tap.case("a type that is not there")
def no_type():
    tap.equal(layout.fails(1, "no struct wastful; did you mean struct wasteful", OBJECT,
                           "struct wastful"), "")
    layout.fails(1, "-fno-eliminate-unused-debug-types", OBJECT, "nothing_like_it")
    layout.fails(1, "no union call", OBJECT, "union call")
    layout.fails(1, "no struct both", OBJECT, "struct both")
    layout.fails(1, "no struct, union or class int: that is a type without members", OBJECT, "int")
    # What is there is shown all the same.
    tap.matches(r"^struct fine \{", layout.fails(1, "nothing_like_it", OBJECT, "nothing_like_it",
                                                "fine"))


@tap.case("a type that is only declared")
def declared_only():
    other = layout.build("other", "struct hidden; struct seen { struct hidden *h; } s;")
    layout.fails(1, "only declared here", other, "hidden")
    # A typedef of its own name does not hide that.
    other = layout.build("other", "typedef struct hidden hidden; struct seen { hidden *h; } s;")
    layout.fails(1, "only declared here", other, "hidden")
    # Another unit's definition is found behind a typedef.
    one = layout.build("one", "struct full { int a; } f;")
    both = layout.path("both.o")
    two = layout.build("two", "typedef struct full full_t; struct seen { full_t *h; } s;")
    tap.run_ok(["gcc", "-r", "-nostdlib", "-o", both, one, two])
    tap.matches(r"^struct full \{", layout.layout_ok(both, "full_t"))


@tap.case("an output that takes nothing")
def full():
    if not os.path.exists("/dev/full"):
        raise tap.Skip("no /dev/full")
    for arguments in ([OBJECT], ["--all", OBJECT], ["--json", OBJECT], ["--sizes", OBJECT],
                      ["--explain", "hole"], ["--compile", OBJECT, "fine"], ["--help"]):
        with open("/dev/full", "wb") as stream:
            result = subprocess.run([layout.HOTLINE, "layout", *arguments], stdout=stream,
                                    stderr=subprocess.PIPE, check=False, text=True, timeout=60)
        tap.equal(result.returncode, 1, str(arguments))
        tap.matches("writing the output: No space left", result.stderr)


@tap.case("a reader that goes away")
def reader_gone():
    for form in ("text", "json", "sarif"):
        with subprocess.Popen([layout.HOTLINE, "layout", "--all", "--format", form, MANY],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            process.stdout.read(10)
            process.stdout.close()
            tap.equal((process.wait(60), process.stderr.read()), (0, b""), form)


# ---- What is shown ----

@tap.case("the ranked list")
def ranked():
    text = layout.layout_ok(OBJECT)
    tap.matches(r"a\.o: 7 types in 1 unit, lines of 64 bytes$", text)
    tap.matches(r"^\d+ faults?: .*1 straddle", text)
    tap.matches(r"^  1 +\d+ [a-z-]+  struct \w+  a\.c:\d+$", text)
    tap.matches(r"^    -> \S", text)
    scores = [int(s) for s in re.findall(r"^ +\d+ +(\d+) [a-z-]+  ", text, re.M)]
    tap.equal(scores, sorted(scores, reverse=True))
    tap.matches(r"^       struct \w+ \{$", text)        # the first one's proposal
    tap.true("\033" not in text, "colours in a file")


@tap.case("--top and --proposals")
def top():
    def faults(*arguments):
        return len(re.findall(r"^ *\d+ +\d+ [a-z-]+  struct", layout.layout_ok(*arguments), re.M))

    def proposals(*arguments):
        return len(re.findall(r"^       struct \w+ \{$", layout.layout_ok(*arguments), re.M))

    tap.true(faults("--top", "0", MANY) >= 4000, "faults are missing")
    tap.equal(faults(MANY), 20)
    tap.equal(faults("--top", "3", MANY), 3)
    tap.equal(faults("--top", "1", OBJECT), 1)
    tap.matches("more: --top 0 lists all", layout.layout_ok("--top", "1", OBJECT))
    tap.equal(proposals("--proposals", "0", OBJECT), 0)
    tap.true(proposals("--proposals", "9", OBJECT) > 1, "one proposal at most")


@tap.case("--fault and --min-score")
def narrowed():
    text = layout.layout_ok("--fault", "straddle", OBJECT)
    tap.matches("^1 fault: 1 straddle$", text)
    tap.equal(layout.layout_ok("--fault=straddle,hole", "--fault", "crossing", OBJECT),
              layout.layout_ok("--fault", "crossing,hole,straddle", OBJECT))
    score = int(re.search(r"^  1 +(\d+)", text, re.M).group(1))
    tap.matches("^1 fault", layout.layout_ok("--fault", "straddle", "--min-score", score, OBJECT))
    tap.matches("^0 faults$", layout.layout_ok("--fault", "straddle", "--min-score",
                                               score + 1, OBJECT))


@tap.case("types by name, typedef, kind, in one word or two")
def by_name():
    struct = layout.layout_ok(OBJECT, "fine")
    tap.matches(r"^/\* a\.c:\d+ \*/\nstruct fine \{\n", struct)
    for words in (["struct fine"], ["struct", "fine"], ["fine_t"], ["class fine"], ["::fine"],
                  ["fine", "fine_t"]):
        tap.equal(layout.layout_ok(OBJECT, *words), struct, str(words))
    tap.matches(r"^typedef struct \{\n(.*\n)*\} xy;", layout.layout_ok(OBJECT, "xy"))
    tap.matches(r"^union both \{\n", layout.layout_ok(OBJECT, "union both"))
    tap.matches(r"^enum colour \{\n(.*\n)*.*RED += -4", layout.layout_ok(OBJECT, "enum colour"))


@tap.case("types of one name are all shown, each with its file")
def same_name():
    one = layout.build("one", "struct twin { int a; } t;")
    two = layout.build("two", "struct twin { long a; } u;")
    both = layout.path("twins.o")
    tap.run_ok(["gcc", "-r", "-nostdlib", "-o", both, one, two])
    text = layout.layout_ok(both, "twin")
    tap.matches(r"^/\* one\.c:1 \*/$", text)
    tap.matches(r"^/\* two\.c:1 \*/$", text)
    tap.equal(sorted(t["declared"] for t in document(both, "twin")["types"]),
              ["one.c:1", "two.c:1"])


@tap.case("C++: namespaces and templates")
def cxx():
    path = layout.build("cxx", """
        namespace n { struct A1 { int a; }; template <class T> struct box { T t; }; }
        struct A1 { long a; };
        n::A1 x; A1 y; n::box<n::A1> z; n::box<char> w;
        """, compiler="g++", suffix=".cc")

    def found(query):
        return sorted((t["scope"] or "", t["name"]) for t in document(path, query)["types"])

    tap.equal(len(found("A1")), 2)
    tap.equal(found("n::A1"), [("n", "A1")])
    tap.equal(found("struct n::A1"), [("n", "A1")])
    tap.equal([t["scope"] for t in document(path, "::A1")["types"]], [None])
    tap.equal(len(found("box")), 2)
    tap.equal(found("n::box<char>"), [("n", "box<char>")])
    tap.equal(found("box<n::A1>"), [("n", "box<n::A1>")])
    layout.fails(1, "no struct, union or class m::A1", path, "m::A1")


@tap.case("--all")
def everything():
    text = layout.layout_ok("--all", OBJECT)
    for name in TYPES:
        tap.matches(rf"\b{name}\b", text)
    tap.equal(names(document("--all", OBJECT)["types"]), TYPES)
    # The worst first.
    tap.true(text.index("struct fine {") > text.index("struct call {"), "no order")


@tap.case("--sizes")
def sizes():
    text = layout.layout_ok("--sizes", OBJECT)
    rows = [line.split(None, 4) for line in text.splitlines()[1:]]
    by_name = {row[4]: [int(n) for n in row[:4]] for row in rows}
    tap.equal(by_name["struct fine"], [16, 1, 0, 0])
    tap.equal(by_name["xy"], [8, 1, 0, 0])
    tap.equal(by_name["struct wasteful"][:3], [72, 2, 4])
    tap.equal([int(r[0]) for r in rows], sorted((int(r[0]) for r in rows), reverse=True))
    tap.equal(len(layout.layout_ok("--sizes", "--top", "2", OBJECT).splitlines()), 3)
    tap.equal(len(layout.layout_ok("--sizes", OBJECT, "fine", "both").splitlines()), 3)


@tap.case("--compile compiles, and asserts what it says")
def compilable():
    for arguments in ([], ["nested", "xy"]):
        text = layout.layout_ok("--compile", OBJECT, *arguments)
        tap.matches(r"^_Static_assert\(sizeof\(struct nested\) == ", text)
        layout.write("again.c", text)
        tap.run_ok(["gcc", "-std=gnu11", "-fsyntax-only", layout.path("again.c")])


@tap.case("--explain")
def explain():
    every = layout.layout_ok("--explain", "all")
    for fault in ("straddle", "just-over", "lock-beside-read-mostly", "shared-slots",
                  "false-isolation", "crossing", "hole"):
        text = layout.layout_ok("--explain", fault)
        tap.matches(rf"^{fault}: \S", text)
        tap.matches(r"^Score\b", text)
        tap.true(text in every, fault + " is not among all")


@tap.case("--line and --pair change the verdict")
def lines():
    path = layout.build("apart", """
        #include <stdatomic.h>
        struct apart { _Alignas(64) atomic_long a; _Alignas(64) atomic_long b; } v;
        """)
    tap.matches("lines of 64 bytes$", layout.layout_ok(path))
    tap.matches("^0 faults$", layout.layout_ok(path))
    tap.matches("lines of 128 bytes$", layout.layout_ok("--line", "128", path))
    tap.matches("false-isolation", layout.layout_ok("--line", "128", path))
    tap.matches("lines of 64 bytes that travel in pairs$", layout.layout_ok("--pair", path))
    tap.matches("false-isolation", layout.layout_ok("--pair", path))
    tap.equal(document("--line", "128", "--all", path)["types"][0]["lines"], 1)


@tap.case("a type above the usual alignment has a note")
def notes():
    tap.matches("^   note .*aligned allocation", layout.layout_ok(OBJECT, "wide"))
    tap.true(document(OBJECT, "wide")["types"][0]["notes"], "no note in the JSON")


@tap.case("the same output for any number of threads")
def threads():
    for path in (MANY, OBJECT):
        for form in ("text", "json", "sarif"):
            outputs = {layout.layout_ok("--all", "--format", form, "--threads", n, path)
                       for n in (1, 2, 3, 8)}
            tap.equal(len(outputs), 1, form)


# ---- JSON ----

DOCUMENT = ["schema", "file", "line_bytes", "types", "faults"]
TYPE = ["id", "name", "kind", "declared", "size", "align", "lines", "holes", "hole_bytes",
        "bit_holes", "padding", "members"]
MEMBER = ["name", "type", "offset", "size", "bit_offset", "bit_size"]
FAULT = ["type", "fault", "score", "evidence", "members", "proposal"]
PROPOSAL = ["size", "lines", "text"]


def keys(pairs, wanted):
    tap.equal([key for key, _ in pairs][:len(wanted)], wanted)
    return dict(pairs)


@tap.case("JSON has the members that it promises, in their order")
def json_form():
    for arguments in ([OBJECT], ["--all", OBJECT], [OBJECT, "nested"]):
        top = keys(ordered(*arguments), DOCUMENT)
        tap.equal((top["schema"], top["file"], top["line_bytes"]), (1, OBJECT, 64))
        tap.true(top["types"], "no types")
        for pairs in top["types"]:
            for member in keys(pairs, TYPE)["members"]:
                keys(member, MEMBER)
        ids = [dict(pairs)["id"] for pairs in top["types"]]
        tap.equal(len(ids), len(set(ids)))
        for pairs in top["faults"]:
            fault = keys(pairs, FAULT)
            tap.true(fault["type"] in ids, "a fault of no type")
            tap.true(1 <= fault["score"] <= 1000, "score")
            if fault["proposal"] is not None:
                keys(fault["proposal"], PROPOSAL)


@tap.case("JSON: which types are listed")
def json_types():
    every = document(OBJECT)
    with_faults = {f["type"] for f in every["faults"]}
    tap.equal({t["id"] for t in every["types"]}, with_faults)
    tap.equal(names(document(OBJECT, "fine", "struct nested")["types"]), ["fine", "nested"])
    tap.equal([f["fault"] for f in document("--fault", "straddle", OBJECT)["faults"]],
              ["straddle"])
    scores = [f["score"] for f in every["faults"]]
    tap.equal(scores, sorted(scores, reverse=True))
    tap.equal(document(OBJECT, "fine")["faults"], [])


@tap.case("JSON: offsets, sizes and bits are the compiler's")
def json_members():
    found = document(OBJECT, "nested")["types"][0]
    members = {m["name"]: m for m in found["members"]}
    plain = {name: (members[name]["offset"], members[name]["size"])
             for name in ("first", "inner", "table")}
    tap.equal(plain, {"first": (0, 1), "inner": (24, 32), "table": (56, 24)})
    tap.equal((found["size"], found["align"], found["kind"], found["lines"]),
              (80, 8, "struct", 2))
    # bit_offset counts from offset.
    for name, place, width in (("bits", 16 * 8, 3), ("more", 16 * 8 + 7, 9)):
        member = members[name]
        tap.equal((member["offset"] * 8 + member["bit_offset"], member["bit_size"]),
                  (place, width))
    tap.equal(members["inner"]["type"], "struct fine[2]")
    tap.equal(members["table"]["type"].replace(" ", ""), "int(*[3])(constchar*,...)")
    # Members of what has no name, from the start of the outermost struct.
    union = members[None]
    tap.equal((union["offset"], union["size"]), (8, 8))
    whole, pair = union["members"]
    tap.equal((whole["name"], whole["offset"]), ("whole", 8))
    tap.equal([(m["name"], m["offset"]) for m in pair["members"]], [("low", 8), ("high", 12)])
    tap.equal(members["first"]["hole"], 7)
    tap.equal(document(OBJECT, "both")["types"][0]["kind"], "union")


@tap.case("a variable with a fault stands among the types")
def json_variable():
    path = layout.build("slots", """
        #define MAX_THREADS 16
        struct slot { unsigned long count; };
        struct slot per_thread[MAX_THREADS];
        """)
    found = document("--fault", "shared-slots", path)
    kinds = {t["id"]: (t["kind"], t["name"]) for t in found["types"]}
    tap.equal([kinds[f["type"]] for f in found["faults"]], [("variable", "per_thread")])
    tap.matches("^ +[0-9]+ +[0-9]+ shared-slots  variable per_thread", layout.layout_ok(path))
    # It comes with its element's type, and by its own name.
    tap.matches("^struct slot per_thread", layout.layout_ok(path, "struct slot"))
    tap.matches("^struct slot per_thread", layout.layout_ok(path, "per_thread"))


# ---- Names that mean harm ----

HARM = b'\x1b[31m\xff\n"\\\x7f'


def harmful():
    """An object with a struct whose name holds escapes, a newline, no UTF-8."""
    path = layout.build("harm", "struct evilevil_ { long evilmemb_; char c; long d; } v;")
    with open(path, "rb") as stream:
        data = stream.read()
    tap.true(len(HARM) == len("evilevil") + 2 and b"evilevil_" in data, "the test is wrong")
    data = data.replace(b"evilevil_", HARM[:9]).replace(b"evilmemb_", HARM[1:])
    with open(path, "wb") as stream:
        stream.write(data)
    return path


@tap.case("names can do nothing to a terminal, and are valid UTF-8")
def names_harmless():
    path = harmful()
    for arguments in (["--all"], ["--sizes"], ["--compile"], []):
        result = subprocess.run([layout.HOTLINE, "layout", *arguments, path], check=False,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
        text = (result.stdout + result.stderr).decode("utf-8")
        tap.true(not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", text), repr(text))
    found = document("--all", path)["types"][0]
    tap.equal(found["name"], '\\x1b[31m\\xff\n"\\')
    tap.equal(found["members"][0]["name"], '[31m\\xff\n"\\\\x7f')
    json.loads(layout.layout_ok("--format", "sarif", path))


@tap.case("messages can do nothing to a terminal")
def messages_harmless():
    result = layout.layout(OBJECT, "a\033[31mb")
    tap.equal(result.returncode, 1)
    tap.matches(r"a\\x1b\[31mb", result.stderr)
    tap.matches(r"^hotline layout: a\\x1b", layout.layout("a\033[31mb").stderr)


# ---- SARIF ----

@tap.case("SARIF: rules, results, locations, fingerprints")
def sarif():
    text = layout.layout_ok("--format", "sarif", OBJECT)
    found = json.loads(text)
    tap.equal(found["version"], "2.1.0")
    tap.matches("sarif-2.1.0", found["$schema"])
    run, = found["runs"]
    driver = run["tool"]["driver"]
    tap.equal(driver["name"], "hotline layout")
    rules = [rule["id"] for rule in driver["rules"]]
    tap.equal(len(rules), 7)
    for rule in driver["rules"]:
        tap.true(rule["shortDescription"]["text"] and rule["help"]["text"], rule["id"])
    faults = document(OBJECT)["faults"]
    tap.equal([r["ruleId"] for r in run["results"]], [f["fault"] for f in faults])
    for result in run["results"]:
        tap.equal(rules[result["ruleIndex"]], result["ruleId"])
        tap.true(result["level"] in ("error", "warning", "note"), result["level"])
        tap.true(result["message"]["text"], "no message")
        place = result["locations"][0]["physicalLocation"]
        tap.equal(place["artifactLocation"]["uri"], "a.c")
        tap.true(place["region"]["startLine"] > 1, "line")
    prints = [r["partialFingerprints"]["hotlineFault/v1"] for r in run["results"]]
    tap.equal(len(set(prints)), len(prints))
    # The same types further down have the same fingerprints.
    moved = layout.build("a", "\n\n\n" + SOURCE)
    again = json.loads(layout.layout_ok("--format", "sarif", moved))["runs"][0]["results"]
    tap.equal([r["partialFingerprints"]["hotlineFault/v1"] for r in again], prints)
    tap.true(again[0]["locations"] != run["results"][0]["locations"], "lines did not move")
    layout.build("a", SOURCE)


# ---- On a terminal ----

@tap.case("colours on a terminal, and not with NO_COLOR, --color, TERM=dumb")
def colours():
    plain = {"HOTLINE_PAGER": "cat"}
    tap.true("\033[" in layout.terminal(OBJECT, **plain)[1], "no colours")
    for arguments, more in ((["--color", "never"], {}), ([], {"NO_COLOR": "1"})):
        tap.true("\033" not in layout.terminal(OBJECT, *arguments, **plain, **more)[1],
                 "colours")
    tap.true("\033[" in layout.terminal(OBJECT, "--color", "always", NO_COLOR="1", **plain)[1],
             "no colours")
    tap.true("\033[" in layout.layout_ok("--color", "always", OBJECT), "no colours in a file")
    tap.true("\033[" in layout.layout_ok("--color=always", OBJECT, "nested"), "no colours")


@tap.case("the list fits the terminal")
def fits():
    _, text = layout.terminal("many.o", rows=60, columns=70, HOTLINE_PAGER="", NO_COLOR="1")
    tap.true(20 < len(text.splitlines()) <= 65, f"{len(text.splitlines())} lines")
    tap.true(all(len(line) <= 70 for line in text.splitlines() if "/*" not in line), text)


@tap.case("the pager: HOTLINE_PAGER before PAGER, not with --no-pager")
def pager():
    sed = {"HOTLINE_PAGER": "sed 's/^/one:/'", "PAGER": "sed 's/^/two:/'", "NO_COLOR": "1"}
    status, text = layout.terminal(OBJECT, "fine", **sed)
    tap.equal(status, 0)
    tap.matches("^one:struct fine", text)
    del sed["HOTLINE_PAGER"]
    tap.matches("^two:struct fine", layout.terminal(OBJECT, "fine", **sed)[1])
    tap.matches("^struct fine", layout.terminal("--no-pager", OBJECT, "fine", **sed)[1])
    # No pager where output is to no terminal.
    tap.matches("^struct fine", layout.layout_ok(OBJECT, "fine", env=layout.environment(**sed)))


@tap.case("a pager that quits early, one that is not there")
def pager_fails():
    status, text = layout.terminal("--all", MANY, HOTLINE_PAGER="head -2")
    tap.equal(status, 0)
    tap.equal(len(text.splitlines()), 2)
    status, text = layout.terminal(OBJECT, HOTLINE_PAGER="no-such-pager")
    tap.equal(status, 1)
    tap.matches('the pager "no-such-pager" cannot be run', text)


@tap.case("nothing on standard error but messages")
def quiet():
    tap.equal(layout.layout(OBJECT).stderr, "")


# ---- A whole kernel ----

VMLINUX = "/sys/kernel/btf/vmlinux"


@tap.case("the running kernel's BTF: all types, in little memory")
def vmlinux():
    if not os.access(VMLINUX, os.R_OK):
        raise tap.Skip("no " + VMLINUX)
    peak = 0
    with subprocess.Popen([layout.HOTLINE, "layout", "--all", VMLINUX],
                          stdout=subprocess.PIPE) as process:
        # It cannot end while there is something to read.
        while process.stdout.read(65536):
            with open(f"/proc/{process.pid}/status", encoding="ascii") as stream:
                peak = max([peak] + [int(n) for n in re.findall(r"VmHWM:\s*(\d+)",
                                                                stream.read())])
        tap.equal(process.wait(60), 0)
    if not layout.SANITIZED:
        tap.true(0 < peak < 26 * 1024, f"{peak} KB")
    found = document("--all", VMLINUX)
    tap.true(len(found["types"]) > 1000, "few types")
    tap.true(found["types"][0]["declared"] is None, "BTF tells no files")
    tap.equal(found["types"][0].keys() >= set(TYPE), True)


tap.main()
