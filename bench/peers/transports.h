/* SPDX-License-Identifier: MIT */
/*
 * The transports of the files beside this one; ../peers.c says which there are.
 */
#ifndef HL_BENCH_TRANSPORTS_H
#define HL_BENCH_TRANSPORTS_H

#include "bench/peer.h"

extern const struct transport transport_ck_single, transport_ck_many;
extern const struct transport transport_rte_single, transport_rte_many;
extern const struct transport transport_wfcqueue;
extern const struct transport transport_libuv;
extern const struct transport transport_mutex;
extern const struct transport transport_eventfd;
extern const struct transport transport_line, transport_futex, transport_signal;

#endif
