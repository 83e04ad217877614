/* SPDX-License-Identifier: MIT */
/*
 * liburcu, for either of its flavours: URCU(name) and SCHEME are given. Its helper thread
 * runs the callbacks, unpinned.
 */
#include <errno.h>

#include "bench/peers/rcu_scheme.h"

#define SCHEME_WORD sizeof(struct rcu_head)

static void run_callback(struct rcu_head *head)
{
	scheme_ran(head, SCHEME_WORD);
}

static void free_callback(struct rcu_head *head)
{
	scheme_freed(head);
}

static int scheme_open(void)
{
	/* Here already, not with the first call of a thread that is pinned. */
	return URCU(get_default_call_rcu_data)() ? 0 : -ENOMEM;
}

static int scheme_join(void)
{
	URCU(register_thread)();
	return 0;
}

static void scheme_leave(void)
{
	URCU(unregister_thread)();
}

static void scheme_sleep(void)
{
	URCU(thread_offline)();
}

static void scheme_wake(void)
{
	URCU(thread_online)();
}

static inline void scheme_lock(void)
{
	URCU(read_lock)();
}

static inline void scheme_unlock(void)
{
	URCU(read_unlock)();
}

static inline void scheme_quiescent(void)
{
	URCU(quiescent_state)();
}

static inline void scheme_call(void *object, bool frees)
{
	URCU(call_rcu)(object, frees ? free_callback : run_callback);
}

static inline void scheme_poll(void)
{
	URCU(quiescent_state)();
}

static void scheme_synchronize(void)
{
	URCU(synchronize_rcu)();
}

static void scheme_barrier(void)
{
	URCU(barrier)();
}

#include "bench/peers/rcu_loops.h"
