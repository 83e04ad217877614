// SPDX-License-Identifier: MIT
/*
 * The store of types: each distinct type once.
 */
#include "internal.h"

#include <errno.h>
#include <string.h>

#define CHUNK 65536u

/* Makes room for one more element in an array that grows by half. */
static int grow(void *array, uint32_t *room, uint32_t n, size_t size)
{
	if (n < *room)
		return 0;
	if (*room > UINT32_MAX / 2)
		return -E2BIG;

	uint32_t more = *room ? *room + *room / 2 : 64;
	void *at = realloc(*(void **)array, more * size);

	if (!at)
		return -ENOMEM;
	*(void **)array = at;
	*room = more;
	return 0;
}

static uint32_t mix(uint32_t hash, uint64_t value)
{
	uint64_t product = (hash ^ value) * 0x9e3779b97f4a7c15u;

	return (uint32_t)(product >> 32) ^ (uint32_t)product;
}

static uint32_t mix_string(uint32_t hash, const char *string, size_t n)
{
	while (n >= 8) {
		uint64_t word;

		memcpy(&word, string, 8);
		hash = mix(hash, word);
		string += 8;
		n -= 8;
	}
	uint64_t rest = n;

	for (size_t i = 0; i < n; i++)
		rest = rest << 8 | (unsigned char)string[i];
	return mix(hash, rest);
}

/* Of a name; a damaged file can give each of its members one of a megabyte. */
#define MOST_HASHED 256

static uint32_t mix_name(uint32_t hash, const char *name)
{
	return name ? mix_string(hash, name, strnlen(name, MOST_HASHED)) : mix(hash, 1);
}

static uint32_t hash_of(const struct hl_type *type, const struct hl_member *members)
{
	uint32_t hash = mix_name(type->kind, type->name);

	hash = mix(hash, type->size);
	hash = mix(hash, (uint64_t)type->target << 32 | type->count);
	hash = mix(hash, (uint64_t)type->file << 32 | type->line);
	hash = mix(hash, (uint64_t)type->scope << 16 | type->flags << 8 | type->align_log2);
	for (uint32_t i = 0; i < type->count; i++) {
		hash = mix_name(hash, members[i].name);
		hash = mix(hash, members[i].bit_offset);
		hash = mix(hash, (uint64_t)members[i].type << 16 | members[i].bit_size);
	}
	return hash;
}

