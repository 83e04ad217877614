// SPDX-License-Identifier: MIT
/*
 * DWARF package files.  A package holds the sections of many .dwo files one after
 * the other, and an index that says which bytes of each section belong to which
 * unit.  libdw (0.188) reads a .dwo but no package, so each unit is shown to it as
 * the .dwo that it was: in a private map of the package the section headers are
 * set to the unit's own bytes while a handle is opened on it.  Nothing is copied,
 * so names and addresses of DIEs stay valid as long as the map.
 *
 * A type that a unit refers to by signature is in a type unit of the package, which
 * has a row of its own in the second index: by_signature() finds it there.
 */
#include "dwp.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_COLUMNS 10u
/* Slots that are looked at for one signature: a third of a table is free. */
#define MOST_TRIES 1024u
#define ALL_SECTIONS 0u

/* Section numbers of the index, DWARF 5 and before it the GNU's (version 2). */
static const char *const column_name[2][9] = {
	{ NULL, ".debug_info.dwo", ".debug_types.dwo", ".debug_abbrev.dwo", ".debug_line.dwo",
	  ".debug_loc.dwo", ".debug_str_offsets.dwo", ".debug_macinfo.dwo", ".debug_macro.dwo" },
	{ NULL, ".debug_info.dwo", NULL, ".debug_abbrev.dwo", ".debug_line.dwo",
	  ".debug_loclists.dwo", ".debug_str_offsets.dwo", ".debug_macro.dwo",
	  ".debug_rnglists.dwo" },
};

/* One of the two indexes: of compile units, or of type units. */
struct index {
	unsigned version;
	uint32_t columns, units, slots;
	const unsigned char *signature; /* slots of them, 8 bytes each: a hash table ... */
	const unsigned char *row; /* ... and the row of each, from 1; 0: free */
	const unsigned char *id; /* columns section numbers */
	const unsigned char *offset; /* units rows of columns offsets */
	const unsigned char *size; /* the same of sizes */
};

struct hl_dwp {
	char *path;
	unsigned char *image; /* the whole file, mapped privately */
	size_t bytes;
	Elf *elf; /* over the image as it was */
	Elf64_Shdr *section; /* the image's own section headers */
	uint32_t n_sections;
	const char *names;
	size_t names_bytes;
	struct index compiled, types;
	struct hl_die_map whole, named; /* type of a signature (its place in the index), if read */
};

static uint32_t get32(const unsigned char *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static const char *section_name(const struct hl_dwp *p, uint32_t i)
{
	uint32_t name = p->section[i].sh_name;

	if (name >= p->names_bytes || !memchr(p->names + name, 0, p->names_bytes - name))
		return "";
	return p->names + name;
}

static Elf64_Shdr *section_by_name(struct hl_dwp *p, const char *name)
{
	for (uint32_t i = 1; i < p->n_sections; i++)
		if (!strcmp(section_name(p, i), name))
			return &p->section[i];
	return NULL;
}

bool hl_dwp_is_package(int fd)
{
	return hl_elf_has_section(fd, ".debug_cu_index") ||
	       hl_elf_has_section(fd, ".debug_tu_index");
}

/* Checks the ELF header and finds the section headers and their names. */
static int find_sections(struct hl_dwp *p, struct hl_error *err)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)p->image;
	const unsigned char native = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB
									       : ELFDATA2MSB;

	if (p->bytes < sizeof(*header) || memcmp(header->e_ident, ELFMAG, SELFMAG))
		return hl_fail(err, -ENOEXEC, "%s: no ELF file", p->path);
	if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != native)
		return hl_fail(
			err, -ENOTSUP,
			"%s: package files are read only in 64 bits and this machine's byte order",
			p->path);
	if (header->e_shentsize != sizeof(Elf64_Shdr) || header->e_shoff % _Alignof(Elf64_Shdr) ||
	    header->e_shoff > p->bytes ||
	    header->e_shnum > (p->bytes - header->e_shoff) / sizeof(Elf64_Shdr) ||
	    header->e_shstrndx >= header->e_shnum)
		return hl_fail(err, -EBADMSG, "%s: damaged: section headers", p->path);
	p->section = (Elf64_Shdr *)(p->image + header->e_shoff);
	p->n_sections = header->e_shnum;
	for (uint32_t i = 0; i < p->n_sections; i++) {
		const Elf64_Shdr *s = &p->section[i];

		if (s->sh_type != SHT_NOBITS &&
		    (s->sh_offset > p->bytes || s->sh_size > p->bytes - s->sh_offset))
			return hl_fail(err, -EBADMSG,
				       "%s: damaged: section %u lies outside the file", p->path, i);
		if (s->sh_flags & SHF_COMPRESSED)
			return hl_fail(err, -ENOTSUP,
				       "%s: compressed sections in a package; decompress it first: "
				       "objcopy --decompress-debug-sections",
				       p->path);
	}
	p->names = (const char *)p->image + p->section[header->e_shstrndx].sh_offset;
	p->names_bytes = p->section[header->e_shstrndx].sh_size;
	return 0;
}

