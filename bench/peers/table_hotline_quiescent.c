// SPDX-License-Identifier: MIT
#define TABLE table_hotline_quiescent
#define QUIESCENT
#include "bench/peers/table_hotline.h"
