// SPDX-License-Identifier: MIT
/* Message queues: what a single process sees. */
#include "cases.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef MSG_COPY
#define MSG_COPY 040000
#endif

static void get(void)
{
	key_t key = fresh_key();
	int id, other;

	made("not there", msgget(key, 0600));
	made("exclusively, not creating", msgget(key, IPC_EXCL | 0600));
	id = (int)made("create", msgget(key, IPC_CREAT | IPC_EXCL | 0600));
	made("exclusively", msgget(key, IPC_CREAT | IPC_EXCL | 0600));
	say("found: %d", msgget(key, 0) == id);
	say("created again: %d", msgget(key, IPC_CREAT | 0600) == id);
	result("send", msg_send(id, 1, "a", 0));
	result("remove", msg_remove(id));
	made("after", msgget(key, 0));
	other = (int)made("again", msgget(key, IPC_CREAT | 0600));
	say("its id: %s", other == id ? "the same" : "another");
	result("send to the old", msg_send(id, 1, "a", 0));
	msg_get("receive from the old", id, 0, IPC_NOWAIT);
	result("remove the old", msg_remove(id));
	result("left in the new", msg_left(other));
	msg_remove(other);
	say("private ones differ: %d", (id = msg_new()) != (other = msg_new()));
	msg_remove(id);
	msg_remove(other);
}

static void arguments(void)
{
	static struct text message = { .type = 1 };
	int id = msg_new();

	result("type 0", msg_send(id, 0, "a", 0));
	result("type -1", msg_send(id, -1, "a", 0));
	result("8192 bytes", msgsnd(id, &message, 8192, 0));
	result("8193 bytes", msgsnd(id, &message, 8193, 0));
	result("-1 bytes", msgsnd(id, &message, (size_t)-1, 0));
	result("LONG_MIN bytes", msgsnd(id, &message, (size_t)LONG_MIN, 0));
	result("0 bytes", msgsnd(id, &message, 0, 0));
	result("from nowhere", msgsnd(id, NULL, 1, 0));
	result("id -1", msgsnd(-1, &message, 1, 0));
	result("id far away", msgsnd(INT_MAX, &message, 1, 0));
	result("id -1, type 0", msgsnd(-1, &(struct text){ .type = 0 }, 1, 0));
	result("unknown flags", msgsnd(id, &message, 3, 0x100000));
	result("left", msg_left(id));
	result("receive -1 bytes", msgrcv(id, &message, (size_t)-1, 0, 0));
	result("receive 8192", msgrcv(id, &message, 8192, 0, 0));
	result("receive 0", msgrcv(id, &message, 0, 0, 0));
	result("receive far more", msgrcv(id, &message, 1 << 20, 0, 0));
	result("nothing left", msgrcv(id, &message, 1, 0, IPC_NOWAIT));
	result("nothing of type 5", msgrcv(id, &message, 1, 5, IPC_NOWAIT));
	result("receive with id -1", msgrcv(-1, &message, 1, 0, IPC_NOWAIT));
	result("receive with id far away", msgrcv(INT_MAX, &message, 1, 0, IPC_NOWAIT));
	result("receive to nowhere, nothing", msgrcv(id, NULL, 1, 0, IPC_NOWAIT));
	msg_send(id, 4, "lost", 0);
	result("receive to nowhere", msgrcv(id, NULL, 4, 0, IPC_NOWAIT));
	result("left", msg_left(id));
	result("no such command", msgctl(id, 1234, NULL));
	result("a command below", msgctl(id, -1, NULL));
	result("stat to nowhere", msgctl(id, IPC_STAT, NULL));
	result("set from nowhere", msgctl(id, IPC_SET, NULL));
	result("stat of -1", msgctl(-1, IPC_STAT, &(struct msqid_ds){ 0 }));
	result("remove", msg_remove(id));
	result("send", msg_send(id, 1, "a", 0));
	msg_get("receive", id, 0, 0);
	result("remove", msg_remove(id));
}

static void fill(int id)
{
	msg_send(id, 5, "five", 0);
	msg_send(id, 3, "three", 0);
	msg_send(id, 9, "nine", 0);
	msg_send(id, 3, "three again", 0);
	msg_send(id, LONG_MAX, "most", 0);
}

