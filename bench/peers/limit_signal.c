// SPDX-License-Identifier: MIT
/*
 * The limit of a call that interrupts: a real-time signal to a thread, whose handler
 * stores the answer.
 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <hotline/cacheline.h>

#include "bench/clock.h"
#include "bench/peers/transports.h"

static struct words {
	pid_t pid, tid;
	_Atomic(uint32_t) asked HL_CACHELINE_PAIR_ALIGNED;
	_Atomic(uint32_t) answered HL_CACHELINE_PAIR_ALIGNED;
} HL_CACHELINE_PAIR_ALIGNED words;

static void on_signal(int signo)
{
	(void)signo;
	/* Acquire and release, as a call needs them. */
	atomic_store_explicit(&words.answered,
			      atomic_load_explicit(&words.asked, memory_order_acquire),
			      memory_order_release);
}

static void *open_words(unsigned senders)
{
	(void)senders;
	words.pid = getpid();
	words.tid = (pid_t)syscall(SYS_gettid);
	return &words;
}

static int interruptible(void *receiver)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };

	(void)receiver;
	sigfillset(&action.sa_mask);
	return sigaction(SIGRTMIN, &action, NULL) ? -errno : 0;
}

static void *join(void *receiver, unsigned sender)
{
	(void)sender;
	return receiver;
}

static void call(void *link, void (*func)(void *info), void *info)
{
	struct words *w = link;
	uint32_t asked = atomic_load_explicit(&w->asked, memory_order_relaxed) + 1;

	(void)func;
	(void)info;
	atomic_store_explicit(&w->asked, asked, memory_order_release);
	syscall(SYS_tgkill, w->pid, w->tid, SIGRTMIN);
	while (atomic_load_explicit(&w->answered, memory_order_acquire) != asked)
		bench_relax();
}

const struct transport transport_signal = {
	.bare = true,
	.open = open_words,
	.join = join,
	.call = call,
	.interruptible = interruptible,
};
