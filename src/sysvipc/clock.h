/* SPDX-License-Identifier: MIT */
/*
 * The time, as the kernel's page of code (vDSO) tells it without a system call, and not as a
 * preloaded library may have it.
 */
#ifndef HL_SYSVIPC_CLOCK_H
#define HL_SYSVIPC_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Seconds since 1970, for the times of IPC_STAT. */
int64_t hl_ipc_seconds(void);

/* CLOCK_MONOTONIC in nanoseconds. */
int64_t hl_ipc_now(void);

/* Called once, before any other thread of the process uses this room. */
void hl_ipc_clock_init(void);

static inline struct timespec hl_ipc_timespec(int64_t ns)
{
	return (struct timespec){ .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };
}

#endif
