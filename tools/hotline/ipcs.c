// SPDX-License-Identifier: MIT
/*
 * hotline ipcs: the System V objects of a namespace.
 */
#include "command.h"

#include "complain.h"
#include "ipc_objects.h"

#include <cjson/cJSON.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum key { KEY_JSON = 0x100 };

struct options {
	unsigned types;
	bool json;
};

static const struct argp_option argp_options[] = {
	{ .name = "semaphores", .key = 's', .doc = "Semaphores" },
	{ .name = "queues", .key = 'q', .doc = "Message queues" },
	{ .name = "shmems", .key = 'm', .doc = "Shared memory" },
	{ .name = "json", .key = KEY_JSON, .doc = "As JSON" },
	IPC_NAMESPACE_OPTION,
	{ 0 }
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case 's':
		options->types |= 1 << HL_IPC_SEM;
		return 0;
	case 'q':
		options->types |= 1 << HL_IPC_MSG;
		return 0;
	case 'm':
		options->types |= 1 << HL_IPC_SHM;
		return 0;
	case KEY_JSON:
		options->json = true;
		return 0;
	case IPC_KEY_NAMESPACE:
		hl_ipc_look_in(arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = argp_options,
	.parser = parse,
	.doc = "Lists the System V objects of programs that run under hotline run --sysvipc; of "
	       "the types asked for, or of all.\v"
	       "Examples:\n"
	       "  hotline ipcs -s\n"
	       "  hotline ipcs --json | jq '.objects[] | select(.creator_lives | not)'\n",
};

static const char *owner(uint32_t uid, char number[16])
{
	struct passwd *user = getpwuid(uid);

	snprintf(number, 16, "%u", uid);
	return user ? user->pw_name : number;
}

static const char *when(int64_t seconds, char text[32])
{
	time_t t = seconds;
	struct tm tm;

	if (!seconds || !localtime_r(&t, &tm) || !strftime(text, 32, "%F %T", &tm))
		return "never";
	return text;
}

static int print(const struct hl_ipc_look *o, void *arg)
{
	char name[16], last[2][32];

	(void)arg;
	printf("%-3s %10d 0x%08x %-8s %04o %7d%s %6u %6u %10llu  %s, %s\n", ipc_type_name[o->type],
	       o->id, (unsigned)o->key, owner(o->uid, name), o->mode, o->creator,
	       o->creator_lives ? " " : "+", o->waiters, o->attached, (unsigned long long)o->n,
	       when(o->last[0], last[0]), when(o->last[1], last[1]));
	return 0;
}

static int add_json(const struct hl_ipc_look *o, void *arg)
{
	static const char *const operation[HL_IPC_TYPES][2] = { { "semop", NULL },
								{ "msgsnd", "msgrcv" },
								{ "shmat", "shmdt" } };
	cJSON *item = cJSON_CreateObject(), *last = cJSON_CreateObject();
	char text[16];

	cJSON_AddStringToObject(item, "type", ipc_type_name[o->type]);
	cJSON_AddNumberToObject(item, "id", o->id);
	cJSON_AddNumberToObject(item, "key", o->key);
	cJSON_AddNumberToObject(item, "uid", o->uid);
	cJSON_AddNumberToObject(item, "gid", o->gid);
	cJSON_AddStringToObject(item, "owner", owner(o->uid, text));
	snprintf(text, sizeof(text), "%04o", o->mode & 0777);
	cJSON_AddStringToObject(item, "mode", text);
	cJSON_AddNumberToObject(item, "creator", o->creator);
	cJSON_AddBoolToObject(item, "creator_lives", o->creator_lives);
	cJSON_AddNumberToObject(item, "changed", (double)o->changed);
	cJSON_AddNumberToObject(item, "waiters", o->waiters);
	cJSON_AddNumberToObject(item, "attached", o->attached);
	cJSON_AddNumberToObject(item,
				o->type == HL_IPC_SEM	? "semaphores"
				: o->type == HL_IPC_MSG ? "messages"
							: "bytes",
				(double)o->n);
	for (unsigned i = 0; i < 2; i++) {
		cJSON *one;

		if (!operation[o->type][i])
			continue;
		one = cJSON_AddObjectToObject(last, operation[o->type][i]);
		cJSON_AddNumberToObject(one, "time", (double)o->last[i]);
		if (o->type != HL_IPC_SEM)
			cJSON_AddNumberToObject(one, "pid", o->last_pid[i]);
	}
	cJSON_AddItemToObject(item, "last", last);
	cJSON_AddItemToArray(arg, item);
	return 0;
}

static int list_json(unsigned types)
{
	cJSON *document = cJSON_CreateObject(), *objects;
	char *text;

	cJSON_AddNumberToObject(document, "schema", 1);
	objects = cJSON_AddArrayToObject(document, "objects");
	ipc_each(types, add_json, objects);
	text = cJSON_Print(document);
	if (text)
		puts(text);
	else
		complain("out of memory");
	cJSON_free(text);
	cJSON_Delete(document);
	return text ? STATUS_FINE : STATUS_FAILED;
}

int ipcs_command(int argc, char **argv)
{
	struct options options = { 0 };

	if (argp_parse(&argp, argc, argv, 0, NULL, &options))
		return STATUS_USAGE;
	if (!options.types)
		options.types = ~0u;
	if (options.json)
		return list_json(options.types);
	printf("%-3s %10s %-10s %-8s %-4s %7s  %6s %6s %10s  %s\n", "", "id", "key", "owner",
	       "mode", "creator", "waits", "attach", "holds", "last operations");
	ipc_each(options.types, print, NULL);
	printf("+ the creator lives no more; holds: semaphores, messages, bytes of memory\n");
	return STATUS_FINE;
}
