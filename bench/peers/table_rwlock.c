// SPDX-License-Identifier: MIT
#include <pthread.h>

#include <hotline/cacheline.h>

#define TABLE table_rwlock

static pthread_rwlock_t lock HL_CACHELINE_PAIR_ALIGNED = PTHREAD_RWLOCK_INITIALIZER;

static inline void read_lock(void)
{
	pthread_rwlock_rdlock(&lock);
}

static inline void read_unlock(void)
{
	pthread_rwlock_unlock(&lock);
}

static inline void write_lock(void)
{
	pthread_rwlock_wrlock(&lock);
}

static inline void write_unlock(void)
{
	pthread_rwlock_unlock(&lock);
}

#include "bench/peers/table_chained.h"
