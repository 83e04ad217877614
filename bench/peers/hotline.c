// SPDX-License-Identifier: MIT
/*
 * Ours, by its public interface. It is compiled twice: the second time, under another
 * name, for the library whose messages lie across lines (see ../meson.build).
 */
#include <hotline/call.h>
#include <hotline/cpu.h>

#include "bench/peer.h"

#ifndef HL_BENCH_TRANSPORT
#define HL_BENCH_TRANSPORT transport_hotline
#endif

struct receiver {
	int cpu;
};

static void *open_cpu(unsigned senders)
{
	static struct receiver receiver;

	(void)senders;
	receiver.cpu = hl_cpu_online(0);
	return receiver.cpu < 0 ? NULL : &receiver;
}

static unsigned poll_cpu(void *receiver)
{
	(void)receiver;
	return (unsigned)hl_cpu_poll();
}

static unsigned idle(void *receiver)
{
	(void)receiver;
	return (unsigned)hl_cpu_idle(-1);
}

static void *join(void *receiver, unsigned sender)
{
	(void)sender;
	return hl_cpu_id() < 0 && hl_cpu_online(0) < 0 ? NULL : receiver;
}

static unsigned send(void *link, const struct message *message, unsigned n)
{
	const struct receiver *to = link;

	/* They wait for room by themselves, and serve this CPU meanwhile. */
	if (n > 1) {
		int sent = hl_smp_call_functions(to->cpu, (const struct hl_call *)message, n);

		return sent < 0 ? 0 : (unsigned)sent;
	}
	return !hl_smp_call_function_single(to->cpu, message->func, message->info, false);
}

static void call(void *link, void (*func)(void *info), void *info)
{
	const struct receiver *to = link;

	hl_smp_call_function_single(to->cpu, func, info, true);
}

static void nothing(void *info)
{
	(void)info;
}

static void wake(void *link)
{
	const struct receiver *to = link;

	hl_smp_call_function_single(to->cpu, nothing, NULL, false);
}

static int interruptible(void *receiver)
{
	(void)receiver;
	return hl_cpu_set_interruptible(true);
}

const struct transport HL_BENCH_TRANSPORT = {
	.open = open_cpu,
	.poll = poll_cpu,
	.idle = idle,
	.join = join,
	.send = send,
	.call = call,
	.wake = wake,
	.interruptible = interruptible,
};
