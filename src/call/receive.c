/* SPDX-License-Identifier: MIT */
/*
 * The target's side: taking messages out and running them.
 *
 * A CPU looks at one word, the bell's summary, and at the next slot of up to HL_DIRECT
 * queues: those of the senders that it heard of first. Everybody else rings. So looking
 * costs the same with four CPUs and with four thousand, and who sends often pays for no
 * bell. Where to look is kept in the CPU's own line (struct hl_look), so that a poll that
 * finds nothing need know nothing of queues.
 *
 * Memory ordering (see ring.c for the rest)
 *
 * CALL_BELL: a sender leaves its message, sets its bit of .bell, then the word's bit of
 *	.summary; the owner takes .summary, then the words, fences, then looks into the queues.
 *	A sender that finds its bit set leaves it: it fenced before it looked at it, so the
 *	owner, who takes the bit later, sees the message.
 * CALL_ANSWER: the target stores .done with release when the function has returned; the sender
 *	that waits loads it with acquire. Without it the caller does not see what the function
 *	wrote.
 * CALL_QUEUE: see hl_ring_get().
 */
#include "ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Where a CPU looks while it runs what is in a queue: functions that look as well, in
 * between, are to go and see. */
static const _Atomic(uint64_t) something = HL_LOOK_BIT;

static bool is_there(const struct hl_ring *ring, uint64_t *word)
{
	/* CALL_MESSAGE, pairs with hl_ring_put() */
	*word = atomic_load_explicit(&ring->slot[ring->taken % HL_RING_SLOTS].word,
				     memory_order_acquire);
	return (*word & HL_WORD_LAP) == hl_lap_of(ring->taken);
}

/* Mail that is next: what was sent before it was taken. */
static bool has_mail(const struct hl_ring *ring, uint64_t *word)
{
	/* CALL_MESSAGE, pairs with hl_ring_mail() */
	*word = atomic_load_explicit(&ring->mail.word, memory_order_acquire);
	return (*word & HL_WORD_LAP) == hl_mail_lap_of(ring->mail_taken + 1) &&
	       !hl_is_behind(ring->mail.after, ring->taken);
}

/* What runs one deeper than what runs already. */
static struct hl_running *begin_running(struct hl_cpu *me, struct hl_inbox *inbox)
{
	return &inbox->running[me->depth++];
}

static void end_running(struct hl_cpu *me, struct hl_running *running)
{
	me->depth--;
	atomic_store_explicit(&running->func, 0, memory_order_relaxed);
}

static void run(struct hl_running *running, uint64_t word, uintptr_t info)
{
	uintptr_t func = word & HL_WORD_FUNC;

	atomic_store_explicit(&running->func, func, memory_order_relaxed);
	((void (*)(void *))func)((void *)info);
}

void hl_run_here(struct hl_cpu *me, void (*func)(void *), void *info)
{
	struct hl_running *running;

	hl_irq_disable(me);
	running = begin_running(me, hl_inbox_of(me));
	running->mail = NULL;
	run(running, hl_word_of(func), (uintptr_t)info);
	end_running(me, running);
	hl_irq_enable(me);
}

/* Whether the senders think that nobody is here, and take back what is not taken. */
static bool leaves(const struct hl_cpu *me)
{
	return atomic_load_explicit(&me->how, memory_order_relaxed) & HL_HOW_OFFLINE;
}

/* Takes a message of a CPU that leaves; false: its sender took it back. */
static bool claim(_Atomic(uint64_t) *place, uint64_t word)
{
	HL_DELAY(claim);
	/* CALL_LAST, pairs with empty() in ring.c */
	return atomic_compare_exchange_strong_explicit(place, &word, word & HL_WORD_LAP,
						       memory_order_acq_rel, memory_order_relaxed);
}

/* Lets the sender know how far the queue was read. */
static void tell_room(struct hl_ring *ring)
{
	/* CALL_ROOM, pairs with hl_ring_wait_for_room(): the slots were read */
	atomic_store_explicit(&ring->head, ring->taken, memory_order_release);
}

/* How many functions ran: none if the sender took it back. Somebody may ask whether it has
 * begun: the owner of a csd, or who sent it to a CPU that leaves. */
static unsigned take_message(struct hl_ring *ring, struct hl_running *running, uint64_t word,
			     bool leaving)
{
	struct hl_slot *slot = hl_slot_of(ring, ring->taken);
	uintptr_t info = atomic_load_explicit(&slot->info, memory_order_relaxed);
	bool ours = word & HL_WORD_FUNC;

	if (__builtin_expect(leaving, 0) && ours)
		ours = claim(&slot->word, word);
	ring->taken++;
	if (__builtin_expect(word & HL_WORD_CSD || leaving || ring->taken % HL_TELL_ROOM == 0, 0))
		tell_room(ring);
	if (ours)
		run(running, word, info);
	return ours;
}

