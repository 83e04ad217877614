// SPDX-License-Identifier: MIT
/*
 * A table of routes that threads look addresses up in while others come and go: the table
 * grows and shrinks, and no lookup waits.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <hotline/rcu.h>
#include <hotline/rcuhash.h>

#define KEPT 100u
#define FLOOD 20000u

struct route {
	struct hl_rcu_hash_node node;
	uint64_t address;
	int port;
};

static struct hl_rcu_hash *routes;
static atomic_bool done;

static bool same_address(const struct hl_rcu_hash_node *node, const void *address)
{
	return HL_RCU_HASH_ENTRY(node, struct route, node)->address == *(const uint64_t *)address;
}

static struct route *add_route(uint64_t address, int port)
{
	struct route *route = malloc(sizeof(*route));

	if (!route)
		abort();
	*route = (struct route){ .address = address, .port = port };
	if (hl_rcu_hash_add(routes, address, &route->node))
		abort();
	return route;
}

static void remove_route(struct route *route)
{
	/* Readers may still look at it: it is freed when none of them can. */
	if (!hl_rcu_hash_del(routes, &route->node))
		hl_free_rcu(route);
}

static int port_of(uint64_t address)
{
	struct hl_rcu_hash_node *node;
	int port = -1;

	hl_rcu_read_lock();
	node = hl_rcu_hash_lookup(routes, address, same_address, &address);
	if (node)
		port = HL_RCU_HASH_ENTRY(node, struct route, node)->port;
	hl_rcu_read_unlock();
	return port;
}

/* How many lookups of routes that are always there went wrong. */
static void *reader(void *arg)
{
	unsigned long *wrong = arg;

	while (!atomic_load(&done)) {
		for (uint64_t address = 0; address < KEPT; address++)
			*wrong += port_of(address) != (int)address;
	}
	return NULL;
}

int main(void)
{
	static struct route *kept[KEPT], *flood[FLOOD];
	unsigned long wrong = 0;
	size_t most = 0;
	pthread_t thread;

	routes = hl_rcu_hash_create(0);
	if (!routes)
		return 1;
	for (uint64_t address = 0; address < KEPT; address++)
		kept[address] = add_route(address, (int)address);
	if (pthread_create(&thread, NULL, reader, &wrong))
		return 1;
	for (unsigned round = 0; round < 10; round++) {
		for (unsigned i = 0; i < FLOOD; i++)
			flood[i] = add_route(1000 + i, 7);
		most = hl_rcu_hash_buckets(routes);
		for (unsigned i = 0; i < FLOOD; i++)
			remove_route(flood[i]);
	}
	atomic_store(&done, true);
	pthread_join(thread, NULL);
	printf("%zu routes are left in %zu buckets, of %zu at most; %lu lookups went wrong\n",
	       hl_rcu_hash_count(routes), hl_rcu_hash_buckets(routes), most, wrong);
	for (unsigned i = 0; i < KEPT; i++)
		remove_route(kept[i]);
	wrong += hl_rcu_hash_count(routes);
	hl_rcu_hash_destroy(routes);
	return hl_rcu_barrier() || wrong;
}
