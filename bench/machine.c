// SPDX-License-Identifier: MIT
#include "bench/machine.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include <hotline/cacheline.h>
#include <hotline/cpumask.h>

/* The processors that the process may use. */
static int read_processors(struct bench_machine *machine)
{
	size_t bytes = CPU_ALLOC_SIZE(HL_NR_CPUS);
	cpu_set_t *set = CPU_ALLOC(HL_NR_CPUS);

	machine->processor = calloc(HL_NR_CPUS, sizeof(*machine->processor));
	if (!set || !machine->processor) {
		CPU_FREE(set);
		return -ENOMEM;
	}
	CPU_ZERO_S(bytes, set);
	if (sched_getaffinity(0, bytes, set))
		CPU_SET_S(0, bytes, set);
	for (int i = 0; i < HL_NR_CPUS; i++) {
		if (CPU_ISSET_S((size_t)i, bytes, set))
			machine->processor[machine->cpus++] = i;
	}
	CPU_FREE(set);
	return 0;
}

/* The value of the first line of a file that begins with the key; NULL: there is none. */
static char *line_value(const char *path, const char *key)
{
	FILE *from = fopen(path, "re");
	char *line = NULL, *value = NULL;
	size_t room = 0;

	while (from && !value && getline(&line, &room, from) > 0) {
		char *colon = strchr(line, ':');

		if (strncmp(line, key, strlen(key)) || !colon)
			continue;
		colon += 1 + strspn(colon + 1, " \t");
		colon[strcspn(colon, "\n")] = '\0';
		value = strdup(colon);
	}
	free(line);
	if (from)
		fclose(from);
	return value;
}

int bench_machine_read(struct bench_machine *machine)
{
	struct utsname name;

	*machine = (struct bench_machine){ .line_bytes = (unsigned)hl_cache_line_size() };
	uname(&name);
	machine->kernel = strdup(name.release);
	machine->model = line_value("/proc/cpuinfo", "model name");
	/* Not all architectures tell. */
	if (!machine->model)
		machine->model = strdup(name.machine);
	if (read_processors(machine) || !machine->kernel || !machine->model)
		return -ENOMEM;
	return 0;
}

void bench_machine_free(struct bench_machine *machine)
{
	free(machine->processor);
	free(machine->model);
	free(machine->kernel);
}
