#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# scale.sh IPCSCALE SEMBENCH: the published programs that measure semaphores. IPCSCALE is a checkout
# of github.com/manfred-colorfu/ipcscale (sem-scalebench), SEMBENCH one of
# github.com/davidlohr/sembench-ng; both are built into a directory that is removed.
# SECONDS_EACH is how long each runs (3).
# shellcheck source-path=SCRIPTDIR
. "${0%/*}/common.sh"

[ -e "${1-}/sem-scalebench.cpp" ] && [ -e "${2-}/sembench.c" ] ||
	skip "usage: scale.sh IPCSCALE SEMBENCH, checkouts of" \
		"github.com/manfred-colorfu/ipcscale and github.com/davidlohr/sembench-ng"
packages gcc g++
seconds=${SECONDS_EACH:-3}
# Their makefiles link statically, which leaves nothing to preload into.
{
	g++ -O2 -pthread -o "$scratch/scalebench" "$1/sem-scalebench.cpp" &&
		gcc -O2 -pthread -o "$scratch/sembench" "$2/sembench.c" -lm
} 2>"$scratch/build.log" || { cat "$scratch/build.log" >&2; exit 1; }

# scale OPERATION THREADS: semop calls a second.
scale()
{
	run "$scratch/scalebench" -f -t "$seconds" -c "$2" -o "$1" >"$scratch/scale.$way" || return
	awk '/^Threads/ { for (i = 1; i < NF; i++) if ($i == "in") print int($(i - 1) / $(i + 1)) }' \
		"$scratch/scale.$way" | sort -n | tail -n 1
}

# wake THREADS AT_ONCE: workers that are woken a second.
wake()
{
	run "$scratch/sembench" -t "$1" -w "$2" -r "$seconds" -o 0 >"$scratch/wake.$way" || return
	sed -n 's/.*seconds \([0-9]*\) worker burns.*/\1/p' "$scratch/wake.$way"
}

table "semaphores, operations a second"
for threads in 1 2; do
	figure "sem-scalebench wait-for-zero, $threads threads" scale 1 $threads
done
figure "sem-scalebench ping-pong, 2 threads" scale 2 2
figure "sem-scalebench mix, 2 threads" scale 4 2
figure "sembench -t 1024 -w 512" wake 1024 512
figure "sembench -t 64 -w 16" wake 64 16
seconds=1
quiet scale 2 2
quiet wake 64 16
finish
