// SPDX-License-Identifier: MIT
/*
 * lock-beside-read-mostly: each taking of the lock takes the line away from those
 * who only read its neighbours (O2, O3).
 */
#include "find.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A struct of more lines is no longer one thing that is laid out. */
#define MOST_LINES 4096u

/* A line of a struct with its written and its read-mostly fields. */
struct mixed {
	const struct hl_leaf *written;
	unsigned constants, steadies;
	bool lock;
};

/* Where an author aligned a whole struct to a line and put a lock into it, what shares
 * the lock's line is what it guards: only what nobody writes at all speaks against it. */
static bool is_guard_line(const struct hl_find *find, const struct mixed *m)
{
	return find->type->align_log2 && find->align >= find->line && m->lock;
}

static bool on_line(const struct hl_find *find, const struct hl_leaf *leaf, uint64_t line)
{
	return leaf->size && leaf->offset / find->apart <= line &&
	       (leaf->offset + leaf->size - 1) / find->apart >= line;
}

/* Adds what a leaf brings to each line that it lies on. */
static void add_leaf(const struct hl_find *find, const struct hl_leaf *leaf, struct mixed *mixed,
		     uint64_t lines)
{
	uint64_t line = leaf->offset / find->apart;
	uint64_t last = leaf->size ? (leaf->offset + leaf->size - 1) / find->apart : 0;

	for (; leaf->size && line <= last && line < lines; line++) {
		struct mixed *m = &mixed[line];

		if (hl_look_is_written(leaf->look)) {
			if (!m->written || (leaf->look == HL_LOOK_LOCK && !m->lock))
				m->written = leaf;
			m->lock = m->lock || leaf->look == HL_LOOK_LOCK;
		}
		m->constants += leaf->look == HL_LOOK_CONSTANT;
		m->steadies += leaf->look == HL_LOOK_STEADY;
	}
}

/* How much a line's mixture costs; 0: nothing is wrong with it. */
static double weight_of(const struct hl_find *find, const struct mixed *m)
{
	unsigned steadies = is_guard_line(find, m) ? 0 : m->steadies;

	if (!m->written || !(m->constants * 2 + steadies >= 2))
		return 0;

	return 280 + 120 * (m->constants > 3 ? 3 : m->constants) +
	       30 * (steadies > 5 ? 5 : steadies);
}

/* ---- The proposal ---- */

/* Which top members hold what is written, and which what is read.  A link that lies with
 * what is read does not make it written. */
static int sort_members(const struct hl_find *find, uint8_t *written, uint8_t *read)
{
	for (uint32_t i = 0; i < find->n_leaves; i++) {
		const struct hl_leaf *leaf = &find->leaf[i];

		if (hl_look_is_written(leaf->look))
			written[leaf->top] = 1;
		if (leaf->look == HL_LOOK_CONSTANT || leaf->look == HL_LOOK_STEADY)
			read[leaf->top] = 1;
	}
	/* A nested struct that holds both can be moved as a whole only. */
	for (uint32_t i = 0; i < find->type->count; i++)
		if (written[i] && read[i])
			return -ENOTSUP;
	for (uint32_t i = 0; i < find->n_leaves; i++)
		if (find->leaf[i].look == HL_LOOK_LINK && !read[find->leaf[i].top])
			written[find->leaf[i].top] = 1;
	return 0;
}

static void append(struct hl_placing *to, const struct hl_field *field)
{
	to->field[to->n++] = *field;
}

/* Two groups: what is read and what is neither, then what is written, on a line of
 * its own.  neutral_first: fields that are neither go to the first group. */
static int regroup(const struct hl_find *find, const uint8_t *written, bool neutral_first,
		   const uint8_t *read, struct hl_placing *proposal)
{
	const struct hl_placing *now = &find->placing;
	uint32_t start = 0;

	if (hl_placing_copy(proposal, now))
		return -ENOMEM;
	proposal->n = 0;
	for (int group = 0; group < 4; group++) {
		if (group == 2)
			start = proposal->n;
		for (uint32_t i = 0; i < now->n; i++) {
			const struct hl_field *field = &now->field[i];
			uint32_t top = field->member - find->type->first;
			bool fixed = field->flags & HL_FIELD_FIXED, last = field->flags & HL_FIELD_LAST;
			bool second = written[top] || (!read[top] && !neutral_first);
			int belongs = fixed ? 0 : last ? 3 : second ? 2 : 1;

			if (belongs == group)
				append(proposal, field);
		}
	}
	if (start >= proposal->n)
		return -ENOTSUP;
	proposal->field[start].flags |= HL_FIELD_NEW_LINE;
	if (proposal->min_align < find->apart)
		proposal->min_align = find->apart;
	return hl_place_smallest(proposal, find->apart);
}

/* Whether the proposal keeps all that is written from all that is read. */
static bool separates(const struct hl_find *find, const uint8_t *written, const uint8_t *read,
		      const struct hl_placing *proposal)
{
	for (uint32_t i = 0; i < proposal->n; i++) {
		const struct hl_field *a = &proposal->field[i];

		if (!written[a->member - find->type->first])
			continue;
		for (uint32_t j = 0; j < proposal->n; j++) {
			const struct hl_field *b = &proposal->field[j];
			uint64_t from = a->bit_offset / 8 / find->apart;
			uint64_t to = (a->bit_offset / 8 + (a->size ? a->size - 1 : 0)) / find->apart;

			if (!read[b->member - find->type->first])
				continue;
			if (b->bit_offset / 8 / find->apart <= to &&
			    (b->bit_offset / 8 + (b->size ? b->size - 1 : 0)) / find->apart >= from)
				return false;
		}
	}
	return true;
}

