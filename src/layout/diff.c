// SPDX-License-Identifier: MIT
#include "layout/diff.h"

#include "layout/members.h"
#include "layout/shape.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- The types of a side by name. ---- */

struct entry {
	const char *name;	/* into names.text */
	size_t name_at;
	const char *file;	/* "" when it is not known */
	uint32_t index;
};

struct names {
	struct entry *entry;
	uint32_t n;
	struct hl_text text;
};

static int compare_entries(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	return order ? order : x->index < y->index ? -1 : x->index > y->index;
}

static int list_names(struct names *names, const struct hl_survey *survey)
{
	names->entry = calloc((size_t)survey->n + 1, sizeof(*names->entry));
	if (!names->entry)
		return -ENOMEM;
	for (uint32_t i = 0; i < survey->n; i++) {
		struct hl_subject subject = hl_survey_subject(survey, i);
		struct entry *entry = &names->entry[names->n];
		const char *file;
		uint32_t line;

		if (subject.variable || survey->types->type[subject.type].kind == HL_ENUM)
			continue;
		file = hl_subject_file(survey->types, subject, &line);
		*entry = (struct entry){
			.name_at = names->text.len, .file = file ? file : "", .index = i,
		};
		hl_subject_name(&names->text, survey->types, subject);
		hl_text_add(&names->text, "", 1);
		names->n++;
	}
	if (names->text.failed)
		return -ENOMEM;
	/* The text has stopped to move. */
	for (uint32_t i = 0; i < names->n; i++)
		names->entry[i].name = names->text.at + names->entry[i].name_at;
	qsort(names->entry, names->n, sizeof(*names->entry), compare_entries);
	return 0;
}

static void free_names(struct names *names)
{
	free(names->entry);
	hl_text_free(&names->text);
}

/* The faults of each subject lie in a row, after this: where they begin. */
struct by_subject {
	struct hl_ranked *fault;
	uint32_t *first;	/* survey->n + 2 of them: the last but one is the end */
};

static int group_faults(struct by_subject *by, const struct hl_diff_side *side)
{
	uint32_t n = side->survey->n;

	by->fault = calloc((size_t)side->ranking->n + 1, sizeof(*by->fault));
	by->first = calloc((size_t)n + 2, sizeof(*by->first));
	if (!by->fault || !by->first)
		return -ENOMEM;
	/* Counts stand two places on, so that they end up as the places of the first. */
	for (uint32_t i = 0; i < side->ranking->n; i++)
		by->first[side->ranking->fault[i].index + 2]++;
	for (uint32_t i = 2; i < n + 2; i++)
		by->first[i] += by->first[i - 1];
	for (uint32_t i = 0; i < side->ranking->n; i++) {
		const struct hl_ranked *fault = &side->ranking->fault[i];

		by->fault[by->first[fault->index + 1]++] = *fault;
	}
	return 0;
}

static void free_by_subject(struct by_subject *by)
{
	free(by->fault);
	free(by->first);
}

/* ---- One pair of types. ---- */

struct comparing {
	struct hl_diff *diff;
	struct by_subject before, after;
	struct hl_shape shape;	/* scratch */
};

static int add_change(struct hl_diff *diff, const struct hl_change *change)
{
	if (diff->n == diff->room) {
		uint32_t room = diff->room ? diff->room * 2 : 64;
		struct hl_change *at = reallocarray(diff->change, room, sizeof(*at));

		if (!at)
			return -ENOMEM;
		diff->change = at;
		diff->room = room;
	}
	diff->change[diff->n++] = *change;
	diff->worse |= (change->what & HL_CHANGE_WORSE) != 0;
	return 0;
}

static int add_fault(struct hl_diff *diff, const struct hl_ranked *fault)
{
	if (diff->n_faults == diff->faults_room) {
		uint32_t room = diff->faults_room ? diff->faults_room * 2 : 64;
		struct hl_ranked *at = reallocarray(diff->fault, room, sizeof(*at));

		if (!at)
			return -ENOMEM;
		diff->fault = at;
		diff->faults_room = room;
	}
	diff->fault[diff->n_faults++] = *fault;
	return 0;
}

static uint32_t count_kind(const struct hl_ranked *fault, uint32_t n, unsigned kind)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < n; i++)
		count += fault[i].kind == kind;
	return count;
}

static uint32_t faults_of(const struct by_subject *by, const struct entry *entry,
			  const struct hl_ranked **fault)
{
	*fault = NULL;
	if (!entry)
		return 0;
	*fault = by->fault + by->first[entry->index];
	return by->first[entry->index + 1] - by->first[entry->index];
}

/* Faults have no names of their own: there is a new one where there are more of a
 * kind, and the last ones of the kind count as the new ones. */
