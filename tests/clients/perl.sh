#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# perl.sh [TEST...]: perl's own tests of IPC::SysV, from Debian's source: sem, shm, msg, ipcsysv.
# PERL, if set, is the unpacked source.
# shellcheck source-path=SCRIPTDIR
. "${0%/*}/common.sh"

packages perl
source=${PERL-}
[ -n "$source" ] || debian_source perl
cp -r "$source/cpan/IPC-SysV/t" "$scratch/t" || exit 1
cd "$scratch" || exit 1

# prove TEST: how many of its checks passed, were left out and failed.
prove()
{
	# The installed modules, of the same source, are what is tested.
	run perl "t/$1.t" >"$scratch/$1.$way"
	local result=$?

	grep '^not ok' "$scratch/$1.$way" >&2
	awk '/# skip/ { skipped++; next } /^ok/ { passed++ } /^not ok/ { failed++ }
		END { printf "%d ok, %d skip, %d bad\n", passed, skipped, failed }' "$scratch/$1.$way"
	return $result
}

[ $# != 0 ] || set -- ipcsysv sem shm msg
table "perl, IPC::SysV"
for test; do
	same "t/$test.t" prove "$test"
	quiet prove "$test"
done
finish
