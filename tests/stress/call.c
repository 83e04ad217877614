// SPDX-License-Identifier: MIT
/*
 * Torture of CPUs and calls: threads come online, leave, end without leaving, end in a function
 * that was sent to them, fork, and hear of work in every way there is, while everyone calls
 * everyone in every way: waited for and not, with csds of the heap and csds that are sent again,
 * several at once, to one, to any, to many and to all, from functions that were sent, in chains
 * of waits that close to rings, and from threads that are not online.
 *
 * Each message to one CPU has a number, and the target checks that they come once and in order.
 * The numbers are those of a sender, a target and the depth of functions inside each other at
 * which it was sent: a CPU that waits for room serves itself meanwhile, so what it sends at one
 * depth may overtake what it was about to send above.
 *
 *	stress-call_torture [SECONDS [SEED [THREADS [PROCESSORS]]]]
 *
 * SEED 0: another with each run. PROCESSORS 1: all on one of them.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <hotline/call.h>
#include <hotline/cpu.h>

#include "../tools/refuse.h"

/* Functions inside each other, and the one that sends the first. */
#define DEPTHS 65
#define CSDS 4
#define FOREIGNERS 2
/* A CPU that lets a caller wait as long is named; that is no fault in itself. */
#define STALL_MS 20000

static unsigned seconds = 2, seed, threads = 6, processors;

/* What a function does beside checking its number. */
enum deed { NOTHING, CALL_BACK, PASS_ON, BROADCAST, SEND, FORK, END_THREAD };

struct message {
	struct hl_csd csd;
	int sender, target;
	unsigned depth;
	uint32_t number;
	enum deed deed;
	unsigned hops; /* left, of a chain of waits */
	bool heap; /* the function frees it */
};

struct numbers {
	uint32_t of[DEPTHS];
};

/* [sender][target]: what was sent, and what was seen of it. The first belongs to whoever has
 * the sender's id, the second to whoever has the target's. By id and not by thread: with the id
 * goes the queue, and with the queue the order. */
static struct numbers *sent, *seen;
static int ids; /* of CPUs; those that are not online follow */

static atomic_ulong out_of_order, on_wrong_cpu, bad_results, bad_children;
static atomic_ulong accepted, refused, ran, to_many, ran_of_many;
static atomic_ulong forks, ends, overlong;
static atomic_uint deepest, longest_chain;
static atomic_bool stop;

/* A place in which threads live one after the other. */
struct place {
	uint64_t random;
	unsigned number;
	struct hl_csd csd[CSDS]; /* stay when a thread ends while they are in flight */
};

static __thread struct place *place;
static __thread int who; /* its id, or the number of its place */
static __thread unsigned depth;
static __thread bool interruptible;
static __thread bool may_end; /* it polls, and nothing else is under way */

static uint32_t dice(unsigned sides)
{
	place->random = place->random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(place->random >> 33) % sides;
}

static struct numbers *numbers(struct numbers *table, int sender, int target)
{
	return &table[sender * ids + target];
}

static void count(atomic_ulong *n)
{
	atomic_fetch_add_explicit(n, 1, memory_order_relaxed);
}

static void note_most(atomic_uint *most, unsigned n)
{
	unsigned before = atomic_load_explicit(most, memory_order_relaxed);

	while (n > before && !atomic_compare_exchange_weak(most, &before, n))
		;
}

/* malloc() and free() are not for functions that interrupt them. */
static void *get(size_t size)
{
	void *memory;

	hl_local_irq_disable();
	memory = aligned_alloc(_Alignof(struct hl_csd), size);
	hl_local_irq_enable();
	return memory;
}

static void put(void *memory)
{
	hl_local_irq_disable();
	free(memory);
	hl_local_irq_enable();
}

/* ---- Sending ---- */

static bool is_refusal(int rc)
{
	return rc == -ENXIO || rc == -EDEADLK;
}

/* Counts what the call said; the number is used up only if it went out. */
static void account(int target, unsigned at, int rc)
{
	if (!rc) {
		count(&accepted);
		return;
	}
	numbers(sent, who, target)->of[at]--;
	count(&refused);
	if (!is_refusal(rc))
		count(&bad_results);
}

static void receive(void *info);

static struct message make(int target, enum deed deed)
{
	return (struct message){
		.sender = who,
		.target = target,
		.depth = depth,
		.number = ++numbers(sent, who, target)->of[depth],
		.deed = deed,
	};
}

