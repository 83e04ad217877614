// SPDX-License-Identifier: MIT
/* Semaphores: what a single process sees. */
#include "cases.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define N(array) (sizeof(array) / sizeof((array)[0]))

static void get(void)
{
	key_t key = fresh_key();
	int id, other;

	made("no sems", semget(key, 0, IPC_CREAT | 0600));
	made("-1 sems", semget(key, -1, IPC_CREAT | 0600));
	made("32001 sems", semget(key, 32001, IPC_CREAT | 0600));
	made("not there", semget(key, 1, 0600));
	id = (int)made("create", semget(key, 3, IPC_CREAT | IPC_EXCL | 0600));
	made("exclusively", semget(key, 3, IPC_CREAT | IPC_EXCL | 0600));
	say("0 of it: %s", semget(key, 0, 0) == id ? "the same" : "another");
	say("2 of it: %s", semget(key, 2, IPC_CREAT | 0600) == id ? "the same" : "another");
	made("4 of it", semget(key, 4, 0600));
	made("4 of it, creating", semget(key, 4, IPC_CREAT | 0600));
	made("4 of it, exclusively", semget(key, 4, IPC_CREAT | IPC_EXCL | 0600));
	result("remove", sem_remove(id));
	made("after", semget(key, 0, 0));
	other = (int)made("again", semget(key, 3, IPC_CREAT | 0600));
	say("its id: %s", other == id ? "the same" : "another");
	result("op on the old", sem_op(id, 0, 1, 0));
	result("GETVAL on the old", sem_get(id, 0));
	result("remove the old", sem_remove(id));
	result("the new one", sem_get(other, 0));
	sem_remove(other);
}

static void keys(void)
{
	key_t list[] = { -1, INT_MIN, INT_MAX, (key_t)0x80000001 };
	int a, b;

	for (size_t i = 0; i < N(list); i++) {
		int id = semget(list[i], 1, IPC_CREAT | IPC_EXCL | 0600);
		struct semid_ds stat;

		if (id == -1 && errno == EEXIST)
			continue; /* somebody else's */
		made("create", id);
		say("found: %d", semget(list[i], 0, 0) == id);
		result("stat", semctl(id, 0, IPC_STAT, (union semun){ .buf = &stat }));
		say("its key: %d", stat.sem_perm.__key == list[i]);
		sem_remove(id);
	}
	a = semget(IPC_PRIVATE, 1, 0600);
	b = semget(IPC_PRIVATE, 1, IPC_CREAT | IPC_EXCL | 0600);
	say("two private ones: %s", a != b && a >= 0 && b >= 0 ? "differ" : "are one");
	made("private, too many", semget(IPC_PRIVATE, 32001, 0600));
	made("private, none", semget(IPC_PRIVATE, 0, 0600));
	sem_remove(a);
	sem_remove(b);
}

static void big_set(void)
{
	int id = (int)made("32000 sems", semget(IPC_PRIVATE, 32000, 0600));

	result("set the last", sem_set(id, 31999, 5));
	result("the last", sem_get(id, 31999));
	result("op on the last", sem_op(id, 31999, -2, 0));
	result("the last", sem_get(id, 31999));
	result("op past it", sem_op(id, 32000, 1, 0));
	sem_remove(id);
}

static void say_stat(const char *when, int id, time_t begun)
{
	struct semid_ds stat;

	memset(&stat, 0, sizeof(stat));
	if (result(when, semctl(id, 0, IPC_STAT, (union semun){ .buf = &stat })))
		return;
	say("nsems %lu mode %o otime %s ctime %s", (unsigned long)stat.sem_nsems,
	    (unsigned)stat.sem_perm.mode, lately(stat.sem_otime, begun),
	    lately(stat.sem_ctime, begun));
	say("uid %d cuid %d gid %d cgid %d", stat.sem_perm.uid == geteuid(),
	    stat.sem_perm.cuid == geteuid(), stat.sem_perm.gid == getegid(),
	    stat.sem_perm.cgid == getegid());
}

