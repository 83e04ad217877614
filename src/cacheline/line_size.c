/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#if defined(__powerpc__)
#include <sys/auxv.h>
#endif
#if defined(__i386__) || defined(__x86_64__)
#include <cpuid.h>
#endif

#include "line_size.h"

/* A power of two between a quarter of the usual line and a page, or 0. */
static size_t plausible(unsigned long size)
{
	return size >= 16 && size <= 4096 && (size & (size - 1)) == 0 ? size : 0;
}

size_t hl_line_size_from_libc(void)
{
#ifdef _SC_LEVEL1_DCACHE_LINESIZE
	long size = sysconf(_SC_LEVEL1_DCACHE_LINESIZE);

	return size > 0 ? plausible((unsigned long)size) : 0;
#else
	return 0;
#endif
}

size_t hl_line_size_from_auxv(void)
{
#if defined(__powerpc__) && defined(AT_L1D_CACHEGEOMETRY)
	/* The line is in the low half, the associativity above it. */
	return plausible(getauxval(AT_L1D_CACHEGEOMETRY) & 0xffff);
#else
	return 0;
#endif
}

size_t hl_line_size_from_cpu(void)
{
#if defined(__i386__) || defined(__x86_64__)
	unsigned int eax, ebx, ecx, edx;

	/* What CLFLUSH flushes, in units of 8 bytes, if there is a CLFLUSH. */
	if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(edx & (1u << 19)))
		return 0;
	return plausible(((ebx >> 8) & 0xff) * 8ul);
#elif defined(__aarch64__)
	unsigned long ctr;

	/* DminLine: the base-2 logarithm of the line in words of 4 bytes. */
	__asm__("mrs %0, ctr_el0" : "=r"(ctr));
	return plausible(4ul << ((ctr >> 16) & 0xf));
#else
	return 0;
#endif
}

size_t hl_line_size_from_file(const char *path)
{
	unsigned long size = 0;
	char text[16];
	ssize_t length = -1;
	int cancel_state;
	int fd;

	/* A thread that is cancelled in here would leave the file open. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		length = read(fd, text, sizeof(text));
		close(fd);
	}
	pthread_setcancelstate(cancel_state, NULL);

	/* No number that makes sense fills the buffer, so none is cut off. */
	if (length < 2 || length == (ssize_t)sizeof(text) || text[length - 1] != '\n')
		return 0;
	for (ssize_t i = 0; i < length - 1; i++) {
		if (text[i] < '0' || text[i] > '9')
			return 0;
		size = size * 10 + (unsigned long)(text[i] - '0');
	}
	return plausible(size);
}
