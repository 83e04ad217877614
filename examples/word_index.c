// SPDX-License-Identifier: MIT
/*
 * A B+-tree on the page cache: indexes the words of texts in a file that is larger than the
 * memory it uses, and looks words up.
 *
 *	word_index [-w WORD]... [TEXT...]
 *
 * Tells how often each WORD is in the texts: letters and underscores, two or more, of which the first
 * 20 count.
 *
 * Without texts it finds itself some: the C library's headers, and words that it makes up.
 * The index maps each word and where it stands to nothing: the key is the word, the number
 * of the text and the offset. Readers read inner pages without fixing them (hl_page_read_begin)
 * and fix the leaf; the writer fixes what it changes.
 *
 * Some words are counted while the texts are read, and looked up in the end.
 */
#include <ctype.h>
#include <errno.h>
#include <glob.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hotline/pagecache.h>

#define MEMORY (16u << 20)
#define PAGE 4096u
#define WORD 20

/* ---- Pages of the tree ---- */

struct key {
	char word[WORD];
	uint32_t text;
	uint32_t offset;
};

/* A leaf holds keys; an inner page a child for each key, which holds what is not less than the
 * key, and child[0] what is less than all. */
#define LEAF_KEYS ((PAGE - 16) / sizeof(struct key))
#define INNER_KEYS ((PAGE - 24) / (sizeof(struct key) + sizeof(uint64_t)))

struct node {
	uint32_t n;
	uint32_t leaf;
	uint64_t next; /* of leaves: the one to the right; 0: none */
	union {
		struct key key[LEAF_KEYS];
		struct {
			uint64_t child[INNER_KEYS + 1];
			struct key key[INNER_KEYS];
		} inner;
	} u;
};
_Static_assert(sizeof(struct node) <= PAGE, "a node is a page");

struct tree {
	struct hl_pagecache *cache;
	uint64_t root;
	uint64_t pages; /* in use */
	uint64_t keys;
	unsigned height;
};

static void stop(const char *what, int rc)
{
	fprintf(stderr, "word_index: %s: %s\n", what, strerror(-rc));
	exit(1);
}

static struct node *fix(struct tree *tree, uint64_t page, unsigned how)
{
	void *data;
	int rc = hl_page_fix(tree->cache, page, how, &data);

	if (rc)
		stop("cannot fix a page", rc);
	return data;
}

static struct node *new_node(struct tree *tree, bool leaf, uint64_t *page)
{
	struct node *node;
	int rc = 0;

	*page = tree->pages++;
	if ((int64_t)*page >= hl_pagecache_pages(tree->cache))
		rc = hl_pagecache_grow(tree->cache, 2 * tree->pages);
	if (rc)
		stop("cannot make the file longer", rc);
	node = fix(tree, *page, HL_PAGE_NEW);
	memset(node, 0, PAGE);
	node->leaf = leaf;
	return node;
}

static int compare(const struct key *a, const struct key *b)
{
	int order = memcmp(a->word, b->word, WORD);

	if (!order)
		order = a->text < b->text ? -1 : a->text > b->text;
	if (!order)
		order = a->offset < b->offset ? -1 : a->offset > b->offset;
	return order;
}

