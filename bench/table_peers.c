// SPDX-License-Identifier: MIT
#include "bench/table.h"

#include "bench_config.h"

extern const struct table table_hotline, table_hotline_quiescent;
extern const struct table table_lfht_memb, table_lfht_qsbr;
extern const struct table table_ck_ht;
extern const struct table table_mutex, table_rwlock;

#define PEER(peer_name, peer_table) \
	{ \
		.name = peer_name, .kind = BENCH_PEER, .table = &peer_table \
	}
#define MISSING(peer_name, debian, fedora) \
	{ \
		.name = peer_name, .kind = BENCH_PEER, \
		.why_not = BENCH_INSTALL(debian, fedora) \
	}

const struct table_peer bench_table_peers[] = {
	{ .name = "hotline", .kind = BENCH_OURS, .table = &table_hotline },
	{ .name = "hotline-quiescent", .kind = BENCH_OURS, .table = &table_hotline_quiescent },
#if HL_BENCH_URCU
	PEER("lfht-memb", table_lfht_memb),
	PEER("lfht-qsbr", table_lfht_qsbr),
#else
	MISSING("lfht-memb", "liburcu-dev", "userspace-rcu-devel"),
	MISSING("lfht-qsbr", "liburcu-dev", "userspace-rcu-devel"),
#endif
#if HL_BENCH_CK
	PEER("ck_ht", table_ck_ht),
#else
	MISSING("ck_ht", "libck-dev", "ck-devel"),
#endif
	PEER("mutex", table_mutex),
	PEER("rwlock", table_rwlock),
	{ .name = NULL },
};
