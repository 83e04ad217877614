// SPDX-License-Identifier: MIT
/*
 * Torture of the RCU hash table: it grows and shrinks by floods of entries that come and
 * go, while threads look up, exchange, count and visit.
 *
 *	stress-rcuhash [SECONDS [SEED]]
 *
 * There are keys of three kinds. Some stay: they are found at every lookup, and visited once in
 * every visit. Each thread has some of its own, and knows of each whether it is there. And
 * some all threads want to put in, as the only one, and take out: it works for one of them
 * at a time. An entry that is taken out is broken after a grace period, and freed; who finds
 * a broken one in a section has found it too late.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include <hotline/cpu.h>
#include <hotline/rcu.h>
#include <hotline/rcuhash.h>

#define THREADS 4u
#define STAY 500u
#define OWN 3000u /* of each thread */
#define SHARED 16u
#define WHOLE 0x600df00du

#ifdef __SANITIZE_THREAD__
#define SLOWER 8u
#else
#define SLOWER 1u
#endif

struct entry {
	struct hl_rcu_hash_node node;
	uint64_t key;
	_Atomic(uint32_t) whole;
	struct hl_rcu_head rcu;
};

static struct hl_rcu_hash *table;
static atomic_ulong broken, missing, unexpected, visited_wrong, bad_results, operations, moves;
static atomic_long shared_there[SHARED]; /* adds that worked less takes that did */
static atomic_bool stop;
static unsigned seed, seconds = 2;

static uint32_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

/* Few bits, so that entries of different keys have the same hash. */
static uint64_t hash_of(uint64_t key)
{
	return key * UINT64_C(0x9e3779b97f4a7c15) >> 50;
}

static uint64_t own_key(unsigned thread, unsigned number)
{
	return 1000000u * (thread + 1) + number;
}

static uint64_t shared_key(unsigned number)
{
	return 900000u + number;
}

static struct entry *of(struct hl_rcu_hash_node *node)
{
	return HL_RCU_HASH_ENTRY(node, struct entry, node);
}

static bool same_key(const struct hl_rcu_hash_node *node, const void *key)
{
	return HL_RCU_HASH_ENTRY(node, const struct entry, node)->key == *(const uint64_t *)key;
}

static struct entry *new_entry(uint64_t key)
{
	struct entry *entry = malloc(sizeof(*entry));

	if (!entry)
		abort();
	entry->key = key;
	atomic_init(&entry->whole, WHOLE);
	return entry;
}

static void break_and_free(struct hl_rcu_head *head)
{
	struct entry *entry = (struct entry *)((char *)head - offsetof(struct entry, rcu));

	atomic_store_explicit(&entry->whole, 0, memory_order_relaxed);
	free(entry);
}

static void retire(struct entry *entry)
{
	hl_call_rcu(&entry->rcu, break_and_free);
}

static bool is_whole(struct entry *entry)
{
	return atomic_load_explicit(&entry->whole, memory_order_relaxed) == WHOLE;
}

/* In a section. */
static struct entry *find(uint64_t key)
{
	struct hl_rcu_hash_node *node = hl_rcu_hash_lookup(table, hash_of(key), same_key, &key);

	if (!node)
		return NULL;
	if (!is_whole(of(node)))
		atomic_fetch_add(&broken, 1);
	return of(node);
}

/* ---- Keys that stay ---- */

static void look_up_one_that_stays(uint64_t *state)
{
	uint64_t key = next_random(state) % STAY;

	hl_rcu_read_lock();
	if (!find(key))
		atomic_fetch_add(&missing, 1);
	hl_rcu_read_unlock();
}

/* Another takes its place: it is there all the time. */
static void exchange_one_that_stays(uint64_t *state)
{
	struct entry *entry = new_entry(next_random(state) % STAY);
	struct hl_rcu_hash_node *old;

	if (hl_rcu_hash_add_replace(table, hash_of(entry->key), same_key, &entry->key, &entry->node,
				    &old)) {
		atomic_fetch_add(&bad_results, 1);
		free(entry);
		return;
	}
	if (old)
		retire(of(old));
	else
		atomic_fetch_add(&missing, 1);
}