static void stat_fields(void)
{
	time_t begun = time(NULL);
	key_t key = fresh_key();
	int id = semget(key, 3, IPC_CREAT | 0640);
	struct semid_ds stat;

	say_stat("new", id, begun);
	sem_set(id, 0, 1);
	say_stat("after SETVAL", id, begun);
	result("wait for zero fails", sem_op(id, 0, 0, IPC_NOWAIT));
	say_stat("after that", id, begun);
	result("wait for zero", sem_op(id, 1, 0, 0));
	say_stat("after wait for zero", id, begun);
	result("+1", sem_op(id, 1, 1, 0));
	say_stat("after +1", id, begun);
	semctl(id, 0, IPC_STAT, (union semun){ .buf = &stat });
	say("key %d", stat.sem_perm.__key == key);
	result("into nowhere", semctl(id, 0, IPC_STAT, (union semun){ .buf = NULL }));
	sem_remove(id);
	result("removed", semctl(id, 0, IPC_STAT, (union semun){ .buf = &stat }));
}

static void values(void)
{
	int id = sem_new(3);
	unsigned short all[3] = { 1, 2, 32767 }, bad[3] = { 1, 32768, 2 }, got[3] = { 9, 9, 9 };

	result("fresh", sem_get(id, 0));
	result("pid of fresh", semctl(id, 0, GETPID));
	result("SETVAL 7", sem_set(id, 1, 7));
	result("GETVAL", sem_get(id, 1));
	say("GETPID: %d", semctl(id, 1, GETPID) == getpid());
	result("pid of another", semctl(id, 0, GETPID));
	result("SETVAL -1", sem_set(id, 1, -1));
	result("SETVAL 32768", sem_set(id, 1, 32768));
	result("SETVAL 32767", sem_set(id, 1, 32767));
	result("GETVAL", sem_get(id, 1));
	result("SETVAL of -1", sem_set(id, -1, 1));
	result("SETVAL of 3", sem_set(id, 3, 1));
	result("GETVAL of -1", sem_get(id, -1));
	result("GETVAL of 3", sem_get(id, 3));
	result("GETPID of 3", semctl(id, 3, GETPID));
	result("GETNCNT of 3", semctl(id, 3, GETNCNT));
	result("GETZCNT of -1", semctl(id, -1, GETZCNT));
	result("GETNCNT", semctl(id, 0, GETNCNT));
	result("GETZCNT", semctl(id, 0, GETZCNT));
	result("SETALL", semctl(id, 0, SETALL, (union semun){ .array = all }));
	result("SETALL too much", semctl(id, 0, SETALL, (union semun){ .array = bad }));
	result("GETALL", semctl(id, 0, GETALL, (union semun){ .array = got }));
	say("%u %u %u", got[0], got[1], got[2]);
	say("pids: %d %d %d", semctl(id, 0, GETPID) == getpid(), semctl(id, 1, GETPID) == getpid(),
	    semctl(id, 2, GETPID) == getpid());
	result("GETALL with another number", semctl(id, 77, GETALL, (union semun){ .array = got }));
	result("SETALL from nowhere", semctl(id, 0, SETALL, (union semun){ .array = NULL }));
	result("GETALL to nowhere", semctl(id, 0, GETALL, (union semun){ .array = NULL }));
	result("no such command", semctl(id, 0, 1234));
	result("a command below", semctl(id, 0, -1));
	result("id -1", sem_get(-1, 0));
	result("id far away", sem_get(INT_MAX, 0));
	sem_remove(id);
	result("removed", sem_get(id, 0));
	result("removed again", sem_remove(id));
}

static void op_arguments(void)
{
	static struct sembuf many[501];
	int id = sem_new(2);

	result("none", semop(id, many, 0));
	result("501", semop(id, many, 501));
	result("far more", semop(id, many, SIZE_MAX));
	result("500", semop(id, many, 500));
	result("past the end", sem_op(id, 2, 1, 0));
	result("past the end, zero", sem_op(id, 2, 0, IPC_NOWAIT));
	result("past the end, second",
	       semop(id, (struct sembuf[]){ { 0, 1, 0 }, { 65535, 1, 0 } }, 2));
	result("the first of them", sem_get(id, 0));
	result("NULL", semop(id, NULL, 1));
	result("NULL, none", semop(id, NULL, 0));
	result("id -1", sem_op(-1, 0, 1, 0));
	result("id -1, past the end", sem_op(-1, 9, 1, 0));
	result("id far away", sem_op(INT_MAX, 0, 1, 0));
	sem_remove(id);
	result("removed", sem_op(id, 0, 1, 0));
	result("removed, none", semop(id, many, 0));
	result("removed, 501", semop(id, many, 501));
}

static void say_two(const char *what, int id, int rc)
{
	int saved = errno;
	int first = sem_get(id, 0), second = sem_get(id, 1);

	errno = saved;
	result(what, rc);
	say("left: %d %d", first, second);
}

