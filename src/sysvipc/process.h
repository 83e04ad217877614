/* SPDX-License-Identifier: MIT */
/*
 * Who we are, and whether somebody else still lives.
 *
 * A process is named by its pid and the time at which it began, so that a pid that is used again
 * is another process; the name stays the same over exec. Pids only mean something in one pid
 * namespace, whose number each object holds (object.h).
 *
 * A thread that holds a lock or sleeps says so to the kernel: the field of the robust list that
 * glibc uses while it takes a robust mutex (list_op_pending) leads to the word, which holds the
 * thread's id. When the thread ends, however it ends, exec of another thread included, the kernel
 * sets FUTEX_OWNER_DIED in that word before anybody can wait for the process. Only the address of
 * the word is in this process's own memory, so that nobody else can lead the kernel astray.
 * Where there is no robust list, or a signal handler has used the field meanwhile, the dead are
 * found by looking for them (hl_ipc_alive, hl_ipc_thread_alive).
 */
#ifndef HL_SYSVIPC_PROCESS_H
#define HL_SYSVIPC_PROCESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <linux/futex.h>

#include <hotline/cacheline.h>

#include "sys.h"

/* On a page that is zeroed in the child of a fork; in vfork's child it is the parent's. */
struct hl_ipc_self {
	/* Written once in each process, by hl_ipc_self_renew(); read by every operation. */
	_Atomic(int32_t) pid; /* 0: not known yet */
	int32_t cpus; /* processors that this process may use */
	uint64_t start; /* in clock ticks since boot; 0: there is no /proc */
	uint64_t pid_namespace; /* its inode; 0: not known */

	/* A lock over this process's own tables, held by the thread with this id. */
	_Atomic(int32_t) lock HL_CACHELINE_ALIGNED;
};
HL_CACHELINE_ASSERT_APART(struct hl_ipc_self, pid, lock);

extern struct hl_ipc_self *hl_ipc_self_page;

/* Fills the page in. Any number of threads may come at once. */
const struct hl_ipc_self *hl_ipc_self_renew(void);

static inline const struct hl_ipc_self *hl_ipc_self(void)
{
	const struct hl_ipc_self *self = hl_ipc_self_page;

	/* SELF_KNOWN, pairs with hl_ipc_self_renew(): what is beside the pid was written first. */
	if (__builtin_expect(atomic_load_explicit(&self->pid, memory_order_acquire) != 0, 1))
		return self;
	return hl_ipc_self_renew();
}

/* The calling thread, as its process knows it. */
struct hl_ipc_thread {
	int32_t pid; /* whose thread this was when the rest was written */
	int32_t tid;
	struct robust_list_head *robust; /* or NULL: there is none */
	const void *held; /* the lock that this thread holds, or NULL: see lock.h */
};
extern _Thread_local struct hl_ipc_thread hl_ipc_this_thread
	__attribute__((tls_model("initial-exec")));

void hl_ipc_thread_renew(struct hl_ipc_thread *thread, int32_t pid);

static inline struct hl_ipc_thread *hl_ipc_thread(void)
{
	struct hl_ipc_thread *thread = &hl_ipc_this_thread;
	int32_t pid = atomic_load_explicit(&hl_ipc_self()->pid, memory_order_relaxed);

	if (__builtin_expect(thread->pid != pid, 0))
		hl_ipc_thread_renew(thread, pid);
	return thread;
}

/*
 * hl_ipc_vouch - from now on the kernel marks @word if this thread ends
 *
 * The word holds the thread's id (with FUTEX_WAITERS: one that waits for it is woken as well) or
 * will soon. Return: what was vouched for before, to be given to hl_ipc_unvouch().
 */
static inline void *hl_ipc_vouch(struct hl_ipc_thread *thread, _Atomic(uint32_t) *word)
{
	struct robust_list_head *robust = thread->robust;
	void *before;

	if (!robust)
		return NULL;
	before = robust->list_op_pending;
	*(volatile void **)&robust->list_op_pending = (char *)word - robust->futex_offset;
	atomic_signal_fence(memory_order_seq_cst);
	return before;
}

static inline void hl_ipc_unvouch(struct hl_ipc_thread *thread, void *before)
{
	atomic_signal_fence(memory_order_seq_cst);
	if (thread->robust)
		*(volatile void **)&thread->robust->list_op_pending = before;
}

/*
 * hl_ipc_alive - does the process with this pid, which began at @start, still live?
 *
 * A process that has ended and not been waited for does not. @start 0: any process with the pid.
 * Makes system calls. Both numbers may be anything.
 */
bool hl_ipc_alive(int32_t pid, uint64_t start);

/* The same for one thread, of whatever process. */
bool hl_ipc_thread_alive(int32_t tid);

/* Over this process's own tables, never held while sleeping. Not for signal handlers. */
void hl_ipc_self_lock(void);
void hl_ipc_self_unlock(void);

#endif
