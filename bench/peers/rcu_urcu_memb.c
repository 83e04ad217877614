// SPDX-License-Identifier: MIT
#define _LGPL_SOURCE /* the inline forms */
#include <urcu/urcu-memb.h>

#define URCU(name) urcu_memb_##name
#define SCHEME scheme_urcu_memb
#include "bench/peers/rcu_urcu.h"
