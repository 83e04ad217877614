// SPDX-License-Identifier: MIT
/*
 * A configuration that is replaced while it is read. Readers take no lock and never see half
 * of it; the old one is freed when the last of them is done with it, and nobody waits for that.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <hotline/rcu.h>

#define READERS 3
#define RELOADS 20000

struct config {
	int connections;
	int timeout; /* always ten times as many */
};

static struct config *current;
static atomic_bool stop, mixed;
static atomic_ulong lookups;

/* Only ever called by one thread; several would use hl_rcu_xchg_pointer(). */
static int reload(int connections)
{
	struct config *config = malloc(sizeof(*config)), *old = current;

	if (!config)
		return -1;
	config->connections = connections;
	config->timeout = connections * 10;
	hl_rcu_assign_pointer(current, config);
	return hl_free_rcu(old);
}

static void *serve(void *arg)
{
	unsigned long n = 0;

	for (; !atomic_load(&stop); n++) {
		const struct config *config;

		hl_rcu_read_lock();
		config = hl_rcu_dereference(current);
		if (config->timeout != config->connections * 10)
			atomic_store(&mixed, true);
		hl_rcu_read_unlock();
	}
	atomic_fetch_add(&lookups, n);
	return arg;
}

int main(void)
{
	pthread_t reader[READERS];
	struct hl_rcu_stats stats;

	if (reload(1))
		return 1;
	for (int i = 0; i < READERS; i++)
		if (pthread_create(&reader[i], NULL, serve, NULL))
			return 1;
	for (int i = 2; i <= RELOADS; i++)
		if (reload(i))
			return 1;
	atomic_store(&stop, true);
	for (int i = 0; i < READERS; i++)
		pthread_join(reader[i], NULL);
	if (hl_rcu_barrier())
		return 1;
	hl_rcu_get_stats(&stats);
	printf("%lu lookups beside %d reloads, %llu grace periods\n", (unsigned long)lookups,
	       RELOADS, (unsigned long long)stats.grace_periods);
	free(current);
	return mixed || stats.backlog ? 1 : 0;
}
