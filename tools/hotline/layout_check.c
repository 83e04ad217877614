// SPDX-License-Identifier: MIT
#include "layout.h"

#include "complain.h"
#include "layout/check.h"
#include "layout/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file of rules above this is none. */
#define MAX_RULES_BYTES	(64u << 20)

static int read_file(const char *path, struct hl_text *text)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char buffer[8192];
	ssize_t n = -1;

	if (fd < 0)
		return -errno;
	hl_text_puts(text, "");
	while (text->len <= MAX_RULES_BYTES && (n = read(fd, buffer, sizeof(buffer))) != 0) {
		if (n > 0)
			hl_text_add(text, buffer, n);
		else if (errno != EINTR)
			break;
	}

	int error = n < 0 ? -errno : text->failed ? -ENOMEM : n ? -EFBIG : 0;

	close(fd);
	return error;
}

/* Reads the file of rules; NULL in *rules when none is given. */
static int read_rules(struct hl_rules **rules, const char *path)
{
	struct hl_text text = HL_TEXT_INIT;
	struct hl_error err = { "" };
	int status;

	*rules = NULL;
	if (!path)
		return 0;
	status = read_file(path, &text);
	if (status)
		complain_of(status, path);
	else if ((status = hl_rules_parse(rules, text.at, text.len, path, &err)) != 0)
		complain("%s", err.text);
	hl_text_free(&text);
	return status;
}

/* ---- Writing a file of accepted faults. ---- */

static int write_all(int fd, const char *bytes, size_t n)
{
	while (n) {
		ssize_t written = write(fd, bytes, n);

		if (written < 0 && errno != EINTR)
			return -errno;
		if (written > 0) {
			bytes += written;
			n -= written;
		}
	}
	return 0;
}

/* Puts the text in place of the file at once, so that a failure leaves the old one. */
static int replace_file(const char *path, const struct hl_text *text)
{
	struct stat old;
	mode_t mode = stat(path, &old) ? 0 : old.st_mode & 07777;
	char *temporary;
	int fd, status;

	if (asprintf(&temporary, "%s.XXXXXX", path) < 0)
		return -ENOMEM;
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0) {
		status = -errno;
		free(temporary);
		return status;
	}
	if (!mode) {
		mode_t mask = umask(0);

		umask(mask);
		mode = 0666 & ~mask;
	}
	status = write_all(fd, text->at, text->len);
	if (!status && fchmod(fd, mode))
		status = -errno;
	if (close(fd) && !status)
		status = -errno;
	if (!status && rename(temporary, path))
		status = -errno;
	if (status)
		unlink(temporary);
	free(temporary);
	return status;
}

/* A file that is there is only written again if it was read: its rules are kept then. */
static bool may_write(const struct layout_options *options)
{
	struct stat there, read;

	if (stat(options->write_accept, &there) || !S_ISREG(there.st_mode))
		return true;
	if (options->accept && !stat(options->accept, &read) && read.st_dev == there.st_dev &&
	    read.st_ino == there.st_ino)
		return true;
	complain("%s is there already; add --accept %s to keep its rules and add what is new",
		 options->write_accept, options->write_accept);
	return false;
}

static int write_accepted(const struct layout_options *options, const struct layout_input *input,
			  const struct hl_rules *rules, const struct hl_check *check)
{
	struct hl_text text = HL_TEXT_INIT;
	const char *path = options->write_accept;
	uint32_t added;
	int status = hl_rules_write(&text, rules, &input->survey, check, &added);
	struct stat there;

	if (!status && !stat(path, &there) && !S_ISREG(there.st_mode)) {
		/* A device or a pipe is written, not replaced. */
		int fd = open(path, O_WRONLY | O_CLOEXEC);

		status = fd < 0 ? -errno : write_all(fd, text.at, text.len);
		if (fd >= 0)
			close(fd);
	} else if (!status) {
		status = replace_file(path, &text);
	}
	hl_text_free(&text);
	if (status) {
		complain_of(status, path);
		return STATUS_CANNOT_TELL;
	}
	fprintf(stderr, "%s: %u faults added, %u accepted before\n", path, added, check->accepted);
	return STATUS_HOLDS;
}

/* ---- Checking. ---- */

static int write_report(const struct layout_options *options, const struct hl_report *report)
{
	switch (options->format) {
	case LAYOUT_JSON:
		return hl_report_json(report);
	case LAYOUT_SARIF:
		return hl_report_sarif(report);
	default:
		return hl_report_check(report);
	}
}

static int report_check(const struct layout_options *options, const struct layout_input *input,
			const struct hl_check *check)
{
	struct hl_report report;
	struct output output;
	int status;

	output_open(&output, options->pager);
	layout_fill_report(&report, options, input, options->name[0], &output);
	report.check = check;
	if (options->top < 0)
		report.top = 0;
	status = write_report(options, &report);
	if (status && status != output.error)
		complain_of(status, options->name[0]);
	else
		status = 0;
	if (output_close(&output) || status || check->unknown)
		return STATUS_CANNOT_TELL;
	return check->broken || (options->strict && check->stale) ? STATUS_FALLS_SHORT :
								    STATUS_HOLDS;
}

static int check_input(const struct layout_options *options, const struct layout_input *input,
		       const struct hl_rules *rules)
{
	struct hl_check check;
	int status = hl_check_run(&check, rules, &input->survey, &input->ranking);

	check.rules_path = options->accept;
	if (status) {
		complain_of(status, options->name[0]);
		status = STATUS_CANNOT_TELL;
	} else if (options->mode == LAYOUT_WRITE_ACCEPT) {
		status = write_accepted(options, input, rules, &check);
	} else {
		status = report_check(options, input, &check);
	}
	hl_check_free(&check);
	return status;
}

int layout_check(const struct layout_options *options)
{
	struct layout_input input;
	struct hl_rules *rules;
	int status = STATUS_CANNOT_TELL;

	if (options->mode == LAYOUT_WRITE_ACCEPT && !may_write(options))
		return STATUS_CANNOT_TELL;
	if (read_rules(&rules, options->accept))
		return STATUS_CANNOT_TELL;
	if (!layout_input_open(&input, options, options->name[0], options->name + 1,
			       options->n_names - 1, LAYOUT_MUST_EXIST)) {
		status = check_input(options, &input, rules);
		if (input.missing)
			status = STATUS_CANNOT_TELL;
	}
	layout_input_close(&input);
	hl_rules_free(rules);
	return status;
}
