// SPDX-License-Identifier: MIT
/*
 * DWARF units, shared out among threads.
 *
 * A Dwarf handle is not safe for two threads, so each thread has handles of its own
 * over the same ELF image, takes the next unit from a common counter, and reads into
 * a store of its own; the stores are poured together at the end.  Types are ordered
 * by the unit and place that first defined them, so the result does not depend on the
 * number of threads.
 */
#include "dwarf_reader.h"
#include "dwarf_source.h"
#include "dwp.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define MOST_THREADS 8u
/* Below this many bytes of .debug_info a thread costs more than it brings. */
#define BYTES_A_THREAD (512u << 10)
/* Units that other files share come behind all others. */
#define SHARED_ORDER ((uint64_t)1 << 63)

/* What names point into, kept as long as they. */
struct kept {
	struct hl_dwarf_source source;
	struct hl_dwarf_handles *handles; /* of each thread */
	struct hl_dwp **package; /* of each thread, NULL: it needed none */
	unsigned n_threads;
};

static void close_kept(void *arg)
{
	struct kept *kept = arg;

	for (unsigned i = 0; i < kept->n_threads; i++) {
		hl_dwarf_handles_end(&kept->handles[i]);
		hl_dwp_close(kept->package[i]);
	}
	free(kept->handles);
	free(kept->package);
	hl_dwarf_source_close(&kept->source);
	free(kept);
}

/* ---- Units, in order ---- */

/* Goes over the units of all modules; each thread has one. */
struct unit_cursor {
	Dwarf **dwarf; /* this thread's handle of each module */
	uint32_t n_modules, module;
	uint32_t next; /* number of the unit that advance() comes to */
	Dwarf_CU *cu;
	Dwarf_Die unit;
	uint8_t type;
};

/* Steps to the next unit; false when there is none. */
static bool advance(struct unit_cursor *c)
{
	while (c->module < c->n_modules) {
		if (dwarf_get_units(c->dwarf[c->module], c->cu, &c->cu, NULL, &c->type, &c->unit,
				    NULL) == 0) {
			c->next++;
			return true;
		}
		c->module++;
		c->cu = NULL;
	}
	return false;
}

/* The language of units that tell none: dwz makes such of what others had in common. */
static enum hl_language common_language(Dwarf *dwarf)
{
	enum hl_language language = HL_LANG_C;
	Dwarf_CU *cu = NULL;
	Dwarf_Die unit;

	while (language != HL_LANG_CXX && !dwarf_get_units(dwarf, cu, &cu, NULL, NULL, &unit, NULL))
		if (dwarf_tag(&unit) == DW_TAG_compile_unit && dwarf_srclang(&unit) != -1)
			language = hl_dwarf_language(&unit);
	return language;
}

/* ---- Threads ---- */

struct job {
	struct kept *kept;
	const char *path;
	const struct hl_types_options *options;
	char *package_path; /* of split units that are missed; NULL: there is none */
	bool is_package; /* the file is one itself: its units are read, no others */
	enum hl_language *language; /* of partial units in each module */
	uint32_t n_units;
	uint32_t first_order; /* unit 0 is the one of this number in all */
	uint32_t next; /* atomic: the unit that is taken next */
	uint32_t stop; /* atomic: a thread failed, the others need not go on */
};

struct worker {
	struct job *job;
	struct hl_store store;
	struct hl_dwarf_reader reader;
	Dwarf **dwarf; /* a handle of each module */
	struct hl_dwarf_handles *handles;
	struct hl_dwp **package;
	uint32_t missing; /* split units that were not found */
	uint32_t first_missing; /* number of the first of them ... */
	const char *missing_name; /* ... and its file */
	struct hl_error err;
	pthread_t thread;
	bool started, reports;
	int rc;
};

static int open_package(struct worker *w)
{
	if (*w->package)
		return 0;
	return hl_dwp_open(w->package, w->job->package_path, &w->err);
}

static uint64_t order_of(uint32_t unit)
{
	return (uint64_t)unit << 32;
}

static int reader_failed(struct worker *w, int rc)
{
	if (rc && w->reader.why)
		return hl_fail(&w->err, rc, "%s: %s", w->job->path, w->reader.why);
	return rc && !*w->err.text ? hl_fail_nomem(&w->err) : rc;
}

/* All units of a .dwo: the one that was compiled, and those of types beside it. */
static int read_units_of(struct worker *w, Dwarf *dwarf, uint32_t number)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die unit;
	int rc = 0;

	while (!rc && dwarf_get_units(dwarf, cu, &cu, NULL, NULL, &unit, NULL) == 0)
		rc = hl_dwarf_read_unit(&w->reader, &unit, order_of(number), false);
	return rc;
}

