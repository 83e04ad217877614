// SPDX-License-Identifier: MIT
/*
 * BTF into a store: one record a BTF type, in the order of their ids, for the
 * kinds that layouts are made of; functions, variables and sections are passed
 * over.  BTF is free of duplicates already, so nothing is looked up.
 *
 * libbpf checks the frame of the file; what it does not check (ids and offsets
 * inside the records) is checked here.
 */
#include "internal.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Kinds that the oldest supported libbpf does not name. */
#ifndef BTF_KIND_ENUM64
#define BTF_KIND_ENUM64 19
#endif

#define RUNNING_KERNEL "/sys/kernel/btf/vmlinux"

struct btf_source {
	struct btf *btf, *base;
};

static void close_source(void *arg)
{
	struct btf_source *source = arg;

	btf__free(source->btf);
	btf__free(source->base);
	free(source);
}

static int quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	return 0;
}

/* ---- Opening ---- */

/* Reads a raw BTF file through a map of it, which saves a copy of the kernel's five
 * megabytes; where the file cannot be mapped (sysfs before Linux 6.16), by libbpf. */
static struct btf *parse_raw(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct btf *btf = NULL;
	struct stat st;

	if (fd < 0)
		return NULL;

	bool sized = !fstat(fd, &st) && st.st_size > 0 && st.st_size <= UINT32_MAX;
	size_t bytes = sized ? (size_t)st.st_size : 1;
	void *map = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);

	close(fd);
	if (map == MAP_FAILED)
		return btf__parse_raw(path);
	if (sized)
		btf = btf__new(map, (uint32_t)bytes);
	munmap(map, bytes);
	return btf;
}

static struct btf *parse(const char *path, bool raw, struct btf *base)
{
	if (!raw)
		return btf__parse_elf_split(path, base);
	return base ? btf__parse_raw_split(path, base) : parse_raw(path);
}

/* Whether strings or ids point past the file's own: it is split off a base. */
static bool looks_split(const struct btf *btf)
{
	uint32_t n = btf__type_cnt(btf);

	for (uint32_t id = 1; id < n; id++) {
		const struct btf_type *t = btf__type_by_id(btf, id);

		if (t->name_off && !btf__str_by_offset(btf, t->name_off))
			return true;
		if ((btf_is_ptr(t) || btf_is_mod(t) || btf_is_typedef(t)) && t->type >= n)
			return true;
	}
	return false;
}

static int open_btf(struct btf_source *source, const char *path, bool raw,
		    const struct hl_types_options *options, struct hl_error *err)
{
	const char *base = options->btf_base;

	if (!base) {
		source->btf = parse(path, raw, NULL);
		if (source->btf && !looks_split(source->btf))
			return 0;
		/* The BTF of a module refers to the kernel's. */
		btf__free(source->btf);
		source->btf = NULL;
		base = access(RUNNING_KERNEL, R_OK) ? NULL : RUNNING_KERNEL;
	}
	if (base) {
		source->base = parse_raw(base);
		if (!source->base)
			source->base = btf__parse_elf(base, NULL);
		if (!source->base && options->btf_base)
			return hl_fail(err, -EBADMSG, "%s: cannot be read as the base BTF: %s",
				       base, strerror(errno));
		source->btf = parse(path, raw, source->base);
	}
	if (!source->btf)
		return hl_fail(err, errno == ENOMEM ? -ENOMEM : -EBADMSG,
			       "%s: damaged BTF, or of a kind newer than this libbpf, or a "
			       "module's that needs --btf-base",
			       path);
	return 0;
}

/* ---- Records ---- */

struct btf_reader {
	struct hl_types_whole *whole;
	const struct btf *btf;
	uint32_t n, first_own; /* ids below first_own are the base's: read, not reported */
	uint32_t *id; /* BTF id to type id; 0: void or left out */
	struct hl_error *err;
	const char *path;
};

static bool is_kept(const struct btf_type *t)
{
	switch (btf_kind(t)) {
	case BTF_KIND_INT:
	case BTF_KIND_PTR:
	case BTF_KIND_ARRAY:
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
	case BTF_KIND_ENUM:
	case BTF_KIND_ENUM64:
	case BTF_KIND_FWD:
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_FLOAT:
		return true;
	default:
		return false;
	}
}

static int damaged(const struct btf_reader *r, uint32_t id)
{
	return hl_fail(r->err, -EBADMSG, "%s: damaged BTF: type %u", r->path, id);
}

/* Type tags (__user, __rcu) say nothing about layout: what is behind them. */
static uint32_t behind_tags(const struct btf_reader *r, uint32_t id)
{
	for (int i = 0; id && id < r->n && i < HL_MAX_DEPTH; i++) {
		const struct btf_type *t = btf__type_by_id(r->btf, id);

		if (btf_kind(t) != BTF_KIND_TYPE_TAG)
			return id;
		id = t->type;
	}
	return id < r->n ? id : 0;
}

static hl_type_id target(const struct btf_reader *r, uint32_t id)
{
	return id < r->n ? r->id[behind_tags(r, id)] : 0;
}

