// SPDX-License-Identifier: MIT
/*
 * DWARF package files.  A package holds the sections of many .dwo files one after
 * the other, and an index that says which bytes of each section belong to which
 * unit.  libdw (0.188) reads a .dwo but no package, so each unit is shown to it as
 * the .dwo that it was: in a private map of the package the section headers are
 * set to the unit's own bytes, and the image is opened from memory.  Nothing is
 * copied, so names stay valid as long as the map.
 *
 * Types that a unit refers to by signature are in the package's type units, which
 * are read as well, each on its own; a member of such a type shows as opaque.
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

/* Section numbers of the index, DWARF 5 and before it the GNU's (version 2). */
static const char *const column_name[2][9] = {
	{ NULL, ".debug_info.dwo", ".debug_types.dwo", ".debug_abbrev.dwo", ".debug_line.dwo",
	  ".debug_loc.dwo", ".debug_str_offsets.dwo", ".debug_macinfo.dwo", ".debug_macro.dwo" },
	{ NULL, ".debug_info.dwo", NULL, ".debug_abbrev.dwo", ".debug_line.dwo",
	  ".debug_loclists.dwo", ".debug_str_offsets.dwo", ".debug_macro.dwo",
	  ".debug_rnglists.dwo" },
};

struct hl_dwp {
	char *path;
	unsigned char *image; /* the whole file, mapped privately */
	size_t bytes;
	Elf64_Shdr *section; /* the image's own section headers */
	uint32_t n_sections;
	const char *names;
	size_t names_bytes;
};

/* One of the two indexes: of compile units, or of type units. */
struct index {
	unsigned version;
	uint32_t columns, units;
	const unsigned char *id; /* columns section numbers */
	const unsigned char *offset; /* units rows of columns offsets */
	const unsigned char *size; /* the same of sizes */
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

			found = name && (!strcmp(name, ".debug_cu_index") ||
					 !strcmp(name, ".debug_tu_index"));
		}
	}
	elf_end(elf);
	return found;
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

