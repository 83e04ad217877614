// SPDX-License-Identifier: MIT
/*
 * Atomic operations, which the compilers leave to the runtime as a whole: they are done here,
 * with the order that was asked for, and counted.
 */
#include "runtime.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

typedef unsigned __int128 u128;

/*
 * The order comes as a number.  A weaker one than asked for would be wrong, a stronger one dear:
 * loads and stores are done as asked; what reads and writes is one instruction in any order on
 * x86-64, and elsewhere done in the strongest.
 */
#define LOADS(bits, type) \
	HOOK type __tsan_atomic##bits##_load(const volatile type *at, int order) \
	{ \
		hl_access((uintptr_t)at, sizeof(type), HL_RAW_ATOMIC, CALLER); \
		return order == __ATOMIC_RELAXED   ? __atomic_load_n(at, __ATOMIC_RELAXED) \
		       : order == __ATOMIC_SEQ_CST ? __atomic_load_n(at, __ATOMIC_SEQ_CST) \
						   : __atomic_load_n(at, __ATOMIC_ACQUIRE); \
	} \
	HOOK void __tsan_atomic##bits##_store(volatile type *at, type value, int order) \
	{ \
		hl_access((uintptr_t)at, sizeof(type), HL_RAW_WRITE | HL_RAW_ATOMIC, CALLER); \
		if (order == __ATOMIC_RELAXED) \
			__atomic_store_n(at, value, __ATOMIC_RELAXED); \
		else if (order == __ATOMIC_RELEASE) \
			__atomic_store_n(at, value, __ATOMIC_RELEASE); \
		else \
			__atomic_store_n(at, value, __ATOMIC_SEQ_CST); \
	}

#define CHANGES (HL_RAW_WRITE | HL_RAW_ATOMIC | HL_RAW_RMW)

#define FETCHES(bits, type, operation) \
	HOOK type __tsan_atomic##bits##_fetch_##operation(volatile type *at, type value, \
							  int order) \
	{ \
		(void)order; \
		hl_access((uintptr_t)at, sizeof(type), CHANGES, CALLER); \
		return __atomic_fetch_##operation(at, value, __ATOMIC_SEQ_CST); \
	}

#define OTHERS(bits, type) \
	HOOK type __tsan_atomic##bits##_exchange(volatile type *at, type value, int order) \
	{ \
		(void)order; \
		hl_access((uintptr_t)at, sizeof(type), CHANGES, CALLER); \
		return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST); \
	} \
	HOOK int __tsan_atomic##bits##_compare_exchange_strong(volatile type *at, type *expected, \
							       type value, int order, int failing) \
	{ \
		(void)order, (void)failing; \
		hl_access((uintptr_t)at, sizeof(type), CHANGES, CALLER); \
		return __atomic_compare_exchange_n(at, expected, value, 0, __ATOMIC_SEQ_CST, \
						   __ATOMIC_SEQ_CST); \
	} \
	HOOK int __tsan_atomic##bits##_compare_exchange_weak(volatile type *at, type *expected, \
							     type value, int order, int failing) \
	{ \
		(void)order, (void)failing; \
		hl_access((uintptr_t)at, sizeof(type), CHANGES, CALLER); \
		return __atomic_compare_exchange_n(at, expected, value, 1, __ATOMIC_SEQ_CST, \
						   __ATOMIC_SEQ_CST); \
	} \
	HOOK type __tsan_atomic##bits##_compare_exchange_val(volatile type *at, type expected, \
							     type value, int order, int failing) \
	{ \
		(void)order, (void)failing; \
		hl_access((uintptr_t)at, sizeof(type), CHANGES, CALLER); \
		__atomic_compare_exchange_n(at, &expected, value, 0, __ATOMIC_SEQ_CST, \
					    __ATOMIC_SEQ_CST); \
		return expected; \
	} \
	FETCHES(bits, type, add) \
	FETCHES(bits, type, sub) \
	FETCHES(bits, type, and) \
	FETCHES(bits, type, or) \
	FETCHES(bits, type, xor) \
	FETCHES(bits, type, nand)

LOADS(8, uint8_t)
LOADS(16, uint16_t)
LOADS(32, uint32_t)
LOADS(64, uint64_t)
OTHERS(8, uint8_t)
OTHERS(16, uint16_t)
OTHERS(32, uint32_t)
OTHERS(64, uint64_t)

/* ---- 128 bits: what the machine has is a compare-and-swap (GCC leaves it to libatomic). ---- */

static u128 swap_if(volatile u128 *at, u128 expected, u128 value)
{
	return __sync_val_compare_and_swap(at, expected, value);
}

HOOK u128 __tsan_atomic128_load(const volatile u128 *at, int order)
{
	(void)order;
	hl_access((uintptr_t)at, sizeof(*at), HL_RAW_ATOMIC, CALLER);
	return swap_if((volatile u128 *)at, 0, 0);
}

#define SWAPS128(name, result, next) \
	HOOK result __tsan_atomic128_##name(volatile u128 *at, u128 value, int order) \
	{ \
		u128 old = *at, seen; \
\
		(void)order; \
		hl_access((uintptr_t)at, sizeof(*at), CHANGES, CALLER); \
		while ((seen = swap_if(at, old, next)) != old) \
			old = seen; \
		return (result)old; \
	}

SWAPS128(store, void, value)
SWAPS128(exchange, u128, value)
SWAPS128(fetch_add, u128, old + value)
SWAPS128(fetch_sub, u128, old - value)
SWAPS128(fetch_and, u128, old &value)
SWAPS128(fetch_or, u128, old | value)
SWAPS128(fetch_xor, u128, old ^ value)
SWAPS128(fetch_nand, u128, ~(old &value))

HOOK int __tsan_atomic128_compare_exchange_strong(volatile u128 *at, u128 *expected, u128 value,
						  int order, int failing)
{
	u128 wanted = *expected;

	(void)order, (void)failing;
	hl_access((uintptr_t)at, sizeof(*at), CHANGES, CALLER);
	*expected = swap_if(at, wanted, value);
	return *expected == wanted;
}

HOOK int __tsan_atomic128_compare_exchange_weak(volatile u128 *at, u128 *expected, u128 value,
						int order, int failing)
{
	u128 wanted = *expected;

	(void)order, (void)failing;
	hl_access((uintptr_t)at, sizeof(*at), CHANGES, CALLER);
	*expected = swap_if(at, wanted, value);
	return *expected == wanted;
}

HOOK u128 __tsan_atomic128_compare_exchange_val(volatile u128 *at, u128 expected, u128 value,
						int order, int failing)
{
	(void)order, (void)failing;
	hl_access((uintptr_t)at, sizeof(*at), CHANGES, CALLER);
	return swap_if(at, expected, value);
}

HOOK void __tsan_atomic_thread_fence(int order)
{
	(void)order;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

HOOK void __tsan_atomic_signal_fence(int order)
{
	(void)order;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}
