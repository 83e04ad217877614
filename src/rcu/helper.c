/* SPDX-License-Identifier: MIT */
/*
 * The helper thread, which runs what waits if nobody else is to.
 *
 * It is started by the first call that is given to it, blocks all signals and may run on all
 * processors that the process could use when the library was loaded. A queue that has
 * something for it is put into its letter box; it looks at that queue until it has been
 * empty for a while, and sleeps when there is none left, without end. So with nothing to
 * do it never wakes, and with a thousand threads that give nothing it looks at none of them.
 *
 * Locking: `starting` protects starting and stopping it.
 *
 * Memory ordering
 *
 * RCU_BOX: a giver leaves a call, sets .rung, puts the queue into the box and looks at
 *	.asleep; the helper sets .asleep and looks at the box; it takes the box, clears .rung,
 *	looks for calls. All of these are atomic operations with the order of full fences.
 *	Without it a queue lies in the box and the helper sleeps.
 * RCU_NOTIFY: see queue.c
 */
#include "internal.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000
/* How long a queue is looked at after it was found empty: RCU_NOTIFY. */
#define LINGER_NS 1000000
/* While somebody else runs a queue. */
#define TAKEN_NS 50000
/* Between rounds, so that each finds more. */
#define PACE_NS 50000
/* How long the end of the program waits for a call that runs. */
#define STOP_S 5
/* The shortest that the kernel grants. */
#define SLICE_NS 100000
/* Calls of one queue before it is another's turn. */
#define MOST 4096u

static struct {
	/* Written by givers and by the helper. */
	HL_CACHELINE_GROUP_BEGIN(box) HL_CACHELINE_ALIGNED;
	struct hl_rcu_queue *_Atomic box;
	_Atomic(uint32_t) asleep; /* a futex */
	_Atomic(uint32_t) stop;
	_Atomic(uint32_t) runs;
	HL_CACHELINE_GROUP_END(box);

	/* The helper's. */
	HL_CACHELINE_GROUP_BEGIN(own) HL_CACHELINE_ALIGNED;
	struct hl_rcu_queue *active;
	HL_CACHELINE_GROUP_END(own);
} helper;

static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;
static pthread_t thread; /* under starting, as long as .runs */
static __thread bool is_helper;
static cpu_set_t processors; /* as of when the library was loaded */

__attribute__((constructor)) static void note_processors(void)
{
	if (sched_getaffinity(0, sizeof(processors), &processors))
		CPU_ZERO(&processors);
}

/* ---- The thread ---- */

static void take_box(void)
{
	struct hl_rcu_queue *queue, *next;

	if (!atomic_load_explicit(&helper.box, memory_order_relaxed))
		return;
	/* RCU_BOX, pairs with hl_helper_ring() */
	queue = atomic_exchange_explicit(&helper.box, NULL, memory_order_seq_cst);
	for (; queue; queue = next) {
		next = queue->next_rung;
		atomic_exchange_explicit(&queue->rung, 0, memory_order_seq_cst);
		queue->empty_since = 0;
		if (queue->active)
			continue;
		queue->active = true;
		queue->next_active = helper.active;
		helper.active = queue;
	}
}

/* What a round found. */
struct round {
	bool waiting, taken;
	uint64_t state; /* of those who wait */
	int64_t pace_ns; /* they wait until it is time for a broadcast */
	unsigned ran;
	int64_t linger_until; /* 0: nothing to linger for */
};

/* Whether the thread whose queue it is runs it alone. */
static bool is_its_own(const struct hl_rcu_queue *queue)
{
	return !(atomic_load_explicit(&queue->by, memory_order_relaxed) & HL_RCU_BY_HELPER);
}

