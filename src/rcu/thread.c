/* SPDX-License-Identifier: MIT */
/*
 * Threads that read or give away: registering, sections, quiescent states.
 *
 * Locking: `registry` protects the list of free threads and that new ones are linked. It is
 * held for a few instructions, never while anybody waits.
 *
 * Memory ordering
 *
 * RCU_THREAD: a new thread's struct is stored into `threads` with release, after its fields;
 *	grace periods load it with acquire. Without it they walk along what is not there yet.
 *	One that is linked too late for a grace period to see it fences before it reads
 *	(RCU_PARKED), and so does who reads by quiescent states (RCU_RESUME).
 * RCU_PARKED: a reader that finds itself parked counts itself in, fences, and reads. A grace
 *	period fences after the writer's store and looks at the count. Either it sees the
 *	reader counted and has every thread fence, or the reader sees the store. Without
 *	either fence: neither.
 * RCU_RESUME: the same by .quiescent, which the thread sets before its fence.
 * RCU_QUIET: .quiescent is stored with release, after what was read; grace periods load it with
 *	acquire. The number that is stored was loaded with acquire (RCU_NUMBER in gp.c), so what
 *	is read next sees what was before that grace period. No fence is needed.
 */
#include "internal.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Threads for which the system is asked for memory at a time. */
#define CHUNK 16u

__thread struct hl_rcu_reader *hl_priv_rcu_self;

static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;
static struct hl_rcu_thread *_Atomic threads;
static struct hl_rcu_thread *free_threads; /* under registry */
static struct hl_rcu_thread *chunk; /* under registry: memory for so many more */
static unsigned chunk_left;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t leaving; /* its destructor gives the struct of a thread that ends back */
static bool have_key;

struct hl_rcu_thread *hl_rcu_threads(void)
{
	/* RCU_THREAD, pairs with make_thread() */
	return atomic_load_explicit(&threads, memory_order_acquire);
}

/* A function that interrupts the thread may need the lock, too. */
void hl_rcu_threads_lock(void)
{
	hl_local_irq_disable();
	pthread_mutex_lock(&registry);
}

void hl_rcu_threads_unlock(void)
{
	pthread_mutex_unlock(&registry);
	hl_local_irq_enable();
}

/* ---- Coming and going ---- */

static void park(struct hl_rcu_reader *reader)
{
	uint32_t heed = __atomic_load_n(&reader->heed, __ATOMIC_RELAXED);

	if (!heed && !__atomic_exchange_n(&reader->heed, HL_HEED_PARKED, __ATOMIC_SEQ_CST))
		hl_gp_reader_parks();
}

static void thread_ends(void *arg)
{
	struct hl_rcu_thread *self = arg;

	if (self != hl_rcu_self_if_any())
		return; /* of the parent of this process */
	hl_rcu_set_quiescent(false);
	hl_rcu_poll_ends();
	self->by = HL_BY_AT_FIRST;
	/* It may end inside sections. */
	__atomic_store_n(&self->reader.word, 0, __ATOMIC_RELEASE); /* RCU_END */
	park(&self->reader);
	hl_rcu_threads_lock();
	__atomic_store_n(&self->reader.tid, 0, __ATOMIC_RELAXED);
	self->next_free = free_threads;
	free_threads = self;
	hl_priv_rcu_self = NULL;
	hl_rcu_threads_unlock();
}

static void set_up(void)
{
	have_key = hl_rcu_watch_fork() && !pthread_key_create(&leaving, thread_ends);
}

/* From the system and not from malloc(), which the function that reads may have interrupted.
 * Side by side: were each at the beginning of a page, a walk would find all of them in the same
 * few sets of a cache. */
static struct hl_rcu_thread *take_memory(void)
{
	struct hl_rcu_thread *taken;

	if (!chunk_left) {
		taken = mmap(NULL, CHUNK * sizeof(*taken), PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (taken == MAP_FAILED)
			return NULL;
		chunk = taken;
		chunk_left = CHUNK;
		taken->is_chunk = true;
	}
	chunk_left--;
	return chunk++;
}

static struct hl_rcu_thread *make_thread(void)
{
	struct hl_rcu_thread *made = take_memory();

	if (!made)
		return NULL;
	made->reader.heed = HL_HEED_PARKED;
#if !defined(__SANITIZE_THREAD__) /* which knows nothing of membarrier */
	if (!hl_barrier_usable())
#endif
		made->reader.heed = HL_HEED_FENCE;
	made->by = HL_BY_AT_FIRST;
	hl_queue_init(&made->queue[0]);
	hl_queue_init(&made->queue[1]);
	made->next = atomic_load_explicit(&threads, memory_order_relaxed);
	/* RCU_THREAD, pairs with hl_rcu_threads() */
	atomic_store_explicit(&threads, made, memory_order_release);
	return made;
}

static struct hl_rcu_thread *take_thread(void)
{
	struct hl_rcu_thread *taken;

	hl_rcu_threads_lock();
	taken = free_threads;
	if (taken)
		free_threads = taken->next_free;
	else
		taken = make_thread();
	hl_rcu_threads_unlock();
	return taken;
}

static void give_thread(struct hl_rcu_thread *thread)
{
	hl_rcu_threads_lock();
	thread->next_free = free_threads;
	free_threads = thread;
	hl_rcu_threads_unlock();
}

struct hl_rcu_thread *hl_rcu_self(void)
{
	struct hl_rcu_thread *self = hl_rcu_self_if_any();

