// SPDX-License-Identifier: MIT
/*
 * A queue under a mutex, with a condition variable for the target and one for a caller
 * that waits: what a program has that uses no library.
 */
#include "bench/peers/locked_queue.h"
#include "bench/peers/transports.h"

struct receiver {
	struct locked_queue queue;
	pthread_cond_t filled, done;
	bool woken; /* under the lock */
};

struct waited {
	struct receiver *receiver;
	void (*func)(void *info);
	void *info;
	bool done; /* under the lock */
};

static void *open_queue(unsigned senders)
{
	static struct receiver receiver = {
		.queue.lock = PTHREAD_MUTEX_INITIALIZER,
		.filled = PTHREAD_COND_INITIALIZER,
		.done = PTHREAD_COND_INITIALIZER,
	};

	(void)senders;
	return &receiver;
}

/* Sleeps until there is something. */
static unsigned idle(void *receiver)
{
	struct receiver *r = receiver;

	pthread_mutex_lock(&r->queue.lock);
	while (r->queue.head == r->queue.tail && !r->woken)
		pthread_cond_wait(&r->filled, &r->queue.lock);
	r->woken = false;
	pthread_mutex_unlock(&r->queue.lock);
	return locked_queue_run(&r->queue);
}

static void *join(void *receiver, unsigned sender)
{
	(void)sender;
	return receiver;
}

static unsigned send(void *link, const struct message *message, unsigned n)
{
	struct receiver *r = link;

	pthread_mutex_lock(&r->queue.lock);
	n = locked_queue_put(&r->queue, message, n);
	pthread_mutex_unlock(&r->queue.lock);
	if (n)
		pthread_cond_signal(&r->filled);
	return n;
}

static void run_waited(void *info)
{
	struct waited *call = info;
	struct receiver *r = call->receiver;

	call->func(call->info);
	pthread_mutex_lock(&r->queue.lock);
	call->done = true;
	pthread_cond_signal(&r->done);
	pthread_mutex_unlock(&r->queue.lock);
}

static void call(void *link, void (*func)(void *info), void *info)
{
	struct receiver *r = link;
	struct waited call = { .receiver = r, .func = func, .info = info };
	struct message message = { run_waited, &call };

	send(link, &message, 1);
	pthread_mutex_lock(&r->queue.lock);
	while (!call.done)
		pthread_cond_wait(&r->done, &r->queue.lock);
	pthread_mutex_unlock(&r->queue.lock);
}

static void wake(void *link)
{
	struct receiver *r = link;

	pthread_mutex_lock(&r->queue.lock);
	r->woken = true;
	pthread_mutex_unlock(&r->queue.lock);
	pthread_cond_signal(&r->filled);
}

const struct transport transport_mutex = {
	.open = open_queue,
	.poll = idle,
	.idle = idle,
	.join = join,
	.send = send,
	.call = call,
	.wake = wake,
};
