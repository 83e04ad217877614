// SPDX-License-Identifier: MIT
/*
 * Opening a file of any kind that holds types.
 */
#include "fence.h"
#include "internal.h"

#include <ar.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int hl_fail(struct hl_error *err, int rc, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(err->text, sizeof(err->text), format, args);
	va_end(args);
	return rc;
}

int hl_fail_nomem(struct hl_error *err)
{
	return hl_fail(err, -ENOMEM, "out of memory");
}

enum file_kind { FILE_UNKNOWN, FILE_ELF, FILE_ARCHIVE, FILE_BTF };

static enum file_kind kind_of(const unsigned char *start, size_t n)
{
	if (n >= SELFMAG && !memcmp(start, ELFMAG, SELFMAG))
		return FILE_ELF;
	if (n >= SARMAG && !memcmp(start, ARMAG, SARMAG))
		return FILE_ARCHIVE;
	if (n >= 2 &&
	    ((start[0] == 0x9f && start[1] == 0xeb) || (start[0] == 0xeb && start[1] == 0x9f)))
		return FILE_BTF;
	return FILE_UNKNOWN;
}

static int unknown_file(const char *path, const unsigned char *start, size_t n,
			struct hl_error *err)
{
	if (!n)
		return hl_fail(err, -ENOEXEC, "%s: empty", path);
	if (n >= 8 && !memcmp(start, "!<thin>\n", 8))
		return hl_fail(err, -ENOTSUP, "%s: a thin archive; name its members one by one",
			       path);
	return hl_fail(err, -ENOEXEC,
		       "%s: neither ELF (program, library, object, archive of objects) nor BTF",
		       path);
}

bool hl_elf_has_section(int fd, const char *wanted)
{
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	Elf_Scn *section = NULL;
	size_t names;
	bool found = false;

	if (elf && elf_kind(elf) == ELF_K_ELF && !elf_getshdrstrndx(elf, &names)) {
		while (!found && (section = elf_nextscn(elf, section))) {
			GElf_Shdr header;
			const char *name = gelf_getshdr(section, &header)
						   ? elf_strptr(elf, names, header.sh_name)
						   : NULL;

			found = name && !strcmp(name, wanted) && header.sh_size &&
				header.sh_type != SHT_NOBITS;
		}
	}
	elf_end(elf);
	return found;
}

static void discard(struct hl_types_whole *whole)
{
	hl_store_free(&whole->store);
	for (uint32_t i = 0; i < whole->n_more; i++)
		hl_store_free(&whole->more[i]);
	free(whole->more);
	free(whole->defined);
	if (whole->source)
		whole->close_source(whole->source);
	*whole = (struct hl_types_whole){ 0 };
}

static int read_file(struct hl_types_whole *whole, const char *path, int fd,
		     const struct hl_types_options *options, struct hl_error *err)
{
	unsigned char start[8];
	ssize_t n = pread(fd, start, sizeof(start), 0);

	if (n < 0)
		return hl_fail(err, -errno, "%s: %s", path, strerror(errno));

	switch (kind_of(start, (size_t)n)) {
	case FILE_BTF:
		return hl_btf_read(whole, path, true, options, err);
	case FILE_UNKNOWN:
		return unknown_file(path, start, (size_t)n, err);
	default:
		break;
	}
	int rc = hl_fence_file(fd, path, err);

	if (!rc)
		rc = hl_dwarf_read(whole, path, fd, options, err);

	if (rc == -ENODATA && hl_elf_has_section(fd, ".BTF")) {
		discard(whole);
		rc = hl_btf_read(whole, path, false, options, err);
	}
	return rc;
}

/* ---- From the store to what readers see ---- */

