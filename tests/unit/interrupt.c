// SPDX-License-Identifier: MIT
/* What a thread notices of being interrupted: nothing, whatever it was doing. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <hotline/call.h>
#include <hotline/cpu.h>

#define CALLS 20
#define BRIEF_NS 150000000

/* ---- A thread that blocks ---- */

static int pipe_fd[2], epoll_fd, sem_id, msg_id;
static sem_t sem;

struct blocked {
	pthread_t thread;
	atomic_int cpu, tid;
	int result; /* of the call, or -errno */
	int64_t lasted_ns;
	int (*call)(void);
};

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void *block(void *arg)
{
	struct blocked *blocked = arg;
	int64_t began;

	atomic_store(&blocked->cpu, hl_cpu_online(HL_CPU_INTERRUPTIBLE));
	atomic_store(&blocked->tid, (int)syscall(SYS_gettid));
	began = now_ns();
	blocked->result = blocked->call();
	if (blocked->result < 0)
		blocked->result = -errno;
	blocked->lasted_ns = now_ns() - began;
	hl_cpu_offline();
	return NULL;
}

static char state_of(int tid)
{
	char path[64], text[512], *behind;
	FILE *file;
	size_t n;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	file = fopen(path, "r");
	if (!file)
		return 'X';
	n = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[n] = '\0';
	behind = strrchr(text, ')');
	return behind ? behind[2] : 'X';
}

/* Until it sleeps in the kernel; false: it has ended. */
static bool wait_until_asleep(struct blocked *blocked)
{
	char state = 'R';

	while (!atomic_load(&blocked->tid))
		sched_yield();
	while (state != 'S' && state != 'X') {
		sched_yield();
		state = state_of(blocked->tid);
	}
	return state == 'S';
}

static void count(void *info)
{
	errno = EIO;
	atomic_fetch_add((atomic_int *)info, 1);
}

static void begin(struct blocked *blocked, int (*call)(void))
{
	*blocked = (struct blocked){ .call = call };
	assert_int_equal(pthread_create(&blocked->thread, NULL, block, blocked), 0);
}

/* Interrupts it where it sleeps, as often as it is there. */
static void interrupt(struct blocked *blocked)
{
	atomic_int ran = 0;
	int sent = 0;

	while (sent < CALLS && wait_until_asleep(blocked))
		if (!hl_smp_call_function_single(blocked->cpu, count, &ran, true))
			sent++;
		else
			break;
	assert_int_equal(ran, sent);
	assert_true(sent > 0);
}

/* For calls that end when their time is up: not before, and as if nothing had been. */
static void lasts(int (*call)(void), int result)
{
	struct blocked blocked;

	begin(&blocked, call);
	interrupt(&blocked);
	pthread_join(blocked.thread, NULL);
	assert_int_equal(blocked.result, result);
	assert_true(blocked.lasted_ns >= BRIEF_NS);
}

/* For calls that end when something comes. */
static void ends_by(int (*call)(void), void (*release)(struct blocked *blocked), int result)
{
	struct blocked blocked;

	begin(&blocked, call);
	interrupt(&blocked);
	release(&blocked);
	pthread_join(blocked.thread, NULL);
	assert_int_equal(blocked.result, result);
}

/* ---- Sleeping ---- */

static const struct timespec brief = { .tv_nsec = BRIEF_NS };

static int call_nanosleep(void)
{
	return nanosleep(&brief, NULL);
}

static int call_nanosleep_with_rest(void)
{
	struct timespec rest;

	return nanosleep(&brief, &rest);
}

static int call_usleep(void)
{
	return usleep(BRIEF_NS / 1000);
}

static int call_clock_nanosleep(void)
{
	errno = clock_nanosleep(CLOCK_MONOTONIC, 0, &brief, NULL);
	return errno ? -1 : 0;
}

static int call_clock_nanosleep_until(void)
{
	struct timespec end;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += 1;
	errno = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL);
	return errno ? -1 : 0;
}

