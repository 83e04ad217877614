// SPDX-License-Identifier: MIT
/*
 * gcc -fdebug-types-section puts each type unit of an object into a section of its own,
 * in a group, so that the linker keeps one of each.  libdw reads one section of a name,
 * and groups only alone, without the abbreviations that they share with the rest.  Here
 * they are put together as a linker would: all sections of one name become one, in a
 * file without a name, by libelf.
 */
#include "dwarf_source.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MOST_SECTIONS 32u
#define MOST_NAMES 2048u

struct merging {
	Elf *from, *to;
	size_t from_names;
	struct {
		const char *name;
		Elf_Scn *section;
	} merged[MOST_SECTIONS];
	uint32_t n;
	char names[MOST_NAMES]; /* the new section of names */
	uint32_t names_used;
};

/* Units of types are in these. */
static bool holds_units(const char *name)
{
	return !strcmp(name, ".debug_info") || !strcmp(name, ".debug_types") ||
	       !strcmp(name, ".debug_info.dwo") || !strcmp(name, ".debug_types.dwo");
}

static const char *name_of(const struct merging *m, const GElf_Shdr *header)
{
	const char *name = elf_strptr(m->from, m->from_names, header->sh_name);

	return name ? name : "";
}

/* Whether units are in more than one section of a name, or in a group. */
static bool is_scattered(const struct merging *m)
{
	const char *seen[4] = { NULL };
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	unsigned n = 0;

	while ((section = elf_nextscn(m->from, section))) {
		if (!gelf_getshdr(section, &header) || !holds_units(name_of(m, &header)))
			continue;
		for (unsigned i = 0; i < n; i++)
			if (!strcmp(seen[i], name_of(m, &header)))
				return true;
		if (header.sh_flags & SHF_GROUP)
			return true;
		if (n < 4)
			seen[n++] = name_of(m, &header);
	}
	return false;
}

static uint32_t add_name(struct merging *m, const char *name)
{
	uint32_t at = m->names_used;
	size_t n = strlen(name) + 1;

	if (n > MOST_NAMES - at)
		return 0;
	memcpy(m->names + at, name, n);
	m->names_used += (uint32_t)n;
	return at;
}

static Elf_Scn *new_section(struct merging *m, const char *name, uint32_t type)
{
	Elf_Scn *section = elf_newscn(m->to);
	GElf_Shdr header;

	if (!section || !gelf_getshdr(section, &header))
		return NULL;
	header.sh_name = add_name(m, name);
	header.sh_type = type;
	header.sh_addralign = 1;
	return header.sh_name && gelf_update_shdr(section, &header) ? section : NULL;
}

/* The section of that name, made when it is new. */
static Elf_Scn *merged_section(struct merging *m, const char *name)
{
	Elf_Scn *section;

	for (uint32_t i = 0; i < m->n; i++)
		if (!strcmp(m->merged[i].name, name))
			return m->merged[i].section;
	section = m->n < MOST_SECTIONS ? new_section(m, name, SHT_PROGBITS) : NULL;
	if (section) {
		m->merged[m->n].name = name;
		m->merged[m->n++].section = section;
	}
	return section;
}

static bool append(Elf_Scn *section, void *bytes, size_t n)
{
	Elf_Data *data = elf_newdata(section);

	if (!data)
		return false;
	data->d_buf = bytes;
	data->d_size = n;
	data->d_type = ELF_T_BYTE;
	data->d_align = 1;
	data->d_version = EV_CURRENT;
	return true;
}

static bool merge_sections(struct merging *m)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(m->from, section))) {
		if (!gelf_getshdr(section, &header) || header.sh_type == SHT_NOBITS)
			continue;
		const char *name = name_of(m, &header);

		if (strncmp(name, ".debug_", 7) ||
		    (header.sh_flags & SHF_GROUP && !holds_units(name)))
			continue;
		/* What libdw and libdwfl have not looked at may still be compressed. */
		if (header.sh_flags & SHF_COMPRESSED && elf_compress(section, 0, 0) < 0)
			return false;
		Elf_Data *data = elf_rawdata(section, NULL);
		Elf_Scn *merged = merged_section(m, name);

		if (!data || !merged || !append(merged, data->d_buf, data->d_size))
			return false;
	}
	return true;
}

static bool write_merged(struct merging *m)
{
	GElf_Ehdr from, to;
	Elf_Scn *names;

	if (!gelf_getehdr(m->from, &from) || !gelf_newehdr(m->to, gelf_getclass(m->from)) ||
	    !gelf_getehdr(m->to, &to))
		return false;
	to.e_ident[EI_DATA] = from.e_ident[EI_DATA];
	to.e_machine = from.e_machine;
	to.e_type = ET_REL;
	to.e_version = EV_CURRENT;
	if (!gelf_update_ehdr(m->to, &to))
		return false;
	m->names_used = 1; /* the empty name */
	if (!merge_sections(m))
		return false;
	names = new_section(m, ".shstrtab", SHT_STRTAB);
	if (!names || !append(names, m->names, m->names_used) || !gelf_getehdr(m->to, &to))
		return false;
	to.e_shstrndx = (uint16_t)elf_ndxscn(names);
	return gelf_update_ehdr(m->to, &to) && elf_update(m->to, ELF_C_WRITE) >= 0;
}

Elf *hl_elf_with_type_units(Elf *elf)
{
	struct merging m = { .from = elf };
	Elf *merged = NULL;
	int fd;

	if (elf_getshdrstrndx(elf, &m.from_names) || !is_scattered(&m))
		return NULL;
	fd = memfd_create("type units", MFD_CLOEXEC);
	if (fd < 0)
		return NULL;
	m.to = elf_begin(fd, ELF_C_WRITE, NULL);
	if (m.to && write_merged(&m)) {
		merged = elf_begin(fd, ELF_C_READ_MMAP, NULL);
		if (merged && elf_cntl(merged, ELF_C_FDREAD)) {
			elf_end(merged);
			merged = NULL;
		}
	}
	elf_end(m.to);
	close(fd);
	return merged;
}
