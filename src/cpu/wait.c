/* SPDX-License-Identifier: MIT */
/*
 * Polling, sleeping and waking.
 *
 * Memory ordering
 *
 * CPU_SLEEP: the owner stores .asleep, fences, looks for messages and sleeps if there are
 *	none. A sender leaves its message, fences and looks at .asleep. One of the two
 *	sees the other. Without either fence both look too early: the message lies there and
 *	the CPU sleeps.
 * CPU_WAKE: the owner stores .asleep with release, after .eventfd; who exchanges it acquires.
 *	Without it a sender wakes by a descriptor that it does not see yet. The other way, the
 *	owner that sees that it was woken sees the message.
 * CPU_KICK: see cpu.c.
 *
 * The eventfd: a waker exchanges .asleep, then writes. The owner that disarms learns by its
 * own exchange whether there was a waker, whose write may be yet to come; it is .due until
 * it was read. So neither does a poll that nobody woke read, nor does the descriptor stay
 * readable.
 */
#include "internal.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Polls in a row after which a CPU that slept once counts as one that only polls: some
 * milliseconds. Sleeping again then costs one membarrier. */
#define POLLS_TO_FORGET (1u << 20)

#define NS_PER_S 1000000000

static long futex(_Atomic(uint32_t) *word, int operation, uint32_t value,
		  const struct timespec *timeout)
{
	return syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, timeout, NULL, 0);
}

/* ---- For the CPU itself ---- */

/* Sleeps no more; whether somebody had woken it. */
static bool wake_up(struct hl_cpu *me)
{
	if (atomic_load_explicit(&me->asleep, memory_order_relaxed) != HL_AWAKE)
		/* CPU_WAKE, pairs with kick() */
		return atomic_exchange_explicit(&me->asleep, HL_AWAKE, memory_order_acq_rel) ==
		       HL_AWAKE;
	return true;
}

/* Takes back hl_cpu_eventfd_arm(). */
static void disarm(struct hl_cpu *me)
{
	me->due += wake_up(me);
	me->armed = 0;
	if (hl_cpu_watch)
		hl_cpu_watch->awake(me);
}

static void read_eventfd(struct hl_cpu *me)
{
	uint64_t count;
	int saved = errno;

	if (read(me->eventfd, &count, sizeof(count)) == sizeof(count))
		me->due -= count;
	errno = saved; /* nothing in it: its waker has not written yet */
}

/* Somebody wants to know that the CPU polls. */
static void tick(struct hl_cpu *me)
{
	/* Whoever changes the word has it seen in time, not with what was before it. */
	if (__builtin_expect(__atomic_load_n(me->tick, __ATOMIC_RELAXED) != me->ticked, 0) &&
	    !me->depth)
		hl_cpu_watch->tick(me);
}

unsigned hl_cpu_serve(struct hl_cpu *me)
{
	unsigned n;

	hl_irq_disable(me);
	n = hl_cpu_room->poll(me);
	hl_irq_enable(me);
	return n;
}

int hl_cpu_poll(void)
{
	struct hl_cpu *me = hl_this_cpu;

	if (!me)
		return -ENXIO;
	if (__builtin_expect(me->polls, 0)) {
		if (me->armed)
			disarm(me);
		if (me->due)
			read_eventfd(me);
		if (++me->polls > POLLS_TO_FORGET) {
			me->polls = 0;
			hl_cpu_how_drop(me, HL_HOW_SLEEPS);
		}
	}
	tick(me);
	return hl_cpu_hears(me) ? (int)hl_cpu_serve(me) : 0;
}

/* Says that it is about to sleep; true when there is something to do instead. */
static bool must_stay_awake(struct hl_cpu *me, uint32_t asleep)
{
	me->polls = 1;
	hl_cpu_how_add(me, HL_HOW_SLEEPS);
	/* CPU_WAKE, pairs with kick() */
	atomic_store_explicit(&me->asleep, asleep, memory_order_release);
	hl_fence(); /* CPU_SLEEP, pairs with senders */
	HL_DELAY(sleep);
	return hl_cpu_hears(me);
}

