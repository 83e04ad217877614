// SPDX-License-Identifier: MIT
#include "look.h"

#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- Words of names ---- */

#define W_LOCK		0x0001	/* lock, when it is the last word */
#define W_ATOMIC	0x0002	/* atomic, wherever it stands */
#define W_REFS		0x0004	/* number of users */
#define W_LINK		0x0008	/* what links: next, node, entry */
#define W_DONE		0x0010	/* completion */
#define W_COUNT		0x0020	/* counted up */
#define W_STEADY	0x0040	/* set once, read often */
#define W_PAD		0x0080	/* filler */
#define W_THREAD	0x0100	/* one a thread or CPU */
#define W_OPS		0x0200	/* table of operations */
#define W_PENDING	0x4000	/* completion, when it is the whole name */
#define W_ARGUMENT	0x2000	/* what a callback is given */
#define W_INDEX		0x1000	/* place in a ring or deque that moves on */
#define W_MAP		0x0800	/* leads from one thing to another: prio_to_cpu */
#define W_LIST		0x0400	/* a type of this name with pointers only is a link */

struct word {
	const char *text;
	uint16_t mask;
};

static const struct word words[] = {
	{ "lock", W_LOCK }, { "spinlock", W_LOCK }, { "rwlock", W_LOCK }, { "seqlock", W_LOCK },
	{ "qspinlock", W_LOCK }, { "qrwlock", W_LOCK }, { "mutex", W_LOCK }, { "mtx", W_LOCK },
	{ "semaphore", W_LOCK }, { "sem", W_LOCK }, { "latch", W_LOCK }, { "futex", W_LOCK },
	{ "seqcount", W_LOCK }, { "rwsem", W_LOCK }, { "spin", W_LOCK }, { "slock", W_LOCK },
	{ "lwlock", W_LOCK }, { "rwlocks", W_LOCK }, { "spinlocks", W_LOCK },
	{ "atomic", W_ATOMIC }, { "atomic8", W_ATOMIC }, { "atomic16", W_ATOMIC },
	{ "atomic32", W_ATOMIC }, { "atomic64", W_ATOMIC }, { "atomics", W_ATOMIC },
	{ "refcount", W_REFS }, { "refcnt", W_REFS }, { "refs", W_REFS }, { "kref", W_REFS | W_ATOMIC },
	{ "usecount", W_REFS }, { "usecnt", W_REFS }, { "refcounter", W_REFS },
	{ "next", W_LINK }, { "prev", W_LINK }, { "link", W_LINK | W_LIST },
	{ "links", W_LINK | W_LIST }, { "node", W_LIST }, { "head", W_LIST | W_INDEX }, { "entry", W_LIST },
	{ "list", W_LIST }, { "hlist", W_LIST }, { "llist", W_LIST }, { "queue", W_LIST },
	{ "stack", W_LIST }, { "rb", W_LIST }, { "hook", W_LIST },
	{ "tail", W_INDEX }, { "top", W_INDEX }, { "bottom", W_INDEX }, { "producer", W_INDEX },
	{ "consumer", W_INDEX }, { "produced", W_INDEX }, { "consumed", W_INDEX },
	{ "data", W_ARGUMENT }, { "arg", W_ARGUMENT }, { "args", W_ARGUMENT },
	{ "info", W_ARGUMENT }, { "priv", W_ARGUMENT }, { "private", W_ARGUMENT },
	{ "ctx", W_ARGUMENT }, { "context", W_ARGUMENT }, { "payload", W_ARGUMENT },
	{ "cookie", W_ARGUMENT }, { "opaque", W_ARGUMENT }, { "argument", W_ARGUMENT },
	{ "param", W_ARGUMENT }, { "user", W_ARGUMENT },
	{ "done", W_DONE }, { "ready", W_DONE }, { "complete", W_DONE }, { "completed", W_DONE },
	{ "completion", W_DONE }, { "pending", W_PENDING }, { "finished", W_DONE },
	{ "signaled", W_DONE }, { "signalled", W_DONE }, { "waitqueue", W_DONE },
	{ "count", W_COUNT }, { "counts", W_COUNT }, { "counter", W_COUNT },
	{ "counters", W_COUNT }, { "cnt", W_COUNT }, { "nr", W_COUNT }, { "num", W_COUNT },
	{ "hits", W_COUNT }, { "misses", W_COUNT }, { "packets", W_COUNT }, { "bytes", W_COUNT },
	{ "stat", W_COUNT }, { "stats", W_COUNT }, { "events", W_COUNT }, { "total", W_COUNT },
	{ "used", W_COUNT }, { "seq", W_COUNT }, { "reads", W_COUNT }, { "writes", W_COUNT },
	{ "sum", W_COUNT }, { "iters", W_COUNT }, { "n", W_COUNT }, { "len", W_COUNT },
	{ "length", W_COUNT }, { "idx", W_COUNT }, { "index", W_COUNT }, { "pos", W_COUNT },
	{ "nelems", W_COUNT }, { "nents", W_COUNT }, { "filled", W_COUNT }, { "ticks", W_COUNT },
	{ "size", W_STEADY }, { "id", W_STEADY }, { "ids", W_STEADY }, { "key", W_STEADY },
	{ "uid", W_STEADY }, { "gid", W_STEADY }, { "cuid", W_STEADY }, { "cgid", W_STEADY },
	{ "mode", W_STEADY }, { "name", W_STEADY }, { "type", W_STEADY }, { "mask", W_STEADY },
	{ "shift", W_STEADY }, { "max", W_STEADY }, { "min", W_STEADY }, { "limit", W_STEADY },
	{ "capacity", W_STEADY }, { "config", W_STEADY }, { "cfg", W_STEADY },
	{ "version", W_STEADY }, { "order", W_STEADY }, { "align", W_STEADY },
	{ "alignment", W_STEADY }, { "weight", W_STEADY },
	{ "timeout", W_STEADY }, { "threshold", W_STEADY }, { "enabled", W_STEADY },
	{ "pad", W_PAD }, { "pad0", W_PAD }, { "pad1", W_PAD }, { "pad2", W_PAD },
	{ "pad3", W_PAD }, { "pad4", W_PAD }, { "padding", W_PAD }, { "pads", W_PAD },
	{ "padding1", W_PAD }, { "padding2", W_PAD }, { "filler", W_PAD }, { "spacer", W_PAD },
	{ "cacheline", W_PAD },
	{ "thread", W_THREAD }, { "threads", W_THREAD }, { "cpu", W_THREAD }, { "cpus", W_THREAD },
	{ "percpu", W_THREAD }, { "pcpu", W_THREAD }, { "worker", W_THREAD }, { "to", W_MAP },
	{ "workers", W_THREAD }, { "percore", W_THREAD }, { "cores", W_THREAD },
	{ "lcore", W_THREAD }, { "lcores", W_THREAD }, { "slot", W_THREAD },
	{ "slots", W_THREAD }, { "shard", W_THREAD }, { "shards", W_THREAD },
	{ "perthread", W_THREAD }, { "lane", W_THREAD }, { "lanes", W_THREAD },
	{ "ops", W_OPS }, { "operations", W_OPS }, { "vtbl", W_OPS }, { "vtable", W_OPS },
	{ "callbacks", W_OPS }, { "methods", W_OPS }, { "driver", W_OPS }, { "funcs", W_OPS },
};

