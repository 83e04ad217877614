/* SPDX-License-Identifier: MIT */
/*
 * Waiting until everything that was given away has run.
 *
 * RCU_DONE: see invoke.c. What the caller knows to have been given is in .given already, since it
 * was stored before the caller came to know (RCU_GIVEN).
 */
#include "internal.h"

#include <errno.h>
#include <time.h>

#define SPINS 200
#define FIRST_SLEEP_NS 10000
#define LONGEST_SLEEP_NS 1000000

static bool reached(_Atomic(uint64_t) *done, uint64_t upto)
{
	/* RCU_DONE, pairs with run_calls() */
	return (int64_t)(atomic_load_explicit(done, memory_order_acquire) - upto) >= 0;
}

/* Whether the calling thread is to run the queue itself. */
static bool is_ours(const struct hl_rcu_queue *queue)
{
	const struct hl_rcu_thread *self = hl_rcu_self_if_any();

	return self && hl_this_cpu && queue >= self->queue && queue < self->queue + 2 &&
	       atomic_load_explicit(&queue->by, memory_order_relaxed) & HL_RCU_BY_POLL;
}

static void run_ourselves(struct hl_rcu_queue *queue)
{
	if (!hl_queue_trylock(queue))
		return;
	hl_queue_collect(queue);
	if (queue->waiting)
		hl_gp_step(queue->state);
	hl_queue_run(queue, UINT32_MAX);
	hl_queue_unlock(queue);
}

static void pause_a_turn(unsigned turn, int64_t *ns)
{
	struct timespec time = { .tv_nsec = *ns };

	if (turn < SPINS) {
		hl_relax();
		return;
	}
	nanosleep(&time, NULL);
	*ns += *ns / 8;
	if (*ns > LONGEST_SLEEP_NS)
		*ns = LONGEST_SLEEP_NS;
}

static void wait_for(struct hl_rcu_queue *queue)
{
	uint64_t given = atomic_load_explicit(&queue->given, memory_order_acquire);
	uint64_t linked = atomic_load_explicit(&queue->linked, memory_order_acquire);
	int64_t ns = FIRST_SLEEP_NS;
	bool ours = is_ours(queue);

	for (unsigned turn = 0;
	     !reached(&queue->done, given) || !reached(&queue->links_done, linked); turn++) {
		if (!turn &&
		    atomic_load_explicit(&queue->by, memory_order_relaxed) & HL_RCU_BY_HELPER)
			ours |= !hl_helper_ring(queue); /* no thread can be had */
		if (ours)
			run_ourselves(queue);
		if (hl_this_cpu && hl_cpu_hears(hl_this_cpu))
			hl_cpu_serve(hl_this_cpu);
		pause_a_turn(turn, &ns);
	}
}

int hl_rcu_barrier(void)
{
	struct hl_rcu_thread *self = hl_rcu_self_if_any();

	if (hl_rcu_in_section() || hl_rcu_running)
		return -EDEADLK;
	if (self)
		hl_rcu_rest(self);
	HL_FOR_EACH_RCU_QUEUE(t, queue)
	wait_for(queue);
	wait_for(hl_queue_of_all());
	if (self)
		hl_rcu_resume(self);
	return 0;
}
