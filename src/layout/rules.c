// SPDX-License-Identifier: MIT
#include "layout/rules.h"

#include "layout/clean.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const hl_quantity_name[HL_N_QUANTITIES] = {
	[HL_QUANTITY_SIZE] = "size",
	[HL_QUANTITY_ALIGN] = "align",
	[HL_QUANTITY_LINES] = "lines",
	[HL_QUANTITY_HOLES] = "holes",
	[HL_QUANTITY_PADDING] = "padding",
};

/* One statement while it is taken apart. */
struct parser {
	struct hl_rules *rules;
	const char *name;
	unsigned line;
	struct hl_error *err;
	char **token;		/* of the part behind the colon */
	uint32_t n, room;
};

static int malformed(struct parser *parser, const char *why, const char *what)
{
	struct hl_text text = HL_TEXT_INIT;

	hl_clean_add(&text, what);
	snprintf(parser->err->text, sizeof(parser->err->text), "%s:%u: %s: %s", parser->name,
		 parser->line, why, text.failed || !text.at ? "" : text.at);
	hl_text_free(&text);
	return -EINVAL;
}

static int out_of_memory(struct hl_error *err)
{
	snprintf(err->text, sizeof(err->text), "out of memory");
	return -ENOMEM;
}

static char *trim(char *s)
{
	size_t n;

	while (isspace((unsigned char)*s))
		s++;
	n = strlen(s);
	while (n && isspace((unsigned char)s[n - 1]))
		s[--n] = '\0';
	return s;
}

/* Ends the line where the reason begins: at a # in front or behind a blank. */
static void cut_reason(char *line)
{
	for (char *at = strchr(line, '#'); at; at = strchr(at + 1, '#')) {
		if (at == line || isspace((unsigned char)at[-1])) {
			*at = '\0';
			return;
		}
	}
}

/* The colon between a type and its rule: no part of a ::, a blank or the end behind it. */
static char *find_colon(char *line)
{
	for (char *at = strchr(line, ':'); at; at = strchr(at + 1, ':')) {
		if (at[1] == ':')
			at++;
		else if (!at[1] || isspace((unsigned char)at[1]))
			return at;
	}
	return NULL;
}

static int add_token(struct parser *parser, char *at)
{
	if (parser->n == parser->room) {
		uint32_t room = parser->room ? parser->room * 2 : 16;
		char **token = reallocarray(parser->token, room, sizeof(*token));

		if (!token)
			return -ENOMEM;
		parser->token = token;
		parser->room = room;
	}
	parser->token[parser->n++] = at;
	return 0;
}

static bool is_operator(char c)
{
	return c && strchr("<>=!", c);
}

/* Cuts the rule into words, commas and comparisons.  A word that has none of
 * these behind it ends where the blank was; others need a zero byte of their
 * own, so all tokens are written one after the other into `to`. */
static int tokenize(struct parser *parser, const char *from, char *to)
{
	parser->n = 0;
	while (*from) {
		if (isspace((unsigned char)*from)) {
			from++;
			continue;
		}
		if (add_token(parser, to))
			return -ENOMEM;
		if (*from == ',') {
			*to++ = *from++;
		} else if (is_operator(*from)) {
			while (is_operator(*from))
				*to++ = *from++;
		} else {
			while (*from && *from != ',' && !is_operator(*from) &&
			       !isspace((unsigned char)*from))
				*to++ = *from++;
		}
		*to++ = '\0';
	}
	return 0;
}

static bool is_token(const struct parser *parser, uint32_t i, const char *word)
{
	return i < parser->n && !strcmp(parser->token[i], word);
}

/* Whether the tokens end in the words of the phrase; how many these are, or 0. */
static uint32_t ends_in(const struct parser *parser, const char *phrase)
{
	uint32_t n = 1, i;
	const char *at;

	for (at = phrase; *at; at++)
		n += *at == ' ';
	if (parser->n < n)
		return 0;
	at = phrase;
	for (i = parser->n - n; i < parser->n; i++) {
		size_t len = strcspn(at, " ");

		if (strncmp(parser->token[i], at, len) || parser->token[i][len])
			return 0;
		at += len + (at[len] == ' ');
	}
	return n;
}

