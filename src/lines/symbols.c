// SPDX-License-Identifier: MIT
#include "lines/symbols.h"

#include "debuginfo/fence.h"
#include "debuginfo/text.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What is known of a module. */
struct module {
	const struct hl_raw_module_read *read;
	Dwfl_Module *dwfl;
	struct hl_types *types; /* NULL: none, or not looked for yet */
	bool looked;
	const struct hl_variable **variable; /* by address; those of threads behind the others */
	uint32_t n_variables, n_fixed;
};

struct hl_symbols {
	const struct hl_raw_file *file;
	char *debug_path;
	char *debug_dir;
	Dwfl_Callbacks callbacks;
	Dwfl *dwfl;
	struct module *module;
	struct hl_code **code; /* open addressing by pc, a power of two many */
	uint32_t n_codes, room;
	struct hl_text *string; /* all that were made up */
	uint32_t n_strings;
};

/* ---- Modules. ---- */

static void add_module(struct hl_symbols *symbols, struct module *module)
{
	struct hl_error err;
	struct stat st;
	int fd = -1;

	/* The vDSO has no file, and a damaged name could be that of a device. */
	if (!stat(module->read->path, &st) && S_ISREG(st.st_mode))
		fd = open(module->read->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return;
	if (!hl_fence_file(fd, module->read->path, &err))
		module->dwfl = dwfl_report_elf(symbols->dwfl, module->read->path,
					       module->read->path, fd, module->read->raw.base,
					       true);
	if (!module->dwfl)
		close(fd);
}

struct hl_symbols *hl_symbols_open(const struct hl_raw_file *file, const char *debug_dir)
{
	struct hl_symbols *symbols = calloc(1, sizeof(*symbols));

	if (!symbols)
		return NULL;
	symbols->file = file;
	symbols->room = 256;
	symbols->code = calloc(symbols->room, sizeof(struct hl_code *));
	symbols->module = calloc(file->n_modules + 1, sizeof(*symbols->module));
	if (debug_dir && asprintf(&symbols->debug_path, ":.debug:%s", debug_dir) < 0)
		symbols->debug_path = NULL;
	if (debug_dir)
		symbols->debug_dir = strdup(debug_dir);
	symbols->callbacks = (Dwfl_Callbacks){
		.find_elf = dwfl_build_id_find_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo,
		.section_address = dwfl_offline_section_address,
		.debuginfo_path = symbols->debug_path ? &symbols->debug_path : NULL,
	};
	symbols->dwfl = dwfl_begin(&symbols->callbacks);
	if (!symbols->code || !symbols->module || !symbols->dwfl) {
		hl_symbols_close(symbols);
		return NULL;
	}
	for (uint32_t i = 0; i < file->n_modules; i++) {
		symbols->module[i].read = &file->module[i];
		add_module(symbols, &symbols->module[i]);
	}
	dwfl_report_end(symbols->dwfl, NULL, NULL);
	return symbols;
}

void hl_symbols_close(struct hl_symbols *symbols)
{
	if (!symbols)
		return;
	for (uint32_t i = 0; symbols->module && i < symbols->file->n_modules; i++) {
		free(symbols->module[i].variable);
		hl_types_close(symbols->module[i].types);
	}
	for (uint32_t i = 0; symbols->code && i < symbols->room; i++)
		free(symbols->code[i]);
	for (uint32_t i = 0; i < symbols->n_strings; i++)
		hl_text_free(&symbols->string[i]);
	if (symbols->dwfl)
		dwfl_end(symbols->dwfl);
	free(symbols->string);
	free(symbols->code);
	free(symbols->module);
	free(symbols->debug_path);
	free(symbols->debug_dir);
	free(symbols);
}

static struct module *module_at(struct hl_symbols *symbols, uint64_t address)
{
	/* Libraries that came and went may overlap: the one with a file, else any. */
	struct module *found = NULL;

	for (uint32_t i = 0; i < symbols->file->n_modules; i++) {
		struct module *module = &symbols->module[i];

		if (address >= module->read->raw.start && address < module->read->raw.end &&
		    (!found || !found->dwfl))
			found = module;
	}
	return found;
}

const struct hl_raw_module_read *hl_symbols_module(struct hl_symbols *symbols, uint64_t address)
{
	struct module *module = module_at(symbols, address);

	return module ? module->read : NULL;
}

/* A string that lives as long as the symbols; NULL: no memory. */
static const char *keep(struct hl_symbols *symbols, const struct hl_text *text)
{
	struct hl_text *more;

	if (text->failed)
		return NULL;
	if (!(symbols->n_strings & (symbols->n_strings - 1))) {
		more = realloc(symbols->string,
			       (symbols->n_strings ? 2ul * symbols->n_strings : 1) * sizeof(*more));
		if (!more)
			return NULL;
		symbols->string = more;
	}
	more = &symbols->string[symbols->n_strings];
	*more = (struct hl_text)HL_TEXT_INIT;
	hl_text_add(more, text->at ? text->at : "", text->len);
	if (more->failed)
		return NULL;
	symbols->n_strings++;
	return more->at;
}

/* ---- Code. ---- */

/* The unit with the address.  Clang writes no table of that, so that each unit must be asked. */
static Dwarf_Die *unit_at(struct module *module, uint64_t address, Dwarf_Addr *bias)
{
	Dwarf_Die *unit = dwfl_module_addrdie(module->dwfl, address, bias);

	for (Dwarf_Die *at = NULL; !unit && (at = dwfl_module_nextcu(module->dwfl, at, bias));) {
		if (dwarf_haspc(at, address - *bias) > 0)
			unit = at;
	}
	return unit;
}

/* Where the instruction comes from; false: not known. */
static bool source_at(struct module *module, uint64_t address, struct hl_code *code)
{
	Dwarf_Addr bias;
	Dwarf_Die *unit = unit_at(module, address, &bias);
	Dwarf_Line *line = unit ? dwarf_getsrc_die(unit, address - bias) : NULL;
	int number = 0;

	if (!line)
		return false;
	code->file = dwarf_linesrc(line, NULL, NULL);
	dwarf_lineno(line, &number);
	code->line = number;
	return code->file;
}

static bool is_of_system(const char *file)
{
	return file && (!strncmp(file, "/usr/include/", 13) || !strncmp(file, "/usr/lib/", 9));
}

/* Where the inlined function was called, as the unit names its files. */
static bool called_at(Dwarf_Die *inlined, Dwarf_Die *unit, struct hl_code *code)
{
	Dwarf_Attribute attribute;
	Dwarf_Word file, line;
	Dwarf_Files *files;
	size_t n;

	if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &file) ||
	    dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute), &line) ||
	    dwarf_getsrcfiles(unit, &files, &n) || file >= n)
		return false;
	code->file = dwarf_filesrc(files, file, NULL, NULL);
	code->line = line;
	return true;
}

