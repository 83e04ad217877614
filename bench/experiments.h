/* SPDX-License-Identifier: MIT */
/*
 * The experiments, one file each.
 */
#ifndef HL_BENCH_EXPERIMENTS_H
#define HL_BENCH_EXPERIMENTS_H

#include "bench/harness.h"

extern const struct bench_experiment bench_csd_align;
extern const struct bench_experiment bench_call_many;
extern const struct bench_experiment bench_call_latency;
extern const struct bench_experiment bench_call_throughput;
extern const struct bench_experiment bench_cpu_poll;
extern const struct bench_experiment bench_rcu_prefetch;
extern const struct bench_experiment bench_rcu_callbacks;
extern const struct bench_experiment bench_rcu_read;
extern const struct bench_experiment bench_rcu_synchronize;
extern const struct bench_experiment bench_close_flood;
extern const struct bench_experiment bench_rcu_hash;
extern const struct bench_experiment bench_pagevec_size;
extern const struct bench_experiment bench_pagecache_hit;
extern const struct bench_experiment bench_pagecache_miss;
extern const struct bench_experiment bench_reclaim_batch;
extern const struct bench_experiment bench_scan_resistance;
extern const struct bench_experiment bench_swap_w_seq_mt;
extern const struct bench_experiment bench_ipc_perm;
extern const struct bench_experiment bench_ipc_latency;
extern const struct bench_experiment bench_ipc_scale;

/* All of them, in the order in which they are listed and run; NULL at the end. */
extern const struct bench_experiment *const bench_experiments[];

#endif
