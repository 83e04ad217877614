// SPDX-License-Identifier: MIT
#include "sysvipc.h"

#include "complain.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY "libhotline-sysvipc.so"

/* From the directory that the command is in. */
static const char *const places[] = {
	HL_LIBRARY_FROM_COMMAND "/" LIBRARY ".0", /* the prefix */
	LIBRARY ".0", "../../" LIBRARY ".0", /* the build tree */
};

char *sysvipc_library(void)
{
	char command[PATH_MAX], path[PATH_MAX + 64];
	ssize_t n = readlink("/proc/self/exe", command, sizeof(command) - 1);
	char *slash;

	if (n < 0) {
		complain("/proc/self/exe: %s: where this command is cannot be told",
			 strerror(errno));
		return NULL;
	}
	command[n] = '\0';
	slash = strrchr(command, '/');
	if (slash)
		*slash = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		char *found;

		snprintf(path, sizeof(path), "%s/%s", command, places[i]);
		found = realpath(path, NULL);
		if (found && !access(found, R_OK))
			return found;
		free(found);
	}
	complain(LIBRARY ".0 is neither in %s nor in %s/" HL_LIBRARY_FROM_COMMAND
			 ": install hotline as a whole",
		 command, command);
	return NULL;
}

char *find_program(const char *name)
{
	const char *from = getenv("PATH");

	if (strchr(name, '/'))
		return strdup(name);
	for (from = from ? from : "/usr/bin:/bin"; *from;) {
		size_t len = strcspn(from, ":");
		char *path;

		if (asprintf(&path, "%.*s/%s", len ? (int)len : 1, len ? from : ".", name) < 0)
			return NULL;
		if (!access(path, X_OK))
			return path;
		free(path);
		from += len + (from[len] == ':');
	}
	complain("%s: no such program in PATH", name);
	return NULL;
}
