// SPDX-License-Identifier: MIT
/*
 * false-isolation: padding or alignment that does not do what it was put there
 * for.  Somebody paid for it, so it is the first thing to look at.
 */
#include "find.h"
#include "picture.h"
#include "weights.h"

#include <errno.h>

/* Less than this was hardly meant to keep lines apart. */
#define LEAST_PAD 32u

/* A pad inside a nested struct or a union is there for some other reason. */
static bool is_isolating_pad(const struct hl_leaf *leaf)
{
	return leaf->look == HL_LOOK_PAD && leaf->size >= LEAST_PAD && !leaf->up;
}

static bool is_changing(const struct hl_leaf *leaf)
{
	return hl_look_is_shared(leaf->look) || hl_look_is_counted(leaf->look);
}

/* Whether the pad was made to measure: it ends with a line, or fills one up. */
static bool is_measured(const struct hl_leaf *pad, const struct hl_leaf *before)
{
	return (pad->offset + pad->size) % 64 == 0 ||
	       (before && (before->size + pad->size) % 64 == 0);
}

/* What counts as a field that padding protects. */
static bool is_live(const struct hl_leaf *leaf)
{
	return leaf->look != HL_LOOK_PAD && leaf->size;
}

/* The last live field before leaf i, the first behind it. */
static const struct hl_leaf *live_before(const struct hl_find *find, uint32_t i)
{
	while (i-- > 0)
		if (is_live(&find->leaf[i]))
			return &find->leaf[i];
	return NULL;
}

static const struct hl_leaf *live_behind(const struct hl_find *find, uint32_t i)
{
	while (++i < find->n_leaves)
		if (is_live(&find->leaf[i]))
			return &find->leaf[i];
	return NULL;
}

/* ---- The proposal: begin each group on a line ---- */

/* Drops the pad arrays, begins the fields behind them on lines and aligns the whole. */
static int without_pads(struct hl_find *find, struct hl_placing *proposal)
{
	bool begins = false;
	uint32_t n = 0;

	if (!hl_find_placed(find))
		return -ENOTSUP;
	if (hl_placing_copy(proposal, &find->placing))
		return -ENOMEM;
	for (uint32_t i = 0; i < proposal->n; i++) {
		struct hl_field field = proposal->field[i];
		const struct hl_member *member = &find->types->member[field.member];

		if (hl_look_of_member(find->looks, find->types, member) == HL_LOOK_PAD &&
		    field.size >= LEAST_PAD) {
			begins = true;
			continue;
		}
		if (n && (begins || field.align >= 64) && field.align < find->apart)
			field.flags |= HL_FIELD_NEW_LINE;
		begins = false;
		proposal->field[n++] = field;
	}
	proposal->n = n;
	if (proposal->min_align < find->apart)
		proposal->min_align = find->apart;
	hl_place(proposal, find->apart);
	return hl_fault_name_groups(find, proposal);
}

/* what: "drop the padding, " where there is some. */
static void report(struct hl_find *find, unsigned score, const char *what)
{
	struct hl_placing proposal = { 0 };
	int made = without_pads(find, &proposal);

	if (made == -ENOMEM) {
		find->rc = made;
		return;
	}
	hl_text_printf(&find->advice,
		       "%salign the first member of each group and with it the whole to %u", what,
		       find->apart);
	if (!made)
		hl_text_printf(&find->advice, ": %llu bytes (now %llu)",
			       (unsigned long long)proposal.size,
			       (unsigned long long)find->type->size);
	hl_fault_report(find, HL_FAULT_FALSE_ISOLATION, score, made ? NULL : &proposal, NULL);
	hl_placing_free(&proposal);
}

/* ---- Pads ---- */

#define DROP_PADS "drop the padding, "

/* Whether the last field may lie on one line with what follows the struct in memory. */
static bool is_open(const struct hl_find *find, const struct hl_leaf *last)
{
	return find->align < find->apart &&
	       hl_may_share(last->offset + last->size - 1, find->type->size, find->align,
			    find->apart);
}

static void say_thin_pad(struct hl_find *find, const struct hl_leaf *pad,
			 const struct hl_leaf *before, const struct hl_leaf *behind)
{
	const struct hl_leaf *last = live_before(find, find->n_leaves);
	struct hl_text *text = &find->evidence;

	hl_text_printf(text, "%llu bytes of padding in ", (unsigned long long)pad->size);
	hl_find_path(text, find, pad);
	hl_text_puts(text, " are to keep ");
	hl_find_path(text, find, before);
	hl_text_puts(text, " and ");
	hl_find_path(text, find, behind);
	hl_text_printf(text,
		       " apart, but at some addresses (the struct is aligned to %u) both "
		       "lie on one line of %u",
		       find->align, find->apart);
	if (is_open(find, last))
		hl_text_puts(text,
			     "; its first and its last line are shared with what lies beside it "
			     "in memory, too");
	hl_fault_member(find, pad);
	hl_fault_member(find, before);
	hl_fault_member(find, behind);
}

