// SPDX-License-Identifier: MIT
/*
 * From a file to its DWARF units, and these to threads.
 *
 * libdwfl opens the file, follows it to a separate debug file, relocates objects
 * and splits archives.  A Dwarf handle is not safe for two threads, so each
 * thread has handles of its own over the same ELF image, takes the next unit
 * from a common counter, and reads into a store of its own; the stores are
 * poured together at the end.  Types are ordered by the unit and place that
 * first defined them, so the result does not depend on the number of threads.
 */
#include "dwarf_reader.h"
#include "dwp.h"

#include <elfutils/libdwfl.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define MOST_THREADS 8u
/* Below this many bytes of .debug_info a thread costs more than it brings. */
#define BYTES_A_THREAD (512u << 10)

struct dwarf_source {
	Dwfl *dwfl;
	char *debug_path;
	Dwfl_Callbacks callbacks;
	Dwarf **module; /* the DWARF of the file, or of each member of an archive: libdwfl's */
	uint32_t n_modules, n_units;
	Dwarf **second; /* handles of threads beyond the first, ended at the end */
	uint32_t n_second, second_room;
	struct hl_dwp **package;
	uint32_t n_packages;
	uint32_t missing; /* split units whose .dwo was not found */
	char missing_name[200];
	uint64_t info_bytes;
};

static void close_source(void *arg)
{
	struct dwarf_source *source = arg;

	for (uint32_t i = 0; i < source->n_second; i++)
		dwarf_end(source->second[i]);
	for (uint32_t i = 0; i < source->n_packages; i++)
		hl_dwp_close(source->package[i]);
	if (source->dwfl)
		dwfl_end(source->dwfl);
	free(source->package);
	free(source->second);
	free(source->module);
	free(source->debug_path);
	free(source);
}

/* ---- Units, in order ---- */

/* Goes over the units of all modules; each thread has one. */
struct unit_cursor {
	const struct dwarf_source *source;
	Dwarf **dwarf; /* this thread's handle of each module */
	uint32_t module;
	uint32_t next; /* number of the unit that advance() comes to */
	Dwarf_CU *cu;
	Dwarf_Die unit, split;
	uint8_t type;
};

/* Steps to the next unit; false when there is none. */
static bool advance(struct unit_cursor *c)
{
	while (c->module < c->source->n_modules) {
		Dwarf *dwarf = c->dwarf[c->module];

		if (dwarf && dwarf_get_units(dwarf, c->cu, &c->cu, NULL, &c->type, &c->unit,
					     &c->split) == 0) {
			c->next++;
			return true;
		}
		c->module++;
		c->cu = NULL;
	}
	return false;
}

static void note_missing(struct dwarf_source *source, Dwarf_Die *unit)
{
	Dwarf_Attribute attr;
	const char *name = dwarf_formstring(dwarf_attr(unit, DW_AT_dwo_name, &attr));

	if (!name)
		name = dwarf_formstring(dwarf_attr(unit, DW_AT_GNU_dwo_name, &attr));
	if (!source->missing++)
		snprintf(source->missing_name, sizeof(source->missing_name), "%s",
			 name ? name : "?");
}

static void count_units(struct dwarf_source *source, Dwarf **dwarf)
{
	struct unit_cursor c = { .source = source, .dwarf = dwarf };

	for (; advance(&c); source->n_units = c.next)
		if (c.type == DW_UT_skeleton && !dwarf_tag(&c.split))
			note_missing(source, &c.unit);
}

/* ---- Threads ---- */

struct job {
	struct dwarf_source *source;
	uint32_t next; /* atomic: the unit that is taken next */
	uint32_t stop; /* atomic: a thread failed, the others need not go on */
	const struct hl_types_options *options;
};

struct worker {
	struct job *job;
	struct hl_store store;
	struct hl_dwarf_reader reader;
	Dwarf **dwarf;
	pthread_t thread;
	bool started, reports;
	int rc;
};

/* The types that a .dwo keeps in type units beside its one unit. */
static int read_split_types(struct worker *w, Dwarf_Die *split, uint32_t order)
{
	Dwarf *dwarf = dwarf_cu_getdwarf(split->cu);
	Dwarf_CU *cu = NULL;
	Dwarf_Die unit;
	uint8_t type;
	int rc = 0;

	while (!rc && dwarf_get_units(dwarf, cu, &cu, NULL, &type, &unit, NULL) == 0)
		if (type == DW_UT_split_type || type == DW_UT_type)
			rc = hl_dwarf_read_unit(&w->reader, &unit, order);
	return rc;
}