	if (__builtin_expect(self != NULL, 1))
		return self;
	pthread_once(&once, set_up);
	if (!have_key)
		return NULL;
	self = take_thread();
	if (!self)
		return NULL;
	if (pthread_setspecific(leaving, self)) {
		give_thread(self);
		return NULL;
	}
	__atomic_store_n(&self->reader.tid, (int32_t)syscall(SYS_gettid), __ATOMIC_RELAXED);
	hl_priv_rcu_self = &self->reader;
	return self;
}

/* ---- Sections that do not go by the inline path ---- */

/* Those who could not be registered read as one, with an atomic operation each. */
static _Atomic(uint64_t) crowd;
static __thread unsigned in_crowd; /* sections of the calling thread in it */

bool hl_rcu_crowd_reads(void)
{
	return atomic_load_explicit(&crowd, memory_order_acquire);
}

void hl_priv_rcu_heed(struct hl_rcu_reader *reader)
{
	if (__atomic_load_n(&reader->heed, __ATOMIC_RELAXED) == HL_HEED_PARKED &&
	    __atomic_exchange_n(&reader->heed, 0, __ATOMIC_SEQ_CST) == HL_HEED_PARKED)
		hl_gp_reader_wakes();
	hl_fence(); /* RCU_PARKED and RCU_READER, pair with begin() in gp.c */
}

void hl_priv_rcu_first_lock(void)
{
	if (!in_crowd && hl_rcu_self()) {
		hl_rcu_read_lock();
		return;
	}
	in_crowd++;
	atomic_fetch_add_explicit(&crowd, 1, memory_order_seq_cst);
	hl_fence(); /* RCU_READER, pairs with begin() in gp.c */
}

void hl_priv_rcu_last_unlock(void)
{
	in_crowd--;
	/* RCU_END, pairs with hl_rcu_crowd_reads() */
	atomic_fetch_sub_explicit(&crowd, 1, memory_order_release);
}

bool hl_rcu_in_section(void)
{
	return in_crowd || (hl_priv_rcu_self && hl_priv_rcu_self->word & HL_PRIV_RCU_NEST);
}

bool hl_rcu_read_lock_held(void)
{
	return hl_rcu_in_section() || (hl_priv_rcu_self && hl_priv_rcu_self->quiescent);
}

/* ---- Quiescent states ---- */

void hl_rcu_announce(struct hl_rcu_thread *self)
{
	/* RCU_NUMBER, pairs with gp.c */
	uint64_t word = __atomic_load_n(&hl_priv_rcu_number.word, __ATOMIC_ACQUIRE);

	if (word != self->reader.quiescent)
		/* RCU_QUIET, pairs with passed() in gp.c */
		__atomic_store_n(&self->reader.quiescent, word, __ATOMIC_RELEASE);
}

void hl_rcu_rest(struct hl_rcu_thread *self)
{
	/* RCU_QUIET, pairs with passed() in gp.c */
	__atomic_store_n(&self->reader.quiescent, 0, __ATOMIC_RELEASE);
}

void hl_rcu_resume(struct hl_rcu_thread *self)
{
	if (!self->quiescent || self->offline)
		return;
	hl_rcu_announce(self);
	hl_fence(); /* RCU_RESUME, pairs with begin() in gp.c */
}

void hl_rcu_quiescent_state(void)
{
	struct hl_rcu_thread *self = hl_rcu_self_if_any();

	if (self && self->reader.quiescent)
		hl_rcu_announce(self);
}

void hl_rcu_thread_offline(void)
{
	struct hl_rcu_thread *self = hl_rcu_self_if_any();

	if (!self || !self->quiescent)
		return;
	self->offline = true;
	hl_rcu_rest(self);
}

void hl_rcu_thread_online(void)
{
	struct hl_rcu_thread *self = hl_rcu_self_if_any();

	if (!self || !self->offline)
		return;
	self->offline = false;
	hl_rcu_resume(self);
}

/* ---- Fork, unloading ---- */

bool hl_rcu_others(void)
{
	HL_FOR_EACH_RCU_THREAD(t)
	if (t != hl_rcu_self_if_any() && __atomic_load_n(&t->reader.tid, __ATOMIC_RELAXED))
		return true;
	return false;
}

/* All but the calling thread are gone, and their sections with them. */
void hl_rcu_threads_forked(void)
{
	const struct hl_rcu_thread *self = hl_rcu_self_if_any();

	free_threads = NULL;
	atomic_store_explicit(&crowd, in_crowd, memory_order_relaxed);
	HL_FOR_EACH_RCU_THREAD(t)
	{
		t->reader.quiescent = 0;
		t->quiescent = t->offline = false;
		t->by = t == self && t->by & HL_RCU_BY_HELPER ? t->by & ~HL_RCU_BY_POLL
							      : HL_BY_AT_FIRST;
		if (t == self) {
			t->reader.tid = (int32_t)syscall(SYS_gettid);
			continue;
		}
		t->reader.word = 0;
		park(&t->reader);
		t->reader.tid = 0;
		t->next_free = free_threads;
		free_threads = t;
	}
}

void hl_rcu_threads_unload(void)
{
	struct hl_rcu_thread *next;

	struct hl_rcu_thread *t = hl_rcu_threads();

	if (have_key)
		pthread_key_delete(leaving);
	have_key = false;
	if (hl_rcu_others())
		return; /* they may go on: this is the end of the program */
	hl_priv_rcu_self = NULL;
	free_threads = NULL;
	chunk_left = 0;
	atomic_store_explicit(&threads, NULL, memory_order_relaxed);
	for (; t; t = next) {
		next = t->next;
		hl_batch_unload_queue(&t->queue[0]);
		hl_batch_unload_queue(&t->queue[1]);
		/* The last to be linked are the first here: the others of its chunk were. */
		if (t->is_chunk)
			munmap(t, CHUNK * sizeof(*t));
	}
	hl_batch_unload();
}
