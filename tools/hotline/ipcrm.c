// SPDX-License-Identifier: MIT
/*
 * hotline ipcrm, hotline ipcmk: removing and making System V objects.
 */
#include "command.h"

#include "complain.h"
#include "ipc_objects.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/random.h>

/* ---- ipcrm ---- */

static const struct argp_option remove_options[] = {
	{ .name = "semaphore-id", .key = 's', .arg = "ID", .doc = "A set of semaphores" },
	{ .name = "queue-id", .key = 'q', .arg = "ID", .doc = "A message queue" },
	{ .name = "shmem-id", .key = 'm', .arg = "ID", .doc = "A segment of shared memory" },
	{ .name = "semaphore-key", .key = 'S', .arg = "KEY", .doc = "The same by their keys" },
	{ .name = "queue-key", .key = 'Q', .arg = "KEY" },
	{ .name = "shmem-key", .key = 'M', .arg = "KEY" },
	IPC_NAMESPACE_OPTION,
	{ 0 }
};

struct removal {
	int status;
	bool any;
};

static enum hl_ipc_type type_of(int key)
{
	return strchr("sS", key) ? HL_IPC_SEM : strchr("qQ", key) ? HL_IPC_MSG : HL_IPC_SHM;
}

static void remove_one(struct argp_state *state, struct removal *removal, int key, const char *arg)
{
	enum hl_ipc_type type = type_of(key);
	bool by_key = key < 'a';
	long long number;
	int id;

	if (!ipc_number(arg, 0, by_key ? INT_MIN : 0, by_key ? UINT_MAX : INT_MAX, &number))
		argp_error(state, "-%c takes %s, not \"%s\"", key, by_key ? "a key" : "an id", arg);
	id = by_key ? hl_ipc_look_key(type, (int32_t)number) : (int)number;
	if (id >= 0)
		id = hl_ipc_look_remove(type, id);
	removal->any = true;
	if (id >= 0)
		return;
	complain("%s %s: %s", ipc_type_name[type], arg,
		 id == -EINVAL || id == -ENOENT
			 ? "there is no such object here; hotline ipcs lists them"
			 : strerror(-id));
	removal->status = STATUS_FAILED;
}

static error_t parse_removal(int key, char *arg, struct argp_state *state)
{
	struct removal *removal = state->input;

	switch (key) {
	case 's':
	case 'q':
	case 'm':
	case 'S':
	case 'Q':
	case 'M':
		remove_one(state, removal, key, arg);
		return 0;
	case IPC_KEY_NAMESPACE:
		hl_ipc_look_in(arg);
		return 0;
	case ARGP_KEY_END:
		if (!removal->any)
			argp_error(state, "say what to remove");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int ipcrm_command(int argc, char **argv)
{
	static const struct argp argp = {
		.options = remove_options,
		.parser = parse_removal,
		.doc = "Removes System V objects of programs under hotline run --sysvipc. Give "
		       "--namespace first.\v"
		       "Examples:\n"
		       "  hotline ipcrm -s 98305\n"
		       "  hotline ipcrm -M 0x52e6a1 -q 3\n",
	};
	struct removal removal = { 0 };

	if (argp_parse(&argp, argc, argv, 0, NULL, &removal))
		return STATUS_USAGE;
	return removal.status;
}

/* ---- ipcmk ---- */

struct making {
	bool wanted[HL_IPC_TYPES];
	long long n[HL_IPC_TYPES];
	long long mode;
};

static const struct argp_option make_options[] = {
	{ .name = "semaphore", .key = 'S', .arg = "N", .doc = "A set of N semaphores" },
	{ .name = "queue", .key = 'Q', .doc = "A message queue" },
	{ .name = "shmem", .key = 'M', .arg = "BYTES", .doc = "A segment of shared memory" },
	{ .name = "mode", .key = 'p', .arg = "MODE", .doc = "In octal (0644)" },
	IPC_NAMESPACE_OPTION,
	{ 0 }
};

static error_t parse_making(int key, char *arg, struct argp_state *state)
{
	struct making *making = state->input;
	enum hl_ipc_type type;

	switch (key) {
	case 'S':
	case 'Q':
	case 'M':
		type = type_of(key);
		making->wanted[type] = true;
		if (arg && !ipc_number(arg, 0, 1, LLONG_MAX, &making->n[type]))
			argp_error(state, "-%c takes a number from 1 on, not \"%s\"", key, arg);
		return 0;
	case 'p':
		if (!ipc_number(arg, 8, 0, 0777, &making->mode))
			argp_error(state, "-p takes a mode from 0 to 0777, not \"%s\"", arg);
		return 0;
	case IPC_KEY_NAMESPACE:
		hl_ipc_look_in(arg);
		return 0;
	case ARGP_KEY_END:
		for (unsigned i = 0; i < HL_IPC_TYPES; i++) {
			if (making->wanted[i])
				return 0;
		}
		argp_error(state, "say what to make: -S N, -Q or -M BYTES");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* With a key that nobody has. */
static int make(enum hl_ipc_type type, long long n, int mode)
{
	int id = -EEXIST;

	while (id == -EEXIST) {
		int32_t key;

		if (getrandom(&key, sizeof(key), 0) != sizeof(key))
			return -errno;
		id = key == IPC_PRIVATE ? -EEXIST
					: hl_ipc_look_make(type, key, (uint64_t)n,
							   mode | IPC_CREAT | IPC_EXCL);
	}
	return id;
}

int ipcmk_command(int argc, char **argv)
{
	static const struct argp argp = {
		.options = make_options,
		.parser = parse_making,
		.doc = "Makes System V objects for programs under hotline run --sysvipc, with keys "
		       "that nobody has, and prints their ids.\v"
		       "Examples:\n"
		       "  hotline ipcmk -S 4 -p 0600\n",
	};
	struct making making = { .mode = 0644 };
	int status = STATUS_FINE;

	if (argp_parse(&argp, argc, argv, 0, NULL, &making))
		return STATUS_USAGE;
	for (unsigned type = 0; type < HL_IPC_TYPES; type++) {
		int id;

		if (!making.wanted[type])
			continue;
		id = make(type, making.n[type], (int)making.mode);
		if (id >= 0) {
			printf("%s %d\n", ipc_type_name[type], id);
			continue;
		}
		complain("%s: %s", ipc_type_name[type], strerror(-id));
		status = STATUS_FAILED;
	}
	return status;
}
