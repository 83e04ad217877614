/* SPDX-License-Identifier: MIT */
/*
 * Inside the room: the queue between two CPUs, and what a CPU receives by.
 */
#ifndef HL_CALL_RING_H
#define HL_CALL_RING_H

#include <pthread.h>
#include <stdatomic.h>

#include <hotline/cacheline.h>
#include <hotline/call.h>

#include "cpu/internal.h"

#define HL_RING_SLOTS ((uint64_t)HL_CALL_QUEUE)
/* The first position of a queue. Tests begin where the positions are about to wrap. */
#ifndef HL_RING_START
#define HL_RING_START UINT64_C(0)
#endif
_Static_assert(HL_RING_START % (2 * HL_RING_SLOTS) == 0, "zeroed slots hold no message");
#define HL_SLOTS_A_LINE ((uint64_t)HL_CACHE_LINE / 16)

/* For a benchmark alone, HL_LAYOUT_CSD=0: as if messages were aligned to a word, and not to
 * their size. The mail and every fourth message begin a word before the end of a line. */
#if defined(HL_LAYOUT_CSD) && !HL_LAYOUT_CSD
#define HL_MESSAGE_ALIGNED(bytes)
#define HL_BEFORE_THE_END(what) char before_##what[HL_CACHE_LINE - sizeof(uint64_t)];
#else
#define HL_MESSAGE_ALIGNED(bytes) __attribute__((aligned(bytes)))
#define HL_BEFORE_THE_END(what)
#endif

/* A message: four a line. The word is the function and, in its top bits, what is to be
 * known of the message; it is written last and tells that the message is there. */
struct hl_slot {
	_Atomic(uint64_t) word;
	_Atomic(uintptr_t) info;
	uint32_t pad[sizeof(void *) == 8 ? 0 : 1];
} HL_MESSAGE_ALIGNED(16);
_Static_assert(sizeof(struct hl_slot) == 16, "four messages a line of 64");

/* The lap in which a word was written: the reader need not clear it, and the writer
 * need not look. Zeroed memory holds no message of the first lap. */
#define HL_WORD_LAP HL_LOOK_BIT
/* Somebody keeps a csd of it, and is to know when it begins to run. */
#define HL_WORD_CSD ((uint64_t)1 << 62)
#define HL_WORD_FUNC (((uint64_t)1 << 62) - 1)

/* A message that is waited for, and its answer: the line goes to the target and comes back. One
 * that is written by the target alone, for the answer, would have to be fetched as well as
 * sent by each of the two: twice the time. */
struct hl_mail {
	/* Written by the sender, read by the target. */
	_Atomic(uint64_t) word; /* as a slot's; its lap is that of the mail's number */
	_Atomic(uintptr_t) info;
	uint64_t after; /* messages of the queue that were sent before it */
	/* Written by the target, read by the sender. */
	_Atomic(uint64_t) done; /* number of the last one that has run */
} HL_MESSAGE_ALIGNED(32);

/* ring.attention: what a sender does beside leaving its message; 0: nothing. */
#define HL_ATTENTION_BELL 0x1u /* ring the bell: this queue is not polled directly */
#define HL_ATTENTION_FENCE 0x2u /* fence and kick: the CPU may sleep or wants a signal */
#define HL_ATTENTION_OFFLINE 0x4u /* nobody is there */

/* Between one sender and one target, for good: positions never begin anew. */
struct hl_ring {
	/* Written by the target once for several messages, read by the sender when it finds no
	 * room. */
	HL_CACHELINE_GROUP_BEGIN(room) HL_CACHELINE_ALIGNED;
	_Atomic(uint64_t) head; /* messages that were taken out, as far as the sender knows */
	HL_CACHELINE_GROUP_END(room);

