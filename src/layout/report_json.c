// SPDX-License-Identifier: MIT
#include "layout/report_list.h"

#include "layout/picture.h"
#include "layout/shape.h"
#include "layout/subject.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- Types. ---- */

/* Where the members of a struct go, and of those without a name inside it. */
struct nest {
	struct hl_list_scratch *scratch;
	const struct hl_types *types;
	unsigned line;
	uint32_t budget;	/* members of structs inside that may still be printed: a hostile
				 * file can nest the same struct in itself by way of others a great
				 * many times */
};

#define MOST_INSIDE	65536


static void add_members(struct nest *nest, cJSON *type, const struct hl_shape *shape,
			uint64_t base, unsigned depth);

/* What kind of member it is when it is no plain one. */
static const char *role(const struct hl_member *member)
{
	if (member->flags & HL_MEMBER_VIRTUAL)
		return "virtual-base";
	if (member->flags & HL_MEMBER_BASE)
		return "base";
	if (member->flags & HL_MEMBER_VPTR)
		return "vptr";
	if (member->flags & HL_MEMBER_VARIANT)
		return "variant";
	if (member->flags & HL_MEMBER_DISCRIMINANT)
		return "discriminant";
	return NULL;
}

/* The struct or union without a name that the member itself declares, perhaps as an
 * array of them; 0 when its type is another. */
static hl_type_id declared_inside(const struct hl_types *types, const struct hl_member *member)
{
	hl_type_id id = member->flags & HL_MEMBER_BASE ? 0 : member->type;

	for (unsigned depth = 0; depth < HL_MAX_DEPTH; depth++) {
		const struct hl_type *type = &types->type[id];

		switch (type->kind) {
		case HL_ARRAY:
		case HL_CONST:
		case HL_VOLATILE:
		case HL_ATOMIC:
			id = type->target;
			break;
		default:
			return hl_kind_is_aggregate(type->kind) && !type->name ? id : 0;
		}
	}
	return 0;
}

/* Its members: no other place in the report has them. */
static void add_inner_members(struct nest *nest, cJSON *object, const struct hl_member *member,
			      uint64_t base, unsigned depth)
{
	const struct hl_types *types = nest->types;
	hl_type_id id = declared_inside(types, member);
	struct hl_shape inner = { 0 };

	if (!id || depth >= HL_MAX_DEPTH)
		return;
	if (hl_shape_measure(&inner, types, id, nest->line))
		nest->scratch->json.failed = true;
	else
		add_members(nest, object, &inner, base, depth + 1);
	hl_shape_free(&inner);
}

static void add_member(struct nest *nest, cJSON *members, const struct hl_slot *slot, uint64_t base,
		       unsigned depth)
{
	struct hl_list_scratch *scratch = nest->scratch;
	const struct hl_member *member = &nest->types->member[slot->member];
	struct hl_json *json = &scratch->json;
	cJSON *object = hl_json_add_object(json, members, NULL);

	hl_text_reset(&scratch->word);
	hl_declare(&scratch->word, nest->types, member->type, NULL);
	hl_json_add_string(json, object, "name", member->name);
	hl_list_add_word(scratch, object, "type");
	if (member->flags & HL_MEMBER_VIRTUAL)
		hl_json_add_null(json, object, "offset");
	else
		hl_json_add_number(json, object, "offset", base + slot->offset);
	hl_json_add_number(json, object, "size", slot->size);
	if (slot->bit_size) {
		hl_json_add_number(json, object, "bit_offset", slot->bit_offset);
		hl_json_add_number(json, object, "bit_size", slot->bit_size);
	} else {
		hl_json_add_null(json, object, "bit_offset");
		hl_json_add_null(json, object, "bit_size");
	}
	if (slot->hole)
		hl_json_add_number(json, object, "hole", slot->hole);
	if (slot->bit_hole)
		hl_json_add_number(json, object, "bit_hole", slot->bit_hole);
	if (role(member))
		hl_json_add_string(json, object, "role", role(member));
	add_inner_members(nest, object, member, base + slot->offset, depth);
}

static void add_members(struct nest *nest, cJSON *type, const struct hl_shape *shape,
			uint64_t base, unsigned depth)
{
	struct hl_json *json = &nest->scratch->json;
	cJSON *members = hl_json_add_array(json, type, "members");

	for (uint32_t i = 0; i < shape->n_slots && nest->budget && !json->failed; i++) {
		nest->budget -= depth != 0;
		add_member(nest, members, &shape->slot[i], base, depth);
	}
}

