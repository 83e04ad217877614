// SPDX-License-Identifier: MIT
/*
 * No message at all: the caller runs the function. What this costs is the harness's own.
 */
#include "bench/peer.h"

static void *open_nothing(unsigned senders)
{
	static int receiver;

	(void)senders;
	return &receiver;
}

static unsigned poll_nothing(void *receiver)
{
	(void)receiver;
	return 0;
}

static void *join(void *receiver, unsigned sender)
{
	(void)sender;
	return receiver;
}

static void call(void *link, void (*func)(void *info), void *info)
{
	(void)link;
	func(info);
}

const struct transport transport_nothing = {
	.open = open_nothing,
	.poll = poll_nothing,
	.join = join,
	.call = call,
};
