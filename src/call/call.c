/* SPDX-License-Identifier: MIT */
/*
 * The calls: to one CPU, to many, and waiting for them.
 *
 * See ring.c and receive.c for the orderings.
 */
#include "ring.h"

#include <errno.h>
#include <sched.h>

/* Spins between looks at whether the target is still there, and at the clock. */
#define SPINS_A_LOOK 1024u
/* Looks after which the processor is given away between them. */
#define LOOKS_TO_YIELD 4u

#define NS_PER_MS 1000000

static _Atomic(unsigned) stall_ms;
static void (*_Atomic stall_report)(const struct hl_call_stall *);

void hl_call_stall_ms(unsigned ms, void (*report)(const struct hl_call_stall *stall))
{
	atomic_store_explicit(&stall_report, report, memory_order_relaxed);
	atomic_store_explicit(&stall_ms, ms, memory_order_relaxed);
}

/* ---- Waiting ---- */

/* A caller that waits for one target. */
struct wait {
	struct hl_ring *ring;
	uint64_t number; /* of its mail, or its position in the queue */
	const uint64_t *lost; /* numbers up to that nobody will run */
	struct hl_stall stall;
};

/* What the target runs, innermost. */
static void (*running_on(const struct hl_cpu *target))(void *)
{
	struct hl_inbox *inbox = hl_inbox_of(target);
	uint64_t func = 0;

	for (unsigned i = HL_MAX_NESTED; i-- > 0 && !func;)
		func = atomic_load_explicit(&inbox->running[i].func, memory_order_relaxed);
	return (void (*)(void *))(uintptr_t)func;
}

void hl_look_for_stall(struct hl_stall *stall)
{
	unsigned ms = atomic_load_explicit(&stall_ms, memory_order_relaxed);
	void (*report)(const struct hl_call_stall *) =
		atomic_load_explicit(&stall_report, memory_order_relaxed);
	uint64_t now;

	if (!ms || !report)
		return;
	now = (uint64_t)hl_now_ns() / NS_PER_MS;
	if (!stall->began_ms)
		stall->began_ms = stall->reported_ms = now;
	if (now - stall->reported_ms < ms)
		return;
	stall->reported_ms = now;

	struct hl_call_stall told = {
		.cpu = stall->target->id,
		.tid = atomic_load_explicit(&stall->target->tid, memory_order_relaxed),
		.sent = stall->sent,
		.running = running_on(stall->target),
		.waited_ms = now - stall->began_ms,
	};

	report(&told);
}

/* A target that leaves runs what it was sent; in a child of fork there is none that could. */
static bool is_lost(const struct wait *wait)
{
	return !hl_is_behind(wait->number, *wait->lost);
}

/* Once in a while. */
static void look(struct wait *wait, unsigned looks)
{
	hl_look_for_stall(&wait->stall);
	hl_cpu_kick(wait->ring->target); /* its signal may have found no room */
	if (looks > LOOKS_TO_YIELD)
		sched_yield();
}

/* Serves the calling CPU until *word is `value`, or past it. 0; -ENXIO: nobody will run
 * it. */
static int wait_for(struct wait *wait, struct hl_cpu *me, const _Atomic(uint64_t) *word,
		    uint64_t value)
{
	/* CALL_ANSWER, pairs with take_mail() in receive.c and with answer_it() */
	for (unsigned spins = 1;
	     hl_is_behind(value, atomic_load_explicit(word, memory_order_acquire)); spins++) {
		if (me && hl_cpu_hears(me))
			hl_cpu_serve(me);
		hl_relax();
		if (spins % SPINS_A_LOOK == 0) {
			if (is_lost(wait))
				return -ENXIO;
			look(wait, spins / SPINS_A_LOOK);
		}
	}
	return 0;
}

static int wait_for_mail(struct hl_ring *ring, struct hl_cpu *me, void (*func)(void *),
			 uint64_t number)
{
	struct wait wait = {
		.ring = ring,
		.number = number,
		.lost = &ring->mail_lost,
		.stall = { .target = ring->target, .sent = func },
	};

	/* A fork says that it is done, to free the place. */
	return wait_for(&wait, me, &ring->mail.done, number) || is_lost(&wait) ? -ENXIO : 0;
}

