// SPDX-License-Identifier: MIT
/*
 * The heap: which block holds an address, and where it was allocated.
 *
 * Nothing is put into or between the program's blocks, so that they lie in memory as they would
 * without us.  Three tables beside it, two of them reserved for the whole address space like the
 * cells:
 *
 *	small	by 16 bytes of memory: the block of less than 1 KiB that begins there
 *	large	by KiB: the block that holds the KiB's first byte, and the one that begins behind it
 *	huge	a list: blocks of 64 MiB and more, and what the program maps
 *
 * Who allocates and frees is alone with the entries of its block; who looks up a line does so at
 * any time, and sees a block or none.
 */
/* Both mmap() and mmap64() are defined here, under their own names. */
#undef _FILE_OFFSET_BITS
#include "runtime.h"
#include "real.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SMALL 1024u
#define HUGE ((size_t)64 << 20)
#define ADDRESS_BITS 47
#define ADDRESS_MASK (((uintptr_t)1 << ADDRESS_BITS) - 1)

/* stack << 10 | size, 0: none begins here. */
static _Atomic uint32_t *small;
#define SMALL_TABLE (((size_t)1 << ADDRESS_BITS) / 16 * sizeof(*small))

struct window {
	_Atomic uint32_t first, next; /* indexes of struct block */
};
static struct window *large;
#define LARGE_TABLE (((size_t)1 << ADDRESS_BITS) / SMALL * sizeof(*large))

struct block {
	uintptr_t start;
	size_t size;
	uint32_t stack;
	uint32_t next_free;
};
static struct block *blocks;
#define MAX_BLOCKS (1u << 22)

/* Under heap_lock. */
static pthread_mutex_t heap_lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t n_blocks = 1, free_block;
#define MAX_HUGE 1024
static struct hl_raw_part huge[MAX_HUGE];
static unsigned n_huge;

void hl_heap_init(void)
{
	small = hl_map(SMALL_TABLE);
	large = hl_map(LARGE_TABLE);
	blocks = hl_map(MAX_BLOCKS * sizeof(*blocks));
}

void hl_heap_lock(void)
{
	pthread_mutex_lock(&heap_lock);
}

void hl_heap_unlock(void)
{
	pthread_mutex_unlock(&heap_lock);
}

static _Atomic uint32_t *small_at(uintptr_t address)
{
	return &small[(address & ADDRESS_MASK) / 16];
}

static struct window *window_at(uintptr_t address)
{
	return &large[(address & ADDRESS_MASK) / SMALL];
}

static uint32_t get(const _Atomic uint32_t *entry)
{
	return atomic_load_explicit(entry, memory_order_relaxed);
}

static void set(_Atomic uint32_t *entry, uint32_t value)
{
	atomic_store_explicit(entry, value, memory_order_relaxed);
}

/* ---- Blocks that come and go. ---- */

static uint32_t take_block(void)
{
	uint32_t index;

	hl_heap_lock();
	index = free_block;
	if (index)
		free_block = blocks[index].next_free;
	else if (n_blocks < MAX_BLOCKS)
		index = n_blocks++;
	hl_heap_unlock();
	return index;
}

static void give_block(uint32_t index)
{
	hl_heap_lock();
	blocks[index].next_free = free_block;
	free_block = index;
	hl_heap_unlock();
}

static void set_windows(uintptr_t start, size_t size, uint32_t index)
{
	struct window *window = window_at(start), *last = window_at(start + size - 1);

	if (start % SMALL)
		set(&window++->next, index);
	for (; window <= last; window++)
		set(&window->first, index);
}

static void add_huge(uintptr_t start, size_t size, uint32_t stack, enum hl_raw_place place)
{
	hl_heap_lock();
	if (n_huge < MAX_HUGE)
		huge[n_huge++] = (struct hl_raw_part){
			.start = start, .size = size, .stack = stack, .place = place
		};
	hl_heap_unlock();
}

/* What was mapped is unmapped in whole or in part: the part that stays keeps its place. */
static void cut_huge(uintptr_t start, size_t size)
{
	hl_heap_lock();
	for (unsigned i = 0; i < n_huge; i++) {
		struct hl_raw_part *part = &huge[i];

		if (start <= part->start && start + size >= part->start + part->size)
			*part = huge[--n_huge], i--;
		else if (start <= part->start && start + size > part->start)
			part->size -= start + size - part->start, part->start = start + size;
		else if (start > part->start && start < part->start + part->size)
			part->size = start - part->start;
	}
	hl_heap_unlock();
}