	/* The target's alone. */
	HL_CACHELINE_GROUP_BEGIN(taking) HL_CACHELINE_ALIGNED;
	uint64_t taken; /* messages that were taken out */
	uint64_t mail_taken;
	struct hl_look *look; /* where the target looks for the next message, and for mail in
			       * the one behind; NULL: it is rung for */
	HL_CACHELINE_GROUP_END(taking);

	/* Written by the target when it changes how it hears of work, read by the sender with
	 * each message. */
	HL_CACHELINE_GROUP_BEGIN(read_mostly) HL_CACHELINE_ALIGNED;
	_Atomic(uint32_t) attention;
	int sender; /* the bit of the target's bell */
	struct hl_cpu *target;
	HL_CACHELINE_GROUP_END(read_mostly);

	/* The sender's alone. */
	HL_CACHELINE_GROUP_BEGIN(own) HL_CACHELINE_ALIGNED;
	uint64_t tail; /* messages that were put in */
	uint64_t head_seen; /* head when it was last read */
	uint64_t mail_sent; /* number of the last */
	uint64_t lost, mail_lost; /* up to here they stayed with the parent of a fork */
	HL_CACHELINE_GROUP_END(own);

	/* Written by both, in turn. */
	HL_CACHELINE_GROUP_BEGIN(mail) HL_CACHELINE_ALIGNED;
	HL_BEFORE_THE_END(mail)
	struct hl_mail mail;
	HL_CACHELINE_GROUP_END(mail);

	/* Written by the sender, read by the target. */
	HL_CACHELINE_GROUP_BEGIN(messages) HL_CACHELINE_ALIGNED;
	HL_BEFORE_THE_END(messages)
	struct hl_slot slot[HL_RING_SLOTS];
	HL_CACHELINE_GROUP_END(messages);
};
HL_CACHELINE_ASSERT_ALIGNED(struct hl_ring, taking);
HL_CACHELINE_ASSERT_ALIGNED(struct hl_ring, mail);
HL_CACHELINE_ASSERT_ALIGNED(struct hl_ring, read_mostly);
HL_CACHELINE_ASSERT_ALIGNED(struct hl_ring, own);
HL_CACHELINE_ASSERT_ALIGNED(struct hl_ring, messages);
HL_CACHELINE_ASSERT_APART(struct hl_ring, head, taken);
HL_CACHELINE_ASSERT_APART(struct hl_ring, taken, attention);
HL_CACHELINE_ASSERT_APART(struct hl_ring, attention, tail);
HL_CACHELINE_ASSERT_APART(struct hl_ring, tail, mail);
HL_CACHELINE_ASSERT_APART(struct hl_ring, mail, slot);
#if !defined(HL_LAYOUT_CSD) || HL_LAYOUT_CSD
HL_CACHELINE_ASSERT_MEMBER_FITS(struct hl_ring, mail);
#endif
_Static_assert(HL_RING_SLOTS % HL_SLOTS_A_LINE == 0, "whole lines of messages");

/* Queues that are looked into without a bell; one look is left for others. */
#define HL_DIRECT ((HL_MAX_LOOKS - 1) / 2)
/* Messages that are taken out before the sender is told, while there are more. */
#define HL_TELL_ROOM (HL_RING_SLOTS / 4)
_Static_assert(HL_RING_SLOTS % HL_TELL_ROOM == 0, "the last of a lap is told");
/* Functions inside each other on one CPU. */
#define HL_MAX_NESTED 64u

#define HL_BELL_WORDS (HL_NR_CPUS / 64)
/* The sender that threads share which are not online. */
#define HL_SENDER_FOREIGN HL_NR_CPUS

struct hl_running {
	struct hl_ring *mail; /* where it came by mail; NULL: nobody waits for it there */
	_Atomic(uint64_t) func; /* read by a waiter that reports a stall */
} __attribute__((aligned(2 * sizeof(uint64_t))));