static unsigned take_mail(struct hl_ring *ring, struct hl_running *running, uint64_t word,
			  bool leaving)
{
	struct hl_mail *mail = &ring->mail;
	uintptr_t info = atomic_load_explicit(&mail->info, memory_order_relaxed);

	if (leaving && !claim(&mail->word, word))
		return 0;
	ring->mail_taken++;
	running->mail = ring;
	run(running, word, info);
	running->mail = NULL;
	/* CALL_ANSWER, pairs with wait_for() */
	atomic_store_explicit(&mail->done, ring->mail_taken, memory_order_release);
	return 1;
}

/* While the queue is served, functions that look as well are to go and see. false: they are
 * being served already, further out. */
static bool look_meanwhile(struct hl_ring *ring)
{
	if (!ring->look || ring->look->word == &something)
		return false;
	ring->look->idle = 0;
	ring->look->word = &something;
	return true;
}

static void look_for_next(struct hl_ring *ring)
{
	ring->look[0].word = &hl_slot_of(ring, ring->taken)->word;
	ring->look[0].idle = hl_lap_of(ring->taken) ^ HL_LOOK_BIT;
	ring->look[1].word = &ring->mail.word;
	ring->look[1].idle = hl_mail_lap_of(ring->mail_taken);
}

static unsigned take_all(struct hl_cpu *me, struct hl_ring *ring, struct hl_running *running)
{
	bool leaving = leaves(me);
	unsigned n = 0;

	running->mail = NULL;
	for (unsigned looks = 0; looks < HL_RING_SLOTS; looks++) {
		uint64_t word, mail;
		/* In this order: mail that is there was sent before a message that is. */
		bool there = is_there(ring, &word);

		if (__builtin_expect(has_mail(ring, &mail), 0))
			n += take_mail(ring, running, mail, leaving);
		else if (there)
			n += take_message(ring, running, word, leaving);
		else
			break;
	}
	return n;
}

/* Runs what a sender has sent, one queueful at most, so that others have their turn. A
 * function may serve the same sender itself. */
