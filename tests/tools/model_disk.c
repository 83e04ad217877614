// SPDX-License-Identifier: MIT
#include "model_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A sector that was written and not synced. */
struct pending {
	uint64_t sector;
	unsigned char data[MODEL_SECTOR];
};

struct disk {
	ino_t inode;
	size_t bytes;
	unsigned char *now, *kept; /* what is read; what is there after a loss of power */
	struct pending *pending; /* in the order of writing */
	size_t n_pending, room;
};

static struct disk disks[MODEL_DISKS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long fail_at;
static bool no_power;
static uint64_t state;
_Atomic(unsigned) model_sync_fails_one_in;
_Atomic(unsigned long) model_ios, model_failed_syncs;

static uint32_t next_random(void)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33);
}

void model_disk_make(unsigned disk, const char *path, size_t bytes)
{
	struct stat about;
	int fd = open(path, O_RDWR | O_CREAT, 0600);

	if (fd < 0 || ftruncate(fd, (off_t)bytes) || fstat(fd, &about))
		abort();
	close(fd);
	disks[disk] = (struct disk){
		.inode = about.st_ino,
		.bytes = bytes,
		.now = calloc(1, bytes),
		.kept = calloc(1, bytes),
	};
}

void model_disk_free(unsigned disk)
{
	free(disks[disk].now);
	free(disks[disk].kept);
	free(disks[disk].pending);
	disks[disk] = (struct disk){ 0 };
}

void model_disk_fail_power_at(unsigned long n, unsigned seed)
{
	fail_at = n;
	no_power = false;
	model_ios = model_failed_syncs = 0;
	state = seed;
}

bool model_disk_has_no_power(void)
{
	bool none;

	pthread_mutex_lock(&lock);
	none = no_power;
	pthread_mutex_unlock(&lock);
	return none;
}

const void *model_disk_contents(unsigned disk)
{
	return disks[disk].kept;
}

static struct disk *disk_of(int fd)
{
	struct stat about;

	if (fstat(fd, &about))
		abort();
	for (unsigned i = 0; i < MODEL_DISKS; i++) {
		if (disks[i].now && disks[i].inode == about.st_ino)
			return &disks[i];
	}
	abort();
}

/* One more I/O; false: there is no power. lock is held. */
static bool count_io(void)
{
	no_power |= ++model_ios == fail_at;
	return !no_power;
}

static void write_sector(struct disk *disk, uint64_t offset, const unsigned char *data)
{
	struct pending *pending;

	if (disk->n_pending == disk->room) {
		disk->room = disk->room ? 2 * disk->room : 1024;
		disk->pending = realloc(disk->pending, disk->room * sizeof(*disk->pending));
	}
	pending = &disk->pending[disk->n_pending++];
	pending->sector = offset / MODEL_SECTOR;
	memcpy(pending->data, data, MODEL_SECTOR);
	memcpy(disk->now + offset, data, MODEL_SECTOR);
}

static void keep(struct disk *disk, const struct pending *pending)
{
	memcpy(disk->kept + pending->sector * MODEL_SECTOR, pending->data, MODEL_SECTOR);
}

/* Each write gets there, or does not. */
static unsigned long keep_some(struct disk *disk)
{
	unsigned long lost = 0;

	for (size_t i = 0; i < disk->n_pending; i++) {
		if (next_random() % 2)
			keep(disk, &disk->pending[i]);
		else
			lost++;
	}
	disk->n_pending = 0;
	return lost;
}

/* Bytes done before the power failed, if it does here. */
static ssize_t transfer(struct disk *disk, const struct hl_io_request *request)
{
	bool power = count_io();
	uint64_t offset = request->offset;

	if (!power && (!request->write || model_ios != fail_at))
		return -EIO;
	for (unsigned i = 0; i < request->n_iov; i++) {
		unsigned char *data = request->iov[i].iov_base;

		for (size_t at = 0; at < request->iov[i].iov_len; at += MODEL_SECTOR) {
			if (offset >= disk->bytes)
				return (ssize_t)(offset - request->offset);
			if (request->write && (power || next_random() % 2))
				write_sector(disk, offset, data + at);
			else if (!request->write)
				memcpy(data + at, disk->now + offset, MODEL_SECTOR);
			offset += MODEL_SECTOR;
		}
	}
	return power ? (ssize_t)(offset - request->offset) : -EIO;
}

/* Others run between what was done and its being known. */
static void others_run(void)
{
	for (unsigned i = 0; i < 3; i++)
		sched_yield();
}

static void run(int fd, struct hl_io_request *request, unsigned n)
{
	struct disk *disk = disk_of(fd);

	for (unsigned i = 0; i < n; i++) {
		pthread_mutex_lock(&lock);
		request[i].result = transfer(disk, &request[i]);
		pthread_mutex_unlock(&lock);
	}
	if (request[0].write)
		others_run();
}

static int sync_disk(int fd)
{
	struct disk *disk = disk_of(fd);
	unsigned one_in = model_sync_fails_one_in;
	int rc = -EIO;

	others_run();
	pthread_mutex_lock(&lock);
	if (count_io()) {
		if (one_in && next_random() % one_in == 0) {
			model_failed_syncs++;
			keep_some(disk);
		} else {
			for (size_t i = 0; i < disk->n_pending; i++)
				keep(disk, &disk->pending[i]);
			disk->n_pending = 0;
			rc = 0;
		}
	}
	pthread_mutex_unlock(&lock);
	others_run();
	return rc;
}

unsigned long model_disk_recover(unsigned disk)
{
	unsigned long lost = keep_some(&disks[disk]);

	memcpy(disks[disk].now, disks[disk].kept, disks[disk].bytes);
	return lost;
}

const struct hl_io model_disk_io = { .run = run, .sync = sync_disk };
