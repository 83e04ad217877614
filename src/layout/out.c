// SPDX-License-Identifier: MIT
#include "layout/out.h"

#include "layout/clean.h"

#include <errno.h>
#include <string.h>

#define WRITE_AT	65536	/* bytes that are gathered before they are written */

int hl_out_flush(struct hl_out *out)
{
	const struct hl_report *report = out->report;
	int status;

	if (out->text.failed)
		return -ENOMEM;
	status = out->text.len ? report->write(report->write_arg, out->text.at, out->text.len) : 0;
	hl_text_reset(&out->text);
	return status;
}

int hl_out_flush_when_full(struct hl_out *out)
{
	return out->text.failed || out->text.len >= WRITE_AT ? hl_out_flush(out) : 0;
}

int hl_out_finish(struct hl_out *out, int status)
{
	if (!status)
		status = hl_out_flush(out);
	hl_text_free(&out->text);
	hl_text_free(&out->scratch);
	return status;
}

/* ---- Colours. ---- */

void hl_out_begin(struct hl_out *out, enum hl_colour colour)
{
	static const char *const codes[] = {
		[HL_BOLD] = "\033[1m", [HL_DIM] = "\033[2m", [HL_RED] = "\033[1;31m",
		[HL_YELLOW] = "\033[33m", [HL_GREEN] = "\033[32m", [HL_CYAN] = "\033[36m",
	};

	if (out->report->colour)
		hl_text_puts(&out->text, codes[colour]);
}

void hl_out_end(struct hl_out *out)
{
	if (out->report->colour)
		hl_text_puts(&out->text, "\033[0m");
}

void hl_out_paint(struct hl_out *out, enum hl_colour colour, const char *string)
{
	hl_out_begin(out, colour);
	hl_text_puts(&out->text, string);
	hl_out_end(out);
}

/* ---- Sentences and code. ---- */

static size_t word_at(const char *s, size_t *columns)
{
	size_t n = strcspn(s, " \n");

	*columns = 0;
	for (size_t i = 0; i < n; i++)
		*columns += ((unsigned char)s[i] & 0xc0) != 0x80;
	return n;
}

void hl_out_sentences(struct hl_out *out, const char *string, size_t indent)
{
	size_t column = 0, columns;

	hl_text_reset(&out->scratch);
	hl_text_puts(&out->scratch, string);
	hl_clean_from(&out->scratch, 0);
	if (out->scratch.failed) {
		out->text.failed = true;
		return;
	}
	string = out->scratch.at;
	while (*string) {
		size_t n = word_at(string, &columns);

		if (!column || column + 1 + columns > out->report->width) {
			if (column)
				hl_text_putc(&out->text, '\n');
			hl_text_spaces(&out->text, indent);
			column = indent;
		} else {
			hl_text_putc(&out->text, ' ');
			column++;
		}
		hl_text_add(&out->text, string, n);
		column += columns;
		string += n;
		if (*string == '\n') {
			hl_text_putc(&out->text, '\n');
			column = 0;
			string++;
			/* Spaces that begin a line are meant. */
			n = strspn(string, " ");
			if (n && string[n]) {
				hl_text_spaces(&out->text, indent + n);
				column = indent + n;
				string += n;
				n = word_at(string, &columns);
				hl_text_add(&out->text, string, n);
				column += columns;
				string += n;
			}
		}
		if (*string == ' ')
			string++;
	}
	if (column)
		hl_text_putc(&out->text, '\n');
}

/* Adds one line of a picture: comments in colours, after what they say. */
static void add_painted_line(struct hl_out *out, const char *line, size_t n)
{
	const char *comment = memmem(line, n, "/*", 2);
	size_t code = comment ? (size_t)(comment - line) : n;
	enum hl_colour colour = HL_DIM;

	hl_text_add(&out->text, line, code);
	if (!comment)
		return;
	if (memmem(comment, n - code, "XXX", 3))
		colour = HL_YELLOW;
	else if (memmem(comment, n - code, "--- ", 4))
		colour = HL_CYAN;
	hl_out_begin(out, colour);
	hl_text_add(&out->text, comment, n - code);
	hl_out_end(out);
}

void hl_out_finish_code(struct hl_out *out, size_t from, size_t indent)
{
	hl_clean_from(&out->text, from);
	if (out->text.failed || (!indent && !out->report->colour))
		return;
	hl_text_reset(&out->scratch);
	hl_text_add(&out->scratch, out->text.at + from, out->text.len - from);
	if (out->scratch.failed) {
		out->text.failed = true;
		return;
	}
	out->text.len = from;

	const char *at = out->scratch.at;

	while (*at) {
		size_t n = strcspn(at, "\n");

		if (n)
			hl_text_spaces(&out->text, indent);
		add_painted_line(out, at, n);
		hl_text_putc(&out->text, '\n');
		at += n + (at[n] == '\n');
	}
}

void hl_out_plural(struct hl_out *out, uint64_t n, const char *one)
{
	hl_text_u64(&out->text, n);
	hl_text_putc(&out->text, ' ');
	hl_text_puts(&out->text, one);
	if (n != 1)
		hl_text_putc(&out->text, 's');
}
