// SPDX-License-Identifier: MIT
/*
 * straddle: a message that fits in one line but may lie across two (O1).
 */
#include "find.h"
#include "weights.h"

static uint64_t power_of_two_above(uint64_t size)
{
	uint64_t power = 1;

	while (power < size)
		power *= 2;
	return power;
}

/* What its fields are: how sure it is that two CPUs hand it to each other. */
struct sharing {
	const struct hl_leaf *written, *link, *done, *callback;
	unsigned callbacks;
	unsigned fields;
	bool argument; /* something for the callback */
	bool by_name; /* what is written is so by its name alone */
};

static bool is_direct(const struct hl_find *find, const struct hl_leaf *leaf)
{
	uint32_t frame = leaf->up;

	while (frame && !find->frame[frame].name)
		frame = find->frame[frame].up;
	return !frame;
}

/* direct: only fields of its own, not those of structs inside that have a name. */
static struct sharing sharing_of(const struct hl_find *find, bool direct)
{
	struct sharing s = { 0 };

	for (uint32_t i = 0; i < find->n_leaves; i++) {
		const struct hl_leaf *leaf = &find->leaf[i];
		const struct hl_types *types = find->types;

		if (direct && !is_direct(find, leaf))
			continue;
		s.fields++;
		if (hl_look_is_written(leaf->look) && !s.written) {
			s.written = leaf;
			s.by_name = !hl_look_is_by_type(find->looks, types, leaf->member);
		}
		if (leaf->look == HL_LOOK_LINK && !s.link)
			s.link = leaf;
		if (leaf->look == HL_LOOK_DONE && !s.done)
			s.done = leaf;
		if (leaf->callback) {
			s.callback = leaf;
			s.callbacks++;
		} else if (leaf->pointer && hl_look_argument(leaf->member->name)) {
			s.argument = true;
		}
	}
	/* One to call is a message, many are a table of operations. */
	if (s.callbacks > 2)
		s.callback = NULL;
	return s;
}

static double weight_of(const struct sharing *s)
{
	double less = s->by_name ? HL_W_BY_NAME : 1;

	/* A queued call is the very thing of O1; a registration is not written again. */
	if (s->link && s->callback && s->argument && s->fields <= HL_W_MESSAGE_FIELDS)
		return HL_W_MESSAGE;
	if (s->link && s->callback && (s->argument || s->written || s->done))
		return HL_W_QUEUED * less;
	if (s->link && s->callback)
		return HL_W_LINK_CALLBACK;
	if (s->done && s->callback)
		return s->argument ? HL_W_ANSWERED : HL_W_FLAG_CALLBACK;
	if (s->written && (s->done || s->link))
		return HL_W_ATOMIC_LINK * less;
	if (s->written)
		return HL_W_ATOMIC * less;
	if (s->link && s->done)
		return HL_W_LINK_FLAG;
	return s->done ? HL_W_FLAG : HL_W_LINK;
}

static bool has_written(const struct hl_find *find)
{
	for (uint32_t i = 0; i < find->n_leaves; i++)
		if (hl_look_is_written(find->leaf[i].look))
			return true;
	return false;
}

/* A link with nothing but another word is made to be embedded, not sent. */
static bool is_building_block(const struct hl_find *find)
{
	if (hl_look_is_shared(hl_look_of_type(find->looks, find->id)) ||
	    hl_look_is_shared(hl_look_of_type(find->looks, hl_type_strip(find->types, find->id))))
		return true;
	return find->type->size <= 2u * find->types->address_size && !has_written(find);
}

static void say_what(struct hl_find *find, const struct sharing *s)
{
	const struct hl_leaf *said[] = { s->written, s->link, s->done, s->callback };
	const char *before = "";

	hl_text_printf(&find->evidence, "%llu bytes, shared by the look of it (",
		       (unsigned long long)find->type->size);
	for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
		if (!said[i])
			continue;
		hl_text_puts(&find->evidence, before);
		hl_text_printf(&find->evidence, "%s ",
			       said[i] == s->callback ? "callback" : hl_look_name(said[i]->look));
		hl_find_path(&find->evidence, find, said[i]);
		hl_fault_member(find, said[i]);
		before = ", ";
	}
	hl_text_printf(&find->evidence, "), fit in one line of %u, ", find->line);
}

