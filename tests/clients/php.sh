#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# php.sh [EXTENSION...]: PHP's own tests of sysvsem, sysvshm, shmop and sysvmsg, from Debian's source.
# PHP, if set, is the unpacked source.
# shellcheck source-path=SCRIPTDIR
. "${0%/*}/common.sh"

packages php8.2-cli
# PHP opens its modules with RTLD_DEEPBIND: what they call is libc's, whatever is preloaded. Each call
# is trapped on its way into the kernel, where strace still counts it: the denial is the proof.
through=yes
source=${PHP-}
[ -n "$source" ] || debian_source php8.2
mkdir "$scratch/php"
cp -r "$source"/ext/{sysvsem,sysvshm,shmop,sysvmsg} "$source/run-tests.php" "$scratch/php" || exit 1
cd "$scratch/php" || exit 1

# tests EXTENSION: how many passed, were skipped and failed.
tests()
{
	find "$1" -name '*.phpt' -print0 | while IFS= read -r -d '' file; do
		rm -f "${file%.phpt}".{out,log,diff,exp,sh}
	done
	run php run-tests.php -q --offline -p "$(command -v php8.2)" "$1/tests" \
		>"$scratch/$1.$way" 2>&1 </dev/null
	local result=$?

	tr '\r' '\n' <"$scratch/$1.$way" | grep 'FAIL.*phpt' >&2
	awk '/^Tests passed/ { passed = $4 } /^Tests skipped/ { skipped = $4 }
		/^Tests failed/ { failed = $4 }
		END { printf "%d ok, %d skip, %d bad\n", passed, skipped, failed }' "$scratch/$1.$way"
	return $result
}

[ $# != 0 ] || set -- sysvsem sysvshm shmop sysvmsg
table "PHP"
for extension; do
	same "ext/$extension" tests "$extension"
done
finish
