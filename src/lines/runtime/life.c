// SPDX-License-Identifier: MIT
/*
 * Beginning and end: when the runtime starts to count, and what makes it write its file.
 */
#include "runtime.h"
#include "real.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool hl_on;

static pthread_once_t once = PTHREAD_ONCE_INIT;

void *hl_real(const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);

	return found ? found : dlsym(RTLD_DEFAULT, name);
}

/* ---- Signals that end the program. ---- */

static const int fatal[] = {
	SIGSEGV, SIGBUS, SIGILL,  SIGFPE,  SIGABRT, SIGSYS,  SIGTRAP, SIGTERM,
	SIGINT,	 SIGHUP, SIGQUIT, SIGXCPU, SIGALRM, SIGPIPE, SIGUSR1, SIGUSR2,
};
#define N_FATAL (sizeof(fatal) / sizeof(fatal[0]))

static void die(int signal)
{
	struct sigaction usual = { .sa_handler = SIG_DFL };
	sigset_t only;

	hl_self.busy++;
	hl_dump(signal);
	REAL(sigaction)(signal, &usual, NULL);
	sigemptyset(&only);
	sigaddset(&only, signal);
	raise(signal);
	pthread_sigmask(SIG_UNBLOCK, &only, NULL);
	_exit(128 + signal);
}

static bool is_fatal(int signal)
{
	for (unsigned i = 0; i < N_FATAL; i++) {
		if (fatal[i] == signal)
			return true;
	}
	return false;
}

static const struct sigaction to_die = { .sa_handler = die, .sa_flags = SA_ONSTACK };

static void catch_fatal(void)
{
	struct sigaction there;

	for (unsigned i = 0; i < N_FATAL; i++) {
		if (!REAL(sigaction)(fatal[i], NULL, &there) && there.sa_handler == SIG_DFL)
			REAL(sigaction)(fatal[i], &to_die, NULL);
	}
}

/* The program sees the default where we are, and what it sets to that is ours again. */
HOOK int sigaction(int signal, const struct sigaction *restrict next,
		   struct sigaction *restrict old)
{
	const struct sigaction *set = next;
	int status;

	if (hl_on && next && !(next->sa_flags & SA_SIGINFO) && next->sa_handler == SIG_DFL &&
	    is_fatal(signal))
		set = &to_die;
	status = REAL(sigaction)(signal, set, old);
	if (!status && old && !(old->sa_flags & SA_SIGINFO) && old->sa_handler == die) {
		memset(old, 0, sizeof(*old));
		old->sa_handler = SIG_DFL;
	}
	return status;
}

HOOK sighandler_t signal(int signal, sighandler_t handler)
{
	struct sigaction next = { .sa_handler = handler, .sa_flags = SA_RESTART }, old;

	sigemptyset(&next.sa_mask);
	if (sigaction(signal, &next, &old))
		return SIG_ERR;
	return old.sa_handler;
}

/* ---- fork, exec, exit. ---- */

static pid_t pid; /* whose the memory is: a child of vfork borrows it */

static void before_fork(void)
{
	hl_self.busy++;
	hl_dump_lock();
	hl_directory_lock();
	pthread_mutex_lock(&hl_threads_lock);
	hl_heap_lock();
	hl_stacks_lock();
}

static void after_fork(void)
{
	hl_stacks_unlock();
	hl_heap_unlock();
	pthread_mutex_unlock(&hl_threads_lock);
	hl_directory_unlock();
	hl_dump_unlock();
	hl_self.busy--;
}

static void in_child(void)
{
	pid = getpid();
	hl_threads_forked();
	hl_dump_forked();
	after_fork();
}

static void before_exec(void)
{
	if (hl_on && getpid() == pid)
		hl_dump(0);
}

HOOK int execve(const char *path, char *const argv[], char *const environment[])
{
	before_exec();
	return REAL(execve)(path, argv, environment);
}

HOOK int execv(const char *path, char *const argv[])
{
	before_exec();
	return REAL(execve)(path, argv, environ);
}

HOOK int execvp(const char *file, char *const argv[])
{
	before_exec();
	return REAL(execvpe)(file, argv, environ);
}

HOOK int execvpe(const char *file, char *const argv[], char *const environment[])
{
	before_exec();
	return REAL(execvpe)(file, argv, environment);
}

HOOK int fexecve(int fd, char *const argv[], char *const environment[])
{
	before_exec();
	return REAL(fexecve)(fd, argv, environment);
}

/* Arguments of a call up to the NULL, and the environment behind it if there is one. */
static char **gather(const char *first, va_list args, unsigned n, char **argv, char ***environment)
{
	argv[0] = (char *)first;
	for (unsigned i = 1; i <= n; i++)
		argv[i] = va_arg(args, char *);
	if (environment)
		*environment = va_arg(args, char **);
	return argv;
}

static unsigned count(const char *first, va_list args)
{
	unsigned n = 0;

	for (const char *arg = first; arg; arg = va_arg(args, const char *))
		n++;
	return n;
}

/* The rest of exec's family, which libc would not bring to the above. */
#define EXEC_LIST(name, with_environment, call) \
	HOOK int name(const char *path, const char *first, ...) \
	{ \
		char **environment = environ; \
		va_list args; \
		unsigned n; \
\
		va_start(args, first); \
		n = count(first, args); \
		va_end(args); \
\
		char *argv[n + 1]; \
\
		va_start(args, first); \
		gather(first, args, n, argv, with_environment ? &environment : NULL); \
		va_end(args); \
		before_exec(); \
		return REAL(call)(path, argv, environment); \
	}

EXEC_LIST(execl, false, execve)
EXEC_LIST(execlp, false, execvpe)
EXEC_LIST(execle, true, execve)

static void before_exit(void)
{
	if (hl_on && getpid() == pid) {
		hl_self.busy++;
		hl_dump(0);
	}
}

HOOK void _exit(int status)
{
	before_exit();
	REAL(_exit)(status);
	__builtin_unreachable();
}

HOOK void _Exit(int status)
{
	before_exit();
	REAL(_exit)(status);
	__builtin_unreachable();
}

HOOK void quick_exit(int status)
{
	at_quick_exit(before_exit);
	REAL(quick_exit)(status);
	__builtin_unreachable();
}

HOOK int dlclose(void *handle)
{
	hl_dump_modules();
	return REAL(dlclose)(handle);
}

__attribute__((destructor)) static void at_end(void)
{
	before_exit();
}

/* ---- Beginning. ---- */

static void begin(void)
{
	hl_self.busy++;
	pid = getpid();
	if (hl_dump_init() && !hl_directory_init()) {
		hl_heap_init();
		hl_threads_init();
		pthread_atfork(before_fork, after_fork, in_child);
		catch_fatal();
		hl_on = true;
	}
	hl_self.busy--;
}

bool hl_ready(void)
{
	static _Atomic bool begun;

	/* Relaxed: who sees it early goes through pthread_once() and waits there. */
	if (likely(atomic_load_explicit(&begun, memory_order_relaxed)))
		return hl_on;
	if (hl_self.busy)
		return false;
	pthread_once(&once, begin);
	atomic_store_explicit(&begun, true, memory_order_relaxed);
	return hl_on;
}

__attribute__((constructor)) static void at_start(void)
{
	hl_ready();
}
