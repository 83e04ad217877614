// SPDX-License-Identifier: MIT
#include "body.h"

#include "cursor.h"

#include <errno.h>
#include <stdlib.h>

/* Where the comments begin, and the names: columns as pahole has them. */
#define COMMENT_COLUMN 57
#define NAME_COLUMN 34

/* Members of unnamed structs inside a picture: in a damaged file they can double with
 * each level. */
#define MAX_WRITTEN 65536

/* Members of the members' types that are looked at for padding in one picture. */
#define MAX_LOOKED 1000000

/* Bytes of unnamed padding that are written as bit-fields; more become an array. */
#define MAX_PAD_FIELDS 64

struct hl_body_level {
	struct hl_body_level *outer, *inner; /* inner stays for the next one at that depth */
	const struct hl_type *type;
	hl_type_id id;
	const struct hl_placing *placing; /* NULL: the offsets cannot be explained */
	struct hl_placing own;
	struct hl_shape shape; /* measured only when there are comments */
	size_t line_start; /* of the line being written */
	/* For the summary. */
	uint32_t paddings, forced, forced_holes;
	uint64_t sum_paddings, sum_forced_holes;
};

static struct hl_body_level *level(const struct hl_body *b)
{
	return b->level;
}

/* One level deeper; false when there is no memory. */
static bool enter_level(struct hl_body *b)
{
	struct hl_body_level *inner = b->level->inner;

	if (!inner) {
		inner = calloc(1, sizeof(*inner));
		if (!inner) {
			b->error = -ENOMEM;
			return false;
		}
		inner->outer = b->level;
		b->level->inner = inner;
	}
	b->level = inner;
	b->depth++;
	return true;
}

static void leave_level(struct hl_body *b)
{
	b->level = b->level->outer;
	b->depth--;
}

static bool has_comments(const struct hl_body *b)
{
	return b->line != 0;
}

static void begin_line(struct hl_body *b)
{
	level(b)->line_start = b->text->len;
	for (unsigned i = 0; i <= b->depth; i++)
		hl_text_putc(b->text, '\t');
	b->blank = false;
}

static void end_line(struct hl_body *b)
{
	hl_text_putc(b->text, '\n');
}

static void blank_line(struct hl_body *b)
{
	if (!b->blank)
		end_line(b);
	b->blank = true;
}

