// SPDX-License-Identifier: MIT
#include "lines/report.h"

#include "layout/json.h"

#include <errno.h>

struct scratch {
	struct hl_json json;
	struct hl_text word;
};

static void add_word(struct scratch *scratch, cJSON *object, const char *key)
{
	if (scratch->word.failed)
		scratch->json.failed = true;
	else
		hl_json_add_string(&scratch->json, object, key,
				   scratch->word.at ? scratch->word.at : "");
}

static void add_object(struct scratch *scratch, cJSON *parent, const char *key,
		       const struct hl_findings *findings, const struct hl_object *object)
{
	static const char *const kind[] = {
		[HL_OBJECT_STATIC] = "static",	  [HL_OBJECT_HEAP] = "heap",
		[HL_OBJECT_MAPPED] = "mapped",	  [HL_OBJECT_STACK] = "stack",
		[HL_OBJECT_TLS] = "thread-local", [HL_OBJECT_UNKNOWN] = "unknown",
	};
	struct hl_json *json = &scratch->json;
	cJSON *at = hl_json_add_object(json, parent, key);
	const char *file;
	uint32_t line;

	hl_text_reset(&scratch->word);
	hl_object_name(&scratch->word, object);
	add_word(scratch, at, "name");
	hl_json_add_string(json, at, "kind", kind[object->kind]);
	hl_json_add_number(json, at, "size", object->named.size);
	hl_json_add_bool(json, at, "several", object->several);
	hl_text_reset(&scratch->word);
	hl_object_where(&scratch->word, findings, object);
	add_word(scratch, at, "where");
	if (hl_object_place(findings, object, &file, &line)) {
		hl_json_add_string(json, at, "file", file);
		hl_json_add_number(json, at, "line", line);
	} else {
		hl_json_add_null(json, at, "file");
		hl_json_add_null(json, at, "line");
	}
}

static void add_counts(struct hl_json *json, cJSON *to, uint64_t accesses, uint64_t transfers,
		       uint64_t untrue)
{
	hl_json_add_number(json, to, "accesses", accesses);
	hl_json_add_number(json, to, "transfers", transfers);
	hl_json_add_number(json, to, "false_transfers", untrue);
}

static void add_user(struct scratch *scratch, cJSON *users, const struct hl_findings *findings,
		     const struct hl_user *user)
{
	struct hl_json *json = &scratch->json;
	cJSON *at = hl_json_add_object(json, users, NULL);

	hl_json_add_string(json, at, "group", findings->group[user->group].name);
	if (user->thread)
		hl_json_add_number(json, at, "thread", user->thread);
	else
		hl_json_add_null(json, at, "thread");
	hl_json_add_string(json, at, "access", hl_lines_verb(user->flags));
	hl_json_add_bool(json, at, "atomic", user->flags & HL_RAW_ATOMIC);
	hl_json_add_string(json, at, "function", user->code->function);
	hl_text_reset(&scratch->word);
	hl_code_place(&scratch->word, user->code);
	add_word(scratch, at, "place");
	add_counts(json, at, user->accesses, user->transfers, user->untrue);
	if (user->from) {
		hl_text_reset(&scratch->word);
		hl_code_place(&scratch->word, user->from);
		add_word(scratch, at, "from");
	} else {
		hl_json_add_null(json, at, "from");
	}
}

static void add_field(struct scratch *scratch, cJSON *fields, const struct hl_findings *findings,
		      const struct hl_touched *field)
{
	struct hl_json *json = &scratch->json;
	cJSON *at = hl_json_add_object(json, fields, NULL), *users;

	hl_text_reset(&scratch->word);
	hl_object_name(&scratch->word, field->object);
	add_word(scratch, at, "object");
	hl_json_add_string(json, at, "name", field->name);
	hl_json_add_string(json, at, "type", field->type);
	hl_json_add_number(json, at, "offset", field->offset);
	hl_json_add_number(json, at, "size", field->size);
	add_counts(json, at, field->accesses, field->transfers, field->untrue);
	users = hl_json_add_array(json, at, "users");
	for (uint32_t i = 0; i < field->n_users; i++)
		add_user(scratch, users, findings, &field->user[i]);
}

