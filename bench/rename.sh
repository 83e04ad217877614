#!/bin/sh
# SPDX-License-Identifier: MIT
#
# rename.sh NM PREFIX LIBRARY: a header that gives each global name of the library
# a prefix, so that its source can be compiled a second time into one program.

set -eu
"$1" -g --defined-only -P "$3" | awk -v prefix="$2" '
	$1 ~ /^(hl_|(sem|msg|shm)[a-z]+$)/ && !seen[$1]++ { print "#define " $1 " " prefix $1 }'
