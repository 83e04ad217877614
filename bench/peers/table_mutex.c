// SPDX-License-Identifier: MIT
#include <pthread.h>

#include <hotline/cacheline.h>

#define TABLE table_mutex

static pthread_mutex_t lock HL_CACHELINE_PAIR_ALIGNED = PTHREAD_MUTEX_INITIALIZER;

static inline void read_lock(void)
{
	pthread_mutex_lock(&lock);
}

static inline void read_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

static inline void write_lock(void)
{
	pthread_mutex_lock(&lock);
}

static inline void write_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

#include "bench/peers/table_chained.h"