static bool count_visit(struct hl_rcu_hash_node *node, void *arg)
{
	struct entry *entry = of(node);
	unsigned *visits = arg;

	if (!is_whole(entry))
		atomic_fetch_add(&broken, 1);
	if (entry->key < STAY)
		visits[entry->key]++;
	return false;
}

static void visit_all(void)
{
	unsigned visits[STAY] = { 0 };

	hl_rcu_hash_for_each(table, count_visit, visits);
	for (unsigned i = 0; i < STAY; i++) {
		/* One that is exchanged in the middle of a visit is still one. */
		if (visits[i] != 1)
			atomic_fetch_add(&visited_wrong, 1);
	}
}

/* ---- Keys of a thread's own ---- */

struct thread {
	unsigned number;
	uint64_t state;
	struct entry *own[OWN]; /* NULL: not in the table */
	bool filling;
};

static void check_own(struct thread *thread, unsigned number)
{
	struct entry *found;

	hl_rcu_read_lock();
	found = find(own_key(thread->number, number));
	hl_rcu_read_unlock();
	if (found != thread->own[number])
		atomic_fetch_add(&unexpected, 1);
}

static void change_own(struct thread *thread, unsigned number)
{
	struct entry *entry = thread->own[number], *other;
	uint64_t key = own_key(thread->number, number);
	int rc;

	if (!entry) {
		entry = new_entry(key);
		rc = hl_rcu_hash_add(table, hash_of(key), &entry->node);
		thread->own[number] = entry;
	} else if (next_random(&thread->state) % 4) {
		rc = hl_rcu_hash_del(table, &entry->node);
		thread->own[number] = NULL;
		retire(entry);
	} else {
		other = new_entry(key);
		rc = hl_rcu_hash_replace(table, &entry->node, &other->node);
		thread->own[number] = other;
		retire(entry);
	}
	if (rc)
		atomic_fetch_add(&bad_results, 1);
}

/* Many come, then many go: the table grows and shrinks many times. */
static void flood(struct thread *thread)
{
	thread->filling = !thread->filling;
	for (unsigned i = 0; i < OWN; i++) {
		if (!thread->own[i] == thread->filling)
			change_own(thread, i);
		if (i % 64 == 0)
			check_own(thread, next_random(&thread->state) % OWN);
	}
	atomic_fetch_add_explicit(&moves, 1, memory_order_relaxed);
}

/* ---- Keys that all want ---- */

static void want_shared(uint64_t *state)
{
	unsigned number = next_random(state) % SHARED;
	struct entry *entry = new_entry(shared_key(number));
	struct hl_rcu_hash_node *existing;
	int rc;

	hl_rcu_read_lock();
	rc = hl_rcu_hash_add_unique(table, hash_of(entry->key), same_key, &entry->key, &entry->node,
				    &existing);
	if (!rc) {
		atomic_fetch_add(&shared_there[number], 1);
	} else if (rc == -EEXIST) {
		if (!is_whole(of(existing)))
			atomic_fetch_add(&broken, 1);
	} else {
		atomic_fetch_add(&bad_results, 1);
	}
	hl_rcu_read_unlock();
	if (rc)
		free(entry);
}

static void take_shared(uint64_t *state)
{
	unsigned number = next_random(state) % SHARED;
	struct entry *entry;
	int rc = -ENOENT;

	hl_rcu_read_lock();
	entry = find(shared_key(number));
	if (entry)
		rc = hl_rcu_hash_del(table, &entry->node);
	hl_rcu_read_unlock();
	if (!rc) {
		atomic_fetch_sub(&shared_there[number], 1);
		retire(entry);
	} else if (rc != -ENOENT) {
		atomic_fetch_add(&bad_results, 1);
	}
}