static int call_poll_nothing(void)
{
	return poll(NULL, 0, BRIEF_NS / 1000000);
}

static int call_epoll_nothing(void)
{
	struct epoll_event event;

	return epoll_wait(epoll_fd, &event, 1, BRIEF_NS / 1000000);
}

static int call_select_nothing(void)
{
	struct timeval timeout = { .tv_usec = BRIEF_NS / 1000 };

	return select(0, NULL, NULL, NULL, &timeout);
}

static int call_ppoll_nothing(void)
{
	return ppoll(NULL, 0, &brief, NULL);
}

/* Whether calls can be resumed on this machine: see hotline/cpu.h. */
static void need_resumption(void)
{
	struct blocked blocked;

	begin(&blocked, call_poll_nothing);
	interrupt(&blocked);
	pthread_join(blocked.thread, NULL);
	if (blocked.result == -EINTR) {
		print_message("# the C library or the machine hides which call was interrupted\n");
		skip();
	}
}

static void sleeping_for_a_time_is_not_cut_short(void **state)
{
	(void)state;
	need_resumption();
	lasts(call_nanosleep, 0);
	lasts(call_nanosleep_with_rest, 0);
	lasts(call_usleep, 0);
	lasts(call_clock_nanosleep, 0);
	lasts(call_clock_nanosleep_until, 0);
	lasts(call_poll_nothing, 0);
	lasts(call_epoll_nothing, 0);
	lasts(call_select_nothing, 0);
	lasts(call_ppoll_nothing, 0);
}

/* ---- Waiting for something ---- */

static int take_byte(void)
{
	char byte;

	return (int)read(pipe_fd[0], &byte, 1);
}

static int call_poll(int timeout)
{
	struct pollfd fd = { .fd = pipe_fd[0], .events = POLLIN };
	int n = poll(&fd, 1, timeout);

	return n == 1 && fd.revents == POLLIN ? take_byte() : n;
}

static int call_poll_for_ever(void)
{
	return call_poll(-1);
}

static int call_poll_for_long(void)
{
	return call_poll(600000);
}

static int call_ppoll(void)
{
	struct pollfd fd = { .fd = pipe_fd[0], .events = POLLIN };
	int n = ppoll(&fd, 1, NULL, NULL);

	return n == 1 ? take_byte() : n;
}

static int call_epoll(int timeout)
{
	struct epoll_event event;
	int n = epoll_wait(epoll_fd, &event, 1, timeout);

	return n == 1 && event.data.u32 == 7 ? take_byte() : n;
}

static int call_epoll_for_ever(void)
{
	return call_epoll(-1);
}

static int call_epoll_for_long(void)
{
	return call_epoll(600000);
}

static int call_select(void)
{
	fd_set set;
	int n;

	FD_ZERO(&set);
	FD_SET(pipe_fd[0], &set);
	n = select(pipe_fd[0] + 1, &set, NULL, NULL, NULL);
	return n == 1 && FD_ISSET(pipe_fd[0], &set) ? take_byte() : n;
}

static int call_pselect(void)
{
	struct timespec timeout = { .tv_sec = 600 };
	fd_set set;
	int n;

	FD_ZERO(&set);
	FD_SET(pipe_fd[0], &set);
	n = pselect(pipe_fd[0] + 1, &set, NULL, NULL, &timeout, NULL);
	return n == 1 ? take_byte() : n;
}

static void write_byte(struct blocked *blocked)
{
	(void)blocked;
	assert_int_equal(write(pipe_fd[1], "x", 1), 1);
}

static void waiting_for_descriptors_goes_on(void **state)
{
	(void)state;
	need_resumption();
	ends_by(call_poll_for_ever, write_byte, 1);
	ends_by(call_poll_for_long, write_byte, 1);
	ends_by(call_ppoll, write_byte, 1);
	ends_by(call_epoll_for_ever, write_byte, 1);
	ends_by(call_epoll_for_long, write_byte, 1);
	ends_by(call_select, write_byte, 1);
	ends_by(call_pselect, write_byte, 1);
}

