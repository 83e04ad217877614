#!/bin/sh
# SPDX-License-Identifier: MIT
#
# fakeroot with its System V transport: a package built, owners and modes that are kept over many
# processes, and a hundred sessions that are interrupted.

set -eu
. "$(dirname "$0")/common.sh"
need fakeroot-sysv fakeroot
need dpkg-deb dpkg

"$DENY" enosys fakeroot-sysv true 2>/dev/null && { echo "the launcher denies nothing"; exit 1; }

mkdir -p "$WORK/pkg/DEBIAN" "$WORK/pkg/usr/share/probe"
cat >"$WORK/pkg/DEBIAN/control" <<END
Package: probe
Version: 1
Architecture: all
Maintainer: nobody <nobody@example.org>
Description: a probe
END
for i in $(seq 200); do echo "$i" >"$WORK/pkg/usr/share/probe/$i"; done

for HOW in enosys sigsys; do
	with_library fakeroot-sysv sh -c "
		chown -R 4242:4343 '$WORK/pkg/usr' && chmod 4755 '$WORK/pkg/usr/share/probe/1' &&
		dpkg-deb -b '$WORK/pkg' '$WORK/probe.deb' >/dev/null"
	n=$(dpkg-deb -c "$WORK/probe.deb" | grep -c '4242/4343') || true
	[ "$n" -ge 200 ] || { echo "$n files kept their owner, not 200"; exit 1; }
	dpkg-deb -c "$WORK/probe.deb" | grep '^-rwsr-xr-x' >/dev/null || { echo "the mode was lost"; exit 1; }
	echo "built under $HOW: $n files with the owner that fakeroot was told"
done

for i in $(seq 100); do
	with_library timeout -s INT 0.0"$((i % 5 + 1))" fakeroot-sysv sh -c 'while :; do ls -l / ; done' \
		>/dev/null 2>&1 || true
done
owner=$(with_library timeout 20 fakeroot-sysv sh -c "touch '$WORK/f'; chown 5:6 '$WORK/f'; stat -c %u:%g '$WORK/f'")
[ "$owner" = 5:6 ] || { echo "after interruptions: $owner"; exit 1; }
echo "100 sessions interrupted, the next one works"
