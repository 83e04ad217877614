// SPDX-License-Identifier: MIT
/*
 * One DWARF unit into a store: which structs, classes and unions it defines, and
 * all the types that these are made of.
 *
 * Two passes.  walk() goes over the unit's tree and hands every definition to
 * read_definition(); that turns it, and what it refers to, into types.  A pointer
 * leads to a type by name only (refer()), so reading ends at the first pointer
 * and cannot go round in circles; what holds itself by value is cut and counted.
 *
 * The tree may be hostile: depth is bounded, numbers are checked against
 * HL_MAX_*, and a reference that libdw cannot follow becomes void.
 */
#include "dwarf_reader.h"

#include <errno.h>
#include <string.h>

/* In reader->types: being read right now. */
#define IN_PROGRESS UINT32_MAX
/* How deep trees of DIEs are followed. */
#define MAX_TREE 128
/* DIEs whose scope is remembered from one unit to the next. */
#define MOST_SCOPES (1u << 16)

/* What the attributes of one DIE say, read in one pass. */
struct facts {
	Dwarf_Die *die;
	const char *name;
	Dwarf_Attribute type, location, upper, count, lower, origin, signature, import, discr_value,
		containing, const_value;
	bool has_type, has_location, has_upper, has_count, has_lower, has_origin, has_signature,
		has_import, has_containing, has_const_value, has_size, has_bit_size,
		has_data_bit_offset, has_bit_offset, has_file;
	bool declaration, external, artificial, vector, prototyped;
	uint64_t size, bit_size, data_bit_offset, alignment, file, line, encoding, virtuality;
	Dwarf_Sword bit_offset; /* below 0 where a packed bit-field runs on into the next unit */
};

static void failed(struct hl_dwarf_reader *r, int rc, const char *why)
{
	if (!r->rc) {
		r->rc = rc;
		r->why = why;
	}
}

static bool number(Dwarf_Attribute *attr, uint64_t *value)
{
	Dwarf_Word word;
	Dwarf_Sword sword;

	/* A signed form of a count or size is right when it is not negative. */
	if (dwarf_whatform(attr) == DW_FORM_sdata ||
	    dwarf_whatform(attr) == DW_FORM_implicit_const) {
		if (dwarf_formsdata(attr, &sword) || sword < 0)
			return false;
		*value = (uint64_t)sword;
		return true;
	}
	if (dwarf_formudata(attr, &word))
		return false;
	*value = word;
	return true;
}

static bool flag(Dwarf_Attribute *attr)
{
	bool value = false;

	return !dwarf_formflag(attr, &value) && value;
}

static int take_attribute(Dwarf_Attribute *attr, void *arg)
{
	struct facts *f = arg;

	switch (dwarf_whatattr(attr)) {
	case DW_AT_name:
		f->name = dwarf_formstring(attr);
		break;
	case DW_AT_type:
		f->type = *attr;
		f->has_type = true;
		break;
	case DW_AT_byte_size:
		f->has_size = number(attr, &f->size);
		break;
	case DW_AT_data_member_location:
	case DW_AT_location:
		f->location = *attr;
		f->has_location = true;
		break;
	case DW_AT_bit_size:
		f->has_bit_size = number(attr, &f->bit_size);
		break;
	case DW_AT_data_bit_offset:
		f->has_data_bit_offset = number(attr, &f->data_bit_offset);
		break;
	case DW_AT_bit_offset:
		f->has_bit_offset = !dwarf_formsdata(attr, &f->bit_offset);
		break;
	case DW_AT_alignment:
		number(attr, &f->alignment);
		break;
	case DW_AT_decl_file:
		f->has_file = number(attr, &f->file);
		break;
	case DW_AT_decl_line:
		number(attr, &f->line);
		break;
	case DW_AT_encoding:
		number(attr, &f->encoding);
		break;
	case DW_AT_virtuality:
		number(attr, &f->virtuality);
		break;
	case DW_AT_declaration:
		f->declaration = flag(attr);
		break;
	case DW_AT_external:
		f->external = flag(attr);
		break;
	case DW_AT_artificial:
		f->artificial = flag(attr);
		break;
	case DW_AT_GNU_vector:
		f->vector = flag(attr);
		break;
	case DW_AT_prototyped:
		f->prototyped = flag(attr);
		break;
	case DW_AT_upper_bound:
		f->upper = *attr;
		f->has_upper = true;
		break;
	case DW_AT_lower_bound:
		f->lower = *attr;
		f->has_lower = true;
		break;
	case DW_AT_count:
		f->count = *attr;
		f->has_count = true;
		break;
	case DW_AT_specification:
	case DW_AT_abstract_origin:
		f->origin = *attr;
		f->has_origin = true;
		break;
	case DW_AT_signature:
		f->signature = *attr;
		f->has_signature = true;
		break;
	case DW_AT_import:
		f->import = *attr;
		f->has_import = true;
		break;
	case DW_AT_containing_type:
		f->containing = *attr;
		f->has_containing = true;
		break;
	case DW_AT_const_value:
		f->const_value = *attr;
		f->has_const_value = true;
		break;
	default:
		break;
	}
	return DWARF_CB_OK;
}

static void take_facts(struct facts *f, Dwarf_Die *die)
{
	memset(f, 0, sizeof(*f));
	f->die = die;
	dwarf_getattrs(die, take_attribute, f, 0);
	if (f->has_origin && !f->name) {
		/* A class declared in one place and defined in another has its name there. */
		Dwarf_Die origin;

		if (dwarf_formref_die(&f->origin, &origin))
			f->name = dwarf_diename(&origin);
	}
	/* No name is what some compilers and all damaged files mean by that. */
	if (f->name && !*f->name)
		f->name = NULL;
}

static bool is_definition_tag(int tag)
{
	return tag == DW_TAG_structure_type || tag == DW_TAG_class_type ||
	       tag == DW_TAG_union_type || tag == DW_TAG_interface_type;
}

static enum hl_kind aggregate_kind(int tag)
{
	return tag == DW_TAG_union_type	      ? HL_UNION
	       : tag == DW_TAG_structure_type ? HL_STRUCT
					      : HL_CLASS;
}

enum hl_language hl_dwarf_language(Dwarf_Die *unit)
{
	switch (dwarf_srclang(unit)) {
	case DW_LANG_C:
	case DW_LANG_C89:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case 0x2c: /* DW_LANG_C17 */
	case DW_LANG_Mips_Assembler:
	case -1:
		return HL_LANG_C;
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
	case 0x2b: /* DW_LANG_C_plus_plus_17 */
	case 0x2a: /* DW_LANG_C_plus_plus_20 */
		return HL_LANG_CXX;
	case DW_LANG_Rust:
		return HL_LANG_RUST;
	default:
		return HL_LANG_OTHER;
	}
}

