#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""hotline layout --check and --write-accept: each rule, each outcome, each message."""

import json
import os
import re

import layout
import tap

SOURCE = r"""
#include <stdatomic.h>

struct call { struct call *next; void (*func)(void *); void *info; atomic_uint flags; };
struct conn {
	_Alignas(64) int state;
	long head;
	struct { int port; union { int v4; char v6[16]; }; } peer;
	struct { int low, high; };
	_Alignas(64) long sent;
	long received;
	int table[20];
	unsigned bits : 3, more : 7;
};
struct loose { int x; char gap[60]; int y; };
struct holes { char a; long b; char c; };
typedef struct { int x, y; } xy;

struct call a; struct conn b; struct loose c; xy d; struct holes e;
"""

OBJECT = layout.build("a", SOURCE)
# What the tests of rules are not about.
NO_FAULTS = ["--fault", "straddle", "--accept"]
ACCEPT_CALL = "accept straddle struct call\n"


def check(rules, *arguments):
    """Checks with these rules and nothing else in the way: the result."""
    path = layout.write("rules", ACCEPT_CALL + rules)
    return layout.layout("--check", "--fault", "straddle", "--accept", path, *arguments, OBJECT)


def outcome(rules, status, pattern):
    result = check(rules)
    tap.equal(result.returncode, status, result.stdout + result.stderr)
    tap.matches(pattern, result.stdout + result.stderr)


RULES = [
    # Rule, whether it holds, what is said when not.
    ("struct conn: state and sent on different lines", True, ""),
    ("struct conn: state, sent on different lines", True, ""),
    ("struct conn: state and head on different lines", False,
     "state is at 0, line 0; head is at 8, line 0"),
    ("struct conn: state, sent, and head on different lines", False, "head is at 8"),
    ("struct conn: state and head on the same line", True, ""),
    ("struct conn: state, head and received on one line", False, "received is at 72, line 1"),
    ("struct conn: table on one line", False, "table is at 80, lines 1 to 2"),
    ("struct conn: state within line 0", True, ""),
    ("struct conn: state, sent within line 0", False, "sent is at 64, line 1"),
    ("struct conn: sent and table within lines 1 to 2", True, ""),
    ("struct conn: sent and table within lines 1-2", True, ""),
    ("struct conn: table within line 1", False, "table is at 80, lines 1 to 2"),
    ("struct conn: sent at 64", True, ""),
    ("struct conn: sent at 0x40", True, ""),
    ("struct conn: sent at 56", False, "sent is at 64"),
    ("struct conn: size <= 192", True, ""),
    ("struct conn: size<=192", True, ""),
    ("struct conn: size <= 3 lines", True, ""),
    ("struct conn: size = 192 bytes", True, ""),
    ("struct conn: size == 192", True, ""),
    ("struct conn: size != 192", False, "size is 192"),
    ("struct conn: size < 192", False, "size is 192"),
    ("struct conn: size > 192", False, "size is 192"),
    ("struct conn: size <= 2 lines", False, "size is 192"),
    ("struct conn: lines <= 3", True, ""),
    ("struct conn: lines < 3", False, "lines is 3"),
    ("struct conn: align >= 64", True, ""),
    ("struct loose: align >= 64", False, "align is 4"),
    ("struct holes: no holes", False, "holes is 1, 7 bytes in all"),
    ("struct holes: holes <= 1", True, ""),
    ("struct loose: no holes", True, ""),
    ("struct loose: no padding", True, ""),
    ("struct holes: no padding", False, "padding is 7"),
    ("struct call: fits in one line", True, ""),
    ("struct loose: fits in one line", False, "lines is 2"),
    # Members in others, of what has no name, of arrays; bit-fields.
    ("struct conn: peer.port at 16", True, ""),
    ("struct conn: peer.v6 at 20", True, ""),
    ("struct conn: peer.v6[3] at 23", True, ""),
    ("struct conn: table[19] within line 2", True, ""),
    ("struct conn: high at 40", True, ""),
    ("struct conn: bits and more on one line", True, ""),
    # The type in other words.
    ("conn: sent at 64", True, ""),
    ("class conn : sent at 64", True, ""),
    ("xy: y at 4", True, ""),
    ("xy: y at 0", False, "y is at 4"),
    # Groups.
    ("struct conn: group hot = state, head\n"
     "struct conn: group sums = sent and received\n"
     "struct conn: hot and sums on different lines\n"
     "struct conn: hot within line 0", True, ""),
    ("struct conn: hot within line 1\nstruct conn: group hot = state, head", False,
     "state is at 0, line 0"),
    ("struct conn: group hot = state, received\nstruct conn: hot on one line", False,
     "received is at 72"),
]


