/* SPDX-License-Identifier: MIT */
/*
 * Where the size of a cache line can be learnt at run time, one function a source.
 * Each returns the size in bytes, or 0 if the source does not exist on this
 * machine or makes no sense. None allocates; only the last makes system calls.
 */
#ifndef HOTLINE_LINE_SIZE_H
#define HOTLINE_LINE_SIZE_H

#include <stddef.h>

/* The C library: sysconf(). glibc asks the processor, musl does not know. */
size_t hl_line_size_from_libc(void);

/* The kernel's auxiliary vector, which has it on POWER alone. */
size_t hl_line_size_from_auxv(void);

/* The processor: CPUID on x86, CTR_EL0 on arm64. */
size_t hl_line_size_from_cpu(void);

/*
 * A file of the kernel's with the size in decimal and a newline, such as
 * /sys/devices/system/cpu/cpu0/cache/index0/coherency_line_size. Virtual machines
 * often have none. May set errno; is no cancellation point.
 */
size_t hl_line_size_from_file(const char *path);

#endif
