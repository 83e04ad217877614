// SPDX-License-Identifier: MIT
/*
 * The bytes are a file: it is opened as any that a user names, and if it opens,
 * everything is reported that can be.
 */
#include "target.h"

#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int memory_file(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	FUZZ_CHECK(fd >= 0);
	while (size) {
		ssize_t n = write(fd, data, size);

		FUZZ_CHECK(n > 0);
		data += n;
		size -= (size_t)n;
	}
	return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Names in the file must lead nowhere but to what is not there. */
	const struct hl_types_options options = {
		.debug_dir = "/nonexistent", .btf_base = "/nonexistent", .threads = 1,
	};
	int fd = memory_file(data, size);
	struct hl_types *types = NULL;
	struct hl_error err;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);

	int rc = hl_types_open(&types, path, &options, &err);

	if (rc) {
		FUZZ_CHECK(rc < 0 && *err.text && memchr(err.text, 0, sizeof(err.text)));
	} else {
		fuzz_check_types(types);
		fuzz_report(types, fuzz_seed(data, size));
	}
	hl_types_close(types);
	close(fd);
	return 0;
}
