/* SPDX-License-Identifier: MIT */
#include "clock.h"

#include "sys.h"

#include <elf.h>
#include <link.h>
#include <stdbool.h>

static int (*vdso_clock_gettime)(clockid_t, struct timespec *);
static time_t (*vdso_time)(time_t *);

static void get_time(clockid_t clock, struct timespec *to)
{
	if (!vdso_clock_gettime || vdso_clock_gettime(clock, to))
		HL_SYS(SYS_clock_gettime, clock, to, 0, 0, 0, 0);
}

int64_t hl_ipc_seconds(void)
{
	struct timespec now = { 0 };

	if (vdso_time)
		return vdso_time(NULL);
	get_time(CLOCK_REALTIME_COARSE, &now);
	return now.tv_sec;
}

int64_t hl_ipc_now(void)
{
	struct timespec now = { 0 };

	get_time(CLOCK_MONOTONIC, &now);
	return now.tv_sec * (int64_t)1000000000 + now.tv_nsec;
}

static bool same(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

/* How many symbols a GNU hash table knows of: one more than the last of the last chain. */
static uint32_t count_gnu(const uint32_t *hash)
{
	uint32_t n_buckets = hash[0], first = hash[1], n_words = hash[2], last = 0, i;
	const uint32_t *buckets = hash + 4 + n_words * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
	const uint32_t *chains = buckets + n_buckets;

	for (i = 0; i < n_buckets; i++)
		last = buckets[i] > last ? buckets[i] : last;
	if (last < first)
		return 0;
	while (!(chains[last - first] & 1))
		last++;
	return last + 1;
}

static void read_vdso(uintptr_t base)
{
	const ElfW(Ehdr) *head = (const ElfW(Ehdr) *)base;
	const ElfW(Phdr) *program = (const ElfW(Phdr) *)(base + head->e_phoff);
	const ElfW(Dyn) *dynamic = NULL;
	const ElfW(Sym) *symbols = NULL;
	const char *names = NULL;
	uintptr_t shift = base;
	uint32_t n = 0, i;

	for (i = 0; i < head->e_phnum; i++) {
		if (program[i].p_type == PT_LOAD)
			shift = base + program[i].p_offset - program[i].p_vaddr;
		if (program[i].p_type == PT_DYNAMIC)
			dynamic = (const ElfW(Dyn) *)(base + program[i].p_offset);
	}
	for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++) {
		const void *at = (const void *)(shift + dynamic->d_un.d_ptr);

		if (dynamic->d_tag == DT_SYMTAB)
			symbols = at;
		if (dynamic->d_tag == DT_STRTAB)
			names = at;
		if (dynamic->d_tag == DT_HASH)
			n = ((const uint32_t *)at)[1];
		if (dynamic->d_tag == DT_GNU_HASH && !n)
			n = count_gnu(at);
	}
	for (i = 0; symbols && names && i < n; i++) {
		const char *name = names + symbols[i].st_name;
		uintptr_t at = shift + symbols[i].st_value;

		if (!symbols[i].st_shndx)
			continue;
		if (same(name, "__vdso_time"))
			vdso_time = (time_t(*)(time_t *))at;
		if (same(name, "__vdso_clock_gettime") || same(name, "__kernel_clock_gettime"))
			vdso_clock_gettime = (int (*)(clockid_t, struct timespec *))at;
	}
}

void hl_ipc_clock_init(void)
{
	ElfW(auxv_t) entry;
	int fd = hl_sys_openat(AT_FDCWD, "/proc/self/auxv", O_RDONLY, 0);

	if (fd < 0)
		return;
	while (hl_sys_read(fd, &entry, sizeof(entry)) == sizeof(entry) && entry.a_type != AT_NULL)
		if (entry.a_type == AT_SYSINFO_EHDR && entry.a_un.a_val)
			read_vdso(entry.a_un.a_val);
	hl_sys_close(fd);
}
