// SPDX-License-Identifier: MIT
/*
 * libuv's async handle, with a queue under a mutex beside it: the handle only says that
 * something was sent, and says it once for several.
 */
#include <uv.h>

#include "bench/peers/locked_queue.h"
#include "bench/peers/transports.h"

static struct receiver {
	struct locked_queue queue;
	uv_loop_t loop;
	uv_async_t async;
} the_receiver = { .queue.lock = PTHREAD_MUTEX_INITIALIZER };

static void on_async(uv_async_t *async)
{
	struct receiver *r = async->data;

	locked_queue_run(&r->queue);
}

static void *open_loop(unsigned senders)
{
	struct receiver *r = &the_receiver;

	(void)senders;
	if (uv_loop_init(&r->loop) || uv_async_init(&r->loop, &r->async, on_async))
		return NULL;
	r->async.data = r;
	return r;
}

/* Sleeps until there is something. */
static unsigned idle(void *receiver)
{
	struct receiver *r = receiver;

	uv_run(&r->loop, UV_RUN_ONCE);
	return 1;
}

static void *join(void *receiver, unsigned sender)
{
	(void)sender;
	return receiver;
}

static unsigned send_async(void *link, const struct message *message, unsigned n)
{
	struct receiver *r = link;

	pthread_mutex_lock(&r->queue.lock);
	n = locked_queue_put(&r->queue, message, n);
	pthread_mutex_unlock(&r->queue.lock);
	if (n)
		uv_async_send(&r->async);
	return n;
}

static void call(void *link, void (*func)(void *info), void *info)
{
	bench_call_by_flag(&transport_libuv, link, func, info);
}

static void wake(void *link)
{
	struct receiver *r = link;

	uv_async_send(&r->async);
}

const struct transport transport_libuv = {
	.open = open_loop,
	.poll = idle,
	.idle = idle,
	.join = join,
	.send = send_async,
	.call = call,
	.wake = wake,
};
