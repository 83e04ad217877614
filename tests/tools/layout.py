# SPDX-License-Identifier: MIT
"""What the tests of `hotline layout` have in common: small programs, and the command."""

import os
import pty
import select
import subprocess
import tempfile
import termios

import fcntl
import struct
import tap

HOTLINE = os.path.join(os.environ["HOTLINE_BUILD"], "tools/hotline/hotline")
SANITIZED = "ASAN_OPTIONS" in os.environ

_directory = tempfile.TemporaryDirectory(prefix="hotline-layout-")
WORK = _directory.name


def path(name):
    return os.path.join(WORK, name)


def write(name, text):
    """A file of that name in the test's own directory; its path."""
    with open(path(name), "w", encoding="utf-8") as stream:
        stream.write(text)
    return path(name)


def build(name, source, compiler="gcc", flags=(), suffix=".c"):
    """Compiles the source to the object NAME.o, which is returned."""
    write(name + suffix, source)
    tap.run_ok([compiler, "-g", *flags, "-c", name + suffix, "-o", name + ".o"], cwd=WORK)
    return path(name + ".o")


def environment(**more):
    """The environment without what changes the output, and with more."""
    env = {k: v for k, v in os.environ.items()
           if k not in ("NO_COLOR", "PAGER", "HOTLINE_PAGER", "LESS", "COLUMNS")}
    env.update(more)
    return env


def layout(*arguments, **options):
    """Runs `hotline layout` in the test's directory."""
    options.setdefault("env", environment())
    return tap.run([HOTLINE, "layout", *map(str, arguments)], cwd=WORK, **options)


def layout_ok(*arguments, **options):
    result = layout(*arguments, **options)
    tap.equal((result.returncode, result.stderr), (0, ""), result.stdout)
    return result.stdout


def fails(status, message, *arguments, **options):
    """Runs it, wants that exit status and a message that matches; what it printed."""
    result = layout(*arguments, **options)
    tap.equal(result.returncode, status, result.stdout + result.stderr)
    tap.matches(message, result.stderr)
    return result.stdout


def terminal(*arguments, rows=50, columns=100, keys=b"", **more):
    """Runs it on a terminal: exit status, and all that the terminal was sent."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    env = environment(TERM="xterm", **more)
    with subprocess.Popen([HOTLINE, "layout", *map(str, arguments)], cwd=WORK, env=env,
                          stdin=slave, stdout=slave, stderr=slave,
                          start_new_session=True) as process:
        os.close(slave)
        output = b""
        while True:
            ready, _, _ = select.select([master], [], [], 60)
            if not ready:
                process.kill()
                raise AssertionError(f"no end after {output!r}")
            try:
                data = os.read(master, 65536)
            except OSError:
                break       # the other end is closed
            if not data:
                break
            output += data
            if keys:
                os.write(master, keys)
                keys = b""
        status = process.wait(60)
    os.close(master)
    return status, output.decode("utf-8").replace("\r\n", "\n")
