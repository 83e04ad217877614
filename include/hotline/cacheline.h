/* SPDX-License-Identifier: MIT */
/*
 * Cache lines: how long they are, how to place data on them, and assertions that
 * hold a layout to what its author meant.
 *
 * A cache line is what travels between CPUs. Two fields on one line travel
 * together, whether or not they have anything to do with each other; one object
 * on two lines costs two journeys. This header has the few tools with which
 * every other part of Hotline is laid out:
 *
 *	struct queue {
 *		HL_CACHELINE_GROUP_BEGIN(producer) HL_CACHELINE_ALIGNED;
 *		unsigned long tail;
 *		unsigned long dropped;
 *		HL_CACHELINE_GROUP_END(producer);
 *
 *		HL_CACHELINE_GROUP_BEGIN(consumer) HL_CACHELINE_ALIGNED;
 *		unsigned long head;
 *		HL_CACHELINE_GROUP_END(consumer);
 *	};
 *	HL_CACHELINE_ASSERT_ALIGNED(struct queue, producer);
 *	HL_CACHELINE_ASSERT_MEMBER(struct queue, producer, tail);
 *	HL_CACHELINE_ASSERT_SIZE(struct queue, producer, 16);
 *	HL_CACHELINE_ASSERT_APART(struct queue, tail, head);
 *
 * All but hl_cache_line_size() and hl_cache_line_pair_size() is decided by the
 * compiler and costs nothing at run time. C11 or C++17 with gcc or clang.
 *
 * An alignment that a type asks for holds for static, automatic and thread-local
 * objects, for members, and in C++17 for `new`. malloc() does not know of it:
 * use aligned_alloc() or posix_memalign().
 */
#ifndef HOTLINE_CACHELINE_H
#define HOTLINE_CACHELINE_H

#include <stddef.h>

#include <hotline/api.h>

/*
 * HL_CACHE_LINE - bytes in a cache line, a constant for #if, alignas and arrays
 *
 * The line of the architecture that is compiled for: 64 bytes, but 128 on POWER
 * and on Apple's arm64, 256 on s390x. -DHL_CACHE_LINE=N overrides it with a power
 * of two, 16 or more. Public structs of Hotline depend on it: compile the library
 * and what uses it with the same value.
 */
#ifndef HL_CACHE_LINE
#if defined(__s390x__)
#define HL_CACHE_LINE 256
#elif defined(__powerpc64__) || (defined(__APPLE__) && defined(__aarch64__))
#define HL_CACHE_LINE 128
#else
#define HL_CACHE_LINE 64
#endif
#endif

#if HL_CACHE_LINE < 16 || (HL_CACHE_LINE & (HL_CACHE_LINE - 1)) != 0
#error "HL_CACHE_LINE must be a power of two, 16 or more: the bytes in a cache line"
#endif

/*
 * HL_CACHE_LINE_PAIR - bytes that the processor fetches when it is asked for a line
 *
 * The prefetcher of x86-64 processors fetches lines in aligned pairs: a CPU that
 * only ever touches one of the two takes the other away from its owner all the
 * same. There it is two lines, elsewhere one. It is worth its memory for a few
 * fields that several CPUs write all the time, rarely for more.
 */
#if defined(__x86_64__)
#define HL_CACHE_LINE_PAIR (2 * HL_CACHE_LINE)
#else
#define HL_CACHE_LINE_PAIR HL_CACHE_LINE
#endif

/*
 * HL_CACHELINE_ALIGNED - starts a cache line
 * HL_CACHELINE_PAIR_ALIGNED - starts a pair of lines
 *
 * Behind the name of a variable or a member, or behind the closing brace of a
 * struct. On a struct it also rounds the size up, so that nothing else shares its
 * last line and the elements of an array share none:
 *
 *	struct counter {
 *		unsigned long events;
 *	} HL_CACHELINE_ALIGNED;
 *
 * On a member it says where the member starts, not that it is alone: what follows
 * still shares the line.
 */
#define HL_CACHELINE_ALIGNED __attribute__((aligned(HL_CACHE_LINE)))
#define HL_CACHELINE_PAIR_ALIGNED __attribute__((aligned(HL_CACHE_LINE_PAIR)))

