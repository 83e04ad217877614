/* SPDX-License-Identifier: MIT */
/*
 * What liburcu's programs ask for, of ours: for all of its flavours. The flavour's own
 * names are in general.h and quiescent.h. What has nothing to do with RCU comes from
 * liburcu's source.
 */
#ifndef HL_URCU_MAP_H
#define HL_URCU_MAP_H

#include <stdbool.h>

#include <urcu/compiler.h>
#include <urcu/arch.h>
#include <urcu/tls-compat.h>
#include <urcu/uatomic.h>

#include <hotline/rcu.h>

/* ---- Pointers ---- */

#define rcu_dereference(p) hl_rcu_dereference(p)
#define rcu_assign_pointer(p, value) hl_rcu_assign_pointer(p, value)
#define rcu_set_pointer(p, value) hl_rcu_assign_pointer(*(p), value)
#define rcu_xchg_pointer(p, value) hl_rcu_xchg_pointer(*(p), value)
/* Returns what was there. */
#define rcu_cmpxchg_pointer(p, old, value) \
	__extension__({ \
		__typeof__(*(p)) hl_expected = (old); \
\
		hl_rcu_cmpxchg_pointer(*(p), &hl_expected, value); \
		hl_expected; \
	})

/* ---- Calls: one helper thread for all, so there are no workers to make ---- */

#define rcu_head hl_rcu_head
#define call_rcu(head, func) ((void)hl_call_rcu(head, func))
#define rcu_barrier() ((void)hl_rcu_barrier())

struct call_rcu_data {
	int unused;
};

static inline struct call_rcu_data *create_call_rcu_data(unsigned long flags, int cpu)
{
	static struct call_rcu_data all;

	(void)flags;
	(void)cpu;
	return &all;
}

static inline void call_rcu_data_free(struct call_rcu_data *data)
{
	(void)data;
}

static inline void set_thread_call_rcu_data(struct call_rcu_data *data)
{
	(void)data;
}

static inline struct call_rcu_data *get_thread_call_rcu_data(void)
{
	return NULL;
}

static inline struct call_rcu_data *get_cpu_call_rcu_data(int cpu)
{
	(void)cpu;
	return NULL;
}

static inline int create_all_cpu_call_rcu_data(unsigned long flags)
{
	(void)flags;
	return 0;
}

static inline void free_all_cpu_call_rcu_data(void)
{
}

/* The library's own hooks do it. */
static inline void call_rcu_before_fork(void)
{
}

static inline void call_rcu_after_fork_parent(void)
{
}

static inline void call_rcu_after_fork_child(void)
{
}

/* ---- Polled grace periods ---- */

struct urcu_gp_poll_state {
	uint64_t state;
};

static inline struct urcu_gp_poll_state start_poll_synchronize_rcu(void)
{
	struct urcu_gp_poll_state poll = { hl_start_poll_synchronize_rcu() };

	return poll;
}

static inline bool poll_state_synchronize_rcu(struct urcu_gp_poll_state poll)
{
	return hl_poll_state_synchronize_rcu(poll.state);
}

#define synchronize_rcu() ((void)hl_synchronize_rcu())

#endif
