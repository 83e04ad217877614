// SPDX-License-Identifier: MIT
#include "words.h"

#include <ctype.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct word {
	const char *text;
	uint32_t mask;
};

static const struct word words[] = {
	{ "lock", W_LOCK },
	{ "spinlock", W_LOCK },
	{ "rwlock", W_LOCK },
	{ "seqlock", W_LOCK },
	{ "qspinlock", W_LOCK },
	{ "qrwlock", W_LOCK },
	{ "mutex", W_LOCK },
	{ "mtx", W_LOCK },
	{ "semaphore", W_LOCK },
	{ "sem", W_LOCK },
	{ "latch", W_LOCK },
	{ "futex", W_LOCK },
	{ "seqcount", W_LOCK },
	{ "rwsem", W_LOCK },
	{ "spin", W_LOCK },
	{ "slock", W_LOCK },
	{ "lwlock", W_LOCK },
	{ "rwlocks", W_LOCK },
	{ "spinlocks", W_LOCK },
	{ "atomic", W_ATOMIC },
	{ "atomic8", W_ATOMIC },
	{ "atomic16", W_ATOMIC },
	{ "atomic32", W_ATOMIC },
	{ "atomic64", W_ATOMIC },
	{ "atomics", W_ATOMIC },
	{ "refcount", W_REFS },
	{ "refcnt", W_REFS },
	{ "refs", W_REFS },
	{ "kref", W_REFS | W_ATOMIC },
	{ "usecount", W_REFS },
	{ "usecnt", W_REFS },
	{ "refcounter", W_REFS },
	{ "next", W_LINK },
	{ "prev", W_LINK },
	{ "link", W_LINK | W_LIST },
	{ "links", W_LINK | W_LIST },
	{ "node", W_LIST },
	{ "head", W_LIST | W_INDEX },
	{ "entry", W_LIST },
	{ "list", W_LIST },
	{ "hlist", W_LIST },
	{ "llist", W_LIST },
	{ "queue", W_LIST },
	{ "stack", W_LIST },
	{ "rb", W_LIST },
	{ "hook", W_LIST },
	{ "tail", W_INDEX },
	{ "depth", W_INDEX },
	{ "top", W_INDEX },
	{ "bottom", W_INDEX },
	{ "producer", W_INDEX },
	{ "consumer", W_INDEX },
	{ "produced", W_INDEX },
	{ "consumed", W_INDEX },
	{ "data", W_ARGUMENT },
	{ "arg", W_ARGUMENT },
	{ "args", W_ARGUMENT },
	{ "info", W_ARGUMENT },
	{ "priv", W_ARGUMENT },
	{ "private", W_ARGUMENT },
	{ "ctx", W_ARGUMENT },
	{ "context", W_ARGUMENT },
	{ "payload", W_ARGUMENT },
	{ "cookie", W_ARGUMENT },
	{ "opaque", W_ARGUMENT },
	{ "argument", W_ARGUMENT },
	{ "param", W_ARGUMENT },
	{ "user", W_ARGUMENT },
	{ "done", W_DONE },
	{ "ready", W_DONE },
	{ "complete", W_DONE },
	{ "completed", W_DONE },
	{ "completion", W_DONE },
	{ "pending", W_PENDING },
	{ "finished", W_DONE },
	{ "signaled", W_DONE },
	{ "signalled", W_DONE },
	{ "waitqueue", W_DONE },
	{ "count", W_COUNT },
	{ "counts", W_COUNT },
	{ "counter", W_COUNT },
	{ "counters", W_COUNT },
	{ "cnt", W_COUNT },
	{ "nr", W_COUNT },
	{ "num", W_COUNT },
	{ "hits", W_COUNT | W_TALLY },
	{ "misses", W_COUNT | W_TALLY },
	{ "packets", W_COUNT | W_TALLY },
	{ "drops", W_COUNT | W_TALLY },
	{ "reads", W_COUNT | W_TALLY },
	{ "writes", W_COUNT | W_TALLY },
	{ "iters", W_COUNT | W_TALLY },
	{ "ticks", W_COUNT | W_TALLY },
	{ "bytes", W_COUNT | W_SUM },
	{ "stat", W_COUNT | W_SUM },
	{ "stats", W_COUNT | W_SUM },
	{ "events", W_COUNT | W_SUM },
	{ "total", W_COUNT | W_SUM },
	{ "used", W_COUNT | W_SUM },
	{ "seq", W_COUNT | W_SUM },
	{ "sum", W_COUNT | W_SUM },
	{ "n", W_COUNT },
	{ "len", W_COUNT },
	{ "length", W_COUNT },
	{ "idx", W_COUNT },
	{ "index", W_COUNT },
	{ "pos", W_COUNT },
	{ "nelems", W_COUNT },
	{ "nents", W_COUNT },
	{ "filled", W_COUNT },
	{ "size", W_STEADY },
	{ "id", W_STEADY },
	{ "ids", W_STEADY },
	{ "key", W_STEADY },
	{ "uid", W_STEADY },
	{ "gid", W_STEADY },
	{ "cuid", W_STEADY },
	{ "cgid", W_STEADY },
	{ "mode", W_STEADY },
	{ "name", W_STEADY },
	{ "type", W_STEADY },
	{ "mask", W_STEADY },
	{ "shift", W_STEADY },
	{ "max", W_STEADY },
	{ "min", W_STEADY },
	{ "limit", W_STEADY },
	{ "capacity", W_STEADY },
	{ "config", W_STEADY },
	{ "cfg", W_STEADY },
	{ "version", W_STEADY },
	{ "order", W_STEADY },
	{ "align", W_STEADY },
	{ "alignment", W_STEADY },
	{ "weight", W_STEADY },
	{ "timeout", W_STEADY },
	{ "threshold", W_STEADY },
	{ "enabled", W_STEADY },
	{ "pad", W_PAD },
	{ "pad0", W_PAD },
	{ "pad1", W_PAD },
	{ "pad2", W_PAD },
	{ "pad3", W_PAD },
	{ "pad4", W_PAD },
	{ "padding", W_PAD },
	{ "pads", W_PAD },
	{ "padding1", W_PAD },
	{ "padding2", W_PAD },
	{ "filler", W_PAD },
	{ "spacer", W_PAD },
	{ "cacheline", W_PAD },
	{ "thread", W_THREAD },
	{ "threads", W_THREAD },
	{ "cpu", W_THREAD },
	{ "cpus", W_THREAD },
	{ "percpu", W_THREAD },
	{ "pcpu", W_THREAD },
	{ "worker", W_THREAD },
	{ "to", W_MAP },
	{ "workers", W_THREAD },
	{ "percore", W_THREAD },
	{ "cores", W_THREAD },
	{ "lcore", W_THREAD },
	{ "lcores", W_THREAD },
	{ "perthread", W_THREAD },
	{ "readers", W_ROLE },
	{ "writers", W_ROLE },
	{ "producers", W_ROLE },
	{ "consumers", W_ROLE },
	{ "slot", W_SLOT },
	{ "slots", W_SLOT },
	{ "shard", W_SLOT },
	{ "shards", W_SLOT },
	{ "lane", W_SLOT },
	{ "lanes", W_SLOT },
	{ "stripe", W_SLOT },
	{ "stripes", W_SLOT },
	{ "handler", W_REGISTERED },
	{ "handlers", W_REGISTERED },
	{ "listener", W_REGISTERED },
	{ "notifier", W_REGISTERED },
	{ "receiver", W_REGISTERED },
	{ "observer", W_REGISTERED },
	{ "subscriber", W_REGISTERED },
	{ "closure", W_REGISTERED },
	{ "ops", W_OPS },
	{ "operations", W_OPS },
	{ "vtbl", W_OPS },
	{ "vtable", W_OPS },
	{ "callbacks", W_OPS },
	{ "methods", W_OPS },
	{ "driver", W_OPS | W_REGISTERED },
	{ "funcs", W_OPS },
};

