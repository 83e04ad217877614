#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# stress-ng.sh [STRESSOR...]: its workers, each of which checks what it gets back (--verify).
# shellcheck source-path=SCRIPTDIR
. "${0%/*}/common.sh"

packages stress-ng
instances=2
# What a fixed number of operations is for each stressor; a traced run does a tenth.
sem_ops=200000 msg_ops=200000 shm_ops=400

# verified STRESSOR OPERATIONS: how many instances passed, and what failed.
verified()
{
	local ops=$2

	[ "$way" = traced ] && ops=$(($2 / 10))
	run stress-ng --temp-path "$scratch" "--$1" "$instances" "--$1-ops" "$ops" --verify \
		--metrics-brief >"$scratch/$way.$1" 2>&1
	local result=$?

	sed -n 's/.*\(fail:\)/\1/p' "$scratch/$way.$1" | head -n 5 >&2
	[ "$result" = 0 ] && echo passed || echo "failed ($result)"
	return "$result"
}

# Operations a second of the run above, in real time.
speed()
{
	awk -v name="$1" '$4 == name && $9 ~ /^[0-9.]+$/ { printf "%.0f\n", $9 }' "$scratch/$way.$1"
}

[ $# != 0 ] || set -- sem-sysv msg shm-sysv
table "stress-ng --verify, $instances instances"
for name in "$@"; do
	case $name in
	sem-sysv) ops=$sem_ops raw=semctl ;;
	msg) ops=$msg_ops raw= ;;
	shm-sysv) ops=$shm_ops raw= ;;
	esac
	same "--$name, $ops operations" verified "$name" "$ops"
	figure "--$name, operations a second" speed "$name"
	quiet verified "$name" "$ops"
done
finish