/* Not to oneself: that would run before what was sent earlier. */
static void call_waited(int target, enum deed deed, unsigned hops)
{
	struct message message;
	unsigned at = depth;

	if (target == who)
		return;
	message = make(target, deed);
	message.hops = hops;
	account(target, at, hl_smp_call_function_single(target, receive, &message, true));
}

static void call_async(int target, enum deed deed)
{
	struct message *message = get(sizeof(*message));
	unsigned at = depth;
	int rc;

	if (!message)
		return;
	*message = make(target, deed);
	message->heap = true;
	hl_csd_init(&message->csd, receive, message);
	rc = hl_smp_call_function_single_async(target, &message->csd);
	account(target, at, rc);
	if (rc)
		put(message);
}

/* A csd that may be in flight still: all that its function needs is in the pointer. */
static void receive_packed(void *info)
{
	uint64_t word = (uintptr_t)info;
	int sender = (int)(word >> 32);

	who = hl_cpu_id();
	if (++numbers(seen, sender, who)->of[0] != (uint32_t)word)
		count(&out_of_order);
	count(&ran);
}

static void *pack(int target)
{
	return (void *)(uintptr_t)((uint64_t)who << 32 | ++numbers(sent, who, target)->of[0]);
}

/* Several at once, at times more than a queue holds. */
static void call_some(int target)
{
	struct hl_call calls[2 * HL_CALL_QUEUE];
	unsigned n = dice(2 * HL_CALL_QUEUE);
	int rc;

	for (unsigned i = 0; i < n; i++)
		calls[i] = (struct hl_call){ receive_packed, pack(target) };
	rc = hl_smp_call_functions(target, calls, n);
	if (rc < 0 && !is_refusal(rc))
		count(&bad_results);
	if (rc < 0)
		rc = 0;
	numbers(sent, who, target)->of[0] -= n - (unsigned)rc;
	atomic_fetch_add(&accepted, (unsigned long)rc);
	atomic_fetch_add(&refused, n - (unsigned)rc);
}

static void call_again(int target)
{
	struct hl_csd *csd = &place->csd[dice(CSDS)];
	int rc;

	if (hl_csd_in_flight(csd))
		return;
	hl_csd_init(csd, receive_packed, pack(target));
	rc = hl_smp_call_function_single_async(target, csd);
	account(target, 0, rc);
}

static void run_once(void *info)
{
	count(info);
}

static void call_all(void)
{
	atomic_ulong n = 0;
	int rc = hl_on_each_cpu(run_once, &n, true);

	if (rc == -EDEADLK)
		return;
	if (rc < 0 || n != (unsigned long)rc)
		count(&bad_results);
}

static bool one_of_two(int cpu, void *info)
{
	(void)info;
	return cpu % 2;
}

static void call_many(void)
{
	bool wait = dice(2);
	atomic_ulong n = 0, *counter = wait ? &n : &ran_of_many;
	struct hl_cpumask mask;
	int rc;

	hl_cpumask_clear(&mask);
	for (unsigned i = dice((unsigned)ids); i < (unsigned)ids; i += 1 + dice(4))
		hl_cpumask_set_cpu((int)i, &mask);
	switch (dice(3)) {
	case 0:
		rc = hl_smp_call_function_many(&mask, run_once, counter, wait);
		break;
	case 1:
		rc = hl_on_each_cpu_cond(one_of_two, run_once, counter, wait);
		break;
	default:
		rc = hl_smp_call_function_any(&mask, run_once, counter, wait);
		rc = rc == -ENXIO ? 0 : rc ? rc : 1;
	}
	if (rc < 0 || (wait && n != (unsigned long)rc))
		count(&bad_results);
	else if (!wait)
		atomic_fetch_add(&to_many, (unsigned long)rc);
}

/* ---- Forks ---- */

/* The child's only thread: nothing that was sent in the parent runs, and all works. */
static bool child_works(void)
{
	unsigned long before = ran, before_many = ran_of_many;
	atomic_ulong n = 0;

	if (hl_cpu_id() != -ENXIO || hl_num_online_cpus() || hl_cpu_online(0) != 0)
		return false;
	if (hl_cpu_poll() || ran != before || ran_of_many != before_many)
		return false;
	if (hl_smp_call_function_single(1, run_once, &n, true) != -ENXIO ||
	    hl_smp_call_function_single(0, run_once, &n, false) || hl_cpu_poll() != 1 ||
	    hl_on_each_cpu(run_once, &n, true) != 1 || n != 2)
		return false;
	return !hl_cpu_offline() && !hl_num_online_cpus();
}

