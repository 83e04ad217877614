// SPDX-License-Identifier: MIT
/*
 * How much memory a cache takes by default: half of what is free, as far as the system, the
 * memory cgroups of the process and its address space let it.
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

/* What is free in a cgroup and in all above it. */
static uint64_t free_of_cgroup(const char *root, char *path, const char *limit, const char *used)
{
	uint64_t unused = UINT64_MAX;
	char file[PATH_MAX + 64];

	for (;;) {
		uint64_t most, now;
		char *slash = strrchr(path, '/');

		snprintf(file, sizeof(file), "%s%s/%s", root, path, limit);
		most = number_in(file, UINT64_MAX);
		snprintf(file, sizeof(file), "%s%s/%s", root, path, used);
		now = number_in(file, 0);
		unused = least(unused, most > now ? most - now : 0);
		if (!slash)
			return unused;
		*slash = '\0';
	}
}

static uint64_t free_of_cgroups(void)
{
	FILE *file = fopen("/proc/self/cgroup", "re");
	char line[PATH_MAX];
	uint64_t unused = UINT64_MAX;

	while (file && fgets(line, sizeof(line), file)) {
		char *path = strchr(line, '/');

		line[strcspn(line, "\n")] = '\0';
		if (!path)
			continue;
		if (strstr(line, ":memory:"))
			unused = least(unused, free_of_cgroup("/sys/fs/cgroup/memory", path,
							      "memory.limit_in_bytes",
							      "memory.usage_in_bytes"));
		else if (!strncmp(line, "0::", 3))
			unused = least(unused, free_of_cgroup("/sys/fs/cgroup", path, "memory.max",
							      "memory.current"));
	}
	if (file)
		fclose(file);
	return unused;
}

static uint64_t free_of_addresses(void)
{
	uint64_t used = number_in("/proc/self/statm", 0) * (uint64_t)sysconf(_SC_PAGESIZE);
	struct rlimit limit;

	if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}

size_t hl_default_limit(void)
{
	uint64_t unused = least(free_of_system(), least(free_of_cgroups(), free_of_addresses()));

	return (size_t)least(unused / 2, SIZE_MAX / 4);
}
