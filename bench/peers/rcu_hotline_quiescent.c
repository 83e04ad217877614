// SPDX-License-Identifier: MIT
#define SCHEME scheme_hotline_quiescent
#define QUIESCENT
#include "bench/peers/rcu_hotline.h"
