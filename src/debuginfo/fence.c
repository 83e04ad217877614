// SPDX-License-Identifier: MIT
#include "fence.h"

#include <dwarf.h>
#include <errno.h>
#include <gelf.h>
#include <string.h>

/* Compressed debug information is a third to a twentieth of what it was. */
#define MOST_GROWTH 32u
#define ALWAYS_ALLOWED (4u << 20)

/* Abbreviations that all units together may need: as many, and some for each byte of
 * the units.  Each takes libdw 56 bytes.  Type units share the table of their file. */
#define MOST_ABBREVIATIONS (4u << 20)
#define ABBREVIATIONS_A_BYTE 8u

/* ---- Compressed sections ---- */

static uint64_t add(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* The GNU form, in sections called .zdebug_...: "ZLIB" and the size, big-endian. */
static uint64_t gnu_size(Elf *elf, const GElf_Shdr *header)
{
	Elf_Data *data =
		header->sh_size < 12
			? NULL
			: elf_getdata_rawchunk(elf, (int64_t)header->sh_offset, 12, ELF_T_BYTE);
	uint64_t size = 0;

	if (!data || memcmp(data->d_buf, "ZLIB", 4))
		return 0;
	for (int i = 4; i < 12; i++)
		size = size << 8 | ((unsigned char *)data->d_buf)[i];
	return size;
}

/* Bytes that the compressed sections would take. */
static uint64_t expanded_size(Elf *elf)
{
	Elf_Scn *section = NULL;
	uint64_t bytes = 0;
	GElf_Shdr header;
	GElf_Chdr compressed;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return 0;
	while ((section = elf_nextscn(elf, section))) {
		if (!gelf_getshdr(section, &header) || header.sh_type == SHT_NOBITS)
			continue;

		const char *name = elf_strptr(elf, names, header.sh_name);

		if (header.sh_flags & SHF_COMPRESSED && gelf_getchdr(section, &compressed))
			bytes = add(bytes, compressed.ch_size);
		else if (name && !strncmp(name, ".zdebug", 7))
			bytes = add(bytes, gnu_size(elf, &header));
	}
	return bytes;
}

static uint64_t expanded_size_of_members(Elf *archive, int fd)
{
	Elf_Cmd next = ELF_C_READ_MMAP;
	uint64_t bytes = 0;
	Elf *member;

	while ((member = elf_begin(fd, next, archive))) {
		if (elf_kind(member) == ELF_K_ELF)
			bytes = add(bytes, expanded_size(member));
		next = elf_next(member);
		elf_end(member);
	}
	return bytes;
}

int hl_fence_file(int fd, const char *path, struct hl_error *err)
{
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	uint64_t bytes = 0, most = ALWAYS_ALLOWED;
	size_t size;

	if (!elf)
		return 0; /* whoever opens it in earnest says why */
	if (elf_kind(elf) == ELF_K_ELF)
		bytes = expanded_size(elf);
	else if (elf_kind(elf) == ELF_K_AR)
		bytes = expanded_size_of_members(elf, fd);
	if (elf_rawfile(elf, &size))
		most = add(most, (uint64_t)size * MOST_GROWTH);
	elf_end(elf);
	if (bytes > most)
		return hl_fail(err, -E2BIG,
			       "%s: its compressed sections would take %llu bytes, more "
			       "than any compression of debug information saves",
			       path, (unsigned long long)bytes);
	return 0;
}

/* The section of one of the names as libdw sees it: decompressed. */
static Elf_Data *find_data(Elf *elf, const char *const *wanted)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	size_t names;

	if (!elf || elf_getshdrstrndx(elf, &names))
		return NULL;
	while ((section = elf_nextscn(elf, section))) {
		const char *name = gelf_getshdr(section, &header) && header.sh_type != SHT_NOBITS
					   ? elf_strptr(elf, names, header.sh_name)
					   : NULL;

		for (const char *const *one = wanted; name && *one; one++)
			if (!strcmp(name, *one))
				return elf_getdata(section, NULL);
	}
	return NULL;
}

/* ---- Abbreviations ---- */

/* Over all units: the abbreviations that libdw may have to keep. */
struct abbreviations {
	Dwarf *dwarf;
	const unsigned char *start, *end;
	const unsigned char *table; /* the one that was met last ... */
	uint64_t n; /* ... and how many it has */
	uint64_t kept, looked, bytes;
};

static bool too_many(const struct abbreviations *a)
{
	uint64_t most = MOST_ABBREVIATIONS + a->bytes * ABBREVIATIONS_A_BYTE;

	return a->kept > most || a->looked > most;
}

