/* SPDX-License-Identifier: MIT */
/*
 * The flavour qsbr: our quiescent states.
 */
#ifndef HL_URCU_QUIESCENT_H
#define HL_URCU_QUIESCENT_H

#include "map.h"

static inline void urcu_qsbr_register_thread(void)
{
	hl_rcu_set_quiescent(true);
}

static inline void urcu_qsbr_unregister_thread(void)
{
	hl_rcu_set_quiescent(false);
}

#define urcu_qsbr_read_lock hl_rcu_read_lock_qs
#define urcu_qsbr_read_unlock hl_rcu_read_unlock_qs
#define urcu_qsbr_quiescent_state hl_rcu_quiescent_state
#define urcu_qsbr_thread_offline hl_rcu_thread_offline
#define urcu_qsbr_thread_online hl_rcu_thread_online
#define urcu_qsbr_synchronize_rcu hl_synchronize_rcu

#ifndef HL_URCU_GENERAL_H
#define rcu_register_thread urcu_qsbr_register_thread
#define rcu_unregister_thread urcu_qsbr_unregister_thread
#define rcu_read_lock hl_rcu_read_lock_qs
#define rcu_read_unlock hl_rcu_read_unlock_qs
#define rcu_read_ongoing hl_rcu_read_lock_held
#define rcu_quiescent_state hl_rcu_quiescent_state
#define rcu_thread_offline hl_rcu_thread_offline
#define rcu_thread_online hl_rcu_thread_online
#endif

#endif
