/* SPDX-License-Identifier: MIT */
/*
 * Cross-CPU calls: run a function on another CPU, on many, on all.
 *
 * The calling thread names a CPU (hotline/cpu.h), a function and a pointer; the CPU runs
 * the function when it next polls, wakes or is interrupted. What one thread sends to one
 * CPU runs in the order in which it was sent, each exactly once. Between different
 * senders there is no order.
 *
 * A call sees what its sender wrote before it; who waited for a call sees what it wrote.
 *
 * While a CPU waits - for a call to be done, or for room in a queue - it serves what is
 * sent to itself, so CPUs that call each other, in pairs or in rings, do not deadlock.
 * Functions may therefore run inside each other's waits, and a function that was sent
 * may send and wait itself.
 *
 * A message is 16 bytes; between each two CPUs that ever talk there is a queue of
 * HL_CALL_QUEUE messages. A sender that finds it full waits for room.
 *
 * Any thread may send, also one that is not online (it has nothing to serve while it
 * waits). Not from signal handlers, but from functions that were sent and run in one.
 * After fork the child has nothing in flight; a csd that was in flight in the parent is
 * to be initialised again in the child.
 *
 * Names and meaning after the kernel's include/linux/smp.h.
 */
#ifndef HOTLINE_CALL_H
#define HOTLINE_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include <hotline/api.h>
#include <hotline/cacheline.h>
#include <hotline/cpumask.h>

/* Messages that a queue between two CPUs holds. */
#define HL_CALL_QUEUE 256

/*
 * struct hl_csd - a call that its owner keeps: what to run, and whether it is on its way
 *
 * Half a line, and aligned so that it never lies on two. Initialise it with HL_CSD_INIT() or
 * hl_csd_init(); .func and .info may be changed while it is not in flight, the rest is
 * the library's. It is read when it is sent and not touched after, so it may be freed as
 * soon as that returns; who sends it again is told when it is in flight still.
 */
struct hl_csd {
	void (*func)(void *info);
	void *info;
	const void *queue;	/* where it was put last; NULL: nowhere yet */
	uint64_t position;	/* its place there */
} __attribute__((aligned(4 * sizeof(uint64_t))));

#define HL_CSD_INIT(function, pointer) { (function), (pointer), 0, 0 }

HL_BEGIN_DECLS

/* hl_csd_init - makes *csd a call of func(info) that is not in flight */
static inline void hl_csd_init(struct hl_csd *csd, void (*func)(void *info), void *info)
{
	csd->func = func;
	csd->info = info;
	csd->queue = NULL;
	csd->position = 0;
}

/*
 * hl_smp_call_function_single - runs func(info) on one CPU
 * @cpu: its id; the caller's own is allowed
 * @func: runs there; should be short. It may end its thread with pthread_exit(3), unless that
 *	ends already, and then runs what it was sent
 * @info: handed to it
 * @wait: return when it has run
 *
 * With @wait and the caller's own id it runs at once, inside this call, interrupts off;
 * without @wait it goes to the queue even then.
 *
 * Returns 0; otherwise it has not run and will not:
 *	-ENXIO		there is no CPU of that id online, or it went before it ran it
 *	-EINVAL		no id can be that; func is NULL
 *	-EDEADLK	waiting cannot end: too many functions run inside each other here
 *	-ENOMEM		the first message to that CPU, and no memory for a queue
 */
HL_API int hl_smp_call_function_single(int cpu, void (*func)(void *info), void *info, bool wait);

/*
 * struct hl_call - a function and what it is handed, for hl_smp_call_functions()
 */
struct hl_call {
	void (*func)(void *info);
	void *info;
};

/*
 * hl_smp_call_functions - sends several functions to one CPU at once
 * @calls: run there in this order, others' calls in between; not needed after the return
 * @n: how many; 0 and more than a queue holds are allowed
 *
 * As hl_smp_call_function_single() without @wait for each, for a fraction of the price.
 *
 * Returns how many were sent, from the first on: fewer than @n when the CPU went meanwhile.
 * Otherwise none will run: -ENXIO, -EINVAL, -ENOMEM, -EDEADLK as above.
 */
HL_API int hl_smp_call_functions(int cpu, const struct hl_call *calls, unsigned n);

/*
 * hl_smp_call_function_single_async - sends a csd
 *
 * Does not wait for it to run. One thread at a time may send the same csd.
 *
 * Returns 0; -EBUSY: it is in flight, that is, its function has not begun to run since
 * it was sent last; -ENXIO, -EINVAL, -ENOMEM as above.
 */
HL_API int hl_smp_call_function_single_async(int cpu, struct hl_csd *csd);

/* hl_csd_in_flight - whether a csd was sent and its function has not begun yet */
HL_API bool hl_csd_in_flight(const struct hl_csd *csd);

/*
 * hl_smp_call_function_any - runs func(info) on one CPU of a mask
 *
 * On the caller's own if it is in the mask, else on the lowest that is online. Returns
 * as hl_smp_call_function_single(); -ENXIO: none of them is online.
 */
HL_API int hl_smp_call_function_any(const struct hl_cpumask *mask, void (*func)(void *info),
				    void *info, bool wait);

/*
 * hl_smp_call_function_many - runs func(info) on all CPUs of a mask but the caller's own
 *
 * To all at once: with @wait it returns when the last has run. CPUs of the mask that are
 * not online, or go before they run it, are passed over.
 *
 * Returns on how many CPUs it ran or was sent to; -EINVAL, -EDEADLK, -ENOMEM as above
 * (-ENOMEM, -EDEADLK: it was sent to some of them, and with @wait
 * has run there).
 */
HL_API int hl_smp_call_function_many(const struct hl_cpumask *mask, void (*func)(void *info),
				     void *info, bool wait);

/*
 * hl_on_each_cpu - runs func(info) on all CPUs, the caller's own included
 *
 * There it runs inside this call, interrupts off. Returns as hl_smp_call_function_many().
 */
HL_API int hl_on_each_cpu(void (*func)(void *info), void *info, bool wait);

/*
 * hl_on_each_cpu_cond - the same on the CPUs for which cond(cpu, info) says so
 *
 * cond() runs in the calling thread; a CPU that it refuses is not disturbed.
 */
HL_API int hl_on_each_cpu_cond(bool (*cond)(int cpu, void *info), void (*func)(void *info),
			       void *info, bool wait);

/*
 * struct hl_call_stall - a CPU that lets a caller wait
 */
struct hl_call_stall {
	int cpu;			/* who does not answer */
	int tid;			/* its thread, as gettid() there */
	void (*sent)(void *info);	/* what it was to run */
	void (*running)(void *info);	/* what it runs of what was sent; NULL: nothing */
	uint64_t waited_ms;
};

/*
 * hl_call_stall_ms - when a waiting caller reports, and to whom
 * @ms: milliseconds, 0: never (as at first); reported again each time as many more passed
 * @report: called in the thread that waits, with interrupts off at times; may be NULL
 *
 * Waiting is: for a call to be done, and for room in a queue, also without @wait.
 */
HL_API void hl_call_stall_ms(unsigned ms, void (*report)(const struct hl_call_stall *stall));

HL_END_DECLS

#ifndef __cplusplus
_Static_assert(sizeof(struct hl_csd) == 4 * sizeof(uint64_t) || sizeof(void *) < 8,
	       "a csd is aligned to its own size");
#endif

#endif
