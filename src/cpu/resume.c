/* SPDX-License-Identifier: MIT */
/*
 * Going on with the system call that our signal broke off.
 *
 * SA_RESTART makes the kernel go on with read, write, accept, futex and many others, but
 * not with those that sleep until a time or wait for several things: they return EINTR
 * after any handler. Where it can be told that the interrupted thread is at the end of such
 * a call, the handler has it go on, in one of two ways:
 *
 * - again: the thread returns to the instruction that makes the call. Right where the call
 *   means the same the second time: it waits without end, or until a time of the clock, or the
 *   kernel has written back how much time is left.
 * - the rest: the handler waits in the thread's stead for what the call waited for, with the
 *   thread's own mask of signals, and the thread returns from the call with the
 *   outcome. For relative time-outs: measured from now, since nobody knows how much of
 *   them is over, so that such a call lasts twice as long as it should at worst, however
 *   often it is interrupted. nanosleep that tells what is left lasts as long as it should.
 *
 * A signal of the program's own that comes in the same moment has its EINTR all the same as
 * far as can be told: it is pending while our handler blocks it. One whose handler ran just
 * before may go unseen, exactly as if it had come just before the call. Calls that exist
 * to be woken by signals (those with a mask of signals, pause, sigsuspend) are therefore left
 * alone: they return.
 *
 * What tells the call is the code before the thread's instruction pointer: "mov $N,%eax",
 * perhaps moves of arguments, "syscall", which is how C libraries for x86-64 make calls.
 * With other code, and on other machines, where the first argument is gone by then, the
 * thread sees EINTR.
 */
#include "internal.h"

#if defined(__x86_64__) && defined(__LP64__)

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define MOV_EAX 0xb8
#define MOV_EAX_BYTES 5
#define SYSCALL_BYTES 2 /* 0f 05 */
#define MOST_BYTES 16 /* of moves between the two */
#define KERNEL_SIGSET 8 /* bytes of a set of signals, to the kernel */
#define NS_PER_S 1000000000
#define NS_PER_MS 1000000

struct call {
	long number;
	greg_t *reg; /* of the interrupted thread */
	void *mask; /* its mask of signals */
};

enum way { LEAVE, AGAIN, REST };

/* How often our signal came to this thread. */
static __thread volatile unsigned signals;

static unsigned long argument(const struct call *call, int n)
{
	static const int reg[] = { REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8, REG_R9 };

	return (unsigned long)call->reg[reg[n]];
}

/* Whether there is memory to read: the kernel reads the set before it finds that it does not
 * know what to do with it. */
static bool is_readable(const void *p)
{
	return syscall(SYS_rt_sigprocmask, -1, p, NULL, KERNEL_SIGSET) && errno == EINVAL;
}

/* The bytes of an instruction that moves a register or a word of the stack to a register
 * other than rax, or that clears one; 0: it is none of them. */
static int move_bytes(const uint8_t *code)
{
	int prefix = (code[0] & 0xf0) == 0x40;
	uint8_t rex = prefix ? code[0] : 0, operation = code[prefix], modrm = code[prefix + 1];
	bool load = operation == 0x8b, direct = modrm >> 6 == 3;
	uint8_t to = load ? (modrm >> 3 & 7) | (rex & 4) << 1 : (modrm & 7) | (rex & 1) << 3;

	if (!load && operation != 0x89 && operation != 0x31)
		return 0;
	if (to == 0 || (!load && !direct))
		return 0;
	if (direct)
		return prefix + 2;
	/* What is relative to the stack pointer: with a byte of offset, or none. */
	if ((modrm & 7) != 4 || modrm >> 6 > 1)
		return 0;
	return prefix + 3 + (modrm >> 6);
}

/* Whether there is nothing but moves between the two. */
static bool are_moves(const uint8_t *code, const uint8_t *end)
{
	while (code < end) {
		int bytes = move_bytes(code);

		if (!bytes)
			return false;
		code += bytes;
	}
	return code == end;
}

/* The instruction that loads the number of the call that ends at `end`; NULL: not found. */
static const uint8_t *find_number(const uint8_t *end)
{
	const uint8_t *syscall_at = end - SYSCALL_BYTES;

	if (syscall_at[0] != 0x0f || syscall_at[1] != 0x05)
		return NULL;
	for (int between = 0; between <= MOST_BYTES; between++) {
		const uint8_t *code = syscall_at - between - MOV_EAX_BYTES;

		if (code[0] == MOV_EAX && are_moves(code + MOV_EAX_BYTES, syscall_at))
			return code;
	}
	return NULL;
}

/* Whether the thread has just come out of a call with EINTR. */
static bool at_interrupted_call(struct call *call)
{
	const uint8_t *end = (const uint8_t *)call->reg[REG_RIP], *code;
	uint32_t number;

	if (call->reg[REG_RAX] != -EINTR || !is_readable(end - KERNEL_SIGSET) ||
	    !is_readable(end - SYSCALL_BYTES - MOST_BYTES - MOV_EAX_BYTES))
		return false;
	code = find_number(end);
	if (!code)
		return false;
	memcpy(&number, code + 1, sizeof(number));
	call->number = (long)number;
	return true;
}

