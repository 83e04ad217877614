/* SPDX-License-Identifier: MIT */
/*
 * RCU: readers that neither write shared memory nor wait, and memory that is freed when the
 * last of them that could see it is done.
 *
 * A reader brackets what it reads:
 *
 *	hl_rcu_read_lock();
 *	config = hl_rcu_dereference(current_config);
 *	... use *config ...
 *	hl_rcu_read_unlock();
 *
 * A writer puts the new version in place and gives the old one away:
 *
 *	hl_rcu_assign_pointer(current_config, new);
 *	hl_free_rcu(old);
 *
 * A grace period is a time in which every section that was open at its beginning has ended.
 * hl_synchronize_rcu() waits for one; what is given to hl_call_rcu(), hl_call_rcu_ptr()
 * and hl_free_rcu() is done after one, without waiting.
 *
 * There are two schemes of reading, over one engine; both may be used at once, and every
 * grace period waits for the readers of both:
 *
 *	general		hl_rcu_read_lock(), in any thread; it registers itself with its first
 *			section. A few loads and one store of the thread's own.
 *	quiescent state	hl_rcu_read_lock_qs(), in a thread that called
 *			hl_rcu_set_quiescent(true): no instruction at all. Instead the thread
 *			says at times that it holds nothing: a CPU (hotline/cpu.h) does so with
 *			each hl_cpu_poll() outside functions that were sent to it, any
 *			thread with hl_rcu_quiescent_state(). Sleeping in hl_cpu_idle(), between
 *			hl_cpu_eventfd_arm() and the next hl_cpu_poll(), being offline
 *			and hl_rcu_thread_offline() say so for as long as they last.
 *
 * What waits for a grace period is kept in batches, {function, pointer} after {function,
 * pointer}, one open batch a thread: an object is touched neither when it is given
 * away nor while it waits, and shortly before its function runs it is fetched.
 *
 * All functions may be called by any thread, online as a CPU or not, and by functions that
 * were sent to an interruptible CPU; hl_rcu_read_lock() and hl_rcu_read_unlock() also in
 * signal handlers of a thread that has read before.
 *
 * Fork: the program need not do anything. The child's one thread goes on in the section that
 * it forked in; those of other threads are over. Everything that waited for a grace period
 * in the parent waits in the child as well - its memory is a copy - and is done there by
 * the child's own helper thread, which starts with the next call; a function that another
 * thread was running at the time of the fork is not run again.
 *
 * Names and meaning after the kernel's rcupdate.h and liburcu.
 */
#ifndef HOTLINE_RCU_H
#define HOTLINE_RCU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hotline/api.h>
#include <hotline/cacheline.h>

HL_BEGIN_DECLS

/* ---- Inside: for the inline functions below alone ---- */

/* The low bits of a reader's word count its sections inside each other; above them is the
 * number of the grace period in which the outermost began. */
#define HL_PRIV_RCU_NEST UINT64_C(0xffff)

struct hl_rcu_reader {
	/* Written by the thread, read by grace periods. */
	uint64_t word;
	uint64_t quiescent; /* the last number it saw holding nothing; 0: holds nothing */
	/* Written by both, seldom: what a section has to heed when it begins. */
	uint32_t heed;
	int32_t tid;
} HL_CACHELINE_ALIGNED;

/* Written once or twice a grace period, read by all: alone on its line. */
struct hl_rcu_number {
	uint64_t word; /* as the word of a reader that begins its section now */
} HL_CACHELINE_ALIGNED;

extern HL_API struct hl_rcu_number hl_priv_rcu_number;
extern HL_API __thread struct hl_rcu_reader *hl_priv_rcu_self;
HL_API void hl_priv_rcu_heed(struct hl_rcu_reader *reader);
HL_API void hl_priv_rcu_first_lock(void);
HL_API void hl_priv_rcu_last_unlock(void);

/* With -DHL_RCU_DEBUG a section that is ended twice, or nested too deep, traps. */
#ifdef HL_RCU_DEBUG
#define HL_PRIV_RCU_CHECK(condition) \
	do { \
		if (!(condition)) \
			__builtin_trap(); \
	} while (0)
#else
#define HL_PRIV_RCU_CHECK(condition) ((void)0)
#endif

/* ---- Reading: the general scheme ---- */

