/* SPDX-License-Identifier: MIT */
/*
 * Interrupting a CPU: a real-time signal whose handler runs what was sent.
 *
 * CPU_IRQ: a sender leaves its message, fences, and signals if it is the one that sets
 *	.interrupting. The handler clears .interrupting, fences and looks for messages. A message
 *	that the handler misses was left after its look, so its sender sees the flag clear
 *	and signals again.
 */
#include "internal.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t install_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(int) signal_number; /* 0: the default */
static bool installed; /* under install_lock */

static int number(void)
{
	int signo = atomic_load_explicit(&signal_number, memory_order_relaxed);

	return signo ? signo : SIGRTMAX - 3;
}

static void serve_signal(struct hl_cpu *me)
{
	atomic_store_explicit(&me->interrupting, 0, memory_order_relaxed);
	hl_fence(); /* CPU_IRQ, pairs with senders */
	hl_cpu_serve(me);
}

void hl_irq_deferred(struct hl_cpu *me)
{
	int saved = errno;

	while (me->deferred && !me->irq_off) {
		me->deferred = 0;
		serve_signal(me);
	}
	errno = saved;
}

static void on_signal(int signo, siginfo_t *info, void *context)
{
	struct hl_cpu *me = hl_this_cpu;
	int saved = errno;

	(void)signo;
	(void)info;
	/* It may have left while the signal was on its way, or want no more: hl_irq_save(). */
	if (me && !(atomic_load_explicit(&me->how, memory_order_relaxed) & HL_HOW_INTERRUPT))
		atomic_store_explicit(&me->interrupting, 0, memory_order_release);
	else if (me && me->irq_off)
		me->deferred = 1;
	else if (me)
		serve_signal(me);
	hl_resume(context);
	errno = saved;
}

void hl_interrupt_lock(void)
{
	pthread_mutex_lock(&install_lock);
}

void hl_interrupt_unlock(void)
{
	pthread_mutex_unlock(&install_lock);
}

int hl_interrupt_install(void)
{
	struct sigaction action = { .sa_sigaction = on_signal,
				    .sa_flags = SA_RESTART | SA_SIGINFO };
	int rc = 0;

	pthread_mutex_lock(&install_lock);
	if (!installed) {
		sigfillset(&action.sa_mask);
		if (sigaction(number(), &action, NULL))
			rc = -errno;
		else
			installed = true;
	}
	pthread_mutex_unlock(&install_lock);
	return rc;
}

int hl_cpu_set_signal(int signo)
{
	int rc = 0;

	if (signo < SIGRTMIN || signo > SIGRTMAX)
		return -EINVAL;
	pthread_mutex_lock(&install_lock);
	if (installed)
		rc = -EBUSY;
	else
		atomic_store_explicit(&signal_number, signo, memory_order_relaxed);
	pthread_mutex_unlock(&install_lock);
	return rc;
}

void hl_interrupt_send(struct hl_cpu *cpu)
{
	int saved = errno;
	pid_t tid = atomic_load_explicit(&cpu->tid, memory_order_relaxed);

	/* The user's queue of signals may be full: the next message tries again, and so does who
	 * waits. */
	if (syscall(SYS_tgkill, getpid(), tid, number()))
		atomic_store_explicit(&cpu->interrupting, 0, memory_order_relaxed);
	errno = saved;
}

/* A thread that blocks all signals, as those of libraries do, is still interruptible. */
static void let_in(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, number());
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

int hl_cpu_set_interruptible(bool on)
{
	struct hl_cpu *me = hl_this_cpu;
	int rc;

	if (!me)
		return -ENXIO;
	if (!on) {
		hl_cpu_how_drop(me, HL_HOW_INTERRUPT);
		return 0;
	}
	rc = hl_interrupt_install();
	if (rc)
		return rc;
	let_in();
	hl_cpu_how_add(me, HL_HOW_INTERRUPT);
	hl_cpu_serve(me); /* what came before senders knew */
	return 0;
}

void hl_local_irq_disable(void)
{
	if (hl_this_cpu)
		hl_irq_disable(hl_this_cpu);
}

void hl_local_irq_enable(void)
{
	/* The disable may have been another CPU's: this thread's before it left, its parent's. */
	if (hl_this_cpu && hl_this_cpu->irq_off)
		hl_irq_enable(hl_this_cpu);
}