static void collect(struct round *round)
{
	for (struct hl_rcu_queue *queue = helper.active; queue; queue = queue->next_active) {
		if (is_its_own(queue))
			continue;
		if (!hl_queue_trylock(queue)) {
			round->taken = true;
			continue;
		}
		hl_queue_collect(queue);
		if (queue->waiting) {
			round->waiting = true;
			round->state = queue->state;
		}
		hl_queue_unlock(queue);
	}
}

/* Nothing is in the queue; whether it need not be looked at any more. */
static bool linger(struct hl_rcu_queue *queue, struct round *round)
{
	int64_t now = hl_now_ns();

	if (!queue->empty_since) {
		queue->empty_since = now;
		/* RCU_NOTIFY, pairs with finish() in queue.c */
		atomic_store_explicit(&queue->notify, 1, memory_order_seq_cst);
	} else if (now - queue->empty_since >= LINGER_NS) {
		return true;
	}
	if (!round->linger_until || queue->empty_since + LINGER_NS < round->linger_until)
		round->linger_until = queue->empty_since + LINGER_NS;
	return false;
}

static void run(struct round *round)
{
	struct hl_rcu_queue **place = &helper.active, *queue;

	while ((queue = *place)) {
		bool over = is_its_own(queue);

		if (!over && hl_queue_trylock(queue)) {
			round->ran += hl_queue_run(queue, MOST);
			hl_queue_unlock(queue);
		}
		if (over) {
			/* Its thread looks. */
		} else if (hl_queue_pending(queue)) {
			queue->empty_since = 0;
			atomic_store_explicit(&queue->notify, 0, memory_order_relaxed);
		} else {
			over = linger(queue, round);
		}
		if (over) {
			queue->active = false;
			*place = queue->next_active;
		} else {
			place = &queue->next_active;
		}
	}
}

static void sleep_until(int64_t end)
{
	int64_t left = end ? end - hl_now_ns() : 0;
	struct timespec timeout = { left / NS_PER_S, left % NS_PER_S };

	if (end && left <= 0)
		return;
	atomic_exchange_explicit(&helper.asleep, 1, memory_order_seq_cst); /* RCU_BOX */
	HL_DELAY(sleep);
	if (!atomic_load_explicit(&helper.box, memory_order_seq_cst) &&
	    !atomic_load_explicit(&helper.stop, memory_order_seq_cst)) {
		syscall(SYS_futex, &helper.asleep, FUTEX_WAIT_PRIVATE, 1, end ? &timeout : NULL,
			NULL, 0);
		hl_count(&hl_rcu_counters.wakeups);
	}
	atomic_store_explicit(&helper.asleep, 0, memory_order_seq_cst);
}

/*
 * The thread that rings may go on computing on the processor on which the helper was last. A short
 * slice lets the helper interrupt it; as one among equals it would wait for the next tick.
 * Kernels before 6.12 know no slices, and let who has slept long go first.
 */
static void ask_for_short_slices(void)
{
	/* struct sched_attr of <linux/sched/types.h>, which does not go with <sched.h> */
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attr = { 0 };

	if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) || attr.policy != SCHED_OTHER)
		return;
	attr.runtime = SLICE_NS;
	syscall(SYS_sched_setattr, 0, &attr, 0);
}

static void *help(void *arg)
{
	(void)arg;
	is_helper = true;
	prctl(PR_SET_TIMERSLACK, 1); /* it sleeps for some dozens of microseconds at times */
	ask_for_short_slices();
	while (!atomic_load_explicit(&helper.stop, memory_order_seq_cst)) {
		struct round round = { 0 };

		take_box();
		collect(&round);
		if (round.waiting) /* goes by while the next line runs */
			round.pace_ns = hl_gp_step_in_time(round.state);
		run(&round);
		if (round.ran) {
			if (round.ran < MOST && !hl_rcu_barrier_waits())
				sleep_until(hl_now_ns() + PACE_NS);
		} else if (round.pace_ns) {
			sleep_until(hl_now_ns() + round.pace_ns);
		} else if (round.waiting) {
			bool hurry = hl_backlog_above_hurry() || hl_rcu_barrier_waits();

			if (hl_backlog_above_hurry())
				hl_count(&hl_rcu_counters.hurried);
			hl_gp_wait(round.state, hurry);
		} else if (round.taken) {
			sleep_until(hl_now_ns() + TAKEN_NS);
		} else {
			if (!round.linger_until)
				hl_batch_trim();
			sleep_until(round.linger_until);
		}
	}
	return NULL;
}

