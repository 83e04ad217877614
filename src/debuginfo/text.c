// SPDX-License-Identifier: MIT
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Far above what is written in one piece; a damaged file, which can give each of a
 * thousand members the same name of a megabyte, may ask for more. */
#define MOST_BYTES ((size_t)128 << 20)

/* Makes room for n more bytes and the zero byte behind them. */
static bool reserve(struct hl_text *text, size_t n)
{
	if (text->failed)
		return false;
	if (n < text->room && text->len < text->room - n)
		return true;
	if (n >= MOST_BYTES || text->len >= MOST_BYTES - n) {
		text->failed = true;
		return false;
	}

	size_t room = text->room ? text->room : 256;

	while (room - text->len <= n)
		room *= 2;
	char *at = realloc(text->at, room);

	if (!at) {
		text->failed = true;
		return false;
	}
	text->at = at;
	text->room = room;
	return true;
}

void hl_text_add(struct hl_text *text, const char *bytes, size_t n)
{
	if (!reserve(text, n))
		return;
	memcpy(text->at + text->len, bytes, n);
	text->len += n;
	text->at[text->len] = '\0';
}

void hl_text_putc(struct hl_text *text, char c)
{
	if (!reserve(text, 1))
		return;
	text->at[text->len++] = c;
	text->at[text->len] = '\0';
}

void hl_text_spaces(struct hl_text *text, size_t n)
{
	if (!reserve(text, n))
		return;
	memset(text->at + text->len, ' ', n);
	text->len += n;
	text->at[text->len] = '\0';
}

void hl_text_u64_width(struct hl_text *text, uint64_t value, unsigned width)
{
	char digits[20];
	size_t n = 0;

	do {
		digits[sizeof(digits) - ++n] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	if (n < width)
		hl_text_spaces(text, width - n);
	hl_text_add(text, digits + sizeof(digits) - n, n);
}

void hl_text_u64(struct hl_text *text, uint64_t value)
{
	hl_text_u64_width(text, value, 0);
}

void hl_text_printf(struct hl_text *text, const char *format, ...)
{
	va_list args;
	/* Mostly it fits into the room there is. */
	size_t room = text->failed ? 0 : text->room - text->len;

	va_start(args, format);
	int n = vsnprintf(room ? text->at + text->len : NULL, room, format, args);
	va_end(args);
	if (n >= 0 && (size_t)n >= room) {
		if (!reserve(text, (size_t)n))
			return;
		va_start(args, format);
		n = vsnprintf(text->at + text->len, (size_t)n + 1, format, args);
		va_end(args);
	}
	if (n < 0)
		text->failed = true;
	else
		text->len += (size_t)n;
}

void hl_text_reset(struct hl_text *text)
{
	text->len = 0;
	if (text->at)
		text->at[0] = '\0';
}

void hl_text_free(struct hl_text *text)
{
	free(text->at);
	*text = (struct hl_text)HL_TEXT_INIT;
}
