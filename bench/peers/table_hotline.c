// SPDX-License-Identifier: MIT
#define TABLE table_hotline
#include "bench/peers/table_hotline.h"
