/* SPDX-License-Identifier: MIT */
/*
 * Memory with one object a CPU: one mapping, a stride of whole line pairs, touched and so
 * taken from the system CPU by CPU. What is known of the mapping lies before the first
 * object, at the end of a page that holds nothing else.
 */
#include "internal.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

struct percpu {
	size_t stride;
	size_t bytes;	/* of the whole mapping, the page before the objects included */
};

static struct percpu *head_of(void *percpu)
{
	return (struct percpu *)percpu - 1;
}

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

void *hl_percpu_alloc(size_t size, size_t align)
{
	size_t page = page_size(), stride;

	if (!size || !align || (align & (align - 1)) || align > page ||
	    size > SIZE_MAX / HL_NR_CPUS / 2) {
		errno = EINVAL;
		return NULL;
	}
	if (align < HL_CACHE_LINE_PAIR)
		align = HL_CACHE_LINE_PAIR;
	stride = (size + align - 1) & ~(align - 1);

	size_t bytes = page + stride * HL_NR_CPUS;
	char *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (map == MAP_FAILED) {
		errno = ENOMEM;
		return NULL;
	}
	*head_of(map + page) = (struct percpu){ .stride = stride, .bytes = bytes };
	return map + page;
}

void hl_percpu_free(void *percpu)
{
	if (percpu)
		munmap((char *)percpu - page_size(), head_of(percpu)->bytes);
}

void *hl_per_cpu_ptr(void *percpu, int cpu)
{
	return (char *)percpu + head_of(percpu)->stride * (size_t)cpu;
}

void *hl_this_cpu_ptr(void *percpu)
{
	return hl_this_cpu ? hl_per_cpu_ptr(percpu, hl_this_cpu->id) : NULL;
}
