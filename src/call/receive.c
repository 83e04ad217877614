/* SPDX-License-Identifier: MIT */
/*
 * The target's side: taking messages out and running them.
 *
 * A CPU looks at one word, the bell's summary, and at the next slot of up to HL_DIRECT
 * queues: those of the senders that it heard of first. Everybody else rings. So looking
 * costs the same with four CPUs and with four thousand, and who sends often pays for no
 * bell.
 *
 * Memory ordering (see ring.c for the rest)
 *
 * CALL_BELL: a sender leaves its message, sets its bit of .bell, then the word's bit of
 *	.summary; the owner takes .summary, then the words, then looks into the queues. Each of
 *	the three is a full fence. A sender whose bit was set already is heard all the same:
 *	the owner takes the bit before it looks.
 * CALL_ANSWER: the target stores .answer with release when the function has returned; the
 *	sender that waits loads it with acquire. Without it the caller does not see what
 *	the function wrote.
 * CALL_QUEUE: see hl_ring_get().
 */
#include "ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Lines of messages that are fetched ahead of the one that is read. */
#define PREFETCH_LINES 2u

static bool is_there(const struct hl_ring *ring, uint64_t position, uint64_t *word)
{
	/* CALL_MESSAGE, pairs with hl_ring_send() */
	*word = atomic_load_explicit(&ring->slot[position % HL_RING_SLOTS].word,
				     memory_order_acquire);
	return (*word & HL_WORD_LAP) == hl_lap_of(position);
}

/* Runs a function one deeper than what runs already, with a note of it. */
static void run_noted(struct hl_cpu *me, struct hl_running *running, void (*func)(void *),
		      void *info)
{
	atomic_store_explicit(&running->func, (uint64_t)(uintptr_t)func, memory_order_relaxed);
	me->depth++;
	func(info);
	me->depth--;
	atomic_store_explicit(&running->func, 0, memory_order_relaxed);
}

void hl_run_here(struct hl_cpu *me, void (*func)(void *), void *info)
{
	struct hl_running *running = &hl_inbox_of(me)->running[me->depth];

	hl_irq_disable(me);
	running->ring = NULL;
	run_noted(me, running, func, info);
	hl_irq_enable(me);
}

/* An answer stays if a later one is there: to a thread that ended while it waited, and the
 * next with its id called from the same depth. */
static void answer(struct hl_ring *ring, unsigned depth, uint64_t position)
{
	_Atomic(uint64_t) *place = &ring->answer[depth];

	if (hl_is_behind(position, atomic_load_explicit(place, memory_order_relaxed)))
		/* CALL_ANSWER, pairs with wait_for() */
		atomic_store_explicit(place, position, memory_order_release);
}

static void run(struct hl_cpu *me, struct hl_inbox *inbox, struct hl_ring *ring, uint64_t word,
		uint64_t position, void *info)
{
	struct hl_running *running = &inbox->running[me->depth];

	running->ring = word & HL_WORD_WAITED ? ring : NULL;
	running->position = position;
	running->depth = word >> HL_WORD_DEPTH_SHIFT & (HL_WORD_DEPTHS - 1);
	run_noted(me, running, (void (*)(void *))(uintptr_t)(word & HL_WORD_FUNC), info);
	if (word & HL_WORD_WAITED)
		answer(ring, running->depth, position);
}

/* Whether the senders think that nobody is here, and take back what is not taken. */
static bool leaves(const struct hl_cpu *me)
{
	return atomic_load_explicit(&me->how, memory_order_relaxed) & HL_HOW_OFFLINE;
}

/* Takes a message of a CPU that leaves; false: its sender took it back. */
static bool claim(struct hl_slot *slot, uint64_t word)
{
	HL_DELAY(claim);
	/* CALL_LAST, pairs with cancel() in ring.c */
	return atomic_compare_exchange_strong_explicit(&slot->word, &word, word & HL_WORD_LAP,
						       memory_order_acq_rel, memory_order_relaxed);
}

