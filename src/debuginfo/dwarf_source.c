// SPDX-License-Identifier: MIT
/*
 * libdwfl opens the file, follows it to a separate debug file, relocates objects and
 * splits archives.  What it does not do is done here: archives with other members than
 * objects, objects without a symbol table (split DWARF), type units in groups.
 */
#include "dwarf_source.h"
#include "fence.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- Handles ---- */

Dwarf *hl_dwarf_handles_open(struct hl_dwarf_handles *handles, Elf *elf, bool own)
{
	Dwarf *dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);

	if (dwarf && handles->n == handles->room) {
		uint32_t room = handles->room ? handles->room * 2 : 8;
		struct hl_dwarf_handle *more = realloc(handles->at, room * sizeof(*more));

		if (more) {
			handles->at = more;
			handles->room = room;
		} else {
			dwarf_end(dwarf);
			dwarf = NULL;
		}
	}
	if (dwarf)
		handles->at[handles->n++] = (struct hl_dwarf_handle){ dwarf, own ? elf : NULL };
	else if (own)
		elf_end(elf);
	return dwarf;
}

void hl_dwarf_handles_end(struct hl_dwarf_handles *handles)
{
	while (handles->n) {
		struct hl_dwarf_handle *handle = &handles->at[--handles->n];

		dwarf_end(handle->dwarf);
		if (handle->elf)
			elf_end(handle->elf);
	}
	free(handles->at);
	*handles = (struct hl_dwarf_handles){ 0 };
}

/* ---- Sections ---- */

static const char *section_name(Elf *elf, size_t names, const GElf_Shdr *header)
{
	const char *name = elf_strptr(elf, names, header->sh_name);

	return name ? name : "";
}

static uint64_t info_size(Elf *elf)
{
	Elf_Scn *section = NULL;
	uint64_t bytes = 0;
	GElf_Shdr header;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return 0;
	while ((section = elf_nextscn(elf, section))) {
		if (!gelf_getshdr(section, &header) || header.sh_type == SHT_NOBITS)
			continue;
		const char *name = section_name(elf, names, &header);

		if (!strncmp(name, ".debug_info", 11) || !strncmp(name, ".zdebug_info", 12))
			bytes += header.sh_size;
	}
	return bytes;
}

static bool has_relocations(Elf *elf)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &header) &&
		    (header.sh_type == SHT_REL || header.sh_type == SHT_RELA))
			return true;
	return false;
}

/* ---- Modules ---- */

static void note_failure(struct hl_dwarf_source *source, const char *why)
{
	if (!source->n_failed++)
		snprintf(source->why, sizeof(source->why), "%s", why ? why : "not known");
}

/* The DWARF of the module, however it must be opened; NULL when it has none. */
static Dwarf *open_module(struct hl_dwarf_source *source, Dwfl_Module *mod)
{
	GElf_Addr bias;
	Dwarf *dwarf = dwfl_module_getdwarf(mod, &bias);
	const char *why = dwarf ? NULL : dwfl_errmsg(-1);
	Elf *elf = dwarf ? dwarf_getelf(dwarf) : dwfl_module_getelf(mod, &bias);
	Elf *merged;

	if (!elf)
		return NULL;
	if (!dwarf && info_size(elf) && !has_relocations(elf)) {
		dwarf = hl_dwarf_handles_open(&source->own, elf, false);
		if (!dwarf)
			why = dwarf_errmsg(-1);
	}
	if (!dwarf) {
		if (info_size(elf))
			note_failure(source, why);
		return NULL;
	}
	hl_cut_line_tables(elf);
	merged = hl_elf_with_type_units(elf);
	return merged ? hl_dwarf_handles_open(&source->own, merged, true) : dwarf;
}

