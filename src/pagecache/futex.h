/* SPDX-License-Identifier: MIT */
/*
 * Sleeping, spinning and fences.
 */
#ifndef HL_PAGECACHE_FUTEX_H
#define HL_PAGECACHE_FUTEX_H

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Sleeps while *word is value, for the time given at most; NULL: without end. */
static inline void hl_futex_wait(uint32_t *word, uint32_t value, const struct timespec *timeout)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, timeout, NULL, 0);
}

static inline void hl_futex_wake(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static inline void hl_pc_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb" ::: "memory");
#endif
}

/* ThreadSanitizer knows no fences; what they order here are data that it is not shown. */
#if defined(__SANITIZE_THREAD__)
#define hl_pc_fence(order) atomic_signal_fence(order)
#else
#define hl_pc_fence(order) atomic_thread_fence(order)
#endif

#endif