/* ---- Starting and stopping ---- */

/* Puts the queue into the box, if it is not there. */
static void put_into_box(struct hl_rcu_queue *queue)
{
	if (atomic_exchange_explicit(&queue->rung, 1, memory_order_seq_cst)) /* RCU_BOX */
		return;
	queue->next_rung = atomic_load_explicit(&helper.box, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(&helper.box, &queue->next_rung, queue,
						      memory_order_seq_cst, memory_order_relaxed))
		;
}

static bool start(void)
{
	sigset_t all, before;
	bool runs;

	hl_helper_lock();
	runs = atomic_load_explicit(&helper.runs, memory_order_relaxed);
	if (!runs && !atomic_load_explicit(&helper.stop, memory_order_relaxed)) {
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &before);
		runs = !pthread_create(&thread, NULL, help, NULL);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
		if (runs) {
			pthread_setname_np(thread, "hl_rcu");
			/* Who starts it may be kept on one processor. */
			if (CPU_COUNT(&processors))
				pthread_setaffinity_np(thread, sizeof(processors), &processors);
			atomic_store_explicit(&helper.runs, 1, memory_order_release);
		}
	}
	hl_helper_unlock();
	return runs;
}

static void wake(void)
{
	/* RCU_BOX, pairs with sleep_until() */
	if (atomic_load_explicit(&helper.asleep, memory_order_seq_cst) &&
	    atomic_exchange_explicit(&helper.asleep, 0, memory_order_seq_cst))
		syscall(SYS_futex, &helper.asleep, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

bool hl_helper_ring(struct hl_rcu_queue *queue)
{
	int saved = errno;

	if (!atomic_load_explicit(&helper.runs, memory_order_acquire) && !start()) {
		/* The next call tries again. */
		atomic_store_explicit(&queue->notify, 1, memory_order_relaxed);
		errno = saved;
		return false;
	}
	put_into_box(queue);
	wake();
	errno = saved;
	return true;
}

void hl_helper_lock(void)
{
	hl_local_irq_disable();
	pthread_mutex_lock(&starting);
}

void hl_helper_unlock(void)
{
	pthread_mutex_unlock(&starting);
	hl_local_irq_enable();
}

/* The helper is still there if it is the one that forked, and looks at its queues still. */
void hl_helper_forked(void)
{
	atomic_store_explicit(&helper.runs, is_helper, memory_order_relaxed);
	if (is_helper)
		thread = pthread_self();
	else
		helper.active = NULL;
	atomic_store_explicit(&helper.box, NULL, memory_order_relaxed);
	atomic_store_explicit(&helper.asleep, 0, memory_order_relaxed);
}

void hl_helper_queue_forked(struct hl_rcu_queue *queue)
{
	if (!is_helper)
		queue->active = false;
	atomic_store_explicit(&queue->rung, 0, memory_order_relaxed);
	if (hl_queue_pending(queue))
		put_into_box(queue);
}

bool hl_helper_stop(void)
{
	struct timespec limit;
	bool runs;

	hl_helper_lock();
	atomic_store_explicit(&helper.stop, 1, memory_order_seq_cst);
	runs = atomic_load_explicit(&helper.runs, memory_order_relaxed);
	hl_helper_unlock();
	if (!runs)
		return true;
	if (is_helper)
		return false;
	wake();
	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec += STOP_S;
	return !pthread_timedjoin_np(thread, NULL, &limit);
}
