// SPDX-License-Identifier: MIT
#include "bench/peers/rcu_schemes.h"

#include <stddef.h>

#include "bench_config.h"

#define EVERYTHING (RCU_READS | RCU_SYNCHRONIZES | RCU_CALLS | RCU_POLLS)

#define PEER(peer_name, more, peer_scheme) \
	{ \
		.name = peer_name, .kind = BENCH_PEER, .abilities = EVERYTHING | (more), \
		.scheme = &peer_scheme \
	}
#define MISSING(peer_name, more, debian, fedora) \
	{ \
		.name = peer_name, .kind = BENCH_PEER, .abilities = EVERYTHING | (more), \
		.why_not = BENCH_INSTALL(debian, fedora) \
	}

const struct rcu_peer bench_rcu_peers[] = {
	{ .name = "hotline",
	  .kind = BENCH_OURS,
	  .abilities = EVERYTHING | RCU_HELPS,
	  .scheme = &scheme_hotline },
	{ .name = "hotline-polling",
	  .kind = BENCH_OURS,
	  .abilities = RCU_POLLS,
	  .scheme = &scheme_hotline_polling },
	{ .name = "hotline-quiescent",
	  .kind = BENCH_OURS,
	  .abilities = RCU_READS | RCU_SYNCHRONIZES,
	  .scheme = &scheme_hotline_quiescent },
	{ .name = "nothing", .kind = BENCH_LIMIT, .abilities = RCU_READS, .scheme = &scheme_array },
	{ .name = "array",
	  .kind = BENCH_LIMIT,
	  .abilities = RCU_CALLS | RCU_POLLS,
	  .scheme = &scheme_array },
#if HL_BENCH_URCU
	PEER("urcu-memb", RCU_HELPS, scheme_urcu_memb),
#else
	MISSING("urcu-memb", RCU_HELPS, "liburcu-dev", "userspace-rcu-devel"),
#endif
#if HL_BENCH_URCU
	PEER("urcu-qsbr", RCU_HELPS, scheme_urcu_qsbr),
#else
	MISSING("urcu-qsbr", RCU_HELPS, "liburcu-dev", "userspace-rcu-devel"),
#endif
#if HL_BENCH_CK
	PEER("ck_epoch", 0, scheme_ck_epoch),
#else
	MISSING("ck_epoch", 0, "libck-dev", "ck-devel"),
#endif
#if HL_BENCH_DPDK
	PEER("rte_rcu_qsbr", 0, scheme_rte_qsbr),
#else
	MISSING("rte_rcu_qsbr", 0, "libdpdk-dev", "dpdk-devel"),
#endif
	{ .name = NULL },
};

void bench_add_rcu_row(struct bench_experiment *experiment, struct bench_scenario *scenario,
		       const struct rcu_peer *peer, bench_fn run, const void *what)
{
	bench_add_row(experiment, scenario,
		      &(struct bench_row){
			      .name = peer->name,
			      .kind = peer->kind,
			      .run = run,
			      .what = what,
			      .why_not = (char *)peer->why_not,
		      });
}
