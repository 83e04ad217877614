// SPDX-License-Identifier: MIT
#include "faulty_io.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

_Atomic(int) faulty_read, faulty_write, faulty_sync;
_Atomic(long) faulty_page = -1;
_Atomic(unsigned) faulty_short, faulty_one_in, faulty_slow_one_in;
void (*_Atomic faulty_before)(const struct hl_io_request *request);
_Atomic(unsigned long) faulty_runs, faulty_reads, faulty_writes, faulty_syncs, faulty_faults,
	faulty_ios;
_Atomic(long) faulty_at, faulty_times;
_Atomic(int) faulty_how;
_Atomic(bool) faulty_no_sync;
static _Atomic(uint64_t) state;

void faulty_reset(void)
{
	faulty_read = faulty_write = faulty_sync = 0;
	faulty_page = -1;
	faulty_short = faulty_one_in = faulty_slow_one_in = 0;
	faulty_before = NULL;
	faulty_at = faulty_times = 0;
	faulty_how = 0;
	faulty_no_sync = false;
	faulty_ios = 0;
	faulty_runs = faulty_reads = faulty_writes = faulty_syncs = faulty_faults = 0;
}

void faulty_seed(unsigned seed)
{
	state = seed;
}

static unsigned next_random(void)
{
	uint64_t x = atomic_fetch_add(&state, UINT64_C(0x9e3779b97f4a7c15));

	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (unsigned)(x >> 33);
}

static void be_slow(void)
{
	unsigned one_in = faulty_slow_one_in;

	if (!one_in || next_random() % one_in)
		return;
	for (unsigned i = 0; i < 3; i++)
		sched_yield();
}

static size_t bytes_of(const struct hl_io_request *request)
{
	size_t bytes = 0;

	for (unsigned i = 0; i < request->n_iov; i++)
		bytes += request->iov[i].iov_len;
	return bytes;
}

static int fault_of(const struct hl_io_request *request)
{
	static const int errors[] = { -EIO, -ENOSPC, -ENOMEM };
	long page = faulty_page, first = (long)(request->offset >> 12);
	long end = (long)((request->offset + bytes_of(request) + 4095) >> 12);
	unsigned one_in = faulty_one_in;

	if (one_in && next_random() % one_in == 0)
		return errors[next_random() % 3];
	if (page >= 0 && (page < first || page >= end))
		return 0;
	return request->write ? faulty_write : faulty_read;
}

/* Whether this I/O is to go wrong, and how. */
static int fault_of_turn(void)
{
	long n = (long)atomic_fetch_add(&faulty_ios, 1) + 1, at = faulty_at;

	return at && n >= at && n - at < faulty_times ? (int)faulty_how : 0;
}

static void run_one(int fd, struct hl_io_request *request)
{
	void (*before)(const struct hl_io_request *) = faulty_before;
	struct iovec iov[256];
	struct hl_io_request cut = *request;
	int fault = fault_of_turn();
	size_t left = fault > 0 ? (size_t)(fault - FAULTY_SHORT) : faulty_short;

	if (before)
		before(request);
	be_slow();
	atomic_fetch_add(request->write ? &faulty_writes : &faulty_reads, 1);
	request->result = fault < 0 ? fault : fault_of(request);
	if (fault > 0)
		atomic_fetch_add(&faulty_faults, 1);
	if (request->result || (fault > 0 && !left)) {
		atomic_fetch_add(&faulty_faults, fault <= 0);
		return;
	}
	memcpy(iov, request->iov, request->n_iov * sizeof(*iov));
	cut.iov = iov;
	for (unsigned i = 0; left && i < cut.n_iov; i++) {
		if (iov[i].iov_len >= left) {
			iov[i].iov_len = left;
			cut.n_iov = i + 1;
			break;
		}
		left -= iov[i].iov_len;
	}
	hl_io_one(fd, &cut);
	request->result = cut.result;
}

static void run(int fd, struct hl_io_request *request, unsigned n)
{
	faulty_runs += n > 1;
	for (unsigned i = 0; i < n; i++)
		run_one(fd, &request[i]);
}

static int sync_file(int fd)
{
	int fault = fault_of_turn();

	atomic_fetch_add(&faulty_syncs, 1);
	be_slow();
	if (fault < 0) {
		atomic_fetch_add(&faulty_faults, 1);
		return fault;
	}
	if (faulty_sync)
		return faulty_sync;
	return faulty_no_sync ? 0 : hl_io_sync(fd);
}

const struct hl_io faulty_io = { .run = run, .sync = sync_file };