#define N_WORDS (sizeof(words) / sizeof(words[0]))
#define WORD_SLOTS 512u

/* Most words of names are not here: the hash tells, seldom the text. */
static struct {
	const struct word *word;
	uint32_t hash;
} word_slot[WORD_SLOTS];
static pthread_once_t words_once = PTHREAD_ONCE_INIT;

/* FNV-1a. */
#define HASH_START 2166136261u

static uint32_t hash_char(uint32_t hash, char c)
{
	return (hash ^ (unsigned char)c) * 16777619u;
}

static uint32_t slot_of(uint32_t hash)
{
	return (hash ^ hash >> 15) & (WORD_SLOTS - 1);
}

static void index_words(void)
{
	for (size_t i = 0; i < N_WORDS; i++) {
		uint32_t hash = HASH_START, at;

		for (const char *c = words[i].text; *c; c++)
			hash = hash_char(hash, *c);
		at = slot_of(hash);
		while (word_slot[at].word)
			at = (at + 1) & (WORD_SLOTS - 1);
		word_slot[at].word = &words[i];
		word_slot[at].hash = hash;
	}
}

static uint32_t mask_of_word(const char *text, size_t n, uint32_t hash)
{
	uint32_t at = slot_of(hash);

	for (; word_slot[at].word; at = (at + 1) & (WORD_SLOTS - 1)) {
		const struct word *word = word_slot[at].word;

		if (word_slot[at].hash == hash && !strncmp(word->text, text, n) && !word->text[n])
			return word->mask;
	}
	return 0;
}

#define LONGEST_WORD 24
/* What is behind that in a name is not read: it is asked for again and again. */
#define LONGEST_NAME 128

/* Of ASCII, whatever the locale. */
static bool is_upper(unsigned char c)
{
	return c >= 'A' && c <= 'Z';
}

static bool is_lower(unsigned char c)
{
	return c >= 'a' && c <= 'z';
}

static bool is_alnum(unsigned char c)
{
	return is_lower(c) || is_upper(c) || (c >= '0' && c <= '9');
}

struct hl_reading hl_read_name(const char *name)
{
	struct hl_reading reading = { .all = UINT32_MAX };
	char word[LONGEST_WORD];
	uint32_t hash = HASH_START;
	size_t n = 0;

	if (!name)
		return (struct hl_reading){ 0 };
	pthread_once(&words_once, index_words);
	for (const char *at = name;; at++) {
		unsigned char c = at < name + LONGEST_NAME ? (unsigned char)*at : 0;
		bool ends = !is_alnum(c) ||
			    (is_upper(c) && at > name && is_lower((unsigned char)at[-1]));

		if (ends && n) {
			/* "_t" and a lone "s" are no words. */
			if (n > 1 || (word[0] != 't' && word[0] != 's')) {
				reading.last = mask_of_word(word, n, hash);
				reading.any |= reading.last;
				reading.all &= reading.last;
				reading.words++;
			}
			n = 0;
			hash = HASH_START;
		}
		/* Template arguments say nothing of the template itself. */
		if (!c || c == '<')
			break;
		if (is_alnum(c) && n < LONGEST_WORD) {
			word[n] = (char)(is_upper(c) ? c - 'A' + 'a' : c);
			hash = hash_char(hash, word[n++]);
		}
	}
	return reading;
}