/* Runs what is in a queue, one queueful at most, so that others have their turn. */
static unsigned drain(struct hl_cpu *me, struct hl_inbox *inbox, struct hl_ring *ring)
{
	uint64_t position = atomic_load_explicit(&ring->head, memory_order_relaxed), word;
	unsigned n = 0;

	HL_DELAY(drain);
	while (n < HL_RING_SLOTS && is_there(ring, position, &word)) {
		struct hl_slot *slot = hl_slot_of(ring, position);
		void *info = (void *)atomic_load_explicit(&slot->info, memory_order_relaxed);
		bool ours = word & HL_WORD_FUNC;

		if (position % HL_SLOTS_A_LINE == 0)
			hl_prefetch(hl_slot_of(ring, position + PREFETCH_LINES * HL_SLOTS_A_LINE));
		if (ours && leaves(me))
			ours = claim(slot, word);
		/* CALL_ROOM, pairs with wait_for_room(): the slot was read */
		atomic_store_explicit(&ring->head, position + 1, memory_order_release);
		if (ours) {
			run(me, inbox, ring, word, position, info);
			n++;
		}
		/* The function may have served this queue itself. */
		position = atomic_load_explicit(&ring->head, memory_order_relaxed);
	}
	return n;
}

/* ---- Which queues to look at ---- */

static uint32_t attention_of(const struct hl_cpu *me, bool direct)
{
	uint32_t how = atomic_load_explicit(&me->how, memory_order_relaxed);

	if (how & HL_HOW_OFFLINE)
		return HL_ATTENTION_OFFLINE | HL_ATTENTION_FENCE;
	return (direct ? 0 : HL_ATTENTION_BELL) | (how ? HL_ATTENTION_FENCE : 0);
}

static bool is_direct(const struct hl_inbox *inbox, const struct hl_ring *ring)
{
	for (unsigned i = 0; i < inbox->n_direct; i++)
		if (inbox->direct[i] == ring)
			return true;
	return false;
}

/* From now on the queue is looked into with every poll. Its sender may go on ringing until
 * it sees that it need not. */
static void make_direct(struct hl_cpu *me, struct hl_inbox *inbox, struct hl_ring *ring)
{
	if (inbox->n_direct == HL_DIRECT || is_direct(inbox, ring))
		return;
	inbox->direct[inbox->n_direct++] = ring;
	atomic_store_explicit(&ring->attention, attention_of(me, true), memory_order_release);
}

static unsigned take_sender(struct hl_cpu *me, struct hl_inbox *inbox, int sender)
{
	/* CALL_QUEUE, pairs with hl_ring_get() */
	struct hl_ring *ring = atomic_load_explicit(&inbox->in[sender], memory_order_acquire);

	if (!ring)
		return 0;
	make_direct(me, inbox, ring);
	return drain(me, inbox, ring);
}

static unsigned take_word(struct hl_cpu *me, struct hl_inbox *inbox, int word)
{
	/* CALL_BELL, pairs with ring_bell() */
	uint64_t bits = atomic_exchange_explicit(&inbox->bell[word], 0, memory_order_seq_cst);
	unsigned n = 0;

	for (; bits; bits &= bits - 1)
		n += take_sender(me, inbox, word * 64 + __builtin_ctzll(bits));
	return n;
}

/* Somebody rang. */
static unsigned answer_bell(struct hl_cpu *me, struct hl_inbox *inbox)
{
	/* CALL_BELL */
	uint64_t words = atomic_exchange_explicit(&inbox->summary, 0, memory_order_seq_cst);
	unsigned n = 0;

	for (; words; words &= words - 1)
		n += take_word(me, inbox, __builtin_ctzll(words));
	if (atomic_exchange_explicit(&inbox->foreign_rang, 0, memory_order_seq_cst))
		n += take_sender(me, inbox, HL_SENDER_FOREIGN);
	return n;
}

static bool rang(const struct hl_inbox *inbox)
{
	return atomic_load_explicit(&inbox->summary, memory_order_relaxed) ||
	       atomic_load_explicit(&inbox->foreign_rang, memory_order_relaxed);
}

static unsigned poll(struct hl_cpu *me)
{
	struct hl_inbox *inbox = hl_inbox_of(me);
	unsigned n = 0;

	/* No room for one more inside the others: they wait, and so does what came. */
	if (__builtin_expect(me->depth >= HL_MAX_NESTED, 0))
		return 0;
	if (__builtin_expect(rang(inbox), 0))
		n = answer_bell(me, inbox);
	for (unsigned i = 0; i < inbox->n_direct; i++)
		n += drain(me, inbox, inbox->direct[i]);
	return n;
}

