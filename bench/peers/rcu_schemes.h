/* SPDX-License-Identifier: MIT */
/*
 * The schemes of the files beside this one; ../rcu_peers.c says which there are.
 */
#ifndef HL_BENCH_RCU_SCHEMES_H
#define HL_BENCH_RCU_SCHEMES_H

#include "bench/rcu.h"

extern const struct rcu_scheme scheme_hotline, scheme_hotline_polling, scheme_hotline_quiescent;
extern const struct rcu_scheme scheme_array;
extern const struct rcu_scheme scheme_urcu_memb, scheme_urcu_qsbr;
extern const struct rcu_scheme scheme_ck_epoch;
extern const struct rcu_scheme scheme_rte_qsbr;

#endif