static void add_notes(struct hl_list_scratch *scratch, const struct hl_survey *survey, cJSON *object,
		      hl_type_id id)
{
	cJSON *notes = hl_json_add_array(&scratch->json, object, "notes");
	char *at;

	hl_text_reset(&scratch->word);
	hl_text_puts(&scratch->word, "");
	hl_notes_of_type(&scratch->word, survey->types, id, &survey->ruler);
	if (scratch->word.failed) {
		scratch->json.failed = true;
		return;
	}
	at = scratch->word.at;
	while (*at) {
		size_t n = strcspn(at, "\n");
		bool more = at[n];

		at[n] = '\0';
		hl_json_add_string(&scratch->json, notes, NULL, at);
		at += n + more;
	}
}

static const char *language(const struct hl_type *type)
{
	switch (type->language) {
	case HL_LANG_C:
		return "C";
	case HL_LANG_CXX:
		return "C++";
	case HL_LANG_RUST:
		return "Rust";
	default:
		return "other";
	}
}

/* A variable stands among the types, so that its faults have something to refer to. */
static cJSON *make_type(const struct hl_list *list, struct hl_list_scratch *scratch, uint32_t i)
{
	const struct hl_survey *survey = list->report->survey;
	const struct hl_types *types = survey->types;
	const uint32_t *index = list->arg;
	struct hl_subject subject = hl_survey_subject(survey, index[i]);
	const struct hl_type *type = &types->type[subject.type];
	struct nest nest = { scratch, types, survey->ruler.line, MOST_INSIDE };
	struct hl_shape *shape = &scratch->shape;
	struct hl_json *json = &scratch->json;
	bool measured = !subject.variable && type->kind != HL_ENUM;
	uint64_t size = hl_type_size(types, subject.type);
	cJSON *object = hl_json_object(json);

	if (measured && hl_shape_measure(shape, types, subject.type, survey->ruler.line))
		json->failed = true;
	hl_json_add_number(json, object, "id", hl_subject_id(types, subject));
	hl_json_add_string(json, object, "name", subject.variable ?
			   types->variable[subject.variable - 1].name :
			   hl_type_name(types, subject.type));
	hl_json_add_string(json, object, "kind", hl_subject_kind(types, subject));
	hl_text_reset(&scratch->word);
	hl_subject_declared(&scratch->word, types, subject);
	hl_list_add_word(scratch, object, "declared");
	hl_json_add_number(json, object, "size", measured ? shape->size : size);
	hl_json_add_number(json, object, "align",
			   measured ? shape->align : hl_type_align(types, subject.type));
	hl_json_add_number(json, object, "lines", measured ? shape->lines :
			   size / survey->ruler.line + (size % survey->ruler.line != 0));
	hl_json_add_number(json, object, "holes", measured ? shape->holes : 0);
	hl_json_add_number(json, object, "hole_bytes", measured ? shape->hole_bytes : 0);
	hl_json_add_number(json, object, "bit_holes", measured ? shape->bit_holes : 0);
	hl_json_add_number(json, object, "padding", measured ? shape->padding : 0);
	if (measured && shape->bit_padding)
		hl_json_add_number(json, object, "bit_padding", shape->bit_padding);
	if (measured) {
		add_members(&nest, object, shape, 0, 0);
		add_notes(scratch, survey, object, subject.type);
	} else {
		hl_json_add_array(json, object, "members");
	}
	if (!subject.variable) {
		hl_json_add_string(json, object, "scope",
				   type->scope ? types->file[type->scope] : NULL);
		hl_json_add_string(json, object, "language", language(type));
	}
	return object;
}

/* ---- Faults. ---- */

static cJSON *make_fault(const struct hl_report *report, struct hl_list_scratch *scratch,
			 struct hl_subject subject, const struct hl_fault *fault)
{
	struct hl_json *json = &scratch->json;
	cJSON *object = hl_json_object(json), *members, *proposal;

	hl_json_add_number(json, object, "type", hl_subject_id(report->survey->types, subject));
	hl_json_add_string(json, object, "fault", hl_fault_name(fault->kind));
	hl_json_add_number(json, object, "score", fault->score);
	hl_json_add_string(json, object, "evidence", fault->evidence);
	members = hl_json_add_array(json, object, "members");
	for (uint32_t i = 0; i < fault->n_members; i++)
		hl_json_add_string(json, members, NULL, fault->members[i]);
	if (fault->size) {
		proposal = hl_json_add_object(json, object, "proposal");
		hl_json_add_number(json, proposal, "size", fault->size);
		hl_json_add_number(json, proposal, "lines", fault->lines);
		hl_json_add_string(json, proposal, "text", fault->text ? fault->text : "");
	} else {
		hl_json_add_null(json, object, "proposal");
	}
	hl_json_add_string(json, object, "advice", fault->advice);
	return object;
}

/* ---- The document. ---- */

/* The subjects that "types" lists, in the order of the file: all, those asked
 * for, or those with faults; variables only with faults. */
