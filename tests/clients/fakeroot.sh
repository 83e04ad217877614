#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# fakeroot with its System V transport, a message queue each way and a semaphore between the program
# and faked: a package whose files have other owners, and sessions that are interrupted.
# shellcheck source-path=SCRIPTDIR
. "${0%/*}/common.sh"

packages fakeroot dpkg
files=200
tree=$scratch/tree
mkdir -p "$tree/DEBIAN" "$tree/usr/share/probe"
chmod 755 "$tree" "$tree/DEBIAN"
for ((n = 1; n <= files; n++)); do
	echo "$n" >"$tree/usr/share/probe/$n"
done
cat >"$tree/DEBIAN/control" <<EOF
Package: probe
Version: 1
Architecture: all
Maintainer: nobody <nobody@example.org>
Description: a probe
EOF

# package: what the package says of its files.
package()
{
	# shellcheck disable=SC2016 # the inner shell's
	run fakeroot-sysv sh -c 'chown -R 1234:5678 "$1/usr" && chmod 4755 "$1/usr/share/probe/1" &&
		mknod "$1/usr/share/probe/null" c 1 3 &&
		dpkg-deb -b "$1" "$2" && rm "$1/usr/share/probe/null"' - \
		"$tree" "$scratch/probe.deb" >/dev/null || return
	dpkg-deb -c "$scratch/probe.deb" | awk '$2 == "1234/5678" { owned++ } /^-rwsr-xr-x/ { modes++ }
		/^crw/ { devices++ }
		END { printf "%d own, %d suid, %d dev\n", owned, modes, devices }'
}

# touched N: files a second that are made, given away, looked at and removed, a process each time.
touched()
{
	local began=$EPOCHREALTIME

	# shellcheck disable=SC2016
	run fakeroot-sysv sh -c 'n=0; while [ $n -lt "$2" ]; do n=$((n + 1)); touch "$1" &&
		chown 5:6 "$1" && [ "$(stat -c %u:%g "$1")" = 5:6 ] && rm "$1" || exit 1; done' - \
		"$scratch/touched" "$1" || return
	awk -v b="$began" -v e="$EPOCHREALTIME" -v n="$1" 'BEGIN { printf "%.0f\n", n / (e - b) }'
}

# interrupted N: sessions that SIGINT ends, then one that is to work.
interrupted()
{
	local n

	for ((n = 0; n < $1; n++)); do
		run timeout -s INT 0.0$((n % 5 + 1)) fakeroot-sysv sh -c 'while :; do ls -l /; done' \
			>/dev/null 2>&1
	done
	# shellcheck disable=SC2016
	limit=20 run fakeroot-sysv sh -c 'touch "$1"; chown 5:6 "$1"; stat -c %u:%g "$1"' - \
		"$scratch/after"
}

table "fakeroot-sysv"
same "a package of $files files" package
figure "files a second, made, owned, seen, gone" touched 100
same "the session after 50 interrupted ones" interrupted 50
quiet package
exit $((worse != 0))
