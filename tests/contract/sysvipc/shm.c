// SPDX-License-Identifier: MIT
/* Shared memory. */
#include "cases.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static int seg_new(size_t size)
{
	int id = shmget(IPC_PRIVATE, size, 0600);

	if (id == -1)
		made("shmget", id);
	return id;
}

static int seg_remove(int id)
{
	return shmctl(id, IPC_RMID, NULL);
}

/* Of an id that is there no more: -1. */
static int attached(int id)
{
	struct shmid_ds stat;

	return shmctl(id, IPC_STAT, &stat) ? -1 : (int)stat.shm_nattch;
}

static void get(void)
{
	key_t key = fresh_key();
	int id, other;

	made("no bytes", shmget(key, 0, IPC_CREAT | 0600));
	made("not there", shmget(key, 0, 0600));
	made("not there, some", shmget(key, 10, 0600));
	id = (int)made("create", shmget(key, 100, IPC_CREAT | IPC_EXCL | 0600));
	made("exclusively", shmget(key, 100, IPC_CREAT | IPC_EXCL | 0600));
	say("none of it: %d", shmget(key, 0, 0) == id);
	say("as it is: %d", shmget(key, 100, IPC_CREAT | 0600) == id);
	made("one more", shmget(key, 101, 0600));
	made("one more, creating", shmget(key, 101, IPC_CREAT | 0600));
	made("a page", shmget(key, 4096, 0600));
	result("remove", seg_remove(id));
	made("after", shmget(key, 0, 0));
	other = (int)made("again", shmget(key, 100, IPC_CREAT | 0600));
	say("its id: %s", other == id ? "the same" : "another");
	made("attach the old", (long)shmat(id, NULL, 0));
	result("stat of the old", attached(id));
	result("remove the old", seg_remove(id));
	result("stat of the new", attached(other));
	seg_remove(other);
	made("far too much", shmget(IPC_PRIVATE, SIZE_MAX, 0600));
	made("far too much, by key", shmget(key, SIZE_MAX / 2, IPC_CREAT | 0600));
}

static void rounding(void)
{
	int id = seg_new(5000);
	char *p = shmat(id, NULL, 0);
	struct shmid_ds stat;
	int sum = 0;

	made("attach", (long)p);
	result("stat", shmctl(id, IPC_STAT, &stat));
	say("size %zu", stat.shm_segsz);
	for (int i = 0; i < 8192; i++)
		sum += p[i];
	p[8191] = 'x';
	say("sum %d, last %c, aligned %d", sum, p[8191], (uintptr_t)p % 4096 == 0);
	result("detach", shmdt(p));
	p = shmat(id, NULL, 0);
	say("again: %c", p[8191]);
	shmdt(p);
	seg_remove(id);
}

static void say_stat(const char *when, int id, time_t begun)
{
	struct shmid_ds stat;

	if (result(when, shmctl(id, IPC_STAT, &stat)))
		return;
	say("size %zu nattch %lu mode %o", stat.shm_segsz, (unsigned long)stat.shm_nattch,
	    (unsigned)stat.shm_perm.mode);
	say("atime %s dtime %s ctime %s", lately(stat.shm_atime, begun),
	    lately(stat.shm_dtime, begun), lately(stat.shm_ctime, begun));
	say("cpid %s lpid %s", stat.shm_cpid == getpid() ? "me" : "else",
	    stat.shm_lpid == getpid() ? "me"
	    : stat.shm_lpid	      ? "else"
				      : "0");
	say("uid %d cuid %d gid %d cgid %d", stat.shm_perm.uid == geteuid(),
	    stat.shm_perm.cuid == geteuid(), stat.shm_perm.gid == getegid(),
	    stat.shm_perm.cgid == getegid());
}

static void attach_and_exit(void *arg)
{
	int id = *(int *)arg;

	made("child attaches", (long)shmat(id, NULL, 0));
	result("count", attached(id));
}

