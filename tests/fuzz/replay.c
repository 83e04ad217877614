// SPDX-License-Identifier: MIT
/*
 * Runs a target over files, and over all files of directories, with the bounds that
 * `make fuzz` has.
 */
#include "target.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

static unsigned n_tests;

static uint8_t *read_file(const char *path, size_t *size)
{
	FILE *file = fopen(path, "rb");
	struct stat st;
	uint8_t *data = NULL;

	if (file && !fstat(fileno(file), &st)) {
		*size = (size_t)st.st_size;
		/* Of its very size, so that reading past the end is seen. */
		data = malloc(*size ? *size : 1);
		if (data && fread(data, 1, *size, file) != *size) {
			free(data);
			data = NULL;
		}
	}
	if (file)
		fclose(file);
	return data;
}

static bool run(const char *path)
{
	size_t size;
	uint8_t *data = read_file(path, &size);
	const char *name = strrchr(path, '/');

	if (data) {
		fuzz_watch(true);
		LLVMFuzzerTestOneInput(data, size);
		fuzz_watch(false);
	}
	printf("%sok %u - %s\n", data ? "" : "not ", ++n_tests, name ? name + 1 : path);
	fflush(stdout);
	free(data);
	return data;
}

static bool run_all(const char *path)
{
	struct dirent **entry;
	int n = scandir(path, &entry, NULL, alphasort);
	bool good = true;

	if (n < 0)
		return errno == ENOTDIR ? run(path) : false;
	for (int i = 0; i < n; i++) {
		char *inner = NULL;

		if (entry[i]->d_name[0] != '.') {
			FUZZ_CHECK(asprintf(&inner, "%s/%s", path, entry[i]->d_name) > 0);
			good = run(inner) && good;
		}
		free(inner);
		free(entry[i]);
	}
	free(entry);
	return good;
}

int main(int argc, char **argv)
{
	bool good = true, small;

	fuzz_all_parts = true;
	for (int i = 1; i < argc; i++)
		good = run_all(argv[i]) && good;
	small = fuzz_memory_is_bounded(++n_tests);
	printf("1..%u\n", n_tests);
	return good && small ? 0 : 1;
}
