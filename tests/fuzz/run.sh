#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Fuzzes what reads files and what reports on them: tests/fuzz/run.sh, or with more
# time FUZZ_SECONDS=3600 tests/fuzz/run.sh; FUZZ_TARGETS="file graph" for some only.
#
# The bounds, for files of up to 64 KB and with AddressSanitizer, which takes some
# three times the memory that the program takes without: 10 s an input, 512 MB.  What
# breaks them or crashes is kept in build-fuzz/found/; mended, it goes to
# tests/fuzz/corpus/TARGET/, which `make check` replays.

set -eu
cd "$(dirname "$0")/../.."

build=build-fuzz
seconds=${FUZZ_SECONDS:-20}
targets=${FUZZ_TARGETS:-file graph rules}
passed=0 failed=0

# shellcheck disable=SC2086
set -- $targets
each=$((seconds / $#))
[ "$each" -gt 0 ] || each=1

# A compiler without the runtime cannot link this.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo 'int LLVMFuzzerTestOneInput(const char *p, long n) { return p && n > 1 ? 0 : 0; }' >"$work/a.c"
if ! clang -fsanitize=fuzzer,address "$work/a.c" -o "$work/a" 2>"$work/why"; then
	echo "skipped: fuzzing needs clang with libFuzzer ($(head -n 1 "$work/why"))"
	echo "0 passed, 0 failed, $# skipped"
	exit 0
fi
# The leak detector stops the program with ptrace, which some containers forbid.
if ! "$work/a" -runs=1 >/dev/null 2>&1; then
	export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
fi

if [ ! -e $build/build.ninja ]; then
	CC=clang CXX=clang++ meson setup $build --buildtype=debugoptimized \
		-Db_sanitize=address,undefined -Db_lundef=false \
		-Dc_args=-fsanitize=fuzzer-no-link >"$work/log" 2>&1 || {
		cat "$work/log"
		exit 1
	}
fi
# shellcheck disable=SC2086
ninja --quiet -C $build $(printf 'tests/fuzz/fuzz-%s ' $targets)

tests/fuzz/seeds.sh $build/seeds
mkdir -p $build/found

for target; do
	# What was found interesting is kept from run to run.
	mkdir -p $build/corpus/$target
	dictionary=
	[ ! -e tests/fuzz/$target.dict ] || dictionary=-dict=tests/fuzz/$target.dict
	log=$build/fuzz-$target.log
	# shellcheck disable=SC2086
	if $build/tests/fuzz/fuzz-$target $dictionary -max_len=65536 -timeout=10 \
		-rss_limit_mb=1024 -max_total_time=$each -print_final_stats=1 \
		-artifact_prefix=$build/found/$target- \
		$build/corpus/$target tests/fuzz/corpus/$target $build/seeds/$target \
		</dev/null >$log 2>&1; then
		passed=$((passed + 1))
		runs=$(sed -n 's/^stat::number_of_executed_units: *//p' $log)
		coverage=$(sed -n 's/^#.* cov: \([0-9]*\) .*/\1/p' $log | tail -n 1)
		memory=$(sed -n 's/^stat::peak_rss_mb: *//p' $log)
		echo "fuzz-$target: $runs inputs in $each s, $coverage edges, $memory MB at most"
	else
		failed=$((failed + 1))
		tail -n 60 $log
		echo "fuzz-$target: failed, see $log; to see it again:"
		echo "$build/tests/fuzz/fuzz-$target $build/found/$target-..."
	fi
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
