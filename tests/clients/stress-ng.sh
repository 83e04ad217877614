#!/bin/sh
# SPDX-License-Identifier: MIT
#
# stress-ng's stressors for System V IPC, which check what comes back, on the kernel and on the
# library, with the operations a second of both.

set -eu
. "$(dirname "$0")/common.sh"
need stress-ng stress-ng

failed=0
stress()
{
	"$@" --timeout "${SECONDS_EACH:-5}" --verify --metrics-brief 2>&1
}

for stressor in sem-sysv msg shm-sysv; do
	for who in kernel library; do
		run=; [ $who = kernel ] || run=with_library
		status=0
		stress $run stress-ng --$stressor 2 --temp-path "$WORK" >"$WORK/log" || status=$?
		rate=$(awk -v s=$stressor '{ for (i = 1; i <= NF; i++) if ($i == s && $(i + 1) ~ /^[0-9]+$/) print $(i + 5) }' "$WORK/log" | tail -1)
		echo "$stressor, $who: status $status, ${rate:-no} operations a second"
		if [ $status -ne 0 ]; then
			sed 's/^/  /' "$WORK/log"
			[ $who = kernel ] || failed=1
		fi
	done
done
exit $failed
