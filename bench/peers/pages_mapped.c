// SPDX-License-Identifier: MIT
/*
 * The design that maps: each page of the file has an address, memory comes to it by a fault and
 * goes by MADV_DONTNEED, many pages with one call. Written here, as its authors would:
 *
 * mapped-file	a mapping of the file, of which no more is mapped than may be
 * mapped-pread	memory of the process into which pages are read: the design of vmcache (Leis and
 *		others, 2023) without its kernel module. vmcache takes memory back page by page;
 *		here it is the batch, with one flush for all.
 *
 * The word of a page is its lock, and says whether it is there; a hand goes round over those that
 * are, and takes those that were not used since it last came.
 *
 * Memory ordering
 *
 * MAPPED_LOCK: who lets go of a page, or has read it, changes its word with release; who takes it
 *	does so with acquire.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "bench/pages.h"

#define BATCH 64u

#define ABSENT UINT32_MAX
#define LOCKED (UINT32_MAX - 1)
#define MARK (UINT32_C(1) << 30) /* not used since the hand came by; below it, who uses it */

static _Atomic(uint32_t) *word;
static char *memory;
static int file, self;
static bool is_file; /* mapped, not read */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Under lock: the pages that are there, and one; which places are free. */
static uint64_t *place;
static unsigned *free_place, n_free, n_places, hand;

static int open_mapped(const struct pages_setup *setup)
{
	size_t bytes = setup->pages * BENCH_PAGE;

	file = open(setup->path, O_RDONLY | O_CLOEXEC | (is_file ? 0 : O_DIRECT));
	self = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (file < 0 || self < 0)
		return -errno;
	memory = is_file ? mmap(NULL, bytes, PROT_READ, MAP_SHARED, file, 0)
			 : mmap(NULL, bytes, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED || madvise(memory, bytes, is_file ? MADV_RANDOM : MADV_NOHUGEPAGE))
		return -errno;
	n_places = (unsigned)setup->limit;
	word = calloc(setup->pages, sizeof(*word));
	place = calloc(n_places, sizeof(*place));
	free_place = calloc(n_places, sizeof(*free_place));
	if (!word || !place || !free_place)
		return -ENOMEM;
	for (uint64_t page = 0; page < setup->pages; page++)
		atomic_init(&word[page], ABSENT);
	while (n_free < n_places) {
		free_place[n_free] = n_free;
		n_free++;
	}
	return 0;
}

static int open_file(const struct pages_setup *setup)
{
	is_file = true;
	return open_mapped(setup);
}

/* Chooses pages to go and locks them; lock is held. */
static unsigned choose(unsigned *chosen)
{
	unsigned n = 0;

	for (unsigned looked = 0; looked < 4 * n_places && n < BATCH; looked++) {
		unsigned here = hand++ % n_places;
		uint64_t page = place[here] - 1;
		uint32_t seen;

		if (!place[here])
			continue;
		seen = atomic_load_explicit(&word[page], memory_order_relaxed);
		if (seen == 0)
			atomic_compare_exchange_strong_explicit(&word[page], &seen, MARK,
								memory_order_relaxed,
								memory_order_relaxed);
		else if (seen == MARK && /* MAPPED_LOCK, pairs with unfix() */
			 atomic_compare_exchange_strong_explicit(&word[page], &seen, LOCKED,
								 memory_order_acquire,
								 memory_order_relaxed))
			chosen[n++] = here;
	}
	return n;
}

static int give_back(const unsigned *chosen, unsigned n)
{
	struct iovec iov[BATCH];
	int rc = 0;

	for (unsigned i = 0; i < n; i++)
		iov[i] = (struct iovec){ memory + (place[chosen[i]] - 1) * BENCH_PAGE, BENCH_PAGE };
	if (syscall(SYS_process_madvise, self, iov, (size_t)n, MADV_DONTNEED, 0) ==
	    (long)n * BENCH_PAGE)
		return 0;
	/* A kernel that does not take it for this, or not from us. */
	for (unsigned i = 0; i < n && !rc; i++)
		rc = madvise(iov[i].iov_base, BENCH_PAGE, MADV_DONTNEED) ? -errno : 0;
	return rc;
}

/* Takes the memory of some pages back. */
static int make_room(void)
{
	unsigned chosen[BATCH], n;
	int rc;

	pthread_mutex_lock(&lock);
	n = choose(chosen);
	pthread_mutex_unlock(&lock);
	if (!n)
		return 0;
	rc = give_back(chosen, n);
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < n; i++) {
		atomic_store_explicit(&word[place[chosen[i]] - 1], ABSENT, memory_order_release);
		place[chosen[i]] = 0;
		free_place[n_free++] = chosen[i];
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

/* The page is locked: has it read. */
static int bring(uint64_t page)
{
	bool placed = false;

	while (!placed) {
		pthread_mutex_lock(&lock);
		placed = n_free;
		if (placed)
			place[free_place[--n_free]] = page + 1;
		pthread_mutex_unlock(&lock);
		if (!placed) {
			int rc = make_room();

			if (rc)
				return rc;
		}
	}
	if (is_file)
		return 0; /* the use of it does */
	return pread(file, memory + page * BENCH_PAGE, BENCH_PAGE, (off_t)(page * BENCH_PAGE)) ==
			       BENCH_PAGE
		       ? 0
		       : -EIO;
}

static int fix(uint64_t page)
{
	uint32_t seen = atomic_load_explicit(&word[page], memory_order_relaxed);

	for (;;) {
		uint32_t next = seen == ABSENT ? LOCKED : (seen & ~MARK) + 1;

		if (seen == LOCKED) {
			sched_yield();
			seen = atomic_load_explicit(&word[page], memory_order_relaxed);
			continue;
		}
		/* MAPPED_LOCK, pairs with unfix(), make_room() and below */
		if (!atomic_compare_exchange_weak_explicit(
			    &word[page], &seen, next, memory_order_acquire, memory_order_relaxed))
			continue;
		if (next == LOCKED) {
			int rc = bring(page);

			if (rc)
				return rc;
			atomic_store_explicit(&word[page], 1, memory_order_release);
		}
		return 0;
	}
}

static void unfix(uint64_t page)
{
	atomic_fetch_sub_explicit(&word[page], 1, memory_order_release);
}

static int read_mapped(const uint64_t *page, unsigned n, uint64_t *sum)
{
	for (unsigned i = 0; i < n; i++) {
		int rc = fix(page[i]);

		if (rc)
			return rc;
		*sum += *(const volatile uint64_t *)(memory + page[i] * BENCH_PAGE);
		unfix(page[i]);
	}
	return 0;
}

const struct pages_peer pages_mapped_file = {
	.name = "mapped-file",
	.kind = BENCH_PEER,
	.open = open_file,
	.read = read_mapped,
};
const struct pages_peer pages_mapped_pread = {
	.name = "mapped-pread",
	.kind = BENCH_PEER,
	.open = open_mapped,
	.read = read_mapped,
};
