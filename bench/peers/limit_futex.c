// SPDX-License-Identifier: MIT
/*
 * The limit of a call to a thread that sleeps: a word and the futex system call. The
 * caller spins for the answer, as ours does.
 */
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <hotline/cacheline.h>

#include "bench/clock.h"
#include "bench/peers/transports.h"

static struct words {
	_Atomic(uint32_t) asked;
	_Atomic(uint32_t) answered HL_CACHELINE_PAIR_ALIGNED;
} HL_CACHELINE_PAIR_ALIGNED words;

static void *open_words(unsigned senders)
{
	(void)senders;
	return &words;
}

static unsigned idle(void *receiver)
{
	struct words *w = receiver;
	uint32_t answered = atomic_load_explicit(&w->answered, memory_order_relaxed);

	syscall(SYS_futex, &w->asked, FUTEX_WAIT_PRIVATE, answered, NULL, NULL, 0);
	/* Acquire and release, as a call needs them. */
	atomic_store_explicit(&w->answered, atomic_load_explicit(&w->asked, memory_order_acquire),
			      memory_order_release);
	return 1;
}

static void *join(void *receiver, unsigned sender)
{
	(void)sender;
	return receiver;
}

static uint32_t ask(struct words *w)
{
	uint32_t asked = atomic_load_explicit(&w->asked, memory_order_relaxed) + 1;

	atomic_store_explicit(&w->asked, asked, memory_order_release);
	syscall(SYS_futex, &w->asked, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	return asked;
}

static void call(void *link, void (*func)(void *info), void *info)
{
	struct words *w = link;
	uint32_t asked = ask(w);

	(void)func;
	(void)info;
	while (atomic_load_explicit(&w->answered, memory_order_acquire) != asked)
		bench_relax();
}

static void wake(void *link)
{
	ask(link);
}

const struct transport transport_futex = {
	.bare = true,
	.open = open_words,
	.idle = idle,
	.join = join,
	.call = call,
	.wake = wake,
};