/*
 * hl_rcu_read_lock - begins a read section
 *
 * What hl_rcu_dereference() gives in it stays until it ends. Sections nest, 65535 deep.
 * Never waits; the first section of a thread registers it, which takes a lock shortly and
 * asks the system for memory. (Without memory it works all the same, slower.)
 *
 * A thread that ends inside a section ends the section.
 */
static inline void hl_rcu_read_lock(void)
{
	struct hl_rcu_reader *reader = hl_priv_rcu_self;
	uint64_t word;

	if (__builtin_expect(!reader, 0)) {
		hl_priv_rcu_first_lock();
		return;
	}
	word = reader->word;
	HL_PRIV_RCU_CHECK((word & HL_PRIV_RCU_NEST) != HL_PRIV_RCU_NEST);
	if (__builtin_expect((word & HL_PRIV_RCU_NEST) != 0, 0)) {
		__atomic_store_n(&reader->word, word + 1, __ATOMIC_RELAXED);
		return;
	}
	/* RCU_NUMBER: who sees the number of a grace period sees what was before it. */
	word = __atomic_load_n(&hl_priv_rcu_number.word, __ATOMIC_ACQUIRE);
	__atomic_store_n(&reader->word, word, __ATOMIC_RELAXED);
	/* RCU_READER: the fence between this store and what is read next is the grace period's
	 * to execute, or .heed says that it is ours. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (__builtin_expect(__atomic_load_n(&reader->heed, __ATOMIC_RELAXED) != 0, 0))
		hl_priv_rcu_heed(reader);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* hl_rcu_read_unlock - ends the section that was begun last; never waits */
static inline void hl_rcu_read_unlock(void)
{
	struct hl_rcu_reader *reader = hl_priv_rcu_self;

	if (__builtin_expect(!reader, 0)) {
		hl_priv_rcu_last_unlock();
		return;
	}
	HL_PRIV_RCU_CHECK(reader->word & HL_PRIV_RCU_NEST);
	/* RCU_END: what was read is read; pairs with the grace period's look. */
	__atomic_store_n(&reader->word, reader->word - 1, __ATOMIC_RELEASE);
}

/* ---- Reading: quiescent states ---- */

/*
 * hl_rcu_set_quiescent - whether the calling thread reads by the quiescent-state scheme
 *
 * From then on every grace period waits for it to say that it holds nothing: see above for
 * how it does. A thread that says so too seldom holds all memory back. hl_cpu_offline() and
 * the end of the thread end it. Call it outside read sections.
 *
 * Returns 0; -ENOMEM.
 */
HL_API int hl_rcu_set_quiescent(bool on);

/* hl_rcu_read_lock_qs, hl_rcu_read_unlock_qs - bracket a section of such a thread: they keep the
 * compiler from moving reads out of it, and readers of the code informed */
static inline void hl_rcu_read_lock_qs(void)
{
	HL_PRIV_RCU_CHECK(hl_priv_rcu_self && hl_priv_rcu_self->quiescent);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void hl_rcu_read_unlock_qs(void)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/*
 * hl_rcu_quiescent_state - says that the calling thread holds nothing that it read
 *
 * For threads that read by quiescent states; in others it does nothing. Sections of the
 * general scheme are not affected. Two loads, and a store once a grace period.
 */
HL_API void hl_rcu_quiescent_state(void);

/*
 * hl_rcu_thread_offline, hl_rcu_thread_online - around what may take long
 *
 * In between the calling thread counts as one that holds nothing: it must not read by
 * quiescent states. They do not nest. In threads that do not read so they do nothing.
 */
HL_API void hl_rcu_thread_offline(void);
HL_API void hl_rcu_thread_online(void);

/* hl_rcu_read_lock_held - whether the calling thread is in a section of the general scheme, or
 * reads by quiescent states and is not offline; for assertions */
HL_API bool hl_rcu_read_lock_held(void);

/* ---- Pointers ---- */

/*
 * hl_rcu_dereference - reads a pointer in a section, to follow it
 * hl_rcu_access_pointer - reads it to compare it, not to follow it
 * hl_rcu_assign_pointer - publishes what is complete
 * hl_rcu_xchg_pointer - the same, and gives what was there
 * hl_rcu_cmpxchg_pointer - publishes if the pointer is *expected, else puts it there; bool
 * @p: the pointer itself, of any type, not its address
 */
#define hl_rcu_dereference(p) __atomic_load_n(&(p), __ATOMIC_ACQUIRE)
#define hl_rcu_access_pointer(p) __atomic_load_n(&(p), __ATOMIC_RELAXED)
#define hl_rcu_assign_pointer(p, value) __atomic_store_n(&(p), (value), __ATOMIC_RELEASE)
#define hl_rcu_xchg_pointer(p, value) __atomic_exchange_n(&(p), (value), __ATOMIC_ACQ_REL)
#define hl_rcu_cmpxchg_pointer(p, expected, value) \
	__atomic_compare_exchange_n(&(p), (expected), (value), 0, __ATOMIC_ACQ_REL, \
				    __ATOMIC_ACQUIRE)

/* ---- Giving away ---- */

/* struct hl_rcu_head - a place in an object for hl_call_rcu(); it need not be initialised */
struct hl_rcu_head {
	struct hl_rcu_head *next;
	void (*func)(struct hl_rcu_head *head);
};

/*
 * hl_call_rcu - runs func(head) after a grace period
 * @head: in the object; left alone until then unless memory is short
 * @func: see below
 *
 * hl_call_rcu_ptr - runs func(ptr) after a grace period; the object has no head
 * hl_free_rcu - free(ptr) after a grace period; NULL is ignored
 *
 * The function runs in the library's helper thread, in the calling CPU's polls, or in the
 * calling thread's next hl_rcu_barrier(): see hl_rcu_invoke_by(). What one thread gives away
 * runs in that order, one at a time (but for what was given while memory was short); what
 * several give may run at once. It may give more away, read, and wait for grace periods; it
 * must not wait for hl_rcu_barrier(). What it takes as a lock must not be held by anybody who
 * waits for it.
 *
 * A thread that frees much of what it allocated is served best by HL_RCU_BY_POLL: free() then
 * fills the cache that its malloc() takes from, where the helper would go against it over
 * the allocator's locks.
 *
 * Usually a few nanoseconds; every few hundred calls it may take memory from the system.
 * When too much waits (hl_rcu_set_marks()) the caller may be slowed, outside its own sections
 * of the general scheme: it sleeps while the backlog shrinks, up to 10 ms if it does not. (Not
 * who runs its calls by polling alone: its polls run the more the more there is.)
 * When there is no memory for a batch, hl_call_rcu() links the heads, and the other two wait
 * for a grace period and run the function themselves.
 *
 * Return 0, or, with nothing done:
 *	-EINVAL		func is NULL
 *	-EDEADLK	no head, no memory, and the caller is in a section or in a callback that
 *			holds a queue up: it cannot wait
 */
HL_API int hl_call_rcu(struct hl_rcu_head *head, void (*func)(struct hl_rcu_head *head));
HL_API int hl_call_rcu_ptr(void *ptr, void (*func)(void *ptr));
HL_API int hl_free_rcu(void *ptr);

/*
 * hl_rcu_invoke_by - who runs what the calling thread gives away from now on
 * @who: HL_RCU_BY_HELPER, HL_RCU_BY_POLL, or both; and perhaps HL_RCU_BY_BARRIER. At first
 *	HL_RCU_BY_HELPER | HL_RCU_BY_BARRIER.
 *
 * HL_RCU_BY_HELPER: the library's thread, which has all signals blocked.
 *
 * HL_RCU_BY_POLL: hl_cpu_poll() and hl_cpu_idle() of the calling CPU, outside functions that were
 * sent to it, some dozens at a time, and its hl_rcu_barrier(); while it sleeps or is offline, the
 * helper. Polls take some nanoseconds more while something waits. Both: whoever comes first.
 *
 * HL_RCU_BY_BARRIER: hl_rcu_barrier(), called by the thread itself, runs what it gave away in place
 * of waiting for the helper to: nothing has to be woken, and a thread that frees what it allocated
 * finds it in the allocator's cache. A lock that the functions take must not be held there
 * in any case. Leave it out if they need much stack, or rely on being called by a thread of
 * the library's.
 *
 * Returns 0; -EINVAL: neither helper nor poll; -ENXIO: by poll, and the thread is not online;
 * -ENOMEM.
 */
#define HL_RCU_BY_HELPER 0x1u
#define HL_RCU_BY_POLL 0x2u
#define HL_RCU_BY_BARRIER 0x4u
HL_API int hl_rcu_invoke_by(unsigned who);

/*
 * hl_rcu_barrier - waits until everything that was given away before has run
 *
 * By any thread, as far as the caller knows of it. Blocks, is no cancellation point. While it
 * waits a CPU serves what is sent to it. What the calling thread gave away it may run itself, see
 * hl_rcu_invoke_by(); what is given meanwhile may run with it.
 *
 * Returns 0; -EDEADLK: in a section of the general scheme, or in a function that
 * hl_call_rcu() runs.
 */
HL_API int hl_rcu_barrier(void);

/* ---- Waiting ---- */

/*
 * hl_synchronize_rcu - waits for a grace period
 * hl_synchronize_rcu_expedited - the same in a hurry: it does not sleep at first
 *
 * Outside sections. A thread that reads by quiescent states is offline meanwhile
 * (hl_rcu_thread_offline()); a CPU serves what is sent to it. Many that wait share the same grace
 * period. No lock is held while they wait.
 *
 * Returns 0; -EDEADLK: in a section of the general scheme.
 */
HL_API int hl_synchronize_rcu(void);
HL_API int hl_synchronize_rcu_expedited(void);

/*
 * hl_get_state_synchronize_rcu - a mark in time
 * hl_start_poll_synchronize_rcu - the same, and a grace period is begun if none is under way
 * hl_poll_state_synchronize_rcu - whether a grace period has passed since the mark
 * hl_cond_synchronize_rcu - waits until one has: returns as hl_synchronize_rcu()
 *
 * Asking helps the grace period along, never waits, and is allowed anywhere, also in
 * sections (where the answer may never become true). A mark is good for years.
 */
HL_API uint64_t hl_get_state_synchronize_rcu(void);
HL_API uint64_t hl_start_poll_synchronize_rcu(void);
HL_API bool hl_poll_state_synchronize_rcu(uint64_t state);
HL_API int hl_cond_synchronize_rcu(uint64_t state);

/* ---- Watching over it ---- */

/*
 * hl_rcu_set_marks - how much may wait
 * @hurry: calls; with more, grace periods are expedited
 * @slow: calls; with more, who gives away is slowed: see hl_call_rcu()
 *
 * Counted by whole batches: each thread's open one may come on top. 0 leaves a mark as it
 * is; at first 20000 and 200000.
 */
HL_API void hl_rcu_set_marks(size_t hurry, size_t slow);

struct hl_rcu_stats {
	uint64_t grace_periods;
	uint64_t broadcasts; /* membarriers: of grace periods that had to reach readers */
	uint64_t backlog; /* calls that were given away and have not run */
	uint64_t invoked; /* calls that have run */
	uint64_t batches; /* batches of memory there are, full and empty */
	uint64_t batch_bytes; /* the memory they take */
	uint64_t wakeups; /* times the helper thread woke */
	uint64_t hurried; /* grace periods that a backlog made hurry */
	uint64_t slowed; /* times a caller was slowed */
	uint64_t linked; /* heads that were linked for want of memory */
};

/* hl_rcu_get_stats - fills *stats: each counter is right at some time during the call */
HL_API void hl_rcu_get_stats(struct hl_rcu_stats *stats);

/* struct hl_rcu_stall - a thread that holds a grace period back */
struct hl_rcu_stall {
	int tid; /* as gettid() there; 0: not known */
	bool quiescent_state; /* it reads by quiescent states and does not give any */
	char name[16]; /* the thread's, as the system knows it; may be empty */
	uint64_t waited_ms; /* since the grace period began */
};

/*
 * hl_rcu_stall_ms - when a grace period that does not end is reported, and to whom
 * @ms: milliseconds, 0: never (as at first); reported again each time as many more passed
 * @report: called in a thread that waits for it, the helper included; may be NULL
 */
HL_API void hl_rcu_stall_ms(unsigned ms, void (*report)(const struct hl_rcu_stall *stall));

HL_END_DECLS

#ifndef __cplusplus
_Static_assert(sizeof(struct hl_rcu_reader) == HL_CACHE_LINE, "readers share no line");
_Static_assert(sizeof(struct hl_rcu_number) == HL_CACHE_LINE, "the number is alone");
#endif

#endif