/* What a CPU receives by, and its queues to others. */
struct hl_inbox {
	/* Set by senders, taken by the owner: which words of .bell to look at. The first also
	 * says to look at .foreign_rang. */
	HL_CACHELINE_GROUP_BEGIN(summary) HL_CACHELINE_ALIGNED;
	_Atomic(uint64_t) summary;
	_Atomic(uint32_t) foreign_rang;
	HL_CACHELINE_GROUP_END(summary);

	/* The same: which senders left something. */
	HL_CACHELINE_GROUP_BEGIN(bell) HL_CACHELINE_ALIGNED;
	_Atomic(uint64_t) bell[HL_BELL_WORDS];
	HL_CACHELINE_GROUP_END(bell);

	/* The owner's alone. */
	HL_CACHELINE_GROUP_BEGIN(own) HL_CACHELINE_ALIGNED;
	struct hl_ring *direct[HL_DIRECT];
	unsigned n_direct;
	unsigned n_spare;
	bool heard_foreign;
	uint64_t heard_words; /* words of heard[] that may hold a sender */
	struct hl_ring *spare; /* room for queues to others: n_spare of them */
	struct hl_running running[HL_MAX_NESTED];
	uint64_t heard[HL_BELL_WORDS]; /* taken from .bell and not looked at yet */
	HL_CACHELINE_GROUP_END(own);

	/* Queues of others to this CPU, made by them: written once each. */
	HL_CACHELINE_GROUP_BEGIN(queues) HL_CACHELINE_ALIGNED;
	struct hl_ring *_Atomic *in; /* [sender], HL_NR_CPUS + 1 of them */
	struct hl_ring *_Atomic *out; /* [target]: the owner's own; HL_NR_CPUS of them */
	HL_CACHELINE_GROUP_END(queues);

	/* Taken by threads that are not online, to send. */
	HL_CACHELINE_GROUP_BEGIN(foreign) HL_CACHELINE_ALIGNED;
	pthread_mutex_t foreign;
	HL_CACHELINE_GROUP_END(foreign);
};
HL_CACHELINE_ASSERT_APART(struct hl_inbox, summary, bell);
HL_CACHELINE_ASSERT_APART(struct hl_inbox, direct, in);
HL_CACHELINE_ASSERT_APART(struct hl_inbox, in, foreign);

static inline struct hl_inbox *hl_inbox_of(const struct hl_cpu *cpu)
{
	return cpu->room[HL_ROOM_CALL];
}

static inline uint64_t hl_lap_of(uint64_t position)
{
	return position / HL_RING_SLOTS & 1 ? 0 : HL_WORD_LAP;
}

static inline uint64_t hl_mail_lap_of(uint64_t number)
{
	return number % 2 ? HL_WORD_LAP : 0;
}

static inline uint64_t hl_word_of(void (*func)(void *))
{
	return (uint64_t)(uintptr_t)func;
}

static inline struct hl_slot *hl_slot_of(struct hl_ring *ring, uint64_t position)
{
	return &ring->slot[position % HL_RING_SLOTS];
}

/* call.c */

/* The function that was sent by a caller: of messages that wrap one, the one inside. */
void (*hl_sent_by_caller(uint64_t word, void *info))(void *info);

/* ring.c */

/* The queue from the calling CPU (NULL: a thread that is not online) to the target, made if there
 * is none; NULL: no memory. */
struct hl_ring *hl_ring_get(struct hl_cpu *me, struct hl_cpu *target,
			    struct hl_ring *_Atomic *place);

/* Waits until the queue has room for what is to be sent. -ENXIO: nobody will make any;
 * -EDEADLK: this CPU cannot serve meanwhile, for which the target may be waiting. */
int hl_ring_wait_for_room(struct hl_ring *ring, struct hl_cpu *me, void (*sent)(void *));

/* Tells whoever has to be told of a message. 0; -ENXIO: nobody was there, it is taken back. */
int hl_ring_attend(struct hl_ring *ring, uint64_t position);

static inline bool hl_ring_is_full(const struct hl_ring *ring)
{
	return ring->tail - ring->head_seen >= HL_RING_SLOTS;
}