static int call_sem_timedwait(void)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += 600;
	return sem_timedwait(&sem, &end);
}

static int call_sem_wait(void)
{
	return sem_wait(&sem);
}

static void post(struct blocked *blocked)
{
	(void)blocked;
	sem_post(&sem);
}

static int call_semop(void)
{
	struct sembuf operation = { .sem_op = -1 };

	return semop(sem_id, &operation, 1);
}

static void semop_up(struct blocked *blocked)
{
	struct sembuf operation = { .sem_op = 1 };

	(void)blocked;
	assert_int_equal(semop(sem_id, &operation, 1), 0);
}

struct message {
	long type;
	char text[1];
};

static int call_msgrcv(void)
{
	struct message message;

	return (int)msgrcv(msg_id, &message, 1, 0, 0);
}

static void send_message(struct blocked *blocked)
{
	struct message message = { .type = 1 };

	(void)blocked;
	assert_int_equal(msgsnd(msg_id, &message, 1, 0), 0);
}

static int call_sigwaitinfo(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	return sigwaitinfo(&set, NULL);
}

static void send_usr2(struct blocked *blocked)
{
	pthread_kill(blocked->thread, SIGUSR2);
}

static void waiting_for_semaphores_messages_and_signals_goes_on(void **state)
{
	(void)state;
	need_resumption();
	ends_by(call_sem_timedwait, post, 0);
	ends_by(call_semop, semop_up, 0);
	ends_by(call_msgrcv, send_message, 1);
	ends_by(call_sigwaitinfo, send_usr2, SIGUSR2);
}

static void what_the_kernel_restarts_goes_on_everywhere(void **state)
{
	(void)state;
	ends_by(take_byte, write_byte, 1);
	ends_by(call_sem_wait, post, 0);
}

/* ---- Signals of the program's own ---- */

static void on_usr1(int signo)
{
	(void)signo;
}

static void send_usr1(struct blocked *blocked)
{
	assert_true(wait_until_asleep(blocked));
	pthread_kill(blocked->thread, SIGUSR1);
}

static int call_pause(void)
{
	return pause();
}

static int sleep_and_tell_rest(void)
{
	struct timespec rest = { 0 };
	int rc = nanosleep(&(struct timespec){ .tv_sec = 600 }, &rest);

	return rc && errno == EINTR && rest.tv_sec >= 1 && rest.tv_sec < 600 ? 7 : rc;
}

static void other_signals_end_calls_as_ever(void **state)
{
	struct sigaction action = { .sa_handler = on_usr1 };
	struct blocked blocked;

	(void)state;
	sigaction(SIGUSR1, &action, NULL);
	ends_by(call_poll_for_ever, send_usr1, -EINTR);
	ends_by(call_poll_for_long, send_usr1, -EINTR);
	ends_by(call_epoll_for_long, send_usr1, -EINTR);
	ends_by(call_semop, send_usr1, -EINTR);
	ends_by(sleep_and_tell_rest, send_usr1, 7);
	/* What exists to be woken by signals is woken. */
	begin(&blocked, call_pause);
	send_usr1(&blocked);
	pthread_join(blocked.thread, NULL);
	assert_int_equal(blocked.result, -EINTR);
}

static void *cancelled(void *arg)
{
	block(arg);
	return NULL;
}

static void a_thread_can_be_cancelled_while_its_call_goes_on(void **state)
{
	struct blocked blocked = { .call = call_poll_for_long };
	void *result = NULL;

	(void)state;
	assert_int_equal(pthread_create(&blocked.thread, NULL, cancelled, &blocked), 0);
	interrupt(&blocked);
	assert_int_equal(pthread_cancel(blocked.thread), 0);
	pthread_join(blocked.thread, &result);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	assert_false(hl_cpu_is_online(blocked.cpu));
}

/* ---- Computing ---- */

