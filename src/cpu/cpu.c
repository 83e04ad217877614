/* SPDX-License-Identifier: MIT */
/*
 * Who is a CPU: coming online, leaving, ids.
 *
 * Locking: `registry` protects which ids are taken, and that a CPU's struct is made
 * once. It is held while a thread comes online and while it gives its id back, never
 * while functions run.
 *
 * A CPU's struct is never freed: a sender that found it may use it as long as it
 * likes. Whether there is somebody behind it, hl_cpu.how says.
 *
 * Memory ordering
 *
 * CPU_FOUND: hl_cpu_online() stores a new struct into cpus[] with release, after its
 *	fields; hl_cpu_by_id() loads with acquire. Without it a sender sees fields that are
 *	not filled in yet.
 * CPU_HOW: set_how() stores .how and what the rooms make of it, then has every thread
 *	execute a fence. A sender leaves its message, then looks. If its look came before the
 *	fence, its message is visible to what the owner does next; if it came after, it sees
 *	the new value. Without the fence a CPU goes to sleep, or leaves, on a message that is
 *	still on its way out of the sender's store buffer.
 * CPU_KICK: who is about to use .tid or .eventfd, or to take back a message that the CPU may
 *	not take any more, counts itself into .kickers, then looks at .how; the owner stores
 *	.how, fences, then waits for the count to be zero: before it leaves, so that no signal
 *	reaches a thread that took the number of one that ended; and when it has come, so that
 *	no message is run that its sender takes back.
 */
#include "internal.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A program that is linked statically and sends nothing has no room above. */
static int never_rung(struct hl_cpu *cpu)
{
	static _Atomic(uint64_t) bell;

	cpu->bell = &bell;
	return 0;
}

static void nothing(struct hl_cpu *cpu)
{
	(void)cpu;
}

static unsigned nothing_ran(struct hl_cpu *cpu)
{
	(void)cpu;
	return 0;
}

static const struct hl_cpu_room no_room = {
	.online = never_rung,
	.sweep = nothing,
	.how = nothing,
	.poll = nothing_ran,
	.ended = nothing,
	.forked = nothing,
	.forget = nothing,
};

const struct hl_cpu_room *hl_cpu_room = &no_room;
const struct hl_cpu_watch *hl_cpu_watch;
__thread struct hl_cpu *hl_this_cpu;

static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t leaving; /* its destructor takes a thread that ends offline */
static int once_failed;
static struct hl_cpu *_Atomic cpus[HL_NR_CPUS];
static struct hl_cpumask taken; /* under registry */
static _Atomic(int) nr_ids, nr_online;

struct hl_cpu *hl_cpu_by_id(int cpu)
{
	/* CPU_FOUND, pairs with make_cpu() */
	return hl_cpumask_valid(cpu) ? atomic_load_explicit(&cpus[cpu], memory_order_acquire)
				     : NULL;
}

static uint32_t how_of(const struct hl_cpu *cpu)
{
	return atomic_load_explicit(&cpu->how, memory_order_relaxed);
}

/* Changes how the calling CPU hears of work. Towards less (it sleeps no more) nobody need
 * be told: who does not know yet does too much. */
static void set_how(struct hl_cpu *me, uint32_t how)
{
	uint32_t before = how_of(me);

	atomic_store_explicit(&me->how, how, memory_order_release);
	HL_DELAY(how);
	hl_cpu_room->how(me);
	if (how & ~before && !(how & HL_HOW_FENCE))
		hl_barrier_all(); /* CPU_HOW, pairs with the senders' looks */
	else
		hl_fence();
}

/* ---- Fork ---- */

static void before_fork(void)
{
	pthread_mutex_lock(&registry);
	hl_interrupt_lock();
}

static void parent_forked(void)
{
	hl_interrupt_unlock();
	pthread_mutex_unlock(&registry);
}

/* The thread may have forked inside a function that was sent to it, or with interrupts off:
 * it goes on to undo that in a struct that is nobody's from now on. */
static void forget(struct hl_cpu *cpu)
{
	static struct hl_cpu *forgotten; /* what no leak checker need report */

	hl_cpu_room->forget(cpu);
	atomic_store_explicit(&cpus[cpu->id], NULL, memory_order_relaxed);
	cpu->before_fork = forgotten;
	forgotten = cpu;
}