/* For the macros below; not for use outside this header. */
#ifdef __cplusplus
#define HL_PRIV_ASSERT(condition, message) static_assert(condition, message)
#define HL_PRIV_ALIGNOF(type) alignof(type)
#define HL_PRIV_SIZEOF(type, member) sizeof(static_cast<type *>(nullptr)->member)
#else
#define HL_PRIV_ASSERT(condition, message) _Static_assert(condition, message)
#define HL_PRIV_ALIGNOF(type) _Alignof(type)
#define HL_PRIV_SIZEOF(type, member) sizeof(((type *)0)->member)
#endif
#define HL_PRIV_POWER_OF_TWO(n) (((n) & ((n)-1)) == 0)
/* The offset behind the last byte of a member. */
#define HL_PRIV_END(type, member) (offsetof(type, member) + HL_PRIV_SIZEOF(type, member))
/* How far the place of an object is known: to its alignment, and at most to a line. */
#define HL_PRIV_KNOWN(type) \
	(HL_PRIV_ALIGNOF(type) < HL_CACHE_LINE ? HL_PRIV_ALIGNOF(type) : HL_CACHE_LINE)

/*
 * HL_TYPEDEF_SIZE_ALIGNED(type, name) - names a type that is aligned to its own size
 * @type: a complete struct type, whose size must be a power of two
 * @name: the new name for it
 *
 * What is no larger than a line and aligned to its size lies on one line wherever
 * it is; aligned to a word it straddles two every so often, and then each access
 * by another CPU moves two. The struct itself keeps its natural alignment, so it
 * can still be packed where that does not matter. A size that is no power of two
 * does not compile:
 *
 *	struct message {
 *		struct message *next;
 *		void (*func)(void *info);
 *		void *info;
 *		unsigned long flags;
 *	};
 *	HL_TYPEDEF_SIZE_ALIGNED(struct message, message_aligned);
 *
 *	struct mailbox {
 *		int owner;
 *		message_aligned message;
 *	};
 *
 * In C the new name is the same type, so pointers to one and the other mix. In C++
 * it is hl_size_aligned<type>, a struct that derives from the type and adds
 * nothing, because templates drop the alignment of a mere typedef: containers and
 * `new` respect this one, and its address converts to one of the type. C++ code
 * can also write hl_size_aligned<T> itself.
 *
 * The idea is that of call_single_data_t in the Linux kernel.
 */
#ifdef __cplusplus
extern "C++" {
template <typename T>
struct alignas(HL_PRIV_POWER_OF_TWO(sizeof(T)) ? sizeof(T) : alignof(T)) hl_size_aligned : T {
	static_assert(HL_PRIV_POWER_OF_TWO(sizeof(T)),
		      "hl_size_aligned: the size of the type is no power of two: "
		      "add padding or take fields out until it is");
};
}
#define HL_PRIV_TYPEDEF_SIZE_ALIGNED(type, name) typedef hl_size_aligned<type> name
#else
#define HL_PRIV_TYPEDEF_SIZE_ALIGNED(type, name) \
	typedef type name \
		__attribute__((aligned(HL_PRIV_POWER_OF_TWO(sizeof(type)) ? sizeof(type) : 1)))
#endif
#define HL_TYPEDEF_SIZE_ALIGNED(type, name) \
	HL_PRIV_ASSERT(HL_PRIV_POWER_OF_TWO(sizeof(type)), \
		       "HL_TYPEDEF_SIZE_ALIGNED: the size of " #type " is no power of two: " \
		       "add padding or take fields out until it is"); \
	HL_PRIV_TYPEDEF_SIZE_ALIGNED(type, name)

/*
 * HL_CACHELINE_GUARD(name) - a member that keeps its neighbours a line apart
 *
 * It fills one whole line: what is before it and what is behind it lie on lines
 * that are not even adjacent. That matters where fields of two writers are on
 * lines of their own and still disturb each other, because the prefetcher of a
 * CPU that walks or polls one line fetches the next one too (or, on x86-64, the
 * other of the pair). One guard is enough against both. Place it behind an array
 * as well, whose last element has a neighbour too. The name keeps the layout, and
 * in C++ the type, the same in every file.
 */
