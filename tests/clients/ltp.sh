#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# ltp.sh LTP [PROGRAM...]: the Linux Test Project's programs for messages, semaphores and shared
# memory. LTP is a checkout of github.com/linux-test-project/ltp, in which they are built.
#
# A cell is passed/failed/broken/skipped, as the program counts. Where the library's is not the
# kernel's, the program is traced with the library and without denial: a System V call that still
# is made, or a file of the kernel's System V IPC that is opened, is named, and is why. A
# difference without either is the library's fault.
# shellcheck source-path=SCRIPTDIR
. "${0%/*}/common.sh"

[ -d "${1-}/testcases/kernel/syscalls/semop" ] ||
	skip "usage: ltp.sh LTP [PROGRAM...]; LTP: git clone https://github.com/linux-test-project/ltp"
ltp=$(cd "$1" && pwd)
shift
programs=$ltp/testcases/kernel
packages gcc make autoconf automake m4 pkgconf strace
limit=180
files='/proc/sysvipc|/proc/sys/kernel/(sem|msg|shm)|/proc/sys/vm/nr_hugepages|/sys/kernel/mm/hugepages'

build_ltp()
{
	local dir

	if [ ! -e "$ltp/include/mk/config.mk" ]; then
		make -C "$ltp" autotools && (cd "$ltp" && ./configure) || return
	fi
	for dir in lib libs/newipc testcases/kernel/mem/shmt testcases/kernel/ipc/msgstress \
		testcases/kernel/syscalls/{msg,sem,shm}{ctl,get,op,snd,rcv,at,dt}; do
		[ ! -d "$ltp/$dir" ] || make -j2 -C "$ltp/$dir" || return
	done
}

# program NAME: sets $counts to passed/failed/broken/skipped.
program()
{
	local path

	path=$(find "$programs" -type f -name "$1" -perm -u+x | head -n 1)
	[ -n "$path" ] || { echo "not built"; return 1; }
	TMPDIR=$scratch PATH=${path%/*}:$PATH LTPROOT=$ltp run "$path" >"$scratch/ltp.$way" 2>&1
	local result=$?

	grep -E 'TFAIL|TBROK|TCONF|TWARN' "$scratch/ltp.$way" >&2
	awk '$1 ~ /^(passed|failed|broken|skipped)$/ { count[$1] = $2; seen = 1 }
		END { if (!seen) print "no summary"
			else print count["passed"] "/" count["failed"] "/" count["broken"] "/" count["skipped"] }' \
		"$scratch/ltp.$way"
	# 32 is skipped, 4 a warning.
	((result == 0 || result == 4 || result == 32))
}

# worse_counts KERNEL LIBRARY
worse_counts()
{
	awk -v k="$1" -v l="$2" 'BEGIN { n = split(k, a, "/"); m = split(l, b, "/")
		exit !(m != 4 || n == 4 && (b[1] < a[1] || b[2] > a[2] || b[3] > a[3])) }'
}

# reason NAME: what of the kernel's the program uses behind the library's back.
reason()
{
	local trace=$scratch/trace.ltp

	rm -f "$scratch"/strace.*
	(calls=$calls,open,openat program_traced "$1")
	cat "$scratch"/strace.* >"$trace" 2>/dev/null
	{
		sed -n 's/^[0-9]* *\([a-z]*\)(.*/\1/p' "$trace" | grep -vE '^open' |
			sort -u | sed 's/^/raw /'
		grep -oE "($files)[a-z0-9_/]*" "$trace" | sort -u
	} | paste -sd ' '
}

program_traced()
{
	# A raw call may wait for ever in the kernel's object of the same id.
	way=traced limit=15
	program "$1" >/dev/null 2>&1
}

log=$scratch/build.log
build_ltp >"$log" 2>&1 || { tail -n 20 "$log" >&2; exit 1; }
if [ $# = 0 ]; then
	# shellcheck disable=SC2046 # names
	set -- $(awk '$1 ~ /^[a-z]/ { print $1 }' "$ltp/runtest/syscalls-ipc"
		awk '$1 ~ /^shmt[0-9]/ { print $1 }' "$ltp/runtest/mm")
fi

width=14
table "LTP"
explained=0 alike=0
for name; do
	one kernel program "$name"
	kernel_cell=$cell
	one library program "$name"
	library_cell=$cell
	mark=
	if [ "$cell" = "$kernel_cell" ]; then
		alike=$((alike + 1))
	elif why=$(reason "$name") && [ -n "$why" ]; then
		explained=$((explained + 1))
		through=yes
		one library program "$name"
		through=
		mark="$why; with --raw-syscalls $cell"
		cell=$library_cell
	elif worse_counts "$kernel_cell" "$cell"; then
		mark=WORSE
		blame
	fi
	row "$name" "$kernel_cell" "$cell" "$mark"
done
echo "$# programs: $alike alike, $explained explained, $worse worse"
finish
