/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdatomic.h>

#include <hotline/cacheline.h>

#include "line_size.h"

/* The kernel's file for it. */
#define SYSFS_LINE_SIZE "/sys/devices/system/cpu/cpu0/cache/index0/coherency_line_size"

static size_t ask(void)
{
	size_t size = hl_line_size_from_libc();

	if (!size)
		size = hl_line_size_from_auxv();
	if (!size)
		size = hl_line_size_from_cpu();
	if (!size)
		size = hl_line_size_from_file(SYSFS_LINE_SIZE);
	return size ? size : HL_CACHE_LINE;
}

size_t hl_cache_line_size(void)
{
	/*
	 * Written by the first call, or by the first few at once; read by all.
	 * Relaxed: all of them store the same value, and nothing else is published
	 * with it.
	 */
	static _Atomic(size_t) cached;
	size_t size = atomic_load_explicit(&cached, memory_order_relaxed);

	if (!size) {
		int saved = errno;

		size = ask();
		errno = saved;
		atomic_store_explicit(&cached, size, memory_order_relaxed);
	}
	return size;
}

size_t hl_cache_line_pair_size(void)
{
	return hl_cache_line_size() * (HL_CACHE_LINE_PAIR / HL_CACHE_LINE);
}