static void stat_fields(void)
{
	time_t begun = time(NULL);
	key_t key = fresh_key();
	int id = shmget(key, 4097, IPC_CREAT | 0640);
	struct shmid_ds stat;
	void *p;

	say_stat("new", id, begun);
	p = shmat(id, NULL, 0);
	say_stat("attached", id, begun);
	shmdt(p);
	say_stat("detached", id, begun);
	reap("child", child(attach_and_exit, &id));
	say_stat("a child was here", id, begun);
	shmctl(id, IPC_STAT, &stat);
	say("key %d", stat.shm_perm.__key == key);
	stat.shm_perm.mode = 07602;
	result("set", shmctl(id, IPC_SET, &stat));
	say_stat("after it", id, begun);
	result("to nowhere", shmctl(id, IPC_STAT, NULL));
	result("from nowhere", shmctl(id, IPC_SET, NULL));
	result("no such command", shmctl(id, 1234, NULL));
	result("a command below", shmctl(id, -1, NULL));
	result("stat of -1", shmctl(-1, IPC_STAT, &stat));
	result("stat far away", shmctl(INT_MAX, IPC_STAT, &stat));
	result("remove", seg_remove(id));
	result("removed", shmctl(id, IPC_STAT, &stat));
	result("remove again", seg_remove(id));
}

static void wait_turn(void *arg)
{
	(void)arg;
	atomic_fetch_add(&shared->count, 1);
	await(&shared->turn, 1);
}

static void exec_and_wait(void *arg)
{
	(void)arg;
	/* Ends when its input does. */
	execlp("cat", "cat", (char *)NULL);
}

static void counts(void)
{
	int id = seg_new(4096), ends[2], status;
	void *p = shmat(id, NULL, 0), *q;
	pid_t pid, second;

	result("one", attached(id));
	q = shmat(id, NULL, 0);
	result("two", attached(id));
	say("differ: %d", p != q);
	pid = child(wait_turn, NULL);
	second = child(wait_turn, NULL);
	await(&shared->count, 2);
	result("with two children", attached(id));
	kill(second, SIGKILL);
	reap("killed", second);
	result("with one child", attached(id));
	atomic_store(&shared->turn, 1);
	reap("child", pid);
	result("without", attached(id));
	if (pipe(ends))
		return;
	pid = fork();
	if (!pid) {
		dup2(ends[0], 0);
		close(ends[0]);
		close(ends[1]);
		exec_and_wait(NULL);
		_exit(1);
	}
	close(ends[0]);
	/* Another program has none of it; when it answers it runs. */
	while (attached(id) > 2)
		usleep(100);
	result("after exec", attached(id));
	close(ends[1]);
	waitpid(pid, &status, 0);
	result("detach", shmdt(p));
	result("one", attached(id));
	result("detach", shmdt(q));
	result("none", attached(id));
	seg_remove(id);
}

static sigjmp_buf back;

static void on_fault(int number)
{
	siglongjmp(back, number);
}

/* Whether the byte can be written. */
static const char *can_write(volatile char *p)
{
	struct sigaction action = { .sa_handler = on_fault };
	int number;

	sigaction(SIGSEGV, &action, NULL);
	number = sigsetjmp(back, 1);
	if (number)
		return number == SIGSEGV ? "SIGSEGV" : "another signal";
	*p = 1;
	return "yes";
}

static void read_only(void)
{
	int id = seg_new(4096);
	char *p = shmat(id, NULL, 0), *q = shmat(id, NULL, SHM_RDONLY);

	strcpy(p, "text");
	say("read: %s", q);
	say("write to it: %s", can_write(q));
	result("mprotect", mprotect(q, 4096, PROT_READ | PROT_WRITE));
	result("count", attached(id));
	result("detach", shmdt(q));
	result("detach", shmdt(p));
	seg_remove(id);
}

static char *free_place(size_t size)
{
	char *p = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	munmap(p, size);
	return p;
}

static void addresses(void)
{
	int id = seg_new(8192);
	char *place = free_place(1 << 20), *p, *taken;

	p = shmat(id, place, 0);
	say("at a place: %d", p == place);
	result("detach", shmdt(p));
	made("not at a page", (long)shmat(id, place + 100, 0));
	p = shmat(id, place + 100, SHM_RND);
	say("rounded: %d", p == place);
	result("detach from inside", shmdt(p + 1));
	result("detach from a page inside", shmdt(p + 4096));
	result("detach", shmdt(p));
	result("detach again", shmdt(p));
	result("detach nothing", shmdt(NULL));
	result("count", attached(id));
	taken = mmap(place, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		     -1, 0);
	strcpy(taken, "mine");
	made("taken", (long)shmat(id, place, 0));
	made("taken, rounded", (long)shmat(id, place + 5, SHM_RND));
	say("still there: %s", taken);
	result("detach what is none", shmdt(taken));
	p = shmat(id, place, SHM_REMAP);
	say("replaced: %d, %d", p == place, p[0]);
	result("detach", shmdt(p));
	made("replace nothing", (long)shmat(id, NULL, SHM_REMAP));
	made("rounded to nothing", (long)shmat(id, (void *)5, SHM_RND));
	made("id -1", (long)shmat(-1, NULL, 0));
	made("id far away", (long)shmat(INT_MAX, NULL, 0));
	made("not at a page, id -1", (long)shmat(-1, place + 1, 0));
	made("in the kernel", (long)shmat(id, (void *)0xffff800000000000ul, 0));
	result("count", attached(id));
	seg_remove(id);
}

