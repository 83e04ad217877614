// SPDX-License-Identifier: MIT
#include "target.h"

#include "layout/check.h"
#include "layout/diff.h"
#include "layout/look.h"
#include "layout/members.h"
#include "layout/picture.h"
#include "layout/report.h"

#include <errno.h>
#include <string.h>

#define LINE	64
/* Types that are written out alone, as the user may ask for any. */
#define MOST_ALONE	64

bool fuzz_all_parts;

void fuzz_check_types(const struct hl_types *types)
{
	FUZZ_CHECK(types->n_types && types->type[0].kind == HL_VOID);
	FUZZ_CHECK(types->n_files && !*types->file[0]);
	for (uint32_t id = 0; id < types->n_types; id++) {
		const struct hl_type *type = &types->type[id];

		FUZZ_CHECK(type->kind <= HL_OPAQUE && type->size <= HL_MAX_SIZE);
		FUZZ_CHECK(type->target < types->n_types);
		FUZZ_CHECK((uint64_t)type->first + type->count <= types->n_members || !type->count);
		FUZZ_CHECK(type->file < types->n_files && type->scope < types->n_files);
		FUZZ_CHECK(type->natural_log2 <= 31 && type->align_log2 <= 32);
		FUZZ_CHECK(hl_type_size(types, id) <= HL_MAX_SIZE);
		for (uint32_t i = 0; i < type->count; i++) {
			const struct hl_member *member = &types->member[type->first + i];

			FUZZ_CHECK(member->type < types->n_types);
			FUZZ_CHECK(type->kind == HL_ENUM || member->bit_offset <= HL_MAX_SIZE * 8);
			FUZZ_CHECK(member->align_log2 <= 31);
		}
	}
	for (uint32_t i = 0; i < types->n_defined; i++) {
		const struct hl_type *type =
			&types->type[hl_type_strip(types, types->defined[i])];

		FUZZ_CHECK(hl_kind_is_aggregate(type->kind));
		FUZZ_CHECK(!(type->flags & HL_TYPE_DECLARATION));
	}
	for (uint32_t i = 0; i < types->n_variables; i++) {
		FUZZ_CHECK(types->variable[i].name);
		FUZZ_CHECK(types->variable[i].type < types->n_types);
		FUZZ_CHECK(types->variable[i].file < types->n_files);
	}
}

/* Reads all bytes, so that a sanitizer sees those that are not there. */
static int count_bytes(void *arg, const char *bytes, size_t n)
{
	size_t *sum = arg;

	for (size_t i = 0; i < n; i++)
		*sum += (unsigned char)bytes[i];
	return 0;
}

static bool visit_name(void *arg, const struct hl_named *named)
{
	uint32_t *n = arg;

	FUZZ_CHECK(named->name);
	return ++*n < 100000;
}

static void report_alone(const struct hl_types *types, hl_type_id id)
{
	struct hl_text text = HL_TEXT_INIT;
	struct hl_error err = { "" };
	struct hl_placing placing;
	struct hl_named named;
	uint32_t n = 0;

	hl_compilable(&text, types, &id, 1, &err);
	hl_text_free(&text);
	hl_named_each(types, id, visit_name, &n);
	hl_named_find(types, id, "lock.next[1].count", &named);
	if (!hl_placing_of(&placing, types, id)) {
		/* The source's order gives the compiler's layout, no order a larger one. */
		const struct hl_type *type = &types->type[hl_type_strip(types, id)];

		hl_place(&placing, LINE);
		FUZZ_CHECK(placing.size == type->size);
		for (uint32_t i = 0; i < placing.n; i++)
			FUZZ_CHECK(placing.field[i].bit_offset ==
				   types->member[placing.field[i].member].bit_offset);
		FUZZ_CHECK(!hl_place_smallest(&placing, LINE));
		FUZZ_CHECK(placing.size <= type->size);
		hl_placing_free(&placing);
	}
}

static void ignore_moved(void *arg, const struct hl_moved *moved)
{
	(void)arg;
	(void)moved;
}

static void report_diff(struct hl_report *report)
{
	struct hl_diff_side side = { report->survey, report->ranking };
	struct hl_diff diff;

	if (!hl_diff_run(&diff, side, side)) {
		FUZZ_CHECK(!diff.worse);
		for (uint32_t i = 0; i < diff.n; i++)
			hl_diff_moved(&diff, &diff.change[i], ignore_moved, NULL);
		hl_report_diff(report, &diff, "before", "after");
		hl_report_diff_json(report, &diff, "before", "after");
	}
	hl_diff_free(&diff);
}

