// SPDX-License-Identifier: MIT
/*
 * DPDK's ring, messages by value; for one sender and for many. The ring is set up in
 * memory of our own, so DPDK's environment with its hugepages is not needed.
 */
#include <errno.h>
#include <stdlib.h>

#include <rte_ring.h>
#include <rte_ring_elem.h>

#include "bench/peers/transports.h"

static void *open_ring(unsigned flags)
{
	ssize_t bytes = rte_ring_get_memsize_elem(sizeof(struct message), BENCH_QUEUE);
	struct rte_ring *ring = bytes > 0 ? aligned_alloc(RTE_CACHE_LINE_SIZE, (size_t)bytes)
					  : NULL;

	if (!ring || rte_ring_init(ring, "hotline", BENCH_QUEUE, flags | RING_F_SC_DEQ))
		return NULL;
	return ring;
}

static void *open_single(unsigned senders)
{
	(void)senders;
	return open_ring(RING_F_SP_ENQ);
}

static void *open_many(unsigned senders)
{
	(void)senders;
	return open_ring(0);
}

static void *join(void *receiver, unsigned sender)
{
	(void)sender;
	return receiver;
}

static unsigned poll_ring(void *receiver)
{
	struct message message[BENCH_BURST];
	unsigned n = rte_ring_sc_dequeue_burst_elem(receiver, message, sizeof(message[0]),
						    BENCH_BURST, NULL);

	for (unsigned i = 0; i < n; i++)
		message[i].func(message[i].info);
	return n;
}

static unsigned send_single(void *link, const struct message *message, unsigned n)
{
	return rte_ring_sp_enqueue_burst_elem(link, message, sizeof(*message), n, NULL);
}

static unsigned send_many(void *link, const struct message *message, unsigned n)
{
	return rte_ring_mp_enqueue_burst_elem(link, message, sizeof(*message), n, NULL);
}

static void call_single(void *link, void (*func)(void *info), void *info)
{
	bench_call_by_flag(&transport_rte_single, link, func, info);
}

static void call_many(void *link, void (*func)(void *info), void *info)
{
	bench_call_by_flag(&transport_rte_many, link, func, info);
}

const struct transport transport_rte_single = {
	.open = open_single,
	.poll = poll_ring,
	.join = join,
	.send = send_single,
	.call = call_single,
};
const struct transport transport_rte_many = {
	.open = open_many,
	.poll = poll_ring,
	.join = join,
	.send = send_many,
	.call = call_many,
};