static int read_one(struct worker *w, struct unit_cursor *c)
{
	uint32_t order = c->next - 1;

	if (c->type != DW_UT_skeleton)
		return hl_dwarf_read_unit(&w->reader, &c->unit, order);
	if (!dwarf_tag(&c->split))
		return 0;
	int rc = hl_dwarf_read_unit(&w->reader, &c->split, order);

	return rc ? rc : read_split_types(w, &c->split, order);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct job *job = w->job;
	struct unit_cursor c = { .source = job->source, .dwarf = w->dwarf };
	const struct hl_types_options *o = job->options;

	while (!w->rc && !__atomic_load_n(&job->stop, __ATOMIC_RELAXED)) {
		/* Relaxed: the number itself is all that is shared. */
		uint32_t unit = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED);

		while (c.next <= unit && advance(&c))
			;
		if (c.next <= unit)
			break;
		w->rc = read_one(w, &c);
		if (w->reports)
			o->progress(o->progress_arg, unit + 1, job->source->n_units);
	}
	if (w->rc)
		__atomic_store_n(&job->stop, 1, __ATOMIC_RELAXED);
	return NULL;
}

/* A second handle over the image of a module that libdwfl has opened, found and
 * relocated; NULL where there can be none. */
static Dwarf *second_handle(struct dwarf_source *source, Dwarf *first)
{
	if (source->n_second == source->second_room) {
		uint32_t room = source->second_room ? source->second_room * 2 : 8;
		Dwarf **more = realloc(source->second, room * sizeof(*more));

		if (!more)
			return NULL;
		source->second = more;
		source->second_room = room;
	}
	Dwarf *dwarf = dwarf_begin_elf(dwarf_getelf(first), DWARF_C_READ, NULL);

	if (dwarf)
		source->second[source->n_second++] = dwarf;
	return dwarf;
}

/* Handles of all modules for one more thread; NULL when it cannot have them. */
static Dwarf **second_handles(struct dwarf_source *source)
{
	Dwarf **dwarf = calloc(source->n_modules, sizeof(Dwarf *));

	for (uint32_t i = 0; dwarf && i < source->n_modules; i++) {
		dwarf[i] = second_handle(source, source->module[i]);
		if (!dwarf[i]) {
			free(dwarf);
			return NULL;
		}
	}
	return dwarf;
}

static unsigned threads_wanted(const struct dwarf_source *source,
			       const struct hl_types_options *options)
{
	uint64_t most = source->info_bytes / BYTES_A_THREAD + 1;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned n = options->threads ? options->threads : cpus > 0 ? (unsigned)cpus : 1;

	if (n > MOST_THREADS)
		n = MOST_THREADS;
	if (n > source->n_units)
		n = source->n_units;
	if (!options->threads && n > most)
		n = (unsigned)most;
	return n ? n : 1;
}

static int start_worker(struct worker *w, struct job *job, Dwarf **dwarf)
{
	w->job = job;
	w->dwarf = dwarf;
	int rc = hl_store_init(&w->store);

	return rc ? rc : hl_dwarf_reader_init(&w->reader, &w->store);
}

/* Runs the workers: the first in this thread, the others in threads of their own.
 * Without room for another thread the first reads everything. */
static void run_workers(struct worker *worker, unsigned n)
{
	for (unsigned i = 1; i < n; i++)
		worker[i].started = !pthread_create(&worker[i].thread, NULL, work, &worker[i]);
	work(&worker[0]);
	for (unsigned i = 1; i < n; i++)
		if (worker[i].started)
			pthread_join(worker[i].thread, NULL);
}