static void op_order(void)
{
	int id = sem_new(2);
	struct sembuf up_down[] = { { 0, 1, 0 }, { 0, -1, IPC_NOWAIT } };
	struct sembuf down_up[] = { { 0, -1, IPC_NOWAIT }, { 0, 1, 0 } };
	struct sembuf over[] = { { 0, 32767, 0 }, { 0, 1, 0 } };
	struct sembuf zero_up[] = { { 0, 0, IPC_NOWAIT }, { 0, 1, 0 } };
	struct sembuf up_zero[] = { { 0, 1, 0 }, { 0, 0, IPC_NOWAIT } };
	struct sembuf half[] = { { 0, 5, 0 }, { 1, -1, IPC_NOWAIT } };
	struct sembuf first_waits[] = { { 0, -1, 0 }, { 1, -1, IPC_NOWAIT } };
	struct sembuf down_twice[] = { { 1, -2, IPC_NOWAIT }, { 1, -2, IPC_NOWAIT } };
	struct sembuf over_then_wait[] = { { 1, -1, IPC_NOWAIT }, { 0, 32767, 0 } };

	say_two("{+1,-1}", id, semop(id, up_down, 2));
	say_two("{-1,+1}", id, semop(id, down_up, 2));
	say_two("{+32767,+1}", id, semop(id, over, 2));
	say_two("{0,+1}", id, semop(id, zero_up, 2));
	say_two("{0,+1} again", id, semop(id, zero_up, 2));
	say_two("{+1,0}", id, semop(id, up_zero, 2));
	say_two("{+5, other -1}", id, semop(id, half, 2));
	say_two("{-1, other -1 at once}", id, semop(id, first_waits, 2));
	sem_set(id, 1, 3);
	say_two("{-2,-2} of 3", id, semop(id, down_twice, 2));
	sem_set(id, 1, 0);
	say_two("would wait before it is too much", id, semop(id, over_then_wait, 2));
	sem_set(id, 0, 32767);
	say_two("+1 of 32767", id, sem_op(id, 0, 1, 0));
	say_two("-32767", id, sem_op(id, 0, -32767, 0));
	say_two("-32768", id, sem_op(id, 0, -32768, IPC_NOWAIT));
	say_two("unknown flags", id, sem_op(id, 0, 1, 0x4000));
	sem_remove(id);
}

static long ms_since(const struct timespec *begun)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - begun->tv_sec) * 1000 + (now.tv_nsec - begun->tv_nsec) / 1000000;
}

static void timeouts(void)
{
	int id = sem_new(1);
	struct sembuf down = { 0, -1, 0 }, up = { 0, 1, 0 }, at_once = { 0, -1, IPC_NOWAIT };
	struct timespec begun;

	clock_gettime(CLOCK_MONOTONIC, &begun);
	result("20 ms", semtimedop(id, &down, 1, &(struct timespec){ 0, 20000000 }));
	say("not earlier: %d", ms_since(&begun) >= 19);
	result("nothing", semtimedop(id, &down, 1, &(struct timespec){ 0, 0 }));
	result("-1 s", semtimedop(id, &down, 1, &(struct timespec){ -1, 0 }));
	result("-1 ns", semtimedop(id, &down, 1, &(struct timespec){ 0, -1 }));
	result("a second of ns", semtimedop(id, &down, 1, &(struct timespec){ 0, 1000000000 }));
	result("bad, not needed", semtimedop(id, &up, 1, &(struct timespec){ 0, 1000000000 }));
	result("value", sem_get(id, 0));
	result("nothing, not needed", semtimedop(id, &up, 1, &(struct timespec){ 0, 0 }));
	result("NULL", semtimedop(id, &down, 1, NULL));
	result("no waiting", semtimedop(id, &at_once, 1, &(struct timespec){ 100, 0 }));
	result("no waiting", semtimedop(id, &at_once, 1, &(struct timespec){ 100, 0 }));
	result("NULL op", semtimedop(id, NULL, 1, &(struct timespec){ 0, 0 }));
	result("no op", semtimedop(id, &down, 0, &(struct timespec){ 0, 0 }));
	result("for zero",
	       semtimedop(id, &(struct sembuf){ 0, 0, 0 }, 1, &(struct timespec){ 0, 1000000 }));
	result("waiters after", semctl(id, 0, GETNCNT));
	sem_remove(id);
}

