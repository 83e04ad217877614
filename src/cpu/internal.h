/* SPDX-License-Identifier: MIT */
/*
 * Inside the library: a CPU as the rooms above this one see it.
 */
#ifndef HL_CPU_INTERNAL_H
#define HL_CPU_INTERNAL_H

#include <stdatomic.h>
#include <sys/types.h>

#include <hotline/cacheline.h>
#include <hotline/cpu.h>

/* hl_cpu.how: what a sender has to do beside leaving its message; 0: nothing, it polls. */
#define HL_HOW_OFFLINE		0x1u	/* nobody will look */
#define HL_HOW_SLEEPS		0x2u	/* it may be asleep: fence, then hl_cpu_kick() */
#define HL_HOW_INTERRUPT	0x4u	/* it wants a signal: the same */
#define HL_HOW_FENCE		0x8u	/* there is no membarrier here: the same */

/* hl_cpu.asleep */
#define HL_AWAKE		0u
#define HL_ASLEEP_FUTEX		1u
#define HL_ASLEEP_EVENTFD	2u

enum hl_cpu_room_id { HL_ROOM_CALL, HL_N_CPU_ROOMS };

/* A word that a CPU looks at with every poll, of a queue or of a grace period: there is
 * something for it when the word's top bit is another than that of .idle. */
struct hl_look {
	const _Atomic(uint64_t) *word;
	uint64_t idle;
};
#define HL_LOOK_BIT ((uint64_t)1 << 63)
#define HL_MAX_LOOKS 17u

struct hl_cpu {
	/* Written by the owner when it changes how it hears of work, read by senders. */
	HL_CACHELINE_GROUP_BEGIN(read_mostly) HL_CACHELINE_ALIGNED;
	_Atomic(uint32_t) how;
	int id;
	_Atomic(pid_t) tid;
	int eventfd;			/* -1: none */
	void *room[HL_N_CPU_ROOMS];	/* what each room above keeps for this CPU */
	HL_CACHELINE_GROUP_END(read_mostly);

	/* Written by the owner when it goes to sleep and by those who wake it. */
	HL_CACHELINE_GROUP_BEGIN(wake) HL_CACHELINE_ALIGNED;
	_Atomic(uint32_t) asleep;
	_Atomic(uint32_t) interrupting;	/* a signal is on its way */
	_Atomic(uint32_t) kickers;	/* threads for which tid, eventfd and owner have to stay */
	HL_CACHELINE_GROUP_END(wake);

	/* The owner's alone, its signal handler included. What a poll needs that finds nothing
	 * is the first line, with three senders. */
	HL_CACHELINE_GROUP_BEGIN(own) HL_CACHELINE_ALIGNED;
	unsigned polls;			/* since it slept, while it counts as one that sleeps */
	unsigned n_looks;
	const _Atomic(uint64_t) *bell;	/* not 0: there is something */
	struct hl_look look[HL_MAX_LOOKS];
	volatile unsigned irq_off;	/* depth of hl_local_irq_disable() */
	volatile unsigned deferred;	/* the signal came while irq_off */
	unsigned depth;			/* functions running that were sent to it, one in another */
	unsigned armed;			/* hl_cpu_eventfd_arm(), and no poll since */
	const uint64_t *tick;		/* a word; a poll that finds it changed .. */
	uint64_t ticked;		/* .. tells hl_cpu_watch; &ticked: it never does */
	uint64_t due;			/* wake-ups by eventfd that were not read yet */
	struct hl_cpu *before_fork;	/* of CPUs that a child of fork cannot use again */
	HL_CACHELINE_GROUP_END(own);
};
HL_CACHELINE_ASSERT_ALIGNED(struct hl_cpu, read_mostly);
HL_CACHELINE_ASSERT_ALIGNED(struct hl_cpu, wake);
HL_CACHELINE_ASSERT_ALIGNED(struct hl_cpu, own);
HL_CACHELINE_ASSERT_APART(struct hl_cpu, how, asleep);
HL_CACHELINE_ASSERT_APART(struct hl_cpu, asleep, irq_off);

/* What a room above does when a CPU polls, comes, goes and changes how it hears. All
 * but forked() are called by the CPU itself, with interrupts off. */
struct hl_cpu_room {
	/* Makes what the room needs for the CPU; 0 or -ENOMEM. Kept when the CPU leaves. */
	int (*online)(struct hl_cpu *cpu);
	/* Runs what is in any queue, rung for or not: when the CPU has come, and when it is
	 * offline for senders and leaves. */
	void (*sweep)(struct hl_cpu *cpu);
	/* The thread ended inside functions that were sent to it; the CPU leaves next. */
	void (*ended)(struct hl_cpu *cpu);
	/* Shows the new cpu->how to those who send to it. */
	void (*how)(struct hl_cpu *cpu);
	/* Runs what is there; how much it was. */
	unsigned (*poll)(struct hl_cpu *cpu);
	/* In the child, before the thread goes on: nothing is left of what others sent. */
	void (*forked)(struct hl_cpu *cpu);
	/* The same, for a CPU that cannot be used again: others find it no more. */
	void (*forget)(struct hl_cpu *cpu);
};

