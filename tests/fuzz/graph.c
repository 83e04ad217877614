// SPDX-License-Identifier: MIT
/*
 * The bytes make types, see build.c: without the frame of a file around them a
 * fuzzer gets to what no compiler would write.
 */
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hl_types *types = fuzz_build_types(data, size);

	if (types) {
		fuzz_check_types(types);
		fuzz_report(types, fuzz_seed(data, size));
		fuzz_free_types(types);
	}
	return 0;
}
