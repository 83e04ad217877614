// SPDX-License-Identifier: MIT
/*
 * The order of fields that makes a struct smallest.
 *
 * The fields are cut into sections at each HL_FIELD_NEW_LINE and each member of no
 * size, which marks where a group begins, and a section into items that stay
 * together.  A pass walks the items in some order, and whenever the next one would
 * leave a hole it first fetches a later one that fits in.  Walked in the order of the
 * source, it moves little; when that is not enough, the items are walked by falling
 * alignment, which leaves no holes between objects whose size is a multiple of their
 * alignment.  What these passes cannot prove to be least (bit-fields, over-aligned
 * members) is searched through when the items are few.
 */
#include "cursor.h"
#include "place.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Items of which all orders are tried: 5040 at most. */
#define MAX_SEARCHED 7

/* Looks at a field in one call: enough for each of 500 fields to be held against each,
 * and for a file of a million members to come to an end. */
#define MAX_LOOKS 250000

#define NONE UINT32_MAX

struct item {
	uint32_t first, n; /* its fields */
	uint32_t align; /* the largest of them */
	uint32_t before; /* the item that it was moved before; NONE: not moved */
	bool bits; /* a run of bit-fields */
};

struct smallest {
	struct hl_placing *placing;
	unsigned line;
	struct hl_field *field; /* as they stood at first, without HL_FIELD_NEW_LINE */
	struct item *item; /* of the section, in the order of the source */
	uint32_t n, n_fields;
	uint32_t fixed, open; /* items that stay first; items before those that stay last */
	enum { LAST_SECTION, BEFORE_LINE, BEFORE_MARKER } kind; /* of section: what follows */
	struct hl_cursor start; /* where the section begins */
	uint32_t *order, *best, *next, *sorted; /* scratch: indexes of items */
	uint64_t best_size;
	uint64_t looks;
};

static bool follows_run(const struct item *item, const struct item *last)
{
	return item->bits && last && last->bits && item->first != last->first + last->n;
}

/* Two runs that were apart stay in storage of their own: fields that share it cannot
 * be written by two threads. */
static struct hl_field first_field(const struct smallest *s, const struct item *item,
				   const struct item *last)
{
	struct hl_field field = s->field[item->first];

	if (follows_run(item, last))
		field.flags |= HL_FIELD_NEW_UNIT;
	return field;
}

/* Places an item; tells the byte at which it begins. */
static uint64_t put_item(const struct smallest *s, struct hl_cursor *cursor,
			 const struct item *item, const struct item *last)
{
	struct hl_field field = first_field(s, item, last);
	uint64_t start = hl_cursor_put(cursor, s->placing, &field, s->line);

	for (uint32_t i = 1; i < item->n; i++)
		hl_cursor_put(cursor, s->placing, &s->field[item->first + i], s->line);
	return start / 8;
}

/* What is to be least: the size of all, the lines, or where the next section begins. */
static uint64_t section_size(const struct smallest *s, const struct hl_cursor *cursor)
{
	if (s->kind == LAST_SECTION)
		return hl_cursor_size(cursor, s->placing);
	return hl_round_up(cursor->end, s->kind == BEFORE_LINE ? (uint64_t)s->line * 8 : 8);
}

static uint64_t size_of_order(const struct smallest *s, const uint32_t *order)
{
	struct hl_cursor cursor = s->start;
	const struct item *last = NULL;

	for (uint32_t i = 0; i < s->n; i++) {
		put_item(s, &cursor, &s->item[order[i]], last);
		last = &s->item[order[i]];
	}
	return section_size(s, &cursor);
}

/* The size if there was no hole at all. */
static uint64_t least_size(const struct smallest *s)
{
	struct hl_cursor cursor = s->start;

	for (uint32_t i = 0; i < s->n; i++) {
		const struct item *item = &s->item[i];

		for (uint32_t j = item->first; j < item->first + item->n; j++) {
			const struct hl_field *field = &s->field[j];

			cursor.end += field->bits ? field->bits + field->pad : field->data_size * 8;
			if (cursor.align < field->align)
				cursor.align = field->align;
		}
	}
	return section_size(s, &cursor);
}

/* Bytes that lie free before the item if it comes next. */
static uint64_t gap_before(struct smallest *s, const struct hl_cursor *cursor,
			   const struct item *item, const struct item *last, uint64_t *end)
{
	struct hl_cursor trial = *cursor;
	uint64_t start = put_item(s, &trial, item, last);
	uint64_t from = hl_round_up(cursor->end, 8) / 8;

	s->looks += item->n;
	*end = hl_round_up(trial.end, 8) / 8;
	return start > from ? start - from : 0;
}

/* A later item that fits before `limit` bytes, into the list of which `from` is the
 * first: the one that leaves the smallest hole, the most aligned of those; tells
 * what stands before it in the list. */
