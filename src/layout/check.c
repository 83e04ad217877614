// SPDX-License-Identifier: MIT
#include "layout/check.h"

#include "layout/clean.h"
#include "layout/members.h"
#include "layout/rules.h"
#include "layout/shape.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A check under way. */
struct checking {
	struct hl_check *check;
	const struct hl_rules *rules;
	const struct hl_survey *survey;
	struct hl_shape shape;		/* scratch */
	bool *used;			/* rules->n of them: the accepted fault is there */
};

/* ---- Findings. ---- */

/* Takes the text over. */
static int add_finding(struct checking *checking, enum hl_finding_kind kind,
		       const struct hl_rule *rule, struct hl_subject subject, struct hl_text *said)
{
	struct hl_check *check = checking->check;

	if (said->failed) {
		hl_text_free(said);
		return -ENOMEM;
	}
	if (check->n == check->room) {
		uint32_t room = check->room ? check->room * 2 : 16;
		struct hl_finding *finding = reallocarray(check->finding, room, sizeof(*finding));

		if (!finding) {
			hl_text_free(said);
			return -ENOMEM;
		}
		check->finding = finding;
		check->room = room;
	}
	check->finding[check->n++] = (struct hl_finding){
		kind, rule->line, rule->text, subject, said->at
	};
	check->broken |= kind == HL_FINDING_BROKEN;
	check->unknown |= kind == HL_FINDING_UNKNOWN;
	check->stale |= kind == HL_FINDING_STALE;
	return 0;
}

/* ---- Accepted faults. ---- */

/* An accepted fault under the name that --write-accept gives the type, for bsearch. */
struct entry {
	const char *type;
	enum hl_fault_kind fault;
	uint32_t rule;
};

static int compare_entries(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int order = strcmp(x->type, y->type);

	return order ? order : (int)x->fault - (int)y->fault;
}

/* All rules that accept, sorted.  n is what the caller counts. */
static struct entry *sorted_entries(const struct hl_rules *rules, uint32_t *n)
{
	struct entry *entry = calloc(rules->n + 1, sizeof(*entry));

	*n = 0;
	if (!entry)
		return NULL;
	for (uint32_t i = 0; i < rules->n; i++) {
		const struct hl_rule *rule = &rules->rule[i];

		if (rule->kind == HL_RULE_ACCEPT)
			entry[(*n)++] = (struct entry){ rule->type, rule->fault, i };
	}
	qsort(entry, *n, sizeof(*entry), compare_entries);
	return entry;
}

/* Whether a rule accepts the fault: one that names the type as we write it, which
 * is found at once, or one that names it in another way. */
static bool is_accepted(struct checking *checking, const struct entry *entry, uint32_t n,
			enum hl_fault_kind kind, struct hl_subject subject, const char *name)
{
	struct entry key = { name, kind, 0 };
	const struct entry *found = n ? bsearch(&key, entry, n, sizeof(key), compare_entries) : NULL;
	bool accepted = false;

	if (found) {
		/* The same line may be there twice. */
		while (found > entry && !compare_entries(found - 1, &key))
			found--;
		for (; found < entry + n && !compare_entries(found, &key); found++)
			checking->used[found->rule] = true;
		return true;
	}
	for (uint32_t i = 0; i < n; i++) {
		if (entry[i].fault != kind ||
		    !hl_subject_matches(checking->survey->types, subject, entry[i].type))
			continue;
		checking->used[entry[i].rule] = true;
		accepted = true;
	}
	return accepted;
}

/* Leaves in check->faults what no rule accepts. */
static int sort_out_faults(struct checking *checking, const struct hl_ranking *ranking)
{
	const struct hl_survey *survey = checking->survey;
	struct hl_check *check = checking->check;
	struct hl_ranking *left = &check->faults;
	struct hl_text name = HL_TEXT_INIT;
	struct entry *entry = NULL;
	uint32_t n = 0;
	int status = 0;

	left->fault = calloc(ranking->n + 1, sizeof(*left->fault));
	if (!left->fault)
		return -ENOMEM;
	if (checking->rules) {
		entry = sorted_entries(checking->rules, &n);
		if (!entry)
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < ranking->n && !status; i++) {
		const struct hl_ranked *fault = &ranking->fault[i];
		struct hl_subject subject = hl_survey_subject(survey, fault->index);

		hl_text_reset(&name);
		hl_subject_name(&name, survey->types, subject);
		if (name.failed) {
			status = -ENOMEM;
		} else if (is_accepted(checking, entry, n, fault->kind, subject, name.at)) {
			check->accepted++;
		} else {
			left->fault[left->n++] = *fault;
			left->of_kind[fault->kind]++;
		}
	}
	check->broken |= left->n != 0;
	free(entry);
	hl_text_free(&name);
	return status;
}

