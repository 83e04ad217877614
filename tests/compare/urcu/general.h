/* SPDX-License-Identifier: MIT */
/*
 * The flavours memb, mb and bp: our general scheme, in which threads register themselves.
 */
#ifndef HL_URCU_GENERAL_H
#define HL_URCU_GENERAL_H

#include "map.h"

static inline void hl_urcu_nothing(void)
{
}

#define urcu_memb_register_thread hl_urcu_nothing
#define urcu_memb_unregister_thread hl_urcu_nothing
#define urcu_memb_read_lock hl_rcu_read_lock
#define urcu_memb_read_unlock hl_rcu_read_unlock
#define urcu_memb_synchronize_rcu hl_synchronize_rcu
#define urcu_mb_register_thread hl_urcu_nothing
#define urcu_mb_unregister_thread hl_urcu_nothing
#define urcu_mb_read_lock hl_rcu_read_lock
#define urcu_mb_read_unlock hl_rcu_read_unlock
#define urcu_mb_synchronize_rcu hl_synchronize_rcu
#define urcu_bp_register_thread hl_urcu_nothing
#define urcu_bp_unregister_thread hl_urcu_nothing
#define urcu_bp_read_lock hl_rcu_read_lock
#define urcu_bp_read_unlock hl_rcu_read_unlock
#define urcu_bp_synchronize_rcu hl_synchronize_rcu

#ifndef HL_URCU_QUIESCENT_H
#define rcu_register_thread hl_urcu_nothing
#define rcu_unregister_thread hl_urcu_nothing
#define rcu_read_lock hl_rcu_read_lock
#define rcu_read_unlock hl_rcu_read_unlock
#define rcu_read_ongoing hl_rcu_read_lock_held
#define rcu_quiescent_state hl_urcu_nothing
#define rcu_thread_offline hl_urcu_nothing
#define rcu_thread_online hl_urcu_nothing
#endif

#endif