static int compare_faults(struct comparing *comparing, struct hl_change *change,
			  const struct entry *before, const struct entry *after)
{
	const struct hl_ranked *old, *new;
	uint32_t n_old = faults_of(&comparing->before, before, &old);
	uint32_t n_new = faults_of(&comparing->after, after, &new);

	change->first_fault = comparing->diff->n_faults;
	for (unsigned kind = 0; kind < HL_N_FAULTS; kind++) {
		uint32_t was = count_kind(old, n_old, kind), is = count_kind(new, n_new, kind);

		if (is > was && before)
			change->what |= HL_CHANGE_FAULT;
		if (is < was && after)
			change->what |= HL_CHANGE_MENDED;
		for (uint32_t i = 0, seen = 0; i < n_new; i++) {
			if (new[i].kind == kind && seen++ >= was &&
			    add_fault(comparing->diff, &new[i]))
				return -ENOMEM;
		}
	}
	change->n_faults = comparing->diff->n_faults - change->first_fault;
	return 0;
}

static int measure(struct comparing *comparing, const struct hl_diff_side *side,
		   struct hl_subject subject, uint64_t *size, uint64_t *lines)
{
	int status = hl_shape_measure(&comparing->shape, side->survey->types, subject.type,
				      side->survey->ruler.line);

	*size = comparing->shape.size;
	*lines = comparing->shape.lines;
	return status;
}

static void note_moved(void *arg, const struct hl_moved *moved)
{
	struct hl_change *change = arg;

	if (moved->old_line != moved->new_line)
		change->what |= HL_CHANGE_MOVED;
	if (moved->crosses)
		change->what |= HL_CHANGE_CROSSES;
}

/* Either of the entries may be NULL. */
static int compare_types(struct comparing *comparing, const struct entry *before,
			 const struct entry *after)
{
	struct hl_diff *diff = comparing->diff;
	struct hl_change change = { 0 };
	int status = 0;

	if (before) {
		change.old_subject = hl_survey_subject(diff->before.survey, before->index);
		status = measure(comparing, &diff->before, change.old_subject, &change.old_size,
				 &change.old_lines);
	}
	if (after && !status) {
		change.new_subject = hl_survey_subject(diff->after.survey, after->index);
		status = measure(comparing, &diff->after, change.new_subject, &change.new_size,
				 &change.new_lines);
	}
	if (!before)
		change.what |= HL_CHANGE_APPEARED;
	if (!after)
		change.what |= HL_CHANGE_VANISHED;
	if (before && after) {
		change.what |= change.new_size > change.old_size ? HL_CHANGE_GREW :
			       change.new_size < change.old_size ? HL_CHANGE_SHRANK : 0;
		change.what |= change.new_lines > change.old_lines ? HL_CHANGE_MORE_LINES :
			       change.new_lines < change.old_lines ? HL_CHANGE_FEWER_LINES : 0;
		if (!status)
			status = hl_diff_moved(diff, &change, note_moved, &change);
	}
	if (!status)
		status = compare_faults(comparing, &change, before, after);
	if (!status && change.what)
		status = add_change(diff, &change);
	diff->same += !change.what;
	return status;
}

/* ---- Types of one name: those of the same file belong together, then the rest
 * in their order. ---- */

static int pair_up(struct comparing *comparing, struct entry *before, uint32_t n_before,
		   struct entry *after, uint32_t n_after)
{
	bool *paired = calloc((size_t)n_before + n_after + 1, sizeof(*paired));
	bool *paired_after = paired + n_before;
	int status = paired ? 0 : -ENOMEM;

	for (int same_file = 1; same_file >= 0; same_file--) {
		uint32_t k = 0;

		for (uint32_t i = 0; i < n_before && !status; i++) {
			if (paired[i])
				continue;
			if (same_file)
				k = 0;
			while (k < n_after && (paired_after[k] ||
					       (same_file &&
						strcmp(before[i].file, after[k].file))))
				k++;
			if (k == n_after)
				continue;
			paired[i] = paired_after[k] = true;
			status = compare_types(comparing, &before[i], &after[k]);
		}
	}
	for (uint32_t i = 0; i < n_before && !status; i++) {
		if (!paired[i])
			status = compare_types(comparing, &before[i], NULL);
	}
	for (uint32_t k = 0; k < n_after && !status; k++) {
		if (!paired_after[k])
			status = compare_types(comparing, NULL, &after[k]);
	}
	free(paired);
	return status;
}

static uint32_t same_name(const struct names *names, uint32_t at, const char *name)
{
	uint32_t n = 0;

	while (at + n < names->n && !strcmp(names->entry[at + n].name, name))
		n++;
	return n;
}

static int compare_all(struct comparing *comparing, struct names *before, struct names *after)
{
	uint32_t i = 0, k = 0;
	int status = 0;

	while ((i < before->n || k < after->n) && !status) {
		const char *name;
		uint32_t n_before, n_after;

		if (i == before->n || (k < after->n && strcmp(after->entry[k].name,
							      before->entry[i].name) < 0))
			name = after->entry[k].name;
		else
			name = before->entry[i].name;
		n_before = same_name(before, i, name);
		n_after = same_name(after, k, name);
		status = pair_up(comparing, before->entry + i, n_before, after->entry + k, n_after);
		i += n_before;
		k += n_after;
	}
	return status;
}