/* Of all threads only this one is left, and nothing that they sent. */
static void child_forked(void)
{
	struct hl_cpu *me = hl_this_cpu;

	for (int id = 0; id < atomic_load_explicit(&nr_ids, memory_order_relaxed); id++) {
		struct hl_cpu *cpu = atomic_load_explicit(&cpus[id], memory_order_relaxed);

		if (!cpu)
			continue;
		atomic_store_explicit(&cpu->how, HL_HOW_OFFLINE, memory_order_relaxed);
		atomic_store_explicit(&cpu->asleep, HL_AWAKE, memory_order_relaxed);
		atomic_store_explicit(&cpu->interrupting, 0, memory_order_relaxed);
		atomic_store_explicit(&cpu->kickers, 0, memory_order_relaxed);
		if (cpu->eventfd >= 0)
			close(cpu->eventfd);
		cpu->eventfd = -1;
		cpu->armed = cpu->due = cpu->deferred = 0;
		cpu->tick = &cpu->ticked;
		hl_cpu_room->forked(cpu);
		if (cpu != me)
			cpu->irq_off = cpu->depth = 0;
		else if (cpu->irq_off || cpu->depth)
			forget(cpu);
	}
	hl_cpumask_clear(&taken);
	atomic_store_explicit(&nr_online, 0, memory_order_relaxed);
	hl_this_cpu = NULL;
	hl_interrupt_unlock();
	pthread_mutex_unlock(&registry);
}

/* ---- Online ---- */

static void leave(struct hl_cpu *me);

static void thread_ends(void *arg)
{
	struct hl_cpu *me = arg;

	if (me != hl_this_cpu)
		return; /* of the parent of this process */
	if (me->depth) {
		hl_irq_disable(me);
		hl_cpu_room->ended(me);
		me->depth = 0;
	}
	me->irq_off = 0;
	leave(me);
}

static void set_up(void)
{
	once_failed = pthread_key_create(&leaving, thread_ends);
	if (!once_failed)
		once_failed = pthread_atfork(before_fork, parent_forked, child_forked);
}

/* Makes the CPU of an id that nobody has had; registry is held. */
static struct hl_cpu *make_cpu(int id)
{
	struct hl_cpu *cpu = aligned_alloc(_Alignof(struct hl_cpu), sizeof(*cpu));

	if (!cpu)
		return NULL;
	memset(cpu, 0, sizeof(*cpu));
	cpu->id = id;
	cpu->eventfd = -1;
	cpu->tick = &cpu->ticked;
	atomic_init(&cpu->how, HL_HOW_OFFLINE);
	if (hl_cpu_room->online(cpu)) {
		free(cpu);
		return NULL;
	}
	/* CPU_FOUND, pairs with hl_cpu_by_id() */
	atomic_store_explicit(&cpus[id], cpu, memory_order_release);
	if (id >= atomic_load_explicit(&nr_ids, memory_order_relaxed))
		atomic_store_explicit(&nr_ids, id + 1, memory_order_relaxed);
	return cpu;
}

static int lowest_free(void)
{
	for (int id = 0; id < HL_NR_CPUS; id++)
		if (!hl_cpumask_test_cpu(id, &taken))
			return id;
	return -EAGAIN;
}

/* Takes an id for the calling thread. */
static int take_id(struct hl_cpu **out)
{
	struct hl_cpu *cpu = NULL;
	int id;

	pthread_mutex_lock(&registry);
	id = lowest_free();
	if (id >= 0) {
		cpu = hl_cpu_by_id(id);
		if (!cpu)
			cpu = make_cpu(id);
		if (cpu)
			hl_cpumask_set_cpu(id, &taken);
		else
			id = -ENOMEM;
	}
	pthread_mutex_unlock(&registry);
	*out = cpu;
	return id;
}

static void give_id(int id)
{
	pthread_mutex_lock(&registry);
	hl_cpumask_clear_cpu(id, &taken);
	pthread_mutex_unlock(&registry);
}

/* Waits until nobody relies on who has the id, or on nobody having it. */
static void wait_for_kickers(const struct hl_cpu *me)
{
	/* CPU_KICK, pairs with hl_cpu_kick() and hl_cpu_hold_offline() */
	for (unsigned spins = 0; atomic_load_explicit(&me->kickers, memory_order_acquire);
	     spins++) {
		if (spins > 100)
			sched_yield();
		else
			hl_relax();
	}
}

bool hl_cpu_hold_offline(struct hl_cpu *cpu)
{
	/* CPU_KICK, pairs with wait_for_kickers() */
	atomic_fetch_add_explicit(&cpu->kickers, 1, memory_order_seq_cst);
	if (atomic_load_explicit(&cpu->how, memory_order_seq_cst) & HL_HOW_OFFLINE)
		return true;
	hl_cpu_let_go(cpu);
	return false;
}

void hl_cpu_let_go(struct hl_cpu *cpu)
{
	/* CPU_KICK: what was done to the queue comes before */
	atomic_fetch_sub_explicit(&cpu->kickers, 1, memory_order_release);
}