/* ---- One CPU ---- */

static struct hl_cpu *find(int cpu, int *rc)
{
	struct hl_cpu *target = hl_cpu_by_id(cpu);

	*rc = 0;
	if (!hl_cpumask_valid(cpu))
		*rc = -EINVAL;
	else if (!target ||
		 atomic_load_explicit(&target->how, memory_order_acquire) & HL_HOW_OFFLINE)
		*rc = -ENXIO;
	return *rc ? NULL : target;
}

/* The queue from a CPU to another; NULL: there is none yet. */
static struct hl_ring *queue_of(const struct hl_cpu *me, int cpu)
{
	/* Relaxed: this CPU has made it, or its like before it. */
	return atomic_load_explicit(&hl_inbox_of(me)->out[cpu], memory_order_relaxed);
}

/* The queue to a target, made if there is none; NULL: no memory. Threads that are not online
 * share one, and hold its lock. */
static struct hl_ring *queue_to(struct hl_cpu *me, struct hl_cpu *target)
{
	return hl_ring_get(me, target,
			   me ? &hl_inbox_of(me)->out[target->id]
			      : &hl_inbox_of(target)->in[HL_SENDER_FOREIGN]);
}

static void lock_queue(struct hl_cpu *me, struct hl_cpu *target)
{
	if (!me)
		pthread_mutex_lock(&hl_inbox_of(target)->foreign);
}

static void unlock_queue(struct hl_cpu *me, struct hl_cpu *target)
{
	if (!me)
		pthread_mutex_unlock(&hl_inbox_of(target)->foreign);
}

/* Sends from the calling thread, online or not; *queue: where to. */
static int send(struct hl_cpu *me, struct hl_cpu *target, uint64_t word, void *info,
		struct hl_ring **queue, uint64_t *position, struct hl_csd *csd)
{
	int rc;

	lock_queue(me, target);
	*queue = queue_to(me, target);
	rc = *queue ? hl_ring_send(*queue, me, word, info, position, csd) : -ENOMEM;
	unlock_queue(me, target);
	return rc;
}

/* A call whose answer goes to the caller's stack: for callers whose mail to that target is
 * on its way already, further out, and for threads that are not online. */
struct answered {
	void (*func)(void *);
	void *info;
	_Atomic(uint64_t) done;
} __attribute__((aligned(4 * sizeof(uint64_t))));

static void answer_it(void *arg)
{
	struct answered *call = arg;

	/* CALL_ANSWER, pairs with wait_for() */
	atomic_store_explicit(&call->done, 1, memory_order_release);
}

static void run_answered(void *arg)
{
	struct answered *call = arg;
	struct hl_running *running = &hl_inbox_of(hl_this_cpu)->running[hl_this_cpu->depth - 1];

	/* What a report of a stall is to name. */
	atomic_store_explicit(&running->func, hl_word_of(call->func), memory_order_relaxed);
	/* The function may end the thread. */
	pthread_cleanup_push(answer_it, call);
	call->func(call->info);
	pthread_cleanup_pop(1);
}

void (*hl_sent_by_caller(uint64_t word, void *info))(void *)
{
	void (*func)(void *) = (void (*)(void *))(uintptr_t)(word & HL_WORD_FUNC);

	return func == run_answered ? ((const struct answered *)info)->func : func;
}

static int call_answered(struct hl_cpu *me, struct hl_cpu *target, void (*func)(void *), void *info)
{
	struct answered call = { .func = func, .info = info };
	struct wait wait = { .stall = { .target = target, .sent = func } };
	int rc = send(me, target, hl_word_of(run_answered), &call, &wait.ring, &wait.number, NULL);

	if (rc)
		return rc;
	wait.number++; /* lost are the positions before .lost */
	wait.lost = &wait.ring->lost;
	return wait_for(&wait, me, &call.done, 1);
}