/* The function around the place, or the one that was inlined there. */
static void name_function(struct module *module, uint64_t pc, struct hl_code *code)
{
	Dwarf_Addr bias;
	Dwarf_Die *unit = unit_at(module, pc, &bias), *scopes = NULL;
	int n = unit ? dwarf_getscopes(unit, pc - bias, &scopes) : 0;

	for (int i = 0; i < n; i++) {
		int tag = dwarf_tag(&scopes[i]);
		const char *name;

		if (tag != DW_TAG_subprogram && tag != DW_TAG_inlined_subroutine)
			continue;
		name = dwarf_diename(&scopes[i]);
		if (tag == DW_TAG_inlined_subroutine && is_of_system(code->file) &&
		    called_at(&scopes[i], unit, code))
			continue;
		if (name)
			code->function = name;
		break;
	}
	free(scopes);
}

static void look_up(struct hl_symbols *symbols, uint64_t address, struct hl_code *code)
{
	struct module *module = module_at(symbols, address);
	struct hl_text text = HL_TEXT_INIT;

	if (module) {
		code->hooked = module->read->raw.flags & HL_RAW_HOOKED;
		if (module->dwfl) {
			source_at(module, address, code);
			name_function(module, address, code);
			if (!code->function)
				code->function = dwfl_module_addrname(module->dwfl, address);
		}
	}
	if (code->function)
		return;
	hl_text_printf(&text, "0x%llx", (unsigned long long)address);
	if (module) {
		const char *slash = strrchr(module->read->path, '/');

		hl_text_printf(&text, " in %s", slash ? slash + 1 : module->read->path);
	}
	code->function = keep(symbols, &text);
	if (!code->function)
		code->function = "(not known)";
	hl_text_free(&text);
}