static bool number(const char *token, uint64_t *value)
{
	char *end;

	if (!isdigit((unsigned char)*token))
		return false;
	errno = 0;
	*value = strtoull(token, &end, 0);
	return !*end && !errno;
}

/* Takes the members first to end - 1 of the tokens, which commas or "and" stand
 * between, in front of which there may be the name of a group. */
static int take_members(struct parser *parser, struct hl_rule *rule, uint32_t first, uint32_t end,
			uint32_t least)
{
	bool want_member = true;

	rule->word = calloc(end - first + 1, sizeof(*rule->word));
	if (!rule->word)
		return out_of_memory(parser->err);
	for (uint32_t i = first; i < end; i++) {
		bool comma = is_token(parser, i, ",");
		bool between = comma || (!want_member && is_token(parser, i, "and"));

		if (between && !want_member) {
			want_member = true;
			/* "a, b, and c" */
			if (comma && i + 2 < end && is_token(parser, i + 1, "and"))
				i++;
		} else if (!between && want_member) {
			rule->word[rule->n_words++] = parser->token[i];
			want_member = false;
		} else {
			return malformed(parser, "members have a comma or \"and\" between them",
					 rule->text);
		}
	}
	if (want_member || rule->n_words < least)
		return malformed(parser, least > 1 ? "this takes two members or more" :
						     "there is no member", rule->text);
	return 0;
}

static int parse_group(struct parser *parser, struct hl_rule *rule)
{
	if (parser->n < 4 || !is_token(parser, 2, "="))
		return malformed(parser, "a group is written \"group NAME = MEMBER, MEMBER\"",
				 rule->text);
	rule->kind = HL_RULE_GROUP;

	int status = take_members(parser, rule, 3, parser->n, 1);

	if (status)
		return status;
	/* There was room for one more than the members: the name goes in front. */
	memmove(rule->word + 1, rule->word, rule->n_words * sizeof(*rule->word));
	rule->word[0] = parser->token[1];
	rule->n_words++;
	return 0;
}

static bool comparison(const char *token, enum hl_comparison *to)
{
	static const struct {
		const char *token;
		enum hl_comparison is;
	} all[] = {
		{ "<", HL_LESS }, { "<=", HL_AT_MOST }, { "=", HL_EQUAL }, { "==", HL_EQUAL },
		{ "!=", HL_UNEQUAL }, { ">=", HL_AT_LEAST }, { ">", HL_MORE },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (!strcmp(token, all[i].token)) {
			*to = all[i].is;
			return true;
		}
	}
	return false;
}

/* "size <= 128", "size <= 2 lines".  False when the tokens are no such thing. */
static bool parse_quantity(const struct parser *parser, struct hl_rule *rule)
{
	uint32_t n = parser->n;

	if (n == 4) {
		if (is_token(parser, 3, "lines") || is_token(parser, 3, "line"))
			rule->in_lines = true;
		else if (!is_token(parser, 3, "bytes") && !is_token(parser, 3, "byte"))
			return false;
		n--;
	}
	if (n != 3 || !comparison(parser->token[1], &rule->comparison) ||
	    !number(parser->token[2], &rule->first))
		return false;
	for (unsigned i = 0; i < HL_N_QUANTITIES; i++) {
		if (is_token(parser, 0, hl_quantity_name[i])) {
			rule->kind = HL_RULE_QUANTITY;
			rule->quantity = i;
			return n == parser->n || i == HL_QUANTITY_SIZE ||
			       (!rule->in_lines && i != HL_QUANTITY_HOLES && i != HL_QUANTITY_LINES);
		}
	}
	return false;
}

