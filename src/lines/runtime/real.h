/* SPDX-License-Identifier: MIT */
/*
 * The functions that ours stand in front of.
 */
#ifndef HL_LINES_REAL_H
#define HL_LINES_REAL_H

/* Looks the function up behind us; never NULL for what libc has. */
void *hl_real(const char *name);

/* The function itself, looked up when it is called first. */
#define REAL(name) \
	({ \
		static __typeof__(&name) found_; \
		__typeof__(&name) at_ = __atomic_load_n(&found_, __ATOMIC_RELAXED); \
\
		if (__builtin_expect(!at_, 0)) { \
			at_ = (__typeof__(&name))hl_real(#name); \
			__atomic_store_n(&found_, at_, __ATOMIC_RELAXED); \
		} \
		at_; \
	})

#endif