static void say_addresses(struct hl_find *find, unsigned positions, unsigned straddling)
{
	uint64_t first = (find->line - find->type->size) / find->align * find->align + find->align;

	hl_text_printf(&find->evidence,
		       "but aligned to %u it lies across two lines at %u of %u addresses "
		       "in a line (from byte %llu on)",
		       find->align, straddling, positions, (unsigned long long)first);
}

/* In an array that begins a line: the elements that lie across two. */
static void say_elements(struct hl_find *find)
{
	uint64_t size = find->type->size, factor = size & -size;
	/* The pattern repeats after apart / gcd(size, apart) elements. */
	uint64_t period = find->line / (factor < find->line ? factor : find->line);
	unsigned shown = 0, n = 0;

	for (uint64_t i = 0; i < period; i++)
		n += i * size % find->line + size > find->line;
	if (!n) {
		hl_text_puts(&find->evidence, "; in an array that begins a line no element does");
		return;
	}
	hl_text_printf(&find->evidence,
		       "; in an array that begins a line %u of every %llu elements do (", n,
		       (unsigned long long)period);
	for (uint64_t i = 0; i < period && shown < 4; i++) {
		if (i * size % find->line + size <= find->line)
			continue;
		hl_text_printf(&find->evidence, "%s%llu", shown++ ? ", " : "",
			       (unsigned long long)i);
	}
	hl_text_puts(&find->evidence, n > shown ? ", ...)" : ")");
}

static void advise(struct hl_find *find, uint64_t align, uint64_t grown)
{
	bool own = align == find->type->size;

	hl_text_printf(&find->advice, "align it to %s: __attribute__((aligned(%llu))); ",
		       own		     ? "its own size"
		       : align == find->line ? "a line"
					     : "the power of two above "
					       "its size",
		       (unsigned long long)align);
	if (grown == find->type->size)
		hl_text_puts(&find->advice,
			     "costs no memory in arrays, up to the alignment elsewhere");
	else
		hl_text_printf(&find->advice, "costs %llu bytes an object (%llu to %llu)",
			       (unsigned long long)(grown - find->type->size),
			       (unsigned long long)find->type->size, (unsigned long long)grown);
}

/* What malloc() gives. */
#define ALLOCATED_ALIGN 16u

void hl_find_straddle(struct hl_find *find)
{
	uint64_t size = find->type->size;
	unsigned positions, straddling;

	if (size > find->line || find->type->kind == HL_UNION || is_building_block(find))
		return;
	hl_straddling_positions(size, find->align, find->line, &positions, &straddling);
	if (!straddling)
		return;

	struct sharing sharing = sharing_of(find, true);
	bool direct = sharing.written || sharing.link || sharing.done;

	if (!direct)
		sharing = sharing_of(find, false);
	if ((!sharing.written && !sharing.link && !sharing.done) || hl_find_is_format(find) ||
	    hl_find_is_grouped(find))
		return;

	struct hl_placing proposal;
	uint64_t align = power_of_two_above(size);
	double score = weight_of(&sharing) * (direct ? 1 : HL_W_INNER) *
		       (0.5 + 0.5 * straddling / positions);

	if (hl_find_placed(find) && !hl_placing_copy(&proposal, &find->placing)) {
		proposal.min_align = (uint32_t)align;
		hl_place(&proposal, find->line);
	} else {
		proposal = (struct hl_placing){ .size = align };
	}
	if (sharing.callback && hl_look_registered(hl_type_name(find->types, find->id)))
		score *= HL_W_REGISTERED;
	/* No allocator places that across two lines; another struct around it may. */
	if (size <= ALLOCATED_ALIGN)
		score *= HL_W_ALLOCATED;
	/* What alignment costs in memory is what keeps people from it. */
	score *= 0.5 + 0.5 * (double)size / (double)proposal.size;

	say_what(find, &sharing);
	say_addresses(find, positions, straddling);
	say_elements(find);
	advise(find, align, proposal.size);
	hl_fault_report(find, HL_FAULT_STRADDLE, hl_score(score), &proposal, NULL);
	hl_placing_free(&proposal);
}