static void add_finding(struct scratch *scratch, cJSON *list, const struct hl_findings *findings,
			const struct hl_shared *finding)
{
	struct hl_json *json = &scratch->json;
	cJSON *at = hl_json_add_object(json, list, NULL), *fields, *others;
	struct hl_letters letters = { .n = 0 };

	add_object(scratch, at, "object", findings, finding->object);
	hl_json_add_string(json, at, "sharing", hl_sharing_name(finding->sharing));
	add_counts(json, at, finding->accesses, finding->transfers, finding->untrue);
	hl_json_add_number(json, at, "lines", finding->n_lines);
	if (finding->line.transfers) {
		hl_text_reset(&scratch->word);
		hl_lines_picture(&scratch->word, &finding->line, &letters);
		add_word(scratch, at, "picture");
	} else {
		hl_json_add_null(json, at, "picture");
	}
	fields = hl_json_add_array(json, at, "fields");
	for (uint32_t i = 0; i < finding->n_fields; i++)
		add_field(scratch, fields, findings, &finding->field[i]);
	others = hl_json_add_array(json, at, "shares_lines_with");
	for (uint32_t i = 0; i < finding->n_others; i++)
		add_object(scratch, others, NULL, findings, finding->other[i]);
	hl_json_add_string(json, at, "advice", finding->advice);
	hl_json_add_string(json, at, "proposal", finding->code);
	if (finding->code)
		hl_json_add_number(json, at, "proposal_size", finding->new_size);
	else
		hl_json_add_null(json, at, "proposal_size");
}

static void add_process(struct scratch *scratch, cJSON *list,
			const struct hl_lines_process *process, uint32_t shown)
{
	const struct hl_findings *findings = &process->findings;
	struct hl_json *json = &scratch->json;
	cJSON *at = hl_json_add_object(json, list, NULL), *groups, *modules, *all;

	hl_json_add_number(json, at, "pid", process->file.header.pid);
	hl_json_add_number(json, at, "parent", process->file.header.parent);
	hl_json_add_bool(json, at, "whole", process->file.whole);
	hl_json_add_number(json, at, "signal", process->file.end.signal);
	add_counts(json, at, findings->accesses, findings->transfers, findings->untrue);
	hl_json_add_number(json, at, "lost_transfers", findings->lost);
	groups = hl_json_add_array(json, at, "threads");
	for (uint32_t i = 0; i < findings->n_groups; i++) {
		cJSON *group = hl_json_add_object(json, groups, NULL);

		hl_json_add_string(json, group, "group", findings->group[i].name);
		hl_json_add_number(json, group, "number", findings->group[i].n_threads);
		hl_json_add_number(json, group, "accesses", findings->group[i].accesses);
		hl_json_add_number(json, group, "transfers", findings->group[i].transfers);
	}
	modules = hl_json_add_array(json, at, "not_seen");
	for (uint32_t i = 0; i < process->file.n_modules; i++) {
		if (hl_lines_not_seen(&process->file.module[i]))
			hl_json_add_string(json, modules, NULL, process->file.module[i].path);
	}
	all = hl_json_add_array(json, at, "findings");
	for (uint32_t i = 0; i < shown; i++)
		add_finding(scratch, all, findings, &findings->finding[i]);
}

int hl_lines_report_json(const struct hl_lines_report *report)
{
	struct scratch scratch = { 0 };
	struct hl_json *json = &scratch.json;
	cJSON *whole = hl_json_object(json), *list, *over;
	struct hl_text text = HL_TEXT_INIT;
	int status;

	hl_json_add_number(json, whole, "schema", 1);
	hl_json_add_string(json, whole, "program", report->program);
	hl_json_add_number(json, whole, "line_bytes",
			   report->n_processes ? report->process[0].file.header.line : 64);
	list = hl_json_add_array(json, whole, "processes");
	for (uint32_t i = 0; i < report->n_processes; i++) {
		if (hl_process_counts(&report->process[i]))
			add_process(&scratch, list, &report->process[i],
				    hl_process_shown(report, &report->process[i]));
	}
	if (report->over) {
		over = hl_json_add_array(json, whole, "over_budget");
		for (uint32_t i = 0; i < report->n_over; i++) {
			cJSON *at = hl_json_add_object(json, over, NULL);

			hl_json_add_string(json, at, "rule", report->over[i].rule);
			hl_json_add_string(json, at, "said", report->over[i].said);
		}
	}
	status = hl_json_print(json, &text, whole);
	hl_text_putc(&text, '\n');
	if (!status && text.failed)
		status = -ENOMEM;
	if (!status)
		status = report->write(report->write_arg, text.at, text.len);
	hl_text_free(&text);
	hl_text_free(&scratch.word);
	hl_json_free(json);
	return status;
}
