/* SPDX-License-Identifier: MIT */
/*
 * Seen by both units of the test of variables.
 */
#ifndef HL_TEST_DEBUGINFO_VARIABLES_H
#define HL_TEST_DEBUGINFO_VARIABLES_H

struct slot {
	long n, m, k;
};

static volatile struct slot header_table[5];

long in_other_unit(int i);

#endif