static void fork_once(void)
{
	int status = 0;
	pid_t pid;

	/* Forks cost milliseconds: not more than a few at a time. */
	if (interruptible || atomic_fetch_add(&forks, 1) >= 20ul * seconds)
		return;
	pid = fork();
	if (!pid) {
		alarm(60); /* rather than to hang */
		_exit(child_works() ? 0 : 1);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (pid < 0 || status)
		count(&bad_children);
}

/* ---- Receiving ---- */

static void act(const struct message *message)
{
	switch (message->deed) {
	case CALL_BACK:
		if (message->sender < ids)
			call_waited(message->sender, NOTHING, 0);
		break;
	case PASS_ON:
		/* Everyone to the next: rings of CPUs that wait for each other. */
		if (message->hops)
			call_waited((who + 1) % (int)threads, PASS_ON, message->hops - 1);
		else
			note_most(&longest_chain, depth);
		break;
	case BROADCAST:
		call_all();
		break;
	case SEND:
		call_async((int)message->number % (int)threads, NOTHING);
		break;
	case FORK:
		fork_once();
		break;
	default:
		break;
	}
}

static void receive(void *info)
{
	struct message *message = info;
	bool ends_it = message->deed == END_THREAD && may_end && !depth;

	who = hl_cpu_id(); /* hl_cpu_online() may not have returned yet */
	if (who != message->target)
		count(&on_wrong_cpu);
	else if (++numbers(seen, message->sender, who)->of[message->depth] != message->number)
		count(&out_of_order);
	count(&ran);
	depth++;
	note_most(&deepest, depth);
	act(message);
	depth--;
	if (message->heap)
		put(message);
	if (ends_it) {
		count(&ends);
		may_end = false; /* what is left runs while it ends */
		pthread_exit(NULL);
	}
}

static enum deed some_deed(void)
{
	static const enum deed deeds[16] = { CALL_BACK, CALL_BACK, SEND, SEND };

	if (!dice(256))
		return BROADCAST;
	if (!dice(2048))
		return FORK;
	return dice(40) ? deeds[dice(16)] : END_THREAD;
}

static void send_somehow(void)
{
	/* One above what there is, too. */
	int target = (int)dice(threads + 1);

	switch (dice(8)) {
	case 0:
	case 1:
		call_async(target, some_deed());
		break;
	case 2:
		for (unsigned n = dice(2 * HL_CALL_QUEUE); n; n--)
			call_async(target, NOTHING);
		break;
	case 3:
		if (dice(2))
			call_again(target);
		else
			call_some(target);
		break;
	case 4:
	case 5:
		call_waited(target, some_deed(), 0);
		break;
	case 6:
		call_waited(target, PASS_ON, 2 + dice(5));
		break;
	default:
		if (dice(4))
			call_many();
		else
			call_all();
	}
}

/* ---- Lives ---- */

enum manner { POLLS, IDLES, SLEEPS_ON_DESCRIPTOR, COMPUTES, MANNERS };

static void poll_for_work(void)
{
	may_end = !interruptible;
	hl_cpu_poll();
	may_end = false;
}

static void sleep_on_descriptor(void)
{
	struct pollfd fd = { .fd = hl_cpu_eventfd(), .events = POLLIN };

	if (fd.fd < 0) {
		count(&bad_results);
		return;
	}
	if (!hl_cpu_eventfd_arm())
		poll(&fd, 1, 1);
	poll_for_work();
}

/* What only an interrupt gets through to; at times not even that. */
static void compute(void)
{
	bool off = !dice(4);

	if (off)
		hl_local_irq_disable();
	for (volatile unsigned i = dice(5000); i; i--)
		;
	if (off)
		hl_local_irq_enable();
#if defined(__SANITIZE_THREAD__)
	hl_cpu_poll(); /* ThreadSanitizer puts signals off */
#endif
}

static void rest(enum manner manner)
{
	switch (manner) {
	case IDLES:
		hl_cpu_idle(dice(8) * 20000);
		break;
	case SLEEPS_ON_DESCRIPTOR:
		sleep_on_descriptor();
		break;
	case COMPUTES:
		compute();
		break;
	default:
		poll_for_work();
		if (!dice(8))
			sched_yield();
	}
}

static void become(enum manner manner)
{
	if (hl_cpu_set_interruptible(manner == COMPUTES))
		count(&bad_results);
	interruptible = manner == COMPUTES;
}

static void live(void)
{
	enum manner manner = interruptible ? COMPUTES : (enum manner)dice(COMPUTES);

	for (unsigned i = dice(400); i && !atomic_load_explicit(&stop, memory_order_relaxed); i--) {
		if (!dice(100)) {
			manner = (enum manner)dice(MANNERS);
			become(manner);
		}
		if (!dice(2000))
			fork_once();
		if (dice(2))
			rest(manner);
		else
			send_somehow();
	}
}

/* One thread's life: it leaves, or just ends. */
static void *one_life(void *arg)
{
	place = arg;
	interruptible = !dice(4);
	who = hl_cpu_online(interruptible ? HL_CPU_INTERRUPTIBLE : 0);
	if (who < 0 || who >= ids) {
		count(&bad_results);
		return NULL;
	}
	live();
	if (dice(2) && hl_cpu_offline())
		count(&bad_results);
	return NULL;
}

/* Threads one after the other in the same place. */
static void *lives(void *arg)
{
	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, one_life, arg)) {
			count(&bad_results);
			break;
		}
		pthread_join(thread, NULL);
	}
	return NULL;
}

