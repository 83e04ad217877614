/* SPDX-License-Identifier: MIT */
/*
 * Giving away: the queue of a thread.
 *
 * A queue is a list of batches, written by one thread in order. A call is one word and a
 * position, as long as its function is that of the call before; no atomic operation, no
 * fence, and the object is left alone.
 *
 * Memory ordering
 *
 * RCU_GIVEN: .given is stored with release, after the call; who invokes loads it with
 *	acquire. It then sees the call, the batches up to it, and what the giver did before -
 *	that it took the object out of reach - which a grace period that begins after that
 *	shows to all readers. So the giver needs no RCU_STATE of its own.
 * RCU_RUN: .n_runs of a batch is stored with release, after the run, and loaded with acquire: it
 *	may be of calls that come behind what RCU_GIVEN shows.
 * RCU_NOTIFY: who invokes sets .notify when it found the queue empty, and goes on looking
 *	for a millisecond; a giver stores .given, then looks at .notify. The two may pass each
 *	other in the giver's store buffer, which is empty again within microseconds: the
 *	call is found by the last look, then, or the giver sees the mark. A fence in every
 *	thread would do the same at once, at the price of interrupting them.
 * RCU_LINKED: heads that are linked, for want of memory, are pushed with release and taken with
 *	acquire, all at once.
 * RCU_SPARE: the same for an empty batch that goes back to its giver.
 */
#include "internal.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SLOWED_NS 10000000
#define SLOWED_QUIESCENT_NS 1000000
/* Pointers ahead of which the line to write is asked for: the one who invoked had it last. */
#define AHEAD 128

static _Atomic(size_t) hurry_mark = 20000, slow_mark = 200000;

static struct {
	/* Written by all who give or invoke, a batch at a time. */
	HL_CACHELINE_GROUP_BEGIN(count) HL_CACHELINE_ALIGNED;
	_Atomic(int64_t) calls; /* in batches that are full */
	_Atomic(uint32_t) shrunk; /* a futex: a batch was emptied while somebody was slowed */
	_Atomic(uint32_t) slowed; /* those who are */
	HL_CACHELINE_GROUP_END(count);
} backlog;

/* Heads of threads for which there was no memory at all. */
static struct hl_rcu_queue of_all = { .given = HL_RCU_START,
				      .limit = HL_RCU_START,
				      .by = HL_RCU_BY_HELPER,
				      .notify = 1,
				      .mark = HL_RCU_START,
				      .ready = HL_RCU_START,
				      .taken = HL_RCU_START };

struct hl_rcu_queue *hl_queue_of_all(void)
{
	return &of_all;
}

void hl_queue_init(struct hl_rcu_queue *queue)
{
	queue->given = queue->limit = queue->mark = queue->ready = HL_RCU_START;
	queue->taken = HL_RCU_START;
	queue->by = HL_RCU_BY_HELPER;
	queue->notify = 1;
}

uint64_t hl_queue_done(struct hl_rcu_queue *queue)
{
	/* RCU_DONE, pairs with run_run() in invoke.c. In this order: when the call before .taken has
	 * begun, .runs is set. */
	uint64_t taken = atomic_load_explicit(&queue->taken, memory_order_acquire);

	return taken - atomic_load_explicit(&queue->runs, memory_order_acquire);
}

uint64_t hl_queue_waits(struct hl_rcu_queue *queue)
{
	/* In this order: what is done was given. */
	uint64_t done = hl_queue_done(queue);

	return atomic_load_explicit(&queue->given, memory_order_acquire) - done;
}

bool hl_queue_pending(struct hl_rcu_queue *queue)
{
	/* RCU_LINKED, pairs with link_head() */
	return hl_queue_waits(queue) ||
	       atomic_load_explicit(&queue->linked, memory_order_acquire) !=
		       atomic_load_explicit(&queue->links_done, memory_order_relaxed);
}

void hl_queue_ring(struct hl_rcu_queue *queue)
{
	uint32_t by = atomic_load_explicit(&queue->by, memory_order_relaxed);
	struct hl_cpu *me = hl_this_cpu;

	atomic_store_explicit(&queue->notify, 0, memory_order_relaxed);
	if (by & HL_RCU_BY_POLL && me)
		me->ticked = 0; /* no number is that: its next poll has a look */
	if (by & HL_RCU_BY_HELPER)
		hl_helper_ring(queue);
}

