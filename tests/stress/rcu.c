// SPDX-License-Identifier: MIT
/*
 * Torture of RCU by the age of objects: writers replace what a pointer leads to and make the old
 * object a grace period older twice; a reader that finds an object two grace periods old
 * in a section was not waited for. Objects are then spoiled and used again.
 *
 * The threads read by both schemes, nest, block signals, give the processor away in the middle of
 * a section, end in one, come online and go, wait for grace periods in every way, give
 * away from everywhere, and fork.
 *
 *	stress-rcu_torture [SECONDS [SEED]]
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <hotline/call.h>
#include <hotline/cpu.h>
#include <hotline/rcu.h>
#include <hotline/rculist.h>

#include "../tools/refuse.h"

#define READERS 5
#define WRITERS 2
#define POINTERS 4
#define SPOILED 1000
#define LISTED 8

struct object {
	struct hl_rcu_head head;
	struct hl_list_head link;
	int age; /* grace periods since it was taken out of reach; atomic */
	uint64_t written, copy; /* equal as long as it may be read */
};

static struct object *shared[POINTERS];
static HL_LIST_HEAD(list);
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_ulong too_old, torn, bad_results, reads, given, ran, forks;
static atomic_bool stop;
static unsigned seed, seconds = 2;

static uint32_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

static bool over(void)
{
	return atomic_load_explicit(&stop, memory_order_relaxed);
}

static void dawdle(uint64_t *state)
{
	switch (next_random(state) % 8) {
	case 0:
		sched_yield();
		break;
	case 1:
		for (volatile unsigned i = 0; i < next_random(state) % 2000; i++)
			;
		break;
	}
}

/* ---- Objects ---- */

static struct object *make(uint64_t *state)
{
	struct object *object;

	hl_local_irq_disable(); /* functions that interrupt this one free */
	object = calloc(1, sizeof(*object));
	hl_local_irq_enable();
	if (object)
		object->written = object->copy = next_random(state);
	return object;
}

static void count_up(struct object *object)
{
	__atomic_fetch_add(&object->age, 1, __ATOMIC_RELAXED);
}

static void unmake(struct hl_rcu_head *head)
{
	struct object *object = (struct object *)head;

	__atomic_store_n(&object->age, SPOILED, __ATOMIC_RELAXED);
	object->copy = ~object->written;
	free(object);
	atomic_fetch_add(&ran, 1);
}

/* A grace period has passed: one more, then it goes. */
static void grow_older(struct hl_rcu_head *head)
{
	count_up((struct object *)head);
	atomic_fetch_add(&given, 1);
	hl_call_rcu(head, unmake);
	atomic_fetch_add(&ran, 1);
}

static void unmake_ptr(void *object)
{
	unmake(object);
}

/* Gets rid of an object that is out of reach, in one of the ways that there are. */
static void retire(struct object *object, uint64_t *state)
{
	uint64_t mark;

	atomic_fetch_add(&given, 1);
	switch (next_random(state) % 8) {
	case 0:
		if (hl_synchronize_rcu())
			atomic_fetch_add(&bad_results, 1);
		count_up(object);
		if (hl_call_rcu_ptr(object, unmake_ptr))
			atomic_fetch_add(&bad_results, 1);
		break;
	case 1:
		if (hl_synchronize_rcu_expedited() || hl_synchronize_rcu())
			atomic_fetch_add(&bad_results, 1);
		unmake(&object->head);
		break;
	case 2:
		mark = hl_start_poll_synchronize_rcu();
		while (!hl_poll_state_synchronize_rcu(mark)) {
			hl_rcu_quiescent_state();
			sched_yield();
		}
		unmake(&object->head);
		break;
	case 3:
		mark = hl_get_state_synchronize_rcu();
		dawdle(state);
		if (hl_cond_synchronize_rcu(mark))
			atomic_fetch_add(&bad_results, 1);
		unmake(&object->head);
		break;
	default:
		if (hl_call_rcu(&object->head, grow_older))
			atomic_fetch_add(&bad_results, 1);
	}
}

/* ---- Reading ---- */