static int pour_workers(struct hl_types_whole *whole, struct worker *worker, unsigned n,
			struct hl_error *err)
{
	for (unsigned i = 0; i < n; i++) {
		int rc = worker[i].rc;

		if (rc)
			return worker[i].reader.why ? hl_fail(err, rc, "%s", worker[i].reader.why)
						    : hl_fail_nomem(err);
	}
	whole->store = worker[0].store;
	worker[0].store = (struct hl_store){ 0 };
	whole->more = calloc(n, sizeof(*whole->more));
	if (!whole->more)
		return hl_fail_nomem(err);
	for (unsigned i = 1; i < n; i++) {
		int rc = hl_store_pour(&whole->store, &worker[i].store);

		whole->more[whole->n_more++] = worker[i].store;
		worker[i].store = (struct hl_store){ 0 };
		if (rc)
			return hl_fail(err, rc, "no memory to put the types of %u units together",
				       whole->types.n_units);
	}
	return 0;
}

static int read_units(struct hl_types_whole *whole, struct dwarf_source *source, Dwarf **first,
		      const struct hl_types_options *options, struct hl_error *err)
{
	unsigned wanted = threads_wanted(source, options), n = 0;
	struct worker *worker = calloc(wanted, sizeof(*worker));
	struct job job = { .source = source, .options = options };
	int rc = worker ? 0 : -ENOMEM;

	for (; !rc && n < wanted; n++) {
		Dwarf **dwarf = n ? second_handles(source) : first;

		if (!dwarf)
			break;
		rc = start_worker(&worker[n], &job, dwarf);
	}
	if (rc) {
		hl_fail_nomem(err);
	} else {
		worker[0].reports = options->progress;
		run_workers(worker, n);
		rc = pour_workers(whole, worker, n, err);
	}
	for (unsigned i = 0; i < n; i++) {
		hl_dwarf_reader_free(&worker[i].reader);
		hl_store_free(&worker[i].store);
		if (i)
			free(worker[i].dwarf);
	}
	free(worker);
	return rc;
}

/* ---- Modules ---- */

static uint64_t info_size(Elf *elf)
{
	Elf_Scn *section = NULL;
	uint64_t bytes = 0;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return 0;
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		const char *name;

		if (!gelf_getshdr(section, &header))
			continue;
		name = elf_strptr(elf, names, header.sh_name);
		if (name && !strncmp(name, ".debug_info", 11))
			bytes += header.sh_size;
	}
	return bytes;
}

static int add_module(Dwfl_Module *mod, void **user, const char *name, Dwarf_Addr start, void *arg)
{
	struct dwarf_source *source = arg;
	Dwarf_Addr bias;
	Dwarf *dwarf = dwfl_module_getdwarf(mod, &bias);

	(void)user;
	(void)name;
	(void)start;
	if (!dwarf)
		return DWARF_CB_OK;

	Dwarf **more = realloc(source->module, (source->n_modules + 1) * sizeof(*more));

	if (!more)
		return DWARF_CB_ABORT;
	source->module = more;
	source->module[source->n_modules++] = dwarf;
	source->info_bytes += info_size(dwarf_getelf(dwarf));
	return DWARF_CB_OK;
}

static Dwarf **first_handles(const struct dwarf_source *source)
{
	Dwarf **dwarf = calloc(source->n_modules + 1, sizeof(Dwarf *));

	for (uint32_t i = 0; dwarf && i < source->n_modules; i++)
		dwarf[i] = source->module[i];
	return dwarf;
}

/* What the target's compiler does with scalars. */
static void note_machine(struct hl_types *types, Elf *elf)
{
	GElf_Ehdr header;

	types->address_size = 8;
	types->max_align_log2 = 4;
	if (!elf || !gelf_getehdr(elf, &header))
		return;
	types->machine = header.e_machine;
	types->big_endian = header.e_ident[EI_DATA] == ELFDATA2MSB;
	if (header.e_ident[EI_CLASS] == ELFCLASS32)
		types->address_size = 4;
	switch (header.e_machine) {
	case EM_386:
		types->max_align_log2 = 2;
		break;
	case EM_68K:
		types->max_align_log2 = 1;
		break;
	case EM_ARM:
	case EM_MIPS:
	case EM_S390:
	case EM_PPC:
		types->max_align_log2 = 3;
		break;
	default:
		break;
	}
}