static uint32_t code_slot(struct hl_code *const *code, uint32_t room, uint64_t pc)
{
	uint32_t at = pc * 0x9e3779b97f4a7c15 >> 32;

	while (code[at & (room - 1)] && code[at & (room - 1)]->pc != pc)
		at++;
	return at & (room - 1);
}

static int grow_codes(struct hl_symbols *symbols)
{
	struct hl_code **more = calloc(symbols->room * 2ul, sizeof(*more));

	if (!more)
		return -ENOMEM;
	for (uint32_t i = 0; i < symbols->room; i++) {
		if (symbols->code[i])
			more[code_slot(more, symbols->room * 2, symbols->code[i]->pc)] =
				symbols->code[i];
	}
	free(symbols->code);
	symbols->code = more;
	symbols->room *= 2;
	return 0;
}

/* Places and functions are kept side by side: a function's address is even larger by one, as if
 * it were what a call returns to. */
const struct hl_code *hl_symbols_code(struct hl_symbols *symbols, uint64_t pc)
{
	uint32_t slot = code_slot(symbols->code, symbols->room, pc);
	struct hl_code *code = symbols->code[slot];

	if (code)
		return code;
	if (symbols->n_codes >= symbols->room / 2) {
		if (grow_codes(symbols))
			return NULL;
		slot = code_slot(symbols->code, symbols->room, pc);
	}
	code = calloc(1, sizeof(*code));
	if (!code)
		return NULL;
	code->pc = pc;
	look_up(symbols, pc - 1, code);
	symbols->code[slot] = code;
	symbols->n_codes++;
	return code;
}

const struct hl_code *hl_symbols_function(struct hl_symbols *symbols, uint64_t address)
{
	return hl_symbols_code(symbols, address + 1);
}

/* Where the function is declared; a lambda is nowhere, so where its first instruction comes from. */
static bool declared_at(struct module *module, Dwarf_Addr bias, Dwarf_Die *inlined,
			Dwarf_Die *origin, struct hl_code *code)
{
	Dwarf_Addr base, start, end;
	int number = 0;

	code->file = dwarf_decl_file(origin);
	if (code->file) {
		dwarf_decl_line(origin, &number);
	} else if (dwarf_ranges(inlined, 0, &base, &start, &end) > 0) {
		return source_at(module, start + bias, code) && !is_of_system(code->file);
	}
	code->line = number;
	return code->file && !is_of_system(code->file);
}

static bool inlined_in(struct module *module, Dwarf_Addr bias, Dwarf_Die *scope,
		       struct hl_code *code, int depth)
{
	Dwarf_Die child, origin;
	Dwarf_Attribute attribute;

	if (depth > 16 || dwarf_child(scope, &child))
		return false;
	do {
		int tag = dwarf_tag(&child);

		if (tag == DW_TAG_inlined_subroutine &&
		    dwarf_attr(&child, DW_AT_abstract_origin, &attribute) &&
		    dwarf_formref_die(&attribute, &origin) && dwarf_diename(&origin) &&
		    declared_at(module, bias, &child, &origin, code)) {
			code->function = dwarf_diename(&origin);
			return true;
		}
		if ((tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block) &&
		    inlined_in(module, bias, &child, code, depth + 1))
			return true;
	} while (!dwarf_siblingof(&child, &child));
	return false;
}

/* Kept under an address that no code has. */
#define INLINED_KEY(pc) ((pc) | (uint64_t)1 << 63)

const struct hl_code *hl_symbols_inlined(struct hl_symbols *symbols, uint64_t pc)
{
	struct module *module = module_at(symbols, pc - 1);
	const struct hl_code *code;
	Dwarf_Die *unit, *scopes = NULL;
	Dwarf_Addr bias;
	struct hl_code found = { .pc = INLINED_KEY(pc), .hooked = true };
	bool any = false;
	int n;

	if (!module || !module->dwfl)
		return NULL;
	unit = unit_at(module, pc - 1, &bias);
	n = unit ? dwarf_getscopes(unit, pc - 1 - bias, &scopes) : 0;
	for (int i = 0; i < n && !any; i++)
		any = dwarf_tag(&scopes[i]) == DW_TAG_subprogram &&
		      inlined_in(module, bias, &scopes[i], &found, 0);
	free(scopes);
	code = any ? hl_symbols_code(symbols, INLINED_KEY(pc)) : NULL;
	if (code)
		*(struct hl_code *)code = found;
	return code;
}