static unsigned drain(struct hl_cpu *me, struct hl_inbox *inbox, struct hl_ring *ring)
{
	struct hl_running *running;
	uint64_t word;
	bool looks;
	unsigned n;

	HL_DELAY(drain);
	if (!is_there(ring, &word) && !has_mail(ring, &word))
		return 0;
	looks = look_meanwhile(ring);
	running = begin_running(me, inbox);
	n = take_all(me, ring, running);
	end_running(me, running);
	tell_room(ring);
	if (looks && ring->look) /* a function may have forked */
		look_for_next(ring);
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

/* From now on the queue is looked into with every poll. Its sender may go on ringing until
 * it sees that it need not. */
static void make_direct(struct hl_cpu *me, struct hl_inbox *inbox, struct hl_ring *ring)
{
	if (inbox->n_direct == HL_DIRECT || ring->look)
		return;
	inbox->direct[inbox->n_direct++] = ring;
	ring->look = &me->look[me->n_looks];
	look_for_next(ring);
	me->n_looks += 2;
	atomic_store_explicit(&ring->attention, attention_of(me, true), memory_order_release);
}

/* All is taken. Not queue by queue as they are emptied: a function that runs meanwhile may have
 * one looked into again. */
static void look_nowhere(struct hl_cpu *me, struct hl_inbox *inbox)
{
	for (unsigned i = 0; i < inbox->n_direct; i++)
		inbox->direct[i]->look = NULL;
	inbox->n_direct = me->n_looks = 0;
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

/* Takes the bell's bits. What was taken stays where functions that run inside each other all
 * find it: who waits serves also those whom a poll further out has heard. */
static void hear(struct hl_inbox *inbox)
{
	/* CALL_BELL, pairs with ring_bell() */
	uint64_t words = atomic_exchange_explicit(&inbox->summary, 0, memory_order_seq_cst);

	inbox->heard_words |= words;
	if (words & 1)
		inbox->heard_foreign |=
			atomic_exchange_explicit(&inbox->foreign_rang, 0, memory_order_seq_cst);
	for (; words; words &= words - 1) {
		int word = __builtin_ctzll(words);

		inbox->heard[word] |=
			atomic_exchange_explicit(&inbox->bell[word], 0, memory_order_seq_cst);
	}
	hl_fence(); /* CALL_BELL, pairs with the senders' in attend() */
}

/* A sender that was heard and not looked at yet; -1: none. */
static int next_heard(struct hl_inbox *inbox)
{
	for (; inbox->heard_words; inbox->heard_words &= inbox->heard_words - 1) {
		int word = __builtin_ctzll(inbox->heard_words);
		uint64_t senders = inbox->heard[word];

		if (!word && inbox->heard_foreign) {
			inbox->heard_foreign = false;
			return HL_SENDER_FOREIGN;
		}
		if (senders) {
			inbox->heard[word] = senders & (senders - 1);
			return word * 64 + __builtin_ctzll(senders);
		}
	}
	return -1;
}

/* Somebody rang. */
static unsigned answer_bell(struct hl_cpu *me, struct hl_inbox *inbox)
{
	unsigned n = 0;
	int sender;

	hear(inbox);
	me->bell = &something;
	while ((sender = next_heard(inbox)) >= 0)
		n += take_sender(me, inbox, sender);
	me->bell = &inbox->summary;
	return n;
}

static unsigned poll(struct hl_cpu *me)
{
	struct hl_inbox *inbox = hl_inbox_of(me);
	unsigned n = 0;

	/* No room for one more inside the others: they wait, and so does what came. */
	if (__builtin_expect(me->depth >= HL_MAX_NESTED, 0))
		return 0;
	if (__builtin_expect(atomic_load_explicit(me->bell, memory_order_relaxed) != 0, 0))
		n = answer_bell(me, inbox);
	for (unsigned i = 0; i < inbox->n_direct; i++)
		n += drain(me, inbox, inbox->direct[i]);
	return n;
}

/* ---- Coming, going ---- */

static struct hl_ring *queue_from(const struct hl_inbox *inbox, int sender)
{
	return atomic_load_explicit(&inbox->in[sender], memory_order_acquire);
}

/* The queue of the next sender that has one; NULL: no more. *sender begins at -1. */
static struct hl_ring *next_queue(const struct hl_inbox *inbox, int *sender)
{
	while (++*sender <= HL_SENDER_FOREIGN) {
		struct hl_ring *ring;

		/* The ids that were never given out have sent nothing. */
		if (*sender == hl_nr_cpu_ids())
			*sender = HL_SENDER_FOREIGN;
		ring = queue_from(inbox, *sender);
		if (ring)
			return ring;
	}
	return NULL;
}

static void how(struct hl_cpu *me)
{
	struct hl_inbox *inbox = hl_inbox_of(me);
	struct hl_ring *ring;
	int sender = -1;

	while ((ring = next_queue(inbox, &sender)))
		atomic_store_explicit(&ring->attention, attention_of(me, ring->look),
				      memory_order_release);
}

/* The thread ended inside functions that were sent to it: they are over, too. */
static void ended(struct hl_cpu *me)
{
	struct hl_inbox *inbox = hl_inbox_of(me);

	for (unsigned i = HL_MAX_NESTED; i-- > 0;) {
		struct hl_running *running = &inbox->running[i];

		if (running->func && running->mail)
			/* CALL_ANSWER, pairs with wait_for() */
			atomic_store_explicit(&running->mail->mail.done, running->mail->mail_taken,
					      memory_order_release);
		running->func = 0;
	}
	for (unsigned i = 0; i < inbox->n_direct; i++)
		tell_room(inbox->direct[i]);
}

static void sweep(struct hl_cpu *me)
{
	struct hl_inbox *inbox = hl_inbox_of(me);
	struct hl_ring *ring;
	int sender = -1;

	while ((ring = next_queue(inbox, &sender)))
		while (drain(me, inbox, ring))
			;
	if (leaves(me))
		look_nowhere(me, inbox);
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
	cpu->bell = &inbox->summary;
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
		ring->taken = ring->head_seen = ring->lost = ring->tail;
		if (atomic_load_explicit(&ring->mail.done, memory_order_relaxed) != ring->mail_sent)
			ring->mail_lost = ring->mail_sent;
		ring->mail_taken = ring->mail_sent;
		atomic_store_explicit(&ring->mail.done, ring->mail_sent, memory_order_relaxed);
		ring->look = NULL;
		atomic_store_explicit(&ring->attention, HL_ATTENTION_OFFLINE | HL_ATTENTION_FENCE,
				      memory_order_relaxed);
	}
	memset(inbox->running, 0, sizeof(inbox->running));
	inbox->n_direct = cpu->n_looks = 0;
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
	.ended = ended,
	.how = how,
	.poll = poll,
	.forked = forked,
	.forget = forget,
};

__attribute__((constructor)) static void register_room(void)
{
	hl_cpu_room = &hl_call_room;
}