static bool pending(struct hl_cpu *me)
{
	struct hl_inbox *inbox = hl_inbox_of(me);
	uint64_t word;

	if (rang(inbox))
		return true;
	for (unsigned i = 0; i < inbox->n_direct; i++) {
		const struct hl_ring *ring = inbox->direct[i];

		if (is_there(ring, atomic_load_explicit(&ring->head, memory_order_relaxed), &word))
			return true;
	}
	return false;
}

/* ---- Coming, going ---- */

static struct hl_ring *queue_from(const struct hl_inbox *inbox, int sender)
{
	return atomic_load_explicit(&inbox->in[sender], memory_order_acquire);
}

static void how(struct hl_cpu *me)
{
	struct hl_inbox *inbox = hl_inbox_of(me);

	for (int sender = 0; sender <= HL_SENDER_FOREIGN; sender++) {
		struct hl_ring *ring;

		/* The ids that were never given out have sent nothing. */
		if (sender == hl_nr_cpu_ids())
			sender = HL_SENDER_FOREIGN;
		ring = queue_from(inbox, sender);
		if (ring)
			atomic_store_explicit(&ring->attention,
					      attention_of(me, is_direct(inbox, ring)),
					      memory_order_release);
	}
}

static void answer_running(struct hl_inbox *inbox)
{
	/* The thread ended inside functions that were sent to it: they are over, too. */
	for (unsigned i = HL_MAX_NESTED; i-- > 0;) {
		struct hl_running *running = &inbox->running[i];

		if (running->func && running->ring)
			answer(running->ring, running->depth, running->position);
		running->func = 0;
	}
}

static void sweep(struct hl_cpu *me)
{
	struct hl_inbox *inbox = hl_inbox_of(me);

	answer_running(inbox);
	for (int sender = 0; sender <= HL_SENDER_FOREIGN; sender++) {
		struct hl_ring *ring;

		if (sender == hl_nr_cpu_ids())
			sender = HL_SENDER_FOREIGN;
		ring = queue_from(inbox, sender);
		while (ring && drain(me, inbox, ring))
			;
	}
	if (leaves(me))
		inbox->n_direct = 0;
}

/* Both tables, from the system and not from malloc(), which may write zeros over them: what is
 * never used costs nothing. */
static bool make_tables(struct hl_inbox *inbox)
{
	void *tables = mmap(NULL, (2 * HL_NR_CPUS + 1) * sizeof(*inbox->in), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (tables == MAP_FAILED)
		return false;
	inbox->in = tables;
	inbox->out = inbox->in + HL_NR_CPUS + 1;
	return true;
}

static int online(struct hl_cpu *cpu)
{
	struct hl_inbox *inbox = aligned_alloc(HL_CACHE_LINE, sizeof(*inbox));

	if (!inbox)
		return -ENOMEM;
	memset(inbox, 0, sizeof(*inbox));
	if (!make_tables(inbox)) {
		free(inbox);
		return -ENOMEM;
	}
	pthread_mutex_init(&inbox->foreign, NULL);
	cpu->room[HL_ROOM_CALL] = inbox;
	return 0;
}

/* In the child all queues are empty; their positions go on. */
static void forked(struct hl_cpu *cpu)
{
	struct hl_inbox *inbox = hl_inbox_of(cpu);

	for (int sender = 0; sender <= HL_SENDER_FOREIGN; sender++) {
		struct hl_ring *ring = queue_from(inbox, sender);

		if (!ring)
			continue;
		atomic_store_explicit(&ring->head, ring->tail, memory_order_relaxed);
		ring->head_seen = ring->lost = ring->tail;
		atomic_store_explicit(&ring->attention, HL_ATTENTION_OFFLINE | HL_ATTENTION_FENCE,
				      memory_order_relaxed);
	}
	memset(inbox->running, 0, sizeof(inbox->running));
	inbox->n_direct = 0;
	pthread_mutex_init(&inbox->foreign, NULL);
}

static void forget(struct hl_cpu *cpu)
{
	for (int id = 0; id < hl_nr_cpu_ids(); id++) {
		const struct hl_cpu *other = hl_cpu_by_id(id);

		if (other)
			atomic_store_explicit(&hl_inbox_of(other)->out[cpu->id], NULL,
					      memory_order_relaxed);
	}
}

const struct hl_cpu_room hl_call_room = {
	.online = online,
	.sweep = sweep,
	.how = how,
	.poll = poll,
	.pending = pending,
	.forked = forked,
	.forget = forget,
};

__attribute__((constructor)) static void register_room(void)
{
	hl_cpu_room = &hl_call_room;
}