/* "no holes", "no padding", "fits in one line": other words for quantities. */
static bool parse_words(const struct parser *parser, struct hl_rule *rule)
{
	rule->kind = HL_RULE_QUANTITY;
	rule->comparison = HL_EQUAL;
	rule->first = 0;
	if (parser->n == 2 && ends_in(parser, "no holes")) {
		rule->quantity = HL_QUANTITY_HOLES;
		return true;
	}
	if (parser->n == 2 && ends_in(parser, "no padding")) {
		rule->quantity = HL_QUANTITY_PADDING;
		return true;
	}
	if (parser->n == 4 && ends_in(parser, "fits in one line")) {
		rule->quantity = HL_QUANTITY_LINES;
		rule->comparison = HL_AT_MOST;
		rule->first = 1;
		return true;
	}
	return false;
}

/* The tokens "within line 0", "within lines 0 to 1" or "0-1" at the end: how
 * many they are, or 0. */
static uint32_t parse_within(const struct parser *parser, struct hl_rule *rule)
{
	uint32_t n = parser->n;

	for (uint32_t i = 1; i + 2 < n; i++) {
		char *dash;

		if (!is_token(parser, i, "within") ||
		    !(is_token(parser, i + 1, "line") || is_token(parser, i + 1, "lines")))
			continue;
		if (i + 5 == n && (is_token(parser, i + 3, "to") || is_token(parser, i + 3, "-")) &&
		    number(parser->token[i + 2], &rule->first) &&
		    number(parser->token[i + 4], &rule->last))
			return rule->first <= rule->last ? 5 : 0;
		if (i + 3 != n)
			return 0;
		dash = strchr(parser->token[i + 2], '-');
		if (dash) {
			*dash = '\0';
			return number(parser->token[i + 2], &rule->first) &&
			       number(dash + 1, &rule->last) && rule->first <= rule->last ? 3 : 0;
		}
		rule->last = 0;
		if (!number(parser->token[i + 2], &rule->first))
			return 0;
		rule->last = rule->first;
		return 3;
	}
	return 0;
}

static int parse_rule(struct parser *parser, struct hl_rule *rule)
{
	uint32_t n;

	/* A group is told from a member called "group" by its equals sign. */
	if (is_token(parser, 0, "group") && !is_token(parser, 1, "on") &&
	    !is_token(parser, 1, "within") && !is_token(parser, 1, "at") &&
	    !is_token(parser, 1, ",") && !is_token(parser, 1, "and"))
		return parse_group(parser, rule);

	n = ends_in(parser, "on different lines");
	if (n) {
		rule->kind = HL_RULE_APART;
		return take_members(parser, rule, 0, parser->n - n, 2);
	}
	n = ends_in(parser, "on the same line");
	if (!n)
		n = ends_in(parser, "on one line");
	if (n) {
		rule->kind = HL_RULE_TOGETHER;
		return take_members(parser, rule, 0, parser->n - n, 1);
	}
	n = parse_within(parser, rule);
	if (n) {
		rule->kind = HL_RULE_WITHIN;
		return take_members(parser, rule, 0, parser->n - n, 1);
	}
	if (parser->n == 3 && is_token(parser, 1, "at") && number(parser->token[2], &rule->first)) {
		rule->kind = HL_RULE_AT;
		return take_members(parser, rule, 0, 1, 1);
	}
	if (parse_quantity(parser, rule) || parse_words(parser, rule))
		return 0;
	return malformed(parser, "not a rule; rules are \"x and y on different lines\", "
			 "\"x and y on the same line\", \"x within line 0\", \"x at 0\", "
			 "\"size <= 128\" (or align, lines, holes, padding), \"no holes\", "
			 "\"fits in one line\", \"group NAME = x, y\"", rule->text);
}

static int parse_accept(struct parser *parser, struct hl_rule *rule, char *statement)
{
	size_t n = strcspn(statement, " \t");
	char end = statement[n];
	int kind;

	statement[n] = '\0';
	kind = hl_fault_by_name(statement);
	rule->kind = HL_RULE_ACCEPT;
	rule->type = end ? trim(statement + n + 1) : "";
	if (kind < 0)
		return malformed(parser, "no fault goes by that name (--explain all lists them)",
				 statement);
	if (!*rule->type)
		return malformed(parser, "an accepted fault is written \"accept FAULT TYPE\"",
				 rule->text);
	rule->fault = kind;
	return 0;
}

