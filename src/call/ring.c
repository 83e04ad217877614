/* SPDX-License-Identifier: MIT */
/*
 * The sender's side of a queue.
 *
 * Memory ordering
 *
 * CALL_MESSAGE: the sender stores .info, then .word with release; receive.c loads .word with
 *	acquire. Without it the target runs a function on what the pointer led to before. It
 *	also keeps the order: who sees a word sees all that was sent before, in the queue and
 *	by mail.
 * CALL_ROOM: receive.c stores .head with release after it has read a message; the sender
 *	loads it with acquire before it writes that slot again. Without it a message is
 *	overwritten while it is read.
 * CALL_ATTENTION: the sender stores .word, then loads .attention. The two may pass each other
 *	in the sender's store buffer; the target, which stores .attention, has every thread
 *	fence before it relies on it (CPU_HOW in cpu.c). A sender that is told to fence does
 *	so and looks again.
 * CALL_LAST: a target that leaves takes each last message with a compare-and-swap on .word, and a
 *	sender that sees it gone takes its message back with another: one of them wins. Before
 *	it says that it leaves the target has told of all that it took without (.head, .done). The
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
/* For so long it is waited for half of a full queue: the line that tells of it comes once for
 * all. */
#define SPINS_FOR_MORE 200
/* Queues for which room is asked of the system at once; what is not used is not touched. */
#define SPARE_RINGS 32u

