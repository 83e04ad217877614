// SPDX-License-Identifier: MIT
#include "layout/sarif.h"

#include <string.h>

const char *hl_sarif_level(unsigned score)
{
	return score >= 700 ? "error" : score >= 300 ? "warning" : "note";
}

void hl_sarif_uri(struct hl_text *text, const char *path)
{
	hl_text_puts(text, *path == '/' ? "file://" : "");
	/* "a:b" would be a scheme. */
	if (*path != '/' && strchr(path, ':'))
		hl_text_puts(text, "./");
	for (; *path; path++) {
		unsigned char c = *path;

		if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
		    strchr("-._~/:+@!$&'()*,;=", c))
			hl_text_putc(text, c);
		else
			hl_text_printf(text, "%%%02X", c);
	}
}

/* FNV-1a. */
uint64_t hl_sarif_hash(uint64_t h, const char *s)
{
	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3;
	return (h ^ 0xff) * 0x100000001b3;
}

void hl_sarif_fingerprint(char text[17], uint64_t hash)
{
	for (int i = 15; i >= 0; i--, hash >>= 4)
		text[i] = "0123456789abcdef"[hash & 15];
	text[16] = '\0';
}
