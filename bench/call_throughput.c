// SPDX-License-Identifier: MIT
/*
 * How many messages a second go to one target when nobody waits for them.
 *
 * With one sender: that and the target. With many: every processor sends to one, which
 * is itself one of them. So there are two senders on two processors, and the threads never
 * share a processor.
 */
#include "bench/experiments.h"
#include "bench/peer.h"
#include "bench/stream.h"

#include <stddef.h>

#define MOST_PEERS 32

static void add_scenario(struct bench_experiment *experiment, const char *name, const char *title,
			 unsigned threads, const struct stream_row *like, unsigned abilities,
			 struct stream_row *stream)
{
	struct bench_scenario *scenario =
		bench_add_scenario(experiment, name, title, &bench_messages_per_second, threads);
	unsigned n = 0;

	for (const struct peer *peer = bench_peers; peer->name && n < MOST_PEERS; peer++) {
		if ((peer->abilities & abilities) != abilities)
			continue;
		stream[n] = *like;
		stream[n].transport = peer->transport;
		bench_add_row(experiment, scenario,
			      &(struct bench_row){
				      .name = peer->name,
				      .kind = peer->kind,
				      .run = bench_stream,
				      .what = &stream[n++],
				      .why_not = (char *)peer->why_not,
			      });
	}
}

static void describe(struct bench_experiment *experiment, const struct bench_machine *machine)
{
	static struct stream_row stream[4][MOST_PEERS];
	const struct stream_row one = { .burst = 1 };
	const struct stream_row one_burst = { .burst = BENCH_BURST };
	const struct stream_row many = { .burst = 1, .to_itself = true };
	const struct stream_row many_burst = { .burst = BENCH_BURST, .to_itself = true };
	unsigned all = machine->cpus > 2 ? machine->cpus : 2;

	add_scenario(experiment, "one-sender", "one sender, message by message", 2, &one,
		     PEER_SENDS, stream[0]);
	add_scenario(experiment, "one-sender-burst", "one sender, 32 messages at once", 2,
		     &one_burst, PEER_SENDS, stream[1]);
	add_scenario(experiment, "many-senders", "all processors to one, message by message", all,
		     &many, PEER_SENDS | PEER_MANY_SENDERS, stream[2]);
	add_scenario(experiment, "many-senders-burst", "all processors to one, 32 messages at once",
		     all, &many_burst, PEER_SENDS | PEER_MANY_SENDERS, stream[3]);
}

const struct bench_experiment bench_call_throughput = {
	.name = "call-throughput",
	.origin = "O1",
	.title = "how many messages a second go to one CPU",
	.describe = describe,
};