static void check(const struct object *object)
{
	if (__atomic_load_n(&object->age, __ATOMIC_RELAXED) >= 2)
		atomic_fetch_add(&too_old, 1);
	if (object->written != object->copy)
		atomic_fetch_add(&torn, 1);
	atomic_fetch_add_explicit(&reads, 1, memory_order_relaxed);
}

static void read_pointers(uint64_t *state)
{
	const struct object *first = hl_rcu_dereference(shared[next_random(state) % POINTERS]);
	const struct object *second;

	dawdle(state);
	second = hl_rcu_dereference(shared[next_random(state) % POINTERS]);
	check(first);
	dawdle(state);
	check(second);
	check(first);
}

static void read_list(uint64_t *state)
{
	struct object *object;

	hl_list_for_each_entry_rcu(object, &list, link)
	{
		check(object);
		dawdle(state);
	}
}

static void read_something(uint64_t *state)
{
	if (next_random(state) % 4)
		read_pointers(state);
	else
		read_list(state);
}

static void read_in_sections(uint64_t *state)
{
	unsigned depth = 1 + next_random(state) % 3;

	for (unsigned i = 0; i < depth; i++)
		hl_rcu_read_lock();
	read_something(state);
	for (unsigned i = 1; i < depth; i++)
		hl_rcu_read_unlock();
	read_something(state);
	hl_rcu_read_unlock();
}

static void read_by_quiescent_states(uint64_t *state)
{
	hl_rcu_read_lock_qs();
	read_something(state);
	if (next_random(state) % 8 == 0)
		read_in_sections(state);
	hl_rcu_read_unlock_qs();
}

static void read_in_an_interrupt(void *info)
{
	uint64_t random = (uintptr_t)info;

	hl_rcu_read_lock();
	read_pointers(&random);
	hl_rcu_read_unlock();
}

/* ---- Readers' lives ---- */

struct life {
	uint64_t state;
};

static void live_in_sections(uint64_t *state)
{
	for (unsigned i = next_random(state) % 300; i && !over(); i--) {
		read_in_sections(state);
		if (next_random(state) % 64 == 0)
			hl_smp_call_function_single((int)(next_random(state) % READERS),
						    read_in_an_interrupt, (void *)(uintptr_t)*state,
						    false);
	}
	if (next_random(state) % 2)
		hl_rcu_read_lock(); /* it ends in a section */
}

static void live_by_quiescent_states(uint64_t *state)
{
	bool cpu = next_random(state) % 4;

	if (cpu && hl_cpu_online(next_random(state) % 4 ? 0 : HL_CPU_INTERRUPTIBLE) < 0)
		atomic_fetch_add(&bad_results, 1);
	if (hl_rcu_set_quiescent(true))
		atomic_fetch_add(&bad_results, 1);
	if (cpu && next_random(state) % 2)
		hl_rcu_invoke_by(1 + next_random(state) % 3);
	for (unsigned i = next_random(state) % 300; i && !over(); i--) {
		read_by_quiescent_states(state);
		switch (next_random(state) % 32) {
		case 0:
			hl_rcu_thread_offline();
			dawdle(state);
			hl_rcu_thread_online();
			break;
		case 1:
			if (hl_synchronize_rcu())
				atomic_fetch_add(&bad_results, 1);
			break;
		case 2:
			if (cpu)
				hl_cpu_idle(50000);
			break;
		case 3:
			atomic_fetch_add(&given, 1);
			hl_call_rcu(&make(state)->head, grow_older);
			break;
		default:
			if (cpu)
				hl_cpu_poll();
			else
				hl_rcu_quiescent_state();
		}
	}
	if (cpu && next_random(state) % 2)
		hl_cpu_offline();
}

static void *one_life(void *arg)
{
	struct life *life = arg;
	sigset_t all;

	if (next_random(&life->state) % 2) {
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, NULL);
	}
	if (next_random(&life->state) % 2)
		live_in_sections(&life->state);
	else
		live_by_quiescent_states(&life->state);
	return NULL;
}

/* Threads one after the other. */
static void *lives(void *arg)
{
	while (!over()) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, one_life, arg)) {
			atomic_fetch_add(&bad_results, 1);
			break;
		}
		pthread_join(thread, NULL);
	}
	return NULL;
}

/* ---- Writers ---- */