static void over_one_another(void)
{
	int a = seg_new(8192), b = seg_new(4096);
	char *place = free_place(1 << 20), *p, *q;

	p = shmat(a, place, 0);
	p[0] = 'a';
	p[4096] = 'A';
	q = shmat(b, place, SHM_REMAP);
	say("over the first half: %d", q == place);
	q[0] = 'b';
	say("%c %c", place[0], place[4096]);
	say("counts %d %d", attached(a), attached(b));
	result("detach", shmdt(place));
	say("counts %d %d", attached(a), attached(b));
	result("detach", shmdt(place));
	result("detach the half", shmdt(place + 4096));
	say("counts %d %d", attached(a), attached(b));
	seg_remove(a);
	seg_remove(b);
}

static void pieces(void)
{
	int id = seg_new(3 * 4096);
	char *p = shmat(id, NULL, 0);

	result("a hole", munmap(p + 4096, 4096));
	result("count", attached(id));
	result("detach", shmdt(p));
	result("count", attached(id));
	p = shmat(id, NULL, 0);
	result("unmapped", munmap(p, 3 * 4096));
	result("count", attached(id));
	result("detach", shmdt(p));
	seg_remove(id);
}

static void protected(void)
{
	int id = seg_new(3 * 4096);
	char *p = shmat(id, NULL, 0);

	for (int i = 0; i < 10; i++) {
		mprotect(p + 4096, 4096, PROT_READ);
		mprotect(p + 4096, 4096, PROT_READ | PROT_WRITE);
	}
	result("protected and back", attached(id));
	shmdt(p);
	result("detached", attached(id));
	seg_remove(id);
}

static void hold(void *arg)
{
	char *p = shmat(*(int *)arg, NULL, 0);

	atomic_store(&shared->count, 1);
	await(&shared->turn, 1);
	say("holder reads %s", p);
}

static void removed(void)
{
	key_t key = fresh_key();
	int id = shmget(key, 4096, IPC_CREAT | 0600), other;
	char *p = shmat(id, NULL, 0), *q;
	struct shmid_ds stat;

	strcpy(p, "kept");
	result("remove", seg_remove(id));
	result("stat", shmctl(id, IPC_STAT, &stat));
	say("mode %o, private %d, count %d", (unsigned)stat.shm_perm.mode,
	    stat.shm_perm.__key == IPC_PRIVATE, (int)stat.shm_nattch);
	made("by key", shmget(key, 0, 0));
	q = shmat(id, NULL, 0);
	made("attach by id", (long)q);
	say("reads %s", q != (void *)-1 ? q : "nothing");
	other = (int)made("another of the key", shmget(key, 4096, IPC_CREAT | IPC_EXCL | 0600));
	say("its id: %s", other == id ? "the same" : "another");
	result("remove again", seg_remove(id));
	result("detach", shmdt(p));
	result("count", attached(id));
	result("detach", shmdt(q));
	result("gone", attached(id));
	made("attach", (long)shmat(id, NULL, 0));
	result("remove", seg_remove(id));
	result("the other is there", attached(other));
	seg_remove(other);
}

static void removed_and_held(void)
{
	int id = seg_new(4096);
	char *p = shmat(id, NULL, 0);
	pid_t pid;

	strcpy(p, "text");
	pid = child(hold, &id);
	await(&shared->count, 1);
	result("remove", seg_remove(id));
	shmdt(p);
	result("the holder and what it inherited", attached(id));
	atomic_store(&shared->turn, 1);
	reap("holder", pid);
	result("gone", attached(id));
	id = seg_new(4096);
	shared->turn = shared->count = 0;
	pid = child(hold, &id);
	await(&shared->count, 1);
	result("remove", seg_remove(id));
	kill(pid, SIGKILL);
	reap("holder", pid);
	result("gone", attached(id));
}

static void create_and_exit(void *arg)
{
	int id = shmget(*(key_t *)arg, 4096, IPC_CREAT | 0600);
	char *p = shmat(id, NULL, 0);

	strcpy(p, "from the creator");
}

