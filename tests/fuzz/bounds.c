// SPDX-License-Identifier: MIT
#include "target.h"

#include <sys/resource.h>
#include <sys/time.h>

/* With a sanitizer everything takes several times as much. */
#ifdef FUZZ_SANITIZED
#define MOST_SECONDS	60
#define MOST_MEMORY	(1024L << 10)	/* kilobytes, as getrusage() counts */
#else
#define MOST_SECONDS	10
#define MOST_MEMORY	(512L << 10)
#endif

void fuzz_watch(bool begin)
{
	const struct itimerval timer = { .it_value.tv_sec = begin ? MOST_SECONDS : 0 };

	/* Processor time: the machine may be busy with something else. */
	setitimer(ITIMER_PROF, &timer, NULL);
}

bool fuzz_memory_is_bounded(size_t number)
{
	struct rusage usage;
	bool bounded;

	getrusage(RUSAGE_SELF, &usage);
	bounded = usage.ru_maxrss <= MOST_MEMORY;
	printf("%sok %zu - memory: %ld KB of %ld\n", bounded ? "" : "not ", number, usage.ru_maxrss,
	       MOST_MEMORY);
	return bounded;
}
