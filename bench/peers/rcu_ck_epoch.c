// SPDX-License-Identifier: MIT
/*
 * Concurrency Kit's epochs. Callbacks are run by the thread that called them, when it polls.
 */
#include <errno.h>
#include <stdlib.h>

#include <ck_epoch.h>

#include <hotline/cacheline.h>

#include "bench/peers/rcu_scheme.h"

#define SCHEME scheme_ck_epoch
#define SCHEME_WORD sizeof(ck_epoch_entry_t)

static ck_epoch_t epoch HL_CACHELINE_PAIR_ALIGNED;
static _Thread_local ck_epoch_record_t *record;

static void run_callback(ck_epoch_entry_t *entry)
{
	scheme_ran(entry, SCHEME_WORD);
}

static void free_callback(ck_epoch_entry_t *entry)
{
	scheme_freed(entry);
}

static int scheme_open(void)
{
	ck_epoch_init(&epoch);
	return 0;
}

static int scheme_join(void)
{
	record = aligned_alloc(HL_CACHE_LINE_PAIR, (sizeof(*record) + HL_CACHE_LINE_PAIR - 1) &
							   ~(size_t)(HL_CACHE_LINE_PAIR - 1));
	if (!record)
		return -ENOMEM;
	ck_epoch_register(&epoch, record, NULL);
	return 0;
}

static void scheme_leave(void)
{
	ck_epoch_unregister(record);
}

/* A record outside of sections holds nothing back. */
static void scheme_sleep(void)
{
}

static void scheme_wake(void)
{
}

static inline void scheme_lock(void)
{
	ck_epoch_begin(record, NULL);
}

static inline void scheme_unlock(void)
{
	ck_epoch_end(record, NULL);
}

static inline void scheme_quiescent(void)
{
}

static inline void scheme_call(void *object, bool frees)
{
	ck_epoch_call(record, object, frees ? free_callback : run_callback);
}

static inline void scheme_poll(void)
{
	ck_epoch_poll(record);
}

static void scheme_synchronize(void)
{
	ck_epoch_synchronize(record);
}

static void scheme_barrier(void)
{
	ck_epoch_barrier(record);
}

#include "bench/peers/rcu_loops.h"
