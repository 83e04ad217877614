/* SPDX-License-Identifier: MIT */
/*
 * Batches: a few pointers that are handed over together.
 *
 * What costs much once and little for each - a lock, a system call, a broadcast - is done
 * for a batch. It must then cost nothing itself: struct hl_pagevec is 15 pointers and two
 * short counters, 128 bytes in two whole lines (64 in one where pointers have 32 bits). One
 * pointer more, or counters of a word each, and every batch would lie on three lines.
 *
 *	struct hl_pagevec batch;
 *
 *	hl_pagevec_init(&batch);
 *	while ((page = next_page()))
 *		if (!hl_pagevec_add(&batch, page))
 *			hl_pagevec_release(&batch, free_pages, NULL);
 *	hl_pagevec_release(&batch, free_pages, NULL);
 *
 * HL_DEFINE_BATCH() makes the same of another type and size. All of it is inline and any
 * thread may use it, in signal handlers too; a batch belongs to one thread at a time, or
 * to whoever holds its lock. Nothing is allocated.
 *
 * After the kernel's struct pagevec, which was cut from 16 pointers and two words to this
 * in 2004.
 */
#ifndef HOTLINE_PAGEVEC_H
#define HOTLINE_PAGEVEC_H

#include <stdint.h>

#include <hotline/cacheline.h>

/* For HL_DEFINE_BATCH: what stands before the first element, padding included. */
#define HL_PRIV_BATCH_HEAD(type) \
	(HL_PRIV_ALIGNOF(type) > 2 * sizeof(uint16_t) ? HL_PRIV_ALIGNOF(type) \
						      : 2 * sizeof(uint16_t))
#define HL_PRIV_BATCH_ROUND(bytes) (((bytes) + HL_CACHE_LINE - 1) / HL_CACHE_LINE * HL_CACHE_LINE)

/* HL_BATCH_ITEMS - how many elements of a type a batch of so many lines holds */
#define HL_BATCH_ITEMS(type, lines) \
	(((lines)*HL_CACHE_LINE - HL_PRIV_BATCH_HEAD(type)) / sizeof(type))

/*
 * HL_DEFINE_BATCH(name, type, n) - defines struct name, a batch, and its functions
 * @name: of the struct, and what the functions' names begin with
 * @type: of an element: anything that can be assigned
 * @n: how many it holds, 65535 at most. It must fill the lines that it takes: one element
 *	more would take another line; HL_BATCH_ITEMS() says how many fill so many lines.
 *	Anything else does not compile.
 *
 * The struct has .nr, how many were added, .taken, how many of those were taken out, and
 * .item[]. It starts a line and is whole lines long. The functions, all static inline:
 *
 *	void name_init(struct name *batch)
 *		Makes it empty. The elements are not written.
 *	unsigned name_add(struct name *batch, type item)
 *		Adds one and returns how many more there is room for: 0 says that it is
 *		full now. There must be room, which the batch does not check.
 *	unsigned name_count(const struct name *batch)
 *		How many are in it: added and not taken.
 *	unsigned name_space(const struct name *batch)
 *		How many more can be added.
 *	int name_take(struct name *batch, type *item)
 *		Takes out the one that was added first; 1, or 0 when there is none. When the
 *		last is taken there is room for all again.
 *	void name_reinit(struct name *batch)
 *		Forgets what is in it.
 *	void name_release(struct name *batch, void (*release)(type *items, unsigned n,
 *			  void *arg), void *arg)
 *		Hands what is in it to release() at once, and is empty then. With nothing in
 *		it release() is not called. It may use the items during the call only, and may
 *		not use the batch.
 */
#define HL_DEFINE_BATCH(name, type, n) \
	struct name { \
		uint16_t nr; \
		uint16_t taken; \
		type item[n]; \
	} HL_CACHELINE_ALIGNED; \
	HL_PRIV_ASSERT((n) > 0 && (n) <= UINT16_MAX && \
			       HL_PRIV_BATCH_HEAD(type) + ((n) + 1) * sizeof(type) > \
				       HL_PRIV_BATCH_ROUND(HL_PRIV_BATCH_HEAD(type) + \
							   (n) * sizeof(type)), \
		       "HL_DEFINE_BATCH: " #name " does not fill its cache lines: " \
		       "HL_BATCH_ITEMS(" #type ", lines) elements do"); \
	HL_PRIV_BATCH_FUNCTIONS(name, type, n)

#define HL_PRIV_BATCH_FUNCTIONS(name, type, n) \
	__attribute__((unused)) static inline void name##_init(struct name *batch) \
	{ \
		batch->nr = 0; \
		batch->taken = 0; \
	} \
	__attribute__((unused)) static inline void name##_reinit(struct name *batch) \
	{ \
		name##_init(batch); \
	} \
	__attribute__((unused)) static inline unsigned name##_count(const struct name *batch) \
	{ \
		return (unsigned)(batch->nr - batch->taken); \
	} \
	__attribute__((unused)) static inline unsigned name##_space(const struct name *batch) \
	{ \
		return (unsigned)((n)-batch->nr); \
	} \
	__attribute__((unused)) static inline unsigned name##_add(struct name *batch, type item) \
	{ \
		batch->item[batch->nr++] = item; \
		return name##_space(batch); \
	} \
	__attribute__((unused)) static inline int name##_take(struct name *batch, type *item) \
	{ \
		if (batch->taken == batch->nr) \
			return 0; \
		*item = batch->item[batch->taken++]; \
		if (batch->taken == batch->nr) \
			name##_init(batch); \
		return 1; \
	} \
	__attribute__((unused)) static inline void name##_release( \
		struct name *batch, void (*release)(type * items, unsigned count, void *arg), \
		void *arg) \
	{ \
		if (name##_count(batch)) \
			release(batch->item + batch->taken, name##_count(batch), arg); \
		name##_init(batch); \
	} \
	HL_PRIV_ASSERT(1, "takes the semicolon")

/* HL_PAGEVEC_SIZE - the pointers in a pagevec: 15, more where a line alone is longer */
#define HL_PAGEVEC_SIZE \
	(HL_CACHE_LINE > 16 * __SIZEOF_POINTER__ ? HL_CACHE_LINE / __SIZEOF_POINTER__ - 1 : 15)

/*
 * struct hl_pagevec - a batch of pointers: hl_pagevec_init(), hl_pagevec_add(),
 * hl_pagevec_count(), hl_pagevec_space(), hl_pagevec_take(), hl_pagevec_reinit() and
 * hl_pagevec_release(), as above with `void *` for the type
 */
HL_DEFINE_BATCH(hl_pagevec, void *, HL_PAGEVEC_SIZE);

HL_PRIV_ASSERT(HL_PRIV_ALIGNOF(struct hl_pagevec) == HL_CACHE_LINE, "a pagevec starts a line");
#if HL_CACHE_LINE <= 16 * __SIZEOF_POINTER__
HL_PRIV_ASSERT(sizeof(struct hl_pagevec) == 16 * sizeof(void *),
	       "a pagevec is as long as 16 pointers");
#endif

#endif