/* ---- Backlog ---- */

void hl_rcu_set_marks(size_t hurry, size_t slow)
{
	if (hurry)
		atomic_store_explicit(&hurry_mark, hurry, memory_order_relaxed);
	if (slow)
		atomic_store_explicit(&slow_mark, slow, memory_order_relaxed);
}

static int64_t calls_now(void)
{
	return atomic_load_explicit(&backlog.calls, memory_order_relaxed);
}

static bool is_above(_Atomic(size_t) *mark)
{
	return calls_now() > (int64_t)atomic_load_explicit(mark, memory_order_relaxed);
}

/* Who is slowed goes on a little below the mark, so that it does not sleep with each batch. */
static bool may_go_on(void)
{
	int64_t mark = (int64_t)atomic_load_explicit(&slow_mark, memory_order_relaxed);

	return calls_now() <= mark - mark / 4;
}

bool hl_backlog_above_hurry(void)
{
	return is_above(&hurry_mark);
}

size_t hl_backlog_most(void)
{
	return atomic_load_explicit(&slow_mark, memory_order_relaxed);
}

void hl_backlog_sub(uint64_t n)
{
	atomic_fetch_sub_explicit(&backlog.calls, (int64_t)n, memory_order_seq_cst);
	/* RCU_SLOWED: counted, then looks at the backlog; here it is the other way round */
	if (atomic_load_explicit(&backlog.slowed, memory_order_seq_cst) && may_go_on()) {
		atomic_fetch_add_explicit(&backlog.shrunk, 1, memory_order_release);
		syscall(SYS_futex, &backlog.shrunk, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
	}
}

/* Sleeps while there is too much, as long as it becomes less in each so many nanoseconds. */
static void wait_while_it_shrinks(int64_t patience)
{
	struct timespec timeout = { .tv_nsec = patience };
	int64_t before = INT64_MAX;
	int saved = errno;

	atomic_fetch_add_explicit(&backlog.slowed, 1, memory_order_seq_cst); /* RCU_SLOWED */
	for (;;) {
		uint32_t shrunk = atomic_load_explicit(&backlog.shrunk, memory_order_acquire);
		int64_t calls = calls_now();

		if (may_go_on() || calls >= before)
			break;
		before = calls;
		syscall(SYS_futex, &backlog.shrunk, FUTEX_WAIT_PRIVATE, shrunk, &timeout, NULL, 0);
	}
	atomic_fetch_sub_explicit(&backlog.slowed, 1, memory_order_relaxed);
	errno = saved;
}

/* A batch is full; the caller may have to wait, if that is of use. */
static void slow_down(const struct hl_rcu_queue *queue)
{
	if (!is_above(&slow_mark) || hl_rcu_running || hl_rcu_in_section() ||
	    !(atomic_load_explicit(&queue->by, memory_order_relaxed) & HL_RCU_BY_HELPER))
		return;
	hl_count(&hl_rcu_counters.slowed);
	/* Who reads by quiescent states holds the next grace period back itself. */
	wait_while_it_shrinks(hl_rcu_read_lock_held() ? SLOWED_QUIESCENT_NS : SLOWED_NS);
}

/* ---- Giving ---- */

static void begin_run(struct hl_rcu_queue *queue, uint64_t word)
{
	struct hl_rcu_batch *batch = queue->open;
	uint64_t n = atomic_load_explicit(&batch->n_runs, memory_order_relaxed);
	struct hl_rcu_run *run = hl_batch_run(batch, n);

	run->word = word;
	run->first = atomic_load_explicit(&queue->given, memory_order_relaxed);
	/* RCU_RUN, pairs with run_batch() in invoke.c */
	atomic_store_explicit(&batch->n_runs, n + 1, memory_order_release);
	queue->limit -= HL_RUN_SLOTS;
	queue->word = word;
}

/* A new batch; false: no memory. */
static bool open_batch(struct hl_rcu_queue *queue)
{
	uint64_t given = atomic_load_explicit(&queue->given, memory_order_relaxed);
	/* RCU_SPARE, pairs with empty() in invoke.c */
	struct hl_rcu_batch *batch =
		atomic_exchange_explicit(&queue->spare, NULL, memory_order_acquire);
	struct hl_rcu_batch *full = queue->open;

	if (!batch)
		batch = hl_batch_get(full);
	if (!batch)
		return false;
	atomic_store_explicit(&batch->next, NULL, memory_order_relaxed);
	atomic_store_explicit(&batch->n_runs, 0, memory_order_relaxed);
	batch->base = given;
	queue->open = batch;
	queue->origin = (uintptr_t)batch->pointer - given * sizeof(batch->pointer[0]);
	queue->limit = given + HL_BATCH_SLOTS(batch->bytes);
	/* RCU_GIVEN: nobody looks for it before a call in it is given */
	if (full)
		atomic_store_explicit(&full->next, batch, memory_order_release);
	else
		queue->first = batch;
	if (full) {
		atomic_fetch_add_explicit(&backlog.calls, (int64_t)(given - full->base),
					  memory_order_relaxed);
		slow_down(queue);
	}
	return true;
}

/* Room for the next call, of that function; false: no memory. */
static __attribute__((noinline)) bool make_room(struct hl_rcu_queue *queue, uint64_t word)
{
	uint64_t left = queue->limit - atomic_load_explicit(&queue->given, memory_order_relaxed);
	bool room = word == queue->word ? left : left > HL_RUN_SLOTS;

	if (!room && !open_batch(queue))
		return false;
	begin_run(queue, word);
	return true;
}

/* No memory for a batch. */
static void link_head(struct hl_rcu_queue *queue, struct hl_rcu_head *head)
{
	head->next = atomic_load_explicit(&queue->links, memory_order_relaxed);
	/* RCU_LINKED, pairs with collect_links() in invoke.c */
	while (!atomic_compare_exchange_weak_explicit(&queue->links, &head->next, head,
						      memory_order_release, memory_order_relaxed))
		;
	atomic_fetch_add_explicit(&queue->linked, 1, memory_order_release);
}

static inline uint64_t given_by(const struct hl_rcu_queue *queue)
{
	return atomic_load_explicit(&queue->given, memory_order_relaxed);
}

/* The queue's next place is taken for the pointer. */
static inline void put(struct hl_rcu_queue *queue, uint64_t position, void *pointer)
{
	uintptr_t *place = (uintptr_t *)(queue->origin + position * sizeof(*place));

	hl_prefetchw(place + AHEAD);
	*place = (uintptr_t)pointer;
	/* RCU_GIVEN, pairs with hl_queue_collect() */
	atomic_store_explicit(&queue->given, position + 1, memory_order_release);
}

static inline bool has_room(const struct hl_rcu_queue *queue, uint64_t position, uint64_t word)
{
	return position != queue->limit && queue->word == word;
}

/* From here on a function that interrupts the thread gives to its second queue. */
static inline void begin(struct hl_rcu_queue *queue)
{
	queue->busy = 1;
	atomic_signal_fence(memory_order_seq_cst);
}

static inline void finish(struct hl_rcu_queue *queue)
{
	atomic_signal_fence(memory_order_seq_cst);
	queue->busy = 0;
}

/* RCU_NOTIFY, pairs with linger() in helper.c */
static inline bool is_to_ring(const struct hl_rcu_queue *queue)
{
	return __builtin_expect(atomic_load_explicit(&queue->notify, memory_order_relaxed), 0);
}

/*
 * What is done almost always: a branch each, all of which fall through, and nothing that the
 * next call would have to wait for but the position.
 */
static inline __attribute__((always_inline)) bool give_fast(uint64_t word, void *pointer)
{
	struct hl_rcu_thread *self = hl_rcu_self_if_any();
	struct hl_rcu_queue *queue;
	uint64_t position;

	if (__builtin_expect(!self || self->queue[0].busy, 0))
		return false;
	queue = &self->queue[0];
	begin(queue);
	position = given_by(queue);
	if (__builtin_expect(!has_room(queue, position, word), 0)) {
		finish(queue);
		return false;
	}
	put(queue, position, pointer);
	finish(queue);
	if (is_to_ring(queue))
		hl_queue_ring(queue);
	return true;
}

enum given { GIVEN, NO_BATCH, NO_THREAD };

/* head: to be linked if there is no memory for a batch; NULL: there is none */
static enum given give(uint64_t word, void *pointer, struct hl_rcu_head *head)
{
	struct hl_rcu_thread *self = hl_rcu_self();
	struct hl_rcu_queue *queue;
	bool given;

	if (!self)
		return NO_THREAD;
	queue = &self->queue[0];
	if (queue->busy)
		queue++; /* a function that interrupts the thread; nothing interrupts that */
	begin(queue);
	given = has_room(queue, given_by(queue), word) || make_room(queue, word);
	if (given)
		put(queue, given_by(queue), pointer);
	else if (head)
		link_head(queue, head);
	finish(queue);
	if (is_to_ring(queue))
		hl_queue_ring(queue);
	return given ? GIVEN : NO_BATCH;
}

static __attribute__((noinline)) int give_head(struct hl_rcu_head *head,
					       void (*func)(struct hl_rcu_head *head))
{
	if (!func)
		return -EINVAL;
	head->func = func;
	if (give((uintptr_t)func | HL_CALL_HEAD, head, head) == NO_THREAD) {
		link_head(&of_all, head);
		hl_queue_ring(&of_all);
	}
	return 0;
}

int hl_call_rcu(struct hl_rcu_head *head, void (*func)(struct hl_rcu_head *head))
{
	return __builtin_expect(func && give_fast((uintptr_t)func | HL_CALL_HEAD, head), 1)
		       ? 0
		       : give_head(head, func);
}

/* No memory, and no place in the object. */
static int wait_and_call(void (*func)(void *), void *pointer)
{
	int rc;

	if (hl_rcu_running)
		return -EDEADLK;
	rc = hl_synchronize_rcu();
	if (!rc)
		func(pointer);
	return rc;
}

static __attribute__((noinline)) int give_pointer(void *pointer, void (*func)(void *pointer))
{
	if (!func)
		return -EINVAL;
	return give((uintptr_t)func, pointer, NULL) == GIVEN ? 0 : wait_and_call(func, pointer);
}

int hl_call_rcu_ptr(void *pointer, void (*func)(void *pointer))
{
	return __builtin_expect(func && give_fast((uintptr_t)func, pointer), 1)
		       ? 0
		       : give_pointer(pointer, func);
}

int hl_free_rcu(void *pointer)
{
	if (__builtin_expect(!pointer, 0))
		return 0;
	return __builtin_expect(give_fast((uintptr_t)free, pointer), 1)
		       ? 0
		       : give_pointer(pointer, free);
}

/* ---- Fork ---- */

/* Its giver is gone, perhaps in the middle of opening a batch: the next one opens another. */
static void close_batch(struct hl_rcu_queue *queue)
{
	struct hl_rcu_batch *last = queue->first;

	while (last && last->next)
		last = last->next;
	queue->open = last;
	queue->limit = queue->given;
	queue->word = 0;
}

static bool is_own(const struct hl_rcu_queue *queue)
{
	const struct hl_rcu_thread *self = hl_rcu_self_if_any();

	return self && queue >= self->queue && queue < self->queue + 2;
}

static void forked(struct hl_rcu_queue *queue)
{
	queue->busy = 0;
	queue->run = 0; /* .first may be another already */
	if (!is_own(queue))
		close_batch(queue);
	atomic_store_explicit(&queue->notify, 1, memory_order_relaxed);
	atomic_store_explicit(&queue->by, HL_RCU_BY_HELPER, memory_order_relaxed);
	if (queue->open)
		backlog.calls += (int64_t)(queue->open->base - queue->first->base);
	if (queue != hl_rcu_running) {
		atomic_store_explicit(&queue->lock, 0, memory_order_relaxed);
		/* A call that was begun elsewhere is over. */
		atomic_store_explicit(&queue->runs, 0, memory_order_relaxed);
	}
	atomic_store_explicit(&queue->waiters, 0, memory_order_relaxed);
	hl_helper_queue_forked(queue);
}

void hl_queue_forked(void)
{
	atomic_store_explicit(&backlog.slowed, 0, memory_order_relaxed);
	atomic_store_explicit(&backlog.calls, 0, memory_order_relaxed);
	HL_FOR_EACH_RCU_QUEUE(t, queue)
	forked(queue);
	forked(&of_all);
}