static void set(void)
{
	time_t begun = time(NULL);
	int id = sem_new(1);
	struct semid_ds stat;

	semctl(id, 0, IPC_STAT, (union semun){ .buf = &stat });
	stat.sem_perm.mode = 07777;
	result("IPC_SET", semctl(id, 0, IPC_SET, (union semun){ .buf = &stat }));
	say_stat("after it", id, begun);
	stat.sem_perm.mode = 0;
	result("IPC_SET of 0", semctl(id, 0, IPC_SET, (union semun){ .buf = &stat }));
	stat.sem_perm.mode = 0600;
	result("and back", semctl(id, 0, IPC_SET, (union semun){ .buf = &stat }));
	result("from nowhere", semctl(id, 0, IPC_SET, (union semun){ .buf = NULL }));
	say_stat("after it", id, begun);
	sem_remove(id);
	result("removed", semctl(id, 0, IPC_SET, (union semun){ .buf = &stat }));
}

static void permissions(void)
{
	key_t key = fresh_key(), closed = fresh_key();
	struct semid_ds stat;
	unsigned short all[1] = { 1 };
	int id;

	be_nobody();
	id = semget(key, 1, IPC_CREAT | 0400);
	made("reading by key", semget(key, 0, 0400));
	made("altering by key", semget(key, 0, 0600));
	made("for others by key", semget(key, 0, 0444));
	made("anything by key", semget(key, 0, 0));
	result("zero", sem_op(id, 0, 0, IPC_NOWAIT));
	result("up", sem_op(id, 0, 1, IPC_NOWAIT));
	result("GETVAL", sem_get(id, 0));
	result("SETVAL", sem_set(id, 0, 1));
	result("SETALL", semctl(id, 0, SETALL, (union semun){ .array = all }));
	result("remove", sem_remove(id));
	id = semget(key, 1, IPC_CREAT | 0200);
	result("writer: up", sem_op(id, 0, 1, IPC_NOWAIT));
	result("writer: zero", sem_op(id, 0, 0, IPC_NOWAIT));
	result("writer: GETVAL", sem_get(id, 0));
	result("writer: SETVAL", sem_set(id, 0, 1));
	result("writer: IPC_STAT", semctl(id, 0, IPC_STAT, (union semun){ .buf = &stat }));
	result("remove", sem_remove(id));
	id = semget(closed, 1, IPC_CREAT);
	made("closed: by key", semget(closed, 0, 0));
	made("closed: reading by key", semget(closed, 0, 0400));
	result("closed: up", sem_op(id, 0, 1, IPC_NOWAIT));
	result("closed: past the end", sem_op(id, 5, 1, IPC_NOWAIT));
	result("closed: GETVAL", sem_get(id, 0));
	result("closed: GETVAL past the end", sem_get(id, 7));
	result("closed: GETALL", semctl(id, 0, GETALL, (union semun){ .array = all }));
	result("closed: IPC_STAT", semctl(id, 0, IPC_STAT, (union semun){ .buf = &stat }));
	memset(&stat, 0, sizeof(stat));
	stat.sem_perm.uid = geteuid();
	stat.sem_perm.gid = getegid();
	stat.sem_perm.mode = 0600;
	result("closed: IPC_SET", semctl(id, 0, IPC_SET, (union semun){ .buf = &stat }));
	result("opened: up", sem_op(id, 0, 1, IPC_NOWAIT));
	result("opened: GETVAL", sem_get(id, 0));
	result("remove", sem_remove(id));
}

static void as_stranger(void *arg)
{
	int id = *(int *)arg;
	struct semid_ds stat = { 0 };

	be_nobody();
	result("up", sem_op(id, 0, 1, IPC_NOWAIT));
	result("zero", sem_op(id, 1, 0, IPC_NOWAIT));
	result("GETVAL", sem_get(id, 0));
	result("SETVAL", sem_set(id, 0, 1));
	result("IPC_SET", semctl(id, 0, IPC_SET, (union semun){ .buf = &stat }));
	result("remove", sem_remove(id));
}

static void strangers(void)
{
	const int modes[] = { 0600, 0604, 0602, 0606, 0660, 0 };

	if (geteuid()) {
		say("needs two users");
		return;
	}
	for (size_t i = 0; i < N(modes); i++) {
		int id = semget(IPC_PRIVATE, 2, modes[i]);

		say("mode %o", (unsigned)modes[i]);
		reap("stranger", child(as_stranger, &id));
		result("root", sem_get(id, 0));
		result("root removes", sem_remove(id));
	}
}

