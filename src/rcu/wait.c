/* SPDX-License-Identifier: MIT */
/*
 * Waiting for grace periods.
 *
 * Who waits takes the steps itself (gp.c) and spins at first: with readers that end
 * soon, or that say often that they hold nothing, that is all. Then it sleeps between steps, an
 * eighth of the time that it has waited already: so it is late by an eighth at most, it wakes
 * some dozens of times for a reader that holds a section for a second, and readers need not
 * look for somebody to wake when they end a section.
 */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SPIN_NS 20000
#define SPIN_NS_HURRY 200000
#define SPINS_A_LOOK 16 /* at the clock */
#define SHORTEST_SLEEP_NS 20000
#define LONGEST_SLEEP_NS 100000000
/* A CPU looks at what is sent to it in between. */
#define LONGEST_SLEEP_CPU_NS 1000000
#define NS_PER_MS 1000000

static _Atomic(unsigned) stall_ms;
static void (*_Atomic stall_report)(const struct hl_rcu_stall *stall);

/* ---- Stalls ---- */

void hl_rcu_stall_ms(unsigned ms, void (*report)(const struct hl_rcu_stall *stall))
{
	atomic_store_explicit(&stall_report, report, memory_order_relaxed);
	/* RCU_STALL: the function is there when the time is; pairs with look_for_stall() */
	atomic_store_explicit(&stall_ms, ms, memory_order_release);
}

static void name_of_thread(int tid, char name[16])
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/comm", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	n = read(fd, name, 15);
	close(fd);
	name[n > 0 ? n - 1 : 0] = '\0'; /* there is a newline behind it */
}

static void look_for_stall(void)
{
	/* RCU_STALL, pairs with hl_rcu_stall_ms() */
	unsigned ms = atomic_load_explicit(&stall_ms, memory_order_acquire);
	void (*report)(const struct hl_rcu_stall *) =
		atomic_load_explicit(&stall_report, memory_order_relaxed);
	struct hl_rcu_stall stall = { 0 };

	if (!ms || !report || !hl_gp_stalls((int64_t)ms * NS_PER_MS, &stall))
		return;
	if (stall.tid)
		name_of_thread(stall.tid, stall.name);
	report(&stall);
}

/* ---- Waiting ---- */

/* Runs what was sent to the calling CPU; what it runs may read. */
static void serve(struct hl_cpu *me, struct hl_rcu_thread *self)
{
	if (!hl_cpu_hears(me))
		return;
	if (self)
		hl_rcu_resume(self);
	hl_cpu_serve(me);
	if (self)
		hl_rcu_rest(self);
}

static int64_t sleep_ns(int64_t waited, bool is_cpu)
{
	int64_t ns = waited / 8, longest = is_cpu ? LONGEST_SLEEP_CPU_NS : LONGEST_SLEEP_NS;
	unsigned ms = atomic_load_explicit(&stall_ms, memory_order_relaxed);

	if (ms && ns > (int64_t)ms * NS_PER_MS / 4)
		ns = (int64_t)ms * NS_PER_MS / 4;
	if (ns < SHORTEST_SLEEP_NS)
		ns = SHORTEST_SLEEP_NS;
	return ns < longest ? ns : longest;
}

void hl_gp_wait(uint64_t state, bool hurry)
{
	struct hl_rcu_thread *self = hl_rcu_self_if_any();
	int64_t begun = 0, waited = 0, spin = hurry ? SPIN_NS_HURRY : SPIN_NS;
	struct hl_cpu *me = hl_this_cpu;

	if (self)
		hl_rcu_rest(self);
	for (unsigned turns = 1;; turns++) {
		if (hl_gp_done(state))
			break;
		hl_gp_step(state);
		if (me)
			serve(me, self);
		if (turns % SPINS_A_LOOK == 0) {
			if (!begun)
				begun = hl_now_ns();
			waited = hl_now_ns() - begun;
			if (hurry && waited > SPIN_NS)
				sched_yield();
			look_for_stall();
		}
		if (waited < spin) {
			hl_relax();
			continue;
		}
		hl_gp_sleep(state, sleep_ns(waited, me));
		turns |= SPINS_A_LOOK - 1; /* the next one looks at the clock */
	}
	if (self)
		hl_rcu_resume(self);
}

static int synchronize(bool hurry)
{
	if (hl_rcu_in_section())
		return -EDEADLK;
	if (!hl_gp_nobody_reads(hl_rcu_self_if_any()))
		hl_gp_wait(hl_gp_state(), hurry);
	return 0;
}

int hl_synchronize_rcu(void)
{
	return synchronize(false);
}

int hl_synchronize_rcu_expedited(void)
{
	return synchronize(true);
}

uint64_t hl_get_state_synchronize_rcu(void)
{
	return hl_gp_state();
}

uint64_t hl_start_poll_synchronize_rcu(void)
{
	uint64_t state = hl_gp_state();

	hl_gp_step(state);
	return state;
}

bool hl_poll_state_synchronize_rcu(uint64_t state)
{
	if (hl_gp_done(state))
		return true;
	hl_gp_step(state);
	return hl_gp_done(state);
}

int hl_cond_synchronize_rcu(uint64_t state)
{
	if (hl_gp_done(state))
		return 0;
	if (hl_rcu_in_section())
		return -EDEADLK;
	hl_gp_wait(state, false);
	return 0;
}