/* A fault that is accepted but is not there.  A survey that leaves something out
 * cannot tell. */
static int look_for_stale(struct checking *checking, const struct hl_rule *rule, bool used)
{
	const struct hl_survey *survey = checking->survey;
	struct hl_subjects found = { 0 };
	struct hl_text said = HL_TEXT_INIT;
	int matches;

	if (used || survey->subject || survey->min_score || !(survey->kinds & 1u << rule->fault))
		return 0;
	matches = hl_subjects_find(&found, survey->types, rule->type);
	if (matches < 0) {
		hl_subjects_free(&found);
		return matches;
	}
	hl_text_puts(&said, matches ? "the fault is no more" : "the type is no more");
	hl_subjects_free(&found);
	return add_finding(checking, HL_FINDING_STALE, rule, (struct hl_subject){ 0, 0 }, &said);
}

/* ---- Rules. ---- */

/* The lines that members lie on. */
struct extent {
	const char *what;	/* the member or group, as the rule calls it */
	uint64_t first, last;	/* bytes */
};

/* The group of that name for the type of the rule. */
static const struct hl_rule *find_group(const struct hl_rules *rules, const struct hl_rule *of,
					const char *name)
{
	for (uint32_t i = 0; i < rules->n; i++) {
		const struct hl_rule *rule = &rules->rule[i];

		if (rule->kind == HL_RULE_GROUP && !strcmp(rule->word[0], name) &&
		    !strcmp(rule->type, of->type))
			return rule;
	}
	return NULL;
}

static bool find_extent(const struct hl_types *types, hl_type_id type, const char *path,
			struct extent *extent)
{
	struct hl_named named;

	if (!hl_named_find(types, type, path, &named))
		return false;
	extent->what = path;
	extent->first = hl_named_first(&named);
	extent->last = hl_named_last(&named);
	return true;
}

/* How many members a word of a rule stands for: those of a group, or itself. */
static char **members_of_word(const struct hl_rules *rules, const struct hl_rule *rule, uint32_t i,
			      uint32_t *n)
{
	const struct hl_rule *group = NULL;

	if (rule->kind != HL_RULE_GROUP && rule->kind != HL_RULE_AT)
		group = find_group(rules, rule, rule->word[i]);
	*n = group ? group->n_words - 1 : 1;
	return group ? group->word + 1 : rule->word + i;
}

/* The extents of all members that a rule names; `group` is the word they come
 * from.  -ENOENT when one is not there: `missing` is its name. */
struct extents {
	struct extent *at;
	uint32_t *word;
	uint32_t n;
	const char *missing;
};

static int take_extents(struct extents *extents, struct checking *checking,
			const struct hl_rule *rule, hl_type_id type)
{
	uint32_t room = 0, n;

	for (uint32_t i = 0; i < rule->n_words; i++) {
		members_of_word(checking->rules, rule, i, &n);
		room += n;
	}
	extents->at = calloc(room + 1, sizeof(*extents->at));
	extents->word = calloc(room + 1, sizeof(*extents->word));
	if (!extents->at || !extents->word)
		return -ENOMEM;
	for (uint32_t i = rule->kind == HL_RULE_GROUP; i < rule->n_words; i++) {
		char **member = members_of_word(checking->rules, rule, i, &n);

		for (uint32_t k = 0; k < n; k++) {
			if (!find_extent(checking->survey->types, type, member[k],
					 &extents->at[extents->n])) {
				extents->missing = member[k];
				return -ENOENT;
			}
			extents->word[extents->n++] = i;
		}
	}
	return 0;
}

