// SPDX-License-Identifier: MIT
/*
 * How much memory a cache takes by default: half of what is free, as far as the system, the
 * memory cgroups of the process and its limits of addresses and of data let it.
 */
#include "pagecache/internal.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* The first number of a file; otherwise if there is none ("max"). */
static uint64_t number_in(const char *path, uint64_t otherwise)
{
	FILE *file = fopen(path, "re");
	unsigned long long number = otherwise;

	if (!file)
		return otherwise;
	if (fscanf(file, "%llu", &number) != 1)
		number = otherwise;
	fclose(file);
	return number;
}

static uint64_t free_of_system(void)
{
	FILE *file = fopen("/proc/meminfo", "re");
	unsigned long long kb = 0;
	char line[128];

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "MemAvailable: %llu", &kb) == 1)
			break;
	}
	if (file)
		fclose(file);
	return kb ? kb << 10
		  : (uint64_t)sysconf(_SC_AVPHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* What a version of memory cgroups calls its files. */
struct names {
	const char *under; /* of where cgroups are mounted */
	const char *limit[2]; /* what may not be exceeded, and at what processes are slowed down */
	const char *used;
};

static const struct names v1 = { "/memory",
				 { "memory.limit_in_bytes", NULL },
				 "memory.usage_in_bytes" };
static const struct names v2 = { "", { "memory.max", "memory.high" }, "memory.current" };

/* A file of the cgroup with this path. */
static uint64_t number_of_cgroup(const char *mount, const struct names *names, const char *path,
				 const char *name, uint64_t otherwise)
{
	char file[2 * PATH_MAX + 64];

	snprintf(file, sizeof(file), "%s%s%s/%s", mount, names->under, path, name);
	return number_in(file, otherwise);
}

/* What is free in a cgroup and in all above it. */
static uint64_t free_of_cgroup(const char *mount, const struct names *names, char *path)
{
	uint64_t unused = UINT64_MAX;

	for (;;) {
		uint64_t used = number_of_cgroup(mount, names, path, names->used, 0);
		char *slash = strrchr(path, '/');

		for (unsigned i = 0; i < 2 && names->limit[i]; i++) {
			uint64_t most =
				number_of_cgroup(mount, names, path, names->limit[i], UINT64_MAX);

			if (most != UINT64_MAX)
				unused = least(unused, most > used ? most - used : 0);
		}
		if (!slash)
			return unused;
		*slash = '\0';
	}
}

uint64_t hl_free_of_cgroups(const char *own, const char *mount)
{
	FILE *file = fopen(own, "re");
	char line[PATH_MAX];
	uint64_t unused = UINT64_MAX;

	while (file && fgets(line, sizeof(line), file)) {
		char *path = strchr(line, '/');

		line[strcspn(line, "\n")] = '\0';
		if (!path)
			continue;
		if (strstr(line, ":memory:"))
			unused = least(unused, free_of_cgroup(mount, &v1, path));
		else if (!strncmp(line, "0::", 3))
			unused = least(unused, free_of_cgroup(mount, &v2, path));
	}
	if (file)
		fclose(file);
	return unused;
}

/* What is left of a limit; used: a field of statm, in pages. */
static uint64_t left_of(int resource, unsigned field)
{
	uint64_t used = 0, page = (uint64_t)sysconf(_SC_PAGESIZE);
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long pages;
	struct rlimit limit;

	for (unsigned i = 0; file && i <= field && fscanf(file, "%lu", &pages) == 1; i++)
		used = pages * page;
	if (file)
		fclose(file);
	if (getrlimit(resource, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}

/* Of all addresses, and of what is private and can be written to, which frames are. */
static uint64_t free_of_addresses(void)
{
	return least(left_of(RLIMIT_AS, 0), left_of(RLIMIT_DATA, 5));
}

size_t hl_default_limit(void)
{
	uint64_t unused = least(free_of_system(),
				least(hl_free_of_cgroups("/proc/self/cgroup", "/sys/fs/cgroup"),
				      free_of_addresses()));

	return (size_t)least(unused / 2, SIZE_MAX / 4);
}