static struct hl_rule *new_rule(struct hl_rules *rules)
{
	if (rules->n == rules->room) {
		uint32_t room = rules->room ? rules->room * 2 : 32;
		struct hl_rule *rule = reallocarray(rules->rule, room, sizeof(*rule));

		if (!rule)
			return NULL;
		rules->rule = rule;
		rules->room = room;
	}
	rules->rule[rules->n] = (struct hl_rule){ 0 };
	return &rules->rule[rules->n++];
}

/* `line` is ours to cut up; `text` is the same and stays, for messages; `room`
 * has place for twice as many bytes, for tokens. */
static int parse_line(struct parser *parser, char *line, char *text, char *room)
{
	struct hl_rule *rule;
	char *colon;

	cut_reason(line);
	cut_reason(text);
	line = trim(line);
	if (!*line)
		return 0;
	rule = new_rule(parser->rules);
	if (!rule)
		return out_of_memory(parser->err);
	rule->line = parser->line;
	rule->text = trim(text);
	if (!strncmp(line, "accept", 6) && (!line[6] || isspace((unsigned char)line[6])))
		return parse_accept(parser, rule, trim(line + 6));
	colon = find_colon(line);
	if (!colon)
		return malformed(parser, "neither \"accept FAULT TYPE\" nor \"TYPE: RULE\"",
				 rule->text);
	*colon = '\0';
	rule->type = trim(line);
	if (!*rule->type)
		return malformed(parser, "no type in front of the colon", rule->text);
	if (tokenize(parser, colon + 1, room))
		return out_of_memory(parser->err);
	return parse_rule(parser, rule);
}

static int parse_all(struct parser *parser, char *lines, char *texts, char *room)
{
	while (*lines) {
		size_t n = strcspn(lines, "\n");
		bool more = lines[n] == '\n';
		int status;

		lines[n] = texts[n] = '\0';
		parser->line++;
		status = parse_line(parser, lines, texts, room);
		if (status)
			return status;
		lines += n + more;
		texts += n + more;
		room += 2 * (n + more);
	}
	return 0;
}

int hl_rules_parse(struct hl_rules **out, const char *text, size_t len, const char *name,
		   struct hl_error *err)
{
	struct parser parser = { .name = name, .err = err };
	struct hl_rules *rules = calloc(1, sizeof(*rules));
	int status;

	*out = NULL;
	if (!rules)
		return out_of_memory(err);
	parser.rules = rules;
	rules->len = len;
	rules->source = malloc(len + 1);
	/* The lines to cut up, the same for messages, and the tokens. */
	rules->words = len < SIZE_MAX / 4 - 1 ? malloc(4 * (len + 1)) : NULL;
	if (!rules->source || !rules->words) {
		hl_rules_free(rules);
		return out_of_memory(err);
	}
	memcpy(rules->source, text, len);
	rules->source[len] = '\0';
	if (strlen(rules->source) != len) {
		snprintf(err->text, sizeof(err->text),
			 "%s: not a file of rules: it holds zero bytes", name);
		hl_rules_free(rules);
		return -EINVAL;
	}
	/* A mark that says UTF-8 is no part of the first line. */
	if (!strncmp(rules->source, "\xef\xbb\xbf", 3))
		memset(rules->source, ' ', 3);
	memcpy(rules->words, rules->source, len + 1);
	memcpy(rules->words + len + 1, rules->source, len + 1);
	status = parse_all(&parser, rules->words, rules->words + len + 1,
			   rules->words + 2 * (len + 1));
	free(parser.token);
	if (status) {
		hl_rules_free(rules);
		return status;
	}
	*out = rules;
	return 0;
}

void hl_rules_free(struct hl_rules *rules)
{
	if (!rules)
		return;
	for (uint32_t i = 0; i < rules->n; i++)
		free(rules->rule[i].word);
	free(rules->rule);
	free(rules->words);
	free(rules->source);
	free(rules);
}

uint32_t hl_rules_count(const struct hl_rules *rules)
{
	return rules->n;
}
