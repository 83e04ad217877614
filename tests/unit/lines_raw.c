// SPDX-License-Identifier: MIT
/* The file of a process, made by hand: what is believed, and what is not. */
#include "lines/raw_read.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct made {
	char path[64];
	FILE *to;
};

static void put(struct made *made, const void *bytes, size_t n)
{
	assert_int_equal(fwrite(bytes, 1, n, made->to), n);
}

static void begin_with(struct made *made, const struct hl_raw_header *header)
{
	strcpy(made->path, "/tmp/hotline-raw.XXXXXX");
	made->to = fdopen(mkstemp(made->path), "w");
	assert_non_null(made->to);
	put(made, header, sizeof(*header));
}

static const struct hl_raw_header good = {
	.magic = HL_RAW_MAGIC,
	.version = HL_RAW_VERSION,
	.byte_order = 0x01020304,
	.line = 64,
};

static void begin(struct made *made)
{
	begin_with(made, &good);
}

static void piece(struct made *made, enum hl_raw_kind kind, uint32_t thread, const void *bytes,
		  uint64_t n)
{
	const struct hl_raw_piece head = { .kind = kind, .thread = thread, .bytes = n };

	put(made, &head, sizeof(head));
	put(made, bytes, n);
}

static void thread(struct made *made, uint32_t id, uint64_t accesses)
{
	const struct hl_raw_thread raw = { .id = id, .accesses = accesses };

	piece(made, HL_RAW_THREAD, id, &raw, sizeof(raw));
}

/* Opens it and wants that; the file is closed and gone then. */
static struct hl_raw_file opened(struct made *made, int wanted, const char *reason)
{
	struct hl_raw_file file;
	struct hl_error err;

	assert_int_equal(fclose(made->to), 0);
	assert_int_equal(hl_raw_open(&file, made->path, &err), wanted);
	if (reason)
		assert_non_null(strstr(err.text, reason));
	unlink(made->path);
	return file;
}

static void refuses_what_is_no_such_file(void **state)
{
	struct hl_raw_header header = good;
	struct made made;

	(void)state;
	header.magic[0] = 'H';
	begin_with(&made, &header);
	opened(&made, -ENOEXEC, "no file of hotline c2c");
	header = good;
	header.version++;
	begin_with(&made, &header);
	opened(&made, -ENOEXEC, "build it again");
	header = good;
	header.byte_order = 0x04030201;
	begin_with(&made, &header);
	opened(&made, -ENOEXEC, "byte order");
	header = good;
	header.line = 48;
	begin_with(&made, &header);
	opened(&made, -EBADMSG, "lines of 48 bytes");
}

static void says_why_it_cannot_be_read(void **state)
{
	struct hl_raw_file file;
	struct hl_error err;

	(void)state;
	assert_int_equal(hl_raw_open(&file, "/nowhere/at/all", &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nowhere/at/all"));
	assert_int_equal(hl_raw_open(&file, "/", &err), -ENOEXEC);
}

static void takes_the_thread_as_it_was_written_last(void **state)
{
	const struct hl_raw_access access = { .pc = 1, .size = 8, .accesses = 3 };
	struct hl_raw_file file;
	struct made made;

	(void)state;
	begin(&made);
	thread(&made, 2, 10);
	thread(&made, 1, 5);
	thread(&made, 2, 30);
	piece(&made, HL_RAW_ACCESSES, 2, &access, sizeof(access));
	file = opened(&made, 0, NULL);
	assert_int_equal(file.n_threads, 2);
	assert_int_equal(hl_raw_thread(&file, 2)->raw.accesses, 30);
	assert_int_equal(hl_raw_thread(&file, 2)->n_accesses, 1);
	assert_int_equal(hl_raw_thread(&file, 1)->raw.accesses, 5);
	assert_null(hl_raw_thread(&file, 3));
	assert_false(file.whole);
	hl_raw_close(&file);
}

static void passes_over_what_it_does_not_know_and_what_is_cut_off(void **state)
{
	const struct hl_raw_piece cut = { .kind = HL_RAW_ACCESSES, .thread = 1, .bytes = 4800 };
	struct hl_raw_file file;
	struct made made;

	(void)state;
	begin(&made);
	piece(&made, (enum hl_raw_kind)77, 0, &cut, 8);
	thread(&made, 1, 5);
	put(&made, &cut, sizeof(cut));
	file = opened(&made, 0, NULL);
	assert_int_equal(file.n_threads, 1);
	assert_int_equal(file.thread[0].n_accesses, 0);
	hl_raw_close(&file);
}

static void believes_no_access_beyond_its_line(void **state)
{
	struct hl_raw_access access = { .pc = 1, .size = 8, .offset = 60 };
	struct made made;

	(void)state;
	begin(&made);
	thread(&made, 1, 5);
	piece(&made, HL_RAW_ACCESSES, 1, &access, sizeof(access));
	opened(&made, -EBADMSG, "an access");
	access.offset = 8;
	access.transfers = 1;
	begin(&made);
	thread(&made, 1, 5);
	piece(&made, HL_RAW_ACCESSES, 1, &access, sizeof(access));
	opened(&made, -EBADMSG, "an access");
	begin(&made);
	piece(&made, HL_RAW_ACCESSES, 1, &access, sizeof(access));
	opened(&made, -EBADMSG, "of no thread");
}

static void believes_no_more_parts_than_there_are(void **state)
{
	struct hl_raw_line line = { .n_parts = HL_RAW_PARTS + 1 };
	struct made made;

	(void)state;
	begin(&made);
	piece(&made, HL_RAW_LINES, 1, &line, sizeof(line));
	opened(&made, -EBADMSG, "what is in a line");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses_what_is_no_such_file),
		cmocka_unit_test(says_why_it_cannot_be_read),
		cmocka_unit_test(takes_the_thread_as_it_was_written_last),
		cmocka_unit_test(passes_over_what_it_does_not_know_and_what_is_cut_off),
		cmocka_unit_test(believes_no_access_beyond_its_line),
		cmocka_unit_test(believes_no_more_parts_than_there_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