static enum hl_language language_of(struct hl_dwarf_reader *r, Dwarf_Die *die)
{
	Dwarf_Die unit;

	if (die->cu == r->language_unit)
		return r->language;
	if (!dwarf_diecu(die, &unit, NULL, NULL))
		return HL_LANG_OTHER;
	r->language_unit = die->cu;
	r->language = dwarf_tag(&unit) == DW_TAG_partial_unit && dwarf_srclang(&unit) == -1
			      ? r->partial_language
			      : hl_dwarf_language(&unit);
	return r->language;
}

/* ---- Source files ---- */

/* Adds the file, without the compilation's directory in front of it. */
static uint32_t store_path(struct hl_dwarf_reader *r, const char *path, const char *directory)
{
	size_t n = directory ? strlen(directory) : 0;

	if (n && !strncmp(path, directory, n) && path[n] == '/')
		path += n + 1;
	while (path[0] == '.' && path[1] == '/')
		path += 2;

	int64_t id = hl_store_file(r->store, path, strlen(path));

	if (id < 0)
		failed(r, (int)id, NULL);
	return id < 0 ? 0 : (uint32_t)id;
}

/* Whether the unit's table of lines was read before, or may be. */
static bool may_read_lines(struct hl_dwarf_reader *r, Dwarf_Die *unit)
{
	int may = hl_fence_lines(&r->lines, unit);

	if (may < 0)
		failed(r, may, NULL);
	if (!may)
		hl_store_skip(r->store, "a table of source files that overlaps others");
	return may > 0;
}

static struct hl_unit_files *files_of(struct hl_dwarf_reader *r, Dwarf_Die *unit)
{
	for (uint32_t i = r->n_files; i-- > 0;)
		if (r->files[i].cu == unit->cu)
			return &r->files[i];
	if (r->n_files == r->files_room) {
		uint32_t room = r->files_room ? r->files_room * 2 : 8;
		struct hl_unit_files *more = realloc(r->files, room * sizeof(*more));

		if (!more) {
			failed(r, -ENOMEM, NULL);
			return NULL;
		}
		r->files = more;
		r->files_room = room;
	}
	struct hl_unit_files *entry = &r->files[r->n_files];
	Dwarf_Files *files;
	size_t n = 0;

	*entry = (struct hl_unit_files){ .cu = unit->cu };
	/* The table of a split unit is with its skeleton. */
	if (r->skeleton && dwarf_tag(unit) == DW_TAG_compile_unit)
		unit = r->skeleton;
	if (may_read_lines(r, unit) && !dwarf_getsrcfiles(unit, &files, &n) && n) {
		const char *directory =
			dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &(Dwarf_Attribute){ 0 }));

		entry->file = calloc(n, sizeof(*entry->file));
		if (!entry->file) {
			failed(r, -ENOMEM, NULL);
			return NULL;
		}
		entry->n = n;
		for (size_t i = 0; i < n; i++) {
			const char *path = dwarf_filesrc(files, i, NULL, NULL);

			if (path && strcmp(path, "???"))
				entry->file[i] = store_path(r, path, directory);
		}
	}
	r->n_files++;
	return entry;
}

static uint32_t file_of(struct hl_dwarf_reader *r, const struct facts *f)
{
	Dwarf_Die unit;

	if (!f->has_file || !dwarf_diecu(f->die, &unit, NULL, NULL))
		return 0;

	const struct hl_unit_files *files = files_of(r, &unit);

	return files && f->file < files->n ? files->file[f->file] : 0;
}

/* ---- Scopes ---- */

