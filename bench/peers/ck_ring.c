// SPDX-License-Identifier: MIT
/*
 * Concurrency Kit's ring, messages by value; for one sender and for many.
 */
#include <stdlib.h>

#include <ck_ring.h>

#include <hotline/cacheline.h>

#include "bench/peers/transports.h"

CK_RING_PROTOTYPE(message, message)

struct receiver {
	ck_ring_t ring HL_CACHELINE_PAIR_ALIGNED;
	struct message buffer[BENCH_QUEUE] HL_CACHELINE_PAIR_ALIGNED;
};

static void *open_ring(unsigned senders)
{
	static struct receiver receiver;

	(void)senders;
	ck_ring_init(&receiver.ring, BENCH_QUEUE);
	return &receiver;
}

static void *join(void *receiver, unsigned sender)
{
	(void)sender;
	return receiver;
}

static unsigned poll_single(void *receiver)
{
	struct receiver *r = receiver;
	struct message message;
	unsigned n = 0;

	while (n < BENCH_QUEUE && ck_ring_dequeue_spsc_message(&r->ring, r->buffer, &message)) {
		message.func(message.info);
		n++;
	}
	return n;
}

static unsigned send_single(void *link, const struct message *message, unsigned n)
{
	struct receiver *r = link;
	unsigned sent = 0;

	while (sent < n) {
		struct message copy = message[sent];

		if (!ck_ring_enqueue_spsc_message(&r->ring, r->buffer, &copy))
			break;
		sent++;
	}
	return sent;
}

static unsigned poll_many(void *receiver)
{
	struct receiver *r = receiver;
	struct message message;
	unsigned n = 0;

	while (n < BENCH_QUEUE && ck_ring_dequeue_mpsc_message(&r->ring, r->buffer, &message)) {
		message.func(message.info);
		n++;
	}
	return n;
}

static unsigned send_many(void *link, const struct message *message, unsigned n)
{
	struct receiver *r = link;
	unsigned sent = 0;

	while (sent < n) {
		struct message copy = message[sent];

		if (!ck_ring_enqueue_mpsc_message(&r->ring, r->buffer, &copy))
			break;
		sent++;
	}
	return sent;
}

static void call_single(void *link, void (*func)(void *info), void *info)
{
	bench_call_by_flag(&transport_ck_single, link, func, info);
}

static void call_many(void *link, void (*func)(void *info), void *info)
{
	bench_call_by_flag(&transport_ck_many, link, func, info);
}

const struct transport transport_ck_single = {
	.open = open_ring,
	.poll = poll_single,
	.join = join,
	.send = send_single,
	.call = call_single,
};
const struct transport transport_ck_many = {
	.open = open_ring,
	.poll = poll_many,
	.join = join,
	.send = send_many,
	.call = call_many,
};
