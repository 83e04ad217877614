/* SPDX-License-Identifier: MIT */
/*
 * What the commands for System V objects share.
 */
#ifndef HOTLINE_IPC_OBJECTS_H
#define HOTLINE_IPC_OBJECTS_H

#include <argp.h>
#include <stdbool.h>

#include "sysvipc/look.h"

/* --namespace DIR, for each of them. */
#define IPC_KEY_NAMESPACE 0x180
#define IPC_NAMESPACE_OPTION \
	{ \
		.name = "namespace", .key = IPC_KEY_NAMESPACE, .arg = "DIR", \
		.doc = "Where the objects are (HOTLINE_SYSVIPC_DIR, else one of your own " \
		       "below /dev/shm)" \
	}

/* "sem", "msg", "shm". */
extern const char *const ipc_type_name[HL_IPC_TYPES];

/* Calls @each for every object of the types wanted (bits 1 << type), until it returns not 0. */
int ipc_each(unsigned types, int (*each)(const struct hl_ipc_look *object, void *arg), void *arg);

/* A decimal id, or a key in any base of C: false with nothing said if it is neither. */
bool ipc_number(const char *text, int base, long long least, long long most, long long *to);

/* Frees orphans: objects whose creator and last users are dead, that nobody waits for or has
 * attached. Says each; only says it if @dry. The exit status. */
int ipc_gc(bool dry);

#endif