/* What is worse first; otherwise the order is that of the names. */
static void put_worse_first(struct hl_diff *diff)
{
	struct hl_change *sorted = malloc(((size_t)diff->n + 1) * sizeof(*sorted));
	uint32_t n = 0;

	if (!sorted)
		return;		/* the order is a kindness */
	for (int worse = 1; worse >= 0; worse--) {
		for (uint32_t i = 0; i < diff->n; i++) {
			if (!(diff->change[i].what & HL_CHANGE_WORSE) == !worse)
				sorted[n++] = diff->change[i];
		}
	}
	free(diff->change);
	diff->change = sorted;
	diff->room = diff->n + 1;
}

int hl_diff_run(struct hl_diff *diff, struct hl_diff_side before, struct hl_diff_side after)
{
	struct comparing comparing = { .diff = diff };
	struct names old = { 0 }, new = { 0 };
	int status;

	*diff = (struct hl_diff){ .before = before, .after = after };
	status = list_names(&old, before.survey);
	if (!status)
		status = list_names(&new, after.survey);
	if (!status)
		status = group_faults(&comparing.before, &before);
	if (!status)
		status = group_faults(&comparing.after, &after);
	if (!status)
		status = compare_all(&comparing, &old, &new);
	if (!status)
		put_worse_first(diff);
	free_names(&old);
	free_names(&new);
	free_by_subject(&comparing.before);
	free_by_subject(&comparing.after);
	hl_shape_free(&comparing.shape);
	return status;
}

void hl_diff_free(struct hl_diff *diff)
{
	free(diff->change);
	free(diff->fault);
	*diff = (struct hl_diff){ 0 };
}

/* ---- Members. ---- */

struct place {
	const char *name;
	uint64_t first, last;
	uint32_t order;
};

struct places {
	struct place *at;
	uint32_t n, room;
	bool failed;
};

static bool take_place(void *arg, const struct hl_named *named)
{
	struct places *places = arg;

	if (places->n == places->room) {
		uint32_t room = places->room ? places->room * 2 : 32;
		struct place *at = reallocarray(places->at, room, sizeof(*at));

		if (!at) {
			places->failed = true;
			return false;
		}
		places->at = at;
		places->room = room;
	}
	places->at[places->n] = (struct place){
		named->name, hl_named_first(named), hl_named_last(named), places->n
	};
	places->n++;
	return true;
}

static int by_name(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	return order ? order : x->order < y->order ? -1 : x->order > y->order;
}

static bool crosses(const struct place *place, uint64_t line)
{
	return place->last - place->first < line && place->first / line != place->last / line;
}

static bool same_places(const struct places *a, const struct places *b)
{
	if (a->n != b->n)
		return false;
	for (uint32_t i = 0; i < a->n; i++) {
		if (a->at[i].first != b->at[i].first || a->at[i].last != b->at[i].last ||
		    strcmp(a->at[i].name, b->at[i].name))
			return false;
	}
	return true;
}

/* The place of that name in places sorted by name; NULL. */
static const struct place *find_place(const struct places *sorted, const char *name)
{
	uint32_t low = 0, high = sorted->n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (strcmp(sorted->at[middle].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < sorted->n && !strcmp(sorted->at[low].name, name) ? &sorted->at[low] : NULL;
}

int hl_diff_moved(const struct hl_diff *diff, const struct hl_change *change,
		  void (*visit)(void *arg, const struct hl_moved *moved), void *arg)
{
	uint64_t line = diff->after.survey->ruler.line;
	struct places old = { 0 }, new = { 0 };
	int status = 0;

	hl_named_each(diff->before.survey->types, change->old_subject.type, take_place, &old);
	hl_named_each(diff->after.survey->types, change->new_subject.type, take_place, &new);
	if (old.failed || new.failed)
		status = -ENOMEM;
	else if (same_places(&old, &new))
		new.n = 0;
	else if (old.n)
		qsort(old.at, old.n, sizeof(*old.at), by_name);
	for (uint32_t i = 0; i < new.n && !status; i++) {
		const struct place *now = &new.at[i], *was = find_place(&old, now->name);
		/* A member that is new has not moved. */
		uint64_t from = was ? was->first : now->first;
		const struct hl_moved moved = {
			.name = now->name,
			.old_offset = from, .new_offset = now->first,
			.old_line = from / line, .new_line = now->first / line,
			.crosses = crosses(now, line) && !(was && crosses(was, line)),
		};

		if (moved.crosses || moved.old_line != moved.new_line)
			visit(arg, &moved);
	}
	free(old.at);
	free(new.at);
	return status;
}
