// SPDX-License-Identifier: MIT
/*
 * Pages that many threads share: each says so in a line of its own, and none writes the
 * frame's word.
 *
 * A share is one more in the word at first: atomic operations on a line that is seldom in the
 * first cache and often another CPU's. What that costs more than a line of one's own is added
 * up in the frame, and when it has come to what it costs to read a line of each thread, the
 * page is spread: from then on who shares it writes the frame's number into its own pins, and
 * looks at the word. Who wants the page for itself has to read the pins of all threads, a
 * line each, and makes the page one that is counted in its word again. So that has been paid
 * for before, and a page costs twice what the better of the two ways would have cost, at
 * most, with 2 threads or with 256. A page that is written as often as it is read is
 * hardly ever spread; one that is only read is spread soon and for good.
 *
 * The idea of readers that are visible in a table of their own until a writer revokes it is
 * BRAVO's (Dice and Kogan, 2019). There the table is the process's and hashed, so that two readers
 * may meet in a slot; here each thread has a line, which also tells who holds what.
 *
 * A thread whose pins are all in use counts in the word, as everybody may at any time.
 *
 * Memory ordering
 *
 * FRAME_PIN: hl_pin() exchanges a pin, then loads the word; hl_frame_gather() is called after
 *	EXCL was set by an exchange of the word, and then loads all pins. All four are
 *	sequentially consistent, so one of the two sees the other: the reader EXCL, and takes
 *	its pin back, or the other the pin, and takes EXCL back. Otherwise a page is changed
 *	or evicted under a reader. The page's number is compared after the word was loaded: a
 *	frame that got another page before is not mistaken. A pin is taken out with release (by
 *	a stronger operation), and the load of it in hl_frame_gather() acquires: what
 *	the reader has read of the page comes before what is then written to it.
 *	A thread that is new is in .locals before it has a pin, both sequentially consistent.
 *
 * FRAME_PIN_WAIT: hl_pins_wait() sets WAITERS in the word, then looks at the pins again before
 *	it sleeps; who takes a pin out loads the word after that. All four are sequentially
 *	consistent. Otherwise a thread sleeps and nobody wakes it.
 *
 * FRAME_STARVE: see lock.c; the pin is in the place of the word.
 */
#include "pagecache/internal.h"

#include <errno.h>

bool hl_pins_have(const struct hl_pagecache *cache, const struct hl_frame *frame)
{
	uint32_t pinned = hl_frame_number(cache, frame) + 1;

	/* FRAME_PIN, pairs with hl_pin() */
	for (struct hl_local *local = atomic_load_explicit(&cache->locals, memory_order_seq_cst);
	     local; local = local->next_of_cache) {
		for (unsigned i = 0; i < HL_PINS; i++) {
			if (atomic_load_explicit(&local->pin[i], memory_order_seq_cst) == pinned)
				return true;
		}
	}
	return false;
}

bool hl_pin_has(const struct hl_local *local, uint32_t frame)
{
	for (uint32_t i = atomic_load_explicit(&local->n_pins, memory_order_relaxed); i--;) {
		if (atomic_load_explicit(&local->pin[i], memory_order_relaxed) == frame + 1)
			return true;
	}
	return false;
}

bool hl_pin_remove(struct hl_local *local, uint32_t frame)
{
	uint32_t n = atomic_load_explicit(&local->n_pins, memory_order_relaxed);

	for (uint32_t i = n; i--;) {
		if (hl_pin_clear(local, i, frame)) {
			hl_pins_trim(local, n);
			return true;
		}
	}
	return false;
}

bool hl_pin_remove_any(struct hl_pagecache *cache, uint32_t frame)
{
	bool removed = false;

	pthread_mutex_lock(&hl_pc_registry);
	for (struct hl_local *local = hl_locals_of(cache); local && !removed;
	     local = local->next_of_cache) {
		for (uint32_t i = 0; i < HL_PINS && !removed; i++)
			removed = hl_pin_clear(local, i, frame);
		if (removed && !local->thread)
			hl_pins_trim(local, HL_PINS);
	}
	pthread_mutex_unlock(&hl_pc_registry);
	return removed;
}

void hl_unpin(struct hl_pagecache *cache, struct hl_local *local, struct hl_frame *frame)
{
	hl_pin_remove(local, hl_frame_number(cache, frame));
	hl_frame_released(cache, frame);
}

void hl_frame_spread(struct hl_frame *frame)
{
	/* Nobody has it exclusively, for the caller has a share. */
	atomic_fetch_or_explicit(&frame->word, HL_FRAME_SPREAD, memory_order_relaxed);
}

/* Waits for nobody: pins that come and see EXCL are taken back, and count like others. */
bool hl_frame_gather(struct hl_pagecache *cache, struct hl_frame *frame)
{
	uint64_t was;

	if (!hl_pins_have(cache, frame)) {
		atomic_store_explicit(&frame->paid, 0, memory_order_relaxed);
		atomic_fetch_and_explicit(&frame->word, ~HL_FRAME_SPREAD, memory_order_relaxed);
		return true;
	}
	/* The data and the page are what they were, so the version does not go up. */
	was = atomic_fetch_and_explicit(&frame->word, ~(HL_FRAME_EXCL | HL_FRAME_EVICTING),
					memory_order_seq_cst);
	if (was & HL_FRAME_WAITERS)
		hl_frame_wake(frame);
	return false;
}

int hl_frame_try_spread(struct hl_pagecache *cache, struct hl_frame *frame, uint64_t page,
			uint64_t mark)
{
	uint64_t word = atomic_load_explicit(&frame->word, memory_order_acquire), next;

	if ((word & (HL_FRAME_RESIDENT | HL_FRAME_SPREAD | HL_FRAME_EXCL | HL_FRAME_WANT |
		     HL_FRAME_COUNT)) != (HL_FRAME_RESIDENT | HL_FRAME_SPREAD))
		return -EAGAIN;
	if (hl_frame_page(frame) != page)
		return -ESTALE;
	/* Those who read it are not disturbed for nothing. */
	if (hl_pins_have(cache, frame))
		return -EAGAIN;
	/* EVICTING: nobody is to take it for a page that somebody has fixed. */
	next = hl_frame_used(word, mark) | HL_FRAME_EXCL | HL_FRAME_EVICTING;
	/* FRAME_PIN, pairs with hl_pin() */
	if (!atomic_compare_exchange_strong_explicit(&frame->word, &word, next,
						     memory_order_seq_cst, memory_order_relaxed) ||
	    !hl_frame_gather(cache, frame))
		return -EAGAIN;
	atomic_fetch_and_explicit(&frame->word, ~HL_FRAME_EVICTING, memory_order_relaxed);
	/* FRAME_VALID, see lock.c */
	hl_pc_fence(memory_order_release);
	return 0;
}

void hl_pins_wait(struct hl_pagecache *cache, struct hl_frame *frame, uint64_t word)
{
	uint64_t next = word | HL_FRAME_WAITERS | HL_FRAME_WANT;

	/* FRAME_PIN_WAIT, pairs with hl_frame_released() */
	if (!atomic_compare_exchange_strong_explicit(&frame->word, &word, next,
						     memory_order_seq_cst, memory_order_relaxed))
		return;
	if (hl_pins_have(cache, frame))
		hl_frame_wait(frame, next, HL_FRAME_WANT);
	else
		hl_frame_wake(frame); /* itself, and who waits with it */
}
