#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""setup/install: with package managers that are scripts of this test, since a test
changes nothing on the machine that it runs on."""

import os
import re
import tempfile

import tap

SOURCE = os.environ["HOTLINE_SOURCE"]
INSTALL = os.path.join(SOURCE, "setup/install")

DEBIAN = "ID=debian\nVERSION_ID=12\n"
FEDORA = "ID=fedora\nVERSION_ID=40\n"

# $INSTALLED holds the packages that are there, one a line. Each command that
# would change something is appended to $CALLS.
STUBS = {
    "id": 'echo "$FAKE_UID"',
    "uname": "echo x86_64",
    "dpkg": 'echo "$FAKE_ARCH"',
    "dpkg-query": """
		for p in "$@"; do
			grep -qxF -e "$p" "$INSTALLED" && echo "$p installed"
			[ "$p" != half-there ] || echo "$p config-files"
		done""",
    "rpm": """
		shift
		status=0
		for p in "$@"; do
			if grep -qxF -e "$p" "$INSTALLED"; then
				echo "$p-1.0-1"
			else
				echo "package $p is not installed"
				status=1
			fi
		done
		exit $status""",
    "apt-get": 'echo "apt-get $*" >>"$CALLS"; echo noise; exit ${FAKE_STATUS:-0}',
    "dnf": 'echo "dnf $*" >>"$CALLS"; echo noise; exit ${FAKE_STATUS:-0}',
    "sudo": 'echo "sudo $*" >>"$CALLS"',
}


def packages(distribution, groups, arch):
    """The packages of the groups as a plain reading of the list gives them."""
    names = []
    with open(os.path.join(SOURCE, "setup", distribution + ".txt"), encoding="utf-8") as stream:
        for line in stream:
            fields = line.split()
            if fields and not line.startswith("#"):
                if fields[0] in groups or fields[0] in [f"{g}/{arch}" for g in groups]:
                    names.append(fields[1])
    return names


def install(release, installed, *groups, uid=0, status=0, arch="amd64"):
    """Runs setup/install and returns its result with what it called."""
    with tempfile.TemporaryDirectory() as directory:
        def path(name, text, mode=0o644):
            name = os.path.join(directory, name)
            with open(name, "w", encoding="utf-8") as stream:
                stream.write(text)
            os.chmod(name, mode)
            return name

        for command, body in STUBS.items():
            path(command, "#!/bin/sh\n" + body + "\n", 0o755)
        environment = {
            "PATH": directory + ":/usr/bin:/bin",
            "OS_RELEASE": path("os-release", release),
            "INSTALLED": path("installed", "\n".join(installed) + "\n"),
            "CALLS": path("calls", ""),
            "FAKE_ARCH": arch,
            "FAKE_UID": str(uid),
            "FAKE_STATUS": str(status),
        }
        result = tap.run([INSTALL, *groups], env=environment)
        with open(environment["CALLS"], encoding="utf-8") as stream:
            result.calls = stream.read().splitlines()
        return result


def expect(result, status, calls):
    tap.equal(result.returncode, status, result.stdout + result.stderr)
    tap.equal(result.calls, calls)


@tap.case("says and does nothing when nothing is missing")
def nothing_missing():
    everything = packages("debian", ["build", "check", "bench", "demo"], "amd64")
    tap.true(len(everything) > 20, "the list is read")
    result = install(DEBIAN, everything)
    expect(result, 0, [])
    tap.equal(result.stdout + result.stderr, "")


@tap.case("Debian, root: updates the lists, then installs what is missing and no more")
def debian_root():
    wanted = packages("debian", ["build"], "amd64")
    result = install(DEBIAN, [p for p in wanted if p not in ("meson", "scdoc")], "build")
    expect(result, 0, ["apt-get -o Acquire::Retries=3 update",
                       "apt-get install -y --no-install-recommends meson scdoc"])
    tap.equal(result.stdout, "setup: installing meson scdoc\n")


@tap.case("Debian, anyone else: prints the command, with and without sudo, and fails")
def debian_user():
    wanted = packages("debian", ["build"], "amd64")
    result = install(DEBIAN, [p for p in wanted if p != "meson"], "build", uid=1000)
    expect(result, 1, [])
    command = "apt-get install -y --no-install-recommends meson"
    tap.matches(f"^ +{command}$", result.stdout)
    tap.matches(f"^ +sudo {command}$", result.stdout)


@tap.case("a package is only installed if dpkg says so")
def removed_package():
    result = install(DEBIAN, ["half-there"], "build", uid=1000)
    expect(result, 1, [])
    for package in packages("debian", ["build"], "amd64"):
        tap.true(f" {package}" in result.stdout, package)


@tap.case("a failed installation shows what the package manager said, and fails")
def install_fails():
    result = install(DEBIAN, [], "build", status=100)
    expect(result, 1, ["apt-get -o Acquire::Retries=3 update"])
    tap.matches("^noise$", result.stderr)
    tap.matches("could not install: gcc ", result.stderr)


@tap.case("groups are what is asked for, all of them by default")
def groups():
    result = install(DEBIAN, packages("debian", ["build"], "amd64"), "build", "check")
    check = packages("debian", ["check"], "amd64")
    tap.equal(result.calls[1].split()[4:], check)
    tap.equal(install(DEBIAN, packages("debian", ["build"], "amd64")).calls[1].split()[4:],
              check + packages("debian", ["bench", "demo"], "amd64"))


@tap.case("packages of another architecture are not asked for")
def architecture():
    tap.true("gcc-multilib" in packages("debian", ["check"], "amd64"), "listed for amd64")
    on_arm64 = packages("debian", ["build", "check", "bench", "demo"], "arm64")
    tap.true("gcc-multilib" not in on_arm64, "listed for arm64")
    expect(install(DEBIAN, on_arm64, arch="arm64"), 0, [])


@tap.case("an unknown group is refused")
def unknown_group():
    result = install(DEBIAN, [], "everything")
    expect(result, 1, [])
    tap.matches("no such group: everything", result.stderr)


@tap.case("Fedora, root")
def fedora_root():
    wanted = packages("fedora", ["build", "check"], "x86_64")
    missing = [p for p in wanted if p in ("cjson-devel", "glibc-devel.i686")]
    result = install(FEDORA, [p for p in wanted if p not in missing], "build", "check")
    expect(result, 0, ["dnf install -y " + " ".join(missing)])


@tap.case("Fedora, nothing missing")
def fedora_nothing_missing():
    result = install(FEDORA, packages("fedora", ["build", "check", "bench", "demo"], "x86_64"))
    expect(result, 0, [])
    tap.equal(result.stdout + result.stderr, "")


@tap.case("a derivative uses the list of the distribution that it is like")
def derivative():
    everything = packages("ubuntu", ["build", "check", "bench", "demo"], "amd64")
    expect(install('ID=linuxmint\nID_LIKE="ubuntu debian"\n', everything), 0, [])


@tap.case("an unknown distribution is told where the list is")
def unknown_distribution():
    result = install("ID=templeos\n", [])
    expect(result, 1, [])
    tap.matches("no list of packages for this distribution", result.stderr)


@tap.case("every package has a known group and a reason")
def lists_are_well_formed():
    for name in ("debian", "ubuntu", "fedora"):
        with open(os.path.join(SOURCE, "setup", name + ".txt"), encoding="utf-8") as stream:
            for line in stream:
                if line.strip() and not line.startswith("#"):
                    tap.matches(r"^(build|check|bench|demo)(/\w+)? +[\w.+-]+ +\S", line, name)
                    tap.true(not re.search(r"https?:", line), "no address in the list")


tap.main()
