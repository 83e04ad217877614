// SPDX-License-Identifier: MIT
#define _LGPL_SOURCE /* the inline forms */
#include <urcu/urcu-memb.h>

#define URCU(name) urcu_memb_##name
#define URCU_FLAVOUR urcu_memb_flavor
#define TABLE table_lfht_memb
#include "bench/peers/table_lfht.h"
