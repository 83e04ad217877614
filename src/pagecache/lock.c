// SPDX-License-Identifier: MIT
/*
 * The word of a frame as a lock, and sleeping on it.
 *
 * Memory ordering
 *
 * FRAME_LOCK: who lets go of a frame changes the word with release, who takes it does so with
 *	acquire. Without it the next who has the page does not see what the last one wrote, or
 *	writes to it while the last one still reads.
 * FRAME_VALID: who takes a frame exclusively executes a release fence before it writes to the
 *	data; hl_page_read_valid() executes an acquire fence between reading the data and
 *	loading the word again. A reader that saw anything of what was written therefore sees
 *	EXCL, or the version that came with the end of it. Without the fences the data may
 *	change before the word does, and a reader takes half a change for the page.
 *
 * The page that a frame holds changes only while it is held exclusively, and the version goes
 * up with it. So a page that is read between loading the word and exchanging it is the page
 * of that word.
 *
 * FRAME_STARVE: who finds every frame fixed counts itself into .starving and looks at all
 *	words again before it sleeps; who lets go changes the word, then looks at .starving.
 *	All four are sequentially consistent, so one of them sees the other. Otherwise a
 *	thread sleeps beside a free frame until its time is up.
 *
 * Sleeping: who wants to sleep sets WAITERS in the word that it saw, and sleeps on the
 * lower half of it. Who lets go sees the bit in the word that it has changed, clears it and
 * wakes all. If the word changed before the bit was set, the exchange fails and nobody
 * sleeps.
 */
#include "pagecache/internal.h"

#include <errno.h>

/* Looks at the word before sleeping: most hold a page for less than going to sleep costs. */
#define SPINS 64

static uint32_t *gate(struct hl_frame *frame)
{
	return (uint32_t *)&frame->word + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

void hl_frame_wake(struct hl_frame *frame)
{
	atomic_fetch_and_explicit(&frame->word, ~(HL_FRAME_WAITERS | HL_FRAME_WANT),
				  memory_order_relaxed);
	hl_futex_wake(gate(frame));
}

void hl_frame_wake_starving(struct hl_pagecache *cache)
{
	atomic_fetch_add_explicit(&cache->released, 1, memory_order_seq_cst);
	hl_futex_wake((uint32_t *)&cache->released);
}

/* FRAME_STARVE, pairs with wait_for_any() in frames.c */
static void tell_the_starving(struct hl_pagecache *cache)
{
	if (__builtin_expect(atomic_load_explicit(&cache->starving, memory_order_seq_cst), 0))
		hl_frame_wake_starving(cache);
}

void hl_frame_unshare(struct hl_pagecache *cache, struct hl_frame *frame, uint64_t less)
{
	/* FRAME_LOCK, pairs with hl_frame_try() */
	uint64_t was = atomic_fetch_sub_explicit(&frame->word, 1 + less, memory_order_seq_cst);

	uint64_t count = was & HL_FRAME_COUNT;

	/* The last goes, or room has come for one more. */
	if (__builtin_expect(was & HL_FRAME_WAITERS, 0) &&
	    (less || count == 1 || count == HL_FRAME_COUNT))
		hl_frame_wake(frame);
	tell_the_starving(cache);
}

void hl_frame_unlock(struct hl_pagecache *cache, struct hl_frame *frame, uint64_t less,
		     uint64_t more)
{
	/* FRAME_LOCK, pairs with hl_frame_try(); a sum, for others set bits meanwhile */
	uint64_t was = atomic_fetch_add_explicit(
		&frame->word, HL_FRAME_VERSION + more - HL_FRAME_EXCL - less, memory_order_seq_cst);

	if (__builtin_expect(was & HL_FRAME_WAITERS, 0))
		hl_frame_wake(frame);
	tell_the_starving(cache);
}

void hl_frame_fill(struct hl_frame *frame)
{
	uint64_t was =
		atomic_fetch_or_explicit(&frame->word, HL_FRAME_RESIDENT, memory_order_release);

	/* Not only who waits for the page: also who waits for any frame to be read. */
	if (was & HL_FRAME_WAITERS)
		hl_frame_wake(frame);
}

void hl_frame_wait(struct hl_frame *frame, uint64_t word, uint64_t mark)
{
	mark |= HL_FRAME_WAITERS;
	if ((word & mark) != mark &&
	    !atomic_compare_exchange_strong_explicit(&frame->word, &word, word | mark,
						     memory_order_relaxed, memory_order_relaxed))
		return;
	hl_futex_wait(gate(frame), (uint32_t)(word | mark), NULL);
}

/* A thread that has the page shared gets another share also when somebody wants it
 * exclusively: that one waits for this thread. */
static int share_again(struct hl_frame *frame, uint64_t word, uint64_t mark)
{
	if ((word & (HL_FRAME_RESIDENT | HL_FRAME_EXCL)) != HL_FRAME_RESIDENT ||
	    (word & HL_FRAME_COUNT) == HL_FRAME_COUNT)
		return -EAGAIN;
	return atomic_compare_exchange_strong_explicit(&frame->word, &word,
						       hl_frame_used(word, mark) + 1,
						       memory_order_acquire, memory_order_relaxed)
		       ? 0
		       : -EAGAIN;
}

int hl_frame_lock(struct hl_pagecache *cache, struct hl_local *local, struct hl_frame *frame,
		  uint64_t page, unsigned how, uint64_t mark)
{
	bool pinned = hl_pin_has(local, hl_frame_number(cache, frame));
	bool mine = pinned || hl_held_has(local, hl_frame_number(cache, frame));

	for (unsigned spins = 0;; spins++) {
		int rc = hl_frame_try(frame, page, how, mark);
		uint64_t word;

		if (rc != -EAGAIN)
			return rc;
		word = atomic_load_explicit(&frame->word, memory_order_acquire);
		if (mine) {
			/* EXCL beside a pin is of somebody who is about to see the pin. */
			if ((how & HL_PAGE_EXCLUSIVE) || (word & HL_FRAME_EXCL && !pinned))
				return -EDEADLK;
			/* All there can be, and this thread does not go as long as it waits. */
			if ((word & HL_FRAME_COUNT) == HL_FRAME_COUNT)
				return -EDEADLK;
			if (!share_again(frame, word, mark))
				return 0;
		}
		if (how & HL_PAGE_EXCLUSIVE && word & HL_FRAME_SPREAD) {
			rc = hl_frame_try_spread(cache, frame, page, mark);
			if (rc != -EAGAIN)
				return rc;
			word = atomic_load_explicit(&frame->word, memory_order_acquire);
		}
		if (!(word & (HL_FRAME_RESIDENT | HL_FRAME_EXCL)))
			return -ESTALE;
		if (how & HL_PAGE_TRY)
			return -EAGAIN;
		if (hl_frame_page(frame) != page)
			return -ESTALE;
		if (spins < SPINS && !(word & HL_FRAME_WRITING) && (word & HL_FRAME_RESIDENT))
			hl_pc_relax();
		else if (word & (HL_FRAME_EXCL | HL_FRAME_COUNT))
			hl_frame_wait(frame, word, how & HL_PAGE_EXCLUSIVE ? HL_FRAME_WANT : 0);
		else if (how & HL_PAGE_EXCLUSIVE && word & HL_FRAME_SPREAD)
			hl_pins_wait(cache, frame, word);
	}
}