static void outlives(void)
{
	key_t key = fresh_key();
	int id;
	char *p;

	reap("creator", child(create_and_exit, &key));
	id = shmget(key, 0, 0);
	p = shmat(id, NULL, 0);
	say("reads %s", p);
	result("count", attached(id));
	shmdt(p);
	seg_remove(id);
}

static void *get_in_thread(void *arg)
{
	key_t key = *(key_t *)arg;
	long fine = 0;

	for (int i = 0; i < 100; i++) {
		int id = shmget(key, 4096, IPC_CREAT | IPC_EXCL | 0600);
		char *p = shmat(id, NULL, 0);

		fine += p != (void *)-1 && !shmdt(p) && !seg_remove(id);
	}
	return (void *)fine;
}

static void two_keys(void)
{
	key_t key[2] = { fresh_key(), fresh_key() };
	int a = shmget(key[0], 4096, IPC_CREAT | 0600), b = shmget(key[1], 4096, IPC_CREAT | 0600);
	pthread_t thread[2];
	void *fine[2];

	say("differ: %d", a != b && a >= 0 && b >= 0);
	seg_remove(a);
	seg_remove(b);
	for (int i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, get_in_thread, &key[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], &fine[i]);
	say("fine: %ld %ld", (long)fine[0], (long)fine[1]);
}

static void permissions(void)
{
	key_t key = fresh_key();
	struct shmid_ds stat;
	int id;

	be_nobody();
	id = shmget(key, 4096, IPC_CREAT);
	made("closed: attach", (long)shmat(id, NULL, 0));
	made("closed: attach for reading", (long)shmat(id, NULL, SHM_RDONLY));
	made("closed: by key", shmget(key, 0, 0400));
	result("closed: stat", shmctl(id, IPC_STAT, &stat));
	result("closed: remove", seg_remove(id));
	id = shmget(key, 4096, IPC_CREAT | 0400);
	made("reading: attach", (long)shmat(id, NULL, 0));
	made("reading: attach for reading", (long)shmat(id, NULL, SHM_RDONLY));
	made("reading: by key", shmget(key, 0, 0600));
	result("reading: stat", shmctl(id, IPC_STAT, &stat));
	say("count %d", (int)stat.shm_nattch);
	stat.shm_perm.mode = 0600;
	result("reading: set", shmctl(id, IPC_SET, &stat));
	made("opened: attach", (long)shmat(id, NULL, 0));
	result("remove", seg_remove(id));
	id = shmget(key, 4096, IPC_CREAT | 0200);
	made("writing: attach", (long)shmat(id, NULL, 0));
	result("remove", seg_remove(id));
}

static void as_stranger(void *arg)
{
	int id = *(int *)arg;
	struct shmid_ds stat = { 0 };

	be_nobody();
	made("attach", (long)shmat(id, NULL, 0));
	made("attach for reading", (long)shmat(id, NULL, SHM_RDONLY));
	result("stat", shmctl(id, IPC_STAT, &stat));
	result("set", shmctl(id, IPC_SET, &stat));
	result("lock", shmctl(id, SHM_LOCK, NULL));
	result("remove", seg_remove(id));
}

static void strangers(void)
{
	const int modes[] = { 0600, 0604, 0602, 0606, 0660, 0 };

	if (geteuid()) {
		say("needs two users");
		return;
	}
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		int id = shmget(IPC_PRIVATE, 4096, modes[i]);

		say("mode %o", (unsigned)modes[i]);
		reap("stranger", child(as_stranger, &id));
		result("root", attached(id));
		result("root removes", seg_remove(id));
	}
}

static void locked(void)
{
	int id;
	struct shmid_ds stat;

	be_nobody();
	id = seg_new(4096);
	result("lock", shmctl(id, SHM_LOCK, NULL));
	shmctl(id, IPC_STAT, &stat);
	say("mode %o", (unsigned)stat.shm_perm.mode);
	result("unlock", shmctl(id, SHM_UNLOCK, NULL));
	shmctl(id, IPC_STAT, &stat);
	say("mode %o", (unsigned)stat.shm_perm.mode);
	setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){ 0, 0 });
	result("lock without the right", shmctl(id, SHM_LOCK, NULL));
	result("unlock", shmctl(id, SHM_UNLOCK, NULL));
	result("lock of -1", shmctl(-1, SHM_LOCK, NULL));
	seg_remove(id);
}

