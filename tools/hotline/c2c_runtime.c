// SPDX-License-Identifier: MIT
/*
 * Where the runtime is.  What lies at the same place from the command as it was built or
 * installed is ours, wherever the whole was moved.
 */
#include "c2c.h"

#include "complain.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const places[] = {
	"../../src/lines/runtime", /* tools/hotline/hotline of a build tree */
	"src/lines/runtime", /* its link at the top */
	("../" HL_LIBDIR),
};

int c2c_find_runtime(char *directory, size_t room)
{
	char self[PATH_MAX], path[2 * PATH_MAX], real[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	self[n > 0 ? n : 0] = '\0';
	slash = strrchr(self, '/');
	if (slash)
		*slash = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s/libhotline-c2c.so", self, places[i]);
		if (access(path, R_OK))
			continue;
		*strrchr(path, '/') = '\0';
		if (realpath(path, real) && strlen(real) < room) {
			strcpy(directory, real);
			return 0;
		}
	}
	complain("libhotline-c2c.so is not where it was installed, %s/../%s; install it again",
		 self, HL_LIBDIR);
	return -1;
}
