// SPDX-License-Identifier: MIT
/*
 * liburcu's wait-free queue. It links nodes, which the sender lends: each has a pool of
 * them and learns from a counter how many came back.
 */
#define _LGPL_SOURCE /* the inline forms */

#include <stdatomic.h>
#include <stdlib.h>

#include <urcu/wfcqueue.h>

#include <hotline/cacheline.h>

#include "bench/peers/transports.h"

struct node {
	struct cds_wfcq_node link;
	struct message message;
	struct sender *owner;
};

struct sender {
	/* Written by the sender alone. */
	struct receiver *receiver;
	uint64_t sent;
	uint64_t returned_seen;
	/* Written by the target, read by the sender when its pool is used up. */
	_Atomic(uint64_t) returned HL_CACHELINE_PAIR_ALIGNED;
	struct node node[BENCH_QUEUE] HL_CACHELINE_PAIR_ALIGNED;
};

struct receiver {
	struct cds_wfcq_tail tail HL_CACHELINE_PAIR_ALIGNED;
	struct __cds_wfcq_head head HL_CACHELINE_PAIR_ALIGNED;
};

static void *open_queue(unsigned senders)
{
	static struct receiver receiver;

	(void)senders;
	__cds_wfcq_init(&receiver.head, &receiver.tail);
	return &receiver;
}

static void *join(void *receiver, unsigned id)
{
	struct sender *sender = aligned_alloc(_Alignof(struct sender), sizeof(*sender));

	(void)id;
	if (!sender)
		return NULL;
	sender->receiver = receiver;
	sender->sent = sender->returned_seen = 0;
	atomic_init(&sender->returned, 0);
	for (unsigned i = 0; i < BENCH_QUEUE; i++)
		sender->node[i].owner = sender;
	return sender;
}

static void run(struct node *node)
{
	struct message message = node->message;
	struct sender *owner = node->owner;

	/* WFCQ_RETURN, pairs with room(): the node has been read. */
	atomic_store_explicit(&owner->returned,
			      atomic_load_explicit(&owner->returned, memory_order_relaxed) + 1,
			      memory_order_release);
	message.func(message.info);
}

/* Takes all there is in one step. */
static unsigned poll_queue(void *receiver)
{
	struct receiver *r = receiver;
	struct __cds_wfcq_head head;
	struct cds_wfcq_tail tail;
	struct cds_wfcq_node *node, *next;
	unsigned n = 0;

	if (cds_wfcq_empty(&r->head, &r->tail))
		return 0;
	__cds_wfcq_init(&head, &tail);
	__cds_wfcq_splice_blocking(&head, &tail, &r->head, &r->tail);
	__cds_wfcq_for_each_blocking_safe(&head, &tail, node, next)
	{
		run(caa_container_of(node, struct node, link));
		n++;
	}
	return n;
}

/* How many of n nodes the sender has. */
static unsigned room(struct sender *sender, unsigned n)
{
	uint64_t out = sender->sent - sender->returned_seen;

	if (out + n > BENCH_QUEUE) {
		/* WFCQ_RETURN, pairs with run() */
		sender->returned_seen =
			atomic_load_explicit(&sender->returned, memory_order_acquire);
		out = sender->sent - sender->returned_seen;
	}
	return out + n > BENCH_QUEUE ? (unsigned)(BENCH_QUEUE - out) : n;
}

static struct cds_wfcq_node *fill(struct sender *sender, const struct message *message)
{
	struct node *node = &sender->node[sender->sent++ % BENCH_QUEUE];

	cds_wfcq_node_init(&node->link);
	node->message = *message;
	return &node->link;
}

static unsigned send(void *link, const struct message *message, unsigned n)
{
	struct sender *sender = link;
	struct receiver *r = sender->receiver;
	struct __cds_wfcq_head head;
	struct cds_wfcq_tail tail;

	n = room(sender, n);
	if (n == 1)
		cds_wfcq_enqueue(&r->head, &r->tail, fill(sender, message));
	if (n <= 1)
		return n;
	/* A burst is linked first and then put in as a whole. */
	__cds_wfcq_init(&head, &tail);
	for (unsigned i = 0; i < n; i++)
		cds_wfcq_enqueue(&head, &tail, fill(sender, &message[i]));
	__cds_wfcq_splice_blocking(&r->head, &r->tail, &head, &tail);
	return n;
}

static void call(void *link, void (*func)(void *info), void *info)
{
	bench_call_by_flag(&transport_wfcqueue, link, func, info);
}

const struct transport transport_wfcqueue = {
	.open = open_queue,
	.poll = poll_queue,
	.join = join,
	.send = send,
	.call = call,
};
