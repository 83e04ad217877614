/* SPDX-License-Identifier: MIT */
#include <unistd.h>

#include <hotline/cacheline.h>

size_t hl_cache_line_size(void)
{
	long size = sysconf(_SC_LEVEL1_DCACHE_LINESIZE);

	return size > 0 ? (size_t)size : HL_CACHE_LINE;
}

size_t hl_cache_line_pair_size(void)
{
	return 2 * hl_cache_line_size();
}