static void add_block(void *at, size_t size, uintptr_t pc)
{
	uintptr_t start = (uintptr_t)at;
	uint32_t stack, index;

	if (!at || hl_self.busy || !hl_ready())
		return;
	hl_self.busy++;
	stack = hl_stack_here(pc);
	size = size ? size : 1;
	/* A block that was freed when its thread was no longer watched has left its entry. */
	set(small_at(start), size < SMALL ? stack << 10 | (uint32_t)size : 0);
	if (size >= HUGE) {
		add_huge(start, size, stack, HL_RAW_HEAP);
	} else if (size >= SMALL && (index = take_block())) {
		blocks[index] = (struct block){ .start = start, .size = size, .stack = stack };
		set_windows(start, size, index);
	}
	hl_new_object(start, size);
	hl_self.busy--;
}

/* The block begins here; its size, 0: not known. */
static size_t remove_block(void *at)
{
	uintptr_t start = (uintptr_t)at;
	uint32_t entry, index;
	size_t size = 0;

	if (!at || !hl_on || hl_self.busy)
		return 0;
	hl_self.busy++;
	entry = get(small_at(start));
	index = get(start % SMALL ? &window_at(start)->next : &window_at(start)->first);
	if (entry) {
		size = entry % SMALL;
		set(small_at(start), 0);
	} else if (index && blocks[index].start == start) {
		size = blocks[index].size;
		set_windows(start, size, 0);
		give_block(index);
	} else if (n_huge) {
		hl_heap_lock();
		for (unsigned i = 0; i < n_huge && !size; i++)
			size = huge[i].start == start && huge[i].place == HL_RAW_HEAP ? huge[i].size
										      : 0;
		hl_heap_unlock();
		if (size)
			cut_huge(start, size);
	}
	hl_forget(start, size);
	hl_self.busy--;
	return size;
}

/* ---- Looking up. ---- */

static bool block_of(struct hl_raw_part *part, uint32_t index, uintptr_t from, uintptr_t to)
{
	struct block *block = &blocks[index];

	if (!index || block->start >= to || block->start + block->size <= from)
		return false;
	*part = (struct hl_raw_part){ .start = block->start,
				      .size = block->size,
				      .stack = block->stack,
				      .place = HL_RAW_HEAP };
	return true;
}

/* The blocks that have bytes from `from` on and before `to`, which are in one line. */
static unsigned find(struct hl_raw_part *part, unsigned room, uintptr_t from, uintptr_t to)
{
	struct window *window = window_at(from);
	unsigned n = 0;

	if (!blocks || !small || !large)
		return 0;
	for (uintptr_t at = (from & ~(uintptr_t)15) - SMALL + 16; at < to && n < room; at += 16) {
		uint32_t entry = get(small_at(at));

		if (entry && at + entry % SMALL > from)
			part[n++] = (struct hl_raw_part){ .start = at,
							  .size = entry % SMALL,
							  .stack = entry / SMALL,
							  .place = HL_RAW_HEAP };
	}
	if (n < room)
		n += block_of(&part[n], get(&window->first), from, to);
	if (n < room)
		n += block_of(&part[n], get(&window->next), from, to);
	if (n_huge && n < room) {
		hl_heap_lock();
		for (unsigned i = 0; i < n_huge && n < room; i++) {
			if (huge[i].start < to && huge[i].start + huge[i].size > from)
				part[n++] = huge[i];
		}
		hl_heap_unlock();
	}
	return n;
}

unsigned hl_heap_parts(struct hl_raw_part *part, uintptr_t line)
{
	return find(part, HL_RAW_PARTS, line, line + LINE_BYTES);
}

bool hl_heap_block(struct hl_raw_part *part, uintptr_t address)
{
	return find(part, 1, address, address + 1);
}

/* ---- Before libc's own can be found: the search for it allocates. ---- */

static _Alignas(64) char arena[1u << 16];
static size_t arena_used;
static __thread unsigned searching __attribute__((tls_model("initial-exec")));

static void *from_arena(size_t size)
{
	size_t at = __atomic_fetch_add(&arena_used, (size + 63) & ~(size_t)63, __ATOMIC_RELAXED);

	return at + size <= sizeof(arena) ? arena + at : NULL;
}

static bool in_arena(const void *at)
{
	return (const char *)at >= arena && (const char *)at < arena + sizeof(arena);
}

#define FIND(name) \
	({ \
		searching++; \
		__typeof__(&name) real_ = REAL(name); \
		searching--; \
		real_; \
	})

/* ---- What the program calls. ---- */

static void *allocate(size_t size, uintptr_t pc)
{
	void *at;

	if (searching)
		return from_arena(size);
	at = FIND(malloc)(size);
	add_block(at, size, pc);
	return at;
}

HOOK void *malloc(size_t size)
{
	return allocate(size, CALLER);
}

HOOK void *calloc(size_t n, size_t size)
{
	void *at;

	if (searching)
		return from_arena(n * size);
	at = FIND(calloc)(n, size);
	add_block(at, n * size, CALLER);
	return at;
}

HOOK void free(void *at)
{
	if (!at || in_arena(at))
		return;
	remove_block(at);
	FIND(free)(at);
}

