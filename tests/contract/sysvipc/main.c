// SPDX-License-Identifier: MIT
/*
 * sysvipc-cases [--list] [CASE...]: runs cases of System V IPC and prints what was answered.
 * Exit status 1: a case did not come to its end.
 */
#include "cases.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* A case takes milliseconds; after this it hangs. */
#define LIMIT_S 20
#define NOBODY 65534

static const struct ipc_case *const tables[] = {
	sem_cases, sem_wait_cases, undo_cases, msg_cases, msg_wait_cases, shm_cases, NULL,
};

struct shared *shared;
char *program_path;

/* ---- Saying ---- */

static const char *error_name(int error)
{
	static char number[16];
	static const struct {
		int error;
		const char *name;
	} names[] = {
		{ E2BIG, "E2BIG" },   { EACCES, "EACCES" }, { EAGAIN, "EAGAIN" },
		{ EEXIST, "EEXIST" }, { EFAULT, "EFAULT" }, { EFBIG, "EFBIG" },
		{ EIDRM, "EIDRM" },   { EINTR, "EINTR" },   { EINVAL, "EINVAL" },
		{ ENOENT, "ENOENT" }, { ENOMEM, "ENOMEM" }, { ENOMSG, "ENOMSG" },
		{ ENOSPC, "ENOSPC" }, { ENOSYS, "ENOSYS" }, { EPERM, "EPERM" },
		{ ERANGE, "ERANGE" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (names[i].error == error)
			return names[i].name;
	}
	snprintf(number, sizeof(number), "errno %d", error);
	return number;
}

/* What a child says is kept until its parent has reaped it, so that the order of the lines does
 * not depend on who runs first. Shared, since a child may be killed. */
struct words {
	size_t len;
	char text[16 * 1024 - sizeof(size_t)];
};

/* This process's; NULL: it says things at once. */
static struct words *own_words;

/* Those of the children of this process that were not reaped. */
static struct {
	pid_t pid;
	struct words *words;
} children[128];

#define N_CHILDREN (sizeof(children) / sizeof(children[0]))

static void put(const char *text, size_t len)
{
	if (!own_words) {
		if (write(STDOUT_FILENO, text, len) < 0)
			_exit(1);
		return;
	}
	if (len <= sizeof(own_words->text) - own_words->len) {
		memcpy(own_words->text + own_words->len, text, len);
		own_words->len += len;
	}
}

void say(const char *format, ...)
{
	char line[512] = "  ";
	int saved = errno;
	va_list args;
	size_t len;

	va_start(args, format);
	vsnprintf(line + 2, sizeof(line) - 3, format, args);
	va_end(args);
	len = strlen(line);
	line[len++] = '\n';
	put(line, len);
	errno = saved;
}

long result(const char *what, long rc)
{
	if (rc == -1)
		say("%s: %s", what, error_name(errno));
	else
		say("%s: %ld", what, rc);
	return rc;
}

long made(const char *what, long rc)
{
	say("%s: %s", what, rc == -1 ? error_name(errno) : "fine");
	return rc;
}

const char *lately(time_t when, time_t begun)
{
	if (!when)
		return "never";
	return when >= begun && when <= time(NULL) ? "lately" : "at another time";
}

/* ---- Keys, users ---- */

key_t fresh_key(void)
{
	static unsigned n;

	return (key_t)(((unsigned)getpid() << 8 | (n++ & 0xff)) ^ 0x5a000000);
}

void be_nobody(void)
{
	if (!geteuid() && (setgid(NOBODY) || setuid(NOBODY)))
		say("still root");
}

/* ---- Other processes ---- */

static void *share(size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		_exit(1);
	return at;
}

pid_t child(void (*run)(void *arg), void *arg)
{
	struct words *words = share(sizeof(*words));
	pid_t pid = fork();

	if (!pid) {
		own_words = words;
		memset(children, 0, sizeof(children));
		alarm(LIMIT_S);
		run(arg);
		exit(0);
	}
	for (size_t i = 0; i < N_CHILDREN; i++) {
		if (children[i].pid)
			continue;
		children[i].pid = pid;
		children[i].words = words;
		break;
	}
	return pid;
}

static void tell_words_of(pid_t pid)
{
	for (size_t i = 0; i < N_CHILDREN; i++) {
		if (children[i].pid != pid)
			continue;
		put(children[i].words->text, children[i].words->len);
		munmap(children[i].words, sizeof(struct words));
		children[i].pid = 0;
	}
}

void reap(const char *what, pid_t pid)
{
	int status;
	pid_t got = waitpid(pid, &status, 0);

	tell_words_of(pid);
	if (got != pid)
		say("%s: lost", what);
	else if (WIFSIGNALED(status))
		say("%s: killed by %d", what, WTERMSIG(status));
	else
		say("%s: exit %d", what, WEXITSTATUS(status));
}

void await(_Atomic(int) *word, int least)
{
	while (atomic_load(word) < least)
		sched_yield();
}

void about_to_sleep(void)
{
	atomic_fetch_add(&shared->count, 1);
}

static char state_of(pid_t pid)
{
	char path[64], line[512] = "";
	const char *state;
	FILE *stat;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	stat = fopen(path, "re");
	if (!stat)
		return 'X';
	if (!fgets(line, sizeof(line), stat))
		line[0] = '\0';
	fclose(stat);
	state = strrchr(line, ')');
	return state && state[1] ? state[2] : 'X';
}

/* Asleep several times in a row: not for a lock that is soon free. */
void await_sleeper(pid_t pid, int n)
{
	await(&shared->count, n);
	for (int seen = 0; seen < 20; sched_yield()) {
		char state = state_of(pid);

		seen = state == 'S' ? seen + 1 : 0;
		if (state == 'X' || state == 'Z')
			return;
	}
}

void await_asleep(pid_t pid)
{
	await_sleeper(pid, 1);
}

/* ---- Short forms ---- */

int sem_new(int nsems)
{
	int id = semget(IPC_PRIVATE, nsems, 0600);

	if (id == -1)
		made("semget", id);
	return id;
}

int sem_set(int id, int n, int value)
{
	return semctl(id, n, SETVAL, (union semun){ .val = value });
}

int sem_get(int id, int n)
{
	return semctl(id, n, GETVAL);
}

int sem_op(int id, int n, int by, int flags)
{
	struct sembuf op = { (unsigned short)n, (short)by, (short)flags };

	return semop(id, &op, 1);
}

int sem_remove(int id)
{
	return semctl(id, 0, IPC_RMID);
}

int msg_new(void)
{
	int id = msgget(IPC_PRIVATE, 0600);

	if (id == -1)
		made("msgget", id);
	return id;
}

int msg_send(int id, long type, const char *text, int flags)
{
	struct text message = { .type = type };
	size_t len = strlen(text);

	memcpy(message.text, text, len);
	return msgsnd(id, &message, len, flags);
}

void msg_get_some(const char *what, int id, size_t size, long type, int flags)
{
	struct text message = { 0 };
	ssize_t n = msgrcv(id, &message, size, type, flags);

	if (n < 0)
		say("%s: %s", what, error_name(errno));
	else
		say("%s: type %ld \"%.*s\"", what, message.type, (int)n, message.text);
}

void msg_get(const char *what, int id, long type, int flags)
{
	msg_get_some(what, id, sizeof(((struct text *)0)->text), type, flags);
}

int msg_left(int id)
{
	struct msqid_ds stat;

	return msgctl(id, IPC_STAT, &stat) ? -1 : (int)stat.msg_qnum;
}

int msg_remove(int id)
{
	return msgctl(id, IPC_RMID, NULL);
}

/* ---- Running ---- */

static bool wanted(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], name))
			return true;
	}
	return argc < 2;
}