def rule(text, holds, said):
    outcome(text, 0 if holds else 1, r"^a?.*holds\. " if holds else said)
    if not holds:
        outcome(text, 1, r"^rules:\d+: broken: |rules:\d+: broken: ")
        outcome(text, 1, "falls short")


for rule_text, rule_holds, rule_said in RULES:
    tap.add("rule: " + rule_text.replace("\n", "; ").replace("#", ""), rule, rule_text, rule_holds,
            rule_said)


@tap.case("a rule is about the lines of --line and --pair")
def other_lines():
    rules = "struct conn: state and sent on different lines\n"
    tap.equal(check(rules).returncode, 0)
    tap.equal(check(rules, "--line", "128").returncode, 1)
    tap.equal(check(rules, "--pair").returncode, 1)


@tap.case("a note where a rule depends on the address")
def condition():
    result = check("struct loose: x within line 0\n")
    tap.equal(result.returncode, 0)
    tap.matches("note: struct loose: x within line 0", result.stdout)
    tap.matches("aligned to 4 bytes only", result.stdout)
    # Not where it does not.
    for text in ("struct conn: state within line 0", "struct loose: size <= 68",
                 "struct loose: x at 0", "struct conn: bits and more on one line"):
        tap.true("note:" not in check(text).stdout, text)


# ---- What cannot be told ----

UNKNOWN = [
    ("struct gone: size <= 64", "no struct gone"),
    ("struct con: size <= 64", "did you mean struct conn"),
    ("struct conn: nothing at 0", "struct conn has no member nothing"),
    ("struct conn: peer.nothing at 0", "no member peer.nothing"),
    ("struct conn: table[20] at 0", r"no member table\[20\]"),
    ("struct conn: group g = state, nothing", "no member nothing"),
    ("struct conn: state.x at 0", "no member state.x"),
]


def unknown(text, said):
    outcome(text, 2, said)
    outcome(text, 2, "cannot tell: |could not tell")
    # It goes before what falls short.
    outcome(text + "\nstruct conn: size < 1", 2, said)


for unknown_text, unknown_said in UNKNOWN:
    tap.add("cannot be told: " + unknown_text, unknown, unknown_text, unknown_said)

MALFORMED = [
    ("nonsense", 'neither "accept FAULT TYPE" nor "TYPE: RULE"'),
    ("struct conn:", "not a rule"),
    (": size <= 1", "no type in front of the colon"),
    ("struct conn: is fast", "not a rule"),
    ("struct conn: size <= much", "not a rule"),
    ("struct conn: size ~ 3", "not a rule"),
    ("struct conn: size =< 3", "not a rule"),
    ("struct conn: speed <= 3", "not a rule"),
    ("struct conn: align >= 2 lines", "not a rule"),
    ("struct conn: state on different lines", "two members or more"),
    ("struct conn: on different lines", "no member|two members"),
    ("struct conn: state head on one line", 'a comma or "and"'),
    ("struct conn: state, on one line", "member"),
    ("struct conn: state within lines 2 to 1", "not a rule"),
    ("struct conn: group hot", "group NAME = MEMBER"),
    ("struct conn: group hot = ", "group NAME = MEMBER"),
    ("accept slowness struct conn", "no fault goes by that name.*slowness"),
    ("accept hole", "accept FAULT TYPE"),
    ("accept", "no fault goes by that name"),
]


def malformed(text, said):
    result = check("\n# a comment\n" + text + "\n")
    tap.equal((result.returncode, result.stdout), (2, ""), result.stderr)
    tap.matches(r"rules:4: .*" + said, result.stderr)


for malformed_text, malformed_said in MALFORMED:
    tap.add("malformed: " + malformed_text, malformed, malformed_text, malformed_said)


@tap.case("files that cannot be read")
def unreadable():
    layout.fails(2, "^hotline layout: .*nothing-there", "--check=nothing-there", OBJECT)
    layout.fails(2, "directory", "--check=.", OBJECT)
    layout.fails(2, "zero bytes", "--check=" + OBJECT, OBJECT)
    rules = layout.write("rules", "")
    layout.fails(2, "nothing-there", "--check=" + rules, "nothing-there")
    layout.fails(2, "no struct gone", "--check=" + rules, OBJECT, "struct gone")
    plain = layout.build("plain", "int main(void) { return 0; }", flags=["-g0"])
    layout.fails(2, "-g", "--check=" + rules, plain)


