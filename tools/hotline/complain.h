/* SPDX-License-Identifier: MIT */
/*
 * Messages on standard error: what is wrong and what to do.
 */
#ifndef HOTLINE_COMPLAIN_H
#define HOTLINE_COMPLAIN_H

/* What stands in front of each message, "hotline layout"; kept by reference. */
void complain_as(const char *name);

/* Writes one message, without the newline at its end.  Bytes that could do
 * something to a terminal are written as \xNN. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The message for a negative errno value that has no better one. */
void complain_of(int error, const char *doing);

#endif