static bool run_case(const struct ipc_case *ipc_case)
{
	int status;
	pid_t pid;

	printf("%s\n", ipc_case->name);
	fflush(stdout);
	memset(shared, 0, sizeof(*shared));
	pid = fork();
	if (!pid) {
		/* A group of its own, so that nobody is left of one that hangs. */
		setpgid(0, 0);
		alarm(LIMIT_S);
		ipc_case->run();
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return false;
	kill(-pid, SIGKILL);
	if (!status)
		return true;
	if (WIFSIGNALED(status))
		say("the case was ended by signal %d", WTERMSIG(status));
	else
		say("the case ended with status %d", WEXITSTATUS(status));
	return false;
}

int main(int argc, char **argv)
{
	bool fine = true, list = argc == 2 && !strcmp(argv[1], "--list");

	program_path = argv[0];
	if (argc == 4 && !strcmp(argv[1], "--helper") && !strcmp(argv[2], "undo"))
		return undo_helper(atoi(argv[3]));
	shared = share(sizeof(*shared));
	for (unsigned t = 0; tables[t]; t++) {
		for (const struct ipc_case *c = tables[t]; c->name; c++) {
			if (list)
				printf("%s\n", c->name);
			else if (wanted(c->name, argc, argv))
				fine &= run_case(c);
		}
	}
	return fine ? 0 : 1;
}