/* ---- Objects. ---- */

static int by_address(const void *a, const void *b)
{
	const struct hl_variable *x = *(const struct hl_variable *const *)a;
	const struct hl_variable *y = *(const struct hl_variable *const *)b;

	if (x->tls != y->tls)
		return x->tls - y->tls;
	return x->address < y->address ? -1 : x->address > y->address;
}

/* Its types, read when they are asked for first. */
static struct hl_types *types_of(struct hl_symbols *symbols, struct module *module)
{
	const struct hl_types_options options = {
		.debug_dir = symbols->debug_dir,
		.all_variables = true,
	};
	struct hl_error err;

	if (module->looked)
		return module->types;
	module->looked = true;
	if (!module->dwfl || hl_types_open(&module->types, module->read->path, &options, &err))
		return module->types = NULL;
	module->n_variables = module->types->n_variables;
	module->variable = calloc(module->n_variables + 1ul, sizeof(*module->variable));
	if (!module->variable)
		module->n_variables = 0;
	for (uint32_t i = 0; i < module->n_variables; i++) {
		module->variable[i] = &module->types->variable[i];
		module->n_fixed += !module->types->variable[i].tls;
	}
	if (module->n_variables)
		qsort(module->variable, module->n_variables, sizeof(*module->variable), by_address);
	return module->types;
}

/* The variable among n, by address, that has the byte. */
static const struct hl_variable *variable_at(const struct hl_types *types,
					     const struct hl_variable **variable, uint32_t n,
					     uint64_t address)
{
	uint32_t low = 0, high = n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (variable[middle]->address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	/* Several may begin at the same address, some without a size. */
	for (uint64_t at = low ? variable[low - 1]->address : 0;
	     low && variable[low - 1]->address == at; low--) {
		if (address - at < hl_type_size(types, variable[low - 1]->type))
			return variable[low - 1];
	}
	return NULL;
}

static bool find_variable(struct hl_symbols *symbols, struct module *module, bool tls,
			  uint64_t address, struct hl_named_object *object)
{
	struct hl_types *types = types_of(symbols, module);
	const struct hl_variable *variable;

	if (!types)
		return false;
	variable = tls ? variable_at(types, module->variable + module->n_fixed,
				     module->n_variables - module->n_fixed, address)
		       : variable_at(types, module->variable, module->n_fixed, address);
	if (!variable)
		return false;
	*object = (struct hl_named_object){
		.name = variable->name,
		.start = variable->address,
		.size = hl_type_size(types, variable->type),
		.types = types,
		.type = variable->type,
		.file = variable->file ? types->file[variable->file] : NULL,
		.line = variable->line,
	};
	return true;
}

bool hl_symbols_static(struct hl_symbols *symbols, uint64_t address, struct hl_named_object *object)
{
	struct module *module = module_at(symbols, address);
	GElf_Off offset;
	GElf_Sym symbol;
	const char *name;

	if (!module || !module->dwfl)
		return false;
	if (find_variable(symbols, module, false, address - module->read->raw.base, object)) {
		object->start += module->read->raw.base;
		return true;
	}
	name = dwfl_module_addrinfo(module->dwfl, address, &offset, &symbol, NULL, NULL, NULL);
	if (!name || offset >= symbol.st_size)
		return false;
	*object = (struct hl_named_object){ .name = name,
					    .start = address - offset,
					    .size = symbol.st_size };
	return true;
}

bool hl_symbols_tls(struct hl_symbols *symbols, uint64_t base, uint64_t offset,
		    struct hl_named_object *object)
{
	for (uint32_t i = 0; i < symbols->file->n_modules; i++) {
		if (symbols->file->module[i].raw.base == base)
			return find_variable(symbols, &symbols->module[i], true, offset, object);
	}
	return false;
}

/* ---- Variables of functions. ---- */

static bool type_behind(Dwarf_Die *die)
{
	Dwarf_Attribute attribute;

	return dwarf_attr_integrate(die, DW_AT_type, &attribute) &&
	       dwarf_formref_die(&attribute, die);
}

/* What is known of registers in the function: the hook's frame lies right below the function's stack
 * pointer, with the return address and the saved frame pointer. */
#if defined(__x86_64__)
#define REG_SP 7
#define REG_BP 6
#else
#define REG_SP 31
#define REG_BP 29
#endif

static bool value_of(const Dwarf_Op *op, const uint64_t *frame, uint64_t *value)
{
	unsigned reg;
	int64_t offset;

	if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
		reg = op->atom - DW_OP_breg0;
		offset = (int64_t)op->number;
	} else if (op->atom == DW_OP_bregx) {
		reg = (unsigned)op->number;
		offset = (int64_t)op->number2;
	} else if (op->atom >= DW_OP_reg0 && op->atom <= DW_OP_reg31) {
		reg = op->atom - DW_OP_reg0;
		offset = 0;
	} else {
		return false;
	}
	*value = (reg == REG_SP ? frame[1] + 16 : frame[2]) + (uint64_t)offset;
	return reg == REG_SP || reg == REG_BP;
}