static int call_waited(struct hl_cpu *me, struct hl_cpu *target, void (*func)(void *), void *info)
{
	struct hl_ring *ring;
	uint64_t number;
	int rc;

	if (!me)
		return call_answered(NULL, target, func, info);
	if (me->depth >= HL_MAX_NESTED)
		return -EDEADLK;
	ring = queue_to(me, target);
	if (!ring)
		return -ENOMEM;
	rc = hl_ring_mail(ring, me, func, info, &number);
	if (rc == -EBUSY)
		return call_answered(me, target, func, info);
	return rc ? rc : wait_for_mail(ring, me, func, number);
}

int hl_smp_call_function_single(int cpu, void (*func)(void *info), void *info, bool wait)
{
	struct hl_cpu *me = hl_this_cpu, *target;
	struct hl_ring *queue;
	uint64_t position;
	int rc;

	if (!func)
		return -EINVAL;
	/* To a CPU that was sent to before: whether it is there, the queue says. */
	queue = me && !wait && hl_cpumask_valid(cpu) ? queue_of(me, cpu) : NULL;
	if (__builtin_expect(queue != NULL, 1))
		return hl_ring_send(queue, me, hl_word_of(func), info, &position, NULL);
	target = find(cpu, &rc);
	if (!target)
		return rc;
	if (!wait)
		return send(me, target, hl_word_of(func), info, &queue, &position, NULL);
	if (target != me)
		return call_waited(me, target, func, info);
	if (me->depth >= HL_MAX_NESTED)
		return -EDEADLK;
	hl_run_here(me, func, info);
	return 0;
}

int hl_smp_call_functions(int cpu, const struct hl_call *calls, unsigned n)
{
	struct hl_cpu *me = hl_this_cpu, *target;
	struct hl_ring *queue;
	unsigned sent = 0;
	int rc;

	for (unsigned i = 0; i < n; i++)
		if (!calls[i].func)
			return -EINVAL;
	target = find(cpu, &rc);
	if (!target)
		return rc;
	lock_queue(me, target);
	queue = queue_to(me, target);
	rc = -ENOMEM;
	if (queue)
		sent = hl_ring_send_some(queue, me, calls, n, &rc);
	unlock_queue(me, target);
	return sent ? (int)sent : rc;
}

bool hl_csd_in_flight(const struct hl_csd *csd)
{
	const struct hl_ring *queue = csd->queue;

	/* Acquire: who sends it again may change what the function was given. */
	return queue && !hl_is_behind(atomic_load_explicit(&queue->head, memory_order_acquire),
				      csd->position);
}

int hl_smp_call_function_single_async(int cpu, struct hl_csd *csd)
{
	struct hl_cpu *target;
	struct hl_ring *queue;
	uint64_t position;
	int rc;

	if (!csd->func)
		return -EINVAL;
	target = find(cpu, &rc);
	if (!target)
		return rc;
	if (hl_csd_in_flight(csd))
		return -EBUSY;
	/* From here on the csd is its function's, which may free it. */
	rc = send(hl_this_cpu, target, hl_word_of(csd->func), csd->info, &queue, &position, csd);
	/* Unless it has not run and will not. */
	if (rc)
		csd->queue = NULL;
	return rc;
}

int hl_smp_call_function_any(const struct hl_cpumask *mask, void (*func)(void *info), void *info,
			     bool wait)
{
	int cpu = hl_cpu_id(), rc = -ENXIO;

	if (!func)
		return -EINVAL;
	if (cpu >= 0 && hl_cpumask_test_cpu(cpu, mask))
		return hl_smp_call_function_single(cpu, func, info, wait);
	HL_FOR_EACH_CPU(cpu, mask)
	{
		rc = hl_smp_call_function_single(cpu, func, info, wait);
		if (rc != -ENXIO)
			break;
	}
	return rc;
}

/* ---- Many CPUs ---- */

/* Mail to each target, or what nobody waits for. -EBUSY: mail is on its way to it still, from
 * further out. */
static int send_one(struct hl_cpu *me, struct hl_cpu *target, void (*func)(void *), void *info,
		    bool wait)
{
	struct hl_ring *queue;
	uint64_t number;

	if (!wait)
		return send(me, target, hl_word_of(func), info, &queue, &number, NULL);
	queue = queue_to(me, target);
	return queue ? hl_ring_mail(queue, me, func, info, &number) : -ENOMEM;
}