struct computing {
	atomic_bool stop;
	atomic_int cpu;
	unsigned long rounds, wrong;
};

struct result {
	double up;
	long double extended;
	uint64_t vector[4];
	unsigned control, control_x87;
};

typedef uint64_t vector __attribute__((vector_size(32)));

static struct result compute(void)
{
	volatile double one = 1, three = 3;
	volatile long double precise = 1;
	vector sum = { 1, 2, 3, 4 };
	struct result result = { 0 };

	for (int i = 0; i < 200; i++) {
		result.up += one / three;
		result.extended += precise / (i + 3);
		sum = sum * (vector){ 3, 5, 7, 9 } + (vector){ 1, 1, 1, 1 };
	}
	memcpy(result.vector, &sum, sizeof(sum));
#if defined(__x86_64__)
	uint16_t word;

	result.control = __builtin_ia32_stmxcsr() & ~0x3fu;
	__asm__ volatile("fnstcw %0" : "=m"(word));
	result.control_x87 = word;
#endif
	return result;
}

/* Rounds up, and not to nearest. */
static void set_rounding(bool up)
{
#if defined(__x86_64__)
	uint16_t word = up ? 0x0b7f : 0x037f;

	__builtin_ia32_ldmxcsr(up ? 0x5f80 : 0x1f80);
	__asm__ volatile("fldcw %0" : : "m"(word));
#else
	(void)up;
#endif
}

static bool same(const struct result *a, const struct result *b)
{
	return a->up == b->up && a->extended == b->extended && a->control == b->control &&
	       a->control_x87 == b->control_x87 && !memcmp(a->vector, b->vector, sizeof(a->vector));
}

static void *compute_until_stopped(void *arg)
{
	struct computing *computing = arg;
	struct result right;

	set_rounding(true);
	right = compute();
	atomic_store(&computing->cpu, hl_cpu_online(HL_CPU_INTERRUPTIBLE));
	errno = EDOM;
	while (!atomic_load(&computing->stop)) {
		struct result result = compute();

		computing->rounds++;
		if (!same(&result, &right) || errno != EDOM)
			computing->wrong++;
	}
	hl_cpu_offline();
	return NULL;
}

static void disturb(void *info)
{
	set_rounding(false);
	compute();
	count(info);
}

static void a_computing_thread_keeps_its_numbers_and_errno(void **state)
{
	struct computing computing = { .cpu = -1 };
	atomic_int ran = 0;
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, compute_until_stopped, &computing), 0);
	while (computing.cpu < 0)
		sched_yield();
	for (int i = 0; i < 1000; i++)
		assert_int_equal(hl_smp_call_function_single(computing.cpu, disturb, &ran, true),
				 0);
	atomic_store(&computing.stop, true);
	pthread_join(thread, NULL);
	assert_int_equal(ran, 1000);
	assert_true(computing.rounds > 0);
	assert_int_equal(computing.wrong, 0);
}

struct deferring {
	atomic_int cpu, phase;
	atomic_int *ran;
	int ran_inside, errno_after;
};

static void *defer(void *arg)
{
	struct deferring *deferring = arg;

	atomic_store(&deferring->cpu, hl_cpu_online(HL_CPU_INTERRUPTIBLE));
	hl_local_irq_disable();
	atomic_store(&deferring->phase, 1);
	while (atomic_load(&deferring->phase) != 2)
		;
	deferring->ran_inside = atomic_load(deferring->ran);
	errno = EDOM;
	hl_local_irq_enable();
	deferring->errno_after = errno;
	while (!atomic_load(deferring->ran))
		;
	hl_cpu_offline();
	return NULL;
}

static void interrupts_that_are_off_come_with_the_enable_and_keep_errno(void **state)
{
	atomic_int ran = 0;
	struct deferring deferring = { .cpu = -1, .ran = &ran };
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, defer, &deferring), 0);
	while (deferring.phase != 1)
		sched_yield();
	for (int i = 0; i < 10; i++)
		assert_int_equal(hl_smp_call_function_single(deferring.cpu, count, &ran, false), 0);
	atomic_store(&deferring.phase, 2);
	pthread_join(thread, NULL);
	assert_int_equal(deferring.ran_inside, 0);
	assert_int_equal(deferring.errno_after, EDOM);
	assert_int_equal(ran, 10);
}

