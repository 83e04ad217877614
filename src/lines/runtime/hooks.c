// SPDX-License-Identifier: MIT
/*
 * What the compilers call at each access and each function: the names are theirs.
 */
#include "runtime.h"

/* Each is what a compiler calls and nobody declares. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

HOOK void __tsan_init(void)
{
	hl_ready();
}

#define ACCESSES(size) \
	HOOK void __tsan_read##size(void *at) \
	{ \
		hl_access((uintptr_t)at, size, 0, CALLER); \
	} \
	HOOK void __tsan_write##size(void *at) \
	{ \
		hl_access((uintptr_t)at, size, HL_RAW_WRITE, CALLER); \
	} \
	HOOK void __tsan_read_write##size(void *at) \
	{ \
		hl_access((uintptr_t)at, size, HL_RAW_WRITE | HL_RAW_RMW, CALLER); \
	} \
	HOOK void __tsan_unaligned_read##size(void *at) \
	{ \
		hl_access((uintptr_t)at, size, 0, CALLER); \
	} \
	HOOK void __tsan_unaligned_write##size(void *at) \
	{ \
		hl_access((uintptr_t)at, size, HL_RAW_WRITE, CALLER); \
	} \
	HOOK void __tsan_unaligned_read_write##size(void *at) \
	{ \
		hl_access((uintptr_t)at, size, HL_RAW_WRITE | HL_RAW_RMW, CALLER); \
	} \
	HOOK void __tsan_volatile_read##size(void *at) \
	{ \
		hl_access((uintptr_t)at, size, 0, CALLER); \
	} \
	HOOK void __tsan_volatile_write##size(void *at) \
	{ \
		hl_access((uintptr_t)at, size, HL_RAW_WRITE, CALLER); \
	} \
	HOOK void __tsan_unaligned_volatile_read##size(void *at) \
	{ \
		hl_access((uintptr_t)at, size, 0, CALLER); \
	} \
	HOOK void __tsan_unaligned_volatile_write##size(void *at) \
	{ \
		hl_access((uintptr_t)at, size, HL_RAW_WRITE, CALLER); \
	}

ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

HOOK void __tsan_read_range(void *at, unsigned long size)
{
	hl_self.accesses++;
	hl_access_slow((uintptr_t)at, size, 0, CALLER);
}

HOOK void __tsan_write_range(void *at, unsigned long size)
{
	hl_self.accesses++;
	hl_access_slow((uintptr_t)at, size, HL_RAW_WRITE, CALLER);
}

/* An object gets its table of virtual functions, or loses it. */
HOOK void __tsan_vptr_update(void **at, void *value)
{
	(void)value;
	hl_access((uintptr_t)at, sizeof(void *), HL_RAW_WRITE, CALLER);
}

HOOK void __tsan_vptr_read(void **at)
{
	hl_access((uintptr_t)at, sizeof(void *), 0, CALLER);
}

/* ---- Functions. ---- */

/* Frames that were left by a jump are still there: they lie below the one that begins. */
static void drop_left(struct call *first, uintptr_t sp)
{
	while (hl_self.top > first && hl_self.top[-1].sp <= sp)
		hl_self.top--;
}

static void enter_slow(struct thread *thread, uintptr_t in)
{
	if (thread->n_first < HL_RAW_FRAMES)
		thread->raw.first[thread->n_first++] = in;
}

HOOK void __tsan_func_entry(void *returns_to)
{
	uintptr_t sp = (uintptr_t)__builtin_frame_address(0);
	struct thread *thread = hl_self.thread;

	if (unlikely(!thread)) {
		thread = hl_self.busy ? NULL : hl_thread();
		if (!thread)
			return;
	}
	if (unlikely(thread->n_first < HL_RAW_FRAMES))
		enter_slow(thread, CALLER);
	if (unlikely(hl_self.top > thread->calls && hl_self.top[-1].sp <= sp))
		drop_left(thread->calls, sp);
	/* Deeper calls than that are not told apart. */
	if (likely(hl_self.top < thread->calls + MAX_CALLS - 1))
		*hl_self.top++ =
			(struct call){ (uintptr_t)returns_to, CALLER, sp, *(uintptr_t *)sp };
}

HOOK void __tsan_func_exit(void)
{
	struct thread *thread = hl_self.thread;

	if (likely(thread && hl_self.top > thread->calls &&
		   hl_self.top[-1].sp <= (uintptr_t)__builtin_frame_address(0)))
		hl_self.top--;
}

HOOK void __tsan_ignore_thread_begin(void)
{
}

HOOK void __tsan_ignore_thread_end(void)
{
}