/* Numbers the types that are kept; functions only where a pointer leads to one. */
static int number_types(struct btf_reader *r)
{
	uint32_t next = 1, members = 0;

	for (uint32_t id = 1; id < r->n; id++) {
		const struct btf_type *t = btf__type_by_id(r->btf, id);

		if (btf_is_ptr(t) || btf_is_typedef(t) || btf_is_mod(t)) {
			uint32_t to = behind_tags(r, t->type);

			if (to && btf_is_func_proto(btf__type_by_id(r->btf, to)) && !r->id[to])
				r->id[to] = 1;
		}
	}
	for (uint32_t id = 1; id < r->n; id++) {
		const struct btf_type *t = btf__type_by_id(r->btf, id);

		if (!is_kept(t) && !r->id[id])
			continue;
		r->id[id] = next++;
		if (btf_is_composite(t) || btf_is_any_enum(t) || btf_is_func_proto(t)) {
			if (members > HL_MAX_MEMBERS * 64u)
				return hl_fail(r->err, -E2BIG, "%s: too many members in all",
					       r->path);
			members += btf_vlen(t);
		}
	}
	/* Each type is added once and none is looked up: all the room at once. */
	struct hl_store *store = &r->whole->store;

	store->type = calloc(next, sizeof(*store->type));
	store->member = calloc(members ? members : 1, sizeof(*store->member));
	store->file = malloc(sizeof(*store->file));
	if (!store->type || !store->member || !store->file)
		return hl_fail_nomem(r->err);
	store->file[store->n_files++] = "";
	store->n_types = next;
	return 0;
}

static const char *name_of(const struct btf_reader *r, uint32_t offset)
{
	const char *name = offset ? btf__str_by_offset(r->btf, offset) : NULL;

	return name && *name ? name : NULL;
}

static struct hl_member *next_member(struct btf_reader *r)
{
	return &r->whole->store.member[r->whole->store.n_members++];
}

static int take_members(struct btf_reader *r, uint32_t id, const struct btf_type *t)
{
	const struct btf_member *m = btf_members(t);

	for (uint32_t i = 0; i < btf_vlen(t); i++, m++) {
		struct hl_member *member = next_member(r);
		uint32_t type = behind_tags(r, m->type);

		if (m->type >= r->n)
			return damaged(r, id);
		member->name = name_of(r, m->name_off);
		member->type = target(r, type);
		member->bit_offset = btf_member_bit_offset(t, i);
		member->bit_size = (uint16_t)btf_member_bitfield_size(t, i);
		if (member->bit_size || btf_kflag(t))
			continue;
		/* Before the flag, an integer type of its own told where the bits are. */
		const struct btf_type *bits = type ? btf__type_by_id(r->btf, type) : NULL;

		if (bits && btf_is_int(bits) &&
		    (btf_int_bits(bits) != bits->size * 8 || btf_int_offset(bits) ||
		     member->bit_offset % 8)) {
			member->bit_offset += btf_int_offset(bits);
			member->bit_size = btf_int_bits(bits);
		}
	}
	return 0;
}

static void take_enumerators(struct btf_reader *r, const struct btf_type *t)
{
	for (uint32_t i = 0; i < btf_vlen(t); i++) {
		struct hl_member *member = next_member(r);

		if (btf_kind(t) == BTF_KIND_ENUM64) {
			member->name = name_of(r, btf_enum64(t)[i].name_off);
			member->bit_offset = btf_enum64_value(&btf_enum64(t)[i]);
		} else {
			member->name = name_of(r, btf_enum(t)[i].name_off);
			member->bit_offset = btf_kflag(t) ? (uint64_t)(int64_t)btf_enum(t)[i].val
							  : (uint32_t)btf_enum(t)[i].val;
		}
	}
}

static void take_parameters(struct btf_reader *r, struct hl_type *type, const struct btf_type *t)
{
	uint32_t n = btf_vlen(t);

	/* A last parameter of no type stands for "...". */
	if (n && !btf_params(t)[n - 1].type) {
		type->flags |= HL_TYPE_VARIADIC;
		n--;
	}
	for (uint32_t i = 0; i < n; i++)
		next_member(r)->type = target(r, btf_params(t)[i].type);
	type->count = n;
}

static void take_int(struct hl_type *type, const struct btf_type *t)
{
	type->kind = HL_BASE;
	type->size = t->size;
	if (btf_int_encoding(t) & BTF_INT_SIGNED)
		type->flags |= HL_TYPE_SIGNED;
	if (btf_int_encoding(t) & BTF_INT_BOOL)
		type->flags |= HL_TYPE_BOOL;
	if (btf_int_encoding(t) & BTF_INT_CHAR || t->size == 1)
		type->flags |= HL_TYPE_CHAR;
}

static enum hl_kind alias_kind(const struct btf_type *t)
{
	switch (btf_kind(t)) {
	case BTF_KIND_TYPEDEF:
		return HL_TYPEDEF;
	case BTF_KIND_VOLATILE:
		return HL_VOLATILE;
	case BTF_KIND_CONST:
		return HL_CONST;
	default:
		return HL_RESTRICT;
	}
}