int hl_dwp_open(struct hl_dwp **out, const char *path, struct hl_error *err)
{
	struct hl_dwp *p = calloc(1, sizeof(*p));
	int fd = open(path, O_RDONLY | O_CLOEXEC), rc = 0;
	struct stat st;

	if (p)
		p->path = strdup(path);
	if (!p || !p->path)
		rc = hl_fail_nomem(err);
	else if (fd < 0 || fstat(fd, &st))
		rc = hl_fail(err, -errno, "%s: %s", path, strerror(errno));
	if (!rc) {
		p->bytes = (size_t)st.st_size;
		p->image = mmap(NULL, p->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
		if (p->image == MAP_FAILED) {
			p->image = NULL;
			rc = hl_fail(err, -errno, "%s: %s", path, strerror(errno));
		}
	}
	if (fd >= 0)
		close(fd);
	if (!rc)
		rc = find_sections(p, err);
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
	if (p->image)
		munmap(p->image, p->bytes);
	free(p->path);
	free(p);
}

static int damaged_index(const struct hl_dwp *p, struct hl_error *err)
{
	return hl_fail(err, -EBADMSG, "%s: damaged: index of units", p->path);
}

/* Checks the index section and finds its tables; units is 0 when there is none. */
static int read_index(struct hl_dwp *p, const char *name, struct index *index, struct hl_error *err)
{
	const Elf64_Shdr *section = section_by_name(p, name);
	uint64_t at = 16;

	*index = (struct index){ 0 };
	if (!section || section->sh_type == SHT_NOBITS || !section->sh_size)
		return 0;
	if (section->sh_size < 16)
		return damaged_index(p, err);

	const unsigned char *data = p->image + section->sh_offset;
	uint64_t slots = get32(data + 12);
	uint16_t version;

	memcpy(&version, data, sizeof(version));
	index->version = version;
	index->columns = get32(data + 4);
	index->units = get32(data + 8);
	if ((version != 2 && version != 5) || index->columns > MOST_COLUMNS)
		return hl_fail(err, -ENOTSUP, "%s: an index of version %u, only 2 and 5 are known",
			       p->path, index->version);
	at += slots * 12;

	uint64_t row = (uint64_t)index->columns * 4;

	if (at > section->sh_size || row + 2 * row * index->units > section->sh_size - at)
		return damaged_index(p, err);
	index->id = data + at;
	index->offset = index->id + row;
	index->size = index->offset + row * index->units;
	return 0;
}

static int read_elf(struct hl_dwp *p, struct hl_dwarf_reader *reader, uint32_t order,
		    struct hl_error *err)
{
	Elf *elf = elf_memory((char *)p->image, p->bytes);
	Dwarf *dwarf = elf ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;
	Dwarf_CU *cu = NULL;
	Dwarf_Die unit;
	int rc = 0;

	if (!dwarf) {
		rc = hl_fail(err, -EBADMSG, "%s: damaged: %s", p->path, dwarf_errmsg(-1));
		elf_end(elf);
		return rc;
	}
	while (!rc && dwarf_get_units(dwarf, cu, &cu, NULL, NULL, &unit, NULL) == 0)
		rc = hl_dwarf_read_unit(reader, &unit, order);
	if (rc && reader->why)
		hl_fail(err, rc, "%s: %s", p->path, reader->why);
	else if (rc)
		hl_fail_nomem(err);
	/* Addresses of DIEs and units come again with the next unit. */
	hl_die_map_clear(&reader->scopes);
	hl_die_map_clear(&reader->indexed);
	dwarf_end(dwarf);
	elf_end(elf);
	return rc;
}

/* Narrows the sections of the index to the bytes of one unit and reads it. */
static int read_row(struct hl_dwp *p, const struct index *index, uint32_t row,
		    struct hl_dwarf_reader *reader, uint32_t order, struct hl_error *err)
{
	Elf64_Shdr *narrowed[MOST_COLUMNS], whole[MOST_COLUMNS];
	uint32_t n = 0;
	int rc = 0;

	for (uint32_t c = 0; !rc && c < index->columns; c++) {
		uint32_t id = get32(index->id + 4 * c);
		size_t at = 4 * ((size_t)row * index->columns + c);
		uint64_t offset = get32(index->offset + at), size = get32(index->size + at);
		const char *name = id < 9 ? column_name[index->version == 5][id] : NULL;
		Elf64_Shdr *section = name ? section_by_name(p, name) : NULL;

		if (!section)
			continue;
		whole[n] = *section;
		narrowed[n++] = section;
		if (offset > section->sh_size || size > section->sh_size - offset) {
			rc = damaged_index(p, err);
			break;
		}
		section->sh_offset += offset;
		section->sh_size = size;
	}
	if (!rc)
		rc = read_elf(p, reader, order, err);
	while (n-- > 0)
		*narrowed[n] = whole[n];
	return rc;
}

/* A section that only the other index has rows for is hidden while one is read. */
static Elf64_Word hide(Elf64_Shdr *section)
{
	Elf64_Word type = section ? section->sh_type : SHT_NULL;

	if (section)
		section->sh_type = SHT_NOBITS;
	return type;
}

static int read_rows(struct hl_dwp *p, const char *name, const char *other,
		     struct hl_dwarf_reader *reader, uint32_t *order, struct hl_error *err)
{
	struct index index;
	int rc = read_index(p, name, &index, err);
	Elf64_Shdr *hidden = index.version == 2 ? section_by_name(p, other) : NULL;
	Elf64_Word type = hide(hidden);

	for (uint32_t row = 0; !rc && row < index.units; row++)
		rc = read_row(p, &index, row, reader, (*order)++, err);
	if (hidden)
		hidden->sh_type = type;
	return rc;
}

int hl_dwp_read(struct hl_dwp *p, struct hl_dwarf_reader *reader, uint32_t order, uint32_t *units,
		struct hl_error *err)
{
	uint32_t first = order;
	int rc = read_rows(p, ".debug_cu_index", ".debug_types.dwo", reader, &order, err);

	if (!rc)
		rc = read_rows(p, ".debug_tu_index", ".debug_info.dwo", reader, &order, err);
	*units += order - first;
	return rc;
}