/* The scope called name inside `outer`. */
static uint32_t inner_scope(struct hl_dwarf_reader *r, uint32_t outer, const char *name)
{
	char text[1024];
	int n;

	if (!name)
		name = "(anonymous)";
	n = outer ? snprintf(text, sizeof(text), "%s::%s", r->store->file[outer], name)
		  : snprintf(text, sizeof(text), "%s", name);
	if (n < 0)
		return outer;

	int64_t id = hl_store_file(r->store, text,
				   (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1);

	if (id < 0)
		failed(r, (int)id, NULL);
	return id < 0 ? 0 : (uint32_t)id;
}

/* Remembers for every DIE below that lies in a scope which one it is. */
static void index_scopes(struct hl_dwarf_reader *r, Dwarf_Die *parent, uint32_t scope, int depth)
{
	Dwarf_Die die;

	if (r->rc || depth > MAX_TREE || dwarf_child(parent, &die))
		return;
	do {
		int tag = dwarf_tag(&die);
		bool opens = tag == DW_TAG_namespace || is_definition_tag(tag);

		if (scope && (is_definition_tag(tag) || tag == DW_TAG_enumeration_type ||
			      tag == DW_TAG_typedef))
			if (hl_die_map_set(&r->scopes, die.addr, scope))
				failed(r, -ENOMEM, NULL);
		if (opens)
			index_scopes(r, &die, inner_scope(r, scope, dwarf_diename(&die)),
				     depth + 1);
	} while (!r->rc && !dwarf_siblingof(&die, &die));
}

static uint32_t scope_of(struct hl_dwarf_reader *r, const struct facts *f,
			 enum hl_language language)
{
	Dwarf_Die unit, place = *f->die;

	if (language != HL_LANG_CXX && language != HL_LANG_RUST)
		return 0;
	if (f->has_origin) {
		/* The scope is where it was declared. */
		Dwarf_Attribute origin = f->origin;
		Dwarf_Die declared;

		if (dwarf_formref_die(&origin, &declared))
			place = declared;
	}
	if (!dwarf_diecu(&place, &unit, NULL, NULL))
		return 0;
	if (hl_die_map_get(&r->indexed, unit.addr) < 0) {
		index_scopes(r, &unit, 0, 0);
		if (hl_die_map_set(&r->indexed, unit.addr, 0))
			failed(r, -ENOMEM, NULL);
	}
	int64_t scope = hl_die_map_get(&r->scopes, place.addr);

	return scope < 0 ? 0 : (uint32_t)scope;
}

/* ---- Types ---- */

static hl_type_id read_type(struct hl_dwarf_reader *r, Dwarf_Die *die, int depth);
static hl_type_id referred(struct hl_dwarf_reader *r, Dwarf_Attribute *attr, bool has, int depth);

static hl_type_id add(struct hl_dwarf_reader *r, const struct hl_type *type,
		      const struct hl_member *members)
{
	int64_t id = hl_store_type(r->store, type, members);

	if (id < 0) {
		failed(r, (int)id, NULL);
		return 0;
	}
	return (hl_type_id)id;
}

static uint8_t align_log2(uint64_t align)
{
	return align && !(align & (align - 1)) && align <= (1u << 30)
		       ? (uint8_t)(__builtin_ctzll(align) + 1)
		       : 0;
}

static uint64_t bounded_size(struct hl_dwarf_reader *r, uint64_t size)
{
	if (size <= HL_MAX_SIZE)
		return size;
	hl_store_skip(r->store, "a size above the bound");
	return 0;
}

static uint32_t bounded_line(uint64_t line)
{
	return line <= UINT32_MAX ? (uint32_t)line : 0;
}

/* A struct, class or union by name alone. */
static hl_type_id declared(struct hl_dwarf_reader *r, int tag, const struct facts *f)
{
	enum hl_language language = language_of(r, f->die);
	struct hl_type type = {
		.name = f->name,
		.kind = (uint8_t)aggregate_kind(tag),
		.flags = HL_TYPE_DECLARATION,
		.language = (uint8_t)language,
		.scope = scope_of(r, f, language),
	};

	return add(r, &type, NULL);
}

/* The type that a pointer leads to: reading it goes no further than a name. */
static hl_type_id refer(struct hl_dwarf_reader *r, Dwarf_Die *die, int depth)
{
	int tag = dwarf_tag(die);
	struct facts f;

	if (depth > HL_MAX_DEPTH) {
		hl_store_skip(r->store, "types that refer to each other too deeply");
		return 0;
	}
	if (is_definition_tag(tag)) {
		take_facts(&f, die);
		if (f.name)
			return declared(r, tag, &f);
		if (f.has_signature)
			return referred(r, &f.signature, true, depth);
		return read_type(r, die, depth);
	}
	switch (tag) {
	case DW_TAG_typedef:
	case DW_TAG_template_alias:
	case DW_TAG_const_type:
	case DW_TAG_volatile_type:
	case DW_TAG_restrict_type:
	case DW_TAG_atomic_type:
		break;
	default:
		return read_type(r, die, depth);
	}

	/* An alias of what is referred to: not kept by DIE, because the same alias of
	 * the whole type may be wanted elsewhere. */
	take_facts(&f, die);
	hl_type_id id = referred(r, &f.type, f.has_type, depth);
	enum hl_language language = language_of(r, die);
	struct hl_type type = {
		.name = f.name,
		.target = id,
		.align_log2 = align_log2(f.alignment),
		.language = (uint8_t)language,
	};

	switch (tag) {
	case DW_TAG_const_type:
		type.kind = HL_CONST;
		break;
	case DW_TAG_volatile_type:
		type.kind = HL_VOLATILE;
		break;
	case DW_TAG_restrict_type:
		type.kind = HL_RESTRICT;
		break;
	case DW_TAG_atomic_type:
		type.kind = HL_ATOMIC;
		break;
	default:
		type.kind = HL_TYPEDEF;
		type.scope = scope_of(r, &f, language);
		type.file = file_of(r, &f);
		type.line = bounded_line(f.line);
	}
	return add(r, &type, NULL);
}

/* A type in a unit that libdw does not know of; void when nobody does. */
static hl_type_id elsewhere(struct hl_dwarf_reader *r, Dwarf_Attribute *attr, bool by_name,
			    int depth)
{
	if (r->by_signature && dwarf_whatform(attr) == DW_FORM_ref_sig8 && depth <= HL_MAX_DEPTH)
		return r->by_signature(r, attr->valp, by_name, depth + 1);
	hl_store_skip(r->store, "a reference to a type that is not in the file");
	return 0;
}

/* The type that an attribute names; void when there is none. */
static hl_type_id referred(struct hl_dwarf_reader *r, Dwarf_Attribute *attr, bool has, int depth)
{
	Dwarf_Die die;

	if (!has)
		return 0;
	if (!dwarf_formref_die(attr, &die))
		return elsewhere(r, attr, true, depth);
	return refer(r, &die, depth + 1);
}

static hl_type_id held(struct hl_dwarf_reader *r, Dwarf_Attribute *attr, bool has, int depth)
{
	Dwarf_Die die;

	if (!has)
		return 0;
	if (!dwarf_formref_die(attr, &die))
		return elsewhere(r, attr, false, depth);
	return read_type(r, &die, depth + 1);
}

static hl_type_id read_base(struct hl_dwarf_reader *r, const struct facts *f)
{
	struct hl_type type = { .name = f->name,
				.kind = HL_BASE,
				.size = bounded_size(r, f->size) };

	switch (f->encoding) {
	case DW_ATE_boolean:
		type.flags = HL_TYPE_BOOL;
		break;
	case DW_ATE_complex_float:
		/* Aligned as its halves are. */
		type.align_log2 = align_log2(type.size / 2);
		type.flags = HL_TYPE_FLOAT;
		break;
	case DW_ATE_float:
	case DW_ATE_imaginary_float:
	case DW_ATE_decimal_float:
		type.flags = HL_TYPE_FLOAT;
		break;
	case DW_ATE_signed:
		type.flags = HL_TYPE_SIGNED;
		break;
	case DW_ATE_signed_char:
		type.flags = HL_TYPE_SIGNED | HL_TYPE_CHAR;
		break;
	case DW_ATE_unsigned_char:
	case DW_ATE_UTF:
		type.flags = HL_TYPE_CHAR;
		break;
	default:
		break;
	}
	return add(r, &type, NULL);
}

static hl_type_id read_alias(struct hl_dwarf_reader *r, const struct facts *f, enum hl_kind kind,
			     int depth)
{
	enum hl_language language = language_of(r, f->die);
	struct hl_type type = {
		.name = f->name,
		.kind = (uint8_t)kind,
		.language = (uint8_t)language,
		.align_log2 = align_log2(f->alignment),
	};
	Dwarf_Attribute target = f->type;

	type.target = held(r, &target, f->has_type, depth);
	if (kind == HL_TYPEDEF) {
		type.scope = scope_of(r, f, language);
		type.file = file_of(r, f);
		type.line = bounded_line(f->line);
	}
	return add(r, &type, NULL);
}

static hl_type_id read_pointer(struct hl_dwarf_reader *r, const struct facts *f, enum hl_kind kind,
			       int depth)
{
	struct hl_type type = {
		.name = f->name,
		.kind = (uint8_t)kind,
		.align_log2 = align_log2(f->alignment),
		.size = f->has_size ? bounded_size(r, f->size) : r->address_size,
	};
	Dwarf_Attribute target = f->type;

	type.target = referred(r, &target, f->has_type, depth);
	if (kind == HL_MEMBER_POINTER && !f->has_size &&
	    r->store->type[type.target].kind == HL_FUNCTION)
		type.size *= 2; /* Itanium C++ ABI: the function and what to add to this */
	if (kind == HL_MEMBER_POINTER) {
		/* The class it points into, as its one member. */
		Dwarf_Attribute containing = f->containing;
		struct hl_member class = {
			.type = referred(r, &containing, f->has_containing, depth),
		};

		type.count = 1;
		return add(r, &type, &class);
	}
	return add(r, &type, NULL);
}

/* Elements of one dimension; *flexible when the bound is not said. */
static uint64_t dimension(struct hl_dwarf_reader *r, Dwarf_Die *range, bool *flexible)
{
	struct facts f;
	uint64_t value, lower = 0;

	*flexible = false;
	take_facts(&f, range);
	if (dwarf_tag(range) == DW_TAG_enumeration_type) {
		Dwarf_Die child;
		uint64_t n = 0;

		for (int rc = dwarf_child(range, &child); !rc; rc = dwarf_siblingof(&child, &child))
			n++;
		return n;
	}
	if (f.has_count && number(&f.count, &value))
		return bounded_size(r, value);
	if (f.has_lower)
		number(&f.lower, &lower);
	if (f.has_upper) {
		Dwarf_Sword sword;

		if (number(&f.upper, &value)) {
			/* gcc writes the bound of int a[0] as -1 in the width of the index. */
			if (value == UINT32_MAX || value == UINT64_MAX || value < lower)
				return 0;
			return bounded_size(r, value - lower + 1);
		}
		if (!dwarf_formsdata(&f.upper, &sword))
			return 0;
	}
	*flexible = true;
	return 0;
}

static hl_type_id read_array(struct hl_dwarf_reader *r, const struct facts *f, int depth)
{
	uint64_t count[16];
	bool flexible[16];
	int n = 0;
	Dwarf_Die child;

	for (int rc = dwarf_child(f->die, &child); !rc; rc = dwarf_siblingof(&child, &child)) {
		int tag = dwarf_tag(&child);

		if (tag != DW_TAG_subrange_type && tag != DW_TAG_enumeration_type &&
		    tag != DW_TAG_generic_subrange)
			continue;
		if (n == 16) {
			hl_store_skip(r->store, "an array of more than 16 dimensions");
			break;
		}
		count[n] = dimension(r, &child, &flexible[n]);
		n++;
	}
	Dwarf_Attribute element = f->type;
	hl_type_id id = held(r, &element, f->has_type, depth);

	if (!n) {
		count[0] = 0;
		flexible[0] = true;
		n = 1;
	}
	while (n-- > 0) {
		struct hl_type type = {
			.kind = HL_ARRAY,
			.target = id,
			.size = count[n],
			.flags = (uint8_t)((flexible[n] ? HL_TYPE_FLEXIBLE : 0) |
					   (f->vector ? HL_TYPE_VECTOR : 0)),
			.align_log2 = n ? 0 : align_log2(f->alignment),
		};

		id = add(r, &type, NULL);
	}
	return id;
}

static struct hl_member *push(struct hl_dwarf_reader *r)
{
	if (r->n_scratch == r->scratch_room) {
		uint32_t room = r->scratch_room * 2;
		struct hl_member *more = realloc(r->scratch, room * sizeof(*more));

		if (!more) {
			failed(r, -ENOMEM, NULL);
			return NULL;
		}
		r->scratch = more;
		r->scratch_room = room;
	}
	struct hl_member *member = &r->scratch[r->n_scratch++];

	*member = (struct hl_member){ 0 };
	return member;
}

static hl_type_id read_function(struct hl_dwarf_reader *r, const struct facts *f, int depth)
{
	uint32_t start = r->n_scratch;
	Dwarf_Attribute returns = f->type;
	struct hl_type type = { .kind = HL_FUNCTION };
	Dwarf_Die child;

	type.target = referred(r, &returns, f->has_type, depth);
	for (int rc = dwarf_child(f->die, &child); !rc && !r->rc;
	     rc = dwarf_siblingof(&child, &child)) {
		int tag = dwarf_tag(&child);
		struct facts parameter;

		if (tag == DW_TAG_unspecified_parameters)
			type.flags |= HL_TYPE_VARIADIC;
		if (tag != DW_TAG_formal_parameter)
			continue;
		take_facts(&parameter, &child);
		hl_type_id id = referred(r, &parameter.type, parameter.has_type, depth);
		struct hl_member *member = push(r);

		if (member)
			member->type = id;
	}
	type.count = r->n_scratch - start;
	hl_type_id id = r->rc ? 0 : add(r, &type, r->scratch + start);

	r->n_scratch = start;
	return id;
}

static hl_type_id read_enum(struct hl_dwarf_reader *r, const struct facts *f, int depth)
{
	uint32_t start = r->n_scratch;
	enum hl_language language = language_of(r, f->die);
	struct hl_type type = {
		.name = f->name,
		.kind = HL_ENUM,
		.size = bounded_size(r, f->size),
		.align_log2 = align_log2(f->alignment),
		.language = (uint8_t)language,
		.scope = scope_of(r, f, language),
		.file = file_of(r, f),
		.line = bounded_line(f->line),
	};
	Dwarf_Attribute underlying = f->type;
	Dwarf_Die child;

	if (f->has_type) {
		const struct hl_store *store = r->store;
		hl_type_id id = held(r, &underlying, true, depth);

		for (int i = 0; i < 8 && store->type[id].kind != HL_BASE; i++)
			id = store->type[id].target;
		type.flags = store->type[id].flags & HL_TYPE_SIGNED;
	}
	if (f->declaration)
		type.flags |= HL_TYPE_DECLARATION;
	for (int rc = dwarf_child(f->die, &child); !rc && !r->rc;
	     rc = dwarf_siblingof(&child, &child)) {
		struct facts value;
		Dwarf_Sword sword;

		if (dwarf_tag(&child) != DW_TAG_enumerator)
			continue;
		take_facts(&value, &child);
		struct hl_member *member = push(r);

		if (!member)
			break;
		member->name = value.name;
		if (value.has_const_value && !dwarf_formsdata(&value.const_value, &sword)) {
			/* Data forms of less than eight bytes say no sign: the type does. */
			Dwarf_Word word = (Dwarf_Word)sword;

			if (!(type.flags & HL_TYPE_SIGNED) && sword < 0 && type.size < 8 &&
			    dwarf_whatform(&value.const_value) != DW_FORM_sdata &&
			    dwarf_whatform(&value.const_value) != DW_FORM_implicit_const)
				dwarf_formudata(&value.const_value, &word);
			else if (sword < 0)
				type.flags |= HL_TYPE_SIGNED;
			member->bit_offset = word;
		}
	}
	type.count = r->n_scratch - start;
	hl_type_id id = r->rc ? 0 : add(r, &type, r->scratch + start);

	r->n_scratch = start;
	return id;
}

/* ---- Members ---- */

/* The byte at which a member lies; false when that is not a constant. */
static bool member_place(const struct facts *f, uint64_t *place)
{
	Dwarf_Attribute attr = f->location;
	Dwarf_Op *op;
	size_t n;

	*place = 0;
	if (!f->has_location)
		return true;
	if (number(&attr, place))
		return true;
	/* DWARF 2: an expression that adds to the address of the struct. */
	if (dwarf_getlocation(&attr, &op, &n))
		return false;
	if (n == 1 && (op[0].atom == DW_OP_plus_uconst || op[0].atom == DW_OP_constu)) {
		*place = op[0].number;
		return true;
	}
	return false;
}

static bool is_big_endian(Dwarf_Die *die)
{
	Elf *elf = dwarf_getelf(dwarf_cu_getdwarf(die->cu));
	const char *ident = elf ? elf_getident(elf, NULL) : NULL;

	return ident && ident[EI_DATA] == ELFDATA2MSB;
}

/* Where a bit-field lies, from any of the three ways in which DWARF tells it. */
static uint64_t bit_place(struct hl_dwarf_reader *r, const struct facts *f, uint64_t byte,
			  hl_type_id type)
{
	if (f->has_data_bit_offset)
		return byte * 8 + f->data_bit_offset;
	if (!f->has_bit_offset)
		return byte * 8;

	/* DWARF 2 and 3 count from the most significant bit of a storage unit. */
	uint64_t unit = f->has_size ? f->size : 0;

	for (int i = 0; !unit && i < HL_MAX_DEPTH; i++) {
		const struct hl_type *t = &r->store->type[type];

		if (t->kind == HL_BASE || t->kind == HL_ENUM)
			unit = t->size;
		type = t->target;
	}
	/* Arithmetic modulo 2^64, since the offset may be negative. */
	uint64_t offset = (uint64_t)f->bit_offset;

	if (is_big_endian(f->die))
		return byte * 8 + offset;
	return byte * 8 + unit * 8 - offset - f->bit_size;
}

/* clang writes an _Atomic struct that it made larger (3 bytes to 4) as a bit-field
 * of the struct.  The member becomes what it is: an atomic of that size. */
static void unfold_atomic(struct hl_dwarf_reader *r, struct hl_member *member)
{
	uint64_t bits = member->bit_size;
	struct hl_type type = { .kind = HL_ATOMIC, .size = bits / 8, .target = member->type };

	for (int i = 0; i < HL_MAX_DEPTH && r->store->type[type.target].kind == HL_ATOMIC; i++)
		type.target = r->store->type[type.target].target;
	if (!hl_kind_is_aggregate(r->store->type[type.target].kind) || bits % 8 ||
	    member->bit_offset % 8)
		return;
	type.align_log2 = align_log2(type.size);
	member->bit_size = 0;
	member->type = add(r, &type, NULL);
}

static void read_member(struct hl_dwarf_reader *r, Dwarf_Die *die, uint8_t flags, int depth)
{
	struct facts f;
	uint64_t byte;

	take_facts(&f, die);
	/* Static members take no room. */
	if (f.external || (f.declaration && !f.has_location))
		return;

	hl_type_id type = held(r, &f.type, f.has_type, depth);
	bool known = member_place(&f, &byte);
	struct hl_member *member = push(r);

	if (!member)
		return;
	member->name = f.name;
	member->type = type;
	member->align_log2 = align_log2(f.alignment);
	member->flags = flags;
	if (!known || f.virtuality == DW_VIRTUALITY_virtual) {
		member->flags |= HL_MEMBER_VIRTUAL;
		if (dwarf_tag(die) != DW_TAG_inheritance)
			hl_store_skip(r->store, "a member whose place is computed at run time");
		return;
	}
	member->bit_offset = byte <= HL_MAX_SIZE ? byte * 8 : 0;
	if (f.has_bit_size && f.bit_size <= UINT16_MAX) {
		member->bit_size = (uint16_t)f.bit_size;
		member->bit_offset = bit_place(r, &f, byte, type);
		unfold_atomic(r, member);
	}
	if (byte > HL_MAX_SIZE || member->bit_offset > HL_MAX_SIZE * 8) {
		hl_store_skip(r->store, "a member whose place is above the bound");
		member->bit_offset = 0;
	}
	if (f.artificial && f.name && !strncmp(f.name, "_vptr", 5))
		member->flags |= HL_MEMBER_VPTR;
}

/* Rust: the parts of an enum that overlay each other, each as a member. */
static void read_variants(struct hl_dwarf_reader *r, Dwarf_Die *part, int depth)
{
	Dwarf_Die child, inner;

	for (int rc = dwarf_child(part, &child); !rc && !r->rc;
	     rc = dwarf_siblingof(&child, &child)) {
		if (dwarf_tag(&child) == DW_TAG_member)
			read_member(r, &child, HL_MEMBER_DISCRIMINANT, depth);
		if (dwarf_tag(&child) != DW_TAG_variant)
			continue;
		for (int in = dwarf_child(&child, &inner); !in && !r->rc;
		     in = dwarf_siblingof(&inner, &inner))
			if (dwarf_tag(&inner) == DW_TAG_member)
				read_member(r, &inner, HL_MEMBER_VARIANT, depth);
	}
}

static void read_members(struct hl_dwarf_reader *r, Dwarf_Die *die, int depth)
{
	Dwarf_Die child;

	for (int rc = dwarf_child(die, &child); !rc && !r->rc;
	     rc = dwarf_siblingof(&child, &child)) {
		switch (dwarf_tag(&child)) {
		case DW_TAG_member:
			read_member(r, &child, 0, depth);
			break;
		case DW_TAG_inheritance:
			read_member(r, &child, HL_MEMBER_BASE, depth);
			break;
		case DW_TAG_variant_part:
			read_variants(r, &child, depth);
			break;
		default:
			break;
		}
	}
}

/* Whether the member stands where it must not: a virtual base, which has no place at
 * all, is last. */
static bool is_behind(const struct hl_member *a, const struct hl_member *b)
{
	if ((a->flags | b->flags) & HL_MEMBER_VIRTUAL)
		return a->flags & HL_MEMBER_VIRTUAL && !(b->flags & HL_MEMBER_VIRTUAL);
	return a->bit_offset > b->bit_offset;
}

static void merge(struct hl_member *to, const struct hl_member *a, uint32_t n_a,
		  const struct hl_member *b, uint32_t n_b)
{
	while (n_a || n_b) {
		if (!n_b || (n_a && !is_behind(a, b))) {
			*to++ = *a++;
			n_a--;
		} else {
			*to++ = *b++;
			n_b--;
		}
	}
}

/* A base class or member that begins before the one ahead of it would confuse every
 * reader: order by place, stable.  Variants stay with what they are variants of.
 * spare: room for as many members. */
static void sort_members(struct hl_member *member, uint32_t n, struct hl_member *spare)
{
	bool ordered = true;

	for (uint32_t i = 0; i < n; i++) {
		if (member[i].flags & (HL_MEMBER_VARIANT | HL_MEMBER_DISCRIMINANT))
			return;
		ordered = ordered && (!i || !is_behind(&member[i - 1], &member[i]));
	}
	for (uint32_t step = 1; !ordered && step < n; step *= 2) {
		for (uint32_t i = 0; i < n; i += 2 * step) {
			uint32_t n_a = n - i < step ? n - i : step;
			uint32_t n_b = n - i - n_a < step ? n - i - n_a : step;

			merge(spare + i, member + i, n_a, member + i + n_a, n_b);
		}
		memcpy(member, spare, n * sizeof(*member));
	}
}

/* Sorts the members that are on the scratch stack from start on. */
static void sort_scratch(struct hl_dwarf_reader *r, uint32_t start)
{
	uint32_t n = r->n_scratch - start;

	/* As much room again behind them. */
	for (uint32_t i = 0; i < n && !r->rc; i++)
		push(r);
	if (!r->rc)
		sort_members(r->scratch + start, n, r->scratch + start + n);
	r->n_scratch = start + n;
}

static hl_type_id read_aggregate(struct hl_dwarf_reader *r, const struct facts *f, int depth)
{
	uint32_t start = r->n_scratch;
	enum hl_language language = language_of(r, f->die);
	struct hl_type type = {
		.name = f->name,
		.kind = (uint8_t)aggregate_kind(dwarf_tag(f->die)),
		.size = bounded_size(r, f->size),
		.align_log2 = align_log2(f->alignment),
		.language = (uint8_t)language,
		.scope = scope_of(r, f, language),
		.file = file_of(r, f),
		.line = bounded_line(f->line),
	};

	read_members(r, f->die, depth);
	type.count = r->n_scratch - start;
	if (type.count > HL_MAX_MEMBERS)
		failed(r, -E2BIG, "a struct has more members than the bound");
	/* Rust's compiler reorders fields and lists them as the source has them. */
	if (!r->rc && type.kind != HL_UNION)
		sort_scratch(r, start);
	hl_type_id id = r->rc ? 0 : add(r, &type, r->scratch + start);

	r->n_scratch = start;
	return id;
}

static hl_type_id read_opaque(struct hl_dwarf_reader *r, const struct facts *f)
{
	struct hl_type type = {
		.name = f->name,
		.kind = HL_OPAQUE,
		.size = bounded_size(r, f->size),
		.align_log2 = align_log2(f->alignment),
	};

	if (dwarf_tag(f->die) == DW_TAG_unspecified_type && !f->has_size && f->name &&
	    strstr(f->name, "nullptr"))
		type.size = r->address_size;
	return add(r, &type, NULL);
}

/* A definition that is only declared here: in a type unit, or by name alone. */
static hl_type_id read_declaration(struct hl_dwarf_reader *r, const struct facts *f, int depth)
{
	Dwarf_Attribute signature = f->signature;
	Dwarf_Die die;

	if (f->has_signature && dwarf_formref_die(&signature, &die) && die.addr != f->die->addr)
		return read_type(r, &die, depth + 1);
	if (f->has_signature && r->by_signature)
		return elsewhere(r, &signature, false, depth);
	return declared(r, dwarf_tag(f->die), f);
}

static hl_type_id read_fresh(struct hl_dwarf_reader *r, Dwarf_Die *die, int depth)
{
	int tag = dwarf_tag(die);
	struct facts f;

	take_facts(&f, die);
	switch (tag) {
	case DW_TAG_base_type:
		return read_base(r, &f);
	case DW_TAG_pointer_type:
		return read_pointer(r, &f, HL_POINTER, depth);
	case DW_TAG_reference_type:
		return read_pointer(r, &f, HL_LVALUE_REF, depth);
	case DW_TAG_rvalue_reference_type:
		return read_pointer(r, &f, HL_RVALUE_REF, depth);
	case DW_TAG_ptr_to_member_type:
		return read_pointer(r, &f, HL_MEMBER_POINTER, depth);
	case DW_TAG_typedef:
	case DW_TAG_template_alias:
		return read_alias(r, &f, HL_TYPEDEF, depth);
	case DW_TAG_const_type:
	case DW_TAG_immutable_type:
		return read_alias(r, &f, HL_CONST, depth);
	case DW_TAG_volatile_type:
		return read_alias(r, &f, HL_VOLATILE, depth);
	case DW_TAG_restrict_type:
		return read_alias(r, &f, HL_RESTRICT, depth);
	case DW_TAG_atomic_type:
		return read_alias(r, &f, HL_ATOMIC, depth);
	case DW_TAG_packed_type:
	case DW_TAG_shared_type:
	case DW_TAG_subrange_type:
		if (f.has_type)
			return held(r, &f.type, true, depth);
		return read_opaque(r, &f);
	case DW_TAG_array_type:
		return read_array(r, &f, depth);
	case DW_TAG_subroutine_type:
		return read_function(r, &f, depth);
	case DW_TAG_enumeration_type:
		return read_enum(r, &f, depth);
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_interface_type:
	case DW_TAG_union_type:
		if (f.declaration || (!f.has_size && f.has_signature))
			return read_declaration(r, &f, depth);
		return read_aggregate(r, &f, depth);
	case DW_TAG_unspecified_type:
	case DW_TAG_string_type:
	case DW_TAG_set_type:
	case DW_TAG_file_type:
	case DW_TAG_coarray_type:
	case DW_TAG_dynamic_type:
		return read_opaque(r, &f);
	default:
		hl_store_skip(r->store, "a kind of type that is not known here");
		return read_opaque(r, &f);
	}
}

static hl_type_id read_type(struct hl_dwarf_reader *r, Dwarf_Die *die, int depth)
{
	if (r->rc)
		return 0;
	if (depth > HL_MAX_DEPTH) {
		hl_store_skip(r->store, "types nested too deeply");
		return 0;
	}
	int64_t known = hl_die_map_get(&r->types, die->addr);

	if (known == IN_PROGRESS) {
		hl_store_skip(r->store, "a type that contains itself");
		return 0;
	}
	if (known >= 0)
		return (hl_type_id)known;
	if (hl_die_map_set(&r->types, die->addr, IN_PROGRESS)) {
		failed(r, -ENOMEM, NULL);
		return 0;
	}
	hl_type_id id = read_fresh(r, die, depth);

	if (hl_die_map_set(&r->types, die->addr, id))
		failed(r, -ENOMEM, NULL);
	return id;
}

/* ---- The unit's tree ---- */

struct walk {
	struct hl_dwarf_reader *reader;
	uint64_t order; /* of the next definition */
	bool shared; /* the unit is of a file that several programs share */
};

/* A typedef is kept when it names a struct, class or union. */
static bool names_aggregate(Dwarf_Die *die)
{
	Dwarf_Die at = *die;

	for (int i = 0; i < HL_MAX_DEPTH; i++) {
		Dwarf_Attribute attr;
		int tag = dwarf_tag(&at);

		if (is_definition_tag(tag))
			return true;
		if (tag != DW_TAG_typedef && tag != DW_TAG_const_type &&
		    tag != DW_TAG_volatile_type && tag != DW_TAG_atomic_type)
			return false;
		if (!dwarf_attr(&at, DW_AT_type, &attr))
			return false;
		/* Only structs, classes, unions and enums have signatures. */
		if (!dwarf_formref_die(&attr, &at))
			return dwarf_whatform(&attr) == DW_FORM_ref_sig8;
	}
	return false;
}

static void read_definition(struct walk *w, Dwarf_Die *die)
{
	struct hl_dwarf_reader *r = w->reader;
	hl_type_id id = read_type(r, die, 0);
	const struct hl_type *type = &r->store->type[id];

	if (type->kind == HL_TYPEDEF || (hl_kind_is_aggregate(type->kind) && type->name &&
					 !(type->flags & HL_TYPE_DECLARATION)))
		hl_store_defined(r->store, id, w->order++);
}

/* The DIE of the type behind aliases and, if asked, behind dimensions. */
static bool behind(Dwarf_Die *die, bool arrays)
{
	for (int i = 0; i < HL_MAX_DEPTH; i++) {
		Dwarf_Attribute attr;
		int tag = dwarf_tag(die);

		if (tag != DW_TAG_typedef && tag != DW_TAG_const_type &&
		    tag != DW_TAG_volatile_type && !(arrays && tag == DW_TAG_array_type))
			return true;
		if (!dwarf_attr(die, DW_AT_type, &attr) || !dwarf_formref_die(&attr, die))
			return false;
	}
	return false;
}

/* An array, but no string. */
static bool is_table(Dwarf_Die *type)
{
	Dwarf_Die at = *type;
	Dwarf_Attribute attr;
	Dwarf_Word encoding;

	if (!behind(&at, false) || dwarf_tag(&at) != DW_TAG_array_type || !behind(&at, true))
		return false;
	if (dwarf_tag(&at) != DW_TAG_base_type ||
	    dwarf_formudata(dwarf_attr(&at, DW_AT_encoding, &attr), &encoding))
		return true;
	return encoding != DW_ATE_signed_char && encoding != DW_ATE_unsigned_char &&
	       encoding != DW_ATE_UTF;
}

/* One address for the whole program: not on a stack, not a thread's own. */
static bool has_fixed_address(Dwarf_Attribute *location)
{
	Dwarf_Op *op;
	size_t n;

	return !dwarf_getlocation(location, &op, &n) && n == 1 &&
	       (op[0].atom == DW_OP_addr || op[0].atom == DW_OP_addrx ||
		op[0].atom == DW_OP_GNU_addr_index);
}

/* Where a variable is: false when that is nowhere fixed. */
static bool find_address(struct hl_variable *variable, Dwarf_Attribute *location)
{
	Dwarf_Attribute address;
	Dwarf_Op *op;
	size_t n;

	if (dwarf_getlocation(location, &op, &n))
		return false;
	if (n == 2 && (op[1].atom == DW_OP_GNU_push_tls_address || op[1].atom == DW_OP_form_tls_address)) {
		variable->tls = true;
		variable->address = op[0].number;
		return op[0].atom == DW_OP_const8u || op[0].atom == DW_OP_const4u ||
		       op[0].atom == DW_OP_addr || op[0].atom == DW_OP_constu;
	}
	if (n != 1)
		return false;
	variable->address = op[0].number;
	return op[0].atom == DW_OP_addr ||
	       (!dwarf_getlocation_attr(location, op, &address) &&
		!dwarf_formaddr(&address, &variable->address));
}

/* Arrays, and what was aligned by hand: what rulers look at; or all there are. */
static void read_variable(struct walk *w, Dwarf_Die *die)
{
	struct hl_dwarf_reader *r = w->reader;
	Dwarf_Attribute location;
	struct facts f;
	Dwarf_Die declaration, type;

	take_facts(&f, die);
	location = f.location;
	if (!f.has_location)
		return;
	/* A member of a class is defined outside it, and described inside. */
	if (f.has_origin && !f.has_type && dwarf_formref_die(&f.origin, &declaration))
		take_facts(&f, &declaration);
	if (!f.name || !f.has_type || !dwarf_formref_die(&f.type, &type) ||
	    (!r->all_variables &&
	     ((f.alignment <= 16 && !is_table(&type)) || !has_fixed_address(&location))))
		return;
	struct hl_variable variable = { 0 };

	if (r->all_variables && !find_address(&variable, &location))
		return;
	variable = (struct hl_variable){
		.tls = variable.tls,
		.address = variable.address,
		.name = f.name,
		.type = read_type(r, &type, 0),
		.file = file_of(r, &f),
		.line = bounded_line(f.line),
		.align_log2 = align_log2(f.alignment),
	};
	int rc = r->rc ? 0 : hl_store_variable(r->store, &variable, w->order++);

	if (rc)
		failed(r, rc, NULL);
}

/* dwz moves what several files share into another file: those of its units that ours
 * import are noted, to be read once, when all of ours have been. */
static void import_unit(struct walk *w, Dwarf_Die *die)
{
	struct hl_dwarf_reader *r = w->reader;
	struct facts f;
	Dwarf_Die unit;

	take_facts(&f, die);
	if (!f.has_import || !dwarf_formref_die(&f.import, &unit) ||
	    (!w->shared && dwarf_cu_getdwarf(unit.cu) == dwarf_cu_getdwarf(die->cu)) ||
	    hl_die_map_get(&r->imported, unit.addr) >= 0)
		return; /* our own partial units are read as units */
	if (r->n_imports == r->imports_room) {
		uint32_t room = r->imports_room ? r->imports_room * 2 : 64;
		struct hl_import *more = realloc(r->imports, room * sizeof(*more));

		if (!more) {
			failed(r, -ENOMEM, NULL);
			return;
		}
		r->imports = more;
		r->imports_room = room;
	}
	r->imports[r->n_imports++] = (struct hl_import){
		.order = w->order,
		.offset = dwarf_dieoffset(&unit),
		.module = r->module,
	};
	if (hl_die_map_set(&r->imported, unit.addr, 0))
		failed(r, -ENOMEM, NULL);
}

static void walk(struct walk *w, Dwarf_Die *parent, bool in_function, int depth)
{
	struct hl_dwarf_reader *r = w->reader;
	Dwarf_Die die;

	if (depth > MAX_TREE) {
		hl_store_skip(r->store, "scopes nested too deeply");
		return;
	}
	if (dwarf_child(parent, &die))
		return;
	do {
		int tag = dwarf_tag(&die);

		switch (tag) {
		case DW_TAG_structure_type:
		case DW_TAG_class_type:
		case DW_TAG_interface_type:
		case DW_TAG_union_type:
			read_definition(w, &die);
			walk(w, &die, false, depth + 1);
			break;
		case DW_TAG_typedef:
			if (names_aggregate(&die))
				read_definition(w, &die);
			break;
		case DW_TAG_namespace:
		case DW_TAG_module:
			walk(w, &die, in_function, depth + 1);
			break;
		case DW_TAG_subprogram:
		case DW_TAG_lexical_block:
			walk(w, &die, true, depth + 1);
			break;
		case DW_TAG_variable:
			read_variable(w, &die);
			break;
		case DW_TAG_imported_unit:
			import_unit(w, &die);
			break;
		default:
			break;
		}
	} while (!r->rc && !dwarf_siblingof(&die, &die));
}

/* Units that refer to each other (link-time optimization) need the scopes of those
 * before; but not without a bound. */
static void forget_scopes(struct hl_dwarf_reader *r)
{
	if (r->scopes.used < MOST_SCOPES)
		return;
	hl_die_map_clear(&r->scopes);
	hl_die_map_clear(&r->indexed);
}

static void forget_files(struct hl_dwarf_reader *r)
{
	for (uint32_t i = 0; i < r->n_files; i++)
		free(r->files[i].file);
	r->n_files = 0;
}

int hl_dwarf_reader_init(struct hl_dwarf_reader *reader, struct hl_store *store)
{
	*reader = (struct hl_dwarf_reader){ .store = store, .scratch_room = 256 };
	reader->scratch = malloc(reader->scratch_room * sizeof(*reader->scratch));
	if (!reader->scratch || hl_die_map_init(&reader->types) ||
	    hl_die_map_init(&reader->scopes) || hl_die_map_init(&reader->indexed) ||
	    hl_die_map_init(&reader->imported) || hl_die_map_init(&reader->lines.known)) {
		hl_dwarf_reader_free(reader);
		return -ENOMEM;
	}
	return 0;
}

void hl_dwarf_reader_free(struct hl_dwarf_reader *reader)
{
	forget_files(reader);
	free(reader->files);
	free(reader->scratch);
	free(reader->imports);
	hl_die_map_free(&reader->types);
	hl_die_map_free(&reader->scopes);
	hl_die_map_free(&reader->indexed);
	hl_die_map_free(&reader->imported);
	hl_die_map_free(&reader->lines.known);
}

hl_type_id hl_dwarf_read_type(struct hl_dwarf_reader *reader, Dwarf_Die *die, bool by_name,
			      int depth)
{
	return by_name ? refer(reader, die, depth) : read_type(reader, die, depth);
}

void hl_dwarf_forget(struct hl_dwarf_reader *reader, Dwarf *dwarf)
{
	for (uint32_t i = 0; i < reader->n_files;) {
		struct hl_unit_files *files = &reader->files[i];

		if (dwarf_cu_getdwarf(files->cu) == dwarf) {
			free(files->file);
			*files = reader->files[--reader->n_files];
		} else {
			i++;
		}
	}
	reader->language_unit = NULL;
	reader->lines.dwarf = NULL;
}

int hl_dwarf_read_unit(struct hl_dwarf_reader *reader, Dwarf_Die *unit, uint64_t order, bool shared)
{
	struct walk w = { .reader = reader, .order = order, .shared = shared };
	uint8_t address_size = 0;
	Dwarf_Half version;
	Dwarf_Die cu;

	/* libdw goes over units whose kind it does not know, but shows nothing of them. */
	if (!unit->cu) {
		hl_store_skip(reader->store, "a unit of a kind that is not known here");
		return 0;
	}
	reader->store->now = w.order;
	/* DW_AT_alignment and DW_TAG_atomic_type came with version 5; before it, gcc
	 * tells the first when it need not be strict, nobody the second. */
	if (dwarf_cu_info(unit->cu, &version, NULL, NULL, NULL, NULL, NULL, NULL) || version < 5)
		reader->store->align_untold = true;
	if (dwarf_diecu(unit, &cu, &address_size, NULL))
		reader->address_size = address_size;
	walk(&w, unit, false, 0);
	hl_die_map_clear(&reader->types);
	forget_scopes(reader);
	forget_files(reader);
	return reader->rc;
}