/* A number or pointer of its own, not an array and not a byte of something. */
static bool is_word(const struct hl_find *find, const struct hl_leaf *leaf)
{
	const struct hl_type *type =
		&find->types->type[hl_type_strip(find->types, leaf->member->type)];

	return (type->kind == HL_BASE || type->kind == HL_POINTER) && leaf->size >= 4;
}

/* A pad between two fields that may lie on one line in spite of it. */
static bool find_thin_pad(struct hl_find *find)
{
	for (uint32_t i = 0; i < find->n_leaves; i++) {
		const struct hl_leaf *before, *behind, *pad = &find->leaf[i];

		if (!is_isolating_pad(pad))
			continue;
		before = live_before(find, i);
		behind = live_behind(find, i);
		if (!before || !behind || behind->offset < before->offset + before->size ||
		    !hl_may_share(before->offset + before->size - 1, behind->offset, find->align,
				  find->apart))
			continue;

		bool meant = is_changing(before) || is_changing(behind) || is_measured(pad, before);

		if (!meant && !(is_word(find, before) && is_word(find, behind)))
			continue;
		say_thin_pad(find, pad, before, behind);
		/* Room for later in an interface looks like that, too. */
		report(find, meant ? HL_W_THIN_PAD : HL_W_UNMEANT_PAD, DROP_PADS);
		return true;
	}
	return false;
}

/* Pads inside, but nothing keeps the last group from what follows the struct. */
static bool find_open_end(struct hl_find *find)
{
	const struct hl_leaf *pad = NULL, *first, *last;
	bool changing = false;

	for (uint32_t i = 0; i < find->n_leaves; i++) {
		if (is_isolating_pad(&find->leaf[i]) &&
		    is_measured(&find->leaf[i], live_before(find, i)))
			pad = &find->leaf[i];
		changing = changing || is_changing(&find->leaf[i]);
	}
	if (!pad || !changing)
		return false;
	first = live_behind(find, UINT32_MAX);
	last = live_before(find, find->n_leaves);
	if (!first || !last || last->offset < pad->offset || !is_open(find, last))
		return false;
	hl_text_puts(&find->evidence, "padding (");
	hl_find_path(&find->evidence, find, pad);
	hl_text_printf(&find->evidence,
		       ") keeps its groups apart, but the struct is aligned to %u only and "
		       "ends with ",
		       find->align);
	hl_find_path(&find->evidence, find, last);
	hl_text_puts(&find->evidence,
		     ": its first line is shared with what precedes it in memory (");
	hl_find_path(&find->evidence, find, first);
	hl_text_puts(&find->evidence, "), its last with what follows");
	hl_fault_member(find, first);
	hl_fault_member(find, last);
	report(find, HL_W_OPEN_END, DROP_PADS);
	return true;
}

/* ---- Alignment ---- */

static bool begins_group(const struct hl_leaf *leaf, unsigned least)
{
	return leaf->member->align_log2 && !leaf->up &&
	       (uint64_t)1 << (leaf->member->align_log2 - 1) >= least;
}

/* Members aligned to a line of 64 that still share where a line, or a pair, is more. */
static bool find_small_alignment(struct hl_find *find)
{
	const struct hl_leaf *group = NULL;

	if (find->apart <= 64)
		return false;
	for (uint32_t i = 0; i < find->n_leaves; i++) {
		const struct hl_leaf *leaf = &find->leaf[i];

		if (!begins_group(leaf, 64))
			continue;
		if (group && !begins_group(leaf, find->apart) &&
		    hl_may_share(group->offset, leaf->offset, find->align, find->apart)) {
			hl_find_path(&find->evidence, find, group);
			hl_text_puts(&find->evidence, " and ");
			hl_find_path(&find->evidence, find, leaf);
			hl_text_printf(&find->evidence,
				       " are aligned to %u each to be apart, but share %u bytes "
				       "that travel together",
				       1u << (leaf->member->align_log2 - 1), find->apart);
			hl_fault_member(find, group);
			hl_fault_member(find, leaf);
			report(find, HL_W_CLOSE_GROUPS, "");
			return true;
		}
		group = leaf;
	}
	return false;
}

