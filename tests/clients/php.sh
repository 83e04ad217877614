#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# php.sh [EXTENSION...]: PHP's own tests of sysvsem, sysvshm, shmop and sysvmsg, from Debian's source.
# PHP, if set, is the unpacked source.
# shellcheck source-path=SCRIPTDIR
. "${0%/*}/common.sh"

packages php8.2-cli
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

	grep '^FAIL' "$scratch/$1.$way" >&2
	awk '/^PASS/ { passed++ } /^SKIP/ { skipped++ } /^(FAIL|BORK|LEAK)/ { failed++ }
		END { printf "%d ok, %d skip, %d bad\n", passed, skipped, failed }' "$scratch/$1.$way"
	return $result
}

[ $# != 0 ] || set -- sysvsem sysvshm shmop sysvmsg
table "PHP"
for extension; do
	same "ext/$extension" tests "$extension"
	quiet tests "$extension"
done
finish
