#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reading pages at random, the file in memory: the page cache beside vmcache.

vmcache (Leis and others, SIGMOD 2023) is not a library and in no distribution: it is built beside
the project by who wants to compare, and named on the command line. Its own benchmark RNDREAD is
run as it is, with the smallest memory that it can be given, 1 GiB, and tuples of four times that;
what counts are the seconds in which it no longer writes what it made at its start.
Each of its lookups goes through a B-tree whose inner pages are in memory, and reads one leaf; what
that costs with all in memory is measured too (--resident), and taken off in a column of its own.

Ours reads pages of the same file at random within the same memory, one by one and 32 at once. All
take turns.

    tests/compare/vmcache.py PATH/TO/vmcache [--build build] [--directory /dev/shm] [--runs 3]
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
GIB = 1 << 30
PAGE = 4096
# vmcache begins to evict when so much of its memory is in use.
SHARE = 0.95


def run_vmcache(arguments, file, threads, gigabytes):
    """Lookups a second, pages read a second, pages of the file."""
    environment = dict(os.environ, BLOCK=file, VIRTGB="8", PHYSGB=str(gigabytes), RNDREAD="1",
                       RUNFOR=str(arguments.warm + arguments.seconds), THREADS=str(threads),
                       DATASIZE=str(arguments.tuples))
    done = subprocess.run([arguments.vmcache], env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{arguments.vmcache}: {done.stderr}")
    space = float(re.search(r"space: ([0-9.e+]+) GB", done.stderr).group(1))
    rows = [line.split(",") for line in done.stdout.splitlines()[2:]]
    rows = [row for row in rows if float(row[3]) == 0]
    if not rows:
        sys.exit("vmcache still wrote what it made at its start: try --warm with more seconds")
    lookups = statistics.median(float(row[1]) for row in rows)
    reads = statistics.median(float(row[2]) for row in rows) * (1 << 20) / PAGE
    return lookups, reads, int(space * GIB / PAGE)


def run_ours(arguments, program, file, pages, threads, at_once):
    done = subprocess.run([program, file, str(pages), str(int(SHARE * GIB)), str(threads),
                           str(at_once), str(arguments.seconds)],
                          capture_output=True, text=True, check=True)
    return tuple(float(word) for word in done.stdout.split())


def build(arguments, directory):
    program = os.path.join(directory, "ours")
    library = os.path.abspath(arguments.build)
    subprocess.run([os.environ.get("CC", "cc"), "-O2", "-std=gnu11", "-I",
                    os.path.join(HERE, "../../include"), os.path.join(HERE, "vmcache.c"),
                    "-o", program, "-L", library, "-lhotline", "-pthread",
                    f"-Wl,-rpath,{library}"], check=True)
    return program


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("vmcache")
    parser.add_argument("--build", default="build")
    parser.add_argument("--directory", default="/dev/shm", help="with 5 GiB of room, in memory")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--warm", type=int, default=25, help="seconds for vmcache to stop writing")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tuples", type=int, default=29_000_000)
    parser.add_argument("--resident", action="store_true")
    arguments = parser.parse_args()
    figures = {"vmcache": [], "hotline one by one": [], "hotline 32 at once": []}
    tree = 0.0
    with tempfile.TemporaryDirectory() as directory, \
            tempfile.NamedTemporaryFile(dir=arguments.directory, prefix="vmcache-") as file:
        os.truncate(file.name, 8 * GIB)
        program = build(arguments, directory)
        for _ in range(arguments.runs):
            *vmcache, pages = run_vmcache(arguments, file.name, arguments.threads, 1)
            figures["vmcache"].append(vmcache)
            for name, at_once in ("hotline one by one", 1), ("hotline 32 at once", 32):
                figures[name].append(run_ours(arguments, program, file.name, pages,
                                              arguments.threads, at_once))
        if arguments.resident:
            lookups, _, _ = run_vmcache(arguments, file.name, arguments.threads, 7)
            tree = arguments.threads / lookups
    print(f"{arguments.threads} threads, {pages} pages of {PAGE} bytes, memory for "
          f"{int(SHARE * GIB / PAGE)}, {arguments.runs} runs in turn, medians")
    if tree:
        print(f"a lookup of vmcache with all in memory: {tree * 1e9:.0f} ns")
    print(f"{'':20}{'pages/s':>12}{'read/s':>12}{'ours/theirs':>13}{'less the tree':>15}")
    for name, runs in figures.items():
        pages_s = statistics.median(run[0] for run in runs)
        ratios = [run[0] / other[0] for run, other in zip(runs, figures["vmcache"])]
        without = [run[0] / (arguments.threads / (arguments.threads / other[0] - tree))
                   for run, other in zip(runs, figures["vmcache"])]
        print(f"{name:20}{pages_s:12.0f}{statistics.median(run[1] for run in runs):12.0f}"
              f"{statistics.median(ratios):13.2f}{statistics.median(without):15.2f}")


if __name__ == "__main__":
    main()
