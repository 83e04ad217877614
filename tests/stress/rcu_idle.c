// SPDX-License-Identifier: MIT
/*
 * With nothing to do nothing wakes: after RCU was used in every way the program goes quiet,
 * and no thread of it gets the processor for a second.
 *
 *	stress-rcu_idle [SECONDS]
 */
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <hotline/call.h>
#include <hotline/cpu.h>
#include <hotline/rcu.h>

#define MOST_THREADS 64

static int seconds = 1;
static atomic_int ready, ran;
static pthread_barrier_t the_end;

static void count(void *info)
{
	(void)info;
	atomic_fetch_add(&ran, 1);
}

/* ---- Threads that have used RCU and do nothing ---- */

static void *be_a_reader(void *arg)
{
	hl_rcu_read_lock();
	hl_rcu_read_unlock();
	hl_call_rcu_ptr(NULL, count);
	atomic_fetch_add(&ready, 1);
	pthread_barrier_wait(&the_end);
	return arg;
}

static void *be_an_offline_reader(void *arg)
{
	hl_rcu_set_quiescent(true);
	hl_synchronize_rcu();
	hl_call_rcu_ptr(NULL, count);
	hl_rcu_thread_offline();
	atomic_fetch_add(&ready, 1);
	pthread_barrier_wait(&the_end);
	hl_rcu_thread_online();
	return arg;
}

static atomic_int sleeping_cpu = -1;
static bool stop; /* of that thread */

static void stop_it(void *info)
{
	(void)info;
	stop = true;
}

static void *be_a_cpu(void *arg)
{
	int id = hl_cpu_online(0);

	hl_rcu_set_quiescent(true);
	hl_rcu_invoke_by(HL_RCU_BY_POLL);
	hl_call_rcu_ptr(NULL, count);
	hl_rcu_barrier();
	atomic_store(&sleeping_cpu, id);
	atomic_fetch_add(&ready, 1);
	while (!stop)
		hl_cpu_idle(-1);
	hl_cpu_offline();
	pthread_barrier_wait(&the_end);
	return arg;
}

/* ---- Counting ---- */

struct thread {
	int tid;
	long switches;
	char name[32];
};

static struct thread switches_of(int tid)
{
	struct thread thread = { .tid = tid };
	char path[64], line[128];
	FILE *status;
	long n;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
	status = fopen(path, "r");
	assert_non_null(status);
	while (fgets(line, sizeof(line), status)) {
		sscanf(line, "Name: %31s", thread.name);
		if (sscanf(line, "voluntary_ctxt_switches: %ld", &n) == 1 ||
		    sscanf(line, "nonvoluntary_ctxt_switches: %ld", &n) == 1)
			thread.switches += n;
	}
	fclose(status);
	return thread;
}

/* All but the calling one. */
static int other_threads(struct thread *threads)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;
	int n = 0;

	assert_non_null(tasks);
	while ((entry = readdir(tasks)) && n < MOST_THREADS) {
		int tid = atoi(entry->d_name);

		if (tid && tid != (int)syscall(SYS_gettid))
			threads[n++] = switches_of(tid);
	}
	closedir(tasks);
	return n;
}

static long sum_of(const struct thread *threads, int n)
{
	long sum = 0;

	for (int i = 0; i < n; i++)
		sum += threads[i].switches;
	return sum;
}

/* What was left over is done: nothing happens for 50 ms. */
static void become_quiet(struct thread *threads)
{
	struct timespec lingers = { .tv_nsec = 50000000 };
	long before;

	do {
		before = sum_of(threads, other_threads(threads));
		nanosleep(&lingers, NULL);
	} while (sum_of(threads, other_threads(threads)) != before);
}

static void a_program_that_does_nothing_never_wakes(void **state)
{
	static void *(*const lives[])(void *) = { be_a_reader, be_an_offline_reader, be_a_cpu };
	struct thread before[MOST_THREADS], after[MOST_THREADS];
	const int n = sizeof(lives) / sizeof(lives[0]);
	struct timespec time = { .tv_sec = seconds };
	pthread_t thread[sizeof(lives) / sizeof(lives[0])];
	int threads, wakeups = 0;

	(void)state;
	pthread_barrier_init(&the_end, NULL, (unsigned)n + 1);
	for (int i = 0; i < n; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, lives[i], NULL), 0);
	while (atomic_load(&ready) < n)
		sched_yield();
	hl_synchronize_rcu();
	hl_synchronize_rcu_expedited();
	hl_rcu_barrier();
	become_quiet(before);
	threads = other_threads(before);
	assert_true(threads >= n + 1); /* the helper, too */
	nanosleep(&time, NULL);
	assert_int_equal(other_threads(after), threads);
	for (int i = 0; i < threads; i++) {
		assert_int_equal(after[i].tid, before[i].tid);
		print_message("# %s: %ld wake-ups in %d s\n", after[i].name,
			      after[i].switches - before[i].switches, seconds);
		wakeups += (int)(after[i].switches - before[i].switches);
	}
	hl_smp_call_function_single(atomic_load(&sleeping_cpu), stop_it, NULL, false);
	pthread_barrier_wait(&the_end);
	for (int i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(wakeups, 0);
	assert_int_equal(atomic_load(&ran), n);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_that_does_nothing_never_wakes),
	};

	if (argc > 1)
		seconds = atoi(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