static void types(void)
{
	int id = msg_new();

	fill(id);
	msg_get("any", id, 0, IPC_NOWAIT);
	msg_get("9", id, 9, IPC_NOWAIT);
	msg_get("7", id, 7, IPC_NOWAIT);
	msg_get("-2", id, -2, IPC_NOWAIT);
	msg_get("-4", id, -4, IPC_NOWAIT);
	msg_get("-3", id, -3, IPC_NOWAIT);
	msg_get("-LONG_MAX", id, -LONG_MAX, IPC_NOWAIT);
	msg_get("nothing", id, 0, IPC_NOWAIT);
	fill(id);
	for (int i = 0; i < 6; i++)
		msg_get("LONG_MIN", id, LONG_MIN, IPC_NOWAIT);
	fill(id);
	for (int i = 0; i < 6; i++)
		msg_get("-9", id, -9, IPC_NOWAIT);
	msg_get("LONG_MAX", id, LONG_MAX, IPC_NOWAIT);
	fill(id);
	msg_get("not 5", id, 5, IPC_NOWAIT | MSG_EXCEPT);
	msg_get("not 5", id, 5, IPC_NOWAIT | MSG_EXCEPT);
	msg_get("not 3", id, 3, IPC_NOWAIT | MSG_EXCEPT);
	msg_get("not 3", id, 3, IPC_NOWAIT | MSG_EXCEPT);
	msg_get("not 3", id, 3, IPC_NOWAIT | MSG_EXCEPT);
	msg_get("not 0", id, 0, IPC_NOWAIT | MSG_EXCEPT);
	fill(id);
	msg_get("not -4", id, -4, IPC_NOWAIT | MSG_EXCEPT);
	msg_remove(id);
}

static void sizes(void)
{
	static struct text out, in;
	int id = msg_new(), wrong = 0;

	msg_send(id, 2, "abcdef", 0);
	msg_get_some("too small", id, 3, 0, 0);
	result("left", msg_left(id));
	msg_get_some("too small by type", id, 5, 2, IPC_NOWAIT);
	msg_get_some("too small, another type", id, 5, 3, IPC_NOWAIT);
	msg_get_some("cut", id, 3, 0, MSG_NOERROR);
	result("left", msg_left(id));
	msg_send(id, 2, "abcdef", 0);
	msg_get_some("cut to nothing", id, 0, 0, MSG_NOERROR);
	msg_send(id, 2, "abcdef", 0);
	msg_get_some("just right", id, 6, 0, 0);
	for (size_t n = 0; n <= 8192; n += n < 80 ? 1 : 57) {
		for (size_t i = 0; i < n; i++)
			out.text[i] = (char)(i * 31 + n);
		out.type = (long)n + 1;
		memset(&in, 0xee, sizeof(in));
		wrong += msgsnd(id, &out, n, IPC_NOWAIT) != 0;
		wrong += msgrcv(id, &in, sizeof(in.text), 0, IPC_NOWAIT) != (ssize_t)n;
		wrong += in.type != (long)n + 1 || memcmp(in.text, out.text, n) != 0;
		wrong += n < 8192 && in.text[n] != (char)0xee;
	}
	say("wrong %d", wrong);
	msg_remove(id);
}

static int how_many(int id, size_t size)
{
	static struct text message = { .type = 1 };
	int n = 0;

	while (n < 100000 && !msgsnd(id, &message, size, IPC_NOWAIT))
		n++;
	result("then", -1);
	return n;
}

static void set_qbytes(const char *what, int id, unsigned long bytes)
{
	struct msqid_ds stat;

	msgctl(id, IPC_STAT, &stat);
	stat.msg_qbytes = bytes;
	result(what, msgctl(id, IPC_SET, &stat));
}

static void full(void)
{
	const size_t list[] = { 100, 1, 8192, 8191, 5000 };
	struct msqid_ds stat;

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		int id = msg_new();

		say("%zu bytes: %d", list[i], how_many(id, list[i]));
		msgctl(id, IPC_STAT, &stat);
		say("bytes %lu of %lu", (unsigned long)stat.__msg_cbytes,
		    (unsigned long)stat.msg_qbytes);
		msg_get_some("one out", id, 0, 0, MSG_NOERROR);
		say("again: %d", how_many(id, list[i]));
		msg_remove(id);
	}
}

static void limits(void)
{
	int id;

	be_nobody();
	id = msg_new();
	set_qbytes("8 bytes", id, 8);
	say("empty ones: %d", how_many(id, 0));
	msg_remove(id);
	id = msg_new();
	set_qbytes("10 bytes", id, 10);
	result("11 bytes", msg_send(id, 1, "12345678901", IPC_NOWAIT));
	result("10 bytes", msg_send(id, 1, "1234567890", IPC_NOWAIT));
	result("an empty one", msg_send(id, 1, "", IPC_NOWAIT));
	set_qbytes("less than there is", id, 4);
	result("an empty one", msg_send(id, 1, "", IPC_NOWAIT));
	msg_get("what was there", id, 0, 0);
	set_qbytes("no bytes", id, 0);
	result("an empty one", msg_send(id, 1, "", IPC_NOWAIT));
	set_qbytes("as before", id, 16384);
	set_qbytes("more than may be", id, 16385);
	set_qbytes("far more than may be", id, ULONG_MAX);
	msg_remove(id);
}