static void an_enable_too_many_masks_nothing(void **state)
{
	struct hl_csd csd;
	atomic_int ran = 0;

	(void)state;
	hl_local_irq_disable();
	assert_true(hl_cpu_online(HL_CPU_INTERRUPTIBLE) >= 0);
	hl_local_irq_enable();
	hl_csd_init(&csd, count, &ran);
	assert_int_equal(hl_smp_call_function_single_async(hl_cpu_id(), &csd), 0);
	while (!ran)
		;
	assert_int_equal(hl_cpu_offline(), 0);
}

static int spin_with_signals_blocked(void)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	/* Coming online opened the door for the one signal; once more, as a library would that
	 * blocks all for a while. */
	return hl_cpu_set_interruptible(true) ? -1 : take_byte();
}

static void a_thread_that_blocks_all_other_signals_is_interrupted(void **state)
{
	(void)state;
	ends_by(spin_with_signals_blocked, write_byte, 1);
}

static void a_full_queue_of_signals_delays_a_call_and_does_not_lose_it(void **state)
{
	struct rlimit limit, none;
	struct blocked blocked;
	atomic_int ran = 0;
	struct hl_csd csd;

	(void)state;
	begin(&blocked, take_byte);
	assert_true(wait_until_asleep(&blocked));
	assert_int_equal(getrlimit(RLIMIT_SIGPENDING, &limit), 0);
	none = (struct rlimit){ 0, limit.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_SIGPENDING, &none), 0);
	hl_csd_init(&csd, count, &ran);
	assert_int_equal(hl_smp_call_function_single_async(blocked.cpu, &csd), 0);
	assert_int_equal(setrlimit(RLIMIT_SIGPENDING, &limit), 0);
	assert_int_equal(hl_smp_call_function_single(blocked.cpu, count, &ran, true), 0);
	assert_int_equal(ran, 2);
	write_byte(&blocked);
	pthread_join(blocked.thread, NULL);
	assert_int_equal(blocked.result, 1);
}

static int set_up(void **state)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = 7 };
	sigset_t set;

	(void)state;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	epoll_fd = epoll_create1(0);
	sem_id = semget(IPC_PRIVATE, 1, 0600);
	msg_id = msgget(IPC_PRIVATE, 0600);
	return pipe(pipe_fd) || epoll_fd < 0 || sem_id < 0 || msg_id < 0 || sem_init(&sem, 0, 0) ||
	       epoll_ctl(epoll_fd, EPOLL_CTL_ADD, pipe_fd[0], &event);
}

static int tear_down(void **state)
{
	(void)state;
	semctl(sem_id, 0, IPC_RMID);
	msgctl(msg_id, IPC_RMID, NULL);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sleeping_for_a_time_is_not_cut_short),
		cmocka_unit_test(waiting_for_descriptors_goes_on),
		cmocka_unit_test(waiting_for_semaphores_messages_and_signals_goes_on),
		cmocka_unit_test(what_the_kernel_restarts_goes_on_everywhere),
		cmocka_unit_test(other_signals_end_calls_as_ever),
		cmocka_unit_test(a_thread_can_be_cancelled_while_its_call_goes_on),
		cmocka_unit_test(a_computing_thread_keeps_its_numbers_and_errno),
		cmocka_unit_test(interrupts_that_are_off_come_with_the_enable_and_keep_errno),
		cmocka_unit_test(an_enable_too_many_masks_nothing),
		cmocka_unit_test(a_thread_that_blocks_all_other_signals_is_interrupted),
		cmocka_unit_test(a_full_queue_of_signals_delays_a_call_and_does_not_lose_it),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
