// SPDX-License-Identifier: MIT
/*
 * Threads that read pages, in the order of a table that is made before.
 */
#include "bench/pages.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <hotline/cpu.h>

#include "bench/clock.h"

#define TABLE 65536u

struct reader {
	const struct pages_row *what;
	uint64_t *page; /* TABLE of them */
	uint64_t loops;
	int processor;
	int rc;
};

static pthread_barrier_t start;

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

/* Where the harmonic numbers up to n pages reach a part of their sum: Zipf's law with
 * exponent 1, by its integral. */
static uint64_t zipf(uint64_t random, uint64_t pages)
{
	double part = (double)random / 2147483648.0;
	uint64_t rank = (uint64_t)(pow((double)pages + 1, part) - 1);

	/* Pages that are read often do not lie side by side. */
	return rank * 2654435761u % pages;
}

static uint64_t *make_table(const struct pages_row *what, unsigned number)
{
	uint64_t *page = malloc(TABLE * sizeof(*page)), state = number * 1000003u + 17;

	for (unsigned i = 0; page && i < TABLE; i++) {
		uint64_t random = next_random(&state);

		page[i] = what->order == PAGES_ZIPF ? zipf(random, what->pages)
						    : random % what->pages;
	}
	return page;
}

/* Reads so many pages and checks what it read. */
static int read_pages(const struct reader *reader, uint64_t loops)
{
	const struct pages_peer *peer = reader->what->peer;
	unsigned at_once = reader->what->at_once;
	uint64_t sum = 0, wanted = 0;

	for (uint64_t done = 0; done < loops; done += at_once) {
		const uint64_t *page = reader->page + done % TABLE;
		int rc = peer->read(page, at_once, &sum);

		if (rc)
			return rc;
		for (unsigned i = 0; i < at_once; i++)
			wanted += page[i];
	}
	return sum == wanted ? 0 : -EILSEQ;
}

/* Has all pages in memory that will be there. */
static int warm_up(const struct reader *reader)
{
	const struct pages_row *what = reader->what;
	uint64_t sum = 0;
	int rc = 0;

	for (uint64_t page = 0; what->limit >= what->pages && page < what->pages && !rc; page++)
		rc = what->peer->read(&page, 1, &sum);
	return rc ? rc : read_pages(reader, reader->loops / 4 + BENCH_PAGES_AT_ONCE);
}

static void *reader_thread(void *arg)
{
	struct reader *reader = arg;

	reader->rc = hl_cpu_pin(reader->processor);
	if (!reader->rc)
		reader->rc = warm_up(reader);
	pthread_barrier_wait(&start);
	if (!reader->rc)
		reader->rc = read_pages(reader, reader->loops);
	return NULL;
}

static int start_all(struct reader *reader, pthread_t *thread, const struct bench_run *run,
		     const struct pages_row *what)
{
	pthread_barrier_init(&start, NULL, run->threads + 1);
	for (unsigned i = 0; i < run->threads; i++) {
		int rc;

		reader[i] = (struct reader){
			.what = what,
			.page = make_table(what, i),
			.loops = (run->loops / run->threads / what->at_once + 1) * what->at_once,
			.processor = run->processor[i],
		};
		if (!reader[i].page)
			return -ENOMEM;
		rc = pthread_create(&thread[i], NULL, reader_thread, &reader[i]);
		if (rc)
			return -rc;
	}
	return 0;
}

static int measure(struct bench_run *run, const struct pages_row *what)
{
	struct reader *reader = calloc(run->threads, sizeof(*reader));
	pthread_t *thread = calloc(run->threads, sizeof(*thread));
	uint64_t begun;
	int rc = reader && thread ? start_all(reader, thread, run, what) : -ENOMEM;

	if (rc)
		return rc;
	pthread_barrier_wait(&start);
	begun = bench_now();
	for (unsigned i = 0; i < run->threads; i++) {
		pthread_join(thread[i], NULL);
		rc = rc ? rc : reader[i].rc;
		run->done += reader[i].loops;
	}
	run->ns = bench_now() - begun;
	return rc;
}

int bench_read_pages(struct bench_run *run, const struct bench_row *row)
{
	const struct pages_row *what = row->what;
	struct pages_setup setup = {
		.path = bench_pages_file(what->place, what->pages),
		.pages = what->pages,
		.limit = what->limit,
		.at_once = what->at_once,
	};
	/* The kernel's own share of what such a process needs. */
	bool limited = what->peer->kernel && what->limit < what->pages;
	int rc;

	if (!setup.path)
		return -errno;
	rc = limited ? bench_limit_memory(what->limit * BENCH_PAGE + (UINT64_C(4) << 20)) : 0;
	if (!rc)
		rc = what->peer->open(&setup);
	if (!rc)
		rc = measure(run, what);
	if (limited)
		bench_unlimit_memory();
	return rc;
}