static void say_extent(struct hl_text *said, const struct extent *extent, uint64_t line)
{
	uint64_t first = extent->first / line, last = extent->last / line;

	hl_clean_add(said, extent->what);
	hl_text_printf(said, " is at %llu, ", (unsigned long long)extent->first);
	if (first == last)
		hl_text_printf(said, "line %llu", (unsigned long long)first);
	else
		hl_text_printf(said, "lines %llu to %llu", (unsigned long long)first,
			       (unsigned long long)last);
}

/* What must not travel together is two lines apart where lines travel in pairs. */
static uint64_t travels_together(const struct hl_ruler *ruler)
{
	return (uint64_t)ruler->line << ruler->pair;
}

/* far: the members are so far apart that it holds wherever the struct begins. */
static bool apart(struct hl_text *said, const struct extents *extents, uint64_t line, bool *far)
{
	*far = true;
	for (uint32_t i = 0; i < extents->n; i++) {
		for (uint32_t k = i + 1; k < extents->n; k++) {
			const struct extent *a = &extents->at[i], *b = &extents->at[k];

			if (extents->word[i] == extents->word[k])
				continue;
			if (a->first > b->first) {
				a = b;
				b = &extents->at[i];
			}
			if (a->last / line < b->first / line) {
				*far &= b->first - a->last >= line;
				continue;
			}
			say_extent(said, a, line);
			hl_text_puts(said, "; ");
			say_extent(said, b, line);
			return false;
		}
	}
	return true;
}

/* near: the members are so near each other that it holds wherever the struct,
 * which is aligned to align, begins. */
static bool together(struct hl_text *said, const struct extents *extents, uint64_t line,
		     uint64_t align, bool *near)
{
	uint64_t on = extents->at[0].first / line, block = extents->at[0].first / align;

	*near = true;

	for (uint32_t i = 0; i < extents->n; i++) {
		const struct extent *extent = &extents->at[i];

		*near &= extent->first / align == block && extent->last / align == block;
		if (extent->first / line == on && extent->last / line == on)
			continue;
		if (i) {
			say_extent(said, &extents->at[0], line);
			hl_text_puts(said, "; ");
		}
		say_extent(said, extent, line);
		return false;
	}
	return true;
}

static bool within(struct hl_text *said, const struct extents *extents, const struct hl_rule *rule,
		   uint64_t line)
{
	for (uint32_t i = 0; i < extents->n; i++) {
		const struct extent *extent = &extents->at[i];

		if (extent->first / line >= rule->first && extent->last / line <= rule->last)
			continue;
		say_extent(said, extent, line);
		return false;
	}
	return true;
}

static bool at_offset(struct hl_text *said, const struct extents *extents, uint64_t offset)
{
	if (extents->at[0].first == offset)
		return true;
	hl_clean_add(said, extents->at[0].what);
	hl_text_printf(said, " is at %llu", (unsigned long long)extents->at[0].first);
	return false;
}

/* Rules about lines count these from the start of the struct.  Objects need not
 * begin a line; the rule then says less than it seems to.  Once a type is enough. */
static int note_condition(struct checking *checking, const struct hl_rule *rule,
			  struct hl_subject subject, uint64_t line)
{
	const struct hl_check *check = checking->check;
	struct hl_text said = HL_TEXT_INIT;

	if (checking->shape.align >= line)
		return 0;
	for (uint32_t i = 0; i < check->n; i++) {
		if (check->finding[i].kind == HL_FINDING_CONDITION &&
		    check->finding[i].subject.type == subject.type)
			return 0;
	}
	hl_text_printf(&said, "holds for objects that begin a line, but the type is aligned to "
		       "%u bytes only (the rule \"align >= %llu\" would see to that)",
		       checking->shape.align, (unsigned long long)line);
	return add_finding(checking, HL_FINDING_CONDITION, rule, subject, &said);
}

static int judge_members(struct checking *checking, const struct hl_rule *rule,
			 struct hl_subject subject)
{
	const struct hl_ruler *ruler = &checking->survey->ruler;
	uint64_t line = rule->kind == HL_RULE_APART ? travels_together(ruler) : ruler->line;
	struct extents extents = { 0 };
	struct hl_text said = HL_TEXT_INIT;
	int status = take_extents(&extents, checking, rule, subject.type);
	bool holds = true, anywhere = false;