/* The address that the function's frame is counted from. */
static bool frame_base(struct module *module, Dwarf_Die *function, const uint64_t *frame,
		       uint64_t *base)
{
	Dwarf_Attribute attribute;
	Dwarf_Frame *rules = NULL;
	Dwarf_Addr bias = 0;
	Dwarf_CFI *cfi;
	Dwarf_Op *op;
	bool found;
	size_t n;

	if (!dwarf_attr_integrate(function, DW_AT_frame_base, &attribute) ||
	    dwarf_getlocation(&attribute, &op, &n) || n != 1)
		return false;
	if (op->atom != DW_OP_call_frame_cfa)
		return value_of(op, frame, base);
	cfi = dwfl_module_eh_cfi(module->dwfl, &bias);
	if (!cfi || dwarf_cfi_addrframe(cfi, frame[0] - bias, &rules))
		return false;
	found = !dwarf_frame_cfa(rules, &op, &n) && n == 1 && value_of(op, frame, base);
	free(rules);
	return found;
}

static bool local_in(struct hl_symbols *symbols, struct module *module, Dwarf_Die *scope,
		     uint64_t pc, uint64_t base, uint64_t address, struct hl_named_object *object,
		     int depth)
{
	struct hl_types *types = types_of(symbols, module);
	Dwarf_Die child, type;
	Dwarf_Attribute attribute;
	Dwarf_Word size;
	Dwarf_Op *op;
	size_t n;

	if (depth > 16 || dwarf_child(scope, &child))
		return false;
	do {
		int tag = dwarf_tag(&child);

		if ((tag == DW_TAG_lexical_block || tag == DW_TAG_inlined_subroutine) &&
		    local_in(symbols, module, &child, pc, base, address, object, depth + 1))
			return true;
		type = child;
		if ((tag != DW_TAG_variable && tag != DW_TAG_formal_parameter) ||
		    !dwarf_attr(&child, DW_AT_location, &attribute) ||
		    (dwarf_getlocation(&attribute, &op, &n) &&
		     dwarf_getlocation_addr(&attribute, pc, &op, &n, 1) != 1) ||
		    n != 1 || op->atom != DW_OP_fbreg || !type_behind(&type) ||
		    dwarf_aggregate_size(&type, &size) || address - (base + op->number) >= size)
			continue;
		*object = (struct hl_named_object){
			.name = dwarf_diename(&child),
			.start = base + op->number,
			.size = size,
		};
		for (uint32_t i = 0; types && i < types->n_defined && !object->types; i++) {
			const char *name = dwarf_diename(&type);

			if (name && hl_type_size(types, types->defined[i]) == size &&
			    !strcmp(hl_type_name(types, types->defined[i]), name)) {
				object->types = types;
				object->type = types->defined[i];
			}
		}
		return object->name;
	} while (!dwarf_siblingof(&child, &child));
	return false;
}

bool hl_symbols_local(struct hl_symbols *symbols, const uint64_t *frame, uint64_t address,
		      struct hl_named_object *object)
{
	struct module *module = module_at(symbols, frame[0] - 1);
	Dwarf_Die *unit, *scopes = NULL;
	Dwarf_Addr bias;
	bool found = false;
	uint64_t base;
	int n;

