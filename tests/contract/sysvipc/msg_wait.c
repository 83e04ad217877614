// SPDX-License-Identifier: MIT
/* Message queues: who waits and who is woken, with what. */
#include "cases.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A child that receives, or that sends if there is a text. */
struct party {
	const char *name;
	int id;
	long type;
	size_t size;
	int flags;
	const char *text;
	int word;
};

static void on_signal(int number)
{
	(void)number;
}

static void take_part(void *arg)
{
	const struct party *p = arg;
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };

	sigaction(SIGUSR1, &action, NULL);
	about_to_sleep();
	if (p->text)
		result(p->name, msg_send(p->id, p->type, p->text, p->flags));
	else
		msg_get_some(p->name, p->id, p->size, p->type, p->flags);
	if (p->word >= 0)
		atomic_store(&shared->word[p->word], atomic_fetch_add(&shared->turn, 1) + 1);
}

static pid_t start(const struct party *p)
{
	int n = atomic_load(&shared->count) + 1;
	pid_t pid = child(take_part, (void *)p);

	await_sleeper(pid, n);
	return pid;
}

static void by_type(void)
{
	int id = msg_new();
	struct party five = { "five", id, 5, 100, 0, NULL, -1 };
	struct party below = { "below 4", id, -4, 100, 0, NULL, -1 };
	struct party not_two = { "not 2", id, 2, 100, MSG_EXCEPT, NULL, -1 };
	struct msqid_ds stat;
	pid_t pid = start(&five);

	result("send 4", msg_send(id, 4, "four", 0));
	result("left", msg_left(id));
	result("send 5", msg_send(id, 5, "five", 0));
	reap("five", pid);
	result("left", msg_left(id));
	msgctl(id, IPC_STAT, &stat);
	say("lspid me %d, lrpid the waiter %d", stat.msg_lspid == getpid(), stat.msg_lrpid == pid);
	msg_get("the other", id, 0, IPC_NOWAIT);
	pid = start(&below);
	result("send 6", msg_send(id, 6, "six", 0));
	result("send 4", msg_send(id, 4, "four", 0));
	reap("below", pid);
	msg_get("the other", id, 0, IPC_NOWAIT);
	pid = start(&not_two);
	result("send 2", msg_send(id, 2, "two", 0));
	result("send 3", msg_send(id, 3, "three", 0));
	reap("not 2", pid);
	result("left", msg_left(id));
	msg_remove(id);
}

static void in_turn(void)
{
	int id = msg_new();
	struct party p[3];
	pid_t pid[3];

	for (int i = 0; i < 3; i++) {
		p[i] = (struct party){ "receiver", id, 0, 100, 0, NULL, i };
		pid[i] = start(&p[i]);
	}
	msg_send(id, 1, "first", 0);
	reap("first", pid[0]);
	msg_send(id, 1, "second", 0);
	reap("second", pid[1]);
	msg_send(id, 1, "third", 0);
	reap("third", pid[2]);
	say("turns %d %d %d", shared->word[0], shared->word[1], shared->word[2]);
	msg_remove(id);
}

static void too_small(void)
{
	int id = msg_new();
	struct party small = { "small", id, 0, 4, 0, NULL, -1 };
	struct party large = { "large", id, 0, 100, 0, NULL, -1 };
	struct party cut = { "cut", id, 0, 4, MSG_NOERROR, NULL, -1 };
	pid_t first = start(&small), second = start(&large);

	result("send", msg_send(id, 1, "eight by", 0));
	reap("small", first);
	reap("large", second);
	result("left", msg_left(id));
	first = start(&small);
	result("send", msg_send(id, 1, "eight by", 0));
	reap("small alone", first);
	result("left", msg_left(id));
	msg_get("it is still there", id, 0, IPC_NOWAIT);
	first = start(&cut);
	result("send", msg_send(id, 1, "eight by", 0));
	reap("cut", first);
	result("left", msg_left(id));
	msg_remove(id);
}

static void removed(void)
{
	int id = msg_new();
	static char much[8193];
	struct party receiver = { "receiver", id, 0, 100, 0, NULL, -1 };
	struct party sender = { "sender", id, 1, 0, 0, "some text", -1 };
	pid_t pid = start(&receiver);

	result("remove", msg_remove(id));
	reap("receiver", pid);
	id = sender.id = msg_new();
	memset(much, 'x', 8192);
	msg_send(id, 1, much, 0);
	msg_send(id, 1, much, 0);
	pid = start(&sender);
	result("remove", msg_remove(id));
	reap("sender", pid);
	result("later", msg_send(id, 1, "a", 0));
}

static void interrupted(void)
{
	int id = msg_new();
	static char much[8193];
	struct party receiver = { "receiver", id, 0, 100, 0, NULL, -1 };
	struct party sender = { "sender", id, 1, 0, 0, "some text", -1 };
	pid_t pid = start(&receiver);

	kill(pid, SIGUSR1);
	reap("receiver", pid);
	memset(much, 'x', 8192);
	msg_send(id, 1, much, 0);
	msg_send(id, 1, much, 0);
	pid = start(&sender);
	kill(pid, SIGUSR1);
	reap("sender", pid);
	result("left", msg_left(id));
	msg_remove(id);
}

static void killed(void)
{
	int id = msg_new();
	struct party receiver = { "receiver", id, 0, 100, 0, NULL, -1 };
	pid_t first = start(&receiver), second = start(&receiver);

	kill(first, SIGKILL);
	reap("first", first);
	result("send", msg_send(id, 1, "for the second", 0));
	reap("second", second);
	result("send", msg_send(id, 1, "for nobody", 0));
	result("left", msg_left(id));
	msg_remove(id);
}