static void info(void)
{
	int id = seg_new(12345), found = 0, most;
	struct shminfo limit;
	struct shm_info used;
	struct shmid_ds stat;

	memset(&limit, 0, sizeof(limit));
	say("IPC_INFO: %d", shmctl(0, IPC_INFO, (struct shmid_ds *)&limit) >= 0);
	say("shmmin %lu", limit.shmmin);
	memset(&used, 0, sizeof(used));
	most = shmctl(0, SHM_INFO, (struct shmid_ds *)&used);
	say("SHM_INFO: %d, segments %d, pages %d", most >= 0, used.used_ids >= 1,
	    used.shm_tot >= 4);
	for (int i = 0; i <= most; i++)
		found += shmctl(i, SHM_STAT, &stat) == id && stat.shm_segsz == 12345;
	say("SHM_STAT finds it: %d", found);
	found = 0;
	for (int i = 0; i <= most; i++)
		found += shmctl(i, SHM_STAT_ANY, &stat) == id;
	say("SHM_STAT_ANY finds it: %d", found);
	seg_remove(id);
}

static void flags(void)
{
	int id = shmget(IPC_PRIVATE, 4096, 0600 | SHM_NORESERVE);
	char *p = shmat(id, NULL, 0);

	made("without reserve", (long)p);
	say("writes: %s", can_write(p));
	shmdt(p);
	seg_remove(id);
	id = seg_new(4096);
	p = shmat(id, NULL, SHM_EXEC);
	made("with execute", (long)p);
	shmdt(p);
	seg_remove(id);
}

static void run_code(void)
{
#if defined(__x86_64__)
	static const unsigned char code[] = { 0xb8, 42, 0, 0, 0, 0xc3 };
	int id = seg_new(4096);
	unsigned char *p = shmat(id, NULL, 0), *q = shmat(id, NULL, SHM_EXEC | SHM_RDONLY);
	int (*call)(void);

	memcpy(p, code, sizeof(code));
	made("attach", (long)q);
	if (q != (void *)-1) {
		memcpy(&call, &q, sizeof(call));
		say("code answers %d", call());
	}
	seg_remove(id);
#endif
}

static void many(void)
{
	enum { SEGMENTS = 100 };
	static int id[SEGMENTS];
	static int *p[SEGMENTS];
	int wrong = 0;

	for (int i = 0; i < SEGMENTS; i++) {
		id[i] = seg_new(4096 * (size_t)(i % 5 + 1));
		p[i] = shmat(id[i], NULL, 0);
		wrong += p[i] == (void *)-1;
		p[i][10] = i;
	}
	for (int i = 0; i < SEGMENTS; i++) {
		wrong += p[i][10] != i || attached(id[i]) != 1;
		wrong += seg_remove(id[i]) != 0 || shmdt(p[i]) != 0;
		wrong += attached(id[i]) != -1;
	}
	say("wrong %d", wrong);
}

static void *churn(void *arg)
{
	key_t key = *(key_t *)arg;

	for (int i = 0; i < 300; i++) {
		int id = shmget(key, 4096, IPC_CREAT | 0600);
		char *p = shmat(id, NULL, 0);

		if (p != (void *)-1) {
			strcpy(p, "mine");
			shmdt(p);
		}
		atomic_store(&shared->word[0], id);
		seg_remove(id);
	}
	atomic_store(&shared->turn, 1);
	return NULL;
}

/* One removes and creates, the other attaches by ids that may be stale. */
static void race(void)
{
	key_t key = fresh_key();
	pthread_t thread;
	int odd = 0;

	pthread_create(&thread, NULL, churn, &key);
	while (!atomic_load(&shared->turn)) {
		char *p = shmat(atomic_load(&shared->word[0]), NULL, 0);

		if (p == (void *)-1)
			odd += errno != EINVAL && errno != EIDRM ? errno : 0;
		else
			odd += shmdt(p) != 0;
	}
	pthread_join(thread, NULL);
	say("odd %d", odd);
}

const struct ipc_case shm_cases[] = {
	{ "shm-get", get },
	{ "shm-rounding", rounding },
	{ "shm-stat", stat_fields },
	{ "shm-counts", counts },
	{ "shm-read-only", read_only },
	{ "shm-addresses", addresses },
	{ "shm-over-one-another", over_one_another },
	{ "shm-pieces", pieces },
	{ "shm-protected", protected },
	{ "shm-removed", removed },
	{ "shm-removed-and-held", removed_and_held },
	{ "shm-outlives", outlives },
	{ "shm-two-keys", two_keys },
	{ "shm-permissions", permissions },
	{ "shm-strangers", strangers },
	{ "shm-locked", locked },
	{ "shm-info", info },
	{ "shm-flags", flags },
	{ "shm-run-code", run_code },
	{ "shm-many", many },
	{ "shm-race", race },
	{ NULL, NULL },
};