	if (!module || !module->dwfl)
		return false;
	unit = unit_at(module, frame[0] - 1, &bias);
	n = unit ? dwarf_getscopes(unit, frame[0] - 1 - bias, &scopes) : 0;
	for (int i = 0; i < n && !found; i++) {
		if (dwarf_tag(&scopes[i]) == DW_TAG_subprogram)
			found = frame_base(module, &scopes[i], frame, &base) &&
				local_in(symbols, module, &scopes[i], frame[0] - bias, base,
					 address, object, 0);
	}
	free(scopes);
	return found;
}

/* ---- The type of a block. ---- */

#define MAX_CANDIDATES 32

struct candidate {
	const char *name;
	uint64_t size;
	uint32_t votes;
	const struct hl_types *types;
	hl_type_id type;
};

struct candidates {
	struct candidate at[MAX_CANDIDATES];
	uint32_t n;
	uint64_t size; /* of the block */
};

/* The struct that a variable points to: its name, or that of the typedef of an unnamed one. */
static bool pointed_struct(Dwarf_Die *variable, const char **name, Dwarf_Word *size)
{
	Dwarf_Die type = *variable;
	const char *alias = NULL;
	bool pointer = false;

	for (int i = 0; i < HL_MAX_DEPTH && type_behind(&type); i++) {
		switch (dwarf_tag(&type)) {
		case DW_TAG_pointer_type:
		case DW_TAG_reference_type:
			if (pointer)
				return false;
			pointer = true;
			alias = NULL;
			continue;
		case DW_TAG_typedef:
			alias = dwarf_diename(&type);
			continue;
		case DW_TAG_const_type:
		case DW_TAG_volatile_type:
		case DW_TAG_atomic_type:
		case DW_TAG_restrict_type:
			continue;
		case DW_TAG_structure_type:
		case DW_TAG_class_type:
		case DW_TAG_union_type:
			*name = dwarf_diename(&type);
			if (!*name)
				*name = alias;
			return pointer && *name && !dwarf_aggregate_size(&type, size) && *size;
		default:
			return false;
		}
	}
	return false;
}

static void add_candidate(struct candidates *candidates, const char *name, uint64_t size)
{
	for (uint32_t i = 0; i < candidates->n; i++) {
		if (candidates->at[i].size == size && !strcmp(candidates->at[i].name, name)) {
			candidates->at[i].votes++;
			return;
		}
	}
	/* It fills the block, or several do. */
	if (size > candidates->size || candidates->size % size || candidates->n == MAX_CANDIDATES)
		return;
	candidates->at[candidates->n++] =
		(struct candidate){ .name = name, .size = size, .votes = 1 };
}

static void add_variables(struct candidates *candidates, Dwarf_Die *scope, int depth)
{
	Dwarf_Die child;
	Dwarf_Word size;
	const char *name;

	if (depth > 16 || dwarf_child(scope, &child))
		return;
	do {
		int tag = dwarf_tag(&child);

		if (tag == DW_TAG_lexical_block)
			add_variables(candidates, &child, depth + 1);
		else if ((tag == DW_TAG_formal_parameter || tag == DW_TAG_variable) &&
			 pointed_struct(&child, &name, &size))
			add_candidate(candidates, name, size);
	} while (!dwarf_siblingof(&child, &child));
}

/* What the function at the place, and those around an inlined one, have pointers to. */
static struct module *add_function(struct hl_symbols *symbols, struct candidates *candidates,
				   uint64_t pc)
{
	struct module *module = module_at(symbols, pc - 1);
	Dwarf_Die *unit, *scopes = NULL;
	Dwarf_Addr bias;
	int n;

	if (!module || !module->dwfl)
		return NULL;
	unit = unit_at(module, pc - 1, &bias);
	n = unit ? dwarf_getscopes(unit, pc - 1 - bias, &scopes) : 0;
	for (int i = 0; i < n; i++) {
		int tag = dwarf_tag(&scopes[i]);

		/* Blocks are looked into from the function on. */
		if (tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine)
			add_variables(candidates, &scopes[i], 0);
	}
	free(scopes);
	return module;
}

static bool find_type(const struct hl_types *types, struct candidate *candidate)
{
	for (uint32_t i = 0; i < types->n_defined; i++) {
		hl_type_id id = types->defined[i];

		if (!strcmp(hl_type_name(types, id), candidate->name) &&
		    hl_type_size(types, id) == candidate->size) {
			candidate->types = types;
			candidate->type = id;
			return true;
		}
	}
	return false;
}

