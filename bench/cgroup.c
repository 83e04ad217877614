// SPDX-License-Identifier: MIT
/*
 * A limit of memory for a run, by a memory cgroup of its own: of the first version or of the
 * second, as the system has them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/pages.h"

struct hierarchy {
	const char *root;
	const char *limit;
};

static const struct hierarchy hierarchies[] = {
	{ "/sys/fs/cgroup/memory", "memory.limit_in_bytes" },
	{ "/sys/fs/cgroup", "memory.max" },
};

static char group[128];
static const struct hierarchy *used;

static int write_to(const char *directory, const char *name, const char *text)
{
	char path[256];
	int fd, rc = 0;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		rc = -errno;
	close(fd);
	return rc;
}

static int make_group(const struct hierarchy *hierarchy, uint64_t bytes)
{
	char text[32];
	int rc;

	snprintf(group, sizeof(group), "%s/hotline-bench-%d", hierarchy->root, (int)getpid());
	if (mkdir(group, 0755) && errno != EEXIST)
		return -errno;
	snprintf(text, sizeof(text), "%llu", (unsigned long long)bytes);
	rc = write_to(group, hierarchy->limit, text);
	if (rc)
		rmdir(group);
	return rc;
}

int bench_limit_memory(uint64_t bytes)
{
	int rc = -ENOENT;

	for (unsigned i = 0; i < 2 && rc; i++) {
		rc = make_group(&hierarchies[i], bytes);
		used = &hierarchies[i];
	}
	if (rc)
		return rc;
	rc = write_to(group, "cgroup.procs", "0");
	if (rc)
		rmdir(group);
	return rc;
}

void bench_unlimit_memory(void)
{
	write_to(used->root, "cgroup.procs", "0");
	rmdir(group);
}

const char *bench_no_limit(void)
{
	static int known;
	static bool possible;

	if (!known) {
		known = 1;
		for (unsigned i = 0; i < 2 && !possible; i++)
			possible = !make_group(&hierarchies[i], UINT64_C(1) << 30) && !rmdir(group);
	}
	return possible ? NULL : "needs a limit of memory: run it as root, with memory cgroups";
}