/* ---- Threads ---- */

static void work(struct thread *thread)
{
	unsigned what = next_random(&thread->state) % 2048;

	if (what == 0)
		flood(thread);
	else if (what < 4)
		visit_all();
	else if (what < 8)
		sched_yield();
	else if (what < 256)
		want_shared(&thread->state);
	else if (what < 512)
		take_shared(&thread->state);
	else if (what < 700)
		exchange_one_that_stays(&thread->state);
	else if (what < 1000)
		change_own(thread, next_random(&thread->state) % OWN);
	else if (what < 1300)
		check_own(thread, next_random(&thread->state) % OWN);
	else
		look_up_one_that_stays(&thread->state);
}

static void *thread_main(void *arg)
{
	struct thread *thread = arg;
	/* The last reads by quiescent states. */
	bool quiescent = thread->number == THREADS - 1 && !hl_rcu_set_quiescent(true);

	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		for (unsigned i = 0; i < 64; i++)
			work(thread);
		atomic_fetch_add_explicit(&operations, 64, memory_order_relaxed);
		hl_rcu_quiescent_state();
	}
	for (unsigned i = 0; i < OWN; i++) {
		check_own(thread, i);
		if (!thread->own[i])
			continue;
		if (hl_rcu_hash_del(table, &thread->own[i]->node))
			atomic_fetch_add(&bad_results, 1);
		retire(thread->own[i]);
	}
	if (quiescent)
		hl_rcu_set_quiescent(false);
	return NULL;
}

static void *time_keeper(void *arg)
{
	struct timespec end;

	(void)arg;
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += seconds;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR)
		;
	atomic_store(&stop, true);
	return NULL;
}

static bool take_out(struct hl_rcu_hash_node *node, void *arg)
{
	++*(unsigned long *)arg;
	if (hl_rcu_hash_del(table, node))
		atomic_fetch_add(&bad_results, 1);
	retire(of(node));
	return false;
}

static void what_stays_is_found_while_the_table_changes(void **state)
{
	static struct thread thread[THREADS];
	pthread_t id[THREADS], keeper;
	unsigned long left = 0, shared = 0;

	(void)state;
	print_message("# seed %u, %u s\n", seed, seconds);
#ifdef HL_DELAY
	delay_seed(seed);
#endif
	table = hl_rcu_hash_create(0);
	assert_non_null(table);
	for (unsigned i = 0; i < STAY; i++)
		assert_int_equal(hl_rcu_hash_add(table, hash_of(i), &new_entry(i)->node), 0);
	assert_int_equal(pthread_create(&keeper, NULL, time_keeper, NULL), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		thread[i] = (struct thread){ .number = i, .state = seed * 1000003u + i };
		assert_int_equal(pthread_create(&id[i], NULL, thread_main, &thread[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(id[i], NULL);
	pthread_join(keeper, NULL);
	print_message("# %lu operations, %lu floods, %zu buckets at the end\n", operations, moves,
		      hl_rcu_hash_buckets(table));
	for (unsigned i = 0; i < SHARED; i++) {
		assert_in_range(shared_there[i], 0, 1);
		shared += (unsigned long)shared_there[i];
	}
	assert_int_equal(hl_rcu_hash_count(table), STAY + shared);
	hl_rcu_hash_for_each(table, take_out, &left);
	assert_int_equal(left, STAY + shared);
	hl_rcu_hash_destroy(table);
	assert_int_equal(hl_rcu_barrier(), 0);
	assert_int_equal(broken, 0);
	assert_int_equal(missing, 0);
	assert_int_equal(unexpected, 0);
	assert_int_equal(visited_wrong, 0);
	assert_int_equal(bad_results, 0);
	assert_true(operations > 1000 / SLOWER);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_stays_is_found_while_the_table_changes),
	};

	seed = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 0) : (unsigned)time(NULL);
	if (argc > 1)
		seconds = (unsigned)strtoul(argv[1], NULL, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