/* Is never online. */
static void *live_elsewhere(void *arg)
{
	place = arg;
	who = (int)place->number;
	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		send_somehow();
		sched_yield();
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

static void on_stall(const struct hl_call_stall *stall)
{
	count(&overlong);
	fprintf(stderr, "# CPU %d, thread %d: no answer for %llu ms\n", stall->cpu, stall->tid,
		(unsigned long long)stall->waited_ms);
}

static void everyone_calls_everyone_while_cpus_come_and_go(void **state)
{
	unsigned all = threads + FOREIGNERS;
	struct place *places = calloc(all, sizeof(*places));
	pthread_t *thread = calloc(all, sizeof(*thread)), keeper;

	(void)state;
	ids = (int)threads + 1;
	sent = calloc((size_t)(ids + (int)all) * (size_t)ids, sizeof(*sent));
	seen = calloc((size_t)(ids + (int)all) * (size_t)ids, sizeof(*seen));
	assert_true(places && thread && sent && seen);
	print_message("# %u s, seed %u, %u threads\n", seconds, seed, threads);
#ifdef HL_DELAY
	delay_seed(seed);
#endif
	hl_call_stall_ms(STALL_MS, on_stall);
	assert_int_equal(pthread_create(&keeper, NULL, time_keeper, NULL), 0);
	for (unsigned i = 0; i < all; i++) {
		places[i].random = (uint64_t)seed * 1000003u + i;
		places[i].number = (unsigned)ids + i;
		assert_int_equal(pthread_create(&thread[i], NULL,
						i < threads ? lives : live_elsewhere, &places[i]),
				 0);
	}
	for (unsigned i = 0; i < all; i++)
		pthread_join(thread[i], NULL);
	pthread_join(keeper, NULL);
	print_message("# %lu sent, %lu refused, %lu to many; %u deep, chains of %u; %lu forks, "
		      "%lu ends in functions\n",
		      accepted, refused, to_many, deepest, longest_chain, forks, ends);
	assert_int_equal(on_wrong_cpu, 0);
	assert_int_equal(out_of_order, 0);
	assert_int_equal(bad_results, 0);
	assert_int_equal(bad_children, 0);
	assert_int_equal(ran, accepted);
	assert_int_equal(ran_of_many, to_many);
	assert_true(accepted > 100);
	assert_int_equal(hl_num_online_cpus(), 0);
	free(places);
	free(thread);
	free(sent);
	free(seen);
}

static unsigned number(const char *text)
{
	return (unsigned)strtoul(text, NULL, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everyone_calls_everyone_while_cpus_come_and_go),
	};

	if (argc > 1)
		seconds = number(argv[1]);
	if (argc > 2)
		seed = number(argv[2]);
	if (!seed)
		seed = (unsigned)time(NULL);
	if (argc > 3)
		threads = number(argv[3]);
	if (argc > 4)
		processors = number(argv[4]);
	/* All threads inherit it. */
	if (processors == 1 && hl_cpu_pin(sched_getcpu()))
		return 1;
	return cmocka_run_group_tests(tests, refuse_membarrier, NULL);
}
