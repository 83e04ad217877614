// SPDX-License-Identifier: MIT
#include "layout/json.h"

#include "layout/clean.h"

#include <errno.h>

cJSON *hl_json_add(struct hl_json *json, cJSON *parent, const char *key, cJSON *item)
{
	if (item && parent &&
	    (key ? cJSON_AddItemToObjectCS(parent, key, item) : cJSON_AddItemToArray(parent, item)))
		return item;
	json->failed = true;
	cJSON_Delete(item);
	return NULL;
}

cJSON *hl_json_object(struct hl_json *json)
{
	cJSON *object = cJSON_CreateObject();

	if (!object)
		json->failed = true;
	return object;
}

cJSON *hl_json_add_object(struct hl_json *json, cJSON *parent, const char *key)
{
	return hl_json_add(json, parent, key, cJSON_CreateObject());
}

cJSON *hl_json_add_array(struct hl_json *json, cJSON *parent, const char *key)
{
	return hl_json_add(json, parent, key, cJSON_CreateArray());
}

void hl_json_add_null(struct hl_json *json, cJSON *parent, const char *key)
{
	hl_json_add(json, parent, key, cJSON_CreateNull());
}

void hl_json_add_bool(struct hl_json *json, cJSON *parent, const char *key, bool value)
{
	hl_json_add(json, parent, key, cJSON_CreateBool(value));
}

void hl_json_add_number(struct hl_json *json, cJSON *parent, const char *key, uint64_t value)
{
	hl_json_add(json, parent, key, cJSON_CreateNumber(value));
}

void hl_json_add_string(struct hl_json *json, cJSON *parent, const char *key, const char *value)
{
	if (!value) {
		hl_json_add_null(json, parent, key);
		return;
	}
	/* The empty string first: the text is then there even when value is empty. */
	hl_text_reset(&json->clean);
	hl_text_puts(&json->clean, "");
	hl_text_puts(&json->clean, value);
	hl_clean_from(&json->clean, 0);
	if (json->clean.failed)
		json->failed = true;
	else
		hl_json_add(json, parent, key, cJSON_CreateString(json->clean.at));
}

int hl_json_print(struct hl_json *json, struct hl_text *text, cJSON *item)
{
	char *printed = json->failed ? NULL : cJSON_PrintUnformatted(item);

	cJSON_Delete(item);
	if (!printed) {
		json->failed = true;
		return -ENOMEM;
	}
	hl_text_puts(text, printed);
	cJSON_free(printed);
	return 0;
}

int hl_json_print_open(struct hl_json *json, struct hl_text *text, cJSON *object)
{
	int status = hl_json_print(json, text, object);

	if (!status && !text->failed)
		text->at[--text->len] = '\0';
	return status;
}

void hl_json_free(struct hl_json *json)
{
	hl_text_free(&json->clean);
}
