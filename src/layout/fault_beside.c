// SPDX-License-Identifier: MIT
/*
 * lock-beside-read-mostly: each taking of the lock takes the line away from those
 * who only read its neighbours (O2, O3).
 */
#include "find.h"
#include "weights.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A struct of more lines is no longer one thing that is laid out. */
#define MOST_LINES 4096u

/* A line of a struct with its written and its read-mostly fields. */
struct mixed {
	const struct hl_leaf *written, *tally;
	unsigned constants, steadies, pointers;
	uint32_t top; /* the member that all of these but the pointers lie in ... */
	bool several; /* ... unless they lie in more than one */
	bool lock;
};

static bool is_read(const struct hl_leaf *leaf)
{
	return leaf->look == HL_LOOK_CONSTANT || leaf->look == HL_LOOK_STEADY;
}

/* A pointer that is none of a list: where something is, set up once. */
static bool is_plain_pointer(const struct hl_leaf *leaf)
{
	return leaf->look == HL_LOOK_PLAIN && leaf->pointer && !leaf->callback;
}

/* Where an author aligned a whole struct to a line and put a lock into it, what shares
 * the lock's line is what it guards: only what nobody writes at all speaks against it. */
static bool is_guard_line(const struct hl_find *find, const struct mixed *m)
{
	return find->type->align_log2 && find->align >= find->line && m->lock;
}

/* Beside a lock, pointers are what it guards; beside an atomic count they are what all
 * have to read, except in what is so small that it is taken as a whole. */
static bool pointers_count(const struct hl_find *find, const struct mixed *m)
{
	return m->written && !m->lock && find->type->size >= find->line / 2 &&
	       hl_look_counted(m->written->member->name);
}

static bool is_evidence(const struct hl_find *find, const struct mixed *m,
			const struct hl_leaf *leaf)
{
	return is_read(leaf) ||
	       (pointers_count(find, m) && leaf->top != m->written->top && is_plain_pointer(leaf));
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
	bool pointer = is_plain_pointer(leaf);

	if (leaf->look == HL_LOOK_PLAIN && !pointer)
		return;
	for (; leaf->size && line <= last && line < lines; line++) {
		struct mixed *m = &mixed[line];

		if (is_read(leaf) || hl_look_is_written(leaf->look)) {
			if (!m->written && !(m->constants + m->steadies))
				m->top = leaf->top;
			m->several = m->several || m->top != leaf->top;
		}
		if (hl_look_is_written(leaf->look)) {
			if (!m->written || (leaf->look == HL_LOOK_LOCK && !m->lock))
				m->written = leaf;
			m->lock = m->lock || leaf->look == HL_LOOK_LOCK;
		}
		if (leaf->look == HL_LOOK_TALLY && !m->tally)
			m->tally = leaf;
		m->constants += leaf->look == HL_LOOK_CONSTANT;
		m->steadies += leaf->look == HL_LOOK_STEADY;
		m->pointers += pointer;
	}
}

static double at_most(unsigned n, unsigned most)
{
	return n < most ? n : most;
}

/* How much a line's mixture costs; 0: nothing is wrong with it. */
static double weight_of(const struct hl_find *find, const struct mixed *m)
{
	unsigned weak = is_guard_line(find, m) ? 0 : m->steadies;

	if (m->written) {
		if (pointers_count(find, m))
			weak += m->pointers;
		if (m->constants * 2 + weak < 2)
			return 0;
		return HL_W_BESIDE + HL_W_BESIDE_STRONG * at_most(m->constants, HL_W_MOST_STRONG) +
		       HL_W_BESIDE_WEAK * at_most(weak, HL_W_MOST_WEAK);
	}
	/* A plain count is written by somebody; whether by many, nobody can see. */
	if (m->tally && m->constants && m->constants * 2 + weak > 2)
		return HL_W_TALLY + HL_W_TALLY_STRONG * at_most(m->constants, HL_W_MOST_STRONG) +
		       HL_W_TALLY_WEAK * at_most(weak, HL_W_MOST_WEAK);
	return 0;
}

/* ---- The proposal ---- */

enum side {
	NEUTRAL,
	READ, /* to the lines of what is read ... */
	WRITTEN /* ... or to those of what is written */
};

static bool is_on_written_side(const struct hl_leaf *leaf, const struct mixed *worst)
{
	return hl_look_is_written(leaf->look) ||
	       (worst->written == NULL && leaf->look == HL_LOOK_TALLY);
}

static void lean(uint8_t *side, const struct hl_leaf *leaf, enum side towards)
{
	if (side[leaf->top] == NEUTRAL)
		side[leaf->top] = (uint8_t)towards;
}

/* Which top members hold what is written, and which what is read.  A link that does not lie
 * with what is read goes with the lock.  -ENOTSUP: a nested struct holds both, and can be
 * moved as a whole only. */