static const char *split_name(Dwarf_Die *skeleton)
{
	Dwarf_Attribute attr;
	const char *name = dwarf_formstring(dwarf_attr(skeleton, DW_AT_dwo_name, &attr));

	return name ? name : dwarf_formstring(dwarf_attr(skeleton, DW_AT_GNU_dwo_name, &attr));
}

static void note_missing(struct worker *w, Dwarf_Die *skeleton, uint32_t number)
{
	const char *name = split_name(skeleton), *kept = NULL;
	char text[300];

	if (!name)
		name = "a .dwo file";
	if (!w->missing++) {
		w->first_missing = number;
		w->missing_name = name;
		snprintf(text, sizeof(text), "the types in %s, which was not found", name);
		kept = hl_store_string(&w->store, text, strlen(text));
	}
	w->store.now = order_of(number);
	hl_store_skip(&w->store, kept ? kept : "types in a .dwo file that was not found");
}

/* A split unit that libdw has not found: in a package, or nowhere. */
static int read_packed(struct worker *w, Dwarf_Die *skeleton, uint32_t number)
{
	int rc = w->job->package_path ? open_package(w) : 1;

	if (!rc)
		rc = hl_dwp_read_split(*w->package, skeleton, &w->reader, order_of(number),
				       &w->err);
	if (rc <= 0)
		return rc;
	note_missing(w, skeleton, number);
	return 0;
}

/* The .dwo that the skeleton names, opened by us: libdw takes none whose units are in
 * several sections.  NULL: it is not there, or has no such. */
static Dwarf *open_scattered(struct worker *w, Dwarf_Die *skeleton)
{
	Dwarf_Attribute attr;
	const char *name = split_name(skeleton);
	const char *directory = dwarf_formstring(dwarf_attr(skeleton, DW_AT_comp_dir, &attr));
	Elf *elf, *merged = NULL;
	char *path = NULL;
	int fd = -1;

	if (name && asprintf(&path, "%s%s%s", directory && *name != '/' ? directory : "",
			     directory && *name != '/' ? "/" : "", name) >= 0)
		fd = open(path, O_RDONLY | O_CLOEXEC);
	free(path);
	elf = fd >= 0 ? elf_begin(fd, ELF_C_READ_MMAP, NULL) : NULL;
	if (elf)
		merged = hl_elf_with_type_units(elf);
	elf_end(elf);
	if (fd >= 0)
		close(fd);
	return merged ? hl_dwarf_handles_open(w->handles, merged, true) : NULL;
}

/* Whether the file is the one that the skeleton was split from. */
static bool belongs_to(Dwarf *dwarf, Dwarf_Die *skeleton)
{
	uint64_t wanted, id;
	Dwarf_CU *cu = NULL;
	uint8_t type;

	if (dwarf_cu_info(skeleton->cu, NULL, NULL, NULL, NULL, &wanted, NULL, NULL))
		return false;
	while (dwarf_get_units(dwarf, cu, &cu, NULL, &type, NULL, NULL) == 0)
		if (type == DW_UT_split_compile &&
		    !dwarf_cu_info(cu, NULL, NULL, NULL, NULL, &id, NULL, NULL) && id == wanted)
			return true;
	return false;
}

/* The handle that libdw has of the skeleton's .dwo, or one of ours; NULL: not found. */
static Dwarf *open_split(struct worker *w, Dwarf_Die *skeleton)
{
	Dwarf_Die split;
	Dwarf *dwarf;

	if (dwarf_cu_info(skeleton->cu, NULL, NULL, NULL, &split, NULL, NULL, NULL) ||
	    !dwarf_tag(&split)) {
		dwarf = open_scattered(w, skeleton);
		return dwarf && belongs_to(dwarf, skeleton) ? dwarf : NULL;
	}
	dwarf = dwarf_cu_getdwarf(split.cu);

	Elf *merged = hl_elf_with_type_units(dwarf_getelf(dwarf));

	return merged ? hl_dwarf_handles_open(w->handles, merged, true) : dwarf;
}

static int read_split(struct worker *w, Dwarf_Die *skeleton, uint32_t number)
{
	Dwarf *dwarf = open_split(w, skeleton);
	int rc;

	if (!dwarf)
		return read_packed(w, skeleton, number);
	w->reader.skeleton = skeleton;
	rc = read_units_of(w, dwarf, number);
	w->reader.skeleton = NULL;
	return rc;
}