/* How many keys are not greater; n of a page that may be anything must be checked before. */
static unsigned rank(const struct key *keys, unsigned n, const struct key *key)
{
	unsigned low = 0, high = n;

	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (compare(&keys[middle], key) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* ---- Insertion, by one thread ---- */

static void put_key(struct key *keys, unsigned n, unsigned at, const struct key *key)
{
	memmove(&keys[at + 1], &keys[at], (n - at) * sizeof(*keys));
	keys[at] = *key;
}

/* Moves the upper half of a full page to a new one; the first key of that one. */
static struct key split(struct tree *tree, struct node *node, uint64_t *right)
{
	struct node *other = new_node(tree, node->leaf, right);
	unsigned half = node->n / 2;
	struct key up;

	if (node->leaf) {
		other->n = node->n - half;
		memcpy(other->u.key, node->u.key + half, other->n * sizeof(struct key));
		up = other->u.key[0];
		other->next = node->next;
		node->next = *right;
	} else {
		/* The middle key goes up and stands in neither. */
		other->n = node->n - half - 1;
		up = node->u.inner.key[half];
		memcpy(other->u.inner.key, node->u.inner.key + half + 1,
		       other->n * sizeof(struct key));
		memcpy(other->u.inner.child, node->u.inner.child + half + 1,
		       (other->n + 1) * sizeof(uint64_t));
	}
	node->n = half;
	hl_page_unfix(tree->cache, other);
	return up;
}

static void put_child(struct node *node, const struct key *key, uint64_t child)
{
	unsigned at = rank(node->u.inner.key, node->n, key);

	memmove(&node->u.inner.child[at + 2], &node->u.inner.child[at + 1],
		(node->n - at) * sizeof(uint64_t));
	node->u.inner.child[at + 1] = child;
	put_key(node->u.inner.key, node->n, at, key);
	node->n++;
}

static void new_root(struct tree *tree, const struct key *key, uint64_t right)
{
	uint64_t page;
	struct node *root = new_node(tree, false, &page);

	root->u.inner.child[0] = tree->root;
	put_child(root, key, right);
	hl_page_unfix(tree->cache, root);
	tree->root = page;
	tree->height++;
}

/* Below a page; true: it was split, and *up and *right belong above. */
static bool insert_below(struct tree *tree, uint64_t page, const struct key *key, struct key *up,
			 uint64_t *right)
{
	struct node *node = fix(tree, page, HL_PAGE_EXCLUSIVE);
	bool is_split = false;
	uint64_t child, child_right;
	struct key child_up;

	if (node->leaf) {
		put_key(node->u.key, node->n, rank(node->u.key, node->n, key), key);
		node->n++;
		is_split = node->n == LEAF_KEYS;
	} else {
		child = node->u.inner.child[rank(node->u.inner.key, node->n, key)];
		if (!insert_below(tree, child, key, &child_up, &child_right)) {
			hl_page_unfix(tree->cache, node);
			return false;
		}
		put_child(node, &child_up, child_right);
		is_split = node->n == INNER_KEYS;
	}
	hl_page_dirty(tree->cache, node);
	if (is_split)
		*up = split(tree, node, right);
	hl_page_unfix(tree->cache, node);
	return is_split;
}

static void insert(struct tree *tree, const struct key *key)
{
	struct key up;
	uint64_t right;

	if (insert_below(tree, tree->root, key, &up, &right))
		new_root(tree, &up, right);
	tree->keys++;
}

/* ---- Search, by any number of threads ---- */

/* The child of an inner page for a key, read without fixing it. 0: the page is a leaf. */
static uint64_t child_for(struct tree *tree, uint64_t page, const struct key *key)
{
	struct hl_page_read read;
	uint64_t child;

	do {
		const struct node *node;
		unsigned n;
		int rc = hl_page_read_begin(tree->cache, page, &read);

		if (rc)
			stop("cannot read a page", rc);
		node = read.data;
		n = node->n <= INNER_KEYS ? node->n : 0; /* it may be anything */
		child = node->leaf ? 0 : node->u.inner.child[rank(node->u.inner.key, n, key)];
	} while (!hl_page_read_valid(&read));
	return child;
}

/* How often a word stands in the texts. */
static unsigned long count(struct tree *tree, const char *word)
{
	struct key key = { .text = 0 };
	uint64_t page = tree->root, child;
	unsigned long found = 0;
	bool more = true;

	memcpy(key.word, word, strnlen(word, WORD));
	while ((child = child_for(tree, page, &key)))
		page = child;
	while (page && more) {
		struct node *leaf = fix(tree, page, HL_PAGE_SHARED);

		for (unsigned i = 0; i < leaf->n && more; i++) {
			int order = memcmp(leaf->u.key[i].word, key.word, WORD);

			found += !order;
			more = order <= 0;
		}
		page = leaf->next;
		hl_page_unfix(tree->cache, leaf);
	}
	return found;
}

/* ---- Texts ---- */

/* Words whose hash is a multiple of SAMPLE, all of them or none. */
#define SAMPLE 512u

static struct {
	char word[WORD];
	unsigned long n;
} sample[256];
static unsigned n_samples;

static void count_if_sample(const struct key *key)
{
	uint32_t hash = 2166136261u;
	unsigned i = 0;

	for (unsigned k = 0; k < WORD; k++)
		hash = (hash ^ (unsigned char)key->word[k]) * 16777619u;
	if ((hash >> 8) % SAMPLE)
		return;
	while (i < n_samples && memcmp(sample[i].word, key->word, WORD) != 0)
		i++;
	if (i == sizeof(sample) / sizeof(sample[0]))
		return;
	if (i == n_samples)
		memcpy(sample[n_samples++].word, key->word, WORD);
	sample[i].n++;
}

/* Looks each up, and shows those that stand there most often. */
static void check_samples(struct tree *tree)
{
	unsigned long found = 0, shown = 0;

	for (unsigned i = 0; i < n_samples; i++) {
		unsigned long n = count(tree, sample[i].word);

		if (n != sample[i].n)
			stop("a word is missing", -EILSEQ);
		found += n;
	}
	printf("%u words looked up, each as often as it stands there: %lu times\n", n_samples,
	       found);
	while (shown < 3 && shown < n_samples) {
		unsigned most = 0;

		for (unsigned i = 1; i < n_samples; i++)
			most = sample[i].n > sample[most].n ? i : most;
		printf("  %-*.*s %lu\n", WORD, WORD, sample[most].word, sample[most].n);
		sample[most].n = 0;
		shown++;
	}
}

/* 0 or why it cannot be read. */
static int add_text(struct tree *tree, const char *path, uint32_t number)
{
	FILE *file = fopen(path, "r");
	struct key key = { .text = number };
	uint32_t offset = 0;
	unsigned length = 0;
	int c;

	if (!file)
		return -errno;
	do {
		c = getc(file);
		offset++;
		if (c != EOF && (isalpha(c) || c == '_')) {
			if (length < WORD)
				key.word[length++] = (char)c;
			continue;
		}
		if (length > 1) {
			key.offset = offset - length;
			insert(tree, &key);
			count_if_sample(&key);
		}
		memset(key.word, 0, WORD);
		length = 0;
	} while (c != EOF);
	fclose(file);
	return 0;
}

/* What any machine has: words by the numbers. */
static void add_numbers(struct tree *tree)
{
	for (uint32_t i = 0; i < 200000; i++) {
		struct key key = { .text = 1, .offset = i };

		snprintf(key.word, WORD, "w%u", i * 7919u % 50000);
		insert(tree, &key);
		count_if_sample(&key);
	}
}

static void add_texts(struct tree *tree, int n, char **paths)
{
	glob_t found = { 0 };
	uint32_t number = 1;

	if (!n) {
		add_numbers(tree);
		if (!glob("/usr/include/*.h", 0, NULL, &found)) {
			n = (int)found.gl_pathc;
			paths = found.gl_pathv;
		}
	}
	for (int i = 0; i < n; i++) {
		int rc = add_text(tree, paths[i], ++number);

		if (rc)
			stop(paths[i], rc);
	}
	globfree(&found);
}

int main(int argc, char **argv)
{
	char path[] = "word_index-XXXXXX";
	const struct hl_pagecache_options options = { .limit = MEMORY, .pages = 16 };
	struct tree tree = { .pages = 1, .height = 1 };
	struct hl_pagecache_stats stats;
	/* What -w says, fewer than there are arguments. */
	char **words = calloc((size_t)argc, sizeof(*words));
	int fd, rc, option, n_words = 0;

	while ((option = getopt(argc, argv, "w:")) == 'w')
		words[n_words++] = optarg;
	fd = option == -1 && words ? mkstemp(path) : -1;
	if (fd < 0) {
		fprintf(stderr, "usage: word_index [-w WORD]... [TEXT...]\n");
		return 1;
	}
	close(fd);
	rc = hl_pagecache_open(&tree.cache, path, &options);
	unlink(path);
	if (rc)
		stop("cannot open the index", rc);
	hl_page_unfix(tree.cache, new_node(&tree, true, &tree.root));
	add_texts(&tree, argc - optind, argv + optind);
	rc = hl_pagecache_sync(tree.cache);
	if (rc)
		stop("cannot write the index", rc);
	hl_pagecache_get_stats(tree.cache, &stats);
	printf("%lu words in %lu pages (%.1f MB) of a tree %u high, through %u MB of memory\n",
	       (unsigned long)tree.keys, (unsigned long)tree.pages, (double)tree.pages * PAGE / 1e6,
	       tree.height, MEMORY >> 20);
	printf("%lu hits, %lu misses, %lu pages written in %lu requests\n",
	       (unsigned long)stats.hits, (unsigned long)stats.misses,
	       (unsigned long)stats.pages_written, (unsigned long)stats.writes);
	check_samples(&tree);
	if (count(&tree, "xyzzyxyzzy 1"))
		stop("a word is there that is in no text", -EILSEQ);
	for (int i = 0; i < n_words; i++)
		printf("%s %lu\n", words[i], count(&tree, words[i]));
	free(words);
	return hl_pagecache_close(tree.cache) != 0;
}
