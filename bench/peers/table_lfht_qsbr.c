// SPDX-License-Identifier: MIT
#define _LGPL_SOURCE /* the inline forms */
#include <urcu/urcu-qsbr.h>

#define URCU(name) urcu_qsbr_##name
#define URCU_FLAVOUR urcu_qsbr_flavor
#define TABLE table_lfht_qsbr
#include "bench/peers/table_lfht.h"