@tap.case("an output that takes nothing")
def full():
    if not os.path.exists("/dev/full"):
        raise tap.Skip("no /dev/full")
    with open("/dev/full", "wb") as stream:
        result = tap.subprocess.run([layout.HOTLINE, "layout", "--check", OBJECT], stdout=stream,
                                    stderr=tap.subprocess.PIPE, check=False, timeout=60)
    tap.equal(result.returncode, 2)


# ---- Accepted faults ----

@tap.case("faults that are not accepted fall short")
def not_accepted():
    result = layout.layout("--check", "--fault", "straddle", OBJECT)
    tap.equal(result.returncode, 1)
    tap.matches("straddle  struct call", result.stdout)
    tap.matches("falls short. 0 rules, 0 accepted faults, 1 fault not accepted", result.stdout)


ACCEPTED = ["accept straddle struct call", "accept straddle call",
            "  accept\tstraddle   struct call   # known", "accept straddle class call",
            "\ufeff# a mark\naccept straddle struct call",
            "accept straddle struct call\r\n# of another system\r"]


def accepted(text):
    path = layout.write("rules", text + "\n")
    result = layout.layout("--check=" + path, "--fault", "straddle", OBJECT)
    tap.equal(result.returncode, 0, result.stdout + result.stderr)
    tap.matches("holds. 0 rules, 1 accepted fault, 0 faults not accepted", result.stdout)


for number, accepted_text in enumerate(ACCEPTED):
    tap.add(f"an accepted fault, written in way {number + 1}", accepted, accepted_text)


@tap.case("another fault of the type, the same fault of another type are not accepted")
def accepted_only():
    for text in ("accept hole struct call", "accept straddle struct conn",
                 "accept straddle union call"):
        path = layout.write("rules", text + "\n")
        tap.equal(layout.layout("--check=" + path, "--fault", "straddle,hole",
                                OBJECT).returncode, 1, text)


@tap.case("an accepted fault that is no more: reported, with --strict a failure")
def stale():
    text = "accept hole struct loose\naccept hole struct gone  # long ago\n"
    result = check(text, "--fault", "hole")
    tap.equal(result.returncode, 0, result.stdout)
    tap.matches("rules:2: stale: accept hole struct loose\n +the fault is no more", result.stdout)
    tap.matches("rules:3: stale: accept hole struct gone\n +the type is no more", result.stdout)
    tap.equal(check(text, "--fault", "hole", "--strict").returncode, 1)
    tap.equal(check("", "--strict").returncode, 0)
    # What is not looked for is not stale.
    tap.equal(check(text, "--strict").returncode, 0)
    tap.equal(layout.layout("--check=rules", "--strict", "--fault", "hole,straddle", OBJECT,
                            "call").returncode, 0)


@tap.case("with types, only these and their rules")
def some_types():
    path = layout.write("rules", "struct conn: size < 1\nstruct loose: size < 1\n")
    tap.equal(layout.layout("--check=" + path, OBJECT, "xy").returncode, 0)
    result = layout.layout("--check=" + path, OBJECT, "loose", "xy")
    tap.equal(result.returncode, 1)
    tap.true("struct conn" not in result.stdout, result.stdout)


@tap.case("a rule holds for all types of its name")
def same_name():
    one = layout.build("one", "struct twin { int a; } t;")
    two = layout.build("two", "struct twin { long a, b; } u;")
    both = layout.path("twins.o")
    tap.run_ok(["gcc", "-r", "-nostdlib", "-o", both, one, two])
    path = layout.write("rules", "struct twin: size <= 8\n")
    result = layout.layout("--check=" + path, both)
    tap.equal(result.returncode, 1)
    tap.matches(r"two\.c:1", result.stdout)
    path = layout.write("rules", "struct twin: size <= 16\n")
    tap.equal(layout.layout("--check=" + path, both).returncode, 0)


@tap.case("C++ names in rules")
def cxx():
    path = layout.build("cxx", """
        namespace n { template <class T> struct box { T t; }; struct base { int id; };
                      struct derived : base { int own; }; }
        n::box<n::base> a; n::derived b;
        """, compiler="g++", suffix=".cc")
    rules = layout.write("rules", "n::box<n::base>: size <= 4\nstruct n::box: size <= 4\n"
                         "n::derived: id at 0\nn::derived: own at 4\nderived: base at 0\n")
    result = layout.layout("--check=" + rules, path)
    tap.equal(result.returncode, 0, result.stdout + result.stderr)
    tap.matches("holds. 5 rules", result.stdout)


# ---- Writing ----

