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
/* What a process needs of the kernel's memory beside its pages. */
#define BESIDE (UINT64_C(1) << 20)

struct reader {
	const struct pages_row *what;
	uint64_t *page; /* TABLE of them */
	uint64_t loops;
	uint64_t fill; /* pages to read before, so that with others' all memory is used */
	int processor;
	int rc;
	uint64_t begun, ended;
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

		if (what->order == PAGES_ZIPF)
			page[i] = zipf(random, what->pages);
		else
			page[i] = (what->order == PAGES_IN_A_ROW ? i : random) % what->pages;
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
	if (!rc && what->limit < what->pages)
		rc = read_pages(reader, reader->fill);
	return rc ? rc : read_pages(reader, reader->loops / 4 + BENCH_PAGES_AT_ONCE);
}

static void *reader_thread(void *arg)
{
	struct reader *reader = arg;

	reader->rc = hl_cpu_pin(reader->processor);
	if (!reader->rc)
		reader->rc = warm_up(reader);
	pthread_barrier_wait(&start);
	reader->begun = bench_now();
	if (!reader->rc)
		reader->rc = read_pages(reader, reader->loops);
	reader->ended = bench_now();
	return NULL;
}

static int start_all(struct reader *reader, pthread_t *thread, const struct bench_run *run,
		     const struct pages_row *what)
{
	pthread_barrier_init(&start, NULL, run->threads);
	for (unsigned i = 0; i < run->threads; i++) {
		int rc;

		reader[i] = (struct reader){
			.what = what,
			.page = make_table(what, i),
			.loops = (run->loops / run->threads / what->at_once + 1) * what->at_once,
			.fill = what->limit * 3 / 2 / run->threads,
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
	uint64_t begun = UINT64_MAX, ended = 0;
	int rc = reader && thread ? start_all(reader, thread, run, what) : -ENOMEM;

	if (rc)
		return rc;
	for (unsigned i = 0; i < run->threads; i++) {
		pthread_join(thread[i], NULL);
		rc = rc ? rc : reader[i].rc;
		run->done += reader[i].loops;
		begun = reader[i].begun < begun ? reader[i].begun : begun;
		ended = reader[i].ended > ended ? reader[i].ended : ended;
	}
	run->ns = ended - begun;
	return rc;
}

/* ---- Writing ---- */

struct writer {
	const struct pages_row *what;
	uint64_t first, pages; /* its part of the file */
	uint64_t loops;
	int processor;
	int rc;
};

static void *writer_thread(void *arg)
{
	struct writer *writer = arg;
	uint64_t page = 0;

	writer->rc = hl_cpu_pin(writer->processor);
	pthread_barrier_wait(&start);
	for (uint64_t done = 0; done < writer->loops && !writer->rc; done += BENCH_PAGES_WRITTEN) {
		writer->rc = writer->what->peer->write(writer->first + page, BENCH_PAGES_WRITTEN,
						       done / BENCH_PAGES_WRITTEN);
		page = (page + BENCH_PAGES_WRITTEN) % writer->pages;
	}
	return NULL;
}

static uint64_t processor_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

static int measure_writes(struct bench_run *run, const struct pages_row *what, bool processors)
{
	struct writer *writer = calloc(run->threads, sizeof(*writer));
	pthread_t *thread = calloc(run->threads, sizeof(*thread));
	/* Memory has been filled before it is measured how fast it is emptied. */
	uint64_t loops = run->loops > what->pages ? run->loops : what->pages, begun;
	int rc = 0;

	if (!writer || !thread)
		return -ENOMEM;
	pthread_barrier_init(&start, NULL, run->threads + 1);
	for (unsigned i = 0; i < run->threads && !rc; i++) {
		uint64_t part =
			what->pages / run->threads / BENCH_PAGES_WRITTEN * BENCH_PAGES_WRITTEN;

		writer[i] = (struct writer){
			.what = what,
			.first = i * part,
			.pages = part,
			.loops = (loops / run->threads / BENCH_PAGES_WRITTEN + 1) *
				 BENCH_PAGES_WRITTEN,
			.processor = run->processor[i],
		};
		rc = -pthread_create(&thread[i], NULL, writer_thread, &writer[i]);
	}
	if (rc)
		return rc;
	begun = processors ? processor_ns() : bench_now();
	pthread_barrier_wait(&start);
	for (unsigned i = 0; i < run->threads; i++) {
		pthread_join(thread[i], NULL);
		rc = rc ? rc : writer[i].rc;
		run->done += writer[i].loops;
	}
	run->ns = (processors ? processor_ns() : bench_now()) - begun;
	return rc;
}

/* ---- A hot set and a scan ---- */

static int scan(struct bench_run *run, const struct pages_row *what)
{
	const struct pages_peer *peer = what->peer;
	uint64_t hot = what->limit / 2, scanned = 10 * what->limit, hits = 0, tried = 0, sum = 0;
	uint64_t state = 1, begun;
	int rc = hl_cpu_pin(run->processor[0]);

	for (unsigned round = 0; round < 3; round++) {
		for (uint64_t page = 0; page < hot && !rc; page++)
			rc = peer->read(&page, 1, &sum);
	}
	begun = bench_now();
	if (run->loops > scanned)
		scanned = run->loops;
	for (uint64_t i = 0; i < scanned && !rc; i++) {
		uint64_t cold = hot + i % (what->pages - hot), page = next_random(&state) % hot;

		rc = peer->read(&cold, 1, &sum);
		tried++;
		if (peer->hits(page))
			hits++;
		else if (!rc)
			rc = peer->read(&page, 1, &sum);
	}
	run->ns = bench_now() - begun;
	run->done = tried ? hits * 10000 / tried : 0;
	return rc;
}

/* ---- The runs ---- */

enum doing { READING, WRITING, WRITING_CPU, SCANNING };

static int do_it(struct bench_run *run, const struct pages_row *what, enum doing doing)
{
	switch (doing) {
	case READING:
		return measure(run, what);
	case SCANNING:
		return scan(run, what);
	default:
		return measure_writes(run, what, doing == WRITING_CPU);
	}
}

static int run_pages(struct bench_run *run, const struct bench_row *row, enum doing doing)
{
	const struct pages_row *what = row->what;
	struct pages_setup setup = {
		.path = bench_pages_file(what->place, what->pages),
		.pages = what->pages,
		.limit = what->limit,
	};
	bool limited = what->peer->kernel && what->limit < what->pages;
	int rc = setup.path ? what->peer->open(&setup) : -errno;

	if (rc)
		return rc;
	rc = limited ? bench_limit_memory(what->limit * BENCH_PAGE + BESIDE) : 0;
	if (!rc)
		rc = do_it(run, what, doing);
	if (limited)
		bench_unlimit_memory();
	if (what->peer->close)
		what->peer->close(&setup);
	return rc;
}

int bench_read_pages(struct bench_run *run, const struct bench_row *row)
{
	return run_pages(run, row, READING);
}

int bench_write_pages(struct bench_run *run, const struct bench_row *row)
{
	return run_pages(run, row, WRITING);
}

int bench_write_pages_cpu(struct bench_run *run, const struct bench_row *row)
{
	return run_pages(run, row, WRITING_CPU);
}

int bench_scan_pages(struct bench_run *run, const struct bench_row *row)
{
	return run_pages(run, row, SCANNING);
}

void bench_add_pages(struct bench_experiment *experiment, struct bench_scenario *scenario,
		     const struct pages_rows *rows)
{
	if (scenario) {
		scenario->loops = rows->loops;
		scenario->quick_loops = rows->quick_loops;
	}
	for (unsigned i = 0; i < rows->n; i++) {
		const struct pages_row *row = &rows->row[i];
		const char *why_not = row->peer->why_not;

		if (!why_not && row->peer->kernel && row->limit < row->pages)
			why_not = bench_no_limit();
		bench_add_row(experiment, scenario,
			      &(struct bench_row){
				      .name = row->name ? row->name : row->peer->name,
				      .kind = row->peer->kind,
				      .run = rows->run,
				      .what = row,
				      .why_not = (char *)why_not,
			      });
	}
}
