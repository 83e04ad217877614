// SPDX-License-Identifier: MIT
/*
 * A queue under a mutex and an eventfd that says that something is in it; a second one
 * for a caller that waits.
 */
#include <errno.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "bench/peers/locked_queue.h"
#include "bench/peers/transports.h"

struct receiver {
	struct locked_queue queue;
	int filled, done;
};

struct waited {
	int done;
	void (*func)(void *info);
	void *info;
};

static void signal_fd(int fd)
{
	uint64_t one = 1;

	while (write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

static void await_fd(int fd)
{
	uint64_t count;

	while (read(fd, &count, sizeof(count)) < 0 && errno == EINTR)
		;
}

static void *open_queue(unsigned senders)
{
	static struct receiver receiver = { .queue.lock = PTHREAD_MUTEX_INITIALIZER };

	(void)senders;
	receiver.filled = eventfd(0, EFD_CLOEXEC);
	receiver.done = eventfd(0, EFD_CLOEXEC);
	return receiver.filled < 0 || receiver.done < 0 ? NULL : &receiver;
}

/* Sleeps until there is something. */
static unsigned idle(void *receiver)
{
	struct receiver *r = receiver;

	await_fd(r->filled);
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
		signal_fd(r->filled);
	return n;
}

static void run_waited(void *info)
{
	struct waited *call = info;

	call->func(call->info);
	signal_fd(call->done);
}

static void call(void *link, void (*func)(void *info), void *info)
{
	struct receiver *r = link;
	struct waited call = { .done = r->done, .func = func, .info = info };
	struct message message = { run_waited, &call };

	send(link, &message, 1);
	await_fd(r->done);
}

static void wake(void *link)
{
	const struct receiver *r = link;

	signal_fd(r->filled);
}

const struct transport transport_eventfd = {
	.open = open_queue,
	.poll = idle,
	.idle = idle,
	.join = join,
	.send = send,
	.call = call,
	.wake = wake,
};