#define N_WORDS		(sizeof(words) / sizeof(words[0]))
#define WORD_SLOTS	512u

static const struct word *word_slot[WORD_SLOTS];
static pthread_once_t words_once = PTHREAD_ONCE_INIT;

static uint32_t hash_word(const char *text, size_t n)
{
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ (unsigned char)text[i]) * 16777619u;
	return hash ^ hash >> 15;
}

static void index_words(void)
{
	for (size_t i = 0; i < N_WORDS; i++) {
		uint32_t at = hash_word(words[i].text, strlen(words[i].text)) & (WORD_SLOTS - 1);

		while (word_slot[at])
			at = (at + 1) & (WORD_SLOTS - 1);
		word_slot[at] = &words[i];
	}
}

static uint16_t mask_of_word(const char *text, size_t n)
{
	uint32_t at = hash_word(text, n) & (WORD_SLOTS - 1);

	for (; word_slot[at]; at = (at + 1) & (WORD_SLOTS - 1))
		if (!strncmp(word_slot[at]->text, text, n) && !word_slot[at]->text[n])
			return word_slot[at]->mask;
	return 0;
}

/* The words of a name: any of them, and the last. */
struct reading {
	uint16_t any, last;
	unsigned words;
};

#define LONGEST_WORD 24
/* What is behind that in a name is not read: it is asked for again and again. */
#define LONGEST_NAME 128