static int damaged_index(const struct hl_dwp *p, struct hl_error *err)
{
	return hl_fail(err, -EBADMSG, "%s: damaged: index of units", p->path);
}

/* Checks the index section and finds its tables; units is 0 when there is none. */
/* Whether rows share bytes of units: each would be read again and again. */
static bool units_overlap(struct hl_dwp *p, const struct index *index)
{
	for (uint32_t c = 0; c < index->columns; c++) {
		uint32_t id = get32(index->id + 4ul * c);
		const Elf64_Shdr *section = id == 1   ? section_by_name(p, ".debug_info.dwo")
					    : id == 2 ? section_by_name(p, ".debug_types.dwo")
						      : NULL;
		uint64_t sum = 0;

		for (uint32_t row = 0; section && row < index->units; row++)
			sum += get32(index->size + 4 * ((size_t)row * index->columns + c));
		if (section && sum > section->sh_size)
			return true;
	}
	return false;
}

static int read_index(struct hl_dwp *p, const char *name, struct index *index, struct hl_error *err)
{
	Elf64_Shdr *section = section_by_name(p, name);
	uint64_t at = 16;
	uint16_t version;

	*index = (struct index){ 0 };
	if (!section || section->sh_type == SHT_NOBITS || !section->sh_size)
		return 0;
	if (section->sh_size < 16)
		return damaged_index(p, err);

	const unsigned char *data = p->image + section->sh_offset;

	memcpy(&version, data, sizeof(version));
	index->version = version;
	index->columns = get32(data + 4);
	index->units = get32(data + 8);
	index->slots = get32(data + 12);
	if ((version != 2 && version != 5) || index->columns > MOST_COLUMNS)
		return hl_fail(err, -ENOTSUP, "%s: an index of version %u, only 2 and 5 are known",
			       p->path, index->version);
	at += (uint64_t)index->slots * 12;

	uint64_t row = (uint64_t)index->columns * 4;

	if (at > section->sh_size || row + 2 * row * index->units > section->sh_size - at ||
	    index->slots & (index->slots - 1) || index->units > index->slots)
		return damaged_index(p, err);
	index->signature = data + 16;
	index->row = index->signature + index->slots * 8ul;
	index->id = data + at;
	index->offset = index->id + row;
	index->size = index->offset + row * index->units;
	if (units_overlap(p, index))
		return damaged_index(p, err);
	/* libdw would take the name for that of a section of no split file. */
	section->sh_name = 0;
	return 0;
}

