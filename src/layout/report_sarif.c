// SPDX-License-Identifier: MIT
#include "layout/report_list.h"

#include "layout/sarif.h"
#include "layout/subject.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The rule that --check's own findings belong to, behind those of the faults. */
#define CHECK_RULE_ID		"layout-rule"
#define CHECK_RULE_INDEX	HL_N_FAULTS

/* ---- Locations. ---- */

static void add_physical(struct hl_list_scratch *scratch, cJSON *location, const char *file, uint32_t line)
{
	struct hl_json *json = &scratch->json;
	cJSON *physical = hl_json_add_object(json, location, "physicalLocation");
	cJSON *artifact = hl_json_add_object(json, physical, "artifactLocation");

	hl_text_reset(&scratch->word);
	hl_sarif_uri(&scratch->word, file);
	hl_list_add_word(scratch, artifact, "uri");
	if (line)
		hl_json_add_number(json, hl_json_add_object(json, physical, "region"), "startLine",
				   line);
}

/* Where a subject was declared; in the file that was read where that is not known. */
static void add_location(struct hl_list_scratch *scratch, const struct hl_report *report, cJSON *result,
			 struct hl_subject subject)
{
	struct hl_json *json = &scratch->json;
	cJSON *locations = hl_json_add_array(json, result, "locations");
	cJSON *location = hl_json_add_object(json, locations, NULL), *logical;
	const char *file;
	uint32_t line;

	file = hl_subject_file(report->survey->types, subject, &line);
	add_physical(scratch, location, file && *file ? file : report->path,
		     file && *file ? line : 0);
	logical = hl_json_add_object(json, hl_json_add_array(json, location, "logicalLocations"),
				     NULL);
	hl_text_reset(&scratch->word);
	hl_subject_bare_name(&scratch->word, report->survey->types, subject);
	hl_list_add_word(scratch, logical, "fullyQualifiedName");
	hl_json_add_string(json, logical, "kind", subject.variable ? "variable" : "type");
}

/* ---- Results. ---- */

/* The same fault of the same type has the same fingerprint when lines move in its
 * file, or when other types come and go. */
static void add_fingerprint(struct hl_list_scratch *scratch, const struct hl_report *report, cJSON *result,
			    struct hl_subject subject, const struct hl_fault *fault)
{
	const struct hl_types *types = report->survey->types;
	uint64_t h = hl_sarif_hash(HL_SARIF_HASH, hl_fault_name(fault->kind));
	struct hl_json *json = &scratch->json;
	uint32_t line;
	const char *file = hl_subject_file(types, subject, &line);
	char text[17];

	hl_text_reset(&scratch->word);
	hl_subject_name(&scratch->word, types, subject);
	if (scratch->word.failed) {
		json->failed = true;
		return;
	}
	h = hl_sarif_hash(h, scratch->word.at);
	h = hl_sarif_hash(h, file ? file : "");
	for (uint32_t i = 0; i < fault->n_members; i++)
		h = hl_sarif_hash(h, fault->members[i]);
	hl_sarif_fingerprint(text, h);
	hl_json_add_string(json, hl_json_add_object(json, result, "partialFingerprints"),
			   "hotlineFault/v1", text);
}

static cJSON *new_result(struct hl_json *json, const char *rule, unsigned index,
			 const char *result_level)
{
	cJSON *result = hl_json_object(json);

	hl_json_add_string(json, result, "ruleId", rule);
	hl_json_add_number(json, result, "ruleIndex", index);
	hl_json_add_string(json, result, "level", result_level);
	return result;
}

static void add_message(struct hl_list_scratch *scratch, cJSON *result)
{
	hl_list_add_word(scratch, hl_json_add_object(&scratch->json, result, "message"), "text");
}

static cJSON *make_fault(const struct hl_report *report, struct hl_list_scratch *scratch,
			 struct hl_subject subject, const struct hl_fault *fault)
{
	struct hl_json *json = &scratch->json;
	cJSON *result = new_result(json, hl_fault_name(fault->kind), fault->kind,
				   hl_sarif_level(fault->score));
	struct hl_text *word = &scratch->word;