/* Splits at underscores, at other signs and where lower case turns to upper. */
static struct reading read_name(const char *name)
{
	struct reading reading = { 0 };
	char word[LONGEST_WORD];
	size_t n = 0;

	if (!name)
		return reading;
	pthread_once(&words_once, index_words);
	for (const char *at = name;; at++) {
		unsigned char c = at < name + LONGEST_NAME ? (unsigned char)*at : 0;
		bool ends = !isalnum(c) || (isupper(c) && at > name &&
					    islower((unsigned char)at[-1]));

		if (ends && n) {
			/* "_t" and a lone "s" are no words. */
			if (n > 1 || (word[0] != 't' && word[0] != 's')) {
				reading.last = mask_of_word(word, n);
				reading.any |= reading.last;
				reading.words++;
			}
			n = 0;
		}
		if (!c)
			break;
		/* Template arguments say nothing of the template itself. */
		if (c == '<')
			break;
		if (isalnum(c) && n < LONGEST_WORD)
			word[n++] = (char)tolower(c);
	}
	return reading;
}

bool hl_look_per_thread(const char *name)
{
	uint16_t any = read_name(name).any;

	return any & W_THREAD && !(any & W_MAP);
}

bool hl_look_counted(const char *name)
{
	return read_name(name).any & (W_COUNT | W_REFS);
}

bool hl_look_argument(const char *name)
{
	return read_name(name).any & W_ARGUMENT;
}

const char *hl_look_name(enum hl_look look)
{
	switch (look) {
	case HL_LOOK_LOCK:
		return "lock";
	case HL_LOOK_ATOMIC:
		return "atomic";
	case HL_LOOK_LINK:
		return "link";
	case HL_LOOK_DONE:
		return "completion flag";
	case HL_LOOK_COUNTER:
		return "counter";
	case HL_LOOK_CONSTANT:
	case HL_LOOK_STEADY:
		return "read-mostly";
	case HL_LOOK_PAD:
		return "padding";
	default:
		return "plain";
	}
}

/* ---- Types ---- */

/* A lock of the kernel's or libc's is no larger than this, debugging included. */
#define LARGEST_LOCK 256
#define LARGEST_LINK 64

struct hl_looks {
	uint8_t *look;			/* of each type by itself */
	uint8_t *typedef_log2;		/* of each aggregate: alignment of a typedef of it */
	uint8_t *embedded_log2;		/* ... alignment that all places where it is embedded share */
	uint8_t *embedded;		/* ... and how many there are, 255 at most */
	uint8_t *member;		/* look of each member of a struct, class or union */
};

/* Exact names that no rule on words tells. */
static enum hl_look look_of_known_name(const char *name)
{
	static const struct {
		const char *name;
		enum hl_look look;
	} known[] = {
		{ "pthread_cond_t", HL_LOOK_DONE },
		{ "pthread_barrier_t", HL_LOOK_DONE },
		{ "cnd_t", HL_LOOK_DONE },
		{ "condition_variable", HL_LOOK_DONE },
		{ "completion", HL_LOOK_DONE },
		{ "wait_queue_head", HL_LOOK_DONE },
		{ "wait_queue_head_t", HL_LOOK_DONE },
		{ "swait_queue_head", HL_LOOK_DONE },
		{ "atomic_flag", HL_LOOK_LOCK },
		{ "callback_head", HL_LOOK_LINK },
		{ "rcu_head", HL_LOOK_LINK },
		{ "local_t", HL_LOOK_PLAIN },
		{ "once_flag", HL_LOOK_DONE },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(known[i].name, name))
			return known[i].look;
	return HL_LOOK_PLAIN;
}

/* True when the struct holds pointers (and integers no wider) alone, as links do. */
static bool is_all_pointers(const struct hl_types *types, const struct hl_type *type)
{
	uint32_t pointers = 0;

	for (uint32_t i = 0; i < type->count; i++) {
		const struct hl_type *member =
			&types->type[hl_type_strip(types, types->member[type->first + i].type)];

		if (member->kind == HL_POINTER)
			pointers++;
		else if (member->kind != HL_BASE && member->kind != HL_ENUM)
			return false;
	}
	return pointers > 0 && type->count <= 4;
}

