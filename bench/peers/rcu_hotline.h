/* SPDX-License-Identifier: MIT */
/*
 * Ours, by its public interface; SCHEME is given. By default sections are of the general
 * scheme and the helper thread runs the callbacks; with QUIESCENT threads read by quiescent
 * states, with POLLING a CPU runs its callbacks when it polls.
 */
#include <errno.h>

#include <hotline/cpu.h>
#include <hotline/rcu.h>

#include "bench/peers/rcu_scheme.h"

#define SCHEME_WORD ((size_t)0)

static void run_callback(void *object)
{
	scheme_ran(object, SCHEME_WORD);
}

static void free_callback(void *object)
{
	scheme_freed(object);
}

static void nothing(void *object)
{
	(void)object;
}

static int scheme_open(void)
{
	/* Has the helper thread started here, and not by a thread that is pinned. */
	int rc = hl_call_rcu_ptr(NULL, nothing);

	return rc ? rc : hl_rcu_barrier();
}

static int scheme_join(void)
{
#ifdef QUIESCENT
	return hl_rcu_set_quiescent(true);
#elif defined(POLLING)
	int cpu = hl_cpu_online(0);

	return cpu < 0 ? cpu : hl_rcu_invoke_by(HL_RCU_BY_POLL);
#else
	return 0;
#endif
}

static void scheme_leave(void)
{
#ifdef QUIESCENT
	hl_rcu_set_quiescent(false);
#elif defined(POLLING)
	hl_cpu_offline();
#endif
}

static void scheme_sleep(void)
{
	hl_rcu_thread_offline();
}

static void scheme_wake(void)
{
	hl_rcu_thread_online();
}

static inline void scheme_lock(void)
{
#ifdef QUIESCENT
	hl_rcu_read_lock_qs();
#else
	hl_rcu_read_lock();
#endif
}

static inline void scheme_unlock(void)
{
#ifdef QUIESCENT
	hl_rcu_read_unlock_qs();
#else
	hl_rcu_read_unlock();
#endif
}

static inline void scheme_quiescent(void)
{
#ifdef QUIESCENT
	hl_rcu_quiescent_state();
#endif
}

static inline void scheme_call(void *object, bool frees)
{
	hl_call_rcu_ptr(object, frees ? free_callback : run_callback);
}

static inline void scheme_poll(void)
{
#ifdef POLLING
	hl_cpu_poll();
#else
	scheme_quiescent();
#endif
}

static void scheme_synchronize(void)
{
	hl_synchronize_rcu();
}

#ifndef QUIESCENT
static void expedited(void)
{
	hl_synchronize_rcu_expedited();
}
#define SCHEME_EXPEDITED expedited
#endif

static void scheme_barrier(void)
{
	hl_rcu_barrier();
}

#include "bench/peers/rcu_loops.h"
