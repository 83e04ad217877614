/* SPDX-License-Identifier: MIT */
/*
 * The sender's side of a queue.
 *
 * Memory ordering
 *
 * CALL_MESSAGE: the sender stores .info, then .word with release; receive.c loads .word with
 *	acquire. Without it the target runs a function on what the pointer led to before.
 * CALL_ROOM: receive.c stores .head with release after it has read a message; the sender
 *	loads it with acquire before it writes that slot again. Without it a message is
 *	overwritten while it is read.
 * CALL_ATTENTION: the sender stores .word, then loads .attention. The two may pass each other
 *	in the sender's store buffer; the target, which stores .attention, has every thread
 *	fence before it relies on it (CPU_HOW in cpu.c). A sender that is told to fence does
 *	so and looks again.
 * CALL_LAST: a target that leaves takes each last message with a compare-and-swap on .word, and a
 *	sender that sees it gone takes its message back with another: one of them wins. The
 *	sender looks at hl_cpu.how as well as at .attention, since a target that left before
 *	it saw the new queue has not marked it; and it holds the id free meanwhile (CPU_KICK),
 *	since the next owner takes messages without a compare-and-swap:
 *
 *		sender				the next owner of the id
 *		stores .word
 *		sees that the CPU is gone
 *						comes online, finds the message
 *		takes it back: -ENXIO		runs it
 */
#include "ring.h"

#include <errno.h>
#include <sched.h>
#include <sys/mman.h>

/* Spins before the processor is given to somebody else, who may be the target. */
#define SPINS 2000
/* Queues for which room is asked of the system at once; what is not used is not touched. */
#define SPARE_RINGS 32u

static void begin_at(struct hl_ring *ring, uint64_t position)
{
	atomic_init(&ring->head, position);
	ring->tail = ring->head_seen = ring->lost = position;
	for (unsigned i = 0; i < HL_WORD_DEPTHS; i++)
		atomic_init(&ring->answer[i], position - 1);
}

/* Room for queues, zeroed. From the system and not from malloc(): the function that sends may
 * have interrupted malloc(). */
static struct hl_ring *map_rings(unsigned n)
{
	void *rings = mmap(NULL, n * sizeof(struct hl_ring), PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return rings == MAP_FAILED ? NULL : rings;
}

/* Room for a queue of the calling CPU's. */
static struct hl_ring *take_spare(struct hl_inbox *inbox)
{
	if (!inbox->n_spare) {
		inbox->spare = map_rings(SPARE_RINGS);
		if (!inbox->spare)
			return NULL;
		inbox->n_spare = SPARE_RINGS;
	}
	return &inbox->spare[--inbox->n_spare];
}

/* The id may have had a queue before its thread: it is the same one. */
static struct hl_ring *find_or_make(struct hl_cpu *me, int sender, struct hl_cpu *target)
{
	struct hl_inbox *inbox = hl_inbox_of(target);
	struct hl_ring *ring = atomic_load_explicit(&inbox->in[sender], memory_order_acquire);

	if (ring)
		return ring;
	ring = me ? take_spare(hl_inbox_of(me)) : map_rings(1);
	if (!ring)
		return NULL;
	begin_at(ring, HL_RING_START);
	/* Until the target has seen it, it hears of it by the bell alone. */
	atomic_init(&ring->attention, HL_ATTENTION_BELL | HL_ATTENTION_FENCE);
	ring->sender = sender;
	ring->target = target;
	/* CALL_QUEUE, pairs with receive.c's loads of in[]: the fields come first. */
	atomic_store_explicit(&inbox->in[sender], ring, memory_order_release);
	return ring;
}

struct hl_ring *hl_ring_get(struct hl_cpu *me, struct hl_cpu *target,
			    struct hl_ring *_Atomic *place)
{
	struct hl_ring *ring = atomic_load_explicit(place, memory_order_acquire);