static int by_order(const void *a, const void *b)
{
	const struct hl_definition *x = a, *y = b;

	if (x->order != y->order)
		return x->order < y->order ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

/* Collects what was defined, in the order of the file; NULL: no memory. */
static struct hl_definition *sort_definitions(const struct hl_store *store, uint32_t *n)
{
	struct hl_definition *list;

	*n = 0;
	for (hl_type_id id = 1; id < store->n_types; id++)
		*n += store->order[id] != HL_NO_ORDER;
	list = malloc((*n + 1ul) * sizeof(*list));
	if (!list)
		return NULL;
	*n = 0;
	for (hl_type_id id = 1; id < store->n_types; id++)
		if (store->order[id] != HL_NO_ORDER)
			list[(*n)++] = (struct hl_definition){ store->order[id], id };
	qsort(list, *n, sizeof(*list), by_order);
	return list;
}

/* Whether the typedef is what the unnamed type is called by: nothing but qualifiers
 * stands between them. A typedef of that typedef is another name for it. */
static bool is_its_name(const struct hl_types *types, hl_type_id alias, hl_type_id unnamed)
{
	hl_type_id id = types->type[alias].target;

	while (id != unnamed && types->type[id].kind != HL_TYPEDEF)
		id = types->type[id].target;
	return id == unnamed;
}

/* Lists what is reported: each definition once, an unnamed one under the first
 * typedef that names it; other typedefs only make it possible to ask by name. */
static int list_defined(struct hl_types_whole *whole, const struct hl_definition *list, uint32_t n)
{
	const struct hl_types *types = &whole->types;
	unsigned char *seen = calloc(types->n_types, 1);
	uint32_t kept = 0;

	whole->defined = malloc((n + 1ul) * sizeof(*whole->defined));
	if (!seen || !whole->defined) {
		free(seen);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < n; i++) {
		hl_type_id what = hl_type_strip(types, list[i].id);
		const struct hl_type *type = &types->type[what];
		bool alias = types->type[list[i].id].kind == HL_TYPEDEF;

		if (seen[what] || !hl_kind_is_aggregate(type->kind) ||
		    type->flags & HL_TYPE_DECLARATION ||
		    (alias && (type->name || !is_its_name(types, list[i].id, what))))
			continue;
		seen[what] = 1;
		whole->defined[kept++] = list[i].id;
	}
	whole->types.defined = whole->defined;
	whole->types.n_defined = kept;
	free(seen);
	return 0;
}

/* Only building needed these. */
static void free_indexes(struct hl_store *store)
{
	free(store->order);
	free(store->hash);
	free(store->bucket);
	free(store->file_bucket);
	store->order = NULL;
	store->hash = store->bucket = store->file_bucket = NULL;
}

static void show_store(struct hl_types *types, const struct hl_store *store)
{
	types->type = store->type;
	types->member = store->member;
	types->file = store->file;
	types->variable = store->variable;
	types->n_types = store->n_types;
	types->n_members = store->n_members;
	types->n_files = store->n_files;
	types->n_variables = store->n_variables;
	types->n_skipped = store->n_skipped;
	types->skipped = store->skipped;
	types->align_untold = store->align_untold;
}

static int publish(struct hl_types_whole *whole, struct hl_error *err)
{
	struct hl_store *store = &whole->store;
	uint32_t n;
	struct hl_definition *list = sort_definitions(store, &n);
	int rc = list ? hl_store_sort_variables(store) : -ENOMEM;

	free_indexes(store);
	/* BTF has numbers of its own, and one thread has read it. */
	if (!rc && !whole->types.from_btf)
		rc = hl_store_number(store, list, n);
	if (!rc) {
		show_store(&whole->types, store);
		rc = list_defined(whole, list, n);
	}
	free(list);
	if (rc)
		return hl_fail_nomem(err);
	return hl_types_settle(&whole->types, store->type, store->member, err);
}

int hl_types_open(struct hl_types **out, const char *path, const struct hl_types_options *options,
		  struct hl_error *err)
{
	static const struct hl_types_options none;
	struct hl_types_whole *whole = calloc(1, sizeof(*whole));
	/* A pipe without a writer must not make it wait. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc = 0;
	struct stat st;

	err->text[0] = '\0';
	if (!whole)
		rc = hl_fail_nomem(err);
	else if (fd < 0 || fstat(fd, &st))
		rc = hl_fail(err, -errno, "%s: %s", path, strerror(errno));
	else if (S_ISDIR(st.st_mode))
		rc = hl_fail(err, -EISDIR, "%s: is a directory", path);
	else if (!S_ISREG(st.st_mode))
		rc = hl_fail(err, -ENOEXEC, "%s: no regular file; copy what it gives into one",
			     path);
	if (!rc) {
		elf_version(EV_CURRENT);
		rc = read_file(whole, path, fd, options ? options : &none, err);
	}
	if (!rc)
		rc = publish(whole, err);
	if (fd >= 0)
		close(fd);
	if (rc) {
		if (whole)
			discard(whole);
		free(whole);
		return rc;
	}
	*out = &whole->types;
	return 0;
}

void hl_types_close(struct hl_types *types)
{
	struct hl_types_whole *whole = (struct hl_types_whole *)types;

	if (!whole)
		return;
	discard(whole);
	free(whole);
}
