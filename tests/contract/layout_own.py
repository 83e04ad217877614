#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The library's own types have no fault but those that src/hotline.layout accepts, with reasons."""

import glob
import os

import tap

SOURCE = os.environ["HOTLINE_SOURCE"]
BUILD = os.environ["HOTLINE_BUILD"]
HOTLINE = os.path.join(BUILD, "tools/hotline/hotline")


@tap.case("libhotline passes hotline layout --check")
def passes():
    libraries = [path for path in glob.glob(os.path.join(BUILD, "libhotline.so.*"))
                 if os.path.isfile(path) and not os.path.islink(path)]
    tap.equal(len(libraries), 1, "libraries")
    result = tap.run([HOTLINE, "layout", "--check=" + os.path.join(SOURCE, "src/hotline.layout"),
                      libraries[0]])
    tap.equal(result.returncode, 0, result.stdout + result.stderr)


tap.main()
