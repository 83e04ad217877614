// SPDX-License-Identifier: MIT
/*
 * How a call is waited for with a queue that only carries messages: a flag on the
 * caller's stack.
 */
#include <stdatomic.h>

#include <hotline/cacheline.h>

#include "bench/clock.h"
#include "bench/peer.h"

struct flagged {
	/* Read by the target, with the answer in the same line. */
	void (*func)(void *info);
	void *info;
	_Atomic(bool) done;
} HL_CACHELINE_ALIGNED;

static void run_flagged(void *info)
{
	struct flagged *call = info;

	call->func(call->info);
	/* FLAG_DONE, pairs with bench_call_by_flag(): what the function wrote comes before. */
	atomic_store_explicit(&call->done, true, memory_order_release);
}

void bench_call_by_flag(const struct transport *transport, void *link, void (*func)(void *info),
			void *info)
{
	struct flagged call = { .func = func, .info = info };
	struct message message = { run_flagged, &call };

	while (!transport->send(link, &message, 1))
		bench_relax();
	/* FLAG_DONE, pairs with run_flagged() */
	while (!atomic_load_explicit(&call.done, memory_order_acquire))
		bench_relax();
}