/* The smaller of the two ways to group; 0 when there is one that separates. */
static int propose(const struct hl_find *find, struct hl_placing *best)
{
	uint8_t *written = calloc(find->type->count, 2), *read = written + find->type->count;
	int rc = written ? 0 : -ENOMEM;

	*best = (struct hl_placing){ 0 };
	if (!rc)
		rc = find->placed ? sort_members(find, written, read) : -ENOTSUP;
	for (int way = 0; !rc && way < 2; way++) {
		struct hl_placing proposal = { 0 };
		int made = regroup(find, written, way == 0, read, &proposal);

		if (made == -ENOMEM)
			rc = made;
		if (!made && separates(find, written, read, &proposal) &&
		    (!best->n || proposal.size < best->size)) {
			struct hl_placing swap = *best;

			*best = proposal;
			proposal = swap;
		}
		hl_placing_free(&proposal);
	}
	free(written);
	if (!rc && !best->n)
		rc = -ENOTSUP;
	return rc;
}

/* ---- The report ---- */

static void say(struct hl_find *find, const struct mixed *m, uint64_t line)
{
	struct hl_text *text = &find->evidence;
	unsigned shown = 0, more = 0;

	hl_text_printf(text, "%s ", hl_look_name(m->written->look));
	hl_find_path(text, find, m->written);
	hl_fault_member(find, m->written);
	hl_text_printf(text, " (byte %llu) shares line %llu with read-mostly ",
		       (unsigned long long)m->written->offset, (unsigned long long)line);
	for (uint32_t i = 0; i < find->n_leaves; i++) {
		const struct hl_leaf *leaf = &find->leaf[i];

		if (!on_line(find, leaf, line) || (leaf->look != HL_LOOK_CONSTANT &&
						   leaf->look != HL_LOOK_STEADY))
			continue;
		hl_fault_member(find, leaf);
		if (shown == 6) {
			more++;
			continue;
		}
		hl_text_puts(text, shown++ ? ", " : "");
		hl_find_path(text, find, leaf);
	}
	if (more)
		hl_text_printf(text, " and %u more", more);
	if (find->align < find->apart)
		hl_text_printf(text, "; aligned to %u it shares lines with its neighbours as well",
			       find->align);
}

static void advise(struct hl_find *find, int made, const struct hl_placing *proposal)
{
	struct hl_text *text = &find->advice;

	if (!made)
		hl_text_printf(text, "group the members: read-mostly first, the written ones from a line of "
			       "their own on; %llu bytes, %llu lines (now %llu, %llu)",
			       (unsigned long long)proposal->size,
			       (unsigned long long)hl_lines(proposal->size, find->line),
			       (unsigned long long)find->type->size,
			       (unsigned long long)hl_lines(find->type->size, find->line));
	else
		hl_text_puts(text, "put what is written on a line of its own, or point to it; a nested "
			     "struct here holds both kinds, so that one is to be split first");
}

/* The line where it is worst; its number in *worst. */
static double find_worst(struct hl_find *find, uint64_t lines, struct mixed *found, uint64_t *worst)
{
	struct mixed *mixed = calloc(lines, sizeof(*mixed));
	double most = 0;

	if (!mixed) {
		find->rc = -ENOMEM;
		return 0;
	}
	for (uint32_t i = 0; i < find->n_leaves; i++)
		if (find->leaf[i].look != HL_LOOK_PLAIN)
			add_leaf(find, &find->leaf[i], mixed, lines);
	for (uint64_t line = 0; line < lines; line++) {
		double weight = weight_of(find, &mixed[line]);

		if (weight > most) {
			most = weight;
			*worst = line;
			*found = mixed[line];
		}
	}
	free(mixed);
	return most;
}

static bool has_written(const struct hl_find *find)
{
	for (uint32_t i = 0; i < find->n_leaves; i++)
		if (hl_look_is_written(find->leaf[i].look))
			return true;
	return false;
}

void hl_find_lock_beside_read_mostly(struct hl_find *find)
{
	uint64_t lines = hl_lines(find->type->size, find->apart), worst = 0;
	struct mixed worst_line = { 0 };
	double most;

	if (find->type->kind == HL_UNION || lines > MOST_LINES || !has_written(find) ||
	    hl_look_is_shared(hl_look_of_type(find->looks, find->id)))
		return;
	most = find_worst(find, lines, &worst_line, &worst);
	if (most <= 0)
		return;

	struct hl_placing proposal;
	int made = propose(find, &proposal);

	if (made == -ENOMEM) {
		find->rc = made;
		return;
	}
	/* What cannot be mended by an order alone is further down the list. */
	double score = made ? most * 0.6 : most;

	say(find, &worst_line, worst);
	advise(find, made, &proposal);
	hl_fault_report(find, HL_FAULT_LOCK_BESIDE_READ_MOSTLY, hl_score(score),
			made ? NULL : &proposal, NULL);
	hl_placing_free(&proposal);
}