static void *move_from_arena(void *old, size_t size, uintptr_t pc)
{
	void *at = allocate(size, pc);
	size_t most = (size_t)(arena + sizeof(arena) - (char *)old);

	for (size_t i = 0; at && i < size && i < most; i++)
		((char *)at)[i] = ((char *)old)[i];
	return at;
}

static void *reallocate(void *old, size_t size, uintptr_t pc)
{
	size_t before;
	void *at;

	if (searching || in_arena(old))
		return old ? move_from_arena(old, size, pc) : from_arena(size);
	before = remove_block(old);
	at = FIND(realloc)(old, size);
	if (at)
		add_block(at, size, pc);
	else if (size && before)
		add_block(old, before, pc);
	return at;
}

HOOK void *realloc(void *old, size_t size)
{
	return reallocate(old, size, CALLER);
}

HOOK void *reallocarray(void *old, size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return reallocate(old, bytes, CALLER);
}

HOOK void *memalign(size_t align, size_t size)
{
	void *at = FIND(memalign)(align, size);

	add_block(at, size, CALLER);
	return at;
}

HOOK void *aligned_alloc(size_t align, size_t size)
{
	void *at = FIND(aligned_alloc)(align, size);

	add_block(at, size, CALLER);
	return at;
}

HOOK int posix_memalign(void **at, size_t align, size_t size)
{
	int status = FIND(posix_memalign)(at, align, size);

	if (!status)
		add_block(*at, size, CALLER);
	return status;
}

HOOK void *valloc(size_t size)
{
	void *at = FIND(valloc)(size);

	add_block(at, size, CALLER);
	return at;
}

/*
 * C++: libstdc++'s and libc++'s call malloc, but then the place would be in there.  What cannot be
 * had is asked of the real one, which knows how to fail.
 */
void *_Znwm(size_t size);
void *_Znam(size_t size);
void *_ZnwmRKSt9nothrow_t(size_t size, const void *tag);
void *_ZnamRKSt9nothrow_t(size_t size, const void *tag);
void *_ZnwmSt11align_val_t(size_t size, size_t align);
void *_ZnamSt11align_val_t(size_t size, size_t align);

static void *allocate_aligned(size_t size, size_t align, uintptr_t pc)
{
	void *at = FIND(memalign)(align, size);

	add_block(at, size, pc);
	return at;
}

HOOK void *_Znwm(size_t size)
{
	void *at = allocate(size, CALLER);

	return at ? at : REAL(_Znwm)(size);
}

HOOK void *_Znam(size_t size)
{
	void *at = allocate(size, CALLER);

	return at ? at : REAL(_Znam)(size);
}

HOOK void *_ZnwmRKSt9nothrow_t(size_t size, const void *tag)
{
	void *at = allocate(size, CALLER);

	return at ? at : REAL(_ZnwmRKSt9nothrow_t)(size, tag);
}

HOOK void *_ZnamRKSt9nothrow_t(size_t size, const void *tag)
{
	void *at = allocate(size, CALLER);

	return at ? at : REAL(_ZnamRKSt9nothrow_t)(size, tag);
}

HOOK void *_ZnwmSt11align_val_t(size_t size, size_t align)
{
	void *at = allocate_aligned(size, align, CALLER);

	return at ? at : REAL(_ZnwmSt11align_val_t)(size, align);
}

HOOK void *_ZnamSt11align_val_t(size_t size, size_t align)
{
	void *at = allocate_aligned(size, align, CALLER);

	return at ? at : REAL(_ZnamSt11align_val_t)(size, align);
}

/* ---- Memory that is mapped. ---- */

static void add_mapping(void *at, size_t size, int flags, uintptr_t pc)
{
	if (at == MAP_FAILED || !hl_on || hl_self.busy)
		return;
	hl_self.busy++;
	if (flags & MAP_FIXED)
		cut_huge((uintptr_t)at, size);
	hl_forget((uintptr_t)at, size);
	add_huge((uintptr_t)at, size, hl_stack_here(pc), HL_RAW_MAPPED);
	hl_self.busy--;
}

HOOK void *mmap(void *want, size_t size, int protection, int flags, int fd, off_t offset)
{
	void *at = FIND(mmap)(want, size, protection, flags, fd, offset);

	add_mapping(at, size, flags, CALLER);
	return at;
}

HOOK void *mmap64(void *want, size_t size, int protection, int flags, int fd, off64_t offset)
{
	void *at = FIND(mmap64)(want, size, protection, flags, fd, offset);

	add_mapping(at, size, flags, CALLER);
	return at;
}

HOOK int munmap(void *at, size_t size)
{
	if (hl_on && !hl_self.busy) {
		hl_self.busy++;
		cut_huge((uintptr_t)at, size);
		hl_forget((uintptr_t)at, size);
		hl_self.busy--;
	}
	return FIND(munmap)(at, size);
}