static int sort_members(const struct hl_find *find, const struct mixed *worst, uint8_t *side)
{
	for (uint32_t i = 0; i < find->n_leaves; i++) {
		const struct hl_leaf *leaf = &find->leaf[i];
		enum side wants = is_on_written_side(leaf, worst) ? WRITTEN
				  : is_read(leaf)		  ? READ
								  : NEUTRAL;

		if (wants != NEUTRAL && side[leaf->top] != NEUTRAL && side[leaf->top] != wants)
			return -ENOTSUP;
		if (wants != NEUTRAL)
			side[leaf->top] = wants;
	}
	for (uint32_t i = 0; i < find->n_leaves; i++)
		if (is_evidence(find, worst, &find->leaf[i]))
			lean(side, &find->leaf[i], READ);
	for (uint32_t i = 0; i < find->n_leaves; i++)
		if (find->leaf[i].look == HL_LOOK_LINK)
			lean(side, &find->leaf[i], WRITTEN);
	return 0;
}

static uint8_t *side_of(const struct hl_find *find, uint8_t *side, const struct hl_field *field)
{
	return &side[field->member - find->type->first];
}

/* A run of bit-fields stays together: on the side of what is read, if one of it is. */
static void sort_runs(const struct hl_find *find, uint8_t *side)
{
	const struct hl_placing *now = &find->placing;

	for (uint32_t i = now->n; i-- > 1;)
		if (now->field[i].flags & HL_FIELD_WITH_PREVIOUS &&
		    *side_of(find, side, &now->field[i]) == READ)
			*side_of(find, side, &now->field[i - 1]) = READ;
	for (uint32_t i = 1; i < now->n; i++)
		if (now->field[i].flags & HL_FIELD_WITH_PREVIOUS)
			*side_of(find, side, &now->field[i]) =
				*side_of(find, side, &now->field[i - 1]);
}

/* Gives what is neither to one side as long as it fits into the lines that the side takes
 * anyhow, the larger first, and the rest to the other side. */
static void fill_side(const struct hl_find *find, enum side first, uint8_t *side)
{
	const struct hl_placing *now = &find->placing;
	uint64_t used = 0, room;

	for (uint32_t i = 0; i < now->n; i++)
		if (*side_of(find, side, &now->field[i]) == first)
			used += now->field[i].data_size;
	room = (find->apart - used % find->apart) % find->apart;
	for (uint64_t size = find->apart; size; size /= 2) {
		for (uint32_t i = 0; i < now->n; i++) {
			const struct hl_field *field = &now->field[i];

			if (*side_of(find, side, field) != NEUTRAL || field->data_size > room ||
			    field->data_size < size || field->bits)
				continue;
			*side_of(find, side, field) = (uint8_t)first;
			room -= field->data_size;
		}
	}
}

/* The ways to distribute what is neither. */
enum way { ALL_READ, ALL_WRITTEN, FILL_READ, FILL_WRITTEN, N_WAYS };

static void distribute(const struct hl_find *find, enum way way, uint8_t *side)
{
	enum side rest = way == ALL_READ || way == FILL_WRITTEN ? READ : WRITTEN;

	sort_runs(find, side);
	if (way == FILL_READ || way == FILL_WRITTEN)
		fill_side(find, way == FILL_READ ? READ : WRITTEN, side);
	for (uint32_t i = 0; i < find->type->count; i++)
		if (side[i] == NEUTRAL)
			side[i] = (uint8_t)rest;
	sort_runs(find, side);
}

/* Two groups: what is read, then what is written on lines of its own.  -ENOTSUP when
 * that does not keep all that is written from all that is read. */
static int regroup(const struct hl_find *find, uint8_t *side, struct hl_placing *proposal,
		   const uint8_t *wanted)
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
			int belongs = field->flags & HL_FIELD_FIXED	       ? 0
				      : field->flags & HL_FIELD_LAST	       ? 3
				      : *side_of(find, side, field) == WRITTEN ? 2
									       : 1;

			if (belongs == group)
				proposal->field[proposal->n++] = *field;
		}
	}
	if (!start || start >= proposal->n || proposal->field[start].flags & HL_FIELD_LAST)
		return -ENOTSUP;
	for (uint32_t i = 0; i < proposal->n; i++) {
		uint8_t side_wanted = wanted[proposal->field[i].member - find->type->first];

		if (side_wanted == (i < start ? WRITTEN : READ))
			return -ENOTSUP;
	}
	proposal->field[start].flags |= HL_FIELD_NEW_LINE;
	if (proposal->min_align < find->apart)
		proposal->min_align = find->apart;
	return hl_place_smallest(proposal, find->apart) ? -ENOMEM
							: hl_fault_name_groups(find, proposal);
}

