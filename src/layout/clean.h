/* SPDX-License-Identifier: MIT */
/*
 * Names come from files that may be hostile and can hold any bytes.  What a
 * report shows is valid UTF-8 without control characters, so that it can do
 * nothing to a terminal and is valid JSON: other bytes are written as \xNN.
 */
#ifndef HL_LAYOUT_CLEAN_H
#define HL_LAYOUT_CLEAN_H

#include "debuginfo/text.h"

/* Adds the string, which must stay on one line: newlines and tabs are written
 * as \xNN like all else. */
void hl_clean_add(struct hl_text *text, const char *string);

/* The same for what stands in the text from `from` on, in place, but newlines
 * and tabs stay. */
void hl_clean_from(struct hl_text *text, size_t from);

#endif