/* Runs what came in since the last owner of the id left, and clears what senders took back. */
static void sweep(struct hl_cpu *me)
{
	wait_for_kickers(me);
	hl_irq_disable(me);
	hl_cpu_room->sweep(me);
	hl_irq_enable(me);
}

int hl_cpu_online(unsigned flags)
{
	struct hl_cpu *me;
	int id, rc;

	if (flags & ~HL_CPU_INTERRUPTIBLE)
		return -EINVAL;
	if (hl_this_cpu)
		return -EBUSY;
	pthread_once(&once, set_up);
	if (once_failed)
		return -once_failed;
	id = take_id(&me);
	if (id < 0)
		return id;
	rc = pthread_setspecific(leaving, me);
	if (rc) {
		give_id(id);
		return -rc;
	}
	me->polls = 0;
	atomic_store_explicit(&me->tid, (pid_t)syscall(SYS_gettid), memory_order_relaxed);
	hl_this_cpu = me;
	atomic_fetch_add_explicit(&nr_online, 1, memory_order_relaxed);
	set_how(me, hl_barrier_usable() ? 0 : HL_HOW_FENCE);
	sweep(me);
	if (flags & HL_CPU_INTERRUPTIBLE) {
		rc = hl_cpu_set_interruptible(true);
		if (rc) {
			hl_cpu_offline();
			return rc;
		}
	}
	return id;
}

static void leave(struct hl_cpu *me)
{
	if (hl_cpu_watch)
		hl_cpu_watch->offline(me);
	hl_irq_disable(me);
	set_how(me, HL_HOW_OFFLINE | (how_of(me) & HL_HOW_FENCE));
	HL_DELAY(leave);
	hl_cpu_room->sweep(me);
	if (me != hl_this_cpu)
		return; /* a function forked, and this is the child */
	wait_for_kickers(me);
	if (me->eventfd >= 0)
		close(me->eventfd);
	me->eventfd = -1;
	me->armed = me->due = 0;
	me->irq_off = me->deferred = 0;
	atomic_store_explicit(&me->asleep, HL_AWAKE, memory_order_relaxed);
	atomic_store_explicit(&me->interrupting, 0, memory_order_relaxed);
	pthread_setspecific(leaving, NULL);
	hl_this_cpu = NULL;
	atomic_fetch_sub_explicit(&nr_online, 1, memory_order_relaxed);
	give_id(me->id);
}

int hl_cpu_offline(void)
{
	struct hl_cpu *me = hl_this_cpu;

	if (!me)
		return -ENXIO;
	if (me->depth)
		return -EBUSY;
	leave(me);
	return 0;
}

/* ---- Questions ---- */

int hl_cpu_id(void)
{
	return hl_this_cpu ? hl_this_cpu->id : -ENXIO;
}

bool hl_cpu_is_online(int cpu)
{
	const struct hl_cpu *found = hl_cpu_by_id(cpu);

	return found && !(how_of(found) & HL_HOW_OFFLINE);
}

int hl_nr_cpu_ids(void)
{
	return atomic_load_explicit(&nr_ids, memory_order_relaxed);
}

int hl_num_online_cpus(void)
{
	return atomic_load_explicit(&nr_online, memory_order_relaxed);
}

void hl_cpu_online_mask(struct hl_cpumask *mask)
{
	hl_cpumask_clear(mask);
	for (int id = 0; id < hl_nr_cpu_ids(); id++)
		if (hl_cpu_is_online(id))
			hl_cpumask_set_cpu(id, mask);
}

int hl_cpu_pin(int processor)
{
	size_t bytes = CPU_ALLOC_SIZE(HL_NR_CPUS);
	cpu_set_t *set;
	int rc;

	if (processor < 0 || processor >= HL_NR_CPUS)
		return -EINVAL;
	set = CPU_ALLOC(HL_NR_CPUS);
	if (!set)
		return -ENOMEM;
	CPU_ZERO_S(bytes, set);
	CPU_SET_S((size_t)processor, bytes, set);
	rc = sched_setaffinity(0, bytes, set) ? -EINVAL : 0;
	CPU_FREE(set);
	return rc;
}

/* ---- How it hears of work, for wait.c and interrupt.c ---- */

void hl_cpu_how_add(struct hl_cpu *me, uint32_t how)
{
	if ((how_of(me) & how) != how)
		set_how(me, how_of(me) | how);
}

void hl_cpu_how_drop(struct hl_cpu *me, uint32_t how)
{
	if (how_of(me) & how)
		set_how(me, how_of(me) & ~how);
}