static void room(void)
{
	int id = msg_new();
	static char much[8193], half[4097];
	struct party big = { "big", id, 1, 0, 0, much, 0 };
	struct party small = { "small", id, 2, 0, 0, "small", 1 };
	pid_t first, second;

	memset(much, 'x', 8192);
	memset(half, 'y', 4096);
	msg_send(id, 8, half, 0);
	msg_send(id, 9, half, 0);
	msg_send(id, 9, much, 0);
	first = start(&big);
	second = start(&small);
	say("half out: %d", (int)msgrcv(id, &(struct text){ 0 }, 8192, 8, 0));
	/* There is room for the small one alone. */
	reap("small", second);
	result("left", msg_left(id));
	say("much out: %d", (int)msgrcv(id, &(struct text){ 0 }, 8192, 9, 0));
	say("much out: %d", (int)msgrcv(id, &(struct text){ 0 }, 8192, 9, 0));
	reap("big", first);
	say("turns: big %d small %d", shared->word[0], shared->word[1]);
	result("left", msg_left(id));
	msg_remove(id);
}

static void more_room(void)
{
	int id = msg_new();
	struct msqid_ds stat;
	struct party sender = { "sender", id, 2, 0, 0, "text", -1 };
	pid_t pid;

	msgctl(id, IPC_STAT, &stat);
	stat.msg_qbytes = 3;
	result("3 bytes", msgctl(id, IPC_SET, &stat));
	pid = start(&sender);
	stat.msg_qbytes = 100;
	result("100 bytes", msgctl(id, IPC_SET, &stat));
	reap("sender", pid);
	result("left", msg_left(id));
	msg_remove(id);
}

static void three_senders(void)
{
	int id = msg_new(), came = 0;
	struct msqid_ds stat;
	struct party p[3];
	pid_t pid[3];

	msgctl(id, IPC_STAT, &stat);
	stat.msg_qbytes = 1;
	msgctl(id, IPC_SET, &stat);
	msg_send(id, 9, "x", 0);
	for (int i = 0; i < 3; i++) {
		p[i] = (struct party){ "sender", id, i + 1, 0, 0, "y", -1 };
		pid[i] = start(&p[i]);
	}
	/* Each receive makes room for one; Linux wakes all, and lets them race for it. */
	msg_get("x", id, 9, 0);
	for (int i = 0; i < 3; i++)
		came += msgrcv(id, &(struct text){ 0 }, 8192, 0, 0) == 1;
	say("came %d", came);
	for (int i = 0; i < 3; i++)
		reap("sender", pid[i]);
	result("left", msg_left(id));
	msg_remove(id);
}

static void echo(void *arg)
{
	int id = *(int *)arg;
	struct {
		long type;
		int n;
	} message;

	for (int i = 0; i < 500; i++) {
		if (msgrcv(id, &message, sizeof(int), 1, 0) != sizeof(int))
			say("echo: failed");
		message.type = 2;
		message.n++;
		msgsnd(id, &message, sizeof(int), 0);
	}
}

static void ping_pong(void)
{
	int id = msg_new(), wrong = 0;
	pid_t pid = child(echo, &id);
	struct {
		long type;
		int n;
	} message;

	for (int i = 0; i < 500; i++) {
		message.type = 1;
		message.n = i;
		wrong += msgsnd(id, &message, sizeof(int), 0) != 0;
		wrong += msgrcv(id, &message, sizeof(int), 2, 0) != sizeof(int);
		wrong += message.n != i + 1;
	}
	reap("echo", pid);
	say("wrong %d left %d", wrong, msg_left(id));
	msg_remove(id);
}

#define STREAM 3000

static void stream_out(void *arg)
{
	const struct party *p = arg;
	struct {
		long type;
		int n;
		char rest[60];
	} message;

	memset(&message, 0, sizeof(message));
	for (int i = 0; i < STREAM; i++) {
		message.type = p->type;
		message.n = i;
		if (msgsnd(p->id, &message, sizeof(int) + i % 60, 0))
			say("sender: failed");
	}
}

/* Three senders that fill the queue; what each sent comes in order. */
static void streams(void)
{
	int id = msg_new(), next[4] = { 0 }, wrong = 0;
	struct party p[3];
	pid_t pid[3];
	struct {
		long type;
		int n;
		char rest[60];
	} message;

	for (int i = 0; i < 3; i++) {
		p[i] = (struct party){ .id = id, .type = i + 1 };
		pid[i] = child(stream_out, &p[i]);
	}
	for (int i = 0; i < 3 * STREAM; i++) {
		if (msgrcv(id, &message, sizeof(message) - sizeof(long), 0, 0) < 0 ||
		    message.type < 1 || message.type > 3 || message.n != next[message.type]++)
			wrong++;
	}
	for (int i = 0; i < 3; i++)
		reap("sender", pid[i]);
	say("wrong %d left %d", wrong, msg_left(id));
	msg_remove(id);
}

const struct ipc_case msg_wait_cases[] = {
	{ "msg-by-type", by_type },
	{ "msg-in-turn", in_turn },
	{ "msg-too-small", too_small },
	{ "msg-removed", removed },
	{ "msg-interrupted", interrupted },
	{ "msg-killed-waiter", killed },
	{ "msg-room", room },
	{ "msg-more-room", more_room },
	{ "msg-senders", three_senders },
	{ "msg-ping-pong", ping_pong },
	{ "msg-streams", streams },
	{ NULL, NULL },
};