static int map_file(struct hl_dwp *p, struct hl_error *err)
{
	int fd = open(p->path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	int rc = 0;

	if (fd < 0 || fstat(fd, &st)) {
		rc = hl_fail(err, -errno, "%s: %s", p->path, strerror(errno));
	} else {
		p->bytes = (size_t)st.st_size;
		p->elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
		p->image = mmap(NULL, p->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
		if (p->image == MAP_FAILED) {
			p->image = NULL;
			rc = hl_fail(err, -errno, "%s: %s", p->path, strerror(errno));
		}
	}
	if (fd >= 0)
		close(fd);
	return rc;
}

int hl_dwp_open(struct hl_dwp **out, const char *path, struct hl_error *err)
{
	struct hl_dwp *p = calloc(1, sizeof(*p));
	int rc = 0;

	if (!p)
		return hl_fail_nomem(err);
	p->path = strdup(path);
	if (!p->path || hl_die_map_init(&p->whole) || hl_die_map_init(&p->named))
		rc = hl_fail_nomem(err);
	if (!rc)
		rc = map_file(p, err);
	if (!rc)
		rc = find_sections(p, err);
	if (!rc)
		rc = read_index(p, ".debug_cu_index", &p->compiled, err);
	if (!rc)
		rc = read_index(p, ".debug_tu_index", &p->types, err);
	if (rc) {
		hl_dwp_close(p);
		return rc;
	}
	*out = p;
	return 0;
}

void hl_dwp_close(struct hl_dwp *p)
{
	if (!p)
		return;
	elf_end(p->elf);
	if (p->image)
		munmap(p->image, p->bytes);
	hl_die_map_free(&p->whole);
	hl_die_map_free(&p->named);
	free(p->path);
	free(p);
}

uint32_t hl_dwp_units(const struct hl_dwp *p)
{
	return p->compiled.units + p->types.units;
}

uint32_t hl_dwp_first_type_unit(const struct hl_dwp *p)
{
	return p->compiled.units;
}

Elf *hl_dwp_elf(const struct hl_dwp *p)
{
	return p->elf;
}

/* ---- One unit ---- */

/* What libdw has open of one unit. */
struct row {
	Elf *elf;
	Dwarf *dwarf;
	Dwarf_CU *cu; /* where next_unit() is */
};

/* Narrows a section, or all of the index, to the bytes of one unit; how they were
 * before goes to whole[] and narrowed[], *n of them. */
static bool narrow_section(struct hl_dwp *p, const struct index *index, uint32_t row,
			   uint32_t wanted, Elf64_Shdr *narrowed[], Elf64_Shdr whole[], uint32_t *n)
{
	for (uint32_t c = 0; c < index->columns; c++) {
		uint32_t id = get32(index->id + 4 * c);
		size_t at = 4 * ((size_t)row * index->columns + c);
		uint64_t offset = get32(index->offset + at), size = get32(index->size + at);
		const char *name = id < 9 ? column_name[index->version == 5][id] : NULL;
		Elf64_Shdr *section = name ? section_by_name(p, name) : NULL;

		if (!section || (wanted != ALL_SECTIONS && wanted != id))
			continue;
		whole[*n] = *section;
		narrowed[(*n)++] = section;
		if (offset > section->sh_size || size > section->sh_size - offset)
			return false;
		section->sh_offset += offset;
		section->sh_size = size;
	}
	return true;
}

/* Before version 5 type units are in a section of their own, for which the index of
 * compiled units has no column, and the other way round.  What is not asked for is
 * hidden; but libdw looks at no type unit where there is no other unit at all: it is
 * shown the first, which is passed over. */
static bool hide(struct hl_dwp *p, const struct index *index, Elf64_Shdr *narrowed[],
		 Elf64_Shdr whole[], uint32_t *n)
{
	bool compiled = index == &p->compiled;
	Elf64_Shdr *section = index->version == 2 ? section_by_name(p, compiled ? ".debug_types.dwo"
										: ".debug_info.dwo")
						  : NULL;

	if (!section)
		return true;
	if (!compiled)
		return p->compiled.units &&
		       narrow_section(p, &p->compiled, 0, DW_SECT_INFO, narrowed, whole, n);
	whole[*n] = *section;
	narrowed[(*n)++] = section;
	section->sh_size = 0;
	return true;
}

/* Opens a handle on one unit. */
static bool open_row(struct hl_dwp *p, const struct index *index, uint32_t number, struct row *row)
{
	Elf64_Shdr *narrowed[MOST_COLUMNS + 1], whole[MOST_COLUMNS + 1];
	uint32_t n = 0;

	*row = (struct row){ NULL, NULL, NULL };
	if (narrow_section(p, index, number, ALL_SECTIONS, narrowed, whole, &n) &&
	    hide(p, index, narrowed, whole, &n))
		row->elf = elf_memory((char *)p->image, p->bytes);
	if (row->elf)
		row->dwarf = dwarf_begin_elf(row->elf, DWARF_C_READ, NULL);
	/* libdw has the places of all sections now. */
	while (n-- > 0)
		*narrowed[n] = whole[n];
	if (!row->dwarf)
		elf_end(row->elf);
	return row->dwarf;
}

static void close_row(struct row *row, struct hl_dwarf_reader *reader)
{
	hl_dwarf_forget(reader, row->dwarf);
	dwarf_end(row->dwarf);
	elf_end(row->elf);
}

/* The slot of a signature in the index's hash table; NULL: it is not there. */
static const unsigned char *find_slot(const struct index *index, const void *signature)
{
	uint64_t value;

	memcpy(&value, signature, sizeof(value));
	if (!index->slots)
		return NULL;

	uint32_t mask = index->slots - 1, at = (uint32_t)value & mask;
	uint32_t step = ((uint32_t)(value >> 32) & mask) | 1;

	for (uint32_t tries = 0; tries < index->slots && tries < MOST_TRIES;
	     tries++, at = (at + step) & mask) {
		uint32_t row = get32(index->row + 4ul * at);

		if (!row || row > index->units)
			return NULL;
		if (!memcmp(index->signature + 8ul * at, signature, sizeof(value)))
			return index->signature + 8ul * at;
	}
	return NULL;
}

static uint32_t row_of(const struct index *index, const unsigned char *slot)
{
	return get32(index->row + (size_t)(slot - index->signature) / 2) - 1;
}

/* The next unit of the row that is of its index's kind. */
static bool next_unit(struct hl_dwp *p, const struct index *index, struct row *row, Dwarf_Die *unit,
		      Dwarf_Die *type)
{
	uint8_t kind;

	while (!dwarf_get_units(row->dwarf, row->cu, &row->cu, NULL, &kind, unit, type))
		if (index == &p->compiled || kind == DW_UT_type || kind == DW_UT_split_type)
			return true;
	return false;
}

/* Reads the type of a type unit in the middle of another unit. */
static hl_type_id read_signed_type(struct hl_dwp *p, struct hl_dwarf_reader *reader,
				   uint32_t number, bool by_name, int depth)
{
	Dwarf_Die unit, type;
	hl_type_id id = 0;
	struct row row;

	if (!open_row(p, &p->types, number, &row))
		return 0;
	if (next_unit(p, &p->types, &row, &unit, &type) && dwarf_tag(&type))
		id = hl_dwarf_read_type(reader, &type, by_name, depth);
	close_row(&row, reader);
	return id;
}

/* Being read right now. */
#define IN_PROGRESS UINT32_MAX

static hl_type_id by_signature(struct hl_dwarf_reader *reader, const void *signature, bool by_name,
			       int depth)
{
	struct hl_dwp *p = reader->package;
	struct hl_die_map *known = by_name ? &p->named : &p->whole;
	const unsigned char *slot = find_slot(&p->types, signature);
	int64_t id = slot ? hl_die_map_get(known, slot) : 0;

	if (id == IN_PROGRESS || !slot) {
		hl_store_skip(reader->store, slot ? "a type that contains itself"
						  : "a type that is not in the package");
		return 0;
	}
	if (id >= 0)
		return (hl_type_id)id;
	if (hl_die_map_set(known, slot, IN_PROGRESS))
		return 0;
	id = read_signed_type(p, reader, row_of(&p->types, slot), by_name, depth);
	return hl_die_map_set(known, slot, (uint32_t)id) ? 0 : (hl_type_id)id;
}

static int read_row(struct hl_dwp *p, const struct index *index, uint32_t number,
		    struct hl_dwarf_reader *reader, uint64_t order, struct hl_error *err)
{
	Dwarf_Die unit;
	struct row row;
	int rc = 0;

	if (!open_row(p, index, number, &row))
		return hl_fail(err, -EBADMSG, "%s: damaged: unit %u", p->path, number);
	reader->by_signature = by_signature;
	reader->package = p;
	while (!rc && next_unit(p, index, &row, &unit, NULL))
		rc = hl_dwarf_read_unit(reader, &unit, order, false);
	reader->by_signature = NULL;
	close_row(&row, reader);
	return rc;
}

int hl_dwp_read_unit(struct hl_dwp *p, uint32_t unit, struct hl_dwarf_reader *reader,
		     uint64_t order, struct hl_error *err)
{
	if (unit < p->compiled.units)
		return read_row(p, &p->compiled, unit, reader, order, err);
	return read_row(p, &p->types, unit - p->compiled.units, reader, order, err);
}

int hl_dwp_read_split(struct hl_dwp *p, Dwarf_Die *skeleton, struct hl_dwarf_reader *reader,
		      uint64_t order, struct hl_error *err)
{
	const unsigned char *slot;
	uint64_t id;
	int rc;

	if (dwarf_cu_info(skeleton->cu, NULL, NULL, NULL, NULL, &id, NULL, NULL))
		return 1;
	slot = find_slot(&p->compiled, &id);
	if (!slot)
		return 1;
	reader->skeleton = skeleton;
	rc = read_row(p, &p->compiled, row_of(&p->compiled, slot), reader, order, err);
	reader->skeleton = NULL;
	return rc;
}