static int read_one(struct worker *w, struct unit_cursor *c)
{
	uint32_t number = c->next - 1;

	w->reader.module = c->module;
	w->reader.partial_language = w->job->language[c->module];
	if (c->type == DW_UT_skeleton)
		return read_split(w, &c->unit, number);
	return hl_dwarf_read_unit(&w->reader, &c->unit, order_of(number), false);
}

static int read_number(struct worker *w, struct unit_cursor *c, uint32_t number)
{
	if (w->job->is_package) {
		int rc = open_package(w);

		return rc ? rc
			  : hl_dwp_read_unit(*w->package, number, &w->reader, order_of(number),
					     &w->err);
	}
	while (c->next <= number)
		if (!advance(c))
			return 0;
	return read_one(w, c);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct job *job = w->job;
	struct unit_cursor c = { .dwarf = w->dwarf, .n_modules = job->kept->source.n_modules };
	const struct hl_types_options *o = job->options;

	while (!w->rc && !__atomic_load_n(&job->stop, __ATOMIC_RELAXED)) {
		/* Relaxed: the number itself is all that is shared. */
		uint32_t number = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED);

		if (number >= job->n_units)
			break;
		w->rc = reader_failed(w, read_number(w, &c, number));
		if (w->reports)
			o->progress(o->progress_arg, number + 1, job->n_units);
	}
	if (w->rc)
		__atomic_store_n(&job->stop, 1, __ATOMIC_RELAXED);
	return NULL;
}

/* Handles of all modules for a thread: the first has those that opened the file, the
 * others their own over the same images, where libdwfl found and relocated them. */
static Dwarf **open_handles(struct hl_dwarf_source *source, struct hl_dwarf_handles *handles,
			    bool first)
{
	Dwarf **dwarf = calloc(source->n_modules + 1ul, sizeof(Dwarf *));

	for (uint32_t i = 0; dwarf && i < source->n_modules; i++) {
		dwarf[i] = first ? source->module[i]
				 : hl_dwarf_handles_open(handles, dwarf_getelf(source->module[i]),
							 false);
		if (!dwarf[i]) {
			free(dwarf);
			return NULL;
		}
	}
	return dwarf;
}

static unsigned threads_wanted(const struct job *job)
{
	uint64_t most = job->kept->source.info_bytes / BYTES_A_THREAD + 1;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned n = job->options->threads ? job->options->threads : cpus > 0 ? (unsigned)cpus : 1;

	if (n > MOST_THREADS)
		n = MOST_THREADS;
	if (n > job->n_units)
		n = job->n_units;
	if (!job->options->threads && n > most)
		n = (unsigned)most;
	return n ? n : 1;
}

static int start_worker(struct worker *w, struct job *job, unsigned number)
{
	struct kept *kept = job->kept;
	int rc;

	w->job = job;
	w->handles = &kept->handles[number];
	w->package = &kept->package[number];
	w->dwarf = open_handles(&kept->source, w->handles, !number);
	if (!w->dwarf)
		return -ENOMEM;
	rc = hl_store_init(&w->store);
	if (!rc)
		rc = hl_dwarf_reader_init(&w->reader, &w->store);
	w->reader.all_variables = job->options->all_variables;
	return rc;
}

static void free_workers(struct worker *worker, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		hl_dwarf_reader_free(&worker[i].reader);
		hl_store_free(&worker[i].store);
		free(worker[i].dwarf);
	}
	free(worker);
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

/* Compiled units were read from a package one by one: its types belong to them. */
static void read_packed_types(struct job *job, struct worker *worker, unsigned n)
{
	const struct hl_dwp *package = NULL;

	for (unsigned i = 0; i < n; i++)
		if (worker[i].rc)
			return;
		else if (*worker[i].package)
			package = *worker[i].package;
	if (!package || job->is_package)
		return;
	job->is_package = true;
	job->first_order = job->n_units;
	job->next = hl_dwp_first_type_unit(package);
	job->n_units = hl_dwp_units(package);
	run_workers(worker, n);
}

/* ---- What all threads have read ---- */

