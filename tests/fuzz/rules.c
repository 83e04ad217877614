// SPDX-License-Identifier: MIT
/*
 * The bytes are a file of rules for --check, held against types that do not change.
 */
#include "target.h"

#include "layout/check.h"
#include "layout/look.h"
#include "layout/report.h"

static int ignore_bytes(void *arg, const char *bytes, size_t n)
{
	(void)arg;
	(void)bytes;
	(void)n;
	return 0;
}

/* struct a { int lock; int *next; struct list_head head[3]; struct { int id; }; }, and two
 * that it is made of. */
static struct hl_types *make_types(void)
{
	static const struct hl_type type[] = {
		{ .kind = HL_VOID },
		{ .kind = HL_BASE, .name = "int", .size = 4, .natural_log2 = 2, .flags = HL_TYPE_SIGNED },
		{ .kind = HL_POINTER, .size = 8, .target = 1, .natural_log2 = 3 },
		{ .kind = HL_STRUCT, .name = "list_head", .size = 16, .first = 0, .count = 2,
		  .natural_log2 = 3, .file = 1, .line = 3 },
		{ .kind = HL_ARRAY, .target = 3, .size = 3, .natural_log2 = 3 },
		{ .kind = HL_STRUCT, .size = 4, .first = 2, .count = 1, .natural_log2 = 2 },
		{ .kind = HL_STRUCT, .name = "a", .size = 72, .first = 3, .count = 4, .natural_log2 = 3,
		  .scope = 2, .language = HL_LANG_CXX },
		{ .kind = HL_TYPEDEF, .name = "alias", .target = 5, .natural_log2 = 2 },
	};
	static const struct hl_member member[] = {
		{ .name = "next", .type = 2 }, { .name = "prev", .type = 2, .bit_offset = 64 },
		{ .name = "id", .type = 1 },
		{ .name = "lock", .type = 1 }, { .name = "next", .type = 2, .bit_offset = 64 },
		{ .name = "head", .type = 4, .bit_offset = 128 }, { .type = 5, .bit_offset = 512 },
	};
	static const char *const file[] = { "", "file.c", "outer::inner" };
	static const hl_type_id defined[] = { 3, 6, 7 };
	static const struct hl_variable variable[] = { { .name = "workers", .type = 4 } };
	static struct hl_types types = {
		.type = type, .member = member, .file = file, .defined = defined,
		.variable = variable, .n_types = 8, .n_members = 7, .n_files = 3, .n_defined = 3,
		.n_variables = 1, .address_size = 8, .max_align_log2 = 4, .n_units = 1,
	};

	return &types;
}

static void check(const struct hl_rules *rules, const struct hl_survey *survey,
		  const struct hl_ranking *ranking)
{
	struct hl_report report = {
		.survey = survey, .ranking = ranking, .path = "file", .version = "0", .width = 80,
		.write = ignore_bytes,
	};
	struct hl_text written = HL_TEXT_INIT;
	struct hl_check result;
	uint32_t added;

	if (!hl_check_run(&result, rules, survey, ranking)) {
		struct hl_rules *again = NULL;
		struct hl_error err = { "" };

		result.rules_path = "rules";
		report.check = &result;
		hl_report_check(&report);
		hl_report_sarif(&report);
		/* What is written can be read. */
		FUZZ_CHECK(!hl_rules_write(&written, rules, survey, &result, &added));
		if (written.len)
			FUZZ_CHECK(!hl_rules_parse(&again, written.at, written.len, "again", &err));
		hl_rules_free(again);
	}
	hl_check_free(&result);
	hl_text_free(&written);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct hl_types *types = make_types();
	struct hl_looks *looks = hl_looks_build(types);
	struct hl_survey survey = {
		.types = types,
		.ruler = { .line = 64, .looks = looks },
		.n = hl_n_subjects(types),
		.kinds = ~0u,
		.threads = 1,
	};
	struct hl_rules *rules = NULL;
	struct hl_error err = { "" };
	struct hl_ranking ranking;

	FUZZ_CHECK(looks && !hl_rank(&ranking, &survey));

	int rc = hl_rules_parse(&rules, (const char *)data, size, "rules", &err);

	if (rc)
		FUZZ_CHECK(rc < 0 && *err.text && !rules);
	else
		check(rules, &survey, &ranking);
	hl_rules_free(rules);
	hl_ranking_free(&ranking);
	hl_looks_free(looks);
	return 0;
}