static void replace_pointer(uint64_t *state)
{
	struct object *added = make(state);

	retire(hl_rcu_xchg_pointer(shared[next_random(state) % POINTERS], added), state);
}

static void change_list(uint64_t *state)
{
	struct object *added = make(state), *out;

	pthread_mutex_lock(&list_lock);
	out = hl_list_entry(list.prev, struct object, link);
	if (next_random(state) % 2) {
		hl_list_replace_rcu(&out->link, &added->link);
	} else {
		hl_list_add_rcu(&added->link, &list);
		hl_list_del_rcu(&out->link);
	}
	pthread_mutex_unlock(&list_lock);
	retire(out, state);
}

/* In the child all works, and nothing is too old. */
static int be_a_child(uint64_t *state)
{
	for (int i = 0; i < 20; i++) {
		replace_pointer(state);
		read_in_sections(state);
	}
	return hl_rcu_barrier() || atomic_load(&too_old) || atomic_load(&torn);
}

/* In the child of a process with threads the sanitizers' own locks may be held for ever. */
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define MAY_FORK true
#else
#define MAY_FORK false
#endif

static void fork_once(uint64_t *state)
{
	pid_t child;
	int status;

	pthread_mutex_lock(&list_lock); /* whole in the child */
	child = fork();
	if (!child) {
		pthread_mutex_unlock(&list_lock);
		_exit(be_a_child(state));
	}
	pthread_mutex_unlock(&list_lock);
	if (child < 0 || waitpid(child, &status, 0) != child || status)
		atomic_fetch_add(&bad_results, 1);
	atomic_fetch_add(&forks, 1);
}

static void *write_things(void *arg)
{
	struct life *life = arg;

	while (!over()) {
		if (next_random(&life->state) % 4)
			replace_pointer(&life->state);
		else
			change_list(&life->state);
		if (MAY_FORK && next_random(&life->state) % 512 == 0)
			fork_once(&life->state);
		if (next_random(&life->state) % 1024 == 0 && hl_rcu_barrier())
			atomic_fetch_add(&bad_results, 1);
	}
	return NULL;
}

static void *time_keeper(void *arg)
{
	struct timespec end;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += seconds;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR)
		;
	atomic_store(&stop, true);
	return arg;
}

static void no_reader_sees_an_object_two_grace_periods_old(void **unused)
{
	struct life life[READERS + WRITERS];
	pthread_t thread[READERS + WRITERS], keeper;
	struct object *object, *after;
	uint64_t state = seed;

	(void)unused;
	print_message("# seed %u, %u s\n", seed, seconds);
#ifdef HL_DELAY
	delay_seed(seed);
#endif
	for (int i = 0; i < POINTERS; i++)
		shared[i] = make(&state);
	for (int i = 0; i < LISTED; i++)
		hl_list_add_rcu(&make(&state)->link, &list);
	assert_int_equal(pthread_create(&keeper, NULL, time_keeper, NULL), 0);
	for (int i = 0; i < READERS + WRITERS; i++) {
		life[i] = (struct life){ seed * 1000003u + (unsigned)i };
		assert_int_equal(pthread_create(&thread[i], NULL,
						i < READERS ? lives : write_things, &life[i]),
				 0);
	}
	for (int i = 0; i < READERS + WRITERS; i++)
		pthread_join(thread[i], NULL);
	pthread_join(keeper, NULL);
	/* What runs may give more, once. */
	assert_int_equal(hl_rcu_barrier(), 0);
	assert_int_equal(hl_rcu_barrier(), 0);
	print_message("# %lu reads, %lu given, %lu forks\n", reads, given, forks);
	assert_int_equal(too_old, 0);
	assert_int_equal(torn, 0);
	assert_int_equal(bad_results, 0);
	assert_int_equal(ran, given);
	assert_true(reads > 100);
	assert_true(given > 10);
	for (int i = 0; i < POINTERS; i++)
		free(shared[i]);
	hl_list_for_each_entry_safe(object, after, &list, link) free(object);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_reader_sees_an_object_two_grace_periods_old),
	};

	seed = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 0) : (unsigned)time(NULL);
	if (argc > 1)
		seconds = (unsigned)strtoul(argv[1], NULL, 0);
	return cmocka_run_group_tests(tests, refuse_membarrier, NULL);
}
