// SPDX-License-Identifier: MIT
/*
 * A flood: threads give away objects as fast as they can get them, while a reader holds sections
 * of a millisecond, one after the other. Resident memory stays below what follows from the
 * marks of hl_rcu_set_marks() (docs/rcu.md, "Memory").
 *
 *	stress-rcu_flood [SECONDS]
 */
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <hotline/rcu.h>

#define GIVERS 2
#define OBJECT 240
#define SECTION_NS 1000000
#define SAMPLE_NS 1000000

/* As documented: the mark at first, calls in a batch, a call's own bytes, how long a giver waits
 * for a backlog that does not shrink. */
#define SLOW_MARK 200000
#define BATCH 4095
#define CALL 16
#define PATIENCE_NS 10000000

/* The allocator's and the threads' own. */
#define BESIDES (4 << 20)

static atomic_bool over;
static int seconds = 2;

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static size_t resident(void)
{
	unsigned long pages = 0;
	FILE *statm = fopen("/proc/self/statm", "r");

	assert_non_null(statm);
	assert_int_equal(fscanf(statm, "%*u %lu", &pages), 1);
	fclose(statm);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void *give(void *given)
{
	while (!atomic_load_explicit(&over, memory_order_relaxed)) {
		void *object = malloc(OBJECT);

		if (object && !hl_free_rcu(object))
			++*(uint64_t *)given;
	}
	return NULL;
}

static void *hold_sections(void *longest)
{
	while (!atomic_load_explicit(&over, memory_order_relaxed)) {
		int64_t begin = now_ns(), now;

		hl_rcu_read_lock();
		while ((now = now_ns()) < begin + SECTION_NS)
			;
		hl_rcu_read_unlock();
		if (now - begin > *(int64_t *)longest)
			*(int64_t *)longest = now - begin;
	}
	return NULL;
}

/* What the flood has reached. */
struct flood {
	size_t resident;
	uint64_t backlog;
	int64_t standstill; /* the longest time in which nothing ran */
};

static struct flood watch(void)
{
	struct timespec sample = { .tv_nsec = SAMPLE_NS };
	int64_t end = now_ns() + seconds * INT64_C(1000000000), ran_at = now_ns(), now;
	struct flood flood = { 0 };
	uint64_t invoked = 0;

	while ((now = now_ns()) < end) {
		struct hl_rcu_stats stats;
		size_t bytes = resident();

		hl_rcu_get_stats(&stats);
		if (stats.invoked != invoked) {
			invoked = stats.invoked;
			ran_at = now;
		}
		if (now - ran_at > flood.standstill)
			flood.standstill = now - ran_at;
		if (stats.backlog > flood.backlog)
			flood.backlog = stats.backlog;
		if (bytes > flood.resident)
			flood.resident = bytes;
		nanosleep(&sample, NULL);
	}
	return flood;
}

/* Bytes that an object takes with all that belongs to it. */
static size_t bytes_of_object(void)
{
	void *object = malloc(OBJECT);
	size_t bytes = malloc_usable_size(object) + sizeof(size_t) + CALL;

	free(object);
	return bytes;
}

/* Calls: the mark, a full batch and an open one of each thread, and one for each time that it
 * was let go on because nothing became less. */
static uint64_t allowed_backlog(const struct flood *flood, int64_t longest_section)
{
	int64_t stood = flood->standstill > longest_section ? flood->standstill : longest_section;

	return SLOW_MARK + GIVERS * BATCH * (2 + (uint64_t)(stood / PATIENCE_NS));
}

static void a_flood_stays_below_its_bound(void **state)
{
	size_t before = resident(), allowed;
	uint64_t given[GIVERS] = { 0 }, sum = 0, backlog;
	pthread_t giver[GIVERS], reader;
	int64_t longest = 0;
	struct flood flood;

	(void)state;
	assert_int_equal(pthread_create(&reader, NULL, hold_sections, &longest), 0);
	for (int i = 0; i < GIVERS; i++)
		assert_int_equal(pthread_create(&giver[i], NULL, give, &given[i]), 0);
	flood = watch();
	atomic_store(&over, true);
	for (int i = 0; i < GIVERS; i++) {
		pthread_join(giver[i], NULL);
		sum += given[i];
	}
	pthread_join(reader, NULL);
	hl_rcu_barrier();
	backlog = allowed_backlog(&flood, longest);
	allowed = before + backlog * bytes_of_object() + BESIDES;
	print_message("# %d s, %.1f million objects of %d bytes; most at once: %lu of %lu calls, "
		      "%.1f of %.1f MB\n",
		      seconds, (double)sum / 1e6, OBJECT, flood.backlog, backlog,
		      (double)flood.resident / 1e6, (double)allowed / 1e6);
	print_message("# longest section %.1f ms, longest standstill %.1f ms\n",
		      (double)longest / 1e6, (double)flood.standstill / 1e6);
	assert_true(sum > SLOW_MARK / 10);
	assert_true(flood.backlog <= backlog);
	assert_true(flood.resident <= allowed);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_flood_stays_below_its_bound),
	};

	if (argc > 1)
		seconds = atoi(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
