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
 * CPU_KICK: hl_cpu_kick() counts itself in before it looks at .how, and out when it is done
 *	with tid and eventfd; leave() sets .how, then waits for the count to be zero. So
 *	no signal reaches a thread that took the number of one that ended.
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

static void clear_eventfd(struct hl_cpu *me)
{
	uint64_t count;
	int saved = errno;

	if (me->eventfd >= 0 && read(me->eventfd, &count, sizeof(count)) < 0)
		errno = saved;	/* nothing in it */
}

static void wake_up(struct hl_cpu *me)
{
	if (atomic_load_explicit(&me->asleep, memory_order_relaxed) == HL_AWAKE)
		return;
	atomic_store_explicit(&me->asleep, HL_AWAKE, memory_order_relaxed);
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
		if (me->eventfd >= 0) {
			wake_up(me);
			clear_eventfd(me);
		}
		if (++me->polls > POLLS_TO_FORGET) {
			me->polls = 0;
			hl_cpu_how_drop(me, HL_HOW_SLEEPS);
		}
	}
	return (int)hl_cpu_serve(me);
}

/* Says that it is about to sleep; true when there is something to do instead. */
static bool must_stay_awake(struct hl_cpu *me, uint32_t asleep)
{
	me->polls = 1;
	hl_cpu_how_add(me, HL_HOW_SLEEPS);
	atomic_store_explicit(&me->asleep, asleep, memory_order_relaxed);
	hl_fence();	/* CPU_SLEEP, pairs with senders */
	if (!hl_cpu_room->pending(me))
		return false;
	wake_up(me);
	return true;
}

static int64_t now_ns(void)
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
			int64_t ns = end_ns - now_ns();

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

int hl_cpu_idle(int64_t timeout_ns)
{
	struct hl_cpu *me = hl_this_cpu;
	int saved = errno, n;

	if (!me)
		return -ENXIO;
	if (me->depth)
		return -EBUSY;
	n = (int)hl_cpu_serve(me);
	if (n || !timeout_ns)
		return n;
	if (!must_stay_awake(me, HL_ASLEEP_FUTEX))
		sleep_until(me, timeout_ns < 0 ? -1 : now_ns() + timeout_ns);
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
	return must_stay_awake(me, HL_ASLEEP_EVENTFD);
}

/* ---- For those who send to it ---- */

static void wake(struct hl_cpu *cpu, uint32_t asleep)
{
	uint64_t one = 1;
	int saved = errno;

	if (asleep == HL_ASLEEP_FUTEX)
		futex(&cpu->asleep, FUTEX_WAKE, 1, NULL);
	else if (write(cpu->eventfd, &one, sizeof(one)) < 0)
		errno = saved;	/* full: it is readable */
	errno = saved;
}

static void kick(struct hl_cpu *cpu, uint32_t how)
{
	/* Release: the owner sees the message when it sees that it was woken. */
	uint32_t asleep = atomic_load_explicit(&cpu->asleep, memory_order_relaxed);

	if (asleep != HL_AWAKE)
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
	/* CPU_KICK, pairs with leave(): counted in before .how is looked at again */
	atomic_fetch_add_explicit(&cpu->kickers, 1, memory_order_seq_cst);
	how = atomic_load_explicit(&cpu->how, memory_order_seq_cst);
	if (!(how & HL_HOW_OFFLINE))
		kick(cpu, how);
	atomic_fetch_sub_explicit(&cpu->kickers, 1, memory_order_release);
}
