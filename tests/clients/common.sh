# shellcheck shell=bash
# shellcheck disable=SC2034 # the scripts use what is set here
# SPDX-License-Identifier: MIT
#
# What the clients share. A script sources this file, names its client and gives the table row by
# row; each row runs one function of the script twice, on the kernel's System V IPC and on the
# library's:
#
#	. "${0%/*}/common.sh"
#	packages stress-ng
#	table "stress-ng"
#	same "what it shows" function [ARGUMENT...]
#	figure "operations a second" function [ARGUMENT...]
#	quiet function [ARGUMENT...]
#	finish
#
# In such a function `run COMMAND...` runs a command in the row's way. For the library that is with
# it preloaded and the twelve system calls denied, a namespace of its own, and both inherited by
# whatever the command starts. The kernel's own objects are in an IPC namespace of the script.
#
# Environment: HOTLINE_BUILD, the build directory (build/ of this project); HOTLINE_CLIENTS, where
# sources are kept between runs (~/.cache/hotline-clients); HOTLINE_DENIAL, "enosys" or "sigsys".

set -u

# The kernel's column, too, begins with no object, and leaves none on the machine.
if [ -z "${HOTLINE_CLIENTS_UNSHARED-}" ] && command -v unshare >/dev/null; then
	if [ "$(id -u)" = 0 ]; then
		apart="unshare --ipc"
	else
		apart="unshare --user --map-current-user --ipc"
	fi
	# shellcheck disable=SC2086 # a command and its options
	if $apart true 2>/dev/null; then
		HOTLINE_CLIENTS_UNSHARED=yes exec $apart "$BASH" "$0" "$@"
	fi
	echo "# no IPC namespace of our own: the kernel's objects are the machine's" >&2
fi

here=$(cd "${BASH_SOURCE[0]%/*}" && pwd)
build=$(realpath -m "${HOTLINE_BUILD:-$here/../../build}")
denial=${HOTLINE_DENIAL:-enosys}
kept=${HOTLINE_CLIENTS:-$HOME/.cache/hotline-clients}
calls=semget,semop,semtimedop,semctl,msgget,msgsnd,msgrcv,msgctl,shmget,shmat,shmdt,shmctl

skip()
{
	echo "$*" >&2
	exit 77
}

scratch=$(mktemp -d "${TMPDIR:-/tmp}/hotline-client.XXXXXX")
# Copies, which other users can reach too.
library=$scratch/libhotline-sysvipc.so
deny=$scratch/deny-sysvipc
cp "$build/libhotline-sysvipc.so" "$build/tests/deny-sysvipc" "$scratch" ||
	skip "first make, or set HOTLINE_BUILD to the build directory"
if [ -d /dev/shm ] && [ -w /dev/shm ]; then
	objects=$(mktemp -d /dev/shm/hotline-client.XXXXXX)
else
	objects=$(mktemp -d "$scratch/objects.XXXXXX")
