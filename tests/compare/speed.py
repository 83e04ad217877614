#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures `hotline layout` against pahole: time and memory for all types of a file.

Both print all types, pahole those that it prints by itself, Hotline with their faults;
nobody reads it. They run in turn, A B A B; the ratios are those of the pairs. Time
is that from start to end (wall) and that of the processors (CPU), memory the peak of
the resident set. Quoted is the median with the range. Where other work keeps the
processors busy, the CPU time is what to look at.

Exit status: 0 when Hotline takes at most half of pahole's time (wall) and at most half
of its memory, on each file; 1 when not, 2 when one of them fails."""

import argparse
import os
import shutil
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TARGET = 2      # times as fast, and times as small


# Runs a command without output and prints seconds, seconds of processor time, KiB at
# the peak, and the exit status. A process counts the memory of what it was forked
# from, so that has to be small: an interpreter with as little as possible in it.
RUNNER = """
import posix, sys, time
null = posix.open('/dev/null', posix.O_RDWR)
begin = time.monotonic()
child = posix.fork()
if not child:
    for stream in 0, 1, 2:
        posix.dup2(null, stream)
    posix.execv(sys.argv[1], sys.argv[1:])
_, status, usage = posix.wait4(child, 0)
print(time.monotonic() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss, status)
"""


def run(command):
    """Seconds from start to end, seconds of processor time, and MiB at the peak."""
    result = subprocess.run([sys.executable, "-I", "-S", "-c", RUNNER, *command],
                            stdout=subprocess.PIPE, text=True, check=True)
    wall, processor, peak, status = map(float, result.stdout.split())
    if status:
        print(f"speed.py: {' '.join(command)}: wait status {status:.0f}", file=sys.stderr)
        sys.exit(2)
    return wall, processor, peak / 1024


def spread(values, digits):
    return (f"{statistics.median(values):.{digits}f} "
            f"({min(values):.{digits}f}-{max(values):.{digits}f})")


def measure(hotline, path, runs):
    """Prints the rows of a file; whether the targets are met."""
    ours = [os.path.abspath(hotline), "layout", "--all", path]
    theirs = [shutil.which("pahole"), path]
    for command in (ours, theirs):
        run(command)        # so that both find the file in memory
    pairs = [(run(ours), run(theirs)) for _ in range(runs)]
    met = True
    for number, (what, digits) in enumerate((("wall s", 3), ("CPU s", 3), ("peak MiB", 1))):
        mine = [pair[0][number] for pair in pairs]
        yours = [pair[1][number] for pair in pairs]
        ratios = [b / max(a, 1e-9) for a, b in zip(mine, yours)]
        short = what != "CPU s" and statistics.median(ratios) < TARGET
        met = met and not short
        print("{:30} {:9} {:>22} {:>22} {:>18}{}".format(
            path[-30:], what, spread(mine, digits), spread(yours, digits),
            spread(ratios, 2), "  short of the target" if short else ""), flush=True)
    return met


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hotline", default=os.path.join(ROOT, "build", "hotline"),
                        help="the command (build/hotline)")
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="pairs of runs (5)")
    parser.add_argument("files", nargs="+", metavar="FILE", help="with DWARF, or raw BTF")
    arguments = parser.parse_args()
    if not shutil.which("pahole"):
        print("speed.py: needs pahole", file=sys.stderr)
        sys.exit(2)
    print("{:30} {:9} {:>22} {:>22} {:>18}".format(
        "file", "", "hotline", "pahole", "pahole / hotline"))
    met = [measure(arguments.hotline, path, arguments.runs) for path in arguments.files]
    sys.exit(0 if all(met) else 1)


if __name__ == "__main__":
    main()
