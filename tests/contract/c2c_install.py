#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`hotline cc` and `hotline c2c` from an installed copy, and the flags of pkg-config without them."""

import json
import os
import re
import shutil
import tempfile

import installed
import tap

PROGRAM = """
#include <pthread.h>
_Alignas(64) volatile long used[8];
static pthread_barrier_t meet;
static void *run(void *arg)
{
    for (int i = 0; i < 200; i++) {
        pthread_barrier_wait(&meet);
        used[(long)arg] = i;
    }
    return 0;
}
int main(void)
{
    pthread_t t[2];
    pthread_barrier_init(&meet, 0, 2);
    for (long i = 0; i < 2; i++) pthread_create(&t[i], 0, run, (void *)i);
    for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
    return 0;
}
"""


def finds(copy, program, **more):
    hotline = os.path.join(copy.bin, "hotline")
    result = tap.run([hotline, "c2c", "--json", program], cwd=copy.work, env={**os.environ, **more})
    tap.equal((result.returncode, result.stderr), (0, ""))
    found = json.loads(result.stdout)["processes"][0]["findings"]
    tap.equal([(f["object"]["name"], f["sharing"]) for f in found], [("used", "false")])


def by_wrapper(copy, compiler):
    if not shutil.which(compiler):
        raise tap.Skip(f"no {compiler}")
    tap.run_ok([os.path.join(copy.bin, "hotline"), "cc", compiler, "-o", compiler, "program.c", "-pthread"],
               cwd=copy.work)
    finds(copy, os.path.join(copy.work, compiler))


def by_pkg_config(copy):
    libraries = os.path.dirname(copy.library)
    # Some versions of pkg-config put the root in front of it, as of -I and -L, and some do not.
    flags = [re.sub(f"^-specs=(?!{re.escape(copy.root)})", f"-specs={copy.root}", flag)
             for flag in copy.pkg_config("--cflags", package="hotline-c2c")]
    tap.run_ok(["gcc", *flags, "-c", "program.c"], cwd=copy.work)
    tap.run_ok(["gcc", "program.o", "-o", "by_flags", *copy.pkg_config("--libs", package="hotline-c2c")],
               cwd=copy.work)
    finds(copy, os.path.join(copy.work, "by_flags"), LD_LIBRARY_PATH=libraries)


def clang_by_pkg_config(copy):
    if not shutil.which("clang"):
        raise tap.Skip("no clang")
    flags = [word for name in ("clang_cflags", "clang_libs")
             for word in copy.pkg_config(f"--variable={name}", package="hotline-c2c")]
    tap.equal(flags, ["-g", "-fsanitize=thread", "-fno-sanitize-link-runtime"])
    tap.run_ok(["clang", *flags, "program.c", "-o", "by_clang",
                *copy.pkg_config("--libs", package="hotline-c2c")], cwd=copy.work)
    finds(copy, os.path.join(copy.work, "by_clang"), LD_LIBRARY_PATH=os.path.dirname(copy.library))


def exports_only_what_it_must(copy):
    """No name of ours, and nothing with a version, which other libraries would not find."""
    symbols = tap.run_ok(["nm", "-D", "--defined-only", copy.find("libhotline-c2c.so")]).stdout
    names = [line.split()[-1] for line in symbols.splitlines()]
    tap.true("__tsan_read8" in names and "malloc" in names, "hooks are missing")
    tap.equal([name for name in names if "@" in name or name.startswith("hl_")], [])


def main():
    root = tempfile.mkdtemp(prefix="hotline-install-")
    try:
        copy = installed.Copy(root)
        copy.bin = os.path.dirname([path for path in
                                    (os.path.join(d, "hotline") for d, _, f in os.walk(root) if "hotline" in f)
                                    if os.access(path, os.X_OK)][0])
        copy.work = os.path.join(root, "work")
        os.mkdir(copy.work)
        with open(os.path.join(copy.work, "program.c"), "w", encoding="utf-8") as stream:
            stream.write(PROGRAM)
        tap.add("hotline cc gcc", by_wrapper, copy, "gcc")
        tap.add("hotline cc clang", by_wrapper, copy, "clang")
        tap.add("gcc with the flags of pkg-config", by_pkg_config, copy)
        tap.add("clang with the flags of pkg-config", clang_by_pkg_config, copy)
        tap.add("the runtime exports only what it must", exports_only_what_it_must, copy)
        tap.main()
    finally:
        shutil.rmtree(root)


main()