#define HL_CACHELINE_GUARD(name) char name[HL_CACHE_LINE] HL_CACHELINE_ALIGNED

/*
 * HL_CACHELINE_GROUP_BEGIN(group) - opens a named group of fields
 * HL_CACHELINE_GROUP_END(group) - closes it
 *
 * Members of size zero that mark which fields belong together because the same
 * CPU writes them, or all read them; the assertions below hold them to it. The
 * group starts a line if HL_CACHELINE_ALIGNED (or the pair) stands behind BEGIN,
 * and then belongs on lines of its own if the next group does the same.
 *
 * Being members, they have their place in an initialiser. Name the fields
 * (`{ .head = 1 }`) or leave it empty (`{}`, in C a GNU extension before C23);
 * `{ 0 }` would initialise the marker. g++ -Wpedantic objects to them unless the
 * header is a system header, as the installed one is.
 */
#define HL_CACHELINE_GROUP_BEGIN(group) __extension__ char hl_group_begin_##group[0]
#define HL_CACHELINE_GROUP_END(group) __extension__ char hl_group_end_##group[0]

/*
 * The assertions. Each is a declaration that follows the definition of the struct,
 * at file or block scope, and fails to compile with a message that says what to
 * do. In C++ the type must be of standard layout and its members accessible.
 *
 * What is asserted of lines holds for every object of the type, wherever it is:
 * offsets alone prove nothing if the struct is not aligned, so the alignment of
 * the type is taken into account.
 */