static uint32_t find_filler(struct smallest *s, const struct hl_cursor *cursor, uint32_t from,
			    const struct item *last, uint64_t limit)
{
	uint32_t found = NONE, found_align = 0;
	uint64_t found_gap = UINT64_MAX;

	for (uint32_t prev = from; s->next[prev] != NONE; prev = s->next[prev]) {
		uint32_t index = s->next[prev];
		const struct item *item = &s->item[index];
		uint64_t end, gap;

		if (index >= s->open || s->looks > MAX_LOOKS)
			break;
		gap = gap_before(s, cursor, item, last, &end);
		if (end > limit || follows_run(item, last))
			continue;
		if (gap < found_gap || (gap == found_gap && item->align > found_align)) {
			found = prev;
			found_gap = gap;
			found_align = item->align;
		}
	}
	return found;
}

static void link_items(struct smallest *s, const uint32_t *order)
{
	for (uint32_t i = 0; i < s->n; i++) {
		s->next[order[i]] = i + 1 < s->n ? order[i + 1] : NONE;
		s->item[order[i]].before = NONE;
	}
}

/* The pass: s->order becomes the items of `from`, holes filled with later ones. */
static void fill_holes(struct smallest *s, const uint32_t *from)
{
	struct hl_cursor cursor = s->start;
	const struct item *last = NULL;
	uint32_t head = s->n ? from[0] : NONE;
	uint32_t n = 0;

	link_items(s, from);
	while (head != NONE) {
		uint32_t taken = head, prev = NONE;
		uint64_t end, gap = gap_before(s, &cursor, &s->item[head], last, &end);

		if (gap && head >= s->fixed)
			prev = find_filler(s, &cursor, head, last,
					   hl_round_up(cursor.end, 8) / 8 + gap);
		if (prev == NONE) {
			head = s->next[head];
		} else {
			taken = s->next[prev];
			s->next[prev] = s->next[taken];
			s->item[taken].before = head;
		}
		put_item(s, &cursor, &s->item[taken], last);
		last = &s->item[taken];
		s->order[n++] = taken;
	}
}

static bool keep_if_smaller(struct smallest *s)
{
	uint64_t size = size_of_order(s, s->order);

	s->looks += s->n_fields;
	if (size >= s->best_size)
		return false;
	s->best_size = size;
	memcpy(s->best, s->order, s->n * sizeof(*s->best));
	return true;
}

/* The order `from` with item x back where the source has it: before the first item
 * behind it that was not moved. */
static void undo_move(const struct smallest *s, const uint32_t *from, uint32_t x, uint32_t *to)
{
	uint32_t n = 0;
	bool done = false;

	for (uint32_t i = 0; i < s->n; i++) {
		uint32_t index = from[i];

		if (index == x)
			continue;
		if (!done && index > x && s->item[index].before == NONE) {
			to[n++] = x;
			done = true;
		}
		to[n++] = index;
	}
	if (!done)
		to[n] = x;
}

/* Takes back what the pass over the source's order moved without need. */
static void undo_moves(struct smallest *s)
{
	for (uint32_t x = s->n; x-- && s->looks < MAX_LOOKS;) {
		if (s->item[x].before == NONE)
			continue;
		s->looks += s->n_fields;
		undo_move(s, s->best, x, s->order);
		if (size_of_order(s, s->order) > s->best_size)
			continue;
		memcpy(s->best, s->order, s->n * sizeof(*s->best));
		s->item[x].before = NONE;
	}
}

static int compare_align(const void *a, const void *b, void *arg)
{
	const struct smallest *s = arg;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	if (s->item[x].align != s->item[y].align)
		return s->item[x].align > s->item[y].align ? -1 : 1;
	return x < y ? -1 : x > y;
}

static int compare_runs_last(const void *a, const void *b, void *arg)
{
	const struct smallest *s = arg;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	if (s->item[x].bits != s->item[y].bits)
		return s->item[x].bits ? 1 : -1;
	return compare_align(a, b, arg);
}

static void source_order(const struct smallest *s, uint32_t *order)
{
	for (uint32_t i = 0; i < s->n; i++)
		order[i] = i;
}

static void try_sorted(struct smallest *s, int (*compare)(const void *, const void *, void *))
{
	source_order(s, s->sorted);
	qsort_r(s->sorted + s->fixed, s->open - s->fixed, sizeof(*s->sorted), compare, s);
	fill_holes(s, s->sorted);
	keep_if_smaller(s);
}

static void swap(uint32_t *a, uint32_t *b)
{
	uint32_t c = *a;

	*a = *b;
	*b = c;
}

/* The next permutation in lexicographic order; false after the last. */
static bool next_order(uint32_t *order, uint32_t n)
{
	uint32_t i = n, j = n;

	while (--i && order[i - 1] > order[i])
		;
	if (!i)
		return false;
	while (order[--j] < order[i - 1])
		;
	swap(&order[i - 1], &order[j]);
	for (j = n - 1; i < j; i++, j--)
		swap(&order[i], &order[j]);
	return true;
}

