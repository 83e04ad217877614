// SPDX-License-Identifier: MIT
#include "layout/subject.h"

#include "layout/clean.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *hl_subject_kind(const struct hl_types *types, struct hl_subject subject)
{
	if (subject.variable)
		return "variable";
	switch (types->type[hl_type_strip(types, subject.type)].kind) {
	case HL_STRUCT:
		return "struct";
	case HL_CLASS:
		return "class";
	case HL_UNION:
		return "union";
	case HL_ENUM:
		return "enum";
	default:
		return "type";
	}
}

/* The namespaces around the type, "" for none. */
static const char *scope_of(const struct hl_types *types, struct hl_subject subject)
{
	return subject.variable ? "" : types->file[types->type[subject.type].scope];
}

static const char *plain_name(const struct hl_types *types, struct hl_subject subject)
{
	if (!subject.variable)
		return hl_type_name(types, subject.type);

	const char *name = types->variable[subject.variable - 1].name;

	return name ? name : "(anonymous)";
}

void hl_subject_bare_name(struct hl_text *text, const struct hl_types *types,
			  struct hl_subject subject)
{
	const char *scope = scope_of(types, subject);

	if (*scope) {
		hl_clean_add(text, scope);
		hl_text_puts(text, "::");
	}
	hl_clean_add(text, plain_name(types, subject));
}

void hl_subject_name(struct hl_text *text, const struct hl_types *types,
		     struct hl_subject subject)
{
	if (subject.variable || types->type[subject.type].kind != HL_TYPEDEF) {
		hl_text_puts(text, hl_subject_kind(types, subject));
		hl_text_putc(text, ' ');
	}
	hl_subject_bare_name(text, types, subject);
}

const char *hl_subject_file(const struct hl_types *types, struct hl_subject subject,
			    uint32_t *line)
{
	uint32_t file;

	if (subject.variable) {
		const struct hl_variable *variable = &types->variable[subject.variable - 1];

		file = variable->file;
		*line = variable->line;
	} else {
		const struct hl_type *type = &types->type[hl_type_strip(types, subject.type)];

		if (!type->file)
			type = &types->type[subject.type];
		file = type->file;
		*line = type->line;
	}
	return file ? types->file[file] : NULL;
}

bool hl_subject_declared(struct hl_text *text, const struct hl_types *types,
			 struct hl_subject subject)
{
	uint32_t line;
	const char *file = hl_subject_file(types, subject, &line);

	if (!file)
		return false;
	hl_clean_add(text, file);
	hl_text_putc(text, ':');
	hl_text_u64(text, line);
	return true;
}

/* ---- Matching. ---- */

enum word { WORD_NONE, WORD_STRUCT, WORD_UNION, WORD_ENUM, WORD_TYPEDEF, WORD_VARIABLE };

/* Takes the word that says the kind off the query.  People say struct and class
 * of the same type. */
static enum word take_word(const char **query)
{
	static const struct {
		const char *text;
		enum word word;
	} words[] = {
		{ "struct", WORD_STRUCT }, { "class", WORD_STRUCT }, { "union", WORD_UNION },
		{ "enum", WORD_ENUM }, { "typedef", WORD_TYPEDEF }, { "variable", WORD_VARIABLE },
	};

	while (isspace((unsigned char)**query))
		(*query)++;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t n = strlen(words[i].text);

		if (strncmp(*query, words[i].text, n) || !isspace((unsigned char)(*query)[n]))
			continue;
		*query += n;
		while (isspace((unsigned char)**query))
			(*query)++;
		return words[i].word;
	}
	return WORD_NONE;
}

/* Whether the last n bytes of a scope are `part`, whole namespaces. */
static bool scope_ends_in(const char *scope, const char *part, size_t n)
{
	size_t len = strlen(scope);

	if (len < n || memcmp(scope + len - n, part, n))
		return false;
	return len == n || (len >= n + 2 && !memcmp(scope + len - n - 2, "::", 2));
}

/* Whether the query, without a word in front, is scope::name or an end of that. */
static bool name_matches(const char *query, const char *scope, const char *name, size_t name_len)
{
	bool anchored = !strncmp(query, "::", 2);

	if (anchored)
		query += 2;

	size_t len = strlen(query);

	if (len < name_len || memcmp(query + len - name_len, name, name_len))
		return false;
	len -= name_len;
	if (!len)
		return !anchored || !*scope;
	if (len < 3 || memcmp(query + len - 2, "::", 2))
		return false;
	len -= 2;
	return anchored ? strlen(scope) == len && !memcmp(scope, query, len) :
			  scope_ends_in(scope, query, len);
}