/* The one room there is above; set when the library is loaded. */
extern const struct hl_cpu_room *hl_cpu_room;

/* What a room that watches CPUs hears of them; called by the CPU itself. */
struct hl_cpu_watch {
	/* It polls outside functions that were sent to it, and *tick is not ticked. */
	void (*tick)(struct hl_cpu *cpu);
	/* It sleeps from now on; it goes on. */
	void (*asleep)(struct hl_cpu *cpu);
	void (*awake)(struct hl_cpu *cpu);
	/* It leaves. */
	void (*offline)(struct hl_cpu *cpu);
};

/* NULL: nobody watches; set when the library is loaded. */
extern const struct hl_cpu_watch *hl_cpu_watch;

/* The calling thread's CPU; NULL: not online. */
extern __thread struct hl_cpu *hl_this_cpu;

/* The CPU of that id, online or not; NULL: there never was one. */
struct hl_cpu *hl_cpu_by_id(int cpu);

/*
 * Wakes or interrupts the CPU if it has to be. The caller has left its message and
 * executed a full fence since.
 */
void hl_cpu_kick(struct hl_cpu *cpu);

/*
 * Keeps a CPU offline that is: nobody comes online with its id before hl_cpu_let_go().
 * false: it is online, and not held.
 */
bool hl_cpu_hold_offline(struct hl_cpu *cpu);
void hl_cpu_let_go(struct hl_cpu *cpu);

/* Whether there is something for the calling CPU. What a function that interrupts it
 * changes meanwhile has been looked at by that. */
static inline bool hl_cpu_hears(const struct hl_cpu *me)
{
	if (atomic_load_explicit(me->bell, memory_order_relaxed))
		return true;
	for (unsigned i = 0; i < me->n_looks; i++) {
		const struct hl_look *look = &me->look[i];

		if ((atomic_load_explicit(look->word, memory_order_relaxed) ^ look->idle) &
		    HL_LOOK_BIT)
			return true;
	}
	return false;
}

/* Changes how the calling CPU hears of work: HL_HOW_SLEEPS, HL_HOW_INTERRUPT. */
void hl_cpu_how_add(struct hl_cpu *me, uint32_t how);
void hl_cpu_how_drop(struct hl_cpu *me, uint32_t how);

/* Runs what was sent to the calling CPU, interrupts off or on. */
unsigned hl_cpu_serve(struct hl_cpu *me);

static inline void hl_irq_disable(struct hl_cpu *me)
{
	me->irq_off++;
	/* The handler of this very thread is all that could look. */
	atomic_signal_fence(memory_order_seq_cst);
}

void hl_irq_deferred(struct hl_cpu *me);

static inline void hl_irq_enable(struct hl_cpu *me)
{
	atomic_signal_fence(memory_order_seq_cst);
	me->irq_off--;
	atomic_signal_fence(memory_order_seq_cst);
	if (__builtin_expect(me->deferred && !me->irq_off, 0))
		hl_irq_deferred(me);
}

/* The same for what is done often, in a thread that may be none (NULL): nothing unless
 * it is interruptible. A signal that comes when it is not runs nothing. */
static inline bool hl_irq_save(struct hl_cpu *me)
{
	if (!me || !(atomic_load_explicit(&me->how, memory_order_relaxed) & HL_HOW_INTERRUPT))
		return false;
	hl_irq_disable(me);
	return true;
}

static inline void hl_irq_restore(struct hl_cpu *me, bool saved)
{
	if (saved)
		hl_irq_enable(me);
}

/* ---- barrier.c ---- */

/* Whether hl_barrier_all() can be had; decided once. */
bool hl_barrier_usable(void);
/*
 * Acts as a full fence in every thread of the process, at some point of its program
 * between the call and the return (membarrier, private expedited).
 */
void hl_barrier_all(void);

/* ---- interrupt.c ---- */

int hl_interrupt_install(void);
void hl_interrupt_send(struct hl_cpu *cpu);
/* Around fork: nobody is in the middle of installing. */
void hl_interrupt_lock(void);
void hl_interrupt_unlock(void);

/* ---- resume.c ---- */

/* Has the thread that our signal interrupted go on with what it waited for in the kernel, if
 * that can be told; context: of the handler. May wait itself. */
void hl_resume(void *context);

/* ---- wait.c ---- */

/* CLOCK_MONOTONIC */
int64_t hl_now_ns(void);

/* Torture builds wait here at random; the library does not. */
#ifndef HL_DELAY
#define HL_DELAY(point) ((void)0)
#endif

/* A full fence. ThreadSanitizer knows none, but it knows what an exchange orders. */
static inline void hl_fence(void)
{
#if defined(__SANITIZE_THREAD__)
	static _Atomic(int) word;

	atomic_exchange_explicit(&word, 0, memory_order_seq_cst);
#else
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

static inline void hl_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb" ::: "memory");
#endif
}

#endif
