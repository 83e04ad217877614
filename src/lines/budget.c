// SPDX-License-Identifier: MIT
#include "lines/budget.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rule {
	char *object; /* NULL: all */
	bool accept;
	bool untrue; /* of false transfers; else of all */
	uint64_t most;
	uint32_t line;
};

struct hl_budget {
	struct rule *rule;
	uint32_t n;
	bool number;
	struct hl_over_budget *over;
	uint32_t n_over;
};

static int fail(struct hl_error *err, const char *path, uint32_t line, const char *what)
{
	snprintf(err->text, sizeof(err->text), "%s:%u: %s", path, line, what);
	return -EINVAL;
}

static char *trimmed(char *from, char *to)
{
	while (from < to && isspace((unsigned char)*from))
		from++;
	while (to > from && isspace((unsigned char)to[-1]))
		to--;
	*to = '\0';
	return from;
}

static bool read_number(const char *text, uint64_t *number)
{
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	*number = value;
	return isdigit((unsigned char)*text) && !*end && !errno;
}

static struct rule *add_rule(struct hl_budget *budget, const char *object, uint32_t line)
{
	struct rule *more = realloc(budget->rule, (budget->n + 1ul) * sizeof(*more));

	if (!more)
		return NULL;
	budget->rule = more;
	more = &budget->rule[budget->n];
	*more = (struct rule){ .line = line, .object = object ? strdup(object) : NULL };
	if (object && !more->object)
		return NULL;
	budget->n++;
	return more;
}

/* "transfers <= 5", "false <= 0" */
static int read_limit(struct rule *rule, char *text, const char *path, struct hl_error *err)
{
	char *sign = strstr(text, "<=");

	if (!sign || !read_number(trimmed(sign + 2, sign + strlen(sign)), &rule->most))
		return fail(err, path, rule->line, "a rule ends in <= and a number");
	text = trimmed(text, sign);
	rule->untrue = !strcmp(text, "false");
	if (!rule->untrue && strcmp(text, "transfers"))
		return fail(err, path, rule->line, "what is limited is \"transfers\" or \"false\"");
	return 0;
}

static int read_rule(struct hl_budget *budget, char *text, const char *path, uint32_t line,
		     struct hl_error *err)
{
	char *comment = strchr(text, '#'), *colon, *limit;
	struct rule *rule;

	text = trimmed(text, comment ? comment : text + strlen(text));
	if (!*text)
		return 0;
	if (!strncmp(text, "accept ", 7)) {
		rule = add_rule(budget, trimmed(text + 7, text + strlen(text)), line);
		if (rule)
			rule->accept = true;
		return rule ? 0 : -ENOMEM;
	}
	/* The last colon that is none of ns::name. */
	for (colon = text + strlen(text) - 1; colon > text; colon--) {
		if (*colon == ':' && colon[-1] != ':' && colon[1] != ':')
			break;
	}
	limit = colon > text ? colon + 1 : text;
	if (colon > text)
		text = trimmed(text, colon);
	rule = add_rule(budget, colon > text ? text : NULL, line);
	return rule ? read_limit(rule, trimmed(limit, limit + strlen(limit)), path, err) : -ENOMEM;
}

int hl_budget_parse(struct hl_budget **out, const char *text, size_t n, const char *path,
		    struct hl_error *err)
{
	struct hl_budget *budget = calloc(1, sizeof(*budget));
	char *copy = strndup(text, n), *at = copy;
	struct rule *rule;
	uint64_t number;
	int status = budget && copy ? 0 : -ENOMEM;

	err->text[0] = '\0';
	if (!status && read_number(copy, &number)) {
		budget->number = true;
		rule = add_rule(budget, NULL, 0);
		status = rule ? 0 : -ENOMEM;
		if (rule) {
			rule->untrue = true;
			rule->most = number;
		}
		at = NULL;
	}
	for (uint32_t line = 1; at && !status; line++) {
		char *end = strchr(at, '\n');

		if (end)
			*end = '\0';
		status = read_rule(budget, at, path, line, err);
		at = end ? end + 1 : NULL;
	}
	free(copy);
	if (status) {
		hl_budget_free(budget);
		return status;
	}
	*out = budget;
	return 0;
}