static int add_module(Dwfl_Module *mod, void **user, const char *name, Dwarf_Addr start, void *arg)
{
	struct hl_dwarf_source *source = arg;
	Dwarf *dwarf = open_module(source, mod);
	Dwarf **more;

	(void)user;
	(void)name;
	(void)start;
	if (!dwarf)
		return DWARF_CB_OK;
	more = realloc(source->module, (source->n_modules + 1) * sizeof(*more));
	if (!more)
		return DWARF_CB_ABORT;
	source->module = more;
	source->module[source->n_modules++] = dwarf;
	source->info_bytes += info_size(dwarf_getelf(dwarf));
	return DWARF_CB_OK;
}

/* A file of its own, without a name, for a member of an archive. */
static int extract(Elf *member)
{
	size_t size, done = 0;
	const char *image = elf_rawfile(member, &size);
	int fd = image ? memfd_create("member", MFD_CLOEXEC) : -1;

	while (fd >= 0 && done < size) {
		ssize_t n = write(fd, image + done, size - done);

		if (n <= 0) {
			close(fd);
			fd = -1;
		} else {
			done += (size_t)n;
		}
	}
	return fd;
}

/* libdwfl refuses an archive as a whole when one member is no object.  Reports those
 * that are; how many there were. */
static unsigned report_members(struct hl_dwarf_source *source, const char *path, int fd)
{
	Elf *archive = elf_begin(fd, ELF_C_READ_MMAP, NULL), *member;
	bool is_archive = archive && elf_kind(archive) == ELF_K_AR;
	Elf_Cmd next = ELF_C_READ_MMAP;
	unsigned n = 0;

	while (is_archive && (member = elf_begin(fd, next, archive))) {
		const Elf_Arhdr *header = elf_getarhdr(member);
		int own = elf_kind(member) == ELF_K_ELF ? extract(member) : -1;

		if (own >= 0 &&
		    dwfl_report_offline(source->dwfl, header ? header->ar_name : path, path, own))
			n++;
		else if (own >= 0)
			close(own);
		next = elf_next(member);
		elf_end(member);
	}
	elf_end(archive);
	return n;
}

static int report_file(struct hl_dwarf_source *source, const char *path, int fd,
		       struct hl_error *err)
{
	int own = dup(fd);

	if (own < 0)
		return hl_fail(err, -errno, "%s: %s", path, strerror(errno));
	if (!dwfl_report_offline(source->dwfl, path, path, own)) {
		const char *why = dwfl_errmsg(-1);

		close(own);
		if (!report_members(source, path, fd))
			return hl_fail(err, -EBADMSG, "%s: damaged: %s", path, why);
	}
	dwfl_report_end(source->dwfl, NULL, NULL);
	return 0;
}

int hl_dwarf_source_open(struct hl_dwarf_source *source, const char *path, int fd,
			 const struct hl_types_options *options, struct hl_error *err)
{
	int rc;

	if (options->debug_dir &&
	    asprintf(&source->debug_path, ":.debug:%s", options->debug_dir) < 0) {
		source->debug_path = NULL;
		return hl_fail_nomem(err);
	}
	source->callbacks = (Dwfl_Callbacks){
		.find_elf = dwfl_build_id_find_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo,
		.section_address = dwfl_offline_section_address,
		.debuginfo_path = source->debug_path ? &source->debug_path : NULL,
	};
	source->dwfl = dwfl_begin(&source->callbacks);
	if (!source->dwfl)
		return hl_fail_nomem(err);
	rc = report_file(source, path, fd, err);
	if (rc)
		return rc;
	if (dwfl_getmodules(source->dwfl, add_module, source, 0) < 0)
		return hl_fail_nomem(err);
	for (uint32_t i = 0; !rc && i < source->n_modules; i++)
		rc = hl_fence_units(source->module[i], path, err);
	return rc;
}

void hl_dwarf_source_close(struct hl_dwarf_source *source)
{
	hl_dwarf_handles_end(&source->own);
	if (source->dwfl)
		dwfl_end(source->dwfl);
	free(source->module);
	free(source->debug_path);
	*source = (struct hl_dwarf_source){ 0 };
}
