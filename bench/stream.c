// SPDX-License-Identifier: MIT
/*
 * The senders send for as long as they are let; the target counts, and takes the time from
 * one count to another. So no part of the run is measured in which a sender is not yet
 * or no longer there.
 */
#include "bench/stream.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <hotline/cacheline.h>
#include <hotline/cpu.h>

#include "bench/clock.h"

/* The part of the messages that goes before, untimed. */
#define WARM_UP 8

struct stream {
	const struct transport *transport;
	void *receiver;
	unsigned burst;
	/* Written by the target once. */
	_Atomic(bool) stopped HL_CACHELINE_PAIR_ALIGNED;
	/* Written by each sender when it comes and goes. */
	_Atomic(unsigned) ready HL_CACHELINE_PAIR_ALIGNED;
	_Atomic(unsigned) failed, gone;
	/* The target's alone: functions that ran, by who sent them; what it has sent itself. */
	uint64_t ran_of_others HL_CACHELINE_PAIR_ALIGNED;
	uint64_t ran_of_itself, sent_to_itself;
} HL_CACHELINE_PAIR_ALIGNED;

struct sender {
	struct stream *stream;
	unsigned number;
	int processor;
};

static void count(void *info)
{
	++*(uint64_t *)info;
}

static void fill(struct message *message, uint64_t *counter)
{
	for (unsigned i = 0; i < BENCH_BURST; i++)
		message[i] = (struct message){ count, counter };
}

static void send_until_stopped(struct stream *stream, void *link)
{
	const struct transport *transport = stream->transport;
	struct message message[BENCH_BURST];

	fill(message, &stream->ran_of_others);
	while (!atomic_load_explicit(&stream->stopped, memory_order_relaxed)) {
		if (!transport->send(link, message, stream->burst))
			bench_relax();
	}
}

static void *sender_thread(void *arg)
{
	struct sender *sender = arg;
	struct stream *stream = sender->stream;
	void *link = hl_cpu_pin(sender->processor)
			     ? NULL
			     : stream->transport->join(stream->receiver, sender->number);

	if (!link)
		atomic_store_explicit(&stream->failed, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&stream->ready, 1, memory_order_release);
	if (!link)
		return NULL;
	send_until_stopped(stream, link);
	/* Release: what it sent comes before it has gone. */
	atomic_fetch_add_explicit(&stream->gone, 1, memory_order_release);
	if (stream->transport->wake)
		stream->transport->wake(link);
	return NULL;
}

static int start_senders(struct stream *stream, const struct bench_run *run, unsigned first)
{
	unsigned n = run->threads - 1;
	struct sender *sender = calloc(n, sizeof(*sender));

	if (!sender)
		return -ENOMEM;
	for (unsigned i = 0; i < n; i++) {
		pthread_t thread;
		int rc;

		sender[i] = (struct sender){
			.stream = stream,
			.number = first + i,
			.processor = run->processor[1 + i],
		};
		rc = pthread_create(&thread, NULL, sender_thread, &sender[i]);
		if (rc)
			return -rc;
	}
	while (atomic_load_explicit(&stream->ready, memory_order_acquire) < n)
		bench_relax();
	return atomic_load_explicit(&stream->failed, memory_order_relaxed) ? -ENOMEM : 0;
}

static uint64_t ran(const struct stream *stream)
{
	return stream->ran_of_others + stream->ran_of_itself;
}

/* Runs what comes until there were so many. The target sends itself as much as it gets
 * from each of the others, so that each row runs the same mix: what it sends itself is
 * cheaper. */
static void receive(struct stream *stream, void *link_to_itself, unsigned others, uint64_t until)
{
	const struct transport *transport = stream->transport;
	struct message message[BENCH_BURST];

	fill(message, &stream->ran_of_itself);
	while (ran(stream) < until) {
		if (link_to_itself &&
		    stream->ran_of_others / others >= stream->sent_to_itself + stream->burst)
			stream->sent_to_itself +=
				transport->send(link_to_itself, message, stream->burst);
		transport->poll(stream->receiver);
	}
}

/* Runs what is still on its way. */
static void let_go(struct stream *stream, unsigned senders)
{
	atomic_store_explicit(&stream->stopped, true, memory_order_relaxed);
	while (atomic_load_explicit(&stream->gone, memory_order_acquire) < senders)
		stream->transport->poll(stream->receiver);
}

int bench_stream(struct bench_run *run, const struct bench_row *row)
{
	/* Used by the senders for as long as there are some. */
	static struct stream stream;
	const struct stream_row *what = row->what;
	const struct transport *transport = what->transport;
	unsigned senders = run->threads - 1;
	uint64_t begun, before;
	void *link = NULL;
	int rc = hl_cpu_pin(run->processor[0]);

	if (rc)
		return rc;
	stream = (struct stream){ .transport = transport, .burst = what->burst };
	stream.receiver = transport->open(senders + what->to_itself);
	if (stream.receiver && what->to_itself)
		link = transport->join(stream.receiver, 0);
	if (!stream.receiver || (what->to_itself && !link))
		return -ENOMEM;
	rc = start_senders(&stream, run, what->to_itself);
	if (rc)
		return rc;
	receive(&stream, link, senders, run->loops / WARM_UP + 1);
	before = ran(&stream);
	begun = bench_now();
	receive(&stream, link, senders, before + run->loops);
	run->ns = bench_now() - begun;
	run->done = ran(&stream) - before;
	let_go(&stream, senders);
	return 0;
}
