# SPDX-License-Identifier: MIT
"""The compilers that contract tests try: what is missing is skipped with the reason."""

import functools
import os
import platform
import shutil
import tempfile

import tap

C = "c"
CXX = "c++"
STANDARD = {C: "-std=c11", CXX: "-std=c++17"}
SUFFIX = {C: ".c", CXX: ".cc"}

# Name, language.
NATIVE = [("gcc", C), ("g++", CXX), ("clang", C), ("clang++", CXX)]


class Compiler:
    """A compiler for one language and one word size."""

    def __init__(self, name, language, flags=()):
        self.name = " ".join([name, *flags])
        self.command = [name, *flags]
        self.language = language
        self.standard = STANDARD[language]

    def require(self):
        """Skips the case if this compiler cannot build a program here."""
        reason = self._missing()
        if reason:
            raise tap.Skip(reason)

    @functools.lru_cache(maxsize=None)
    def _missing(self):
        if not shutil.which(self.command[0]):
            return f"no {self.command[0]}"
        header = "<stdio.h>" if self.language == C else "<memory>"
        with tempfile.TemporaryDirectory() as directory:
            source = os.path.join(directory, "probe" + SUFFIX[self.language])
            with open(source, "w", encoding="utf-8") as stream:
                stream.write(f"#include {header}\nint main(void) {{ return 0; }}\n")
            result = tap.run([*self.command, source, "-o", os.path.join(directory, "probe")])
        if result.returncode != 0:
            return f"{self.name} builds no program: install what setup/ lists for check"
        return None


def native():
    return [Compiler(name, language) for name, language in NATIVE]


def all_words():
    """The native word size, and on x86-64 also 32 bits."""
    compilers = native()
    if platform.machine() == "x86_64":
        compilers += [Compiler(name, language, ["-m32"]) for name, language in NATIVE]
    return compilers