static bool same_name(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool same_type(const struct hl_store *store, const struct hl_type *a,
		      const struct hl_member *members, const struct hl_type *b)
{
	if (a->kind != b->kind || a->size != b->size || a->target != b->target ||
	    a->count != b->count || a->file != b->file || a->line != b->line ||
	    a->scope != b->scope || a->flags != b->flags || a->align_log2 != b->align_log2 ||
	    a->language != b->language || !same_name(a->name, b->name))
		return false;
	for (uint32_t i = 0; i < a->count; i++) {
		const struct hl_member *m = &members[i], *n = &store->member[b->first + i];

		if (m->bit_offset != n->bit_offset || m->type != n->type ||
		    m->bit_size != n->bit_size || m->align_log2 != n->align_log2 ||
		    m->flags != n->flags || !same_name(m->name, n->name))
			return false;
	}
	return true;
}

/* Doubles a table of ids by hash before it is three quarters full. */
static int widen(uint32_t **bucket, uint32_t *buckets, uint32_t n, const uint32_t *hash)
{
	if (n < *buckets - *buckets / 4)
		return 0;
	if (*buckets > UINT32_MAX / 2)
		return -E2BIG;

	uint32_t wide = *buckets * 2;
	uint32_t *table = calloc(wide, sizeof(*table));

	if (!table)
		return -ENOMEM;
	for (uint32_t id = 1; id < n; id++) {
		uint32_t at = hash[id] & (wide - 1);

		while (table[at])
			at = (at + 1) & (wide - 1);
		table[at] = id;
	}
	free(*bucket);
	*bucket = table;
	*buckets = wide;
	return 0;
}

static int grow_types(struct hl_store *store)
{
	uint32_t room = store->types_room;
	int rc = grow(&store->type, &store->types_room, store->n_types, sizeof(*store->type));

	if (rc || room == store->types_room)
		return rc;
	/* The arrays beside it have the same room. */
	uint64_t *order = realloc(store->order, store->types_room * sizeof(*order));

	if (order)
		store->order = order;
	uint32_t *hash = realloc(store->hash, store->types_room * sizeof(*hash));

	if (hash)
		store->hash = hash;
	if (order && hash)
		return 0;
	store->types_room = room;
	return -ENOMEM;
}

static int append(struct hl_store *store, const struct hl_type *type,
		  const struct hl_member *members, uint32_t hash)
{
	int rc = grow_types(store);

	if (rc)
		return rc;
	if (type->count > UINT32_MAX / 2 - store->n_members)
		return -E2BIG;
	while (store->n_members + type->count > store->members_room) {
		rc = grow(&store->member, &store->members_room, store->members_room,
			  sizeof(*store->member));
		if (rc)
			return rc;
	}
	struct hl_type *at = &store->type[store->n_types];

	*at = *type;
	at->first = store->n_members;
	if (type->count)
		memcpy(&store->member[store->n_members], members, type->count * sizeof(*members));
	store->n_members += type->count;
	store->order[store->n_types] = HL_NO_ORDER;
	store->hash[store->n_types] = hash;
	store->n_types++;
	return 0;
}

int64_t hl_store_type(struct hl_store *store, const struct hl_type *type,
		      const struct hl_member *members)
{
	int rc = widen(&store->bucket, &store->buckets, store->n_types, store->hash);

	if (rc)
		return rc;

	uint32_t hash = hash_of(type, members);
	uint32_t at = hash & (store->buckets - 1);

	for (; store->bucket[at]; at = (at + 1) & (store->buckets - 1)) {
		hl_type_id id = store->bucket[at];

		if (store->hash[id] == hash && same_type(store, type, members, &store->type[id]))
			return id;
	}
	rc = append(store, type, members, hash);
	if (rc)
		return rc;
	store->bucket[at] = store->n_types - 1;
	return store->n_types - 1;
}

void hl_store_defined(struct hl_store *store, hl_type_id id, uint64_t order)
{
	if (order < store->order[id])
		store->order[id] = order;
}

int hl_store_variable(struct hl_store *store, const struct hl_variable *variable, uint64_t order)
{
	int rc = grow(&store->placed, &store->variables_room, store->n_variables,
		      sizeof(*store->placed));

	if (rc)
		return rc;
	store->placed[store->n_variables++] = (struct hl_placed_variable){ order, *variable };
	return 0;
}

static int compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* Those that several units saw in the same header come together, the first ahead. */
static int by_declaration(const void *a, const void *b)
{
	const struct hl_placed_variable *x = a, *y = b;
	const struct hl_variable *v = &x->variable, *w = &y->variable;
	int by = compare(v->file, w->file);

	if (!by)
		by = compare(v->line, w->line);
	if (!by)
		by = compare(v->type, w->type);
	if (!by)
		by = compare(v->align_log2, w->align_log2);
	if (!by)
		by = compare(v->address, w->address);
	if (!by)
		by = strcmp(v->name, w->name);
	return by ? by : compare(x->order, y->order);
}

static bool same_variable(const struct hl_variable *v, const struct hl_variable *w)
{
	return v->file == w->file && v->line == w->line && v->type == w->type &&
	       v->align_log2 == w->align_log2 && v->address == w->address && !strcmp(v->name, w->name);
}

static int by_place(const void *a, const void *b)
{
	const struct hl_placed_variable *x = a, *y = b;

	return compare(x->order, y->order);
}

int hl_store_sort_variables(struct hl_store *store)
{
	struct hl_placed_variable *placed = store->placed;
	uint32_t n = 0;

	store->variable = malloc((store->n_variables + 1ul) * sizeof(*store->variable));
	if (!store->variable)
		return -ENOMEM;
	if (store->n_variables)
		qsort(placed, store->n_variables, sizeof(*placed), by_declaration);
	for (uint32_t i = 0; i < store->n_variables; i++)
		if (!i || !same_variable(&placed[i].variable, &placed[i - 1].variable))
			placed[n++] = placed[i];
	store->n_variables = n;
	if (n)
		qsort(placed, n, sizeof(*placed), by_place);
	for (uint32_t i = 0; i < n; i++)
		store->variable[i] = placed[i].variable;
	free(placed);
	store->placed = NULL;
	return 0;
}

const char *hl_store_string(struct hl_store *store, const char *bytes, size_t n)
{
	/* A string longer than a chunk gets one of its own size. */
	size_t need = n + 1;

	if (!store->n_chunks || store->chunk_used + need > CHUNK) {
		if (grow(&store->chunk, &store->chunks_room, store->n_chunks, sizeof(char *)))
			return NULL;
		char *chunk = malloc(need > CHUNK ? need : CHUNK);

		if (!chunk)
			return NULL;
		store->chunk[store->n_chunks++] = chunk;
		store->chunk_used = 0;
	}
	char *at = store->chunk[store->n_chunks - 1] + store->chunk_used;

	memcpy(at, bytes, n);
	at[n] = '\0';
	store->chunk_used += need;
	return at;
}

static uint32_t hash_string(const char *string, size_t n)
{
	return mix_string(0, string, n);
}

static int widen_files(struct hl_store *store)
{
	if (store->n_files < store->file_buckets - store->file_buckets / 4)
		return 0;

	uint32_t *hash = malloc(store->n_files * sizeof(*hash));

	if (!hash)
		return -ENOMEM;
	for (uint32_t i = 0; i < store->n_files; i++)
		hash[i] = hash_string(store->file[i], strlen(store->file[i]));
	int rc = widen(&store->file_bucket, &store->file_buckets, store->n_files, hash);

	free(hash);
	return rc;
}

int64_t hl_store_file(struct hl_store *store, const char *name, size_t n)
{
	if (!n)
		return 0;

	int rc = widen_files(store);

	if (rc)
		return rc;
	uint32_t at = hash_string(name, n) & (store->file_buckets - 1);

	for (; store->file_bucket[at]; at = (at + 1) & (store->file_buckets - 1)) {
		const char *file = store->file[store->file_bucket[at]];

		if (!strncmp(file, name, n) && !file[n])
			return store->file_bucket[at];
	}
	rc = grow(&store->file, &store->files_room, store->n_files, sizeof(char *));
	if (rc)
		return rc;
	const char *copy = hl_store_string(store, name, n);

	if (!copy)
		return -ENOMEM;
	store->file[store->n_files] = copy;
	store->file_bucket[at] = store->n_files;
	return store->n_files++;
}

void hl_store_skip(struct hl_store *store, const char *what)
{
	if (!store->n_skipped++) {
		store->skipped = what;
		store->skipped_order = store->now;
	}
}

int hl_store_init(struct hl_store *store)
{
	static const struct hl_type nothing = { .kind = HL_VOID };

	*store = (struct hl_store){ .buckets = 1024, .file_buckets = 64 };
	store->bucket = calloc(store->buckets, sizeof(*store->bucket));
	store->file_bucket = calloc(store->file_buckets, sizeof(*store->file_bucket));
	if (!store->bucket || !store->file_bucket || append(store, &nothing, NULL, 0) ||
	    grow(&store->file, &store->files_room, 0, sizeof(char *))) {
		hl_store_free(store);
		return -ENOMEM;
	}
	store->file[store->n_files++] = "";
	return 0;
}

void hl_store_free(struct hl_store *store)
{
	for (uint32_t i = 0; i < store->n_chunks; i++)
		free(store->chunk[i]);
	free(store->chunk);
	free(store->type);
	free(store->order);
	free(store->hash);
	free(store->member);
	free(store->bucket);
	free(store->file);
	free(store->file_bucket);
	free(store->placed);
	free(store->variable);
	*store = (struct hl_store){ 0 };
}

/* Frees all but the strings. */
static void empty(struct hl_store *store)
{
	struct hl_store strings = {
		.chunk = store->chunk,
		.n_chunks = store->n_chunks,
		.chunks_room = store->chunks_room,
		.chunk_used = store->chunk_used,
	};

	store->chunk = NULL;
	store->n_chunks = 0;
	hl_store_free(store);
	*store = strings;
}

/* Pours the types; id[] receives for each of them its id in `into`. */
static int pour_types(struct hl_store *into, struct hl_store *from, const uint32_t *file,
		      uint32_t *id)
{
	for (uint32_t i = 1; i < from->n_types; i++) {
		struct hl_type type = from->type[i];
		struct hl_member *members = &from->member[type.first];

		type.target = id[type.target];
		type.file = file[type.file];
		type.scope = file[type.scope];
		for (uint32_t m = 0; m < type.count; m++)
			members[m].type = id[members[m].type];
		int64_t poured = hl_store_type(into, &type, members);

		if (poured < 0)
			return (int)poured;
		id[i] = (uint32_t)poured;
		hl_store_defined(into, id[i], from->order[i]);
	}
	return 0;
}

static int pour_variables(struct hl_store *into, const struct hl_store *from, const uint32_t *file,
			  const uint32_t *id)
{
	for (uint32_t i = 0; i < from->n_variables; i++) {
		struct hl_variable variable = from->placed[i].variable;

		variable.type = id[variable.type];
		variable.file = file[variable.file];
		int rc = hl_store_variable(into, &variable, from->placed[i].order);

		if (rc)
			return rc;
	}
	return 0;
}

int hl_store_pour(struct hl_store *into, struct hl_store *from)
{
	uint32_t *file = calloc(from->n_files, sizeof(*file));
	uint32_t *id = calloc(from->n_types, sizeof(*id));
	int rc = file && id ? 0 : -ENOMEM;

	for (uint32_t i = 1; !rc && i < from->n_files; i++) {
		int64_t poured = hl_store_file(into, from->file[i], strlen(from->file[i]));

		if (poured < 0)
			rc = (int)poured;
		else
			file[i] = (uint32_t)poured;
	}
	if (!rc)
		rc = pour_types(into, from, file, id);
	if (!rc)
		rc = pour_variables(into, from, file, id);
	if (from->n_skipped) {
		if (!into->n_skipped || from->skipped_order < into->skipped_order) {
			into->skipped = from->skipped;
			into->skipped_order = from->skipped_order;
		}
		into->n_skipped += from->n_skipped;
	}
	into->align_untold |= from->align_untold;
	free(file);
	free(id);
	empty(from);
	return rc;
}