	if (status == -ENOENT) {
		hl_subject_name(&said, checking->survey->types, subject);
		hl_text_puts(&said, " has no member ");
		hl_clean_add(&said, extents.missing);
		status = add_finding(checking, HL_FINDING_UNKNOWN, rule, subject, &said);
	} else if (!status) {
		if (rule->kind == HL_RULE_APART)
			holds = apart(&said, &extents, line, &anywhere);
		else if (rule->kind == HL_RULE_TOGETHER)
			holds = together(&said, &extents, line, checking->shape.align,
					 &anywhere);
		else if (rule->kind == HL_RULE_WITHIN)
			holds = within(&said, &extents, rule, line);
		else if (rule->kind == HL_RULE_AT)
			holds = at_offset(&said, &extents, rule->first);
		if (!holds) {
			status = add_finding(checking, HL_FINDING_BROKEN, rule, subject, &said);
		} else if (!anywhere && (rule->kind == HL_RULE_APART ||
					 rule->kind == HL_RULE_TOGETHER ||
					 rule->kind == HL_RULE_WITHIN)) {
			status = note_condition(checking, rule, subject, line);
		}
	}
	free(extents.at);
	free(extents.word);
	return status;
}

static uint64_t quantity(const struct hl_shape *shape, enum hl_quantity which)
{
	switch (which) {
	case HL_QUANTITY_SIZE:
		return shape->size;
	case HL_QUANTITY_ALIGN:
		return shape->align;
	case HL_QUANTITY_LINES:
		return shape->lines;
	case HL_QUANTITY_HOLES:
		return shape->holes;
	default:
		return shape->padding;
	}
}

static bool compares(uint64_t is, enum hl_comparison how, uint64_t to)
{
	switch (how) {
	case HL_LESS:
		return is < to;
	case HL_AT_MOST:
		return is <= to;
	case HL_EQUAL:
		return is == to;
	case HL_UNEQUAL:
		return is != to;
	case HL_AT_LEAST:
		return is >= to;
	default:
		return is > to;
	}
}

static int judge_quantity(struct checking *checking, const struct hl_rule *rule,
			  struct hl_subject subject)
{
	const struct hl_shape *shape = &checking->shape;
	uint64_t is = quantity(shape, rule->quantity), to = rule->first;
	struct hl_text said = HL_TEXT_INIT;

	if (rule->in_lines && rule->quantity == HL_QUANTITY_SIZE) {
		uint64_t line = checking->survey->ruler.line;

		to = to > UINT64_MAX / line ? UINT64_MAX : to * line;
	}
	if (compares(is, rule->comparison, to))
		return 0;
	hl_text_printf(&said, "%s is %llu", hl_quantity_name[rule->quantity],
		       (unsigned long long)is);
	if (rule->quantity == HL_QUANTITY_HOLES && is)
		hl_text_printf(&said, ", %llu bytes in all", (unsigned long long)shape->hole_bytes);
	return add_finding(checking, HL_FINDING_BROKEN, rule, subject, &said);
}

static bool surveyed(const struct hl_survey *survey, struct hl_subject subject)
{
	if (!survey->subject)
		return true;
	for (uint32_t i = 0; i < survey->n; i++) {
		if (survey->subject[i].type == subject.type &&
		    survey->subject[i].variable == subject.variable)
			return true;
	}
	return false;
}

static int judge(struct checking *checking, const struct hl_rule *rule, struct hl_subject subject)
{
	const struct hl_survey *survey = checking->survey;
	int status = hl_shape_measure(&checking->shape, survey->types, subject.type,
				      survey->ruler.line);

	if (status)
		return status;
	return rule->kind == HL_RULE_QUANTITY ? judge_quantity(checking, rule, subject) :
						judge_members(checking, rule, subject);
}

/* A rule holds for all types of its name. */
static int apply(struct checking *checking, const struct hl_rule *rule)
{
	const struct hl_types *types = checking->survey->types;
	struct hl_subjects found = { 0 };
	bool any = false, counted = false;
	int status = hl_subjects_find(&found, types, rule->type);

	for (uint32_t i = 0; i < found.n && status >= 0; i++) {
		const struct hl_type *type = &types->type[hl_type_strip(types, found.at[i].type)];

		if (found.at[i].variable || !hl_kind_is_aggregate(type->kind))
			continue;
		any = true;
		if (!surveyed(checking->survey, found.at[i]))
			continue;
		counted = true;
		status = judge(checking, rule, found.at[i]);
	}
	if (status >= 0 && !any) {
		struct hl_text said = HL_TEXT_INIT;

		hl_subjects_why_none(&said, types, rule->type);
		status = add_finding(checking, HL_FINDING_UNKNOWN, rule,
				     (struct hl_subject){ 0, 0 }, &said);
	}
	hl_subjects_free(&found);
	checking->check->rules += counted && rule->kind != HL_RULE_GROUP;
	return status < 0 ? status : 0;
}

