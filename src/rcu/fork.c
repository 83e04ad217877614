/* SPDX-License-Identifier: MIT */
/*
 * Fork, and the end of the library.
 *
 * The locks of the room are held for a few instructions each (or a membarrier), and never while a
 * call runs; fork takes all of them, so the child finds everything whole. Calls that
 * other threads are running go on in the parent alone: the child's copy counts as begun
 * (.taken), and what has not begun runs in the child.
 */
#include "internal.h"

#include <pthread.h>

static void before_fork(void)
{
	hl_helper_lock();
	hl_rcu_threads_lock();
	hl_gp_lock();
	hl_batch_lock();
}

static void unlock_all(void)
{
	hl_batch_unlock();
	hl_gp_unlock();
	hl_rcu_threads_unlock();
	hl_helper_unlock();
}

static void child_forked(void)
{
	hl_rcu_threads_forked();
	hl_gp_forked();
	hl_helper_forked();
	hl_queue_forked();
	hl_rcu_barrier_forked();
	unlock_all();
}

bool hl_rcu_watch_fork(void)
{
	return !pthread_atfork(before_fork, unlock_all, child_forked);
}

/* The program ends, or the library is unloaded; nobody is to use it any more. */
__attribute__((destructor)) static void unload(void)
{
	if (hl_helper_stop())
		hl_rcu_threads_unload();
}