static int open_modules(struct dwarf_source *source, const char *path, int fd,
			const struct hl_types_options *options, struct hl_error *err)
{
	if (options->debug_dir) {
		if (asprintf(&source->debug_path, ":.debug:%s", options->debug_dir) < 0) {
			source->debug_path = NULL;
			return hl_fail_nomem(err);
		}
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

	int own = dup(fd);

	if (own < 0)
		return hl_fail(err, -errno, "%s: %s", path, strerror(errno));
	if (!dwfl_report_offline(source->dwfl, path, path, own)) {
		close(own);
		return hl_fail(err, -EBADMSG, "%s: damaged: %s", path, dwfl_errmsg(-1));
	}
	dwfl_report_end(source->dwfl, NULL, NULL);
	if (dwfl_getmodules(source->dwfl, add_module, source, 0) < 0)
		return hl_fail_nomem(err);
	return 0;
}

static int nothing_there(const struct dwarf_source *source, const char *path, struct hl_error *err)
{
	if (source->missing)
		return hl_fail(
			err, -ENODATA,
			"%s: its types are in split files that were not found (%u, the first is "
			"%s); keep the .dwo files where they were built, or pack them with dwp",
			path, source->missing, source->missing_name);
	return hl_fail(
		err, -ENODATA,
		"%s: no type information; compile with -g, or install its separate debug file "
		"(a -dbgsym or -debuginfo package)",
		path);
}

/* Adds a package's types to those that are there. */
static int read_package(struct hl_types_whole *whole, struct dwarf_source *source, const char *path,
			struct hl_error *err)
{
	struct hl_dwp **more = realloc(source->package, (source->n_packages + 1) * sizeof(*more));

	if (!more)
		return hl_fail_nomem(err);
	source->package = more;

	struct hl_dwp *package;
	int rc = hl_dwp_open(&package, path, err);

	if (rc)
		return rc;
	source->package[source->n_packages++] = package;

	struct hl_dwarf_reader reader;

	rc = hl_dwarf_reader_init(&reader, &whole->store);
	if (rc)
		return hl_fail_nomem(err);
	rc = hl_dwp_read(package, &reader, source->n_units, &whole->types.n_units, err);
	hl_dwarf_reader_free(&reader);
	return rc;
}

/* The package that belongs to a program stands beside it: PROGRAM.dwp. */
static int read_missing(struct hl_types_whole *whole, struct dwarf_source *source, const char *path,
			struct hl_error *err)
{
	char *name;

	if (asprintf(&name, "%s.dwp", path) < 0)
		return hl_fail_nomem(err);
	int rc = 0;

	if (!access(name, R_OK)) {
		rc = read_package(whole, source, name, err);
		source->missing = 0;
	}
	free(name);
	return rc;
}

static int read_source(struct hl_types_whole *whole, struct dwarf_source *source, const char *path,
		       const struct hl_types_options *options, struct hl_error *err)
{
	Dwarf **first = first_handles(source);

	if (!first)
		return hl_fail_nomem(err);
	count_units(source, first);
	whole->types.n_units = source->n_units;
	if (source->n_modules)
		note_machine(&whole->types, dwarf_getelf(source->module[0]));

	int rc = read_units(whole, source, first, options, err);

	free(first);
	if (!rc && source->missing)
		rc = read_missing(whole, source, path, err);
	if (!rc && source->missing)
		hl_store_skip(&whole->store, "split units whose .dwo file was not found");
	return rc;
}

int hl_dwarf_read(struct hl_types_whole *whole, const char *path, int fd,
		  const struct hl_types_options *options, struct hl_error *err)
{
	struct dwarf_source *source = calloc(1, sizeof(*source));

	if (!source)
		return hl_fail_nomem(err);
	whole->source = source;
	whole->close_source = close_source;

	int rc;

	if (hl_dwp_is_package(fd)) {
		note_machine(&whole->types, NULL);
		rc = hl_store_init(&whole->store) ? hl_fail_nomem(err) : 0;
		return rc ? rc : read_package(whole, source, path, err);
	}
	rc = open_modules(source, path, fd, options, err);
	if (rc)
		return rc;
	rc = read_source(whole, source, path, options, err);
	if (rc)
		return rc;
	for (uint32_t id = 1; id < whole->store.n_types; id++)
		if (whole->store.order[id] != HL_NO_ORDER)
			return 0;
	return whole->types.n_units > source->missing
		       ? hl_fail(err, -ENODATA,
				 "%s: its debug information defines no struct, class or union "
				 "(%u units read); compilers leave out types that no code uses: "
				 "-fno-eliminate-unused-debug-types (gcc) or -fstandalone-debug (clang) keeps them",
				 path, whole->types.n_units)
		       : nothing_there(source, path, err);
}
