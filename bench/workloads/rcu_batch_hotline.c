// SPDX-License-Identifier: MIT
/*
 * Ours: the library's own path from its batches to the callbacks. A read section keeps what
 * is handed over from being run; when it ends a grace period can, and the helper thread
 * runs all of it.
 */
#include "bench/workloads/rcu_batch.h"

#include <stdlib.h>

#include <hotline/rcu.h>

static void callback(void *object)
{
	++*(uint64_t *)object;
}

static int hotline_open(void)
{
	/* Has the helper thread started here, and not by a thread that is pinned. */
	int rc = hl_call_rcu_ptr(NULL, free);

	return rc ? rc : hl_rcu_barrier();
}

static void hotline_begin(void)
{
	hl_rcu_read_lock();
}

static void hotline_add(void *object)
{
	hl_call_rcu_ptr(object, callback);
}

static void hotline_run(void)
{
	hl_rcu_read_unlock();
	hl_rcu_barrier();
}

const struct batch batch_hotline = {
	.open = hotline_open,
	.begin = hotline_begin,
	.add = hotline_add,
	.run = hotline_run,
};
