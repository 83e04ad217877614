// SPDX-License-Identifier: MIT
/*
 * DPDK's quiescent states and its defer queue, which holds pointers: the objects have
 * nothing of it in them. The queue takes its memory from DPDK's environment, which is
 * started without hugepages and devices. The caller reclaims.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <rte_eal.h>
#include <rte_rcu_qsbr.h>

#include "bench/peers/rcu_scheme.h"

#define SCHEME scheme_rte_qsbr
#define SCHEME_WORD ((size_t)0)

#define MOST_THREADS 128u
/* Entries; how many wait before the caller reclaims by itself, and how many then. */
#define QUEUE 65536u
#define TRIGGER 32768u
#define RECLAIM 1024u
/* In an entry, beside the pointer. */
#define FREES ((uintptr_t)1)

static struct rte_rcu_qsbr *states;
static struct rte_rcu_qsbr_dq *queue;
static _Atomic(unsigned) threads;
static _Thread_local unsigned thread;

static void reclaim(void *p, void *entries, unsigned int n)
{
	const uintptr_t *entry = entries;

	(void)p;
	for (unsigned i = 0; i < n; i++) {
		void *object = (void *)(entry[i] & ~FREES);

		if (entry[i] & FREES)
			scheme_freed(object);
		else
			scheme_ran(object, SCHEME_WORD);
	}
}

static int start_environment(void)
{
	char *arguments[] = {
		"hotline",	  "--no-huge",	   "-m", "32", "--no-pci", "--no-shconf",
		"--no-telemetry", "--log-level=1", NULL
	};
	const int n = sizeof(arguments) / sizeof(arguments[0]) - 1;
	cpu_set_t allowed;
	int rc;

	/* It pins the calling thread. */
	pthread_getaffinity_np(pthread_self(), sizeof(allowed), &allowed);
	rc = rte_eal_init(n, arguments);
	pthread_setaffinity_np(pthread_self(), sizeof(allowed), &allowed);
	return rc < 0 ? -EIO : 0;
}

/* With the first call: starting the environment takes long. */
static bool make_queue(void)
{
	const struct rte_rcu_qsbr_dq_parameters parameters = {
		.name = "hotline",
		.flags = RTE_RCU_QSBR_DQ_MT_UNSAFE,
		.size = QUEUE,
		.esize = sizeof(uintptr_t),
		.trigger_reclaim_limit = TRIGGER,
		.max_reclaim_size = RECLAIM,
		.free_fn = reclaim,
		.v = states,
	};

	if (!start_environment())
		queue = rte_rcu_qsbr_dq_create(&parameters);
	return queue;
}

static int scheme_open(void)
{
	states = aligned_alloc(RTE_CACHE_LINE_SIZE, rte_rcu_qsbr_get_memsize(MOST_THREADS));
	return states && !rte_rcu_qsbr_init(states, MOST_THREADS) ? 0 : -ENOMEM;
}

static int scheme_join(void)
{
	thread = atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed);
	if (thread >= MOST_THREADS)
		return -ENOSPC;
	rte_rcu_qsbr_thread_register(states, thread);
	rte_rcu_qsbr_thread_online(states, thread);
	return 0;
}

static void scheme_leave(void)
{
	rte_rcu_qsbr_thread_offline(states, thread);
	rte_rcu_qsbr_thread_unregister(states, thread);
}

static void scheme_sleep(void)
{
	rte_rcu_qsbr_thread_offline(states, thread);
}

static void scheme_wake(void)
{
	rte_rcu_qsbr_thread_online(states, thread);
}

static inline void scheme_lock(void)
{
	rte_rcu_qsbr_lock(states, thread);
}

static inline void scheme_unlock(void)
{
	rte_rcu_qsbr_unlock(states, thread);
}

static inline void scheme_quiescent(void)
{
	rte_rcu_qsbr_quiescent(states, thread);
}

static inline void scheme_call(void *object, bool frees)
{
	uintptr_t entry = (uintptr_t)object | (frees ? FREES : 0);

	/* Without a queue nothing is called, which the run finds out. */
	if (!queue && !make_queue())
		return;
	/* Full: readers have not been through; so have none of ours. */
	while (rte_rcu_qsbr_dq_enqueue(queue, &entry))
		rte_rcu_qsbr_quiescent(states, thread);
}

static inline void scheme_poll(void)
{
	rte_rcu_qsbr_quiescent(states, thread);
}

static void scheme_synchronize(void)
{
	rte_rcu_qsbr_synchronize(states, thread);
}

static void scheme_barrier(void)
{
	unsigned pending;

	if (!queue)
		return;
	do {
		rte_rcu_qsbr_quiescent(states, thread);
		rte_rcu_qsbr_dq_reclaim(queue, QUEUE, NULL, &pending, NULL);
	} while (pending);
}

#include "bench/peers/rcu_loops.h"