/* Whether each access is within one member that is no struct, and begins where it does; copies of
 * more than a member tell nothing. */
static bool fits(const struct candidate *candidate, const struct hl_touch *touch, uint32_t n)
{
	struct hl_text path = HL_TEXT_INIT;
	bool fit = true;

	for (uint32_t i = 0; i < n && fit; i++) {
		uint64_t offset = touch[i].offset % candidate->size, at, member_size;
		hl_type_id member;

		if (touch[i].size > 16)
			continue;
		hl_text_reset(&path);
		at = hl_path_at(&path, candidate->types, candidate->type, offset, touch[i].size,
				&member, &member_size);
		member = hl_type_strip(candidate->types, member);
		fit = !hl_kind_is_aggregate(candidate->types->type[member].kind) && at <= offset &&
		      offset + touch[i].size <= at + member_size &&
		      (at == offset || candidate->types->type[member].kind == HL_ARRAY);
	}
	hl_text_free(&path);
	return fit;
}

/* What static pointers of the module point to. */
static void add_static_pointers(struct candidates *candidates, const struct hl_types *types)
{
	for (uint32_t i = 0; i < types->n_variables; i++) {
		const struct hl_type *type =
			&types->type[hl_type_strip(types, types->variable[i].type)];
		const char *name;

		while (type->kind == HL_ARRAY)
			type = &types->type[hl_type_strip(types, type->target)];
		if (type->kind != HL_POINTER)
			continue;
		name = hl_type_name(types, hl_type_strip(types, type->target));
		for (uint32_t d = 0; d < types->n_defined; d++) {
			uint64_t size = hl_type_size(types, types->defined[d]);

			if (size && !strcmp(hl_type_name(types, types->defined[d]), name))
				add_candidate(candidates, name, size);
		}
	}
}

/* Every type of the block's own size. */
static void add_all(struct candidates *candidates, const struct hl_types *types)
{
	for (uint32_t d = 0; d < types->n_defined; d++) {
		if (hl_type_size(types, types->defined[d]) == candidates->size)
			add_candidate(candidates, hl_type_name(types, types->defined[d]),
				      candidates->size);
	}
}

/* The candidate that fits best; NULL: none, or several as well. */
static const struct candidate *best_of(struct candidates *candidates, const struct hl_types *types,
				       const struct hl_touch *touch, uint32_t n)
{
	const struct candidate *best = NULL;
	uint64_t highest = 0, score;

	for (uint32_t i = 0; i < candidates->n; i++) {
		struct candidate *at = &candidates->at[i];

		if (!find_type(types, at) || !fits(at, touch, n))
			continue;
		/* A whole block beats an array of smaller ones, then what more code knows of. */
		score = ((uint64_t)(at->size == candidates->size) << 32) + at->votes;
		if (score >= highest)
			best = score == highest ? NULL : at;
		if (score > highest)
			highest = score;
	}
	return best;
}

bool hl_symbols_block_type(struct hl_symbols *symbols, uint64_t size, const struct hl_touch *touch,
			   uint32_t n, const uint64_t *pc, uint32_t n_pcs,
			   struct hl_named_object *object)
{
	struct candidates candidates = { .size = size };
	const struct candidate *best;
	struct module *module = NULL;

	for (uint32_t i = 0; i < n + n_pcs; i++) {
		struct module *in =
			add_function(symbols, &candidates, i < n ? touch[i].pc : pc[i - n]);

		if (in && in->read->raw.flags & HL_RAW_HOOKED)
			module = in;
	}
	if (!module || !types_of(symbols, module))
		return false;
	best = best_of(&candidates, module->types, touch, n);
	if (!best) {
		candidates.n = 0;
		add_static_pointers(&candidates, module->types);
		best = best_of(&candidates, module->types, touch, n);
	}
	if (!best) {
		candidates.n = 0;
		add_all(&candidates, module->types);
		best = best_of(&candidates, module->types, touch, n);
	}
	if (!best)
		return false;
	*object = (struct hl_named_object){
		.name = hl_type_name(best->types, best->type),
		.size = best->size,
		.types = best->types,
		.type = best->type,
	};
	return true;
}
