// SPDX-License-Identifier: MIT
/*
 * LMDB: the pages are values, their numbers the keys, in a map of its own that the kernel
 * keeps. It is read in one read transaction a batch, as its authors would.
 */
#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/pages.h"

static MDB_env *env;
static MDB_dbi db;

static int fill(uint64_t pages)
{
	static uint64_t value[(BENCH_PAGE - 64) / sizeof(uint64_t)];
	MDB_txn *txn;
	int rc = mdb_txn_begin(env, NULL, 0, &txn);

	if (rc)
		return rc;
	rc = mdb_dbi_open(txn, NULL, MDB_INTEGERKEY, &db);
	for (uint64_t page = 0; page < pages && !rc; page++) {
		MDB_val key = { sizeof(page), &page }, data = { sizeof(value), value };

		value[0] = page;
		rc = mdb_put(txn, db, &key, &data, MDB_APPEND);
	}
	return rc ? rc : mdb_txn_commit(txn);
}

static int open_lmdb(const struct pages_setup *setup)
{
	static char path[4096];
	const char *directory = getenv("TMPDIR");
	int fd;

	/* In the directory of the file that it does not need. */
	if (readlink(setup->path, path, sizeof(path) - 1) > 0 && path[1] == 'd')
		directory = "/dev/shm";
	snprintf(path, sizeof(path), "%s/hotline-bench-XXXXXX", directory ? directory : "/var/tmp");
	fd = mkstemp(path);
	if (fd < 0)
		return -errno;
	if (mdb_env_create(&env) ||
	    mdb_env_set_mapsize(env, (size_t)setup->pages * BENCH_PAGE * 2 + (1 << 20)) ||
	    mdb_env_open(env, path, MDB_NOSUBDIR | MDB_NOLOCK | MDB_NORDAHEAD | MDB_NOTLS, 0600))
		return -EIO;
	unlink(path);
	/* And out of the kernel's cache again. */
	return fill(setup->pages) || mdb_env_sync(env, 1) ||
			       posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED)
		       ? -EIO
		       : 0;
}

static int read_lmdb(const uint64_t *page, unsigned n, uint64_t *sum)
{
	static __thread MDB_txn *txn;
	int rc = txn ? mdb_txn_renew(txn) : mdb_txn_begin(env, NULL, MDB_RDONLY, &txn);

	for (unsigned i = 0; i < n && !rc; i++) {
		MDB_val key = { sizeof(page[i]), (void *)(uintptr_t)&page[i] }, data;

		rc = mdb_get(txn, db, &key, &data);
		if (!rc)
			*sum += *(uint64_t *)data.mv_data;
	}
	mdb_txn_reset(txn);
	return rc ? -EIO : 0;
}

const struct pages_peer pages_lmdb = {
	.name = "lmdb",
	.kind = BENCH_PEER,
	.kernel = true,
	.open = open_lmdb,
	.read = read_lmdb,
};