@tap.case("--write-accept: a project begins with what is there")
def write_accept():
    path = layout.path("accepted")
    result = layout.layout("--write-accept", path, OBJECT)
    tap.equal(result.returncode, 0, result.stderr)
    with open(path, encoding="utf-8") as stream:
        text = stream.read()
    tap.matches("^accept straddle struct call$", text)
    tap.equal(len(re.findall("^accept", text, re.M)), len(set(re.findall("^accept.*", text, re.M))))
    result = layout.layout("--check=" + path, "--strict", OBJECT)
    tap.equal(result.returncode, 0, result.stdout)
    # Another time it does not write over it.
    layout.fails(2, "is there already; add --accept", "--write-accept", path, OBJECT)
    # Unless that is said: then rules and reasons stay, what is stale goes, new faults come.
    with open(path, "w", encoding="utf-8") as stream:
        stream.write("# ours\naccept straddle struct call  # why\naccept hole struct gone\n"
                     "struct conn: size <= 192\n")
    os.chmod(path, 0o640)
    result = layout.layout("--write-accept", path, "--accept", path, OBJECT)
    tap.equal(result.returncode, 0, result.stderr)
    with open(path, encoding="utf-8") as stream:
        again = stream.read()
    tap.true(again.startswith("# ours\naccept straddle struct call  # why\n"
                              "struct conn: size <= 192\n"), again)
    tap.equal(os.stat(path).st_mode & 0o777, 0o640)
    tap.equal(sorted(re.findall("^accept [^#\n]*[^# \n]", again, re.M)),
              sorted(re.findall("^accept .*", text, re.M)))
    tap.equal(layout.layout("--check", "--strict", "--accept", path, OBJECT).returncode, 0)
    tap.equal([f for f in os.listdir(layout.WORK) if f.startswith("accepted")], ["accepted"])


@tap.case("--write-accept where nothing can be written")
def write_fails():
    layout.fails(2, "no-directory/x: No such file", "--write-accept", "no-directory/x", OBJECT)
    if os.path.exists("/dev/full"):
        layout.fails(2, "No space left", "--write-accept", "/dev/full", OBJECT)
    tap.matches("^accept straddle struct call$",
                layout.layout("--write-accept", "/dev/stdout", OBJECT).stdout)


@tap.case("names that mean harm can be accepted")
def harmful():
    path = layout.build("harm", SOURCE.replace("struct call", "struct callcall"))
    with open(path, "rb") as stream:
        data = stream.read()
    with open(path, "wb") as stream:
        stream.write(data.replace(b"callcall", b"\x1b[m\n\xff al"))
    accepted_path = layout.path("harmful")
    tap.equal(layout.layout("--write-accept", accepted_path, path).returncode, 0)
    with open(accepted_path, encoding="utf-8") as stream:
        tap.matches(r"^accept straddle struct \\x1b\[m\\x0a\\xff al$", stream.read())
    tap.equal(layout.layout("--check=" + accepted_path, "--strict", path).returncode, 0)


# ---- For machines ----

@tap.case("JSON of a check")
def as_json():
    result = check("struct conn: size < 1\naccept straddle struct gone\nstruct gone: size < 1\n"
                   "struct loose: x within line 0\n", "--json")
    tap.equal(result.returncode, 2)
    found = json.loads(result.stdout)
    tap.equal(found["faults"], [])
    tap.equal((found["check"]["holds"], found["check"]["accepted_faults"],
               found["check"]["rules"]), (False, 1, 2))
    tap.equal([(f["finding"], f["line"]) for f in found["check"]["findings"]],
              [("broken", 2), ("stale", 3), ("unknown", 4), ("condition", 5)])
    tap.equal(found["check"]["findings"][0]["said"], "size is 192")
    result = layout.layout("--check", "--json", "--fault", "straddle", OBJECT)
    tap.equal(result.returncode, 1)
    found = json.loads(result.stdout)
    tap.equal([f["fault"] for f in found["faults"]], ["straddle"])
    tap.equal((found["check"]["holds"], found["check"]["rules_file"]), (False, None))


@tap.case("SARIF of a check")
def as_sarif():
    result = check("struct conn: size < 1\n", "--format", "sarif")
    tap.equal(result.returncode, 1)
    run, = json.loads(result.stdout)["runs"]
    finding, = run["results"]
    tap.equal((finding["ruleId"], finding["level"]), ("layout-rule", "error"))
    tap.equal(run["tool"]["driver"]["rules"][finding["ruleIndex"]]["id"], "layout-rule")
    place = finding["locations"][0]["physicalLocation"]
    tap.equal(place["region"]["startLine"], 2)
    tap.matches("rules$", place["artifactLocation"]["uri"])


tap.main()
