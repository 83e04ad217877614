/* SPDX-License-Identifier: MIT */
/*
 * Cases of System V IPC that run on whatever implementation the program finds, the kernel's or
 * a library's, and say what it answered in the same words, so that two runs can be compared.
 *
 * A case is a function that runs in a process of its own. It has no opinion of what is right;
 * it says results, errno values and what the objects are like afterwards. What differs between
 * two runs on the same implementation (ids, times, process ids) is told as a comparison.
 */
#ifndef SYSVIPC_CASES_H
#define SYSVIPC_CASES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/types.h>
#include <time.h>

struct ipc_case {
	const char *name;
	void (*run)(void);
};

/* One table a file, each ending in a case without a name. */
extern const struct ipc_case sem_cases[];
extern const struct ipc_case sem_wait_cases[];
extern const struct ipc_case undo_cases[];
extern const struct ipc_case msg_cases[];
extern const struct ipc_case msg_wait_cases[];
extern const struct ipc_case shm_cases[];

/* What the kernel wants as semctl's fourth argument. */
union semun {
	int val;
	struct semid_ds *buf;
	unsigned short *array;
	struct seminfo *info;
};

/* ---- Saying ---- */

/* A line of the result. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* "what: rc", or "what: errno's name" for -1; gives rc back. Keeps errno. */
long result(const char *what, long rc);
/* "what: fine" for any result but -1: ids and addresses. */
long made(const char *what, long rc);
/* Whether a time is between begun and now. */
const char *lately(time_t when, time_t begun);

/* ---- Keys, users ---- */

/* One that nobody uses. */
key_t fresh_key(void);
/* Without privileges from here on: as nobody, if the program has been run by root. */
void be_nobody(void);

/* ---- Other processes and threads ---- */

/* What processes share, zero at first. */
struct shared {
	_Atomic(int) turn, count;
	_Atomic(int) word[8];
};
extern struct shared *shared;

/* A child that runs the function and exits; parent's memory is its own copy. */
pid_t child(void (*run)(void *arg), void *arg);
/* Says how it ended: "what: exit 0", "what: killed by 9". */
void reap(const char *what, pid_t pid);
/* Waits until the process sleeps in a call that it has announced by about_to_sleep(). */
void about_to_sleep(void);
void await_asleep(pid_t pid);
/* The same for the n-th process that announces it. */
void await_sleeper(pid_t pid, int n);
/* Waits until the word is at least so much. */
void await(_Atomic(int) *word, int least);
/* How this program is run again to run one of its helpers, after exec. */
extern char *program_path;

/* Called by the program when it is run as a helper: `sysvipc-cases --helper NAME ID`. */
int undo_helper(int id);

/* ---- Short forms ---- */

int sem_new(int nsems);
int sem_set(int id, int n, int value);
int sem_get(int id, int n);
int sem_op(int id, int n, int by, int flags);
int sem_remove(int id);

struct text {
	long type;
	char text[8192];
};
int msg_new(void);
int msg_send(int id, long type, const char *text, int flags);
/* Says what came: "what: type 3 "abc"" or errno's name. */
void msg_get(const char *what, int id, long type, int flags);
/* The same with a buffer of that many bytes. */
void msg_get_some(const char *what, int id, size_t size, long type, int flags);
int msg_left(int id);
int msg_remove(int id);

#endif