static void info(void)
{
	int id = sem_new(7);
	struct seminfo limits, used;
	struct semid_ds stat;
	int found = 0, most;

	memset(&limits, 0, sizeof(limits));
	say("IPC_INFO: %d", semctl(0, 0, IPC_INFO, (union semun){ .info = &limits }) >= 0);
	say("semmsl %d semopm %d semvmx %d", limits.semmsl, limits.semopm, limits.semvmx);
	memset(&used, 0, sizeof(used));
	most = semctl(0, 0, SEM_INFO, (union semun){ .info = &used });
	say("SEM_INFO: %d", most >= 0);
	say("sets in use %d, sems in use %d, semaem is semvmx %d", used.semusz >= 1,
	    used.semaem >= 7, limits.semaem == limits.semvmx);
	for (int i = 0; i <= most; i++) {
		int rc = semctl(i, 0, SEM_STAT, (union semun){ .buf = &stat });

		if (rc == id && stat.sem_nsems == 7)
			found++;
	}
	say("SEM_STAT finds it: %d", found);
	found = 0;
	for (int i = 0; i <= most; i++)
		found += semctl(i, 0, SEM_STAT_ANY, (union semun){ .buf = &stat }) == id;
	say("SEM_STAT_ANY finds it: %d", found);
	result("SEM_STAT of -1", semctl(-1, 0, SEM_STAT, (union semun){ .buf = &stat }));
	sem_remove(id);
}

static void many_sets(void)
{
	enum { SETS = 300 };
	static int id[SETS];
	bool differ = true, fine = true;

	for (int i = 0; i < SETS; i++) {
		id[i] = semget(IPC_PRIVATE, 2, 0600);
		fine &= id[i] >= 0 && !sem_set(id[i], 1, i);
		for (int k = 0; k < i; k++)
			differ &= id[k] != id[i];
	}
	say("made %d, differ %d", fine, differ);
	for (int i = 0; i < SETS; i++) {
		fine &= sem_get(id[i], 1) == i;
		fine &= !sem_remove(id[i]);
		fine &= sem_get(id[i], 1) == -1 && errno == EINVAL;
	}
	say("each has its own values: %d", fine);
}

static void stale(void)
{
	enum { TIMES = 40 };
	key_t key = fresh_key();
	int old[TIMES];
	bool differ = true;
	int reached = 0, id = -1;

	for (int i = 0; i < TIMES; i++) {
		id = semget(key, 1, IPC_CREAT | IPC_EXCL | 0600);
		old[i] = id;
		for (int k = 0; k < i; k++) {
			differ &= old[k] != id;
			reached += sem_op(old[k], 0, 1, IPC_NOWAIT) == 0;
		}
		if (i < TIMES - 1)
			sem_remove(id);
	}
	say("ids differ %d, stale ones that reach a new set %d, value %d", differ, reached,
	    sem_get(id, 0));
	sem_remove(id);
}

static void otime_recipe(void)
{
	int id = sem_new(1);
	struct semid_ds stat;

	sem_set(id, 0, 1);
	semctl(id, 0, IPC_STAT, (union semun){ .buf = &stat });
	say("initialised: otime is 0 %d", stat.sem_otime == 0);
	sem_op(id, 0, -1, 0);
	semctl(id, 0, IPC_STAT, (union semun){ .buf = &stat });
	say("used: otime is 0 %d", stat.sem_otime == 0);
	sem_remove(id);
}

static void find_key(void)
{
	key_t a = ftok("/", 1), b = ftok("/", 2), c = ftok("/", 257);

	say("differ %d, low byte counts %d", a != b, a == c);
	result("no file", ftok("/nonexistent/file", 1));
}

const struct ipc_case sem_cases[] = {
	{ "sem-get", get },
	{ "sem-keys", keys },
	{ "sem-big-set", big_set },
	{ "sem-stat", stat_fields },
	{ "sem-values", values },
	{ "sem-op-arguments", op_arguments },
	{ "sem-op-order", op_order },
	{ "sem-timeouts", timeouts },
	{ "sem-set", set },
	{ "sem-permissions", permissions },
	{ "sem-strangers", strangers },
	{ "sem-info", info },
	{ "sem-many-sets", many_sets },
	{ "sem-stale", stale },
	{ "sem-otime-recipe", otime_recipe },
	{ "ftok", find_key },
	{ NULL, NULL },
};
