// SPDX-License-Identifier: MIT
#define _LGPL_SOURCE /* the inline forms */
#include <urcu/urcu-qsbr.h>

#define URCU(name) urcu_qsbr_##name
#define SCHEME scheme_urcu_qsbr
#include "bench/peers/rcu_urcu.h"