int hl_check_run(struct hl_check *check, const struct hl_rules *rules,
		 const struct hl_survey *survey, const struct hl_ranking *ranking)
{
	struct checking checking = { .check = check, .rules = rules, .survey = survey };
	int status;

	*check = (struct hl_check){ 0 };
	if (rules) {
		checking.used = calloc(rules->n + 1, sizeof(*checking.used));
		if (!checking.used)
			return -ENOMEM;
	}
	status = sort_out_faults(&checking, ranking);
	for (uint32_t i = 0; rules && i < rules->n && !status; i++) {
		const struct hl_rule *rule = &rules->rule[i];

		status = rule->kind == HL_RULE_ACCEPT ?
				 look_for_stale(&checking, rule, checking.used[i]) :
				 apply(&checking, rule);
	}
	hl_shape_free(&checking.shape);
	free(checking.used);
	return status;
}

void hl_check_free(struct hl_check *check)
{
	for (uint32_t i = 0; i < check->n; i++)
		free(check->finding[i].said);
	free(check->finding);
	hl_ranking_free(&check->faults);
	*check = (struct hl_check){ 0 };
}

/* ---- Writing a file that accepts what is there. ---- */

/* Findings are in the order of lines, so the next stale one is all to look for. */
static bool is_stale(const struct hl_check *check, uint32_t *at, unsigned line)
{
	while (*at < check->n && (check->finding[*at].kind != HL_FINDING_STALE ||
				  check->finding[*at].line < line))
		++*at;
	return *at < check->n && check->finding[*at].line == line;
}

static void write_kept_lines(struct hl_text *text, const struct hl_rules *rules,
			     const struct hl_check *check)
{
	const char *at = rules->source;
	unsigned line = 0;
	uint32_t finding = 0;

	while (*at) {
		size_t n = strcspn(at, "\n");

		if (!is_stale(check, &finding, ++line)) {
			hl_text_add(text, at, n);
			hl_text_putc(text, '\n');
		}
		at += n + (at[n] == '\n');
	}
}

/* The same type and kind can have several faults, or the same name several types:
 * one line is enough for all. */
static int compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *accept_line(const struct hl_survey *survey, const struct hl_ranked *fault)
{
	struct hl_subject subject = hl_survey_subject(survey, fault->index);
	struct hl_text line = HL_TEXT_INIT;

	hl_text_printf(&line, "accept %s ", hl_fault_name(fault->kind));
	hl_subject_name(&line, survey->types, subject);
	if (line.failed)
		hl_text_free(&line);
	return line.at;
}

int hl_rules_write(struct hl_text *text, const struct hl_rules *rules,
		   const struct hl_survey *survey, const struct hl_check *check, uint32_t *added)
{
	const struct hl_ranking *faults = &check->faults;
	char **line = calloc(faults->n + 1, sizeof(*line));
	uint32_t n = 0;
	int status = line ? 0 : -ENOMEM;

	*added = 0;
	if (rules)
		write_kept_lines(text, rules, check);
	else
		hl_text_puts(text, "# Faults that are accepted, one a line: accept FAULT TYPE # reason\n"
			     "# Rules may be added: hotline-layout(1) says how.\n");
	while (!status && n < faults->n) {
		line[n] = accept_line(survey, &faults->fault[n]);
		if (!line[n])
			status = -ENOMEM;
		else
			n++;
	}
	if (!status)
		qsort(line, n, sizeof(*line), compare_lines);
	for (uint32_t i = 0; i < n; i++) {
		if (status || (i && !strcmp(line[i], line[i - 1])))
			continue;
		hl_text_puts(text, line[i]);
		hl_text_putc(text, '\n');
		++*added;
	}
	for (uint32_t i = 0; i < n; i++)
		free(line[i]);
	free(line);
	return status || text->failed ? -ENOMEM : 0;
}