	hl_text_reset(word);
	hl_subject_name(word, report->survey->types, subject);
	hl_text_puts(word, ": ");
	hl_text_puts(word, fault->evidence);
	if (fault->advice && *fault->advice) {
		hl_text_putc(word, '\n');
		hl_text_puts(word, fault->advice);
	}
	if (fault->text && *fault->text) {
		hl_text_puts(word, "\n\n");
		hl_text_puts(word, fault->text);
	}
	add_message(scratch, result);
	add_location(scratch, report, result, subject);
	add_fingerprint(scratch, report, result, subject, fault);
	hl_json_add(json, result, "rank", cJSON_CreateNumber(fault->score / 10.0));
	return result;
}

/* A rule of the user's that does not hold: it is found in the file of rules. */
static cJSON *make_finding(const struct hl_list *list, struct hl_list_scratch *scratch, uint32_t i)
{
	const struct hl_check *check = list->report->check;
	const struct hl_finding *finding = &check->finding[i];
	bool fails = finding->kind == HL_FINDING_BROKEN || finding->kind == HL_FINDING_UNKNOWN;
	struct hl_json *json = &scratch->json;
	cJSON *result = new_result(json, CHECK_RULE_ID, CHECK_RULE_INDEX,
				   fails ? "error" : "note");
	cJSON *locations;

	hl_text_reset(&scratch->word);
	hl_text_printf(&scratch->word, "%s: %s", finding->rule, finding->said);
	add_message(scratch, result);
	locations = hl_json_add_array(json, result, "locations");
	add_physical(scratch, hl_json_add_object(json, locations, NULL), check->rules_path,
		     finding->line);
	return result;
}

/* ---- The document. ---- */

static void add_text(struct hl_json *json, cJSON *object, const char *key, const char *text)
{
	hl_json_add_string(json, hl_json_add_object(json, object, key), "text", text);
}

static void add_rule(struct hl_json *json, cJSON *rules, const char *id, const char *title,
		     const char *help)
{
	cJSON *rule = hl_json_add_object(json, rules, NULL);

	hl_json_add_string(json, rule, "id", id);
	add_text(json, rule, "shortDescription", title);
	add_text(json, rule, "fullDescription", title);
	add_text(json, rule, "help", help);
}

/* Adds the document up to the elements of "results". */
static int add_head(struct hl_json *json, struct hl_text *text, const struct hl_report *report)
{
	cJSON *tool = hl_json_object(json);
	cJSON *driver = hl_json_add_object(json, tool, "driver");
	cJSON *rules;

	hl_json_add_string(json, driver, "name", "hotline layout");
	hl_json_add_string(json, driver, "version", report->version);
	rules = hl_json_add_array(json, driver, "rules");
	for (int kind = 0; kind < HL_N_FAULTS; kind++)
		add_rule(json, rules, hl_fault_name(kind), hl_fault_title(kind),
			 hl_fault_explanation(kind));
	if (report->check)
		add_rule(json, rules, CHECK_RULE_ID, "a rule of the project's own does not hold",
			 "The file of rules given to --check says what must hold; the message says "
			 "what was found. Change the type, or the rule.");
	hl_text_puts(text, "{\"$schema\":\"https://json.schemastore.org/sarif-2.1.0.json\","
		     "\"version\":\"2.1.0\",\"runs\":[{\"tool\":");
	int status = hl_json_print(json, text, tool);

	hl_text_puts(text, ",\n\"columnKind\":\"unicodeCodePoints\",\"results\":[");
	return status;
}

int hl_report_sarif(const struct hl_report *report)
{
	struct hl_list list = { .report = report };
	struct hl_json json = { 0 };
	struct hl_text text = HL_TEXT_INIT;
	int status = add_head(&json, &text, report);

	if (!status)
		status = hl_list_write_text(report, &text);
	if (!status)
		status = hl_list_write_faults(&list, hl_report_ranking(report), make_fault);
	if (!status && report->check)
		status = hl_list_write(&list, report->check->n, make_finding);
	hl_text_puts(&text, "]}]}\n");
	if (!status)
		status = hl_list_write_text(report, &text);
	hl_json_free(&json);
	hl_text_free(&text);
	return status;
}
