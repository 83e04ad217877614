# SPDX-License-Identifier: MIT
#
# For the scripts beside: source it, then use `with_library PROGRAM...`. BUILD is the build tree.
# Each script says what it did, and its exit status is 0, 1 (a client failed) or 77 (it is not
# installed, or cannot be confined here).

BUILD=$(cd "${BUILD:-build}" && pwd) || exit 1
DENY=$BUILD/tests/deny-sysvipc
HOTLINE=$BUILD/tools/hotline/hotline
SPACE=$(mktemp -d "$([ -w /dev/shm ] && echo /dev/shm || echo /tmp)/hotline-client.XXXXXX")
chmod 1777 "$SPACE"
WORK=$(mktemp -d)
trap 'rm -rf "$SPACE" "$WORK"' EXIT

need()
{
	command -v "$1" >/dev/null || { echo "skipped: no $1; install $2"; exit 77; }
}

# A system without System V IPC, but for the library's.
with_library()
{
	"$DENY" "${HOW:-enosys}" "$HOTLINE" run --sysvipc --namespace "$SPACE" "$@"
}

# Nothing that the client was to remove is left.
left()
{
	"$HOTLINE" ipcs --namespace "$SPACE" | sed '1d;$d'
}
