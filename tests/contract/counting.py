#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The count of tests: tests/tools/count.py on real runs of `meson test`, whose logs
it reads, over tests that do everything a test can do."""

import os
import tempfile

import tap

SOURCE = os.environ["HOTLINE_SOURCE"]
COUNT = os.path.join(SOURCE, "tests/tools/count.py")

# Name of a test, protocol, its script.
TESTS = {
    "passes": ("tap", "echo 1..2; echo ok 1 - a; echo ok 2 - b"),
    "fails-one": ("tap", "echo 1..2; echo ok 1 - a; echo '# because'; echo not ok 2 - b; exit 1"),
    "skips-one": ("tap", "echo 1..2; echo ok 1 - a; echo 'ok 2 - b # SKIP no such machine'"),
    "skips-all": ("tap", "echo '1..0 # SKIP nothing to try'"),
    "says-nothing": ("tap", "exit 0"),
    "dies-late": ("tap", "echo 1..1; echo ok 1 - a; echo leak >&2; exit 23"),
    "stops-early": ("tap", "echo 1..3; echo ok 1 - a"),
    "plain-good": ("exitcode", "exit 0"),
    "plain-bad": ("exitcode", "echo what went wrong; exit 3"),
    "plain-skip": ("exitcode", "echo no root; exit 77"),
    "plain-hangs": ("exitcode", "exec sleep 60"),
}


class Project:
    """A Meson project with all of them, configured once."""

    def __init__(self):
        # Removed when the program ends.
        self.directory = tempfile.TemporaryDirectory()
        self.build = os.path.join(self.directory.name, "build")
        with open(os.path.join(self.directory.name, "meson.build"), "w",
                  encoding="utf-8") as stream:
            stream.write("project('hotline')\nsh = find_program('sh')\n")
            for name, (protocol, script) in TESTS.items():
                script = script.replace("'", "\\'")
                stream.write(f"test('{name}', sh, args: ['-c', '{script}'], suite: 'a',"
                             f" protocol: '{protocol}', timeout: 1)\n")
        tap.run_ok(["meson", "setup", self.build, self.directory.name])

    def count(self, names):
        """Runs the tests of these names and counts them."""
        tap.run(["meson", "test", "-C", self.build, *names])
        return tap.run([COUNT, self.build])


project = Project()


def counts(last_line, status, names, *remarks):
    result = project.count(names)
    tap.equal(result.stdout.splitlines()[-1], last_line, result.stdout)
    tap.equal(result.returncode, status)
    for remark in remarks:
        tap.matches(remark, result.stdout)


tap.add("each subtest that passes", counts, "2 passed, 0 failed", 0, ["passes"])
tap.add("a subtest that fails, with what the test wrote", counts, "1 passed, 1 failed", 1,
        ["fails-one"], r"^# because$", r"^failed: fails-one: 2 - b$")
tap.add("a subtest that is skipped, with the reason", counts, "1 passed, 0 failed, 1 skipped", 0,
        ["skips-one"], r"^skipped: skips-one: 2 - b \(no such machine\)$")
tap.add("a test that skips itself whole", counts, "2 passed, 0 failed, 1 skipped", 0,
        ["passes", "skips-all"], r"^skipped: skips-all \(nothing to try\)$")
tap.add("nothing but skips is a failure", counts, "0 passed, 0 failed, 1 skipped", 1,
        ["skips-all"])
tap.add("a test that prints nothing has failed", counts, "2 passed, 1 failed", 1,
        ["passes", "says-nothing"], r"^failed: says-nothing \(ran no test and gave no reason\)$")
tap.add("a program that dies after its last subtest", counts, "1 passed, 1 failed", 1,
        ["dies-late"], r"^leak$", r"^failed: dies-late \(ERROR, exit status 23\)$")
tap.add("a program that stops before its plan is done", counts, "1 passed, 1 failed", 1,
        ["stops-early"], r"^failed: stops-early \(ERROR")
tap.add("a test without subtests", counts, "1 passed, 0 failed", 0, ["plain-good"])
tap.add("a test without subtests that fails", counts, "1 passed, 1 failed", 1,
        ["plain-good", "plain-bad"], r"^what went wrong$",
        r"^failed: plain-bad \(FAIL, exit status 3\)$")
tap.add("a test without subtests that is skipped", counts, "1 passed, 0 failed, 1 skipped", 0,
        ["plain-good", "plain-skip"], r"^skipped: plain-skip \(no root\)$")
tap.add("a test that takes too long", counts, "1 passed, 1 failed", 1,
        ["plain-good", "plain-hangs"], r"^failed: plain-hangs \(TIMEOUT")


@tap.case("no log is a failure")
def no_log():
    with tempfile.TemporaryDirectory() as directory:
        result = tap.run([COUNT, directory])
        tap.equal(result.returncode, 1)
        tap.equal(result.stdout.splitlines()[-1], "0 passed, 1 failed")


tap.main()
