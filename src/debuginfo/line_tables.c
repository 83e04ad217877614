// SPDX-License-Identifier: MIT
/*
 * libdw tells the source files of a unit only together with its table of lines, which
 * takes longer to decode and more memory to hold than all types of the unit. Nobody asks
 * for lines here. So each table in memory is made to end behind its header, where the
 * files are: libdw then finds a table without rows.
 */
#include "dwarf_source.h"

#include <string.h>

/* The section, with numbers in the byte order of the file. */
struct bytes {
	unsigned char *at;
	size_t n;
	bool big;
};

static uint64_t read_number(const struct bytes *bytes, size_t at, unsigned size)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < size; i++)
		value |= (uint64_t)bytes->at[at + i] << 8 * (bytes->big ? size - 1 - i : i);
	return value;
}

static void write_number(const struct bytes *bytes, size_t at, unsigned size, uint64_t value)
{
	for (unsigned i = 0; i < size; i++)
		bytes->at[at + i] = (unsigned char)(value >> 8 * (bytes->big ? size - 1 - i : i));
}

/* Ends the table that begins at `at` behind its header. Tells where the next one begins;
 * the end of the section when this is none that is understood, which libdw will say. */
static size_t cut_table(const struct bytes *bytes, size_t at)
{
	/* What a header begins with, at its longest: two lengths in the form of 64 bits, a
	 * version, and the two bytes that DWARF 5 has behind it. */
	const size_t longest = 12 + 2 + 2 + 8;
	unsigned width = 4;
	size_t begin, end, rows;
	uint64_t length, version;

	if (bytes->n - at < longest)
		return bytes->n;
	begin = at + 4;
	length = read_number(bytes, at, 4);
	if (length == UINT32_MAX) {
		width = 8;
		length = read_number(bytes, begin, 8);
		begin += 8;
	}
	if (length > bytes->n - begin)
		return bytes->n;
	end = begin + length;
	version = read_number(bytes, begin, 2);
	rows = begin + (version >= 5 ? 4 : 2) + width;
	if (version < 2 || version > 5 || rows > end)
		return bytes->n;
	length = read_number(bytes, rows - width, width);
	if (length > end - rows)
		return bytes->n;
	write_number(bytes, begin - width, width, rows + length - begin);
	return end;
}

static bool is_line_section(Elf *elf, const GElf_Shdr *header)
{
	size_t names;
	const char *name = elf_getshdrstrndx(elf, &names) ? NULL
							  : elf_strptr(elf, names, header->sh_name);

	return name && header->sh_type != SHT_NOBITS && !(header->sh_flags & SHF_COMPRESSED) &&
	       !strcmp(name, ".debug_line");
}

void hl_cut_line_tables(Elf *elf)
{
	const char *ident = elf_getident(elf, NULL);
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	Elf_Data *data;

	while (ident && (section = elf_nextscn(elf, section))) {
		if (!gelf_getshdr(section, &header) || !is_line_section(elf, &header))
			continue;
		data = elf_getdata(section, NULL);
		if (!data || !data->d_buf)
			continue;

		struct bytes bytes = { data->d_buf, data->d_size, ident[EI_DATA] == ELFDATA2MSB };

		for (size_t at = 0; at < bytes.n;)
			at = cut_table(&bytes, at);
	}
}
