# SPDX-License-Identifier: MIT
"""A test in Python that prints TAP.

    import tap

    @tap.case("prints its version")
    def version():
        result = tap.run(["hotline", "--version"])
        tap.equal(result.returncode, 0)
        tap.matches(r"^hotline \\d", result.stdout)

    tap.main()

A case fails by an exception, and is skipped by raising tap.Skip with the reason.
tap.add(name, function, arguments...) adds one more, for tables of cases.
"""

import difflib
import re
import subprocess
import sys
import traceback

_cases = []


class Skip(Exception):
    """Raised by a case that cannot be run here; says why."""


def add(name, function, *arguments):
    _cases.append((name, function, arguments))


def case(name):
    def decorate(function):
        add(name, function)
        return function

    return decorate


def run(command, timeout=60, **options):
    """Runs a command to its end, with its output as text. Too long is a failure."""
    return subprocess.run(command, timeout=timeout, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, **options)


def run_ok(command, timeout=60, **options):
    """The same for a command that must succeed: fails with what it printed."""
    result = run(command, timeout, **options)
    if result.returncode != 0:
        raise AssertionError(f"exit status {result.returncode} of {' '.join(map(str, command))}\n"
                             + result.stdout + result.stderr)
    return result


def true(condition, message):
    if not condition:
        raise AssertionError(message)


def equal(actual, expected, message=""):
    if actual == expected:
        return
    if isinstance(actual, str) and isinstance(expected, str):
        difference = difflib.unified_diff(expected.splitlines(), actual.splitlines(),
                                          "expected", "actual", lineterm="")
        raise AssertionError(message + "\n" + "\n".join(difference))
    raise AssertionError(f"{message}\nexpected: {expected!r}\nactual:   {actual!r}")


def matches(pattern, text, message=""):
    """The text has a part that matches; ^ and $ are the ends of a line."""
    if not re.search(pattern, text, re.M):
        raise AssertionError(f"{message}\nnothing matches {pattern!r} in\n{text}")


def _comment(text):
    for line in text.strip().splitlines():
        print("# " + line)


def main():
    """Runs the cases in order and exits, with 1 if one failed."""
    failed = False
    print(f"1..{len(_cases)}", flush=True)
    for number, (name, function, arguments) in enumerate(_cases, 1):
        try:
            function(*arguments)
            print(f"ok {number} - {name}", flush=True)
        except Skip as skip:
            print(f"ok {number} - {name} # SKIP {skip}", flush=True)
        except Exception:  # Whatever it is, the other cases still run.
            failed = True
            print(f"not ok {number} - {name}")
            _comment(traceback.format_exc())
            sys.stdout.flush()
    sys.exit(1 if failed else 0)
