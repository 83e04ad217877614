/* SPDX-License-Identifier: MIT */
/*
 * What CPUs do for RCU: they say by polling that they hold nothing, and run what waits for them.
 *
 * A CPU that takes part has .tick point to the number of grace periods. A poll that finds another
 * number there than in .ticked comes here, once or twice a grace period; while calls wait
 * that the CPU runs itself, .ticked is 0, which no number is, and every poll comes here.
 */
#include "internal.h"

#include <errno.h>

/* Calls that one poll runs at most: so many, and a part of what waits. */
#define MOST 64u
#define PART 8

static bool runs_by_poll(const struct hl_rcu_thread *self)
{
	return self->by & HL_RCU_BY_POLL;
}

void hl_rcu_run_by(struct hl_rcu_queue *queue, uint32_t who)
{
	atomic_store_explicit(&queue->by, who, memory_order_relaxed);
	/* In this order: a function that interrupts the thread in between rings itself. */
	atomic_store_explicit(&queue->notify, 1, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	if (hl_queue_pending(queue))
		hl_queue_ring(queue);
}

static void run_by(struct hl_rcu_thread *self, uint32_t who)
{
	hl_rcu_run_by(&self->queue[0], who);
	hl_rcu_run_by(&self->queue[1], who);
}

/* Runs some of what is ready; whether something waits still. */
static bool run_some(struct hl_rcu_queue *queue)
{
	if (hl_queue_pending(queue) && !hl_rcu_running && hl_queue_trylock(queue)) {
		hl_queue_collect(queue);
		if (queue->waiting)
			hl_gp_step_in_time(queue->state);
		hl_queue_run(queue, MOST + (unsigned)(hl_queue_waits(queue) / PART));
		hl_queue_unlock(queue);
	}
	if (hl_queue_pending(queue))
		return true;
	atomic_store_explicit(&queue->notify, 1, memory_order_relaxed);
	return false;
}

static void tick(struct hl_cpu *me)
{
	struct hl_rcu_thread *self = hl_rcu_self_if_any();
	bool waits[2];

	if (!self)
		return;
	me->ticked = __atomic_load_n(&hl_priv_rcu_number.word, __ATOMIC_RELAXED);
	if (self->reader.quiescent)
		hl_rcu_announce(self);
	if (!runs_by_poll(self))
		return;
	waits[0] = run_some(&self->queue[0]);
	waits[1] = run_some(&self->queue[1]);
	if (waits[0] || waits[1])
		me->ticked = 0;
}

static void attend(struct hl_cpu *me, const struct hl_rcu_thread *self)
{
	me->ticked = 0;
	me->tick = self->quiescent || runs_by_poll(self) ? &hl_priv_rcu_number.word : &me->ticked;
}

static void asleep(struct hl_cpu *me)
{
	struct hl_rcu_thread *self = hl_rcu_self_if_any();

	(void)me;
	if (!self)
		return;
	hl_rcu_rest(self);
	if (runs_by_poll(self))
		run_by(self, self->by | HL_RCU_BY_HELPER);
}

static void awake(struct hl_cpu *me)
{
	struct hl_rcu_thread *self = hl_rcu_self_if_any();

	if (!self)
		return;
	hl_rcu_resume(self);
	if (runs_by_poll(self)) {
		run_by(self, self->by);
		me->ticked = 0;
	}
}

/* It will not poll any more; what it chose beside that stays. */
void hl_rcu_poll_ends(void)
{
	const struct hl_rcu_thread *self = hl_rcu_self_if_any();

	if (self && runs_by_poll(self))
		hl_rcu_invoke_by(HL_RCU_BY_HELPER | (self->by & HL_RCU_BY_BARRIER));
}

static void offline(struct hl_cpu *me)
{
	(void)me;
	hl_rcu_set_quiescent(false);
	hl_rcu_poll_ends();
}

static const struct hl_cpu_watch watch = {
	.tick = tick,
	.asleep = asleep,
	.awake = awake,
	.offline = offline,
};

__attribute__((constructor)) static void register_watch(void)
{
	hl_cpu_watch = &watch;
}

int hl_rcu_set_quiescent(bool on)
{
	struct hl_rcu_thread *self = on ? hl_rcu_self() : hl_rcu_self_if_any();

	if (!self)
		return on ? -ENOMEM : 0;
	self->quiescent = on;
	self->offline = false;
	if (on)
		hl_rcu_resume(self);
	else
		hl_rcu_rest(self);
	if (hl_this_cpu)
		attend(hl_this_cpu, self);
	return 0;
}

int hl_rcu_invoke_by(unsigned who)
{
	struct hl_rcu_thread *self;

	if (!(who & (HL_RCU_BY_HELPER | HL_RCU_BY_POLL)) ||
	    who & ~(HL_RCU_BY_HELPER | HL_RCU_BY_POLL | HL_RCU_BY_BARRIER))
		return -EINVAL;
	if (who & HL_RCU_BY_POLL && !hl_this_cpu)
		return -ENXIO;
	self = hl_rcu_self();
	if (!self)
		return -ENOMEM;
	if (self->by != who) {
		self->by = who;
		run_by(self, who);
	}
	if (hl_this_cpu)
		attend(hl_this_cpu, self);
	return 0;
}