/* HL_CACHELINE_ASSERT_MEMBER(type, group, member) - the member is inside the group */
#define HL_CACHELINE_ASSERT_MEMBER(type, group, member) \
	HL_PRIV_ASSERT(HL_PRIV_END(type, hl_group_begin_##group) <= offsetof(type, member) && \
			       HL_PRIV_END(type, member) <= offsetof(type, hl_group_end_##group), \
		       "HL_CACHELINE_ASSERT_MEMBER: " #member " of " #type \
		       " is outside the group " #group ": move the field between the BEGIN and " \
		       "the END of the group, or assert it in the group where it belongs now")

/*
 * HL_CACHELINE_ASSERT_SIZE(type, group, bytes) - the size of the group
 *
 * From BEGIN to END: what the fields take, without the padding behind the last.
 * Exact where pointers have 64 bits and lines 64 bytes; elsewhere the group may be
 * smaller, but not larger.
 */
#if __SIZEOF_POINTER__ == 8 && HL_CACHE_LINE == 64
#define HL_PRIV_SIZE_HOLDS(actual, bytes) ((actual) == (bytes))
#else
#define HL_PRIV_SIZE_HOLDS(actual, bytes) ((actual) <= (bytes))
#endif
#define HL_CACHELINE_ASSERT_SIZE(type, group, bytes) \
	HL_PRIV_ASSERT( \
		HL_PRIV_SIZE_HOLDS(offsetof(type, hl_group_end_##group) - \
					   offsetof(type, hl_group_begin_##group), \
				   bytes), \
		"HL_CACHELINE_ASSERT_SIZE: the group " #group " of " #type " does not have " \
		"the size " #bytes ": a field was added, removed or changed; see whether the " \
		"group still fits its lines, then state the new size")

/* HL_CACHELINE_ASSERT_ALIGNED(type, group) - the group starts a line */
#define HL_CACHELINE_ASSERT_ALIGNED(type, group) \
	HL_PRIV_ASSERT(HL_PRIV_ALIGNOF(type) % HL_CACHE_LINE == 0 && \
			       offsetof(type, hl_group_begin_##group) % HL_CACHE_LINE == 0, \
		       "HL_CACHELINE_ASSERT_ALIGNED: the group " #group " of " #type " does not " \
		       "start a cache line: put HL_CACHELINE_ALIGNED behind its BEGIN")

/*
 * HL_CACHELINE_ASSERT_APART(type, a, b) - two members never share a line
 *
 * Neither the last byte of the one and the first of the other, nor any between.
 */
#define HL_PRIV_BEFORE(type, a, b) \
	(HL_PRIV_ALIGNOF(type) % HL_CACHE_LINE == 0 \
		 ? (HL_PRIV_END(type, a) - 1) / HL_CACHE_LINE < offsetof(type, b) / HL_CACHE_LINE \
		 : HL_PRIV_END(type, a) - 1 + HL_CACHE_LINE <= offsetof(type, b))
#define HL_CACHELINE_ASSERT_APART(type, a, b) \
	HL_PRIV_ASSERT( \
		HL_PRIV_BEFORE(type, a, b) || HL_PRIV_BEFORE(type, b, a), \
		"HL_CACHELINE_ASSERT_APART: " #a " and " #b " of " #type " can share a cache " \
		"line: put HL_CACHELINE_ALIGNED behind the later one, or a guard between them")

/*
 * HL_CACHELINE_ASSERT_FITS(type) - an object of the type never straddles two lines
 *
 * It is no larger than a line and aligned to its size, as by
 * HL_TYPEDEF_SIZE_ALIGNED or by an attribute of the struct itself.
 */
#define HL_CACHELINE_ASSERT_FITS(type) \
	HL_PRIV_ASSERT(sizeof(type) <= HL_PRIV_KNOWN(type), \
		       "HL_CACHELINE_ASSERT_FITS: " #type " can straddle two cache lines: make " \
		       "it no larger than a line and align it to its size, a power of two")

/* HL_CACHELINE_ASSERT_MEMBER_FITS(type, member) - the member never straddles two lines */
#define HL_CACHELINE_ASSERT_MEMBER_FITS(type, member) \
	HL_PRIV_ASSERT( \
		offsetof(type, member) / HL_PRIV_KNOWN(type) == \
			(HL_PRIV_END(type, member) - 1) / HL_PRIV_KNOWN(type), \
		"HL_CACHELINE_ASSERT_MEMBER_FITS: " #member " of " #type " can straddle " \
		"two cache lines: move or align the member, and align the struct to a line")

/*
 * hl_prefetch - begins to fetch a line in order to read it
 * hl_prefetchw - begins to fetch a line in order to write it
 * @p: any address in the line; it need not be valid, and may be NULL
 *
 * Hints: they return at once and never fault. For writing, the line is taken away
 * from the other CPUs now, which saves the second journey that a write after a
 * read costs, and steals the line if it is not written after all. They gain
 * nothing unless there is other work to do meanwhile: ask some elements ahead.
 *
 * Any thread, any context, signal handlers included.
 *
 * x86-64 compilers turn a prefetch for writing into one for reading unless told
 * that the processor has the instruction; every 64-bit one accepts it.
 */
static inline void hl_prefetch(const void *p)
{
	__builtin_prefetch(p, 0, 3);
}

static inline void hl_prefetchw(const void *p)
{
#if defined(__x86_64__)
	__asm__ volatile("prefetchw (%0)" : : "r"(p));
#else
	__builtin_prefetch(p, 1, 3);
#endif
}

HL_BEGIN_DECLS

/*
 * hl_cache_line_size - the bytes in a cache line of this machine
 *
 * What the C library, the kernel or the processor reports, in this order, and
 * HL_CACHE_LINE as the library was compiled if none of them knows. For sizing at
 * run time and for reports. If it is larger than HL_CACHE_LINE, structs that are
 * meant to be apart share lines on this machine: compile with -DHL_CACHE_LINE.
 *
 * Return: a power of two, 16 or more, the same in every call. It cannot fail, and
 * leaves errno alone.
 *
 * Any thread; no memory is allocated, no lock taken, and it is no cancellation
 * point. The first call in a process asks the C library and may read a file: make
 * it outside signal handlers. Later calls only load a variable and are fine
 * there, and in the child of a fork.
 */
HL_API size_t hl_cache_line_size(void);

/*
 * hl_cache_line_pair_size - the bytes that the processor fetches together
 *
 * Two lines on x86-64, elsewhere one; see HL_CACHE_LINE_PAIR. No processor reports
 * this, so it is the size of the line and what is known of the architecture.
 *
 * Return, and where it may be called: as for hl_cache_line_size().
 */
HL_API size_t hl_cache_line_pair_size(void);

HL_END_DECLS

#endif
