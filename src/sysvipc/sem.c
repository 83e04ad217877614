/* SPDX-License-Identifier: MIT */
#include "sem.h"

/* Processes with adjustments in one set at the same time. */
#define MOST_PROCS 4096
#define MOST_PROCS_OF_MANY 1024
#define PAGE 4096

struct hl_sem_places hl_sem_places(uint64_t n)
{
	struct hl_sem_places at;

	at.stride = hl_sem_stride(n);
	at.sleepers = hl_sem_up(HL_SEM_FIRST + n * at.stride, HL_CACHE_LINE);
	at.procs = hl_sem_up(at.sleepers + sizeof(struct hl_ipc_sleepers), PAGE);
	at.most_procs = n <= HL_SEM_APART ? MOST_PROCS : MOST_PROCS_OF_MANY;
	at.far = hl_sem_up(at.procs + at.most_procs * sizeof(struct hl_sem_proc), PAGE);
	at.ops = hl_sem_up(at.far + HL_SEM_MOST_OPS * sizeof(struct hl_sem_change), PAGE);
	at.rows = hl_sem_up(at.ops + HL_IPC_SLEEPERS * HL_SEM_OPS_BYTES, PAGE);
	at.row_bytes = hl_sem_up(n * sizeof(int16_t), HL_CACHE_LINE);
	at.bytes = hl_sem_up(at.rows + at.most_procs * at.row_bytes, PAGE);
	return at;
}

static uint64_t bytes_for(uint64_t n)
{
	return n <= HL_SEM_MOST && n ? hl_sem_places(n).bytes : UINT64_MAX;
}

static uint64_t reserved_for(uint64_t n)
{
	return hl_sem_places(n).sleepers + HL_IPC_SLEEPERS_RESERVED;
}

static void opened(struct hl_ipc_object *object)
{
	struct hl_sem_places at = hl_sem_places(object->n);

	object->fixed[HL_SEM_FIXED_ROWS] = (uintptr_t)object->perm + at.rows;
	object->fixed[HL_SEM_FIXED_ROW_BYTES] = at.row_bytes;
	object->fixed[HL_SEM_FIXED_PROCS] = (uintptr_t)object->perm + at.procs;
	object->fixed[HL_SEM_FIXED_MOST_PROCS] = at.most_procs;
}

static int fits(const struct hl_ipc_object *object, uint64_t n)
{
	return n > object->n ? -EINVAL : 0;
}

const struct hl_ipc_kind hl_sem_kind = {
	.bytes = bytes_for,
	.reserved = reserved_for,
	.opened = opened,
	.fits = fits,
};

int hl_sem_get(key_t key, int n, int flags)
{
	struct hl_ipc_object *object;
	int err;

	if (n < 0 || n > HL_SEM_MOST)
		return -EINVAL;
	err = hl_ipc_get(HL_IPC_SEM, key, flags, (uint64_t)n, &object);
	return err ? err : object->id;
}
