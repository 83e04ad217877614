#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Compares `hotline layout` with pahole on real programs: tests/compare/run.sh BUILD,
# called by `make compare`. Their sources are fetched and built with -g below
# BUILD/compare, where they stay for the next time. Needs the network the first time;
# takes ten minutes on two processors then, and three later.
#
# Exit status: 0 when all is equal or explained and the targets of speed are met.

set -eu

build=$(cd "${1:?usage: tests/compare/run.sh BUILD}" && pwd)
top=$(cd "$(dirname "$0")/../.." && pwd)
here=$top/tests/compare
hotline=$build/tools/hotline/hotline
work=$build/compare
jobs=$(nproc)
status=0
# What to compare, in the positional parameters; and what to measure.
set --
large=

# program NAME PACKAGE FILE COMMAND...: builds a copy of the source of the package with
# the command, run in its top directory; FILE is what comes of it. Sets $program, or
# prints why there is none.
program()
{
	name=$1 package=$2
	program=$work/$name/$3
	shift 3
	[ -x "$program" ] && return
	echo "building $name ..."
	rm -rf "${work:?}/$name"
	if ! { source=$("$top/setup/source" "$package" "$work/source") &&
		cp -a "$source" "$work/$name" &&
		(cd "$work/$name" && "$@"); } >"$work/$name.log" 2>&1; then
		echo "$name does not build, see $work/$name.log"
		tail -n 3 "$work/$name.log"
		program=
		status=1
	fi
}

redis()
{
	make -j"$jobs" CC="$1" OPTIMIZATION=-O2 DEBUG="$2" MALLOC=libc BUILD_TLS=no redis-server
}

memcached()
{
	./configure -q CFLAGS='-O2 -g' && make -j"$jobs" memcached
}

ninja()
{
	CXX=$1 CFLAGS=$2 ./configure.py --bootstrap
}

mkdir -p "$work"
if [ -r /sys/kernel/btf/vmlinux ]; then
	set -- /sys/kernel/btf/vmlinux
	large=/sys/kernel/btf/vmlinux
else
	echo 'this kernel has no BTF (/sys/kernel/btf/vmlinux): it is left out'
fi
program redis-gcc redis src/redis-server redis gcc -g
set -- "$@" ${program:+"$program"}
large="$large $program"
program redis-clang-dwarf5 redis src/redis-server redis clang -gdwarf-5
set -- "$@" ${program:+"$program"}
large="$large $program"
program memcached-gcc memcached memcached memcached
set -- "$@" ${program:+"$program"}
program ninja-gcc ninja-build ninja ninja g++ -g
set -- "$@" ${program:+"$program"}
large="$large $program"
program ninja-clang-dwarf4 ninja-build ninja ninja clang++ -gdwarf-4
set -- "$@" ${program:+"$program"}
for compiler in gcc clang; do
	for version in 3 4 5; do
		$compiler -w -std=gnu11 -gdwarf-$version -c "$here/cases.c" \
			-o "$work/cases-$compiler-dwarf$version.o"
		set -- "$@" "$work/cases-$compiler-dwarf$version.o"
	done
done
for compiler in g++ clang++; do
	for version in 4 5; do
		$compiler -w -std=c++20 -gdwarf-$version -c "$here/cases.cc" \
			-o "$work/cases-$compiler-dwarf$version.o"
		set -- "$@" "$work/cases-$compiler-dwarf$version.o"
	done
done
set -- "$@" "$build/libhotline.so" "$hotline"

"$here/pahole.py" --hotline "$hotline" "$@" || status=1
# Word for word: no path here has blanks but what the caller's has.
# shellcheck disable=SC2086
"$here/speed.py" --hotline "$hotline" $large || status=1
exit $status
