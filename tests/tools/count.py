#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Counts the tests that `meson test` ran in a build directory.

Usage: count.py BUILD_DIRECTORY

Prints what the tests that failed had to say, then each failure and each skip
with its reason, and as the last line `N passed, N failed`, with `, N skipped`
behind it when some were skipped. Each subtest of a TAP test counts. Exits 1 if
anything failed or if no test passed.

Two logs are read, since neither tells all: testlog.junit.xml has the subtests,
testlog.json has what became of the test program itself. A program that is
killed, leaks or exits non-zero after its last subtest counts as one failure
more, and so does one that ran nothing and did not say why.
"""

import json
import os
import re
import sys
import xml.etree.ElementTree as ElementTree

GOOD = {"OK", "EXPECTEDFAIL"}
# Of the output of a test that failed, the last lines.
OUTPUT_LINES = 200


def subtests_by_name(path):
    """Maps the name of a test to its list of (subtest, outcome, reason)."""
    found = {}
    for suite in ElementTree.parse(path).getroot().iter("testsuite"):
        # Tests without subtests share one suite that bears the project's name
        # alone; a test with subtests has PROJECT.TEST.
        _, dot, name = suite.get("name").partition(".")
        if not dot:
            continue
        cases = found.setdefault(name, [])
        for case in suite.iter("testcase"):
            outcome = "passed"
            if case.find("skipped") is not None:
                outcome = "skipped"
            elif case.find("failure") is not None or case.find("error") is not None:
                outcome = "failed"
            reason = (case.findtext("system-out") or "").strip()
            cases.append((case.get("name"), outcome, reason))
    return found


def skip_reason(record):
    """Why a whole test was skipped; None if it did not say so."""
    plan = re.search(r"^1\.\.0\s*#\s*skip\w*:?\s*(.*)$", record.get("stdout") or "", re.I | re.M)
    if plan:
        return plan.group(1)
    if record["returncode"] == 77:
        lines = ((record.get("stdout") or "") + (record.get("stderr") or "")).strip().splitlines()
        return lines[-1] if lines else "exit status 77"
    return None


def skips_of_cmocka(record):
    """The numbers of the subtests that cmocka says it skipped: it calls them not ok."""
    return set(re.findall(r"^not ok (\d+) # SKIP", record.get("stdout") or "", re.M))


def judge(record, cases):
    """Yields (test, outcome, reason) for the subtests of a test, or for itself."""
    name, result = record["name"], record["result"]
    skips = skips_of_cmocka(record)
    cases = [(case, "skipped" if outcome == "failed" and case.split()[0] in skips else outcome,
              reason) for case, outcome, reason in cases]
    for case, outcome, reason in cases:
        yield f"{name}: {case}", outcome, reason
    if skips and record["returncode"] == 0:
        return
    if result == "SKIP" and not cases:
        reason = skip_reason(record)
        if reason is None:
            yield name, "failed", "ran no test and gave no reason"
        else:
            yield name, "skipped", reason
    elif result in GOOD and not cases:
        yield name, "passed", ""
    elif result not in GOOD | {"SKIP"} and not any(c[1] == "failed" for c in cases):
        yield name, "failed", f"{result}, exit status {record['returncode']}"


def print_output(record):
    """Prints what a test wrote, without its subtests that passed."""
    print(f"---- output of {record['name']}")
    text = (record.get("stdout") or "") + (record.get("stderr") or "")
    lines = [line for line in text.splitlines() if not re.match(r"ok\b", line)]
    print("\n".join(lines[-OUTPUT_LINES:]))
    print("----")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    logs = os.path.join(sys.argv[1], "meson-logs")
    count = {"passed": 0, "failed": 0, "skipped": 0}
    remarks = []
    try:
        subtests = subtests_by_name(os.path.join(logs, "testlog.junit.xml"))
        with open(os.path.join(logs, "testlog.json"), encoding="utf-8") as stream:
            for record in map(json.loads, stream):
                failed_before = count["failed"]
                for test, outcome, reason in judge(record, subtests.get(record["name"], [])):
                    count[outcome] += 1
                    if outcome != "passed":
                        remarks.append(f"{outcome}: {test}" + (f" ({reason})" if reason else ""))
                if count["failed"] > failed_before:
                    print_output(record)
    except (OSError, ValueError, ElementTree.ParseError) as error:
        count["failed"] += 1
        remarks.append(f"failed: no log of a test run in {sys.argv[1]} ({error})")
    for remark in remarks:
        print(remark)
    skipped = f", {count['skipped']} skipped" if count["skipped"] else ""
    print(f"{count['passed']} passed, {count['failed']} failed{skipped}")
    sys.exit(0 if count["passed"] and not count["failed"] else 1)


if __name__ == "__main__":
    main()
