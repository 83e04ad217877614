// SPDX-License-Identifier: MIT
#include "bench/peers/locked_queue.h"

unsigned locked_queue_put(struct locked_queue *queue, const struct message *message, unsigned n)
{
	unsigned put = 0;

	for (; put < n && queue->tail - queue->head < BENCH_QUEUE; put++)
		queue->slot[queue->tail++ % BENCH_QUEUE] = message[put];
	return put;
}

unsigned locked_queue_take(struct locked_queue *queue, struct message *message, unsigned n)
{
	unsigned taken = 0;

	for (; taken < n && queue->head != queue->tail; taken++)
		message[taken] = queue->slot[queue->head++ % BENCH_QUEUE];
	return taken;
}

unsigned locked_queue_run(struct locked_queue *queue)
{
	struct message message[BENCH_BURST];
	unsigned n, ran = 0;

	do {
		pthread_mutex_lock(&queue->lock);
		n = locked_queue_take(queue, message, BENCH_BURST);
		pthread_mutex_unlock(&queue->lock);
		for (unsigned i = 0; i < n; i++)
			message[i].func(message[i].info);
		ran += n;
	} while (n == BENCH_BURST);
	return ran;
}