/* The same, with or without the template arguments of the name. */
static bool either_name_matches(const char *query, const char *scope, const char *name)
{
	size_t plain = strcspn(name, "<");

	return name_matches(query, scope, name, strlen(name)) ||
	       (plain && name[plain] && name_matches(query, scope, name, plain));
}

static bool word_fits(enum word word, const struct hl_types *types, struct hl_subject subject)
{
	enum hl_kind kind = types->type[hl_type_strip(types, subject.type)].kind;

	if (word == WORD_NONE)
		return true;
	if ((word == WORD_VARIABLE) != (subject.variable != 0))
		return false;
	switch (word) {
	case WORD_STRUCT:
		return kind == HL_STRUCT || kind == HL_CLASS;
	case WORD_UNION:
		return kind == HL_UNION;
	case WORD_ENUM:
		return kind == HL_ENUM;
	case WORD_TYPEDEF:
		return types->type[subject.type].kind == HL_TYPEDEF;
	default:
		return true;
	}
}

bool hl_subject_matches(const struct hl_types *types, struct hl_subject subject,
			const char *query)
{
	enum word word = take_word(&query);

	return *query && word_fits(word, types, subject) &&
	       either_name_matches(query, scope_of(types, subject), plain_name(types, subject));
}

int hl_subjects_add(struct hl_subjects *found, struct hl_subject subject)
{
	for (uint32_t i = 0; i < found->n; i++) {
		if (found->at[i].type == subject.type && found->at[i].variable == subject.variable)
			return 0;
	}
	if (found->n == found->room) {
		uint32_t room = found->room ? found->room * 2 : 8;
		struct hl_subject *at = reallocarray(found->at, room, sizeof(*at));

		if (!at)
			return -ENOMEM;
		found->at = at;
		found->room = room;
	}
	found->at[found->n++] = subject;
	return 0;
}

void hl_subjects_free(struct hl_subjects *found)
{
	free(found->at);
	*found = (struct hl_subjects){ 0 };
}

/* The subject that stands for a type: itself when the file defines it, or the
 * typedef that names it.  Type 0 when there is none. */
static struct hl_subject subject_of(const struct hl_types *types, hl_type_id id)
{
	for (uint32_t i = 0; i < types->n_defined; i++) {
		hl_type_id defined = types->defined[i];

		if (defined == id || (types->type[defined].kind == HL_TYPEDEF &&
				      hl_type_strip(types, defined) == id))
			return (struct hl_subject){ defined, 0 };
	}
	return (struct hl_subject){ 0, 0 };
}

/* Adds what the file defines under that name.  The number of matches. */
static int find_defined(struct hl_subjects *found, const struct hl_types *types, const char *query)
{
	int matches = 0;

	for (uint32_t i = 0; i < hl_n_subjects(types); i++) {
		struct hl_subject subject = hl_subject_at(types, i);

		if (!hl_subject_matches(types, subject, query))
			continue;
		if (hl_subjects_add(found, subject))
			return -ENOMEM;
		matches++;
	}
	return matches;
}

/* Adds what typedefs of that name stand for.  A typedef of what is only declared
 * here finds the definition that another unit has. */
static int find_typedefs(struct hl_subjects *found, const struct hl_types *types,
			 const char *query)
{
	int matches = 0;

	for (hl_type_id id = 1; id < types->n_types; id++) {
		const struct hl_type *type = &types->type[id];

		if (type->kind != HL_TYPEDEF || !type->name ||
		    !either_name_matches(query, types->file[type->scope], type->name))
			continue;

		hl_type_id stripped = hl_type_strip(types, id);
		const struct hl_type *target = &types->type[stripped];

		if (!hl_kind_is_aggregate(target->kind))
			continue;
		if (target->flags & HL_TYPE_DECLARATION && target->name) {
			int more = find_defined(found, types, target->name);

			if (more < 0)
				return more;
			matches += more;
			continue;
		}

		struct hl_subject subject = subject_of(types, stripped);

		if (!subject.type)
			continue;
		if (hl_subjects_add(found, subject))
			return -ENOMEM;
		matches++;
	}
	return matches;
}

static int find_enums(struct hl_subjects *found, const struct hl_types *types, const char *query)
{
	int matches = 0;

	for (hl_type_id id = 1; id < types->n_types; id++) {
		const struct hl_type *type = &types->type[id];

		if (type->kind != HL_ENUM || !type->name || type->flags & HL_TYPE_DECLARATION ||
		    !either_name_matches(query, types->file[type->scope], type->name))
			continue;
		if (hl_subjects_add(found, (struct hl_subject){ id, 0 }))
			return -ENOMEM;
		matches++;
	}
	return matches;
}

