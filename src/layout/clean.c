// SPDX-License-Identifier: MIT
#include "layout/clean.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of the UTF-8 character that begins at s, of which n bytes are there; 0
 * when it is none: a stray or overlong sequence, a surrogate, a C1 control. */
static size_t character(const unsigned char *s, size_t n)
{
	size_t len;
	uint32_t code, least;

	if (s[0] >= 0xc2 && s[0] <= 0xdf) {
		len = 2;
		code = s[0] & 0x1f;
		least = 0xa0;		/* 0x80 to 0x9f are controls */
	} else if (s[0] >= 0xe0 && s[0] <= 0xef) {
		len = 3;
		code = s[0] & 0x0f;
		least = 0x800;
	} else if (s[0] >= 0xf0 && s[0] <= 0xf4) {
		len = 4;
		code = s[0] & 0x07;
		least = 0x10000;
	} else {
		return 0;
	}
	if (n < len)
		return 0;
	for (size_t i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (s[i] & 0x3f);
	}
	if (code < least || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return 0;
	return len;
}

static bool plain(unsigned char c)
{
	return c >= 0x20 && c < 0x7f;
}

/* Whether eight bytes are all plain. Text is, but for its newlines and tabs, and a
 * report of a kernel has ten million bytes. */
static bool eight_plain(const char *bytes)
{
	const uint64_t each = 0x0101010101010101;
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	/* The top bit of a byte is set in one of the three if and only if one of the bytes
	 * is below 0x20, is 0x7f, or above. */
	return !(((word - each * 0x20) | (word + each) | word) & each * 0x80);
}

static void add_clean(struct hl_text *text, const char *bytes, size_t n, bool lines)
{
	const unsigned char *s = (const unsigned char *)bytes;
	size_t i = 0;

	while (i < n) {
		size_t run = i;

		while (run < n && (plain(s[run]) || (lines && (s[run] == '\n' || s[run] == '\t'))))
			run++;
		hl_text_add(text, bytes + i, run - i);
		i = run;
		if (i == n)
			break;

		size_t len = character(s + i, n - i);

		if (len)
			hl_text_add(text, bytes + i, len);
		else
			hl_text_printf(text, "\\x%02x", s[i]);
		i += len ? len : 1;
	}
}

void hl_clean_add(struct hl_text *text, const char *string)
{
	add_clean(text, string, strlen(string), false);
}

void hl_clean_from(struct hl_text *text, size_t from)
{
	bool dirty = false;

	if (text->failed)
		return;
	for (size_t i = from; i < text->len && !dirty;) {
		if (text->len - i >= 8 && eight_plain(text->at + i)) {
			i += 8;
			continue;
		}

		unsigned char c = text->at[i++];

		dirty = !plain(c) && c != '\n' && c != '\t';
	}
	if (!dirty)
		return;

	size_t n = text->len - from;
	char *copy = malloc(n);

	if (!copy) {
		text->failed = true;
		return;
	}
	memcpy(copy, text->at + from, n);
	text->len = from;
	add_clean(text, copy, n, true);
	free(copy);
}