/* Moves on to the column of comments in the line of the given level. */
static void comment_column(struct hl_body *b, size_t line_start, unsigned tabs)
{
	size_t column = b->text->len - line_start + tabs * 7;

	hl_text_spaces(b->text, column < COMMENT_COLUMN ? COMMENT_COLUMN - column : 1);
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

static void write_hole(struct hl_body *b, uint64_t n, const char *unit, const char *why)
{
	begin_line(b);
	hl_text_puts(b->text, "/* XXX ");
	hl_text_u64(b->text, n);
	hl_text_puts(b->text, unit);
	hl_text_puts(b->text, plural(n));
	hl_text_puts(b->text, why);
	end_line(b);
}

static void write_holes(struct hl_body *b, uint64_t bytes, uint64_t bits, bool asked)
{
	if (bits)
		write_hole(b, bits, " bit",
			   asked ? " hole, asked for */" : " hole, try to pack */");
	if (bytes)
		write_hole(b, bytes, " byte", " hole, try to pack */");
}

static uint64_t padding_inside(struct hl_body *b, const struct hl_slot *slot, uint64_t next)
{
	hl_type_id id = hl_type_strip(b->types, b->types->member[slot->member].type);
	enum hl_kind kind = b->types->type[id].kind;

	if (level(b)->type->kind == HL_UNION || (kind != HL_STRUCT && kind != HL_CLASS))
		return 0;
	if (!hl_shape_used_bytes(b->types, id) || next < slot->offset + slot->size)
		return 0; /* none that is lost: an empty class, or a tail that is used */
	b->looked += b->types->type[id].count;
	if (b->looked > MAX_LOOKED)
		return 0;
	return hl_shape_padding(b->types, id);
}

/* What is free behind the member, inside it and up to the next. */
static void write_gaps(struct hl_body *b, const struct hl_slot *slot, uint64_t next)
{
	uint64_t padding = padding_inside(b, slot, next);

	if (!padding && !slot->hole && !slot->bit_hole)
		return;
	blank_line(b);
	if (padding) {
		level(b)->paddings++;
		level(b)->sum_paddings += padding;
		begin_line(b);
		hl_text_puts(b->text, "/* XXX last struct has ");
		hl_text_u64(b->text, padding);
		hl_text_puts(b->text,
			     padding == 1 ? " byte of padding */" : " bytes of padding */");
		end_line(b);
	}
	write_holes(b, slot->hole, slot->bit_hole, slot->asked);
	blank_line(b);
}

/* The first line boundary at or before the byte that was not shown yet. */
static void write_boundary(struct hl_body *b, uint64_t offset)
{
	uint64_t number = offset / b->line;

	if (number <= b->last_line)
		return;
	b->last_line = number;
	begin_line(b);
	hl_text_puts(b->text, "/* --- cacheline ");
	hl_text_u64(b->text, number);
	hl_text_puts(b->text, " boundary (");
	hl_text_u64(b->text, number * b->line);
	hl_text_puts(b->text, " bytes)");
	if (offset % b->line) {
		hl_text_puts(b->text, " was ");
		hl_text_u64(b->text, offset % b->line);
		hl_text_puts(b->text, offset % b->line == 1 ? " byte ago" : " bytes ago");
	}
	hl_text_puts(b->text, " --- */");
	end_line(b);
}

static void write_place(struct hl_body *b, const struct hl_slot *slot)
{
	uint64_t offset = b->base + slot->offset;

	hl_text_puts(b->text, "/* ");
	hl_text_u64_width(b->text, offset, 5);
	if (slot->bit_size) {
		hl_text_putc(b->text, ':');
		hl_text_u64_width(b->text, slot->bit_offset, 2);
		hl_text_putc(b->text, ' ');
		hl_text_u64_width(b->text, slot->size, 2);
	} else {
		hl_text_putc(b->text, ' ');
		hl_text_u64_width(b->text, slot->size, 5);
	}
	hl_text_puts(b->text, " */");
}

static void write_aligned(struct hl_text *text, uint64_t align)
{
	hl_text_puts(text, " __attribute__((__aligned__(");
	hl_text_u64(text, align);
	hl_text_puts(text, ")))");
}

static void write_packed(struct hl_text *text)
{
	hl_text_puts(text, " __attribute__((__packed__))");
}

/* The type of the elements behind typedefs that say nothing of alignment. */
static hl_type_id element_type(const struct hl_types *types, hl_type_id id)
{
	for (int depth = 0; depth < HL_MAX_DEPTH; depth++) {
		const struct hl_type *type = &types->type[id];

		if (type->kind == HL_TYPEDEF ? type->align_log2 != 0
					     : type->kind != HL_ARRAY && type->kind != HL_CONST &&
						       type->kind != HL_VOLATILE)
			break;
		id = type->target;
	}
	return id;
}

/* The alignment of the member's type as a compiler reads it here. That need not be the
 * one it had: packed is not told, only guessed from what it does. */
static uint32_t written_align(const struct hl_body *b, const struct hl_member *member)
{
	const struct hl_body_level *inner = level(b)->inner;
	uint32_t align = 0;

	if (!inner && !b->align_of)
		return hl_type_align(b->types, member->type);

	hl_type_id id = element_type(b->types, member->type);
	const struct hl_type *type = &b->types->type[id];

	if (hl_kind_is_aggregate(type->kind) && type->name && b->align_of)
		align = b->align_of(b->arg, id);
	else if (hl_kind_is_aggregate(type->kind) && !type->name && inner && inner->id == id &&
		 inner->placing)
		align = inner->placing->align;
	return align ? align : hl_type_align(b->types, member->type);
}

static bool is_packed_alone(const struct hl_body *b, const struct hl_field *field,
			    const struct hl_member *member)
{
	return field && member->name && !level(b)->placing->packed &&
	       (field->flags & HL_FIELD_PACKED ||
		(!field->bits && field->align < written_align(b, member)));
}

/* The alignment that the member has if nothing is said at it. */
static uint32_t unsaid_align(const struct hl_body *b, const struct hl_field *field,
			     const struct hl_member *member)
{
	const struct hl_placing *placing = level(b)->placing;

	if (placing && (placing->packed || is_packed_alone(b, field, member)))
		return 1;
	return written_align(b, member);
}

/* The alignment that the source must say at the member; 0: none. */
static uint32_t forced_align(const struct hl_body *b, const struct hl_field *field,
			     const struct hl_member *member)
{
	uint32_t unsaid = unsaid_align(b, field, member);
	uint32_t said = member->align_log2 ? 1u << (member->align_log2 - 1) : 0;

	if (field && field->flags & HL_FIELD_NEW_LINE)
		return b->line > field->align ? b->line : field->align;
	if (member->bit_size)
		return said > unsaid ? said : 0;
	if (said && (member->name || said > unsaid) && (!field || field->align == said))
		return said;
	return field && field->align > unsaid ? field->align : 0;
}

/* ---- Unnamed bit-fields: what the source left free. ---- */

static void write_unnamed_bits(struct hl_body *b, const char *type, uint64_t bits)
{
	begin_line(b);
	hl_text_puts(b->text, type);
	hl_text_puts(b->text, " :");
	hl_text_u64(b->text, bits);
	hl_text_putc(b->text, ';');
	end_line(b);
}

/* The widest type of which a whole unit fits there. */
static const char *pad_unit(const struct hl_body *b, uint64_t at, uint64_t bits, uint64_t *unit)
{
	static const struct {
		uint64_t bits;
		const char *name;
	} units[] = {
		{ 64, "unsigned long long" },
		{ 32, "unsigned int" },
		{ 16, "unsigned short" },
	};

	for (size_t i = b->types->address_size < 8; i < sizeof(units) / sizeof(*units); i++)
		if (!(at % units[i].bits) && bits >= units[i].bits) {
			*unit = units[i].bits;
			return units[i].name;
		}
	*unit = 8 - at % 8 < bits ? 8 - at % 8 : bits;
	return "unsigned char";
}

static void write_pad(struct hl_body *b, uint64_t at, uint64_t bits)
{
	while (bits) {
		uint64_t unit;
		const char *name;

		if (!(at % 8) && bits / 8 > MAX_PAD_FIELDS) {
			begin_line(b);
			hl_text_printf(b->text, "unsigned char __pad%llu[%llu];",
				       (unsigned long long)at / 8, (unsigned long long)bits / 8);
			end_line(b);
			at += bits / 8 * 8;
			bits %= 8;
			continue;
		}
		name = pad_unit(b, at, bits, &unit);
		write_unnamed_bits(b, name, unit);
		at += unit;
		bits -= unit;
	}
}

/* The declared type of a bit-field, for the unnamed one before it. */
static void write_unnamed_as(struct hl_body *b, hl_type_id type, uint64_t bits)
{
	struct hl_text name = HL_TEXT_INIT;
	struct hl_declarator d = {
		.text = &name,
		.types = b->types,
		.arg = b->arg,
		.name_of = b->name_of,
	};

	hl_declarator_write(&d, hl_type_strip(b->types, type), NULL);
	if (name.failed)
		b->error = -ENOMEM;
	else
		write_unnamed_bits(b, name.at, bits);
	hl_text_free(&name);
}

static uint64_t field_end(const struct hl_field *field)
{
	return field->bit_offset + (field->bits ? field->bits : field->data_size * 8);
}

/* _Bool has room for one bit only. */
static bool is_bool(const struct hl_types *types, hl_type_id id)
{
	return types->type[hl_type_strip(types, id)].flags & HL_TYPE_BOOL;
}

/* In a derived class two empty parts of one type lie apart without any pad. */
static bool has_bases(const struct hl_body *b)
{
	const struct hl_type *type = level(b)->type;

	return type->count && b->types->member[type->first].flags & HL_MEMBER_BASE;
}

static void write_field_pad(struct hl_body *b, const struct hl_field *field, uint64_t at)
{
	hl_type_id type = b->types->member[field->member].type;

	if (field->flags & HL_FIELD_NEW_UNIT) {
		at = hl_round_up(at, (uint64_t)field->align * 8);
		if (!forced_align(b, field, &b->types->member[field->member]))
			write_unnamed_as(b, type, 0);
	}
	if (!field->pad || (!field->bits && has_bases(b)))
		return;
	if (!field->bits)
		write_pad(b, at, hl_round_up(at, 8) - at + field->pad);
	else if (!is_bool(b->types, type) && at % (field->size * 8) + field->pad <= field->size * 8)
		write_unnamed_as(b, type, field->pad);
	else
		write_pad(b, at, field->pad);
}

/* ---- Members ---- */

static void write_attributes(struct hl_body *b, const struct hl_field *field,
			     const struct hl_member *member)
{
	uint32_t align = forced_align(b, field, member);

	if (is_packed_alone(b, field, member))
		write_packed(b->text);
	if (align)
		write_aligned(b->text, align);
}

/* Is the unnamed type part of the member, or only pointed to? */
static bool is_by_value(const struct hl_types *types, hl_type_id member, hl_type_id id)
{
	for (int depth = 0; depth < HL_MAX_DEPTH; depth++) {
		member = hl_type_strip(types, member);
		if (types->type[member].kind != HL_ARRAY)
			break;
		member = types->type[member].target;
	}
	return member == id;
}

struct member_writing {
	struct hl_body *body;
	const struct hl_member *member;
	uint64_t offset;
	uint64_t must_fit_at; /* of an unnamed member: the byte where it begins; 0: anywhere */
};

static void write_aggregate(struct hl_body *b, hl_type_id id, const struct hl_placing *placing,
			    uint64_t at);
static void write_enum(struct hl_body *b, hl_type_id id, unsigned tabs);

static void write_unnamed(void *arg, hl_type_id id)
{
	struct member_writing *w = arg;
	struct hl_body *b = w->body;
	const struct hl_type *type = &b->types->type[id];
	uint64_t base = b->base, last_line = b->last_line;
	bool by_value = is_by_value(b->types, w->member->type, id);

	if (type->kind == HL_ENUM) {
		write_enum(b, id, b->depth + 1);
		return;
	}
	if (b->depth + 1 >= HL_MAX_DEPTH || b->written >= MAX_WRITTEN) {
		hl_text_puts(b->text, hl_keyword(type, !has_comments(b)));
		hl_text_puts(b->text, " { }");
		return;
	}
	if (by_value) {
		b->base += w->offset;
	} else {
		b->base = 0;
		b->last_line = UINT64_MAX;
	}
	if (enter_level(b)) {
		write_aggregate(b, id, NULL, by_value ? w->must_fit_at : 0);
		leave_level(b);
	}
	b->base = base;
	if (!by_value)
		b->last_line = last_line;
}

static const char *name_for_member(void *arg, hl_type_id id)
{
	const struct member_writing *w = arg;

	return w->body->name_of ? w->body->name_of(w->body->arg, id) : NULL;
}

static void write_base_class(struct hl_body *b, const struct hl_member *member)
{
	hl_type_id id = hl_type_strip(b->types, member->type);
	const struct hl_type *type = &b->types->type[id];

	hl_text_puts(b->text, "/* ");
	hl_text_puts(b->text, hl_keyword(type, false));
	hl_text_putc(b->text, ' ');
	hl_text_puts(b->text, hl_type_name(b->types, id));
	hl_text_puts(b->text, member->flags & HL_MEMBER_VIRTUAL ? " <virtual ancestor>; */"
								: " <ancestor>; */");
}

/* C allows an array without a bound as the last of several members of a struct. */
static bool may_be_open(const struct hl_body *b, const struct hl_member *member)
{
	const struct hl_type *type = level(b)->type;

	return has_comments(b) && type->kind != HL_UNION && type->count > 1 &&
	       member == &b->types->member[type->first + type->count - 1];
}

static const char *changed_text(const struct hl_body *b, uint32_t member)
{
	return b->changed && !b->depth ? b->changed[member - level(b)->type->first] : NULL;
}

static void write_declaration(struct hl_body *b, const struct hl_slot *slot)
{
	const struct hl_member *member = &b->types->member[slot->member];
	const char *changed = changed_text(b, slot->member);
	bool is_packed = level(b)->placing && level(b)->placing->packed;
	struct member_writing w = {
		.body = b,
		.member = member,
		.offset = slot->offset,
		.must_fit_at = member->name || is_packed ? 0 : slot->offset,
	};
	unsigned indent = (b->depth + 1) * 8;
	struct hl_declarator d = {
		.text = b->text,
		.types = b->types,
		.type_width = has_comments(b) && indent < NAME_COLUMN ? NAME_COLUMN - indent : 0,
		.arg = &w,
		.name_of = name_for_member,
		.unnamed = write_unnamed,
		.c_only = !has_comments(b),
		.no_open_arrays = !may_be_open(b, member),
	};

	if (changed)
		hl_text_puts(b->text, changed);
	else
		hl_declarator_write(&d, member->type, member->name);
	if (member->bit_size && !changed) {
		hl_text_putc(b->text, ':');
		hl_text_u64(b->text, member->bit_size);
	}
}

static void write_member(struct hl_body *b, const struct hl_slot *slot,
			 const struct hl_field *field)
{
	const struct hl_member *member = &b->types->member[slot->member];
	bool is_virtual = member->flags & HL_MEMBER_VIRTUAL;

	if (has_comments(b) && !is_virtual)
		write_boundary(b, b->base + slot->offset);
	begin_line(b);
	if (member->flags & HL_MEMBER_BASE) {
		write_base_class(b, member);
	} else if (member->flags & HL_MEMBER_VPTR) {
		hl_text_puts(b->text, "/* vptr */");
	} else {
		write_declaration(b, slot);
		/* What is declared anew brings its own attributes. */
		if (!changed_text(b, slot->member))
			write_attributes(b, field, member);
		hl_text_putc(b->text, ';');
	}
	if (has_comments(b)) {
		comment_column(b, level(b)->line_start, b->depth + 1);
		if (is_virtual)
			hl_text_puts(b->text, "/*     ? */");
		else
			write_place(b, slot);
	}
	end_line(b);
	b->blank = false;
	b->written += b->depth != 0;
}

static void count_forced(struct hl_body *b, const struct hl_field *field, uint64_t hole)
{
	if (!field || !forced_align(b, field, &b->types->member[field->member]))
		return;
	level(b)->forced++;
	level(b)->forced_holes += hole != 0;
	level(b)->sum_forced_holes += hole;
}

static void write_members(struct hl_body *b)
{
	const struct hl_shape *shape = &level(b)->shape;
	const struct hl_placing *placing = level(b)->placing;
	uint64_t end = 0, hole = shape->lead, last_line = b->last_line;
	bool is_union = level(b)->type->kind == HL_UNION;

	if (has_comments(b) && (shape->lead || shape->lead_bits)) {
		blank_line(b);
		write_holes(b, shape->lead, shape->lead_bits, false);
		blank_line(b);
	}
	for (uint32_t i = 0; i < shape->n_slots && (!b->depth || b->written < MAX_WRITTEN); i++) {
		const struct hl_field *field = placing ? &placing->field[i] : NULL;

		if (field)
			write_field_pad(b, field, end);
		write_member(b, &shape->slot[i], field);
		if (has_comments(b)) {
			count_forced(b, field, hole);
			write_gaps(b, &shape->slot[i],
				   i + 1 < shape->n_slots ? shape->slot[i + 1].offset : UINT64_MAX);
		}
		end = field ? field_end(field) : 0;
		hole = shape->slot[i].hole;
		if (is_union) /* each member begins anew, and so does what follows it */
			b->last_line = last_line;
	}
	if (placing && placing->tail)
		write_pad(b, hl_type_size(b->types, level(b)->id) * 8 - placing->tail * 8,
			  placing->tail * 8);
}

/* ---- The summary below the members ---- */

/* One line of "what: number, what: number", numbers of 0 left out unless first. */
struct sum {
	const char *what;
	uint64_t n;
	const char *unit;
};

static void write_sums(struct hl_body *b, const struct sum *sum, size_t n)
{
	begin_line(b);
	hl_text_puts(b->text, "/* ");
	for (size_t i = 0; i < n; i++) {
		hl_text_puts(b->text, i ? ", " : "");
		hl_text_puts(b->text, sum[i].what);
		hl_text_puts(b->text, ": ");
		hl_text_u64(b->text, sum[i].n);
		hl_text_puts(b->text, sum[i].unit);
	}
	hl_text_puts(b->text, " */");
	end_line(b);
}

static void write_sum_of_members(struct hl_body *b, const struct hl_shape *shape)
{
	const struct sum bytes[] = {
		{ "sum members", shape->sum_members, "" },
		{ "holes", shape->holes, "" },
		{ "sum holes", shape->hole_bytes, "" },
	};
	const struct sum bits[] = {
		{ "sum bitfield members", shape->sum_bits, " bits" },
		{ "bit holes", shape->bit_holes, "" },
		{ "sum bit holes", shape->hole_bits, " bits" },
	};

	if (!shape->holes && !shape->bit_holes)
		return;
	if (shape->holes || shape->sum_members)
		write_sums(b, bytes, shape->holes ? 3 : 1);
	if (shape->bit_holes) {
		write_sums(b, bits, 3);
	} else if (shape->sum_bits) {
		begin_line(b);
		hl_text_printf(b->text, "/* sum bitfield members: %u bits (%u bytes) */\n",
			       shape->sum_bits, shape->sum_bits / 8);
	}
}

static void write_paddings(struct hl_body *b, const struct hl_shape *shape)
{
	const struct hl_body_level *l = level(b);
	const struct sum padding = { "padding", shape->padding, "" };
	const struct sum paddings[] = {
		{ "paddings", l->paddings, "" },
		{ "sum paddings", l->sum_paddings, "" },
	};
	const struct sum bit_padding = { "bit_padding", shape->bit_padding, " bits" };

	if (shape->padding)
		write_sums(b, &padding, 1);
	if (l->paddings)
		write_sums(b, paddings, 2);
	if (shape->bit_padding)
		write_sums(b, &bit_padding, 1);
}

static void write_summary(struct hl_body *b)
{
	const struct hl_body_level *l = level(b);
	const struct hl_shape *shape = &l->shape;
	const struct sum size[] = {
		{ "size", shape->size, "" },
		{ "cachelines", shape->lines, "" },
		{ "members", shape->n_slots, "" },
	};
	const struct sum forced[] = {
		{ "forced alignments", l->forced, "" },
		{ "forced holes", l->forced_holes, "" },
		{ "sum forced holes", l->sum_forced_holes, "" },
	};
	const struct sum last = { "last cacheline", shape->size % b->line, " bytes" };

	blank_line(b);
	write_sums(b, size, 3);
	write_sum_of_members(b, shape);
	write_paddings(b, shape);
	if (l->forced)
		write_sums(b, forced, l->forced_holes ? 3 : 1);
	if (shape->size % b->line)
		write_sums(b, &last, 1);
}

/* ---- Whole types ---- */

static void write_name(struct hl_body *b, hl_type_id id)
{
	const struct hl_type *type = &b->types->type[id];
	const char *name = b->name_of ? b->name_of(b->arg, id) : NULL;

	hl_text_puts(b->text, hl_keyword(type, !has_comments(b)));
	if (!name)
		name = type->name;
	if (name) {
		hl_text_putc(b->text, ' ');
		hl_text_puts(b->text, name);
	}
}

static void write_bases(struct hl_body *b, const struct hl_type *type)
{
	const char *before = " : ";

	for (uint32_t i = 0; i < type->count; i++) {
		const struct hl_member *member = &b->types->member[type->first + i];

		if (!(member->flags & HL_MEMBER_BASE))
			continue;
		hl_text_puts(b->text, before);
		if (member->flags & HL_MEMBER_VIRTUAL)
			hl_text_puts(b->text, "virtual ");
		hl_text_puts(b->text,
			     hl_type_name(b->types, hl_type_strip(b->types, member->type)));
		before = ", ";
	}
}

/* The line with the closing brace; in a member of that level it goes on with a name. */
static void write_closing(struct hl_body *b, unsigned tabs, struct hl_body_level *member)
{
	if (member)
		member->line_start = b->text->len;
	for (unsigned i = 0; i < tabs; i++)
		hl_text_putc(b->text, '\t');
	hl_text_putc(b->text, '}');
}

/* Finds what has to be written; the level's arrays are used again from type to type. */
/* What gives the type its layout: if it is an unnamed member of a struct that is not
 * packed, it has to fit at byte `at` there, too. */
static int explain(struct hl_body *b, hl_type_id id, uint64_t at)
{
	struct hl_placing *own = &level(b)->own;
	int error = hl_placing_explain(own, b->types, id);

	if (!error && at % own->align)
		error = hl_placing_explain_loose(own, b->types, id);
	return error;
}

static void measure(struct hl_body *b, hl_type_id id, const struct hl_placing *placing, uint64_t at)
{
	struct hl_body_level *l = level(b);
	unsigned line = b->line ? b->line : 1;
	int error = 0;

	l->type = &b->types->type[id];
	l->id = id;
	l->paddings = l->forced = l->forced_holes = 0;
	l->sum_paddings = l->sum_forced_holes = 0;
	l->placing = placing;
	if (!placing) {
		error = explain(b, id, at);
		l->placing = error ? NULL : &l->own;
	}
	if (error != -ENOMEM)
		error = placing ? hl_shape_measure_placing(&l->shape, b->types, id, placing, line)
				: hl_shape_measure(&l->shape, b->types, id, line);
	if (error) {
		b->error = error;
		l->shape.n_slots = 0;
	}
}

static void write_type_attributes(struct hl_body *b)
{
	const struct hl_body_level *l = level(b);
	uint32_t align = l->type->align_log2 ? 1u << (l->type->align_log2 - 1) : 1;

	if (l->placing ? l->placing->packed : l->type->flags & HL_TYPE_PACKED)
		write_packed(b->text);
	if (l->placing)
		align = l->placing->min_align;
	if (align > 1)
		write_aligned(b->text, align);
}

static void write_aggregate(struct hl_body *b, hl_type_id id, const struct hl_placing *placing,
			    uint64_t at)
{
	measure(b, id, placing, at);
	write_name(b, id);
	write_bases(b, level(b)->type);
	hl_text_puts(b->text, " {\n");
	b->blank = false;
	write_members(b);
	if (has_comments(b) && !b->depth)
		write_summary(b);
	write_closing(b, b->depth, level(b)->outer);
	write_type_attributes(b);
}

/* The least bytes that hold all enumerators. */
static unsigned enum_bytes(const struct hl_types *types, const struct hl_type *type)
{
	bool is_signed = type->flags & HL_TYPE_SIGNED;
	unsigned bits = 1;

	for (uint32_t i = 0; i < type->count; i++) {
		uint64_t value = types->member[type->first + i].bit_offset;

		if (is_signed && (int64_t)value < 0)
			value = ~value;
		while (bits < 64 && value >> (bits - is_signed))
			bits++;
	}
	return bits <= 8 ? 1 : bits <= 16 ? 2 : bits <= 32 ? 4 : 8;
}

/* What makes an enum another size than that of int, if its values do not. */
static void write_enum_size(struct hl_text *text, const struct hl_types *types,
			    const struct hl_type *type)
{
	unsigned bytes = enum_bytes(types, type);

	if (type->size < 4 && type->size == bytes)
		write_packed(text);
	else if (type->size == 1)
		hl_text_puts(text, " __attribute__((__mode__(__QI__)))");
	else if (type->size == 2)
		hl_text_puts(text, " __attribute__((__mode__(__HI__)))");
	else if (type->size == 8 && bytes < 8)
		hl_text_puts(text, " __attribute__((__mode__(__DI__)))");
}

static void write_enumerator(struct hl_body *b, const struct hl_type *type,
			     const struct hl_member *member, unsigned tabs)
{
	const char *name = b->enumerator ? b->enumerator(b->arg, member) : member->name;

	for (unsigned t = 0; t <= tabs; t++)
		hl_text_putc(b->text, '\t');
	hl_text_puts(b->text, name ? name : "");
	hl_text_puts(b->text, " = ");
	hl_write_enumerator(b->text, type, member);
	hl_text_puts(b->text, ",\n");
}

static void write_enum(struct hl_body *b, hl_type_id id, unsigned tabs)
{
	const struct hl_type *type = &b->types->type[id];

	write_name(b, id);
	hl_text_puts(b->text, " {\n");
	for (uint32_t i = 0; i < type->count; i++)
		write_enumerator(b, type, &b->types->member[type->first + i], tabs);
	if (!type->count && b->enumerator) /* C wants one */
		write_enumerator(b, type, &(struct hl_member){ .name = NULL }, tabs);
	write_closing(b, tabs, level(b));
	write_enum_size(b->text, b->types, type);
}

static void free_levels(struct hl_body *b)
{
	struct hl_body_level *l = b->level;

	if (b->scratch) {
		*b->scratch = l->shape;
		l->shape = (struct hl_shape){ 0 };
	}
	while (l) {
		struct hl_body_level *inner = l->inner;

		hl_placing_free(&l->own);
		hl_shape_free(&l->shape);
		if (l->outer)
			free(l);
		l = inner;
	}
}

int hl_body_write(struct hl_body *b, hl_type_id id, const struct hl_placing *placing)
{
	struct hl_body_level outermost = { 0 };

	if (b->scratch)
		outermost.shape = *b->scratch;
	b->level = &outermost;
	b->depth = 0;
	b->base = b->last_line = 0;
	b->written = 0;
	b->looked = 0;
	b->error = 0;
	if (b->types->type[id].kind == HL_ENUM)
		write_enum(b, id, 0);
	else
		write_aggregate(b, id, placing, 0);
	free_levels(b);
	b->level = NULL;
	return b->error ? b->error : b->text->failed ? -ENOMEM : 0;
}
