/* SPDX-License-Identifier: MIT */
/*
 * CPUs: threads that others can reach.
 *
 * A CPU of Hotline is a thread that has come online. It gets a small id and takes
 * part in what the library does across CPUs: functions that others send to it
 * (hotline/call.h) run on it, at a time that it chooses. How it hears of them:
 *
 *	polling		it calls hl_cpu_poll() in its loop: the cheapest for all
 *	idle		it sleeps in hl_cpu_idle(), or in poll/epoll on the descriptor of
 *			hl_cpu_eventfd(); who sends to it wakes it
 *	interruptible	hl_cpu_set_interruptible(true): a real-time signal runs what is
 *			sent to it in the middle of whatever it does, as an interrupt
 *			does, but where hl_local_irq_disable() forbids it
 *
 * The three go together: whatever the CPU does, the next of them that comes runs
 * the functions. A CPU that does none of them leaves its callers waiting.
 *
 * Ids are dense: the lowest free one is given out. The thread that comes online
 * after another has left may get its id, and what was per CPU with it.
 *
 * Every function here may be called by any thread unless it says "a CPU": those
 * return -ENXIO in a thread that is not online. In signal handlers only
 * hl_cpu_id(), hl_cpu_is_online() and the hl_local_irq_ functions may be used.
 *
 * After fork the child has no CPUs: its one thread is offline and can come online
 * again. Nothing that was sent in the parent runs in the child.
 */
#ifndef HOTLINE_CPU_H
#define HOTLINE_CPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hotline/api.h>
#include <hotline/cpumask.h>

HL_BEGIN_DECLS

/* ---- Online ---- */

/*
 * hl_cpu_online - makes the calling thread a CPU
 * @flags: 0; HL_CPU_INTERRUPTIBLE as hl_cpu_set_interruptible(true) does
 *
 * Returns the id, 0 or more, or
 *	-EBUSY	the thread is online already
 *	-EAGAIN	all HL_NR_CPUS ids are taken
 *	-EINVAL	unknown flags
 *	-ENOMEM, or what pthread_key_create(3) fails with
 * May block for a lock that others hold shortly. A thread that ends while it is
 * online is taken offline by the library.
 */
#define HL_CPU_INTERRUPTIBLE 0x1u
HL_API int hl_cpu_online(unsigned flags);

/*
 * hl_cpu_offline - runs what was sent to the calling CPU and gives its id back
 *
 * What is sent to it from then on fails with -ENXIO; what was sent before has run
 * when this returns. Blocks for a few dozen microseconds where the system has
 * membarrier, and until no other thread is about to wake this one.
 *
 * Returns 0; -ENXIO: not online; -EBUSY: called by a function that runs as a call.
 */
HL_API int hl_cpu_offline(void);

/* hl_cpu_id - the calling thread's id, or -ENXIO */
HL_API int hl_cpu_id(void);

/* hl_cpu_is_online - whether there is a CPU of that id now; it may leave any time */
HL_API bool hl_cpu_is_online(int cpu);

/* hl_cpu_online_mask - the CPUs that are online now */
HL_API void hl_cpu_online_mask(struct hl_cpumask *mask);

/* hl_num_online_cpus - how many there are now */
HL_API int hl_num_online_cpus(void);

/* hl_nr_cpu_ids - one above the highest id that was ever given out */
HL_API int hl_nr_cpu_ids(void);

/*
 * hl_cpu_pin - keeps the calling thread on one processor
 * @processor: the system's number of it
 *
 * Returns 0; -EINVAL: there is none, or the process may not use it; -ENOMEM.
 */
HL_API int hl_cpu_pin(int processor);

/* ---- Hearing of work: for the CPU itself ---- */

/*
 * hl_cpu_poll - runs what was sent to the calling CPU
 *
 * Returns how many functions ran, or -ENXIO. Does not block, but for what the
 * functions do. With nothing to do it reads one word, and two for each CPU that
 * sends to this one, for the first eight of them: the others ring.
 */
HL_API int hl_cpu_poll(void);

/*
 * hl_cpu_idle - sleeps until something is sent to the calling CPU, and runs it
 * @timeout_ns: nanoseconds, 0: only look; negative: without end
 *
 * Returns how many functions ran: 0 when the time was up or a signal came. -ENXIO;
 * -EBUSY: called by a function that runs as a call.
 */
HL_API int hl_cpu_idle(int64_t timeout_ns);