/* ---- Checking. ---- */

static int add_over(struct hl_budget *budget, uint32_t line, struct hl_text *rule,
		    struct hl_text *said)
{
	struct hl_over_budget *more = realloc(budget->over, (budget->n_over + 1ul) * sizeof(*more));

	if (more)
		budget->over = more;
	if (!more || rule->failed || said->failed) {
		hl_text_free(rule);
		hl_text_free(said);
		return -ENOMEM;
	}
	budget->over[budget->n_over++] = (struct hl_over_budget){ rule->at, said->at, line };
	return 0;
}

/* Whether the rule means the object: by the name that reports have, or that without struct. */
static bool means(const struct rule *rule, const char *name)
{
	const char *bare = strchr(name, ' ');

	return rule->object && (!strcmp(rule->object, name) ||
				(!strncmp(name, "struct ", 7) && !strcmp(rule->object, bare + 1)));
}

static int check_rule(struct hl_budget *budget, const struct rule *rule,
		      const struct hl_lines_process *process, uint32_t n)
{
	struct hl_text name = HL_TEXT_INIT, words = HL_TEXT_INIT, said = HL_TEXT_INIT;
	uint64_t count = 0;

	for (uint32_t p = 0; p < n; p++) {
		const struct hl_findings *findings = &process[p].findings;

		if (!rule->object)
			count += rule->untrue ? findings->untrue : findings->transfers;
		for (uint32_t i = 0; rule->object && i < findings->n_findings; i++) {
			const struct hl_shared *finding = &findings->finding[i];

			hl_text_reset(&name);
			hl_object_name(&name, finding->object);
			if (!name.failed && means(rule, name.at))
				count += rule->untrue ? finding->untrue : finding->transfers;
		}
	}
	hl_text_free(&name);
	if (count <= rule->most)
		return 0;
	hl_text_printf(&words, "%s%s%s <= %llu", rule->object ? rule->object : "",
		       rule->object ? ": " : "", rule->untrue ? "false" : "transfers",
		       (unsigned long long)rule->most);
	hl_text_printf(&said, "%llu", (unsigned long long)count);
	return add_over(budget, rule->line, &words, &said);
}

/* False sharing that no rule speaks of. */
static int check_finding(struct hl_budget *budget, const struct hl_shared *finding)
{
	struct hl_text name = HL_TEXT_INIT, said = HL_TEXT_INIT;

	if (finding->sharing == HL_SHARING_TRUE)
		return 0;
	hl_object_name(&name, finding->object);
	for (uint32_t i = 0; i < budget->n && !name.failed; i++) {
		if (means(&budget->rule[i], name.at)) {
			hl_text_free(&name);
			return 0;
		}
	}
	hl_text_printf(&said, "%s sharing, %llu transfers, %llu of them false; no rule accepts it",
		       hl_sharing_name(finding->sharing), (unsigned long long)finding->transfers,
		       (unsigned long long)finding->untrue);
	return add_over(budget, 0, &name, &said);
}

int hl_budget_check(struct hl_budget *budget, const struct hl_lines_process *process,
		    uint32_t n_processes, const struct hl_over_budget **over, uint32_t *n)
{
	int status = 0;

	for (uint32_t i = 0; i < budget->n && !status; i++) {
		if (!budget->rule[i].accept)
			status = check_rule(budget, &budget->rule[i], process, n_processes);
	}
	for (uint32_t p = 0; p < n_processes && !budget->number && !status; p++) {
		for (uint32_t i = 0; i < process[p].findings.n_findings && !status; i++)
			status = check_finding(budget, &process[p].findings.finding[i]);
	}
	*over = budget->over;
	*n = budget->n_over;
	return status;
}

void hl_budget_free(struct hl_budget *budget)
{
	if (!budget)
		return;
	for (uint32_t i = 0; i < budget->n; i++)
		free(budget->rule[i].object);
	for (uint32_t i = 0; i < budget->n_over; i++) {
		free((char *)budget->over[i].rule);
		free((char *)budget->over[i].said);
	}
	free(budget->rule);
	free(budget->over);
	free(budget);
}