/* By the name of the type and of the typedefs in front of it. */
static enum hl_look look_of_names(const struct hl_types *types, const struct hl_type *type,
				  uint64_t size)
{
	struct reading reading = read_name(type->name);
	enum hl_look known = type->name ? look_of_known_name(type->name) : HL_LOOK_PLAIN;

	if (known != HL_LOOK_PLAIN)
		return known;
	if (reading.any & W_ATOMIC && size <= 16)
		return HL_LOOK_ATOMIC;
	if (reading.last & W_REFS && size <= 16)
		return HL_LOOK_ATOMIC;
	if (reading.last & W_LOCK && size && size <= LARGEST_LOCK)
		return HL_LOOK_LOCK;
	if (hl_kind_is_aggregate(type->kind) && reading.any & W_LIST && size <= LARGEST_LINK &&
	    is_all_pointers(types, type))
		return HL_LOOK_LINK;
	return HL_LOOK_PLAIN;
}

static enum hl_look look_of_type(const struct hl_types *types, hl_type_id id)
{
	uint64_t size = hl_type_size(types, id);
	bool is_volatile = false;

	for (int depth = 0; depth < HL_MAX_DEPTH; depth++) {
		const struct hl_type *type = &types->type[id];
		enum hl_look look;

		switch (type->kind) {
		case HL_ATOMIC:
			return HL_LOOK_ATOMIC;
		case HL_VOLATILE:
			is_volatile = true;
			break;
		case HL_CONST:
		case HL_RESTRICT:
			break;
		case HL_TYPEDEF:
			look = look_of_names(types, type, size);
			if (look != HL_LOOK_PLAIN)
				return look;
			break;
		case HL_STRUCT:
		case HL_CLASS:
		case HL_UNION:
			return look_of_names(types, type, size);
		case HL_BASE:
		case HL_ENUM:
		case HL_POINTER:
			return is_volatile ? HL_LOOK_ATOMIC : HL_LOOK_PLAIN;
		default:
			return HL_LOOK_PLAIN;
		}
		id = type->target;
	}
	return HL_LOOK_PLAIN;
}

static void note_typedef(struct hl_looks *looks, const struct hl_types *types,
			 const struct hl_type *type)
{
	hl_type_id what = hl_type_strip(types, type->target);

	if (type->align_log2 && hl_kind_is_aggregate(types->type[what].kind) &&
	    looks->typedef_log2[what] < type->align_log2 - 1)
		looks->typedef_log2[what] = (uint8_t)(type->align_log2 - 1);
}

static void note_embedded(struct hl_looks *looks, const struct hl_types *types,
			  const struct hl_member *member)
{
	hl_type_id what = hl_type_strip(types, member->type);
	uint64_t offset = member->bit_offset / 8;
	unsigned log2 = offset ? (unsigned)__builtin_ctzll(offset) : 12;

	if (!hl_kind_is_aggregate(types->type[what].kind))
		return;
	if (!looks->embedded[what] || log2 < looks->embedded_log2[what])
		looks->embedded_log2[what] = (uint8_t)(log2 < 12 ? log2 : 12);
	/* An offset of 0 fits every alignment and so speaks for none. */
	if (offset && looks->embedded[what] < UINT8_MAX)
		looks->embedded[what]++;
}

uint32_t hl_looks_used_align(const struct hl_looks *looks, hl_type_id id)
{
	uint32_t align = (uint32_t)1 << looks->typedef_log2[id];

	if (looks->embedded[id] >= 3 && align < (uint32_t)1 << looks->embedded_log2[id])
		align = (uint32_t)1 << looks->embedded_log2[id];
	return align;
}

enum hl_look hl_look_of_type(const struct hl_looks *looks, hl_type_id id)
{
	return (enum hl_look)looks->look[id];
}

/* ---- Members ---- */

static bool is_const(const struct hl_types *types, hl_type_id id)
{
	for (int depth = 0; depth < HL_MAX_DEPTH; depth++) {
		const struct hl_type *type = &types->type[id];

		if (type->kind == HL_CONST)
			return true;
		if (type->kind != HL_TYPEDEF && type->kind != HL_VOLATILE &&
		    type->kind != HL_RESTRICT && type->kind != HL_ARRAY)
			return false;
		id = type->target;
	}
	return false;
}

static enum hl_look look_of_pointer(const struct hl_types *types, const struct hl_type *pointer,
				    const char *name)
{
	hl_type_id what = hl_type_strip(types, pointer->target);
	const struct hl_type *pointee = &types->type[what];

	if (pointee->kind == HL_FUNCTION)
		return HL_LOOK_CONSTANT;
	if (hl_kind_is_aggregate(pointee->kind)) {
		if (read_name(pointee->name).last & W_OPS)
			return HL_LOOK_CONSTANT;
		if (is_const(types, pointer->target))
			return HL_LOOK_CONSTANT;
	}
	if (read_name(name).any & W_OPS)
		return HL_LOOK_CONSTANT;
	if (read_name(name).any & W_LINK)
		return HL_LOOK_LINK;
	return HL_LOOK_PLAIN;
}