/* Whether the type is a pointer to elements smaller than a line that were themselves to be
 * aligned: counts, things of threads, what is written. */
static bool is_pointer_to_small(const struct hl_find *find, hl_type_id id, const char *name,
				uint64_t *size)
{
	const struct hl_types *types = find->types;
	const struct hl_type *pointer = &types->type[hl_type_strip(types, id)];
	const struct hl_type *what = &types->type[hl_type_strip(types, pointer->target)];

	*size = hl_type_size(types, pointer->target);
	if (pointer->kind != HL_POINTER || !*size || *size % find->line == 0)
		return false;
	if (what->kind != HL_BASE && !hl_kind_is_aggregate(what->kind))
		return false;
	return hl_look_counted(name) || hl_look_per_thread(name) == HL_PER_THREAD_SAID ||
	       hl_look_is_written(hl_look_of_type(find->looks, pointer->target));
}

static void say_aligned_pointer(struct hl_find *find, const char *name, uint64_t align,
				uint64_t size)
{
	hl_text_printf(&find->evidence,
		       "aligned(%llu) applies to the pointer %s, not to what it points to: "
		       "elements still follow each other every %llu bytes",
		       (unsigned long long)align, name, (unsigned long long)size);
	hl_text_printf(
		&find->advice,
		"put the alignment on the element's type (a struct with "
		"__attribute__((aligned(%u)))) and allocate the elements with aligned_alloc()",
		find->apart);
}

static bool find_aligned_pointer(struct hl_find *find)
{
	for (uint32_t i = 0; i < find->n_leaves; i++) {
		const struct hl_leaf *leaf = &find->leaf[i];
		uint64_t size;

		if (!begins_group(leaf, find->line) ||
		    !is_pointer_to_small(find, leaf->member->type, leaf->member->name, &size))
			continue;
		say_aligned_pointer(find, leaf->member->name, 1u << (leaf->member->align_log2 - 1),
				    size);
		hl_fault_member(find, leaf);
		hl_fault_report(find, HL_FAULT_FALSE_ISOLATION, HL_W_ALIGNED_POINTER, NULL, NULL);
		return true;
	}
	return false;
}

/* Whether anything was put there to keep lines apart. */
static bool is_isolating(const struct hl_find *find)
{
	for (uint32_t i = 0; i < find->n_leaves; i++)
		if (is_isolating_pad(&find->leaf[i]) || begins_group(&find->leaf[i], LEAST_PAD))
			return true;
	return false;
}

void hl_find_false_isolation(struct hl_find *find)
{
	if (find->type->kind == HL_UNION || !is_isolating(find) || hl_find_is_format(find))
		return;
	if (find_thin_pad(find) || find_open_end(find) || find_small_alignment(find))
		return;
	find_aligned_pointer(find);
}

static void wrap_variable(struct hl_find *find, const struct hl_variable *variable)
{
	hl_text_puts(&find->text, "struct {\n\t");
	hl_declare(&find->text, find->types, variable->type, "value");
	hl_text_printf(&find->text, " __attribute__((__aligned__(%u)));\n} %s;\n", find->apart,
		       variable->name);
}

void hl_find_variable_isolation(struct hl_find *find, const struct hl_variable *variable)
{
	uint64_t align = variable->align_log2 ? (uint64_t)1 << (variable->align_log2 - 1) : 0;
	uint64_t size, whole;

	if (align < find->line)
		return;
	if (is_pointer_to_small(find, variable->type, variable->name, &size)) {
		say_aligned_pointer(find, variable->name, align, size);
		hl_fault_report_variable(find, HL_FAULT_FALSE_ISOLATION, HL_W_ALIGNED_POINTER,
					 variable, 0);
		return;
	}
	size = hl_type_size(find->types, variable->type);
	if (!size || size % find->apart == 0 ||
	    !hl_looks_hold(find->looks, find->types, variable->type, HL_HOLDS_WRITTEN))
		return;
	whole = (size + find->apart - 1) / find->apart * find->apart;
	hl_text_printf(&find->evidence,
		       "%s is aligned to %llu, but takes %llu bytes: what the linker places "
		       "behind it shares its last line",
		       variable->name, (unsigned long long)align, (unsigned long long)size);
	hl_text_printf(&find->advice,
		       "wrap it in a struct with __attribute__((aligned(%u))): its size is then "
		       "%llu",
		       find->apart, (unsigned long long)whole);
	if (find->want_text)
		wrap_variable(find, variable);
	hl_fault_report_variable(find, HL_FAULT_FALSE_ISOLATION, HL_W_OPEN_VARIABLE, variable,
				 whole);
}