static void begin_at(struct hl_ring *ring, uint64_t position)
{
	atomic_init(&ring->head, position);
	ring->taken = ring->tail = ring->head_seen = ring->lost = position;
	atomic_init(&ring->mail.done, position);
	ring->mail_taken = ring->mail_sent = ring->mail_lost = position;
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

/* The caller has fenced: a bit that is set still will be taken after its message was left. */
static void set_bit(_Atomic(uint64_t) *word, int bit)
{
	uint64_t mask = (uint64_t)1 << bit;

	if (!(atomic_load_explicit(word, memory_order_seq_cst) & mask))
		atomic_fetch_or_explicit(word, mask, memory_order_seq_cst);
}

static void ring_bell(struct hl_ring *ring)
{
	struct hl_inbox *inbox = hl_inbox_of(ring->target);
	int word = ring->sender / 64;

	/* In this order, and the target takes them in the other: CALL_BELL. */
	if (ring->sender == HL_SENDER_FOREIGN) {
		atomic_store_explicit(&inbox->foreign_rang, 1, memory_order_seq_cst);
		word = 0;
	} else {
		set_bit(&inbox->bell[word], ring->sender % 64);
	}
	set_bit(&inbox->summary, word);
}

/* Makes a word that nobody has claimed what it is to be if there is no message. */
static bool empty(_Atomic(uint64_t) *place, uint64_t nothing)
{
	uint64_t word = atomic_load_explicit(place, memory_order_relaxed);

	/* CALL_LAST, pairs with claim() in receive.c */
	return word & HL_WORD_FUNC &&
	       atomic_compare_exchange_strong_explicit(place, &word, nothing, memory_order_acq_rel,
						       memory_order_relaxed);
}

/* Each takes a message back that nobody has taken out; false: it has run or will. What a target
 * took while it was online it has told of. */
static bool cancel(struct hl_ring *ring, uint64_t position)
{
	HL_DELAY(cancel);
	return !hl_is_behind(atomic_load_explicit(&ring->head, memory_order_acquire), position) &&
	       empty(&hl_slot_of(ring, position)->word, hl_lap_of(position));
}

static bool cancel_mail(struct hl_ring *ring, uint64_t number)
{
	HL_DELAY(cancel);
	if (atomic_load_explicit(&ring->mail.done, memory_order_acquire) == number ||
	    !empty(&ring->mail.word, hl_mail_lap_of(number - 1)))
		return false;
	ring->mail_sent = number - 1;
	return true;
}

static bool is_gone(const struct hl_cpu *target)
{
	return atomic_load_explicit(&target->how, memory_order_acquire) & HL_HOW_OFFLINE;
}

/* Somebody has to be told of a message that is there. 0; -ENXIO: nobody was, and it is taken
 * back. */
static int attend(struct hl_ring *ring, bool (*take_back)(struct hl_ring *, uint64_t),
		  uint64_t number)
{
	uint32_t attention;

	for (;;) {
		/* CALL_ATTENTION, pairs with CPU_SLEEP in wait.c and with CPU_HOW */
		hl_fence();
		attention = atomic_load_explicit(&ring->attention, memory_order_acquire);
		if (!(attention & HL_ATTENTION_OFFLINE) && !is_gone(ring->target))
			break;
		if (hl_cpu_hold_offline(ring->target)) {
			bool taken_back = take_back(ring, number);

			hl_cpu_let_go(ring->target);
			return taken_back ? -ENXIO : 0;
		}
		hl_relax(); /* who has come says so in .how first, then here */
	}
	HL_DELAY(attend);
	if (attention & HL_ATTENTION_BELL)
		ring_bell(ring);
	if (attention & HL_ATTENTION_FENCE)
		hl_cpu_kick(ring->target);
	return 0;
}

/* ---- The queue ---- */

int hl_ring_wait_for_room(struct hl_ring *ring, struct hl_cpu *me, void (*sent)(void *))
{
	struct hl_stall stall = { .target = ring->target, .sent = sent };

	for (unsigned spins = 0;; spins++) {
		uint64_t wanted = spins < SPINS_FOR_MORE ? HL_RING_SLOTS / 2 : 1;

		/* CALL_ROOM, pairs with receive.c */
		ring->head_seen = atomic_load_explicit(&ring->head, memory_order_acquire);
		if (ring->tail - ring->head_seen + wanted <= HL_RING_SLOTS)
			return 0;
		if (is_gone(ring->target))
			return -ENXIO;
		if (me && me->depth >= HL_MAX_NESTED)
			return -EDEADLK;
		if (me && hl_cpu_hears(me))
			hl_cpu_serve(me);
		if (spins < SPINS) {
			hl_relax();
		} else {
			hl_look_for_stall(&stall);
			hl_cpu_kick(ring->target); /* its signal may have found no room */
			sched_yield();
		}
	}
}

int hl_ring_attend(struct hl_ring *ring, uint64_t position)
{
	return attend(ring, cancel, position);
}

/* As many as there is room for; how many will run, *rc why it is not all. They are taken in
 * order, so when one cannot be taken back none before it can. */
static unsigned put_some(struct hl_ring *ring, const struct hl_call *calls, unsigned n, int *rc)
{
	uint64_t first = ring->tail, room = HL_RING_SLOTS - (first - ring->head_seen);

	if (n > room)
		n = (unsigned)room;
	for (unsigned i = 0; i < n; i++)
		hl_ring_put(ring, hl_word_of(calls[i].func), calls[i].info);
	if (__builtin_expect(hl_ring_attention(ring), 0)) {
		for (; n; n--) {
			int one = attend(ring, cancel, first + n - 1);

			if (!one)
				break;
			*rc = one;
		}
	}
	return n;
}

unsigned hl_ring_send_some(struct hl_ring *ring, struct hl_cpu *me, const struct hl_call *calls,
			   unsigned n, int *rc)
{
	bool irq = hl_irq_save(me);
	unsigned sent = 0;

	*rc = 0;
	while (sent < n && !*rc) {
		if (hl_ring_is_full(ring))
			*rc = hl_ring_wait_for_room(ring, me, calls[sent].func);
		if (!*rc)
			sent += put_some(ring, calls + sent, n - sent, rc);
	}
	hl_irq_restore(me, irq);
	return sent;
}

/* ---- The mail ---- */

int hl_ring_mail(struct hl_ring *ring, struct hl_cpu *me, void (*func)(void *), void *info,
		 uint64_t *number)
{
	struct hl_mail *mail = &ring->mail;
	bool irq = hl_irq_save(me);
	int rc = -EBUSY;

	/* CALL_ANSWER, pairs with take_mail(): who waits for the last mail may be further out, and
	 * not have seen yet that it was read. Without it what was read is written over. */
	if (atomic_load_explicit(&mail->done, memory_order_acquire) == ring->mail_sent) {
		*number = ++ring->mail_sent;
		mail->after = ring->tail;
		atomic_store_explicit(&mail->info, (uintptr_t)info, memory_order_relaxed);
		/* CALL_MESSAGE, pairs with receive.c */
		atomic_store_explicit(&mail->word, hl_word_of(func) | hl_mail_lap_of(*number),
				      memory_order_release);
		rc = 0;
		if (__builtin_expect(hl_ring_attention(ring), 0))
			rc = attend(ring, cancel_mail, *number);
	}
	hl_irq_restore(me, irq);
	return rc;
}