/* Whether a signal of the program's own would have ended the call, too. */
static bool others_are_pending(const struct call *call)
{
	uint64_t pending = 0, blocked;

	memcpy(&blocked, call->mask, sizeof(blocked));
	syscall(SYS_rt_sigpending, &pending, KERNEL_SIGSET);
	return pending & ~blocked;
}

/* A time-out in milliseconds: negative is without end. */
static enum way by_ms(unsigned long timeout)
{
	return (int)timeout < 0 ? AGAIN : REST;
}

static enum way futex_way(const struct call *call)
{
	int operation = (int)argument(call, 1) & FUTEX_CMD_MASK;

	return operation == FUTEX_WAIT_BITSET ? AGAIN : LEAVE;
}

static enum way clock_nanosleep_way(const struct call *call)
{
	clockid_t clock = (clockid_t)argument(call, 0);

	if (argument(call, 1) & TIMER_ABSTIME)
		return AGAIN;
	return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME
		       ? REST
		       : LEAVE;
}

static enum way pselect_way(const struct call *call)
{
	const unsigned long *mask = (const unsigned long *)argument(call, 5);

	return mask && *mask ? LEAVE : AGAIN;
}

static enum way way_of(const struct call *call)
{
	switch (call->number) {
	case SYS_poll:
		return by_ms(argument(call, 2));
	case SYS_epoll_wait:
		return by_ms(argument(call, 3));
	case SYS_epoll_pwait:
		return argument(call, 4) ? LEAVE : by_ms(argument(call, 3));
	case SYS_ppoll:
		return argument(call, 3) ? LEAVE : AGAIN;
	case SYS_pselect6:
		return pselect_way(call);
	case SYS_select:
	case SYS_semop:
	case SYS_msgsnd:
	case SYS_msgrcv:
		return AGAIN;
	case SYS_semtimedop:
		return argument(call, 3) ? LEAVE : AGAIN;
	case SYS_rt_sigtimedwait:
		return argument(call, 2) ? LEAVE : AGAIN;
	case SYS_futex:
		return futex_way(call);
	case SYS_clock_nanosleep:
		return clock_nanosleep_way(call);
	case SYS_nanosleep:
		return REST;
	default:
		return LEAVE;
	}
}

/* ---- The rest of a call ---- */

static int64_t ns_of(const struct timespec *time)
{
	if (time->tv_sec > INT64_MAX / NS_PER_S / 2)
		return INT64_MAX / 2;
	return (int64_t)time->tv_sec * NS_PER_S + time->tv_nsec;
}

/* Where nanosleep was given its time, and where it says how much is left, or NULL. */
static struct timespec *sleep_argument(const struct call *call, int n)
{
	return (struct timespec *)argument(call, call->number == SYS_nanosleep ? n : n + 2);
}

static bool is_sleep(const struct call *call)
{
	return call->number == SYS_nanosleep || call->number == SYS_clock_nanosleep;
}

static int64_t timeout_of(const struct call *call)
{
	if (is_sleep(call)) {
		struct timespec *left = sleep_argument(call, 1);

		return ns_of(left ? left : sleep_argument(call, 0));
	}
	return (int64_t)(int)argument(call, call->number == SYS_poll ? 2 : 3) * NS_PER_MS;
}

/* Waits once; the outcome as the kernel gives it. */
static long wait_once(const struct call *call, int64_t ns)
{
	struct timespec left = { ns / NS_PER_S, ns % NS_PER_S };
	long result;

	if (is_sleep(call))
		result = syscall(SYS_ppoll, NULL, 0, &left, call->mask, KERNEL_SIGSET);
	else if (call->number == SYS_poll)
		result = syscall(SYS_ppoll, argument(call, 0), argument(call, 1), &left, call->mask,
				 KERNEL_SIGSET);
	else
		result = syscall(SYS_epoll_pwait, argument(call, 0), argument(call, 1),
				 argument(call, 2), (ns + NS_PER_MS - 1) / NS_PER_MS, call->mask,
				 KERNEL_SIGSET);
	return result < 0 ? -errno : result;
}

static long wait_for_rest(const struct call *call)
{
	int64_t end = hl_now_ns() + timeout_of(call), left;
	unsigned before;
	long result;

	do {
		left = end - hl_now_ns();
		before = signals;
		result = wait_once(call, left > 0 ? left : 0);
	} while (result == -EINTR && signals != before);
	if (result == -EINTR && is_sleep(call) && sleep_argument(call, 1)) {
		left = end - hl_now_ns();
		*sleep_argument(call, 1) =
			left > 0 ? (struct timespec){ left / NS_PER_S, left % NS_PER_S }
				 : (struct timespec){ 0 };
	}
	return result;
}

void hl_resume(void *context)
{
	ucontext_t *interrupted = context;
	struct call call = {
		.reg = interrupted->uc_mcontext.gregs,
		.mask = &interrupted->uc_sigmask,
	};

	signals++;
	if (!at_interrupted_call(&call) || others_are_pending(&call))
		return;
	switch (way_of(&call)) {
	case AGAIN:
		call.reg[REG_RAX] = call.number;
		call.reg[REG_RIP] -= SYSCALL_BYTES;
		break;
	case REST:
		call.reg[REG_RAX] = wait_for_rest(&call);
		break;
	case LEAVE:
		break;
	}
}

#else

void hl_resume(void *context)
{
	(void)context;
}

#endif