fi
# A client may become another user on its way.
mkdir "$objects/library" "$objects/traced"
chmod 1777 "$scratch" "$objects"/*
chmod 755 "$objects"
worse=0
width=44
# Which implementation a command gets: kernel, library, or traced, the library under strace.
way=kernel
limit=120
raw=
# "yes": the library also takes the calls that a program makes without libc, as --raw-syscalls asks.
through=

clean()
{
	# shellcheck disable=SC2046 # process ids
	kill $(jobs -p) 2>/dev/null
	rm -rf "$scratch" "$objects"
}
trap clean EXIT
trap 'exit 130' INT TERM

# packages PACKAGE...: Debian's, installed if root runs this.
packages()
{
	local missing=() package

	for package; do
		dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null |
			grep -qx installed || missing+=("$package")
	done
	[ ${#missing[@]} = 0 ] && return
	command -v apt-get >/dev/null || skip "packages of Debian are missing: ${missing[*]}"
	[ "$(id -u)" = 0 ] || skip "packages are missing; as root: apt-get install ${missing[*]}"
	DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}" \
		>"$scratch/apt.log" 2>&1 || skip "$(tail -n 5 "$scratch/apt.log")"
}

# debian_source PACKAGE: its source, unpacked. Sets $source. The machine's list of sources is left
# as it is: the lists and the configuration are ours.
debian_source()
{
	local apt=$kept/apt base=$kept/source-$1

	source=$base/tree
	[ -d "$source" ] && return
	packages dpkg-dev
	mkdir -p "$base" "$apt/lists/partial" "$apt/parts"
	cat >"$apt/parts/source.sources" <<-EOF
		Types: deb-src
		URIs: http://deb.debian.org/debian
		Suites: $(. /etc/os-release && echo "$VERSION_CODENAME")
		Components: main
		Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
	EOF
	cat >"$apt/apt.conf" <<-EOF
		Dir::Etc::SourceList "/dev/null";
		Dir::Etc::SourceParts "$apt/parts";
		Dir::State::Lists "$apt/lists";
		Dir::Cache "$apt";
		APT::Sandbox::User "";
	EOF
	(
		export APT_CONFIG=$apt/apt.conf
		cd "$base" && apt-get update && apt-get source --download-only "$1" &&
			dpkg-source -x ./*.dsc tree
	) >"$scratch/apt.log" 2>&1 || skip "$(tail -n 5 "$scratch/apt.log")"
}

# run COMMAND...: in the way of the row; ended after $limit seconds.
run()
{
	local preload=$library${LD_PRELOAD:+:$LD_PRELOAD}
	local ours=(env "LD_PRELOAD=$preload" "HOTLINE_SYSVIPC_DIR=$objects/$way"
		${through:+HOTLINE_SYSVIPC_RAW=1} "$@")

	case $way in
	kernel) timeout -k 5 "$limit" "$@" ;;
	library) timeout -k 5 "$limit" "$deny" "$denial" "${ours[@]}" ;;
	# Nothing is denied, so that what gets through is seen.
	traced) timeout -k 5 "$limit" strace -f -qq --seccomp-bpf -e "trace=$calls" -e signal=none \
		-o "$scratch/strace.$BASHPID.$RANDOM" "${ours[@]}" ;;
	esac
}

# one WAY FUNCTION [ARGUMENT...]: sets $cell, the last line that the function prints, and $status.
one()
{
	way=$1
	shift
	cell=$(set -o pipefail; "$@" 2>"$scratch/$way.err" | tail -n 1)
	status=$?
	[ -n "$cell" ] || cell=$([ $status = 0 ] && echo ok || echo "failed ($status)")
}

table()
{
	printf '%-*s %20s %20s\n' "$width" "$1" kernel library
}

row()
{
	printf '%-*s %20s %20s%s\n' "$width" "$1" "$2" "$3" "${4:+  $4}"
}

# What the library's run printed as an error, where it is asked why it is worse.
blame()
{
	worse=$((worse + 1))
	tail -n 5 "$scratch/library.err" | sed 's/^/# /' >&2
}

# same WHAT FUNCTION...: a row whose cells must be equal, unless only the kernel's failed.
same()
{
	local what=$1 kernel_cell kernel_status mark=
	shift

	one kernel "$@"
	kernel_cell=$cell kernel_status=$status
	one library "$@"
	if [ $status != 0 ] || [ "$cell" != "$kernel_cell" ]; then
		[ $status = 0 ] && [ $kernel_status != 0 ] || mark=WORSE
	fi
	# Both failed, and in the same way.
	[ $kernel_status != 0 ] && [ "$cell" = "$kernel_cell" ] && mark=
	row "$what" "$kernel_cell" "$cell" "$mark"
	[ -z "$mark" ] || blame
}

# figure WHAT FUNCTION...: a row of two numbers and how many times the kernel's the library's is.
# Only a run that fails is worse: what else the machine does is in the numbers.
figure()
{
	local what=$1 kernel_cell kernel_status mark
	shift

	one kernel "$@"
	kernel_cell=$cell kernel_status=$status
	one library "$@"
	mark=$(awk -v k="$kernel_cell" -v l="$cell" \
		'BEGIN { if (k + 0 > 0 && l + 0 > 0) printf "x %.2f", l / k }')
	if [ $status != 0 ] && [ $kernel_status = 0 ]; then
		mark=WORSE
	fi
	row "$what" "$kernel_cell" "$cell" "$mark"
	[ "$mark" != WORSE ] || blame
}

# quiet FUNCTION...: how many of the twelve system calls are made, by any process or thread. Those in
# $raw are ones that the program makes by syscall(2), which no library is in the way of.
quiet()
{
	local what="of the twelve system calls" seen asked mark=

	if ! command -v strace >/dev/null; then
		row "$what" "" "no strace"
		return
	fi
	rm -f "$scratch"/strace.*
	one traced "$@"
	if ! cat "$scratch"/strace.* 2>/dev/null | sed -n 's/^[0-9]* *\([a-z]*\)(.*/\1/p' \
		>"$scratch/traced"; then
		row "$what" "" "not traced"
		return
	fi
	asked=$(grep -cwE "${raw:-none}" "$scratch/traced")
	seen=$(($(wc -l <"$scratch/traced") - asked))
	if [ "$seen" != 0 ]; then
		mark=WORSE
		worse=$((worse + 1))
		grep -vwE "${raw:-none}" "$scratch/traced" | sort | uniq -c | sed 's/^/# /' >&2
	fi
	[ "$asked" = 0 ] || mark="$mark and $asked raw $raw"
	row "$what" "" "$seen" "$mark"
}

# How many objects the client has left behind, per way. A segment that was removed goes when it is
# looked at after the death of who had it attached.
left()
{
	if [ "$way" = kernel ]; then
		ipcs 2>/dev/null | grep -c '^0x'
	else
		"$build/tools/hotline/hotline" ipcs --namespace "$objects/library" >/dev/null
		find "$objects/library" -type f -name '*.[0-9]*' | wc -l
	fi
}

finish()
{
	if [ -n "${HOTLINE_CLIENTS_UNSHARED-}" ]; then
		same "objects left behind" left
	fi
	exit $((worse != 0))
}