/* The target has read the lines ahead a lap ago and has to give each of them up, which takes
 * as long as a call: it is asked for them early. */
#define HL_LINES_AHEAD 8u

static inline void hl_ring_put(struct hl_ring *ring, uint64_t word, void *info)
{
	uint64_t tail = ring->tail;
	struct hl_slot *slot = hl_slot_of(ring, tail);

	atomic_store_explicit(&slot->info, (uintptr_t)info, memory_order_relaxed);
	/* CALL_MESSAGE, pairs with is_there() in receive.c */
	atomic_store_explicit(&slot->word, word | hl_lap_of(tail), memory_order_release);
	ring->tail = ++tail;
	if (tail % HL_SLOTS_A_LINE == 0) {
		tail += HL_LINES_AHEAD * HL_SLOTS_A_LINE;
		if (tail - ring->head_seen <= HL_RING_SLOTS)
			hl_prefetchw(hl_slot_of(ring, tail));
	}
}

/* What the target wants done beside what was sent. */
static inline uint32_t hl_ring_attention(const struct hl_ring *ring)
{
	HL_DELAY(sent);
	/* CALL_ATTENTION: the target has this thread fence, but not its compiler */
	atomic_signal_fence(memory_order_seq_cst);
	return atomic_load_explicit(&ring->attention, memory_order_relaxed);
}

/*
 * Puts a message in and tells its position. 0; -ENXIO: nobody is there, it will not run.
 * me: the calling CPU, which serves itself while there is no room; NULL: not online.
 * csd: whose message it is; told where it goes before anybody can run it; may be NULL.
 */
static inline int hl_ring_send(struct hl_ring *ring, struct hl_cpu *me, uint64_t word, void *info,
			       uint64_t *position, struct hl_csd *csd)
{
	/* A function that interrupts this one may send to the same CPU. */
	bool irq = hl_irq_save(me);
	int rc = 0;

	if (__builtin_expect(hl_ring_is_full(ring), 0))
		rc = hl_ring_wait_for_room(ring, me, hl_sent_by_caller(word, info));
	if (__builtin_expect(!rc, 1)) {
		*position = ring->tail;
		if (csd) {
			csd->queue = ring;
			csd->position = ring->tail;
			word |= HL_WORD_CSD;
		}
		hl_ring_put(ring, word, info);
		if (__builtin_expect(hl_ring_attention(ring), 0))
			rc = hl_ring_attend(ring, *position);
	}
	hl_irq_restore(me, irq);
	return rc;
}

/* The same for messages that nobody waits for; how many will run, *rc why it is not all. */
unsigned hl_ring_send_some(struct hl_ring *ring, struct hl_cpu *me, const struct hl_call *calls,
			   unsigned n, int *rc);

/*
 * Sends what me waits for: until mail.done is not behind *number. 0; -ENXIO as above;
 * -EBUSY: there is mail on its way still.
 */
int hl_ring_mail(struct hl_ring *ring, struct hl_cpu *me, void (*func)(void *), void *info,
		 uint64_t *number);

/* Whether position a is behind b; they may wrap. */
static inline bool hl_is_behind(uint64_t a, uint64_t b)
{
	return (int64_t)(a - b) > 0;
}

/* call.c */

/* How long somebody waits for a target, and what for: all else zeroed at first. */
struct hl_stall {
	const struct hl_cpu *target;
	void (*sent)(void *info);
	uint64_t began_ms, reported_ms;
};

/* Tells the program of a wait that lasts too long, if it wants to know. */
void hl_look_for_stall(struct hl_stall *stall);

/* receive.c */

/* Runs a function on the calling CPU as if it had been sent: one deeper, interrupts off.
 * me->depth is below HL_MAX_NESTED. */
void hl_run_here(struct hl_cpu *me, void (*func)(void *), void *info);

extern const struct hl_cpu_room hl_call_room;

#endif
