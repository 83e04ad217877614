// SPDX-License-Identifier: MIT
#include "lines/report.h"

#include "layout/json.h"
#include "layout/sarif.h"

#include <errno.h>

static const struct rule {
	const char *id, *title, *help;
} rules[] = {
	[HL_SHARING_FALSE] = { "false-sharing", "lines travel for nothing but where the bytes lie",
			       "Threads use different bytes of the same line. Give them lines of their own." },
	[HL_SHARING_TRUE] = { "true-sharing", "lines travel because threads share what is in them",
			      "Threads use the same bytes. Share less, or less often." },
	[HL_SHARING_MIXED] = { "mixed-sharing",
			       "lines travel for shared bytes and for others beside them",
			       "Give what is not shared a line of its own." },
};
#define BUDGET_RULE "line-budget"
#define N_RULES (sizeof(rules) / sizeof(rules[0]))

struct scratch {
	struct hl_json json;
	struct hl_text word;
};

static void add_word(struct scratch *scratch, cJSON *object, const char *key)
{
	if (scratch->word.failed)
		scratch->json.failed = true;
	else
		hl_json_add_string(&scratch->json, object, key, scratch->word.at);
}

static void add_text(struct hl_json *json, cJSON *object, const char *key, const char *text)
{
	hl_json_add_string(json, hl_json_add_object(json, object, key), "text", text);
}

static void add_rule(struct hl_json *json, cJSON *list, const char *id, const char *title,
		     const char *help)
{
	cJSON *rule = hl_json_add_object(json, list, NULL);

	hl_json_add_string(json, rule, "id", id);
	add_text(json, rule, "shortDescription", title);
	add_text(json, rule, "fullDescription", title);
	add_text(json, rule, "help", help);
}

static void add_location(struct scratch *scratch, cJSON *list, const char *file, uint32_t line)
{
	struct hl_json *json = &scratch->json;
	cJSON *physical =
		hl_json_add_object(json, hl_json_add_object(json, list, NULL), "physicalLocation");
	cJSON *artifact = hl_json_add_object(json, physical, "artifactLocation");

	hl_text_reset(&scratch->word);
	hl_sarif_uri(&scratch->word, file);
	add_word(scratch, artifact, "uri");
	if (line)
		hl_json_add_number(json, hl_json_add_object(json, physical, "region"), "startLine",
				   line);
}

/* Stable when lines move in the files, and when other objects come and go. */
static void add_fingerprint(struct scratch *scratch, cJSON *result, const struct hl_shared *finding)
{
	struct hl_json *json = &scratch->json;
	uint64_t hash = hl_sarif_hash(HL_SARIF_HASH, rules[finding->sharing].id);
	char text[17];

	hl_text_reset(&scratch->word);
	hl_object_name(&scratch->word, finding->object);
	if (!scratch->word.failed)
		hash = hl_sarif_hash(hash, scratch->word.at);
	hl_sarif_fingerprint(text, hash);
	hl_json_add_string(json, hl_json_add_object(json, result, "partialFingerprints"),
			   "hotlineSharing/v1", text);
}

static void add_finding(struct scratch *scratch, cJSON *results,
			const struct hl_lines_report *report, const struct hl_findings *findings,
			const struct hl_shared *finding)
{
	struct hl_json *json = &scratch->json;
	cJSON *result = hl_json_add_object(json, results, NULL), *locations;
	const char *file;
	uint32_t line;

	hl_json_add_string(json, result, "ruleId", rules[finding->sharing].id);
	hl_json_add_number(json, result, "ruleIndex", finding->sharing);
	hl_json_add_string(json, result, "level",
			   finding->sharing == HL_SHARING_TRUE ? "note" : "warning");
	hl_text_reset(&scratch->word);
	hl_object_name(&scratch->word, finding->object);
	hl_text_puts(&scratch->word, " (");
	hl_object_where(&scratch->word, findings, finding->object);
	hl_text_printf(&scratch->word,
		       "): %llu transfers, %llu of them for bytes that nobody else had "
		       "touched\n%s",
		       (unsigned long long)finding->transfers, (unsigned long long)finding->untrue,
		       finding->advice);
	if (finding->code)
		hl_text_printf(&scratch->word, "\n\n%s", finding->code);
	add_word(scratch, hl_json_add_object(json, result, "message"), "text");
	locations = hl_json_add_array(json, result, "locations");
	if (hl_object_place(findings, finding->object, &file, &line))
		add_location(scratch, locations, file, line);
	else
		add_location(scratch, locations, report->program, 0);
	locations = hl_json_add_array(json, result, "relatedLocations");
	for (uint32_t f = 0; f < finding->n_fields && f < 8; f++) {
		for (uint32_t u = 0; u < finding->field[f].n_users && u < 2; u++) {
			const struct hl_code *code = finding->field[f].user[u].code;

			if (code->file)
				add_location(scratch, locations, code->file, code->line);
		}
	}
	add_fingerprint(scratch, result, finding);
}

static void add_over(struct scratch *scratch, cJSON *results, const struct hl_lines_report *report,
		     const struct hl_over_budget *over)
{
	struct hl_json *json = &scratch->json;
	cJSON *result = hl_json_add_object(json, results, NULL);

	hl_json_add_string(json, result, "ruleId", BUDGET_RULE);
	hl_json_add_number(json, result, "ruleIndex", N_RULES);
	hl_json_add_string(json, result, "level", "error");
	hl_text_reset(&scratch->word);
	hl_text_printf(&scratch->word, "%s: %s", over->rule, over->said);
	add_word(scratch, hl_json_add_object(json, result, "message"), "text");
	add_location(scratch, hl_json_add_array(json, result, "locations"),
		     over->line && report->budget ? report->budget : report->program, over->line);
}

int hl_lines_report_sarif(const struct hl_lines_report *report)
{
	struct scratch scratch = { 0 };
	struct hl_json *json = &scratch.json;
	cJSON *whole = hl_json_object(json), *run, *driver, *list, *results;
	struct hl_text text = HL_TEXT_INIT;
	int status;

	hl_json_add_string(json, whole, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
	hl_json_add_string(json, whole, "version", "2.1.0");
	run = hl_json_add_object(json, hl_json_add_array(json, whole, "runs"), NULL);
	driver = hl_json_add_object(json, hl_json_add_object(json, run, "tool"), "driver");
	hl_json_add_string(json, driver, "name", "hotline c2c");
	hl_json_add_string(json, driver, "version", report->version);
	list = hl_json_add_array(json, driver, "rules");
	for (size_t i = 0; i < N_RULES; i++)
		add_rule(json, list, rules[i].id, rules[i].title, rules[i].help);
	if (report->over)
		add_rule(json, list, BUDGET_RULE,
			 "more lines were passed on than the budget allows",
			 "The budget given to --check says what may be passed on.");
	hl_json_add_string(json, run, "columnKind", "unicodeCodePoints");
	results = hl_json_add_array(json, run, "results");
	for (uint32_t p = 0; p < report->n_processes; p++) {
		const struct hl_lines_process *process = &report->process[p];

		for (uint32_t i = 0; i < hl_process_shown(report, process); i++)
			add_finding(&scratch, results, report, &process->findings,
				    &process->findings.finding[i]);
	}
	for (uint32_t i = 0; i < report->n_over; i++)
		add_over(&scratch, results, report, &report->over[i]);
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
