// SPDX-License-Identifier: MIT
#define SCHEME scheme_hotline_polling
#define POLLING
#include "bench/peers/rcu_hotline.h"