int64_t hl_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* Sleeps until woken; false when the time was up or a signal came. */
static bool sleep_until(struct hl_cpu *me, int64_t end_ns)
{
	while (atomic_load_explicit(&me->asleep, memory_order_acquire) == HL_ASLEEP_FUTEX) {
		struct timespec left, *timeout = NULL;

		if (end_ns >= 0) {
			int64_t ns = end_ns - hl_now_ns();

			if (ns <= 0)
				return false;
			left = (struct timespec){ ns / NS_PER_S, ns % NS_PER_S };
			timeout = &left;
		}
		if (futex(&me->asleep, FUTEX_WAIT, HL_ASLEEP_FUTEX, timeout) && errno == EINTR)
			return false;
	}
	return true;
}

/* When a time-out from now is up; never: -1. */
static int64_t end_of(int64_t timeout_ns)
{
	int64_t end;

	return timeout_ns < 0 || __builtin_add_overflow(hl_now_ns(), timeout_ns, &end) ? -1 : end;
}

int hl_cpu_idle(int64_t timeout_ns)
{
	struct hl_cpu *me = hl_this_cpu;
	int saved = errno, n;

	if (!me)
		return -ENXIO;
	if (me->depth)
		return -EBUSY;
	tick(me);
	n = (int)hl_cpu_serve(me);
	if (n || !timeout_ns)
		return n;
	if (me->armed)
		disarm(me);
	if (!must_stay_awake(me, HL_ASLEEP_FUTEX)) {
		if (hl_cpu_watch)
			hl_cpu_watch->asleep(me);
		sleep_until(me, end_of(timeout_ns));
		if (hl_cpu_watch)
			hl_cpu_watch->awake(me);
	}
	wake_up(me);
	errno = saved;
	return (int)hl_cpu_serve(me);
}

int hl_cpu_eventfd(void)
{
	struct hl_cpu *me = hl_this_cpu;

	if (!me)
		return -ENXIO;
	if (me->eventfd < 0) {
		me->eventfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (me->eventfd < 0)
			return -errno;
	}
	return me->eventfd;
}

int hl_cpu_eventfd_arm(void)
{
	struct hl_cpu *me = hl_this_cpu;
	int fd = hl_cpu_eventfd();

	if (fd < 0)
		return fd;
	if (me->armed)
		disarm(me);
	if (must_stay_awake(me, HL_ASLEEP_EVENTFD)) {
		me->due += wake_up(me);
		return 1;
	}
	me->armed = 1;
	if (hl_cpu_watch)
		hl_cpu_watch->asleep(me);
	return 0;
}

/* ---- For those who send to it ---- */

static void wake(struct hl_cpu *cpu, uint32_t asleep)
{
	uint64_t one = 1;
	int saved = errno;

	if (asleep == HL_ASLEEP_FUTEX)
		futex(&cpu->asleep, FUTEX_WAKE, 1, NULL);
	else if (write(cpu->eventfd, &one, sizeof(one)) < 0)
		errno = saved; /* full: it is readable */
	errno = saved;
}

static void kick(struct hl_cpu *cpu, uint32_t how)
{
	uint32_t asleep = atomic_load_explicit(&cpu->asleep, memory_order_relaxed);

	if (asleep != HL_AWAKE)
		/* CPU_WAKE, pairs with must_stay_awake() and wake_up() */
		asleep = atomic_exchange_explicit(&cpu->asleep, HL_AWAKE, memory_order_acq_rel);
	if (asleep != HL_AWAKE)
		wake(cpu, asleep);
	else if (how & HL_HOW_INTERRUPT &&
		 !atomic_exchange_explicit(&cpu->interrupting, 1, memory_order_acq_rel))
		hl_interrupt_send(cpu);
}

void hl_cpu_kick(struct hl_cpu *cpu)
{
	uint32_t how = atomic_load_explicit(&cpu->how, memory_order_relaxed);

	/* The common case of a CPU that sleeps at times and is awake writes nothing. */
	if (!(how & HL_HOW_INTERRUPT) &&
	    atomic_load_explicit(&cpu->asleep, memory_order_relaxed) == HL_AWAKE)
		return;
	HL_DELAY(kick);
	/* CPU_KICK, pairs with wait_for_kickers(): counted in before .how is looked at again */
	atomic_fetch_add_explicit(&cpu->kickers, 1, memory_order_seq_cst);
	how = atomic_load_explicit(&cpu->how, memory_order_seq_cst);
	if (!(how & HL_HOW_OFFLINE))
		kick(cpu, how);
	hl_cpu_let_go(cpu);
}
