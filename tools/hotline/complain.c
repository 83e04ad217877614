// SPDX-License-Identifier: MIT
#include "complain.h"

#include "debuginfo/text.h"
#include "layout/clean.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *name = "hotline";

void complain_as(const char *as)
{
	name = as;
}

void complain(const char *format, ...)
{
	struct hl_text text = HL_TEXT_INIT;
	char *message = NULL;
	va_list args;

	va_start(args, format);
	if (vasprintf(&message, format, args) < 0)
		message = NULL;
	va_end(args);
	hl_text_puts(&text, message ? message : format);
	hl_clean_from(&text, 0);
	fprintf(stderr, "%s: %s\n", name, text.failed ? "out of memory" : text.at);
	hl_text_free(&text);
	free(message);
}

void complain_of(int error, const char *doing)
{
	if (error == -ENOMEM)
		complain("%s: out of memory", doing);
	else
		complain("%s: %s", doing, strerror(-error));
}
