/* SPDX-License-Identifier: MIT */
/*
 * A text that grows.  A failed allocation is remembered in .failed and makes
 * all further additions do nothing, so that callers check once, at the end.
 */
#ifndef HL_TEXT_H
#define HL_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct hl_text {
	char *at; /* always ends in a zero byte once something was added; NULL before */
	size_t len; /* without the zero byte */
	size_t room;
	bool failed; /* no memory: the text is not whole */
};

#define HL_TEXT_INIT \
	{ \
		NULL, 0, 0, false \
	}

void hl_text_add(struct hl_text *text, const char *bytes, size_t n);
/* Inline, so that the length of a literal is known. */
static inline void hl_text_puts(struct hl_text *text, const char *string)
{
	hl_text_add(text, string, strlen(string));
}
void hl_text_putc(struct hl_text *text, char c);
void hl_text_u64(struct hl_text *text, uint64_t value);
/* The value right-aligned in width columns, for pictures. */
void hl_text_u64_width(struct hl_text *text, uint64_t value, unsigned width);
void hl_text_spaces(struct hl_text *text, size_t n);
void hl_text_printf(struct hl_text *text, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Empties it and keeps its memory. */
void hl_text_reset(struct hl_text *text);
void hl_text_free(struct hl_text *text);

#endif