/* The smallest of the ways to group; 0 when there is one that separates. */
static int propose(struct hl_find *find, const struct mixed *worst, struct hl_placing *best)
{
	uint32_t count = find->type->count;
	uint8_t *wanted = calloc(count, 2);
	int rc = wanted ? 0 : -ENOMEM;

	*best = (struct hl_placing){ 0 };
	if (!rc)
		rc = hl_find_placed(find) ? sort_members(find, worst, wanted) : -ENOTSUP;
	for (enum way way = ALL_READ; !rc && way < N_WAYS; way++) {
		/* Two lines are the least that keeps anything apart. */
		if (best->n && best->size <= 2ull * find->apart)
			break;

		struct hl_placing proposal = { 0 };
		uint8_t *side = wanted + count;
		int made;

		memcpy(side, wanted, count);
		distribute(find, way, side);
		made = regroup(find, side, &proposal, wanted);
		if (made == -ENOMEM)
			rc = made;
		if (!made && (!best->n || proposal.size < best->size)) {
			struct hl_placing swap = *best;

			*best = proposal;
			proposal = swap;
		}
		hl_placing_free(&proposal);
	}
	free(wanted);
	if (!rc && !best->n)
		rc = -ENOTSUP;
	return rc;
}

/* ---- The report ---- */

static void say(struct hl_find *find, const struct mixed *m, uint64_t line)
{
	struct hl_text *text = &find->evidence;
	const struct hl_leaf *written = m->written ? m->written : m->tally;
	unsigned shown = 0, more = 0;

	hl_text_printf(text, "%s ", hl_look_name(written->look));
	hl_find_path(text, find, written);
	hl_fault_member(find, written);
	hl_text_printf(text, " (byte %llu) shares line %llu with read-mostly ",
		       (unsigned long long)written->offset, (unsigned long long)line);
	for (uint32_t i = 0; i < find->n_leaves; i++) {
		const struct hl_leaf *leaf = &find->leaf[i];

		if (!on_line(find, leaf, line) || !is_evidence(find, m, leaf))
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
		hl_text_printf(
			text,
			"group the members: read-mostly first, the written ones from a line of "
			"their own on; %llu bytes, %llu lines (now %llu, %llu)",
			(unsigned long long)proposal->size,
			(unsigned long long)hl_lines(proposal->size, find->line),
			(unsigned long long)find->type->size,
			(unsigned long long)hl_lines(find->type->size, find->line));
	else
		hl_text_puts(
			text,
			"put what is written on a line of its own, or point to it; no order of "
			"these members does that, so one that holds both kinds is to be split first");
}

/* Whether all that is mixed there lies in one member of a type that is looked at itself. */
static bool is_of_one_member(const struct hl_find *find, const struct mixed *m)
{
	const struct hl_member *member = &find->types->member[find->type->first + m->top];

	return m->written && m->constants + m->steadies && !m->several &&
	       find->types->type[member->type].name;
}

/* How much of the weight counts. */
static double share_of(const struct hl_find *find, const struct mixed *m)
{
	const struct hl_member *member = m->written ? m->written->member : NULL;
	uint32_t callbacks = 0;
	double share = 1;

	for (uint32_t i = 0; i < find->n_leaves; i++)
		callbacks += find->leaf[i].callback;
	/* A table of operations: there are few of its kind, and its lock is there to set it up. */
	if (callbacks > HL_W_TABLE_CALLBACKS)
		share *= HL_W_TABLE;
	/* A plain integer's name is a guess, and a volatile flag is seldom set. */
	if (member && (!hl_look_is_by_type(find->looks, find->types, member) ||
		       (find->types->type[member->type].kind == HL_VOLATILE &&
			!hl_look_counted(member->name))))
		share *= HL_W_BY_NAME;
	return share;
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
		add_leaf(find, &find->leaf[i], mixed, lines);
	for (uint64_t line = 0; line < lines; line++) {
		double weight = weight_of(find, &mixed[line]);

		if (weight > most && !is_of_one_member(find, &mixed[line])) {
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
		if (hl_look_is_written(find->leaf[i].look) || find->leaf[i].look == HL_LOOK_TALLY)
			return true;
	return false;
}

void hl_find_lock_beside_read_mostly(struct hl_find *find)
{
	uint64_t lines = hl_lines(find->type->size, find->apart), worst = 0;
	struct mixed worst_line = { 0 };
	double score;

	if (find->type->kind == HL_UNION || lines > MOST_LINES || !has_written(find) ||
	    hl_look_is_shared(hl_look_of_type(find->looks, find->id)))
		return;
	score = find_worst(find, lines, &worst_line, &worst);
	if (score <= 0 || hl_find_is_format(find))
		return;

	struct hl_placing proposal;
	int made = propose(find, &worst_line, &proposal);

	if (made == -ENOMEM) {
		find->rc = made;
		return;
	}
	/* What cannot be mended by an order alone is further down the list, and so is what
	 * takes much more memory apart. */
	score *= share_of(find, &worst_line);
	score *= made ? HL_W_INSEPARABLE
		      : 0.4 + 0.6 * (double)find->type->size / (double)proposal.size;
	say(find, &worst_line, worst);
	advise(find, made, &proposal);
	hl_fault_report(find, HL_FAULT_LOCK_BESIDE_READ_MOSTLY, hl_score(score),
			made ? NULL : &proposal, NULL);
	hl_placing_free(&proposal);
}
