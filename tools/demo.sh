#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The main job on real input: tools/demo.sh BUILD, called by `make demo`.
#
# Shows the ten worst faults of the running kernel, where it has BTF, and of a
# real threaded program built with -g, each with one proposal written out. The
# program is memcached, whose source is fetched and built below BUILD/demo; where
# that cannot be done, Hotline's own command takes its place.
# HOTLINE_DEMO_PROGRAM=FILE shows another one.
#
# Then an index of the words of real texts, many times as large as the memory that it
# takes: the lists of the files of this machine's packages, or its headers. At last every
# experiment of the bench, quickly, as a table and as the page hotline-report.html.

set -eu

build=${1:?usage: tools/demo.sh BUILD}
top=$(cd "$(dirname "$0")/.." && pwd)
hotline=$build/hotline
work=$build/demo
kernel=/sys/kernel/btf/vmlinux

title()
{
	printf '\n==== %s\n\n' "$*"
}

# Builds memcached in a copy of its source; prints the program.
build_memcached()
{
	source=$("$top/setup/source" memcached "$work") || return 1
	if [ ! -x "$source/memcached" ]; then
		(cd "$source" && ./configure -q CFLAGS='-O2 -g' && make -j"$(nproc)") \
			>"$work/memcached.log" 2>&1 || {
			echo "memcached does not build here, see $work/memcached.log" >&2
			return 1
		}
	fi
	echo "$source/memcached"
}

show()
{
	"$hotline" layout --no-pager --top 10 --proposals 1 "$1"
}

mkdir -p "$work"
if [ -r "$kernel" ]; then
	title "The running kernel ($(uname -r)): the ten worst of its structures"
	show "$kernel"
else
	title "This kernel has no BTF ($kernel): its structures are left out"
fi

program=${HOTLINE_DEMO_PROGRAM:-}
if [ -z "$program" ]; then
	echo
	echo "Fetching and building memcached with -g ..."
	program=$(build_memcached) || {
		echo "Hotline's own command is shown in its place."
		program=$hotline
	}
fi
title "$(basename "$program"), built with -g: the ten worst of its structures"
show "$program"

# What is in lists of packages is what the machine has; headers are there to build at all.
texts()
{
	for directory in /var/lib/dpkg/info:list /usr/include:h; do
		found=$(find -L "${directory%:*}" -name "*.${directory#*:}" -type f 2>/dev/null | sort |
			head -n 1500)
		[ -z "$found" ] || break
	done
	echo "$found"
}

title "The words of $(texts | wc -l) real texts in a tree, through 16 MB of memory"
(
	index=$PWD/$build/examples/example-word_index
	case $build in /*) index=$build/examples/example-word_index ;; esac
	cd "$work"
	texts | xargs -n 2000 "$index"
)

title "What Hotline's own operations cost on this machine"
"$hotline" bench --quick --html "$top/hotline-report.html"
echo
echo "The same as a page, with plots: hotline-report.html"

cat <<END

Your own program, compiled with -g:

    $hotline layout PROGRAM            the worst first
    $hotline layout PROGRAM TYPE       one type in full
    $hotline layout --help             all the rest, with examples

The figures above at length, with a machine that does nothing else:

    $hotline bench
END
