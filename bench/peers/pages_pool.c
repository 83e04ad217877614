// SPDX-License-Identifier: MIT
/*
 * A buffer pool as it is written first: a mutex, a hash of chains, a list in order of use,
 * a count of users for each page.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/pages.h"

struct buffer {
	uint64_t page;
	unsigned users;
	struct buffer *chain;
	struct buffer *newer, *older;
	char *data;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct buffer *buffers, **chains, ends; /* ends.older: the newest, ends.newer: the oldest */
static uint64_t n_chains;
static int fd;

static void take_out(struct buffer *buffer)
{
	buffer->newer->older = buffer->older;
	buffer->older->newer = buffer->newer;
}

static void put_newest(struct buffer *buffer)
{
	buffer->older = ends.older;
	buffer->newer = &ends;
	ends.older->newer = buffer;
	ends.older = buffer;
}

static int open_pool(const struct pages_setup *setup)
{
	n_chains = setup->limit;
	fd = open(setup->path, O_RDONLY | O_CLOEXEC | O_DIRECT);
	buffers = calloc(setup->limit, sizeof(*buffers));
	chains = calloc(n_chains, sizeof(*chains));
	if (fd < 0 || !buffers || !chains)
		return fd < 0 ? -errno : -ENOMEM;
	ends.older = ends.newer = &ends;
	for (uint64_t i = 0; i < setup->limit; i++) {
		buffers[i].page = UINT64_MAX;
		if (posix_memalign((void **)&buffers[i].data, BENCH_PAGE, BENCH_PAGE))
			return -ENOMEM;
		put_newest(&buffers[i]);
	}
	return 0;
}

static struct buffer *find(uint64_t page)
{
	struct buffer *buffer = chains[page % n_chains];

	while (buffer && buffer->page != page)
		buffer = buffer->chain;
	return buffer;
}

static void unchain(struct buffer *buffer)
{
	struct buffer **link = &chains[buffer->page % n_chains];

	while (*link != buffer)
		link = &(*link)->chain;
	*link = buffer->chain;
}

/* Reads with the lock held, as such pools do at first. */
static struct buffer *replace(uint64_t page)
{
	struct buffer *buffer = ends.newer;

	while (buffer != &ends && buffer->users)
		buffer = buffer->newer;
	if (buffer == &ends)
		return NULL;
	if (buffer->page != UINT64_MAX)
		unchain(buffer);
	buffer->page = page;
	buffer->chain = chains[page % n_chains];
	chains[page % n_chains] = buffer;
	return pread(fd, buffer->data, BENCH_PAGE, (off_t)(page * BENCH_PAGE)) == BENCH_PAGE
		       ? buffer
		       : NULL;
}

static int read_pool(const uint64_t *page, unsigned n, uint64_t *sum)
{
	for (unsigned i = 0; i < n; i++) {
		struct buffer *buffer;

		pthread_mutex_lock(&lock);
		buffer = find(page[i]);
		if (!buffer)
			buffer = replace(page[i]);
		if (buffer) {
			buffer->users++;
			take_out(buffer);
			put_newest(buffer);
		}
		pthread_mutex_unlock(&lock);
		if (!buffer)
			return -EIO;
		*sum += *(uint64_t *)buffer->data;
		pthread_mutex_lock(&lock);
		buffer->users--;
		pthread_mutex_unlock(&lock);
	}
	return 0;
}

static bool hits(uint64_t page)
{
	uint64_t sum = 0;

	return find(page) && !read_pool(&page, 1, &sum);
}

const struct pages_peer pages_pool = {
	.name = "mutex-hash-lru",
	.kind = BENCH_PEER,
	.open = open_pool,
	.read = read_pool,
	.hits = hits,
};
