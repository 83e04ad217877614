// SPDX-License-Identifier: MIT
/*
 * What of a program a preloaded library does not reach: programs without a dynamic linker,
 * with rights of their own, or that make system calls themselves.
 *
 * Calls by an instruction are looked for in the code: the number of one of the twelve, put where
 * such a number has to be, a few bytes before. That is a guess, and said to be one.
 */
#include "sysvipc.h"

#include "complain.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Between a number and the call that it is for. */
#define NEAR 32
#define SCRIPT_DEPTH 4

static const struct {
	const char *name;
	int number;
} calls[] = {
	{ "semget", SYS_semget },	  { "semop", SYS_semop },   { "semctl", SYS_semctl },
	{ "semtimedop", SYS_semtimedop }, { "msgget", SYS_msgget }, { "msgsnd", SYS_msgsnd },
	{ "msgrcv", SYS_msgrcv },	  { "msgctl", SYS_msgctl }, { "shmget", SYS_shmget },
	{ "shmat", SYS_shmat },		  { "shmdt", SYS_shmdt },   { "shmctl", SYS_shmctl },
};

#define N_CALLS (sizeof(calls) / sizeof(calls[0]))

/* What was found out about a file. */
struct findings {
	const char *path;
	int obstacles;
	bool calls[N_CALLS]; /* imported by name */
	bool any, by_number; /* syscall() */
	bool raw[N_CALLS];
};

static void obstacle(struct findings *f, const char *what)
{
	f->obstacles++;
	printf("%s: not covered: %s\n", f->path, what);
}

/* ---- Rights ---- */

static void check_rights(struct findings *f, int fd)
{
	char value[64];
	struct stat stat;

	if (!fstat(fd, &stat) && (stat.st_mode & S_ISUID))
		obstacle(f, "it is setuid, and the dynamic linker preloads no library from a "
			    "directory of one's own into it");
	else if (!fstat(fd, &stat) && (stat.st_mode & S_ISGID))
		obstacle(f, "it is setgid, and the dynamic linker preloads no library from a "
			    "directory of one's own into it");
	if (fgetxattr(fd, "security.capability", value, sizeof(value)) > 0)
		obstacle(f, "it has capabilities of its own, and the dynamic linker preloads no "
			    "library into it; setcap -r takes them away");
}

/* ---- What it imports ---- */

static void note_import(struct findings *f, const char *name)
{
	for (size_t i = 0; i < N_CALLS; i++) {
		if (!strcmp(name, calls[i].name))
			f->calls[i] = f->any = true;
	}
	if (!strcmp(name, "syscall"))
		f->by_number = true;
}

static void read_symbols(struct findings *f, Elf *elf, Elf_Scn *section, const GElf_Shdr *header)
{
	Elf_Data *data = elf_getdata(section, NULL);
	GElf_Sym symbol;

	if (!data || !header->sh_entsize)
		return;
	for (int i = 0; gelf_getsym(data, i, &symbol); i++) {
		const char *name = elf_strptr(elf, header->sh_link, symbol.st_name);

		if (name && symbol.st_shndx == SHN_UNDEF)
			note_import(f, name);
	}
}

/* ---- What it calls by number ---- */

#if defined(__x86_64__)
static bool called_near(const unsigned char *code, size_t left)
{
	for (size_t i = 0; i + 2 <= left && i < NEAR; i++) {
		/* syscall */
		if (code[i] == 0x0f && code[i + 1] == 0x05)
			return true;
		/* ret: another function begins. */
		if (code[i] == 0xc3)
			return false;
	}
	return false;
}

/* mov $number, %eax a few instructions before. */
static void scan(struct findings *f, const unsigned char *code, size_t bytes)
{
	for (size_t i = 0; i + 5 <= bytes; i++) {
		uint32_t number;

		if (code[i] != 0xb8)
			continue;
		memcpy(&number, code + i + 1, sizeof(number));
		for (size_t k = 0; k < N_CALLS; k++) {
			if (number == (uint32_t)calls[k].number &&
			    called_near(code + i + 5, bytes - i - 5))
				f->raw[k] = true;
		}
	}
}
#else
static void scan(struct findings *f, const unsigned char *code, size_t bytes)
{
	(void)f;
	(void)code;
	(void)bytes;
}
#endif

static void scan_code(struct findings *f, Elf_Scn *section, const GElf_Shdr *header)
{
	Elf_Data *data = NULL;

	if (header->sh_type != SHT_PROGBITS || !(header->sh_flags & SHF_EXECINSTR))
		return;
	while ((data = elf_getdata(section, data)) != NULL) {
		if (data->d_buf)
			scan(f, data->d_buf, data->d_size);
	}
}

/* ---- An ELF file ---- */

