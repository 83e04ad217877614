// SPDX-License-Identifier: MIT
#define SCHEME scheme_hotline
#include "bench/peers/rcu_hotline.h"
