# SPDX-License-Identifier: MIT
"""A copy of Hotline that `meson install` made, for tests that use it as others would."""

import glob
import os

import tap

BUILD = os.environ["HOTLINE_BUILD"]


class Copy:
    """What `meson install` put below a directory of its own."""

    def __init__(self, root):
        self.root = root
        tap.run_ok(["meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", root])
        self.pkgconfig = os.path.dirname(self.find("hotline.pc"))
        self.library = self.find("libhotline.so")
        self.archive = self.find("libhotline.a")
        self.include = os.path.dirname(os.path.dirname(self.find("cacheline.h")))

    def find(self, name):
        found = glob.glob(os.path.join(self.root, "**", name), recursive=True)
        tap.equal(len(found), 1, f"copies of {name}")
        return found[0]

    def pkg_config(self, *options, package="hotline"):
        # The copy comes first; what it requires is the system's.
        environment = dict(os.environ, PKG_CONFIG_SYSROOT_DIR=self.root,
                           PKG_CONFIG_PATH=self.pkgconfig, PKG_CONFIG_ALLOW_SYSTEM_CFLAGS="1",
                           PKG_CONFIG_ALLOW_SYSTEM_LIBS="1")
        return tap.run_ok(["pkg-config", *options, package], env=environment).stdout.split()


def read(path):
    with open(path, encoding="utf-8") as stream:
        return stream.read()
