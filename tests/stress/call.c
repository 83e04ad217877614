// SPDX-License-Identifier: MIT
/*
 * Torture of CPUs and calls: threads come online, leave, end without leaving, sleep and
 * poll, while everyone calls everyone in every way. Each message has the number that its
 * sender gave it for that target; the target checks that they come once and in order.
 *
 *	stress-call_torture [SECONDS [SEED]]
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
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include <hotline/call.h>
#include <hotline/cpu.h>

#include "../tools/refuse.h"

#define THREADS 6
#define MOST_IDS (THREADS + 2)

struct message {
	int sender;
	int target;
	uint32_t number;
	bool heap; /* the function frees it */
	bool answers; /* the function calls the sender's CPU back */
	struct hl_csd csd;
};

/* [sender's id][target's id]: what was sent, and what was seen of it. The first belongs to
 * whoever has the sender's id, the second to whoever has the target's. By id and not by
 * thread: with the id goes the queue, and with the queue the order. */
static uint32_t sent[MOST_IDS][MOST_IDS];
static uint32_t seen[MOST_IDS][MOST_IDS];
static atomic_ulong out_of_order, on_wrong_cpu, bad_results, ran, accepted, refused;
static atomic_bool stop;
static unsigned seed, seconds = 2;

static uint32_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

static void nothing(void *info)
{
	atomic_fetch_add_explicit((atomic_ulong *)info, 1, memory_order_relaxed);
}

static void receive(void *info)
{
	struct message *message = info;
	int me = hl_cpu_id();

	if (me != message->target)
		atomic_fetch_add(&on_wrong_cpu, 1);
	else if (++seen[message->sender][me] != message->number)
		atomic_fetch_add(&out_of_order, 1);
	atomic_fetch_add_explicit(&ran, 1, memory_order_relaxed);
	if (message->answers) {
		atomic_ulong count = 0;
		int rc = hl_smp_call_function_single(message->sender, nothing, &count, true);

		if (rc != -ENXIO && rc != -EDEADLK && (rc || count != 1))
			atomic_fetch_add(&bad_results, 1);
	}
	/* What calls free() or malloc() has interrupts off, so this interrupts neither. */
	if (message->heap)
		free(message);
}

/* Counts what the call said; the number is used up only if it went out. */
static void account(int target, int rc)
{
	if (!rc) {
		atomic_fetch_add_explicit(&accepted, 1, memory_order_relaxed);
		return;
	}
	sent[hl_cpu_id()][target]--;
	atomic_fetch_add_explicit(&refused, 1, memory_order_relaxed);
	if (rc != -ENXIO && rc != -EDEADLK)
		atomic_fetch_add(&bad_results, 1);
}

static struct message make(int target, uint64_t *state)
{
	int self = hl_cpu_id();

	return (struct message){
		.sender = self,
		.target = target,
		.number = ++sent[self][target],
		.answers = next_random(state) % 8 == 0,
	};
}

static void call_waited(int target, uint64_t *state)
{
	struct message message = make(target, state);

	account(target, hl_smp_call_function_single(target, receive, &message, true));
}

static void call_async(int target, uint64_t *state)
{
	struct message *message;
	int rc;

	/* Functions that interrupt this one call free(). */
	hl_local_irq_disable();
	message = malloc(sizeof(*message));
	hl_local_irq_enable();
	if (!message)
		return;
	*message = make(target, state);
	message->answers = false;
	message->heap = true;
	hl_csd_init(&message->csd, receive, message);
	rc = hl_smp_call_function_single_async(target, &message->csd);
	account(target, rc);
	if (rc) {
		hl_local_irq_disable();
		free(message);
		hl_local_irq_enable();
	}
}

static void call_all(void)
{
	atomic_ulong count = 0;
	int n = hl_on_each_cpu(nothing, &count, true);

	if (n < 0 || count != (unsigned long)n)
		atomic_fetch_add(&bad_results, 1);
}

/* Some rounds of a CPU's life. */
static void live(uint64_t *state)
{
	unsigned rounds = next_random(state) % 400;

	for (unsigned i = 0; i < rounds && !atomic_load_explicit(&stop, memory_order_relaxed);
	     i++) {
		int target = (int)(next_random(state) % (THREADS + 1));

		switch (next_random(state) % 16) {
		case 0:
			hl_cpu_idle(50000);
			break;
		case 1:
			call_all();
			break;
		case 2:
			sched_yield();
			break;
		case 3:
		case 4:
		case 5:
			if (target != hl_cpu_id())
				call_waited(target, state);
			break;
		case 6:
		case 7:
		case 8:
		case 9:
			call_async(target, state);
			break;
		default:
			hl_cpu_poll();
		}
	}
}

struct life {
	uint64_t state;
};

/* One thread's life: it leaves, or just ends. */
static void *one_life(void *arg)
{
	struct life *life = arg;

	if (hl_cpu_online(next_random(&life->state) % 4 ? 0 : HL_CPU_INTERRUPTIBLE) < 0) {
		atomic_fetch_add(&bad_results, 1);
		return NULL;
	}
	live(&life->state);
	if (next_random(&life->state) % 2 && hl_cpu_offline())
		atomic_fetch_add(&bad_results, 1);
	return NULL;
}

/* Threads one after the other in the place of one sender. */
static void *lives(void *arg)
{
	struct life *life = arg;

	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, one_life, life)) {
			atomic_fetch_add(&bad_results, 1);
			break;
		}
		pthread_join(thread, NULL);
	}
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

static void everyone_calls_everyone_while_cpus_come_and_go(void **state)
{
	struct life life[THREADS];
	pthread_t thread[THREADS], keeper;

	(void)state;
	print_message("# seed %u, %u s\n", seed, seconds);
#ifdef HL_DELAY
	delay_seed(seed);
#endif
	assert_int_equal(pthread_create(&keeper, NULL, time_keeper, NULL), 0);
	for (int i = 0; i < THREADS; i++) {
		life[i] = (struct life){ seed * 1000003u + (unsigned)i };
		assert_int_equal(pthread_create(&thread[i], NULL, lives, &life[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	pthread_join(keeper, NULL);
	print_message("# %lu sent, %lu refused, %lu ran\n", accepted, refused, ran);
	assert_int_equal(on_wrong_cpu, 0);
	assert_int_equal(out_of_order, 0);
	assert_int_equal(bad_results, 0);
	assert_int_equal(ran, accepted);
	assert_true(accepted > 100);
	assert_int_equal(hl_num_online_cpus(), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everyone_calls_everyone_while_cpus_come_and_go),
	};

	seed = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 0) : (unsigned)time(NULL);
	if (argc > 1)
		seconds = (unsigned)strtoul(argv[1], NULL, 0);
	return cmocka_run_group_tests(tests, refuse_membarrier, NULL);
}