static int take_type(struct btf_reader *r, uint32_t id, const struct btf_type *t)
{
	struct hl_type *type = &r->whole->store.type[r->id[id]];

	type->name = name_of(r, t->name_off);
	type->first = r->whole->store.n_members;
	type->language = HL_LANG_C;
	switch (btf_kind(t)) {
	case BTF_KIND_INT:
		take_int(type, t);
		break;
	case BTF_KIND_FLOAT:
		type->kind = HL_BASE;
		type->size = t->size;
		type->flags = HL_TYPE_FLOAT;
		break;
	case BTF_KIND_PTR:
		type->kind = HL_POINTER;
		type->size = r->whole->types.address_size;
		type->target = target(r, t->type);
		break;
	case BTF_KIND_ARRAY:
		type->kind = HL_ARRAY;
		type->size = btf_array(t)->nelems;
		type->target = target(r, btf_array(t)->type);
		break;
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		type->kind = btf_is_union(t) ? HL_UNION : HL_STRUCT;
		type->size = t->size;
		type->count = btf_vlen(t);
		return take_members(r, id, t);
	case BTF_KIND_ENUM:
	case BTF_KIND_ENUM64:
		type->kind = HL_ENUM;
		type->size = t->size;
		type->flags = btf_kflag(t) ? HL_TYPE_SIGNED : 0;
		type->count = btf_vlen(t);
		take_enumerators(r, t);
		break;
	case BTF_KIND_FWD:
		type->kind = btf_kflag(t) ? HL_UNION : HL_STRUCT;
		type->flags = HL_TYPE_DECLARATION;
		break;
	case BTF_KIND_FUNC_PROTO:
		type->kind = HL_FUNCTION;
		type->target = target(r, t->type);
		take_parameters(r, type, t);
		break;
	default:
		type->kind = (uint8_t)alias_kind(t);
		type->target = target(r, t->type);
	}
	return 0;
}

/* A zero-length array at the end is a flexible one for all that BTF tells. */
static void mark_flexible(struct hl_store *store)
{
	for (uint32_t id = 1; id < store->n_types; id++) {
		const struct hl_type *type = &store->type[id];

		if ((type->kind != HL_STRUCT) || type->count < 2)
			continue;
		const struct hl_member *last = &store->member[type->first + type->count - 1];
		struct hl_type *array = &store->type[last->type];

		if (array->kind == HL_ARRAY && !array->size && last->bit_offset / 8 == type->size)
			array->flags |= HL_TYPE_FLEXIBLE;
	}
}

/* What is reported: named structs and unions, and typedefs of unnamed ones. */
static int collect_defined(struct btf_reader *r)
{
	struct hl_store *store = &r->whole->store;

	store->order = malloc(store->n_types * sizeof(*store->order));
	if (!store->order)
		return hl_fail_nomem(r->err);
	for (uint32_t i = 0; i < store->n_types; i++)
		store->order[i] = HL_NO_ORDER;
	for (uint32_t id = r->first_own; id < r->n; id++) {
		const struct hl_type *type = &store->type[r->id[id]];

		if (type->kind == HL_TYPEDEF || (hl_kind_is_aggregate(type->kind) && type->name &&
						 !(type->flags & HL_TYPE_DECLARATION)))
			store->order[r->id[id]] = id;
	}
	return 0;
}

static int read_types(struct btf_reader *r)
{
	int rc = number_types(r);

	for (uint32_t id = 1; !rc && id < r->n; id++)
		if (r->id[id])
			rc = take_type(r, id, btf__type_by_id(r->btf, id));
	if (rc)
		return rc;
	mark_flexible(&r->whole->store);
	return collect_defined(r);
}

int hl_btf_read(struct hl_types_whole *whole, const char *path, bool raw,
		const struct hl_types_options *options, struct hl_error *err)
{
	struct btf_source *source = calloc(1, sizeof(*source));

	if (!source)
		return hl_fail_nomem(err);
	whole->source = source;
	whole->close_source = close_source;
	libbpf_set_print(quiet);

	int rc = open_btf(source, path, raw, options, err);

	if (rc)
		return rc;

	struct btf_reader r = {
		.whole = whole,
		.btf = source->btf,
		.err = err,
		.path = path,
		.n = btf__type_cnt(source->btf),
		.first_own = source->base ? btf__type_cnt(source->base) : 1,
	};
	size_t pointer = btf__pointer_size(source->btf);

	whole->types.from_btf = true;
	whole->store.align_untold = true;
	whole->types.address_size = (uint8_t)(pointer ? pointer : sizeof(void *));
	whole->types.max_align_log2 = whole->types.address_size == 8 ? 4 : 2;
	whole->types.big_endian = btf__endianness(source->btf) == BTF_BIG_ENDIAN;
	whole->types.n_units = 1;
	r.id = calloc(r.n, sizeof(*r.id));
	rc = r.id ? read_types(&r) : hl_fail_nomem(err);
	free(r.id);
	return rc;
}