static int by_offset(const void *a, const void *b)
{
	const struct hl_import *x = a, *y = b;

	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static int by_order(const void *a, const void *b)
{
	const struct hl_import *x = a, *y = b;

	return x->order < y->order ? -1 : x->order > y->order;
}

/* The imports of all workers, each once, in the order of the file. */
static struct hl_import *gather_imports(const struct worker *worker, unsigned n, uint32_t *count)
{
	struct hl_import *list;
	uint32_t total = 0, kept = 0;

	for (unsigned i = 0; i < n; i++)
		total += worker[i].reader.n_imports;
	list = malloc((total + 1ul) * sizeof(*list));
	*count = 0;
	if (!list)
		return NULL;
	for (unsigned i = 0; i < n; i++)
		for (uint32_t k = 0; k < worker[i].reader.n_imports; k++)
			list[(*count)++] = worker[i].reader.imports[k];
	qsort(list, total, sizeof(*list), by_offset);
	for (uint32_t i = 0; i < total; i++)
		if (!i || list[i].module != list[i - 1].module ||
		    list[i].offset != list[i - 1].offset)
			list[kept++] = list[i];
	qsort(list, kept, sizeof(*list), by_order);
	*count = kept;
	return list;
}

/* Reads the units of shared files that ours import, and what those import. */
static int read_imports(struct worker *w, const struct hl_import *import, uint32_t n)
{
	uint32_t number = 0;

	/* What its own units imported is in the list: what comes now is new. */
	w->reader.n_imports = 0;
	for (uint32_t i = 0; !w->rc && i < n + w->reader.n_imports; i++) {
		const struct hl_import *at = i < n ? &import[i] : &w->reader.imports[i - n];
		Dwarf *shared = dwarf_getalt(w->dwarf[at->module]);
		uint64_t order = SHARED_ORDER | (uint64_t)number++ << 32;
		Dwarf_Die unit;

		w->reader.module = at->module;
		w->reader.partial_language = w->job->language[at->module];
		if (shared && dwarf_offdie(shared, at->offset, &unit))
			w->rc = reader_failed(w,
					      hl_dwarf_read_unit(&w->reader, &unit, order, true));
	}
	return w->rc;
}

static int read_shared(struct worker *worker, unsigned n)
{
	struct worker *first = &worker[0];
	uint32_t count;
	struct hl_import *list = gather_imports(worker, n, &count);
	int rc = list ? 0 : hl_fail_nomem(&first->err);

	if (!rc)
		rc = read_imports(first, list, count);
	free(list);
	return rc;
}

static int pour_workers(struct hl_types_whole *whole, struct worker *worker, unsigned n,
			struct hl_error *err)
{
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

static bool has_definitions(const struct hl_store *store)
{
	for (uint32_t id = 1; id < store->n_types; id++)
		if (store->order[id] != HL_NO_ORDER)
			return true;
	return false;
}

/* Why the file has told of no type. */
static int nothing_there(const struct job *job, const struct worker *worker, unsigned n,
			 struct hl_error *err)
{
	const struct hl_dwarf_source *source = &job->kept->source;
	const struct worker *first = NULL;
	uint32_t missing = 0;

	for (unsigned i = 0; i < n; i++) {
		missing += worker[i].missing;
		if (worker[i].missing && (!first || worker[i].first_missing < first->first_missing))
			first = &worker[i];
	}
	if (first)
		return hl_fail(
			err, -ENODATA,
			"%s: its types are in split files that were not found (%u, the first "
			"is %s); keep the .dwo files where they were built, or pack them "
			"with dwp",
			job->path, missing, first->missing_name);
	if (source->n_failed)
		return hl_fail(err, -EBADMSG, "%s: its debug information cannot be read: %s",
			       job->path, source->why);
	if (job->n_units)
		return hl_fail(
			err, -ENODATA,
			"%s: its debug information defines no struct, class or union (%u units "
			"read); compilers leave out types that no code uses: "
			"-fno-eliminate-unused-debug-types (gcc) or -fstandalone-debug (clang) "
			"keeps them",
			job->path, job->n_units);
	return hl_fail(
		err, -ENODATA,
		"%s: no type information; compile with -g, or install its separate debug file "
		"(a -dbgsym or -debuginfo package)",
		job->path);
}

static int gather(struct hl_types_whole *whole, struct job *job, struct worker *worker, unsigned n,
		  struct hl_error *err)
{
	int rc = 0;

	for (unsigned i = 0; !rc && i < n; i++)
		if (worker[i].rc)
			rc = hl_fail(err, worker[i].rc, "%s", worker[i].err.text);
	if (!rc && read_shared(worker, n))
		rc = hl_fail(err, worker[0].rc ? worker[0].rc : -ENOMEM, "%s", worker[0].err.text);
	if (!rc)
		rc = pour_workers(whole, worker, n, err);
	if (!rc && !has_definitions(&whole->store))
		rc = nothing_there(job, worker, n, err);
	for (uint32_t i = 0; !rc && i < job->kept->source.n_failed; i++)
		hl_store_skip(&whole->store, "a member of the archive whose DWARF cannot be read");
	return rc;
}

static int run(struct hl_types_whole *whole, struct job *job, struct hl_error *err)
{
	struct kept *kept = job->kept;
	unsigned wanted = threads_wanted(job), n = 0;
	struct worker *worker = calloc(wanted, sizeof(*worker));
	int rc = 0;

	kept->handles = calloc(wanted, sizeof(*kept->handles));
	kept->package = calloc(wanted, sizeof(struct hl_dwp *));
	if (!worker || !kept->handles || !kept->package) {
		free(worker);
		return hl_fail_nomem(err);
	}
	kept->n_threads = wanted;
	/* Threads that cannot have handles of their own are done without. */
	for (; n < wanted; n++) {
		rc = start_worker(&worker[n], job, n);
		if (rc)
			break;
	}
	if (n) {
		worker[0].reports = job->options->progress;
		run_workers(worker, n);
		read_packed_types(job, worker, n);
		rc = gather(whole, job, worker, n, err);
	} else {
		hl_fail_nomem(err);
	}
	free_workers(worker, wanted);
	return rc;
}

/* ---- The file ---- */

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

/* The file that several programs share (dwz -m) must be there: without it types would
 * be missing, and members be void. */
static int check_shared(const struct job *job, struct hl_error *err)
{
	const struct hl_dwarf_source *source = &job->kept->source;

	for (uint32_t i = 0; i < source->n_modules; i++) {
		const char *name;
		const void *id;

		if (dwelf_dwarf_gnu_debugaltlink(source->module[i], &name, &id) > 0 &&
		    !dwarf_getalt(source->module[i]))
			return hl_fail(
				err, -ENODATA,
				"%s: types that it shares with other programs are in %s, which "
				"was not found; install it, it belongs to the same package",
				job->path, name);
	}
	return 0;
}

/* Counts the units of all modules, and learns what those need that tell no language. */
static int count_units(struct job *job, struct hl_error *err)
{
	struct hl_dwarf_source *source = &job->kept->source;
	struct unit_cursor c = { .dwarf = source->module, .n_modules = source->n_modules };

	bool *partial = calloc(source->n_modules + 1ul, sizeof(*partial));

	job->language = calloc(source->n_modules + 1ul, sizeof(*job->language));
	if (!job->language || !partial) {
		free(partial);
		return hl_fail_nomem(err);
	}
	while (advance(&c))
		partial[c.module] |= c.type == DW_UT_partial;
	for (uint32_t i = 0; i < source->n_modules; i++)
		if (partial[i] || dwarf_getalt(source->module[i]))
			job->language[i] = common_language(source->module[i]);
	job->n_units = c.next;
	free(partial);
	return 0;
}

static int prepare(struct hl_types_whole *whole, struct job *job, int fd, struct hl_error *err)
{
	struct kept *kept = job->kept;
	int rc;

	job->is_package = hl_dwp_is_package(fd);
	if (asprintf(&job->package_path, "%s%s", job->path, job->is_package ? "" : ".dwp") < 0) {
		job->package_path = NULL;
		return hl_fail_nomem(err);
	}
	if (job->is_package) {
		struct hl_dwp *package;

		rc = hl_dwp_open(&package, job->path, err);
		if (rc)
			return rc;
		job->n_units = hl_dwp_units(package);
		note_machine(&whole->types, hl_dwp_elf(package));
		hl_dwp_close(package);
		return 0;
	}
	if (access(job->package_path, R_OK)) {
		free(job->package_path);
		job->package_path = NULL;
	}
	rc = hl_dwarf_source_open(&kept->source, job->path, fd, job->options, err);
	if (!rc)
		rc = check_shared(job, err);
	if (!rc)
		rc = count_units(job, err);
	if (!rc && kept->source.n_modules)
		note_machine(&whole->types, dwarf_getelf(kept->source.module[0]));
	return rc;
}

int hl_dwarf_read(struct hl_types_whole *whole, const char *path, int fd,
		  const struct hl_types_options *options, struct hl_error *err)
{
	struct kept *kept = calloc(1, sizeof(*kept));
	struct job job = { .kept = kept, .path = path, .options = options };
	int rc;

	if (!kept)
		return hl_fail_nomem(err);
	whole->source = kept;
	whole->close_source = close_kept;
	rc = prepare(whole, &job, fd, err);
	whole->types.n_units = job.n_units;
	if (!rc)
		rc = run(whole, &job, err);
	free(job.package_path);
	free(job.language);
	return rc;
}
