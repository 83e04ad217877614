/* SPDX-License-Identifier: MIT */
/*
 * What `hotline cc` and `hotline c2c` have in common.
 */
#ifndef HOTLINE_C2C_H
#define HOTLINE_C2C_H

#include <stddef.h>

/* The directory of libhotline-c2c.so: beside the command, in the build tree or installed.  0, or
 * -1 with a message. */
int c2c_find_runtime(char *directory, size_t room);

#endif
