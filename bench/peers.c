// SPDX-License-Identifier: MIT
#include "bench/peers/transports.h"

#include <stddef.h>

#include "bench_config.h"

#define POLLED (PEER_POLLS | PEER_SENDS)
#define SLEEPER (PEER_POLLS | PEER_SLEEPS | PEER_SENDS | PEER_MANY_SENDERS)
#define EVERYTHING (SLEEPER | PEER_INTERRUPTS)

#define PEER(peer_name, peer_abilities, peer_transport) \
	{ \
		.name = peer_name, .kind = BENCH_PEER, .abilities = peer_abilities, \
		.transport = &peer_transport \
	}
#define MISSING(peer_name, peer_abilities, debian, fedora) \
	{ \
		.name = peer_name, .kind = BENCH_PEER, .abilities = peer_abilities, \
		.why_not = BENCH_INSTALL(debian, fedora) \
	}

const struct peer bench_peers[] = {
	{ .name = "hotline",
	  .kind = BENCH_OURS,
	  .abilities = EVERYTHING,
	  .transport = &transport_hotline },
	{ .name = "ping-pong",
	  .kind = BENCH_LIMIT,
	  .abilities = PEER_POLLS,
	  .transport = &transport_line },
	{ .name = "futex",
	  .kind = BENCH_LIMIT,
	  .abilities = PEER_SLEEPS,
	  .transport = &transport_futex },
	{ .name = "signal",
	  .kind = BENCH_LIMIT,
	  .abilities = PEER_INTERRUPTS,
	  .transport = &transport_signal },
#if HL_BENCH_CK
	PEER("ck_ring-spsc", POLLED, transport_ck_single),
	PEER("ck_ring-mpsc", POLLED | PEER_MANY_SENDERS, transport_ck_many),
#else
	MISSING("ck_ring-spsc", POLLED, "libck-dev", "ck-devel"),
	MISSING("ck_ring-mpsc", POLLED | PEER_MANY_SENDERS, "libck-dev", "ck-devel"),
#endif
#if HL_BENCH_DPDK
	PEER("rte_ring-spsc", POLLED, transport_rte_single),
	PEER("rte_ring-mpsc", POLLED | PEER_MANY_SENDERS, transport_rte_many),
#else
	MISSING("rte_ring-spsc", POLLED, "libdpdk-dev", "dpdk-devel"),
	MISSING("rte_ring-mpsc", POLLED | PEER_MANY_SENDERS, "libdpdk-dev", "dpdk-devel"),
#endif
#if HL_BENCH_URCU
	PEER("wfcqueue", POLLED | PEER_MANY_SENDERS, transport_wfcqueue),
#else
	MISSING("wfcqueue", POLLED | PEER_MANY_SENDERS, "liburcu-dev", "userspace-rcu-devel"),
#endif
#if HL_BENCH_UV
	PEER("libuv", SLEEPER, transport_libuv),
#else
	MISSING("libuv", SLEEPER, "libuv1-dev", "libuv-devel"),
#endif
	PEER("mutex-cond", SLEEPER, transport_mutex),
	PEER("eventfd", SLEEPER, transport_eventfd),
	{ .name = NULL },
};