static enum hl_look look_of_integer(const char *name, const struct hl_type *type, bool bits)
{
	struct reading reading = read_name(name);
	/* "need_lock" and the like are answers, not locks. */
	bool whole = !bits && !(type->flags & HL_TYPE_BOOL) && type->size >= 4;

	if (reading.any & W_REFS && whole)
		return HL_LOOK_ATOMIC;
	if (reading.last & W_LOCK && whole)
		return HL_LOOK_LOCK;
	/* "done" and "is_done", not "done_list" nor "qs_pending". */
	if (reading.last & W_DONE || (reading.words == 1 && reading.any & W_PENDING))
		return HL_LOOK_DONE;
	if (reading.last & W_STEADY)
		return HL_LOOK_STEADY;
	if (reading.any & W_COUNT || reading.last & W_INDEX)
		return HL_LOOK_COUNTER;
	if (reading.any & W_STEADY)
		return HL_LOOK_STEADY;
	return HL_LOOK_PLAIN;
}

static bool is_padding(const struct hl_types *types, const struct hl_type *array, const char *name)
{
	const struct hl_type *element = &types->type[hl_type_strip(types, array->target)];

	return element->kind == HL_BASE && read_name(name).any & W_PAD;
}

static enum hl_look look_of_member(const struct hl_looks *looks, const struct hl_types *types,
				   const struct hl_member *member)
{
	enum hl_look look = hl_look_of_type(looks, member->type);
	hl_type_id what = hl_type_strip(types, member->type);
	const struct hl_type *type = &types->type[what];

	if (type->kind == HL_ARRAY && is_padding(types, type, member->name))
		return HL_LOOK_PAD;
	if (look != HL_LOOK_PLAIN)
		return look;
	if (member->flags & HL_MEMBER_VPTR || is_const(types, member->type))
		return HL_LOOK_CONSTANT;
	switch (type->kind) {
	case HL_POINTER:
		return look_of_pointer(types, type, member->name);
	case HL_BASE:
	case HL_ENUM:
		if (type->flags & HL_TYPE_FLOAT)
			return HL_LOOK_PLAIN;
		return look_of_integer(member->name, type, member->bit_size);
	case HL_STRUCT:
		/* kuid_t and its kind: a struct around one integer. */
		if (type->count == 1 && type->size <= 8)
			return look_of_integer(member->name, type, false);
		return HL_LOOK_PLAIN;
	default:
		return HL_LOOK_PLAIN;
	}
}

/* ---- All of a file, once ---- */

struct hl_looks *hl_looks_build(const struct hl_types *types)
{
	struct hl_looks *looks = calloc(1, sizeof(*looks));
	size_t n = types->n_types;
	uint8_t *bytes = looks ? calloc(4 * n + types->n_members, 1) : NULL;

	if (!bytes) {
		free(looks);
		return NULL;
	}
	*looks = (struct hl_looks){
		.look = bytes, .typedef_log2 = bytes + n, .embedded_log2 = bytes + 2 * n,
		.embedded = bytes + 3 * n, .member = bytes + 4 * n,
	};
	for (hl_type_id id = 0; id < n; id++)
		looks->look[id] = (uint8_t)look_of_type(types, id);
	for (hl_type_id id = 0; id < n; id++) {
		const struct hl_type *type = &types->type[id];

		if (type->kind == HL_TYPEDEF)
			note_typedef(looks, types, type);
		if (!hl_kind_is_aggregate(type->kind))
			continue;
		for (uint32_t i = 0; i < type->count; i++) {
			const struct hl_member *member = &types->member[type->first + i];

			looks->member[type->first + i] =
				(uint8_t)look_of_member(looks, types, member);
			if (type->kind != HL_UNION)
				note_embedded(looks, types, member);
		}
	}
	return looks;
}

void hl_looks_free(struct hl_looks *looks)
{
	if (!looks)
		return;
	free(looks->look);
	free(looks);
}

enum hl_look hl_look_of_member(const struct hl_looks *looks, const struct hl_types *types,
			       const struct hl_member *member)
{
	return (enum hl_look)looks->member[member - types->member];
}