static void search(struct smallest *s, uint64_t least)
{
	uint32_t n = s->open - s->fixed;

	if (n < 2 || n > MAX_SEARCHED)
		return;
	source_order(s, s->order);
	while (s->best_size > least && s->looks < MAX_LOOKS && next_order(s->order + s->fixed, n))
		keep_if_smaller(s);
}

static void order_section(struct smallest *s)
{
	uint64_t least = least_size(s);

	source_order(s, s->best);
	s->best_size = size_of_order(s, s->best);
	if (s->best_size == least)
		return;
	source_order(s, s->sorted);
	fill_holes(s, s->sorted);
	if (keep_if_smaller(s))
		undo_moves(s);
	if (s->best_size > least)
		try_sorted(s, compare_align);
	if (s->best_size > least)
		try_sorted(s, compare_runs_last);
	if (s->best_size > least)
		search(s, least);
}

/* Writes the section's fields back in the best order; moves the start on. */
static void finish_section(struct smallest *s, uint32_t from, bool new_line)
{
	struct hl_field *to = s->placing->field + from;
	const struct item *last = NULL;

	for (uint32_t i = 0; i < s->n; i++) {
		const struct item *item = &s->item[s->best[i]];

		to[0] = first_field(s, item, last);
		memcpy(to + 1, &s->field[item->first + 1], (item->n - 1) * sizeof(*to));
		to += item->n;
		put_item(s, &s->start, item, last);
		last = item;
	}
	if (new_line)
		s->placing->field[from].flags |= HL_FIELD_NEW_LINE;
}

static bool is_marker(const struct hl_field *field)
{
	return !field->size && !(field->flags & (HL_FIELD_FIXED | HL_FIELD_LAST));
}

/* Cuts the section's fields into items. */
static void fill_items(struct smallest *s, uint32_t from, uint32_t to)
{
	s->n = s->fixed = s->open = 0;
	s->n_fields = to - from;
	for (uint32_t i = from; i < to; i++) {
		const struct hl_field *field = &s->field[i];
		struct item *item;

		if (i == from || !(field->flags & HL_FIELD_WITH_PREVIOUS)) {
			item = &s->item[s->n++];
			*item = (struct item){ .first = i,
					       .before = NONE,
					       .bits = field->bits != 0 };
			if (field->flags & HL_FIELD_FIXED || (i == from && is_marker(field)))
				s->fixed = s->n;
			if (!(field->flags & HL_FIELD_LAST))
				s->open = s->n;
		}
		item = &s->item[s->n - 1];
		item->n++;
		if (item->align < field->align)
			item->align = field->align;
	}
	if (s->open < s->fixed)
		s->open = s->fixed;
}

static uint32_t section_end(const struct hl_placing *placing, uint32_t from)
{
	uint32_t to = from + 1;

	while (to < placing->n && !(placing->field[to].flags & HL_FIELD_NEW_LINE) &&
	       !is_marker(&placing->field[to]))
		to++;
	return to;
}

static void set_kind(struct smallest *s, uint32_t to)
{
	if (to == s->placing->n)
		s->kind = LAST_SECTION;
	else if (s->placing->field[to].flags & HL_FIELD_NEW_LINE)
		s->kind = BEFORE_LINE;
	else
		s->kind = BEFORE_MARKER;
}

static void order_sections(struct smallest *s)
{
	uint32_t to;

	s->start = hl_cursor_begin(s->placing);
	for (uint32_t from = 0; from < s->placing->n; from = to) {
		bool new_line = s->placing->field[from].flags & HL_FIELD_NEW_LINE;

		to = section_end(s->placing, from);
		if (new_line) {
			s->field[from].flags &= (uint16_t)~HL_FIELD_NEW_LINE;
			s->start.end = hl_round_up(s->start.end, (uint64_t)s->line * 8);
			if (s->start.align < s->line)
				s->start.align = s->line;
		}
		set_kind(s, to);
		fill_items(s, from, to);
		order_section(s);
		finish_section(s, from, new_line);
	}
}

int hl_place_smallest(struct hl_placing *placing, unsigned line)
{
	struct smallest s = { .placing = placing, .line = line };
	size_t n = placing->n;
	uint32_t *scratch;

	s.field = malloc((n ? n : 1) * sizeof(*s.field));
	s.item = malloc((n ? n : 1) * sizeof(*s.item));
	scratch = malloc((n ? n : 1) * 4 * sizeof(*scratch));
	if (s.field && s.item && scratch) {
		s.order = scratch;
		s.best = scratch + n;
		s.next = scratch + 2 * n;
		s.sorted = scratch + 3 * n;
		if (n)
			memcpy(s.field, placing->field, n * sizeof(*s.field));
		if (!placing->packed && !placing->overlay)
			order_sections(&s);
		hl_place(placing, line);
	}

	int error = s.field && s.item && scratch ? 0 : -ENOMEM;

	free(s.field);
	free(s.item);
	free(scratch);
	return error;
}