/*
 * hl_cpu_eventfd - a descriptor that becomes readable when something was sent
 *
 * For a CPU that sleeps in poll() or epoll_wait() for other things as well. It is
 * the CPU's own until it goes offline; do not read or close it. The loop is
 *
 *	while (!hl_cpu_eventfd_arm())
 *		epoll_wait(...);	// with the descriptor among others
 *	hl_cpu_poll();
 *
 * Returns the descriptor, -ENXIO, or what eventfd(2) fails with, as -EMFILE.
 */
HL_API int hl_cpu_eventfd(void);

/*
 * hl_cpu_eventfd_arm - says that the calling CPU is about to sleep on its descriptor
 *
 * Returns 0: it may sleep, and whatever is sent makes the descriptor readable;
 * 1: something is there already, do not sleep; -ENXIO. hl_cpu_poll() disarms and
 * makes the descriptor unreadable again.
 */
HL_API int hl_cpu_eventfd_arm(void);

/*
 * hl_cpu_set_interruptible - whether what is sent interrupts the calling CPU
 *
 * Uses one real-time signal of the process, SIGRTMAX - 3 unless hl_cpu_set_signal()
 * chose another, and lets it in where the calling thread blocks it. Errno and the state
 * of the floating-point unit are kept. Functions that run so are subject to the rules of
 * signal handlers, but for where hl_local_irq_disable() brackets what is not.
 *
 * The handler is installed with SA_RESTART, so read, write, accept, futex waits and many
 * others go on by themselves. On x86-64, with a C library whose calls load their number
 * right before (glibc up to 2.40), these go on as well: poll, ppoll, select, pselect,
 * epoll_wait, nanosleep and clock_nanosleep (not for clocks of processor time), semop,
 * msgsnd, msgrcv, sigwaitinfo, futex waits until a time (sem_timedwait). Relative
 * time-outs of poll, epoll_wait and of nanosleep without a place for the rest begin anew
 * once: they last at most twice as long, however often they are interrupted; all others
 * are kept.
 *
 * EINTR is still seen of: pause, sigsuspend and calls that are given a mask of signals;
 * semtimedop, sigtimedwait and futex waits with a relative time-out; epoll_pwait2; sockets
 * with SO_RCVTIMEO or SO_SNDTIMEO; io_uring_enter, io_getevents; and, elsewhere than on
 * x86-64 with such a library, of all that signal(7) lists. hl_local_irq_disable() does not
 * help: it defers the functions, and the signal comes all the same.
 *
 * Returns 0, -ENXIO, or what sigaction(2) fails with.
 */
HL_API int hl_cpu_set_interruptible(bool on);

/*
 * hl_cpu_set_signal - the signal for interruptible CPUs, SIGRTMIN to SIGRTMAX
 *
 * Returns 0; -EINVAL; -EBUSY: one was installed already.
 */
HL_API int hl_cpu_set_signal(int signo);

/*
 * hl_local_irq_disable, hl_local_irq_enable - bracket what must not be interrupted
 *
 * Between them nothing that was sent interrupts the calling thread; it runs when
 * the outermost enable comes, which keeps errno. They nest; one enable too many does
 * nothing. A thread-local store each, no system call.
 */
HL_API void hl_local_irq_disable(void);
HL_API void hl_local_irq_enable(void);

/* ---- Memory per CPU ---- */

/*
 * hl_percpu_alloc - memory for one object a CPU
 * @size: bytes of the object
 * @align: what its address is a multiple of: a power of two, a page at most
 *
 * Zeroed, for each id there can be, and taken from the system when it is first
 * touched: on the NUMA node of the thread that does so, if the system is set up that
 * way. The objects of two CPUs never share a line, nor a pair of them. When an id
 * changes hands the object stays as it is.
 *
 * Returns a handle for hl_per_cpu_ptr(), to be freed with hl_percpu_free(); NULL with
 * errno EINVAL or ENOMEM.
 */
HL_API void *hl_percpu_alloc(size_t size, size_t align);
HL_API void hl_percpu_free(void *percpu);

/* hl_per_cpu_ptr - the object of a CPU; the id must be valid */
HL_API void *hl_per_cpu_ptr(void *percpu, int cpu);

/* hl_this_cpu_ptr - the object of the calling CPU; NULL when the thread is not online */
HL_API void *hl_this_cpu_ptr(void *percpu);

HL_END_DECLS

#endif
