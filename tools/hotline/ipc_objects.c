// SPDX-License-Identifier: MIT
#include "ipc_objects.h"

#include "command.h"
#include "complain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const ipc_type_name[HL_IPC_TYPES] = { "sem", "msg", "shm" };

int ipc_each(unsigned types, int (*each)(const struct hl_ipc_look *object, void *arg), void *arg)
{
	for (unsigned type = 0; type < HL_IPC_TYPES; type++) {
		int highest = types & 1u << type ? hl_ipc_look_highest(type) : -1;

		for (int index = 0; index <= highest; index++) {
			struct hl_ipc_look object;
			int rc = hl_ipc_look(type, index, &object);

			if (rc == -EACCES)
				complain("%s.%d: may not be read", ipc_type_name[type], index);
			rc = rc ? 0 : each(&object, arg);
			if (rc)
				return rc;
		}
	}
	return 0;
}

bool ipc_number(const char *text, int base, long long least, long long most, long long *to)
{
	char *end;

	errno = 0;
	*to = strtoll(text, &end, base);
	return *text && !*end && !errno && *to >= least && *to <= most;
}

/* ---- gc ---- */

struct gc {
	bool dry;
	int status;
	unsigned n;
};

static int collect(const struct hl_ipc_look *object, void *arg)
{
	struct gc *gc = arg;
	int err = 0;

	if (object->creator_lives || object->user_lives || object->waiters || object->attached)
		return 0;
	if (!gc->dry)
		err = hl_ipc_look_remove(object->type, object->id);
	if (err) {
		complain("%s %d: %s", ipc_type_name[object->type], object->id, strerror(-err));
		gc->status = STATUS_FAILED;
		return 0;
	}
	gc->n++;
	printf("%s %d, key 0x%08x, of process %d, which is gone\n", ipc_type_name[object->type],
	       object->id, (unsigned)object->key, object->creator);
	return 0;
}

int ipc_gc(bool dry)
{
	struct gc gc = { .dry = dry };

	ipc_each(~0u, collect, &gc);
	printf("%u %s\n", gc.n, dry ? "would be freed" : "freed");
	return gc.status;
}