static void copies(void)
{
	static char buffer[sizeof(long) + 8192];
	int id = msg_new();
	struct msqid_ds stat;

	fill(id);
	msg_get("second", id, 1, MSG_COPY | IPC_NOWAIT);
	msg_get("first", id, 0, MSG_COPY | IPC_NOWAIT);
	msg_get("last", id, 4, MSG_COPY | IPC_NOWAIT);
	msg_get("behind it", id, 5, MSG_COPY | IPC_NOWAIT);
	msg_get("before the first", id, -1, MSG_COPY | IPC_NOWAIT);
	msg_get("LONG_MIN", id, LONG_MIN, MSG_COPY | IPC_NOWAIT);
	msg_get("that would wait", id, 1, MSG_COPY);
	msg_get("another than", id, 1, MSG_COPY | MSG_EXCEPT | IPC_NOWAIT);
	msg_get_some("too small", id, 2, 1, MSG_COPY | IPC_NOWAIT);
	msg_get_some("cut", id, 2, 1, MSG_COPY | MSG_NOERROR | IPC_NOWAIT);
	msgctl(id, IPC_STAT, &stat);
	say("left %d, received by %d, at %d", (int)stat.msg_qnum, (int)stat.msg_lrpid,
	    stat.msg_rtime != 0);
	result("raw", msgrcv(id, buffer, 8192, 0, MSG_COPY | IPC_NOWAIT));
	msg_remove(id);
}

static void say_stat(const char *when, int id, time_t begun)
{
	struct msqid_ds stat;

	if (result(when, msgctl(id, IPC_STAT, &stat)))
		return;
	say("qnum %lu cbytes %lu qbytes %lu mode %o", (unsigned long)stat.msg_qnum,
	    (unsigned long)stat.__msg_cbytes, (unsigned long)stat.msg_qbytes,
	    (unsigned)stat.msg_perm.mode);
	say("stime %s rtime %s ctime %s", lately(stat.msg_stime, begun),
	    lately(stat.msg_rtime, begun), lately(stat.msg_ctime, begun));
	say("lspid %s lrpid %s",
	    stat.msg_lspid == getpid() ? "me"
	    : stat.msg_lspid	       ? "else"
				       : "0",
	    stat.msg_lrpid == getpid() ? "me"
	    : stat.msg_lrpid	       ? "else"
				       : "0");
	say("uid %d cuid %d gid %d cgid %d", stat.msg_perm.uid == geteuid(),
	    stat.msg_perm.cuid == geteuid(), stat.msg_perm.gid == getegid(),
	    stat.msg_perm.cgid == getegid());
}

static void send_one(void *arg)
{
	msg_send(*(int *)arg, 7, "from a child", 0);
}

static void stat_fields(void)
{
	time_t begun = time(NULL);
	key_t key = fresh_key();
	int id = msgget(key, IPC_CREAT | 0640);
	struct msqid_ds stat;

	say_stat("new", id, begun);
	msg_send(id, 1, "abc", 0);
	msg_send(id, 2, "defgh", 0);
	say_stat("two sent", id, begun);
	msg_get("failed", id, 9, IPC_NOWAIT);
	say_stat("none received", id, begun);
	msg_get("one", id, 0, 0);
	say_stat("one received", id, begun);
	msg_get_some("cut", id, 1, 0, MSG_NOERROR);
	say_stat("all received", id, begun);
	reap("child", child(send_one, &id));
	say_stat("a child sent", id, begun);
	msgctl(id, IPC_STAT, &stat);
	say("key %d", stat.msg_perm.__key == key);
	stat.msg_perm.mode = 07602;
	result("set", msgctl(id, IPC_SET, &stat));
	say_stat("after it", id, begun);
	msg_remove(id);
	result("removed", msgctl(id, IPC_STAT, &stat));
}

static void permissions(void)
{
	key_t key = fresh_key();
	struct msqid_ds stat;
	int id;

	be_nobody();
	id = msgget(key, IPC_CREAT | 0400);
	made("reading by key", msgget(key, 0400));
	made("sending by key", msgget(key, 0200));
	made("anything by key", msgget(key, 0));
	result("send", msg_send(id, 1, "a", IPC_NOWAIT));
	msg_get("receive", id, 0, IPC_NOWAIT);
	result("stat", msgctl(id, IPC_STAT, &stat));
	result("remove", msg_remove(id));
	id = msgget(key, IPC_CREAT | 0200);
	result("writer: send", msg_send(id, 1, "a", IPC_NOWAIT));
	msg_get("writer: receive", id, 0, IPC_NOWAIT);
	result("writer: stat", msgctl(id, IPC_STAT, &stat));
	result("remove", msg_remove(id));
	id = msgget(key, IPC_CREAT);
	result("closed: send", msg_send(id, 1, "a", IPC_NOWAIT));
	msg_get("closed: receive", id, 0, IPC_NOWAIT);
	result("closed: stat", msgctl(id, IPC_STAT, &stat));
	memset(&stat, 0, sizeof(stat));
	stat.msg_perm.uid = geteuid();
	stat.msg_perm.gid = getegid();
	stat.msg_perm.mode = 0600;
	stat.msg_qbytes = 1000;
	result("closed: set", msgctl(id, IPC_SET, &stat));
	result("opened: send", msg_send(id, 1, "a", IPC_NOWAIT));
	result("remove", msg_remove(id));
}

