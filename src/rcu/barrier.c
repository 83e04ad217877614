/* SPDX-License-Identifier: MIT */
/*
 * Waiting until everything that was given away has run.
 *
 * Who waits has the helper hurry, spins, then sleeps until some calls have run. It looks itself
 * whether its own have, after an eighth of the time that it has waited at the latest: the
 * helper tells it only when it has run some thousands, or all.
 *
 * RCU_DONE: see invoke.c. What the caller knows to have been given is in .given already, since it
 * was stored before the caller came to know (RCU_GIVEN).
 */
#include "internal.h"

#include <errno.h>
#include <pthread.h>

#define SPIN_NS 20000
#define RELAXES_A_LOOK 32 /* each look takes the line away from who invokes */
#define SHORTEST_SLEEP_NS 20000
#define LONGEST_SLEEP_NS 10000000
/* A CPU looks at what is sent to it in between. */
#define LONGEST_SLEEP_CPU_NS 1000000

/* Those who wait; written by them, read by who invokes, once a round. */
static struct {
	_Atomic(uint32_t) n HL_CACHELINE_ALIGNED;
} waiters;
static __thread uint32_t waits; /* the calling thread is one; it may fork in what it runs */

bool hl_rcu_barrier_waits(void)
{
	return atomic_load_explicit(&waiters.n, memory_order_relaxed);
}

void hl_rcu_barrier_forked(void)
{
	atomic_store_explicit(&waiters.n, waits, memory_order_relaxed);
}

/* Whether the calling thread is to run the queue itself. */
static bool is_ours(const struct hl_rcu_queue *queue)
{
	const struct hl_rcu_thread *self = hl_rcu_self_if_any();

	return self && queue >= self->queue && queue < self->queue + 2 &&
	       (self->by & HL_RCU_BY_BARRIER || (hl_this_cpu && self->by & HL_RCU_BY_POLL));
}

/* The functions may read by quiescent states. A thread that is cancelled in one of them would
 * leave the queue locked. */
static void run_ourselves(struct hl_rcu_queue *queue)
{
	struct hl_rcu_thread *self = hl_rcu_self_if_any();
	int cancel;

	if (!hl_queue_trylock(queue))
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	hl_queue_collect(queue);
	if (queue->waiting) {
		hl_gp_step(queue->state);
		hl_queue_collect(queue);
	}
	if (self)
		hl_rcu_resume(self);
	hl_queue_run(queue, UINT32_MAX);
	if (self)
		hl_rcu_rest(self);
	hl_queue_unlock(queue);
	pthread_setcancelstate(cancel, NULL);
}

static void pause_a_turn(struct hl_rcu_queue *queue, uint64_t given, uint64_t linked, int64_t begun)
{
	int64_t waited = hl_now_ns() - begun, ns = waited / 8;
	int64_t longest = hl_this_cpu ? LONGEST_SLEEP_CPU_NS : LONGEST_SLEEP_NS;

	if (waited < SPIN_NS) {
		for (unsigned i = 0; i < RELAXES_A_LOOK; i++)
			hl_relax();
		return;
	}
	if (ns < SHORTEST_SLEEP_NS)
		ns = SHORTEST_SLEEP_NS;
	hl_queue_sleep(queue, given, linked, ns < longest ? ns : longest);
}

static void wait_for(struct hl_rcu_queue *queue)
{
	uint64_t given = atomic_load_explicit(&queue->given, memory_order_acquire);
	uint64_t linked = atomic_load_explicit(&queue->linked, memory_order_acquire);
	bool ours = is_ours(queue);
	int64_t begun;

	if (hl_queue_reached(queue, given, linked))
		return;
	if (ours) {
		/* The helper lets go of it after its turn. */
		hl_rcu_run_by(queue, HL_RCU_BY_BARRIER);
		run_ourselves(queue);
	}
	begun = hl_now_ns();
	if (!ours && atomic_load_explicit(&queue->by, memory_order_relaxed) & HL_RCU_BY_HELPER)
		ours = !hl_helper_ring(queue); /* no thread can be had */
	while (!hl_queue_reached(queue, given, linked)) {
		if (ours)
			run_ourselves(queue);
		if (hl_this_cpu && hl_cpu_hears(hl_this_cpu))
			hl_cpu_serve(hl_this_cpu);
		pause_a_turn(queue, given, linked, begun);
	}
	if (is_ours(queue))
		hl_rcu_run_by(queue, hl_rcu_self_if_any()->by);
}

int hl_rcu_barrier(void)
{
	struct hl_rcu_thread *self = hl_rcu_self_if_any();

	if (hl_rcu_in_section() || hl_rcu_running)
		return -EDEADLK;
	if (self)
		hl_rcu_rest(self);
	waits++;
	atomic_fetch_add_explicit(&waiters.n, 1, memory_order_relaxed);
	HL_FOR_EACH_RCU_QUEUE(t, queue)
	wait_for(queue);
	wait_for(hl_queue_of_all());
	atomic_fetch_sub_explicit(&waiters.n, 1, memory_order_relaxed);
	waits--;
	if (self)
		hl_rcu_resume(self);
	return 0;
}
