// SPDX-License-Identifier: MIT
/*
 * What -DHL_RCU_DEBUG finds: each mistake is made in a child, which must trap.
 */
#define HL_RCU_DEBUG
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <hotline/rcu.h>

static bool traps(void (*mistake)(void))
{
	pid_t child = fork();
	int status;

	if (!child) {
		/* A sanitizer would report it. */
		signal(SIGILL, SIG_DFL);
		signal(SIGTRAP, SIG_DFL);
		mistake();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) && (WTERMSIG(status) == SIGILL || WTERMSIG(status) == SIGTRAP);
}

static void end_twice(void)
{
	hl_rcu_read_lock();
	hl_rcu_read_unlock();
	hl_rcu_read_unlock();
}

static void nest_without_end(void)
{
	for (int i = 0; i < 70000; i++)
		hl_rcu_read_lock();
}

static void read_without_having_said_so(void)
{
	hl_rcu_read_lock_qs();
}

static void no_mistake(void)
{
	for (int i = 0; i < 65535; i++)
		hl_rcu_read_lock();
	for (int i = 0; i < 65535; i++)
		hl_rcu_read_unlock();
	hl_rcu_set_quiescent(true);
	hl_rcu_read_lock_qs();
	hl_rcu_read_unlock_qs();
	hl_rcu_set_quiescent(false);
}

static void mistakes_trap_and_nothing_else_does(void **state)
{
	(void)state;
	assert_true(traps(end_twice));
	assert_true(traps(nest_without_end));
	assert_true(traps(read_without_having_said_so));
	assert_false(traps(no_mistake));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mistakes_trap_and_nothing_else_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