static uint32_t *listed(const struct hl_report *report, const struct hl_ranking *faults,
			uint32_t *n)
{
	const struct hl_survey *survey = report->survey;
	uint32_t *index = malloc(((size_t)survey->n + 1) * sizeof(*index));
	bool *has_fault = calloc((size_t)survey->n + 1, sizeof(*has_fault));

	*n = 0;
	if (!index || !has_fault) {
		free(index);
		free(has_fault);
		return NULL;
	}
	for (uint32_t i = 0; i < faults->n; i++)
		has_fault[faults->fault[i].index] = true;
	for (uint32_t i = 0; i < survey->n; i++) {
		bool variable = hl_survey_subject(survey, i).variable;

		if (has_fault[i] || (report->whole && (!variable || survey->subject)))
			index[(*n)++] = i;
	}
	free(has_fault);
	return index;
}

static const char *finding_kind(enum hl_finding_kind kind)
{
	switch (kind) {
	case HL_FINDING_BROKEN:
		return "broken";
	case HL_FINDING_UNKNOWN:
		return "unknown";
	case HL_FINDING_STALE:
		return "stale";
	default:
		return "condition";
	}
}

/* What --check found beside the faults. */
static void add_check(struct hl_json *json, cJSON *object, const struct hl_report *report)
{
	const struct hl_types *types = report->survey->types;
	const struct hl_check *check = report->check;
	cJSON *about = hl_json_add_object(json, object, "check"), *findings;

	hl_json_add_bool(json, about, "holds", !check->broken && !check->unknown);
	hl_json_add_string(json, about, "rules_file", check->rules_path);
	hl_json_add_number(json, about, "rules", check->rules);
	hl_json_add_number(json, about, "accepted_faults", check->accepted);
	findings = hl_json_add_array(json, about, "findings");
	for (uint32_t i = 0; i < check->n; i++) {
		const struct hl_finding *finding = &check->finding[i];
		cJSON *one = hl_json_add_object(json, findings, NULL);

		hl_json_add_string(json, one, "finding", finding_kind(finding->kind));
		hl_json_add_number(json, one, "line", finding->line);
		hl_json_add_string(json, one, "rule", finding->rule);
		if (finding->subject.type)
			hl_json_add_number(json, one, "type",
					   hl_subject_id(types, finding->subject));
		else
			hl_json_add_null(json, one, "type");
		hl_json_add_string(json, one, "said", finding->said);
	}
}

/* Adds the opening of the document up to the elements of "types". */
static int add_head(struct hl_json *json, struct hl_text *text, const struct hl_report *report)
{
	cJSON *head = hl_json_object(json);
	int status;

	hl_json_add_number(json, head, "schema", 1);
	hl_json_add_string(json, head, "file", report->path);
	hl_json_add_number(json, head, "line_bytes", report->survey->ruler.line);
	status = hl_json_print_open(json, text, head);
	hl_text_puts(text, ",\n\"types\":[");
	return status;
}

/* Adds what comes behind the elements of "faults". */
static int add_tail(struct hl_json *json, struct hl_text *text, const struct hl_report *report)
{
	const struct hl_types *types = report->survey->types;
	cJSON *tail = hl_json_object(json);
	size_t from;
	int status;

	hl_json_add_bool(json, tail, "pair", report->survey->ruler.pair);
	hl_json_add_number(json, tail, "units", types->n_units);
	hl_json_add_number(json, tail, "defined", types->n_defined);
	hl_json_add_number(json, tail, "skipped", types->n_skipped);
	hl_json_add_string(json, tail, "first_skipped", types->n_skipped ? types->skipped : NULL);
	if (report->check)
		add_check(json, tail, report);
	hl_text_puts(text, "],\n");
	from = text->len;
	status = hl_json_print(json, text, tail);
	/* Its opening brace is that of the document. */
	if (!status && !text->failed) {
		memmove(text->at + from, text->at + from + 1, text->len - from);
		text->len--;
		hl_text_putc(text, '\n');
	}
	return status;
}

int hl_report_json(const struct hl_report *report)
{
	const struct hl_ranking *faults = hl_report_ranking(report);
	struct hl_json json = { 0 };
	struct hl_text text = HL_TEXT_INIT;
	uint32_t n, *index = listed(report, faults, &n);
	struct hl_list types_list = { .report = report, .arg = index };
	struct hl_list faults_list = { .report = report };
	int status = index ? add_head(&json, &text, report) : -ENOMEM;

	if (!status)
		status = hl_list_write_text(report, &text);
	if (!status)
		status = hl_list_write(&types_list, n, make_type);
	hl_text_puts(&text, "],\n\"faults\":[");
	if (!status)
		status = hl_list_write_text(report, &text);
	if (!status)
		status = hl_list_write_faults(&faults_list, faults, make_fault);
	if (!status)
		status = add_tail(&json, &text, report);
	if (!status)
		status = hl_list_write_text(report, &text);
	hl_json_free(&json);
	hl_text_free(&text);
	free(index);
	return status;
}