/* Steps over a LEB128 number; whether it is zero. */
static bool step_number(const struct abbreviations *a, const unsigned char **at)
{
	bool zero = true;

	while (*at < a->end) {
		unsigned char byte = *(*at)++;

		zero = zero && !(byte & 0x7f);
		if (!(byte & 0x80))
			break;
	}
	return zero;
}

/* Steps over one abbreviation: its code, tag, children, then pairs of attribute and form
 * up to one of zeros.  False at the end of the table. */
static bool step_abbreviation(const struct abbreviations *a, const unsigned char **at)
{
	bool end = false;

	if (step_number(a, at))
		return false;
	step_number(a, at);
	if (*at < a->end)
		++*at;
	while (!end && *at < a->end) {
		bool no_attribute = step_number(a, at);
		unsigned char form = *at < a->end ? **at : 0;

		end = step_number(a, at) && no_attribute;
		if (form == DW_FORM_implicit_const)
			step_number(a, at);
	}
	return *at < a->end;
}

static void count_table(struct abbreviations *a, uint64_t offset)
{
	const unsigned char *at = a->start + offset;

	if (offset >= (uint64_t)(a->end - a->start) || at == a->table)
		return;
	a->table = at;
	a->n = 0;
	while (!too_many(a) && step_abbreviation(a, &at)) {
		a->n++;
		a->looked++;
	}
}

static void count_units(struct abbreviations *a, uint64_t *signature)
{
	Dwarf_Off offset = 0, next, table;
	Dwarf_Half version;
	size_t header;

	while (!too_many(a) && !dwarf_next_unit(a->dwarf, offset, &next, &header, &version, &table,
						NULL, NULL, signature, NULL)) {
		count_table(a, table);
		a->kept += a->n;
		a->bytes += next - offset;
		offset = next;
	}
}

int hl_fence_units(Dwarf *dwarf, const char *path, struct hl_error *err)
{
	static const char *const names[] = { ".debug_abbrev", ".zdebug_abbrev", ".debug_abbrev.dwo",
					     NULL };
	const Elf_Data *data = find_data(dwarf_getelf(dwarf), names);
	struct abbreviations a = { .dwarf = dwarf };
	uint64_t signature;

	if (!data || !data->d_buf)
		return 0;
	a.start = data->d_buf;
	a.end = a.start + data->d_size;
	count_units(&a, NULL);
	count_units(&a, &signature); /* those of .debug_types */
	if (too_many(&a))
		return hl_fail(err, -E2BIG, "%s: its units would need more than %llu abbreviations",
			       path, (unsigned long long)(a.kept > a.looked ? a.kept : a.looked));
	return 0;
}

/* ---- Lines ---- */

/* Bytes of the table at the offset: its length stands in front of it. */
static uint64_t table_size(Dwarf *dwarf, const Elf_Data *data, uint64_t offset)
{
	const unsigned char *at = (const unsigned char *)data->d_buf + offset;
	const char *ident = elf_getident(dwarf_getelf(dwarf), NULL);
	bool big = ident && ident[EI_DATA] == ELFDATA2MSB;
	uint64_t length = 0;

	for (int i = 0; i < 4; i++)
		length |= (uint64_t)at[i] << 8 * (big ? 3 - i : i);
	/* In 64-bit DWARF it stands behind this; and no table is longer than its section. */
	if (length >= 0xfffffff0 || length > data->d_size - offset)
		length = data->d_size - offset;
	return length;
}

int hl_fence_lines(struct hl_fence_lines *lines, Dwarf_Die *unit)
{
	static const char *const names[] = { ".debug_line", ".zdebug_line", ".debug_line.dwo",
					     NULL };
	Dwarf *dwarf = dwarf_cu_getdwarf(unit->cu);
	Dwarf_Attribute attr;
	Dwarf_Word offset;
	const char *table;
	uint64_t size;

	if (dwarf != lines->dwarf) {
		lines->dwarf = dwarf;
		lines->data = find_data(dwarf_getelf(dwarf), names);
		/* Tables do not overlap, so all of them take no more than their section. */
		lines->left = lines->data ? lines->data->d_size : 0;
	}
	if (!lines->data || !lines->data->d_buf ||
	    dwarf_formudata(dwarf_attr(unit, DW_AT_stmt_list, &attr), &offset) ||
	    lines->data->d_size < 4 || offset > lines->data->d_size - 4)
		return 1; /* there is nothing that libdw could read */
	table = (const char *)lines->data->d_buf + offset;
	if (hl_die_map_get(&lines->known, table) >= 0)
		return 1;
	size = table_size(dwarf, lines->data, offset);
	if (size > lines->left)
		return 0;
	lines->left -= size;
	return hl_die_map_set(&lines->known, table, 0) ? -ENOMEM : 1;
}