static bool has_interpreter(Elf *elf)
{
	size_t n;

	if (elf_getphdrnum(elf, &n))
		return false;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr header;

		if (gelf_getphdr(elf, (int)i, &header) && header.p_type == PT_INTERP)
			return true;
	}
	return false;
}

static bool of_this_machine(const GElf_Ehdr *header)
{
#if defined(__x86_64__)
	return header->e_machine == EM_X86_64 && header->e_ident[EI_CLASS] == ELFCLASS64;
#elif defined(__aarch64__)
	return header->e_machine == EM_AARCH64;
#else
	return true;
#endif
}

static void check_sections(struct findings *f, Elf *elf)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(elf, section)) != NULL) {
		if (gelf_getshdr(section, &header) && header.sh_type == SHT_DYNSYM)
			read_symbols(f, elf, section, &header);
	}
	while ((section = elf_nextscn(elf, section)) != NULL) {
		if (gelf_getshdr(section, &header))
			scan_code(f, section, &header);
	}
}

static void list(const struct findings *f, const bool *which, const char *before)
{
	printf("%s: %s", f->path, before);
	for (size_t i = 0, n = 0; i < N_CALLS; i++) {
		if (which[i])
			printf("%s%s", n++ ? ", " : " ", calls[i].name);
	}
	putchar('\n');
}

static void tell(struct findings *f)
{
	bool raw = false;

	for (size_t i = 0; i < N_CALLS; i++)
		raw |= f->raw[i];
	if (f->any)
		list(f, f->calls, "calls by name");
	else if (!raw)
		printf("%s: calls none of the twelve itself; libraries that it needs may, and "
		       "they are covered as it is\n",
		       f->path);
	if (raw) {
		list(f, f->raw, "not covered: seems to make these calls without the C library:");
		printf("%s: hotline run --sysvipc --raw-syscalls covers those as well\n", f->path);
		f->obstacles++;
	} else if (f->by_number) {
		printf("%s: uses syscall(); should it make one of the twelve calls so, it takes "
		       "--raw-syscalls\n",
		       f->path);
	}
}

static int check_elf(struct findings *f, Elf *elf)
{
	GElf_Ehdr header;

	if (!gelf_getehdr(elf, &header) || (header.e_type != ET_EXEC && header.e_type != ET_DYN)) {
		complain("%s: is no program", f->path);
		return -1;
	}
	if (!of_this_machine(&header)) {
		obstacle(f, "it is for another kind of processor or of another word size than this "
			    "copy of the library");
		return 0;
	}
	check_sections(f, elf);
	if (!has_interpreter(elf) && header.e_type == ET_EXEC)
		obstacle(f, "it is linked statically, so that no library can be preloaded");
	else if (!has_interpreter(elf) && !f->any)
		obstacle(f, "it has no dynamic linker: linked statically, or a library");
	if (!f->obstacles)
		tell(f);
	return 0;
}

/* ---- A script ---- */

static int check_file(const char *path, int depth);

/* @line begins behind the #!. */
static int check_script(const char *path, char *line, int depth)
{
	char *end = strchr(line, '\n');
	char *interpreter;
	int rc;

	if (end)
		*end = '\0';
	while (isspace((unsigned char)*line))
		line++;
	end = line + strcspn(line, " \t");
	/* #!/usr/bin/env NAME */
	if (!strncmp(line, "/usr/bin/env", (size_t)(end - line)) && end - line == 12 && *end) {
		line = end + strspn(end, " \t");
		end = line + strcspn(line, " \t");
	}
	*end = '\0';
	printf("%s: is a script of %s\n", path, line);
	interpreter = find_program(line);
	rc = interpreter ? check_file(interpreter, depth + 1) : -1;
	free(interpreter);
	return rc;
}

static int check_file(const char *path, int depth)
{
	struct findings f = { .path = path };
	char begin[256] = "";
	Elf *elf;
	int fd = open(path, O_RDONLY | O_CLOEXEC), rc;

	if (fd < 0 || read(fd, begin, sizeof(begin) - 1) < 0) {
		complain("%s: %s", path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return -1;
	}
	if (!strncmp(begin, "#!", 2) && depth < SCRIPT_DEPTH) {
		close(fd);
		return check_script(path, begin + 2, depth);
	}
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf && elf_kind(elf) == ELF_K_ELF) {
		check_rights(&f, fd);
		rc = check_elf(&f, elf);
	} else {
		complain("%s: is neither a program nor a script", path);
		rc = -1;
	}
	elf_end(elf);
	close(fd);
	return rc ? rc : f.obstacles;
}

int sysvipc_check(const char *path)
{
	int obstacles = check_file(path, 0);

	if (!obstacles)
		printf("%s: covered\n", path);
	return obstacles;
}
