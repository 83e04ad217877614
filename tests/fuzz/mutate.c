// SPDX-License-Identifier: MIT
/*
 * Mutations for the file target.  Most of an ELF file's bytes are its frame, and a
 * frame that is broken hides what is behind it: three times in four what is changed
 * is the inside of one debug section, which may grow, in a frame that stays whole.
 */
#include "target.h"

#include <elf.h>
#include <stdbool.h>
#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

/* Where a section's bytes are, and where its header says so. */
struct section {
	uint64_t offset, size;
	size_t offset_at, size_at;
	bool wide;
};

static uint64_t get(const uint8_t *at, unsigned bytes)
{
	uint64_t value = 0;

	memcpy(&value, at, bytes);	/* little-endian, as are the seeds */
	return value;
}

static void put(uint8_t *at, uint64_t value, unsigned bytes)
{
	memcpy(at, &value, bytes);
}

static bool is_interesting(const char *name)
{
	return !strncmp(name, ".debug_", 7) || !strncmp(name, ".BTF", 4) ||
	       !strncmp(name, ".gnu_debug", 10);
}

/* Reads section header i, whose name must be within the file. */
static bool read_section(const uint8_t *data, size_t size, uint64_t headers, unsigned entry,
			 unsigned i, struct section *section, uint32_t *name)
{
	bool wide = data[EI_CLASS] == ELFCLASS64;
	uint64_t at = headers + (uint64_t)i * entry;
	unsigned need = wide ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);

	if (entry < need || at > size || size - at < need)
		return false;
	*name = (uint32_t)get(data + at, 4);
	*section = (struct section){
		.wide = wide,
		.offset_at = at + (wide ? offsetof(Elf64_Shdr, sh_offset) :
					  offsetof(Elf32_Shdr, sh_offset)),
		.size_at = at + (wide ? offsetof(Elf64_Shdr, sh_size) :
					offsetof(Elf32_Shdr, sh_size)),
	};
	section->offset = get(data + section->offset_at, wide ? 8 : 4);
	section->size = get(data + section->size_at, wide ? 8 : 4);
	return section->offset <= size && section->size <= size - section->offset;
}

/* One of the debug sections, drawn by the seed; false when there is none. */
static bool find_section(const uint8_t *data, size_t size, unsigned seed, struct section *found)
{
	struct section names, section;
	uint32_t name;
	unsigned n = 0;

	if (size < sizeof(Elf64_Ehdr) || memcmp(data, ELFMAG, SELFMAG) ||
	    data[EI_DATA] != ELFDATA2LSB)
		return false;

	bool wide = data[EI_CLASS] == ELFCLASS64;
	const uint8_t *tail = data + (wide ? offsetof(Elf64_Ehdr, e_shentsize) :
					     offsetof(Elf32_Ehdr, e_shentsize));
	uint64_t headers = wide ? get(data + offsetof(Elf64_Ehdr, e_shoff), 8) :
				  get(data + offsetof(Elf32_Ehdr, e_shoff), 4);
	unsigned entry = (unsigned)get(tail, 2), count = (unsigned)get(tail + 2, 2);

	if (headers > size ||
	    !read_section(data, size, headers, entry, (unsigned)get(tail + 4, 2), &names, &name))
		return false;
	for (unsigned i = 0; i < count; i++) {
		if (!read_section(data, size, headers, entry, i, &section, &name) ||
		    name >= names.size || !section.size ||
		    !memchr(data + names.offset + name, 0, names.size - name) ||
		    !is_interesting((const char *)data + names.offset + name))
			continue;
		/* Each of the n so far with the same probability. */
		n++;
		seed = seed * 1103515245u + 12345u;
		if ((seed >> 16) % n == 0)
			*found = section;
	}
	return n;
}

/* Changes the section in place; one that has grown goes to the end of the file. */
static size_t mutate_section(uint8_t *data, size_t size, size_t max_size, struct section *section)
{
	size_t old = section->size, room = old + max_size - size;
	uint8_t *bytes = malloc(room);

	if (!bytes)
		return size;
	memcpy(bytes, data + section->offset, old);

	size_t now = LLVMFuzzerMutate(bytes, old, room < old + 64 ? room : old + 64);

	if (now > old && section->offset + old != size) {
		if (now > max_size - size) {
			now = old;	/* no room behind the file */
		} else {
			section->offset = size;
			put(data + section->offset_at, size, section->wide ? 8 : 4);
		}
	}
	put(data + section->size_at, now, section->wide ? 8 : 4);
	memcpy(data + section->offset, bytes, now);
	free(bytes);
	return section->offset + now > size ? section->offset + now : size;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	struct section section;

	if (seed % 4 == 0 || !find_section(data, size, seed / 4, &section))
		return LLVMFuzzerMutate(data, size, max_size);
	return mutate_section(data, size, max_size, &section);
}
