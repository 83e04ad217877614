// SPDX-License-Identifier: MIT
#include "debuginfo_variables.h"

long in_other_unit(int i)
{
	return header_table[i].k;
}