/* From a CPU: the message to each target goes out before any is waited for, and each
 * answers on the line that it got. sent: those by mail; the number of all to whom it went. */
static int send_to_each(struct hl_cpu *me, const struct hl_cpumask *mask, void (*func)(void *),
			void *info, bool wait, struct hl_cpumask *sent)
{
	int cpu, n = 0;

	HL_FOR_EACH_CPU(cpu, mask)
	{
		struct hl_cpu *target;
		int rc;

		if (cpu >= hl_nr_cpu_ids())
			break;
		target = cpu == me->id ? NULL : find(cpu, &rc);
		if (!target)
			continue;
		rc = send_one(me, target, func, info, wait);
		if (!rc)
			hl_cpumask_set_cpu(cpu, sent);
		else if (rc == -EBUSY)
			rc = call_answered(me, target, func, info);
		n += !rc;
		if (rc && rc != -ENXIO)
			return rc;
	}
	return n;
}

/* How many of them have not run it: they went offline. */
static int wait_for_each(struct hl_cpu *me, const struct hl_cpumask *sent, void (*func)(void *))
{
	int cpu, gone = 0;

	HL_FOR_EACH_CPU(cpu, sent)
	{
		struct hl_ring *queue = queue_of(me, cpu);

		/* Later mail from further in has been waited for. */
		if (wait_for_mail(queue, me, func, queue->mail_sent))
			gone++;
	}
	return gone;
}

static int call_many(struct hl_cpu *me, const struct hl_cpumask *mask, void (*func)(void *),
		     void *info, bool wait, bool here)
{
	struct hl_cpumask sent;
	int n, gone = 0;

	hl_cpumask_clear(&sent);
	n = send_to_each(me, mask, func, info, wait, &sent);
	if (here && n >= 0) {
		hl_run_here(me, func, info);
		n++;
	}
	if (wait)
		gone = wait_for_each(me, &sent, func);
	return n < 0 ? n : n - gone;
}

/* From a thread that is not online, one after the other. */
static int call_one_by_one(const struct hl_cpumask *mask, void (*func)(void *), void *info,
			   bool wait)
{
	int cpu, n = 0;

	HL_FOR_EACH_CPU(cpu, mask)
	{
		int rc;

		if (cpu >= hl_nr_cpu_ids())
			break;
		rc = hl_smp_call_function_single(cpu, func, info, wait);
		if (rc && rc != -ENXIO)
			return rc;
		n += !rc;
	}
	return n;
}

int hl_smp_call_function_many(const struct hl_cpumask *mask, void (*func)(void *info), void *info,
			      bool wait)
{
	struct hl_cpu *me = hl_this_cpu;

	if (!func)
		return -EINVAL;
	if (!me)
		return call_one_by_one(mask, func, info, wait);
	if (wait && me->depth >= HL_MAX_NESTED)
		return -EDEADLK;
	return call_many(me, mask, func, info, wait, false);
}

/* The caller runs it while the others do. */
static int call_on(const struct hl_cpumask *mask, void (*func)(void *info), void *info, bool wait)
{
	struct hl_cpu *me = hl_this_cpu;

	if (!func)
		return -EINVAL;
	if (me && me->depth >= HL_MAX_NESTED)
		return -EDEADLK;
	if (!me)
		return call_one_by_one(mask, func, info, wait);
	return call_many(me, mask, func, info, wait, hl_cpumask_test_cpu(me->id, mask));
}

int hl_on_each_cpu(void (*func)(void *info), void *info, bool wait)
{
	struct hl_cpumask mask;

	hl_cpumask_setall(&mask);
	return call_on(&mask, func, info, wait);
}

int hl_on_each_cpu_cond(bool (*cond)(int cpu, void *info), void (*func)(void *info), void *info,
			bool wait)
{
	struct hl_cpumask mask;
	int cpu;

	if (!cond)
		return -EINVAL;
	hl_cpu_online_mask(&mask);
	HL_FOR_EACH_CPU(cpu, &mask)
	if (!cond(cpu, info))
		hl_cpumask_clear_cpu(cpu, &mask);
	return call_on(&mask, func, info, wait);
}
