// SPDX-License-Identifier: MIT
/*
 * A table from which entries are deleted while others look them up: buckets of RCU lists. A
 * lookup takes no lock; who changes a bucket takes the bucket's. Here the readers are CPUs that
 * read by quiescent states, so that a lookup costs what it would cost without any changer.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <hotline/cacheline.h>
#include <hotline/cpu.h>
#include <hotline/rculist.h>

#define BUCKETS 64u
#define SESSIONS 1000u
#define READERS 2
#define ROUNDS 100

struct session {
	struct hl_list_head link;
	struct hl_rcu_head rcu;
	unsigned id;
	unsigned long secret; /* a function of the id, until it is freed */
};

struct bucket {
	struct hl_list_head list;
	pthread_mutex_t lock; /* of those who change it */
};

static struct bucket table[BUCKETS];
static atomic_bool stop, wrong;
static atomic_ulong lookups, hits;
/* Changed by the helper thread alone, and often: not beside what the others read in each round. */
static struct {
	HL_CACHELINE_ALIGNED unsigned long sessions;
} freed;

static unsigned long secret_of(unsigned id)
{
	return id * 2654435761u + 1;
}

/* In a read section, which the session must not leave. */
static struct session *find(unsigned id)
{
	struct session *session;

	hl_list_for_each_entry_rcu(session, &table[id % BUCKETS].list,
				   link) if (session->id == id) return session;
	return NULL;
}

static int add(unsigned id)
{
	struct bucket *bucket = &table[id % BUCKETS];
	struct session *session = malloc(sizeof(*session));

	if (!session)
		return -1;
	session->id = id;
	session->secret = secret_of(id);
	pthread_mutex_lock(&bucket->lock);
	hl_list_add_rcu(&session->link, &bucket->list);
	pthread_mutex_unlock(&bucket->lock);
	return 0;
}

static void free_session(struct hl_rcu_head *head)
{
	struct session *session =
		(struct session *)(void *)((char *)head - offsetof(struct session, rcu));

	session->secret = 0;
	free(session);
	freed.sessions++;
}

static void delete (unsigned id)
{
	struct bucket *bucket = &table[id % BUCKETS];
	struct session *session;

	pthread_mutex_lock(&bucket->lock);
	session = find(id);
	if (session) {
		hl_list_del_rcu(&session->link);
		hl_call_rcu(&session->rcu, free_session);
	}
	pthread_mutex_unlock(&bucket->lock);
}

static void *look_up(void *arg)
{
	unsigned long n = 0, found = 0;

	if (hl_cpu_online(0) < 0 || hl_rcu_set_quiescent(true))
		return arg;
	for (; !atomic_load(&stop); n++) {
		const struct session *session;
		unsigned id = (unsigned)(n * 7919 % SESSIONS);

		hl_rcu_read_lock_qs();
		session = find(id);
		if (session && session->secret != secret_of(id))
			atomic_store(&wrong, true);
		found += session != NULL;
		hl_rcu_read_unlock_qs();
		hl_cpu_poll(); /* holds nothing here */
	}
	atomic_fetch_add(&lookups, n);
	atomic_fetch_add(&hits, found);
	hl_cpu_offline();
	return NULL;
}

int main(void)
{
	pthread_t reader[READERS];
	void *failed;

	for (unsigned i = 0; i < BUCKETS; i++) {
		hl_list_init(&table[i].list);
		pthread_mutex_init(&table[i].lock, NULL);
	}
	for (int i = 0; i < READERS; i++)
		if (pthread_create(&reader[i], NULL, look_up, table))
			return 1;
	for (int round = 0; round < ROUNDS; round++) {
		for (unsigned id = 0; id < SESSIONS; id++)
			if (add(id))
				return 1;
		for (unsigned id = 0; id < SESSIONS; id++)
			delete (id);
	}
	atomic_store(&stop, true);
	for (int i = 0; i < READERS; i++)
		if (pthread_join(reader[i], &failed) || failed)
			return 1;
	if (hl_rcu_barrier())
		return 1;
	printf("%lu of %lu lookups found a session, %lu sessions freed\n", (unsigned long)hits,
	       (unsigned long)lookups, freed.sessions);
	return wrong || freed.sessions != ROUNDS * SESSIONS ? 1 : 0;
}