/* Rules about the first types of the file, by their own names. */
static void write_rules(struct hl_text *text, const struct hl_types *types)
{
	for (uint32_t i = 0; i < types->n_defined && i < 2; i++) {
		hl_type_id id = types->defined[i];
		const char *name = hl_type_name(types, id);

		hl_text_printf(text, "%s: size <= 64\n%s: no holes\n", name, name);
		hl_text_printf(text, "%s: group first = lock, next, count\n", name);
		hl_text_printf(text, "%s: first and size on different lines\n", name);
		hl_text_printf(text, "%s: first within line 0\n%s: lock at 8\n", name, name);
		hl_text_printf(text, "accept straddle %s\n", name);
	}
}

static void report_check(struct hl_report *report)
{
	struct hl_text text = HL_TEXT_INIT, written = HL_TEXT_INIT;
	struct hl_rules *rules = NULL;
	struct hl_error err = { "" };
	struct hl_check check;
	uint32_t added;

	write_rules(&text, report->survey->types);
	if (text.failed || !text.len ||
	    hl_rules_parse(&rules, text.at, text.len, "rules", &err)) {
		hl_text_free(&text);
		return;
	}
	if (!hl_check_run(&check, rules, report->survey, report->ranking)) {
		check.rules_path = "rules";
		report->check = &check;
		hl_report_check(report);
		hl_report_json(report);
		hl_report_sarif(report);
		report->check = NULL;
		hl_rules_write(&written, rules, report->survey, &check, &added);
	}
	hl_check_free(&check);
	hl_rules_free(rules);
	hl_text_free(&written);
	hl_text_free(&text);
}

/* What a report can be made of; all of it for each input would be slow. */
enum { TEXT, JSON, PICTURES, CHECK, DIFF, COMPILABLE, ALONE, N_PARTS };

static void report_part(struct hl_report *report, int part)
{
	switch (part) {
	case TEXT:
		hl_report_faults(report);
		hl_report_sizes(report);
		hl_report_sarif(report);
		break;
	case JSON:
		hl_report_json(report);
		break;
	case PICTURES:
		hl_report_pictures(report);
		break;
	case CHECK:
		report_check(report);
		break;
	default:
		report_diff(report);
	}
}

static void report_ranked(struct hl_report *report, struct hl_survey *survey, int part)
{
	struct hl_ranking ranking;

	report->survey = survey;
	report->ranking = &ranking;
	if (!hl_rank(&ranking, survey))
		report_part(report, part);
	hl_ranking_free(&ranking);
}

static void report_compilable(const struct hl_types *types)
{
	struct hl_text text = HL_TEXT_INIT;
	struct hl_error err = { "" };

	hl_compilable(&text, types, types->defined, types->n_defined, &err);
	hl_text_free(&text);
}

static void report_each_alone(const struct hl_types *types)
{
	for (uint32_t i = 0; i < types->n_defined && i < MOST_ALONE; i++)
		report_alone(types, types->defined[i]);
}

void fuzz_report(const struct hl_types *types, unsigned seed)
{
	struct hl_looks *looks = hl_looks_build(types);
	struct hl_survey survey = {
		.types = types,
		.ruler = { .line = seed & 0x1000 ? 128 : 64, .pair = seed & 0x2000, .looks = looks },
		.n = hl_n_subjects(types),
		.kinds = ~0u,
		.threads = 1,
	};
	size_t sum = 0;
	struct hl_report report = {
		.path = "file", .version = "0", .width = 100, .proposals = 10, .whole = seed & 0x4000,
		.write = count_bytes, .write_arg = &sum,
	};

	FUZZ_CHECK(looks);
	for (int part = 0; part < N_PARTS; part++) {
		if (!fuzz_all_parts && part != (int)(seed % 4096 % N_PARTS))
			continue;
		if (part == COMPILABLE)
			report_compilable(types);
		else if (part == ALONE)
			report_each_alone(types);
		else
			report_ranked(&report, &survey, part);
	}
	hl_looks_free(looks);
}

unsigned fuzz_seed(const uint8_t *data, size_t size)
{
	unsigned seed = 2166136261u;

	for (size_t i = 0; i < size; i++)
		seed = (seed ^ data[i]) * 16777619u;
	return seed ^ seed >> 16;
}
