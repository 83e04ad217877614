/* SPDX-License-Identifier: MIT */
/*
 * What the reports need beyond cJSON: strings that are valid whatever bytes a
 * file holds, members that may be null, and pieces of a document that is too
 * large to be built as a whole.
 *
 * A failed allocation leaves a member out; hl_json_print() of the whole then
 * fails too, because struct hl_json remembers it.
 */
#ifndef HL_LAYOUT_JSON_H
#define HL_LAYOUT_JSON_H

#include "debuginfo/text.h"

#include <cjson/cJSON.h>

struct hl_json {
	struct hl_text clean;	/* scratch, used again from string to string */
	bool failed;
};

cJSON *hl_json_object(struct hl_json *json);
/* Each adds a member called key, which must be a literal, to the object, or an
 * element to an array where key is NULL, and returns it. */
cJSON *hl_json_add(struct hl_json *json, cJSON *parent, const char *key, cJSON *item);
cJSON *hl_json_add_object(struct hl_json *json, cJSON *parent, const char *key);
cJSON *hl_json_add_array(struct hl_json *json, cJSON *parent, const char *key);
void hl_json_add_null(struct hl_json *json, cJSON *parent, const char *key);
void hl_json_add_bool(struct hl_json *json, cJSON *parent, const char *key, bool value);
/* Exact up to 2^53, which is above all that a file may ask for. */
void hl_json_add_number(struct hl_json *json, cJSON *parent, const char *key, uint64_t value);
/* NULL adds null. */
void hl_json_add_string(struct hl_json *json, cJSON *parent, const char *key, const char *value);

/* Adds the item as JSON on one line and frees it.  0 or -ENOMEM. */
int hl_json_print(struct hl_json *json, struct hl_text *text, cJSON *item);
/* The same for an object, which is left open: more members may follow. */
int hl_json_print_open(struct hl_json *json, struct hl_text *text, cJSON *object);
void hl_json_free(struct hl_json *json);

#endif