int hl_subjects_find(struct hl_subjects *found, const struct hl_types *types, const char *query)
{
	int matches = find_defined(found, types, query);

	if (matches < 0)
		return matches;

	enum word word = take_word(&query);

	if (!*query)
		return matches;
	if (!matches && (word == WORD_NONE || word == WORD_TYPEDEF)) {
		matches = find_typedefs(found, types, query);
		if (matches < 0)
			return matches;
	}
	if (!matches && (word == WORD_NONE || word == WORD_ENUM))
		matches = find_enums(found, types, query);
	return matches;
}

/* ---- Why there is nothing. ---- */

#define N_CLOSE		3
#define MAX_DISTANCE	64	/* longer names are not compared */

/* The number of letters to change, add or drop to make b of a, the case of the
 * letters for nothing; limit + 1 when it is more than limit. */
static unsigned distance(const char *a, const char *b, unsigned limit)
{
	size_t n = strlen(a), m = strlen(b);
	unsigned row[MAX_DISTANCE + 1];

	if (n > MAX_DISTANCE || m > MAX_DISTANCE || (n > m ? n - m : m - n) > limit)
		return limit + 1;
	for (size_t j = 0; j <= m; j++)
		row[j] = j;
	for (size_t i = 1; i <= n; i++) {
		unsigned diagonal = row[0], least = row[0] = i;

		for (size_t j = 1; j <= m; j++) {
			bool same = tolower((unsigned char)a[i - 1]) ==
				    tolower((unsigned char)b[j - 1]);
			unsigned change = diagonal + !same;

			diagonal = row[j];
			if (row[j - 1] + 1 < change)
				change = row[j - 1] + 1;
			if (row[j] + 1 < change)
				change = row[j] + 1;
			row[j] = change;
			if (change < least)
				least = change;
		}
		if (least > limit)
			return limit + 1;
	}
	return row[m];
}

struct close_name {
	struct hl_subject subject;
	unsigned distance;
};

/* The names closest to the query, closest first, each name once. */
static unsigned close_names(struct close_name *close, const struct hl_types *types,
			    const char *query)
{
	unsigned n = 0, limit = strlen(query) < 4 ? 1 : strlen(query) / 3;

	for (uint32_t i = 0; i < hl_n_subjects(types); i++) {
		struct hl_subject subject = hl_subject_at(types, i);
		const char *name = plain_name(types, subject);
		unsigned d = distance(query, name, limit), at;

		if (d > limit || (n == N_CLOSE && d >= close[n - 1].distance))
			continue;
		for (at = 0; at < n; at++) {
			if (!strcmp(plain_name(types, close[at].subject), name))
				break;
		}
		if (at < n)
			continue;
		if (n < N_CLOSE)
			n++;
		for (at = n - 1; at > 0 && close[at - 1].distance > d; at--)
			close[at] = close[at - 1];
		close[at] = (struct close_name){ subject, d };
	}
	return n;
}

/* What else goes by that name: a type that is only declared, or one that has no
 * layout to speak of. */
static hl_type_id other_type(const struct hl_types *types, const char *query)
{
	for (hl_type_id id = 1; id < types->n_types; id++) {
		const struct hl_type *type = &types->type[id];

		if (type->name && either_name_matches(query, types->file[type->scope], type->name))
			return id;
	}
	return 0;
}

void hl_subjects_why_none(struct hl_text *text, const struct hl_types *types, const char *query)
{
	struct close_name close[N_CLOSE];
	const char *bare = query;
	enum word word = take_word(&bare);
	hl_type_id other = other_type(types, bare);
	bool declared = other && types->type[other].flags & HL_TYPE_DECLARATION;

	hl_text_puts(text, "no ");
	if (word == WORD_NONE)
		hl_text_puts(text, "struct, union or class ");
	hl_clean_add(text, query);
	if (declared) {
		hl_text_puts(text, ": it is only declared here, look in a file whose code uses its "
			     "members");
		return;
	}
	if (other && !hl_kind_is_aggregate(types->type[hl_type_strip(types, other)].kind)) {
		hl_text_puts(text, ": that is a type without members");
		return;
	}

	const char *last = strrchr(bare, ':');
	unsigned n = close_names(close, types, last ? last + 1 : bare);

	if (n) {
		hl_text_puts(text, "; did you mean ");
		for (unsigned i = 0; i < n; i++) {
			if (i)
				hl_text_puts(text, i + 1 < n ? ", " : " or ");
			hl_subject_name(text, types, close[i].subject);
		}
		hl_text_puts(text, "?\n");
	} else {
		hl_text_puts(text, ".\n");
	}
	hl_text_puts(text, "A compiler drops types that no code uses; "
		     "-fno-eliminate-unused-debug-types keeps them.");
}