	if (__builtin_expect(ring != NULL, 1))
		return ring;
	/* A function that interrupts this one may send the first message to the same CPU. */
	if (me)
		hl_irq_disable(me);
	ring = find_or_make(me, me ? me->id : HL_SENDER_FOREIGN, target);
	if (ring)
		atomic_store_explicit(place, ring, memory_order_release);
	if (me)
		hl_irq_enable(me);
	return ring;
}

static void ring_bell(struct hl_ring *ring)
{
	struct hl_inbox *inbox = hl_inbox_of(ring->target);
	int word = ring->sender / 64;

	if (ring->sender == HL_SENDER_FOREIGN) {
		atomic_store_explicit(&inbox->foreign_rang, 1, memory_order_seq_cst);
		return;
	}
	/* In this order, and the target takes them in the other: CALL_BELL. */
	atomic_fetch_or_explicit(&inbox->bell[word], (uint64_t)1 << ring->sender % 64,
				 memory_order_seq_cst);
	atomic_fetch_or_explicit(&inbox->summary, (uint64_t)1 << word, memory_order_seq_cst);
}

/* Takes a message back that nobody has taken out; false: it has run or will. */
static bool cancel(struct hl_ring *ring, uint64_t position)
{
	struct hl_slot *slot = hl_slot_of(ring, position);
	uint64_t word = atomic_load_explicit(&slot->word, memory_order_relaxed);

	HL_DELAY(cancel);
	/* It took it while it was online still. */
	if (hl_is_behind(atomic_load_explicit(&ring->head, memory_order_acquire), position))
		return false;
	/* CALL_LAST, pairs with claim() in receive.c */
	return word & HL_WORD_FUNC &&
	       atomic_compare_exchange_strong_explicit(&slot->word, &word, word & HL_WORD_LAP,
						       memory_order_acq_rel, memory_order_relaxed);
}

static bool is_gone(const struct hl_cpu *target)
{
	return atomic_load_explicit(&target->how, memory_order_acquire) & HL_HOW_OFFLINE;
}

/* The target is gone, or was a moment ago; *rc as hl_ring_send() returns it. false: somebody
 * has come online with its id. */
static bool take_back(struct hl_ring *ring, uint64_t position, int *rc)
{
	if (!hl_cpu_hold_offline(ring->target))
		return false;
	*rc = cancel(ring, position) ? -ENXIO : 0;
	hl_cpu_let_go(ring->target);
	return true;
}

/* The message is there; somebody has to be told. */
static int attend(struct hl_ring *ring, uint64_t position)
{
	uint32_t attention;
	int rc;

	for (;;) {
		/* CALL_ATTENTION, pairs with CPU_SLEEP in wait.c and with CPU_HOW */
		hl_fence();
		attention = atomic_load_explicit(&ring->attention, memory_order_acquire);
		if (!(attention & HL_ATTENTION_OFFLINE) && !is_gone(ring->target))
			break;
		if (take_back(ring, position, &rc))
			return rc;
		hl_relax(); /* who has come says so in .how first, then here */
	}
	HL_DELAY(attend);
	if (attention & HL_ATTENTION_BELL)
		ring_bell(ring);
	if (attention & HL_ATTENTION_FENCE)
		hl_cpu_kick(ring->target);
	return 0;
}

/* Waits until the queue has room. -ENXIO: nobody will make any; -EDEADLK: this CPU cannot
 * serve meanwhile, for which the target may be waiting. */
static int wait_for_room(struct hl_ring *ring, struct hl_cpu *me)
{
	for (unsigned spins = 0;; spins++) {
		/* CALL_ROOM, pairs with receive.c */
		ring->head_seen = atomic_load_explicit(&ring->head, memory_order_acquire);
		if (ring->tail - ring->head_seen < HL_RING_SLOTS)
			return 0;
		if (is_gone(ring->target))
			return -ENXIO;
		if (me && me->depth >= HL_MAX_NESTED)
			return -EDEADLK;
		if (me)
			hl_cpu_serve(me);
		if (spins < SPINS) {
			hl_relax();
		} else {
			hl_cpu_kick(ring->target); /* its signal may have found no room */
			sched_yield();
		}
	}
}

int hl_ring_send(struct hl_ring *ring, struct hl_cpu *me, uint64_t word, void *info,
		 uint64_t *position, struct hl_csd *csd)
{
	uint64_t tail;
	struct hl_slot *slot;
	int rc = 0;

	/* A function that interrupts this one may send to the same CPU. */
	if (me)
		hl_irq_disable(me);
	if (__builtin_expect(ring->tail - ring->head_seen >= HL_RING_SLOTS, 0))
		rc = wait_for_room(ring, me);
	if (!rc) {
		tail = ring->tail;
		slot = hl_slot_of(ring, tail);
		if (csd) {
			csd->queue = ring;
			csd->position = tail;
		}
		atomic_store_explicit(&slot->info, (uintptr_t)info, memory_order_relaxed);
		/* CALL_MESSAGE, pairs with receive.c */
		atomic_store_explicit(&slot->word, word | hl_lap_of(tail), memory_order_release);
		ring->tail = tail + 1;
		*position = tail;
		HL_DELAY(sent);
		/* CALL_ATTENTION: the target has this thread fence, but not its compiler */
		atomic_signal_fence(memory_order_seq_cst);
		if (__builtin_expect(atomic_load_explicit(&ring->attention, memory_order_relaxed),
				     0))
			rc = attend(ring, tail);
	}
	if (me)
		hl_irq_enable(me);
	return rc;
}