static void as_stranger(void *arg)
{
	int id = *(int *)arg;
	struct msqid_ds stat = { 0 };

	be_nobody();
	result("send", msg_send(id, 2, "b", IPC_NOWAIT));
	msg_get("receive", id, 0, IPC_NOWAIT);
	result("stat", msgctl(id, IPC_STAT, &stat));
	result("set", msgctl(id, IPC_SET, &stat));
	result("remove", msg_remove(id));
}

static void strangers(void)
{
	const int modes[] = { 0600, 0604, 0602, 0606, 0660, 0 };

	if (geteuid()) {
		say("needs two users");
		return;
	}
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		int id = msgget(IPC_PRIVATE, modes[i]);

		say("mode %o", (unsigned)modes[i]);
		msg_send(id, 1, "a", IPC_NOWAIT);
		reap("stranger", child(as_stranger, &id));
		msg_get("root", id, 0, IPC_NOWAIT);
		result("root removes", msg_remove(id));
	}
}

static void info(void)
{
	int id = msg_new(), found = 0, most;
	struct msginfo limit, used;
	struct msqid_ds stat;

	memset(&limit, 0, sizeof(limit));
	say("IPC_INFO: %d", msgctl(0, IPC_INFO, (struct msqid_ds *)&limit) >= 0);
	say("msgmax %d msgmnb %d", limit.msgmax, limit.msgmnb);
	msg_send(id, 1, "abc", 0);
	memset(&used, 0, sizeof(used));
	most = msgctl(0, MSG_INFO, (struct msqid_ds *)&used);
	say("MSG_INFO: %d, queues %d messages %d bytes %d", most >= 0, used.msgpool >= 1,
	    used.msgmap >= 1, used.msgtql >= 3);
	for (int i = 0; i <= most; i++)
		found += msgctl(i, MSG_STAT, &stat) == id && stat.msg_qnum == 1;
	say("MSG_STAT finds it: %d", found);
	found = 0;
	for (int i = 0; i <= most; i++)
		found += msgctl(i, MSG_STAT_ANY, &stat) == id;
	say("MSG_STAT_ANY finds it: %d", found);
	msg_remove(id);
}

/* Random sends and receives, compared with a plain list. */
static void random_walk(void)
{
	struct {
		long type;
		int number;
	} model[512];
	struct {
		long type;
		int number;
		char rest[200];
	} message;
	int id = msg_new(), n = 0, wrong = 0, received = 0;
	unsigned seed = 7;

	for (int i = 0; i < 20000; i++) {
		long type = rand_r(&seed) % 9 - 4;
		int at = -1;

		if (rand_r(&seed) % 2) {
			message.type = labs(type) + 1;
			message.number = i;
			if (msgsnd(id, &message, sizeof(int) + rand_r(&seed) % 200, IPC_NOWAIT))
				continue;
			if (n == 512) {
				wrong++;
				break;
			}
			model[n].type = message.type;
			model[n++].number = i;
			continue;
		}
		for (int k = 0; k < n; k++) {
			if (type >= 0 ? !type || model[k].type == type
				      : model[k].type <= -type &&
						(at < 0 || model[k].type < model[at].type)) {
				at = k;
				if (type >= 0)
					break;
			}
		}
		if (msgrcv(id, &message, sizeof(message) - sizeof(long), type, IPC_NOWAIT) < 0) {
			wrong += at >= 0;
			continue;
		}
		received++;
		wrong += at < 0 || model[at].number != message.number ||
			 model[at].type != message.type;
		if (at >= 0)
			memmove(&model[at], &model[at + 1], sizeof(model[0]) * (--n - at));
	}
	say("wrong %d, left as in the model %d, many %d", wrong, msg_left(id) == n,
	    received > 4000);
	msg_remove(id);
}

const struct ipc_case msg_cases[] = {
	{ "msg-get", get },
	{ "msg-arguments", arguments },
	{ "msg-types", types },
	{ "msg-sizes", sizes },
	{ "msg-full", full },
	{ "msg-limits", limits },
	{ "msg-copies", copies },
	{ "msg-stat", stat_fields },
	{ "msg-permissions", permissions },
	{ "msg-strangers", strangers },
	{ "msg-info", info },
	{ "msg-random-walk", random_walk },
	{ NULL, NULL },
};
