// SPDX-License-Identifier: MIT
/*
 * Numbers anew what several threads have read, so that the numbers do not tell which
 * thread came first: types in the order in which the definitions of the file lead to
 * them, what they are made of before them.  What no definition leads to is dropped.
 */
#include "internal.h"

#include <errno.h>
#include <string.h>

/* A type on the way down: which of its parts is looked at next. */
struct step {
	hl_type_id id;
	uint32_t part;
};

struct numbering {
	const struct hl_store *from;
	struct hl_store to;
	uint32_t *id, *file; /* new numbers by old ones, 0: none yet */
	struct step *step;
	uint32_t n_steps, steps_room;
};

static int allocate(struct numbering *n)
{
	const struct hl_store *from = n->from;

	n->id = calloc(from->n_types, sizeof(*n->id));
	n->file = calloc(from->n_files, sizeof(*n->file));
	n->to.type = malloc(from->n_types * sizeof(*n->to.type));
	n->to.member = malloc((from->n_members + 1ul) * sizeof(*n->to.member));
	n->to.file = malloc(from->n_files * sizeof(*n->to.file));
	if (!n->id || !n->file || !n->to.type || !n->to.member || !n->to.file)
		return -ENOMEM;
	/* void and the file that is not known */
	n->to.type[n->to.n_types++] = from->type[0];
	n->to.file[n->to.n_files++] = from->file[0];
	return 0;
}

static uint32_t number_file(struct numbering *n, uint32_t file)
{
	if (file && !n->file[file]) {
		n->file[file] = n->to.n_files;
		n->to.file[n->to.n_files++] = n->from->file[file];
	}
	return n->file[file];
}

/* Gives the next number to a type whose parts have theirs. */
static void number_type(struct numbering *n, hl_type_id id)
{
	const struct hl_type *old = &n->from->type[id];
	struct hl_type *type = &n->to.type[n->to.n_types];

	*type = *old;
	type->first = n->to.n_members;
	type->target = n->id[old->target];
	type->file = number_file(n, old->file);
	type->scope = number_file(n, old->scope);
	for (uint32_t i = 0; i < old->count; i++) {
		struct hl_member *member = &n->to.member[n->to.n_members++];

		*member = n->from->member[old->first + i];
		member->type = n->id[member->type];
	}
	n->id[id] = n->to.n_types++;
}

/* The next part of the type that has no number yet; 0: all have one. */
static hl_type_id next_part(const struct numbering *n, struct step *step)
{
	const struct hl_type *type = &n->from->type[step->id];

	while (step->part <= type->count) {
		hl_type_id part = step->part ? n->from->member[type->first + step->part - 1].type
					     : type->target;

		step->part++;
		if (part && !n->id[part])
			return part;
	}
	return 0;
}

static int push(struct numbering *n, hl_type_id id)
{
	if (n->n_steps == n->steps_room) {
		uint32_t room = n->steps_room ? n->steps_room * 2 : 64;
		struct step *more = realloc(n->step, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		n->step = more;
		n->steps_room = room;
	}
	n->step[n->n_steps++] = (struct step){ .id = id };
	return 0;
}

/* Numbers a type after its parts.  A store has no cycles, so that this ends. */
static int number_from(struct numbering *n, hl_type_id id)
{
	int rc = !id || n->id[id] ? 0 : push(n, id);

	while (!rc && n->n_steps) {
		struct step *step = &n->step[n->n_steps - 1];
		hl_type_id part = next_part(n, step);

		if (part) {
			rc = push(n, part);
			continue;
		}
		number_type(n, step->id);
		n->n_steps--;
	}
	return rc;
}

/* Takes over the new arrays, in memory of the size they need. */
static void replace(struct hl_store *store, struct hl_store *to)
{
	free(store->type);
	free(store->member);
	free(store->file);
	store->type = to->type;
	store->member = to->member;
	store->file = to->file;
	store->n_types = to->n_types;
	store->n_members = to->n_members;
	store->n_files = to->n_files;
	*to = (struct hl_store){ 0 };
}

int hl_store_number(struct hl_store *store, struct hl_definition *definition,
		    uint32_t n_definitions)
{
	struct numbering n = { .from = store };
	int rc = allocate(&n);

	for (uint32_t i = 0; !rc && i < n_definitions; i++) {
		rc = number_from(&n, definition[i].id);
		definition[i].id = n.id[definition[i].id];
	}
	for (uint32_t i = 0; !rc && i < store->n_variables; i++) {
		struct hl_variable *variable = &store->variable[i];

		rc = number_from(&n, variable->type);
		variable->type = n.id[variable->type];
		variable->file = number_file(&n, variable->file);
	}
	if (!rc)
		replace(store, &n.to);
	free(n.to.type);
	free(n.to.member);
	free(n.to.file);
	free(n.id);
	free(n.file);
	free(n.step);
	return rc;
}
